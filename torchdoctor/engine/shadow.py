"""The reader's own file that Python takes where a module of its name is meant: random.py, datasets.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import pairwise

from torchdoctor.intake.frames import is_known, package_of
from torchdoctor.model import Event, Frame
from torchdoctor.patterns import pattern

_IMPORT = r"(?:import|from) (?P<module>\w+)(?:\.|\s|$)"
_ASKED = (
    r"^(?:(?:partially initialized )?module '(?P<has>\w{1,80})'(?: from '[^'\n]{1,400}')? has no attribute"
    r"|cannot import name '[^'\n]{1,200}' from (?:partially initialized module )?'(?P<gives>\w{1,80})')"
)
_NO_PACKAGE = r"^No module named '(?P<has>\w{1,80})\.[\w.]{1,200}'; '(?P=has)' is not a package"
# the file, in braces or between quotation marks, since Python 3.13 with what it advises
_FILE = r" from '([^'\n]*[./\\][^'\n]*)'|renaming '([^'\n]+)'|\(([^()'\n]*[./\\][^()'\n]*)\)"
_SINCE = "' since it has the same name as the standard library module"


def certain(event: Event, frames: Sequence[Frame]) -> str | None:
    """The file of which no doubt is left: a package, or the file itself, meant another one."""
    for outer, inner in pairwise(frames):
        imports = pattern(_IMPORT).match(outer.code)
        if imports is None or inner.package or inner.function != "<module>" or outer.function != "<module>":
            continue
        name = _module(inner.file)
        if name != imports["module"]:
            continue
        if _is_meant(name) if outer.package == "python" else outer.package:
            return inner.file
        if not outer.package and _last(outer.file) == _last(inner.file) == f"{name}.py":
            return inner.file
    asker = frames[-1].package if frames else ""
    sure = asker or _SINCE in event.text or pattern(_NO_PACKAGE).match(event.text[:1_000])
    return asked(event, frames) if sure else None


def asked(event: Event, frames: Sequence[Frame]) -> str | None:
    """The own file that bears the name of a well-known module, and lacks what was asked of that."""
    text = event.text[:1_000]
    found = pattern(_ASKED).match(text) or pattern(_NO_PACKAGE).match(text)
    name = next(filter(None, found.groups()), "") if found is not None else ""
    if not _is_meant(name):
        return None
    files = [next(filter(None, one.groups())) for one in pattern(_FILE).finditer(text)]
    files = files or [frame.file for frame in frames if not frame.package]
    return next((file for file in files if _module(file) == name and not package_of(file)), None)


def _is_meant(name: str) -> bool:
    return is_known(name) or name in sys.stdlib_module_names


def _module(file: str) -> str:
    """The name under which a file is imported."""
    folder, _, name = file.replace("\\", "/").rpartition("/")
    name = re.sub(r"\.py[cdow]?$", "", name)
    return folder.rpartition("/")[2] if name == "__init__" else name


def _last(file: str) -> str:
    return re.split(r"[\\/]", file)[-1]
