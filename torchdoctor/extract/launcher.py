"""Whether the ranks ran under another Python than the shell's: by which, where and the launcher's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "launcher.other_python": "bool: python is of another installation than torchrun, or than the ranks'",
}

LINE_CHARS = 400

_SOURCES = {
    # torchelastic's agent names the interpreter that it started
    "binary": r"\bof binary: (?P<path>\S{2,200}python[\d.]{0,6}(?:\.exe)?)(?:\s|$)",
    # which, command -v, type -p, where, whereis; "torchrun is /usr/bin/torchrun"
    "python": (
        r"^\s*(?:python3? (?:is|ist) |python3?: )?(?P<path>(?:/|[A-Z]:\\)\S{0,200}[/\\]python[\d.]{0,6}"
        r"(?:\.exe)?)(?:\s/\S*)*\s*$"
    ),
    # in words: "`which python` is /home/me/env/bin/python"
    "python-said": (
        r"\b(?:which|type(?: -p)?|command -v|where) python3?\)?[`'\"]{0,2}(?: here)?"
        r"(?: (?:is|gives?|says?|prints?|shows?|returns?|points to|ist|zeigt|sagt)|\s?[:=]|\s?->|\s?\u2192)"
        r"[ `'\"]{1,3}(?P<path>(?:/|[A-Z]:\\)[^\s`'\"]{0,200}[/\\]python[\d.]{0,6}(?:\.exe)?)\b"
    ),
    "script-said": (
        r"torchrun\)?[`'\"]{0,2} (?:is|gives?|says?|prints?|shows?|returns?|starts with"
        r"|begins with|ist|zeigt)[ `'\"]{1,3}#!\s?(?P<path>/[^\s`'\"]{1,200}/python[\d.]{0,6})\b"
    ),
    # what python -c "import peft; print(peft.__file__)" answers: the shell's python has the package.
    # ~/.local and Debian's dist-packages serve interpreters that lie elsewhere
    "found": (
        r"^\s*(?P<path>(?:/(?!\S*/\.local/)\S{0,200}/lib(?:64)?/python\d\.\d{1,2}|[A-Z]:\\\S{0,200}\\[Ll]ib)"
        r"[/\\]site-packages[/\\](?P<package>\w+)[/\\]__init__\.py)\s*$"
    ),
    # pip show, of the pip that the shell finds
    "name": r"^\s*Name: (?P<package>[\w.-]{1,60})\s*$",
    "located": r"^\s*Location: (?P<path>(?:/(?!\S*/\.local/)|[A-Z]:\\)\S{1,200}[/\\]site-packages)\s*$",
    "missing": r"No module named '(?P<package>\w+)",
    "torchrun": (
        r"^\s*(?:torchrun (?:is|ist) |torchrun: )?(?P<path>(?:/|[A-Z]:\\)\S{0,200}[/\\]torchrun"
        r"(?:\.exe)?)\s*$"
    ),
    # its first line
    "script": r"^\s*#!\s?(?P<path>/\S{1,200}/python[\d.]{0,6})\s*$",
}
_PATTERNS = Patterns(_SOURCES)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of two installations that the text names; nothing where it names one, or no launcher."""
    shell = (
        _first("python", transcript) or _first("python-said", transcript) or _has_missing(event, transcript)
    )
    if shell is None:
        return
    for name in ("binary", "script", "script-said", "torchrun"):
        ran = _first(name, transcript)
        if ran is not None:
            yield Fact.known("launcher.other_python", _home(ran[0]) != _home(shell[0]), ran[1])
            return


def _has_missing(event: Event, transcript: Transcript) -> tuple[str, str] | None:
    """Where the package that a rank misses lies for the shell's python or pip."""
    missing = _PATTERNS["missing"].search(event.text)
    if missing is None:
        return None
    package = missing["package"]
    return _first("found", transcript, package) or _shown_by_pip(package, transcript)


def _lines(transcript: Transcript, *words: str) -> Iterator[tuple[str, str]]:
    """(line, place) of the events that hold one of the words."""
    for event in transcript.events:
        if any(word in event.text for word in words):
            for offset, line in enumerate(event.text.split("\n")):
                yield line[:LINE_CHARS], event.place(offset)


def _shown_by_pip(package: str, transcript: Transcript) -> tuple[str, str] | None:
    shown = ""
    for line, place in _lines(transcript, "Name: ", "Location: "):
        if (name := _PATTERNS["name"].match(line)) is not None:
            shown = name["package"].replace("-", "_").lower()
        found = _PATTERNS["located"].match(line) if shown == package.lower() else None
        if found is not None:
            return f"{found['path']}/{package}", place
    return None


def _first(name: str, transcript: Transcript, package: str = "") -> tuple[str, str] | None:
    for line, place in _lines(transcript, "python", "torchrun", "-packages"):
        found = _PATTERNS[name].search(line)
        if found is None or (package and found["package"] != package):
            continue
        if "shims" not in found["path"]:  # pyenv's stand for any of them
            return found["path"], place
    return None


def _home(path: str) -> str:
    """The folder that holds bin or Scripts; on Windows python.exe lies beside Scripts."""
    folder = path.replace("\\", "/").rpartition("/")[0].lower()
    folder = re.sub(r"/lib(?:64)?(?:/python[\d.]{1,5})?/(?:site|dist)-packages/.*$", "", folder)
    return re.sub(r"/(?:bin|scripts)$", "", folder)
