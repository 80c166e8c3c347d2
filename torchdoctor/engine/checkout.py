"""The program of others whose file, outside the installed packages, raised: a clone, a download, a plug-in.

A path alone does not tell it from the reader's own project, which may be laid out alike: how it was started
does, or that another program loads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.intake.frames import PLUGIN, is_known, project
from torchdoctor.model import Frame
from torchdoctor.patterns import pattern

# one that a host names beside the failure, with the folder of the host
_NAMED = r"(?P<host>(?:[A-Za-z]:)?/[^\s'\"]{0,300})/(?:custom_nodes|extensions)/(?P<name>[^\s/'\"]{1,80})"
# what GitHub packs of a branch
_DOWNLOAD = r"(?:^|/)(?P<name>\w[\w.-]*)-(?:main|master)/"
_RUNNER = r"/runner/work/|^/__w/|^[A-Za-z]:/a/"  # of GitHub, on which a project tests itself
_RECIPE = 2  # parts of a path: what lies deeper in a clone is one of many
_COMMAND = r"/bin/[^/.]+$|\.exe/__main__\.py$"


def plugin(frames: Sequence[Frame], beside: str = "") -> str | None:
    """The plug-in of another program whose file raised, or which ``beside`` names where that program did."""
    path = _raising(frames)
    found = pattern(PLUGIN).search(path)
    if found is None and path:
        named = pattern(_NAMED).finditer(beside.replace("\\", "/"))
        found = next((one for one in named if path.startswith(f"{one['host']}/")), None)
    return found["name"].removesuffix(".py") if found is not None else None


def clone(frames: Sequence[Frame]) -> str | None:
    """The program whose file raised, and which runs from where it was cloned or unpacked."""
    path = _raising(frames)
    if not path or pattern(_RUNNER).search(path) or pattern(PLUGIN).search(path):
        return None
    if (found := pattern(_DOWNLOAD).search(path)) is not None:
        return found["name"]
    for frame in reversed(frames):
        folder, root = project(frame.file) if not frame.package else ("", "")
        if folder and path.startswith(f"{folder}/"):
            package = root.rpartition("/")[2]
            others = is_known(package) or _started_by_others(frames, folder, package)
            return folder.rpartition("/")[2] if others else None
    return None


def _started_by_others(frames: Sequence[Frame], folder: str, package: str) -> bool:
    """Was it started by its own command, by a script elsewhere, or by one of its many parts or examples?"""
    own = next(number for number, frame in enumerate(frames) if not frame.package)
    first, script = frames[0], _path(frames[own])
    straight = own > 0 and all(frame.package == "python" for frame in frames[1:own])
    if straight and pattern(_COMMAND).search(_path(first)):
        return True
    if script[:1] != "/" and script[1:2] != ":":
        return False
    parts = script.removeprefix(f"{folder}/").split("/")
    if script == "/".join(parts):  # it lies elsewhere
        return True
    module = straight and first.function == "_run_module_as_main"
    return len(parts) > _RECIPE and (module or package not in parts)


def _raising(frames: Sequence[Frame]) -> str:
    """The file of the innermost frame that belongs to no package."""
    return next((_path(frame) for frame in reversed(frames) if not frame.package), "")


def _path(frame: Frame) -> str:
    return frame.file.replace("\\", "/")
