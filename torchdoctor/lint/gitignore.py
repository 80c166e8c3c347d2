"""Patterns as in a .gitignore: which paths below a folder they leave out."""

from __future__ import annotations

import re

from torchdoctor.model import Record
from torchdoctor.records import record


@record(frozen=True, slots=True)
class Pattern(Record):
    """One line. ``back`` takes a path in again, ``folders`` speaks of folders alone."""

    regex: re.Pattern[str]
    back: bool
    folders: bool


def patterns(text: str) -> tuple[Pattern, ...]:
    """The patterns of a .gitignore file, in its order."""
    return tuple(found for line in text.splitlines() if (found := pattern(line)) is not None)


def pattern(line: str) -> Pattern | None:
    """One pattern; None for a comment, an empty line, or what no path can match."""
    line = line.rstrip("\r\n")
    if not line.endswith("\\ "):
        line = line.rstrip(" ")
    if not line or line.startswith("#"):
        return None
    back = line.startswith("!")
    line = line[1:] if back else line
    line = line[1:] if line.startswith(("\\#", "\\!")) else line
    folders = line.endswith("/")
    line = line.rstrip("/")
    if not line:
        return None
    anchored = "/" in line
    body = _regex(line.removeprefix("/"))
    try:
        made = re.compile(body if anchored else rf"(?:.*/)?{body}")
    except re.error:
        return None
    return Pattern(made, back, folders)


def _regex(glob: str) -> str:
    found: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at):
            found.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            found.append(".*")
            at += 2
        elif char == "*":
            found.append("[^/]*")
            at += 1
        elif char == "?":
            found.append("[^/]")
            at += 1
        elif char == "[" and "]" in glob[at + 2 :]:
            close = glob.index("]", at + 2)
            inner = glob[at + 1 : close].replace("\\", "\\\\")
            inner = "^" + inner[1:] if inner.startswith("!") else inner
            found.append(f"[{inner}]")
            at = close + 1
        elif char == "\\" and at + 1 < len(glob):
            found.append(re.escape(glob[at + 1]))
            at += 2
        else:
            found.append(re.escape(char))
            at += 1
    return "".join(found)


def ignored(layers: list[tuple[str, tuple[Pattern, ...]]], path: str, is_folder: bool) -> bool:
    """Is a path left out? ``layers`` holds folders, outermost first, with the patterns found in each; paths
    use ``/``."""
    out = False
    for folder, found in layers:
        if not path.startswith(folder):
            continue
        below = path[len(folder) :].lstrip("/")
        for one in found:
            if (is_folder or not one.folders) and one.regex.fullmatch(below):
                out = not one.back
    return out
