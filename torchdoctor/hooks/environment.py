"""The hook for a whole environment: a ``.pth`` file that installs it at the start of each of its programs."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from torchdoctor.model import TorchdoctorError
from torchdoctor.probes.machine import Command
from torchdoctor.probes.spawn import Running

FILE = "torchdoctor_hook.pth"  # behind the files of editable installs, which come in the order of their names
_LINE = (
    "import os; exec('try:\\n from torchdoctor.hooks.install import install\\n install()\\n"
    "except Exception: pass')\n"
)
_LIMIT_S = 30.0
# -I: nothing of the current folder; the answer stands alone on the last line
_ASK = """
import json, sys, sysconfig
try:
    import torchdoctor.hooks.install
    error = ""
except Exception as e:
    error = "%s: %s" % (type(e).__name__, e)
print("\\n" + json.dumps([sysconfig.get_paths()["purelib"], error, sys.version_info[:2]]))
"""


class HookError(TorchdoctorError):
    """The hook cannot be put into an interpreter; the text says why and what to do."""


class Place(NamedTuple):
    """Where the hook of an interpreter is or would be, and why torchdoctor cannot be imported there."""

    path: str
    trouble: str

    @property
    def enabled(self) -> bool:
        return os.path.lexists(self.path)


def place(python: str) -> Place:
    """Ask the interpreter. Raises HookError when it does not answer."""
    ended = Running(Command("hook", (python, "-I", "-c", _ASK), _LIMIT_S)).finish()
    try:
        folder, trouble, version = json.loads(ended.stdout.strip().rpartition("\n")[2])
    except (ValueError, TypeError):
        why = ended.start_error or ended.stderr.strip()[-300:] or ended.note or "it says nothing"
        raise HookError(f"{python} does not answer: {why}") from None
    if version < [3, 10] and not trouble:
        trouble = "torchdoctor needs Python 3.10 or newer"
    return Place(os.path.join(folder, FILE), trouble)


def enable(python: str) -> Place:
    """Write the file. Raises HookError where torchdoctor cannot be imported or the folder not be written."""
    where = place(python)
    if where.trouble:
        raise HookError(
            f"torchdoctor cannot be imported in {python} ({where.trouble}).",
            f"Install it there first: {python} -m pip install torchdoctor",
        )
    try:
        if os.path.islink(where.path):
            raise HookError(f"{where.path} is a link; remove it first")
        with open(where.path, "w", encoding="ascii") as file:
            file.write(_LINE)
    except OSError as error:
        raise HookError(f"{where.path} cannot be written: {error.strerror}") from None
    return where


def disable(python: str) -> Place:
    """Remove the file, if it is there. Raises HookError when that is not possible."""
    where = place(python)
    try:
        if where.enabled:
            os.unlink(where.path)
    except OSError as error:
        raise HookError(f"{where.path} cannot be removed: {error.strerror}") from None
    return where
