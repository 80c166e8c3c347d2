"""Is a log from this machine? Only then may it be judged by this machine's facts."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator

from torchdoctor.model import Transcript

MAX_FILES = 40
# so many of the user's own lines must stand where the log says; one may be chance, or a template's
ENOUGH = 2
_LEAST_CODE = 12
_SITES = ("/site-packages", "/dist-packages")
_LIBRARIES = ("site-packages", "dist-packages", "node_modules")


def printed_here(transcript: Transcript) -> bool:
    """Do the lines of the user's own code that the log quotes stand at these places in the user's files?

    A log says what it likes, and may quote what lies on every machine: files of Python and of packages do not
    count, one line is not enough, and most lines must agree. Reads at most MAX_FILES files, starts nothing.
    """
    quoted = _quoted(transcript)
    if sum(map(len, quoted.values())) < ENOUGH:
        return False
    stand = [one for _, _, same in _compared(quoted) for one in same]
    return sum(stand) >= ENOUGH and 2 * sum(stand) > len(stand)


def site_of(transcript: Transcript) -> str:
    """The folder of packages from which the torch in the log's frames came; empty where none tells it."""
    sites = Counter(
        frame.file.partition("/torch/")[0]
        for event in transcript.events
        for frame in event.frames
        if frame.package == "torch" and frame.file.partition("/torch/")[0].endswith(_SITES)
    )
    if not sites:
        return ""
    from torchdoctor.engine.untrusted import is_plain_folder

    site = sites.most_common(1)[0][0]
    return site if is_plain_folder(site) else ""


def unchanged(transcript: Transcript) -> dict[str, list[str]]:
    """path -> lines, of the user's own files that stand as the log quotes them."""
    return {path: lines for path, lines, same in _compared(_quoted(transcript)) if all(same)}


def _compared(quoted: dict[str, dict[int, str]]) -> Iterator[tuple[str, list[str], list[bool]]]:
    """Of each file that can be read: path, lines, and for each quoted line whether it stands there."""
    from torchdoctor.engine.untrusted import lines_of_user

    for path, codes in quoted.items():
        lines = lines_of_user(path)
        if lines is not None:
            yield path, lines, [n <= len(lines) and lines[n - 1].strip() == code for n, code in codes.items()]


def _quoted(transcript: Transcript) -> dict[str, dict[int, str]]:
    """path -> line -> code, of the user's own frames."""
    found: dict[str, dict[int, str]] = {}
    for event in transcript.events:
        for frame in event.frames:
            code = frame.code.strip()
            if frame.package or not frame.line or len(code) < _LEAST_CODE or not _is_own(frame.file):
                continue
            if frame.file in found or len(found) < MAX_FILES:
                found.setdefault(frame.file, {})[frame.line] = code
    return found


def _is_own(path: str) -> bool:
    """May it be a file that the user wrote, by its path? Those of an interpreter or of packages are not."""
    if not path.startswith("/") or any(f"/{name}/" in path for name in _LIBRARIES):
        return False
    library = os.path.dirname(os.__file__)
    return not any(
        path.startswith(folder.rstrip("/") + "/")
        for folder in (library, f"{sys.prefix}/lib", f"{sys.base_prefix}/lib", "/usr/lib", "/usr/share")
    )
