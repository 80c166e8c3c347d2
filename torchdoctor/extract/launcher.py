"""Whether the ranks ran under another Python than the shell's: by which, where and the launcher's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "launcher.other_python": "bool: python is of another installation than torchrun, or than the ranks'",
    "launcher.ran_under": "str: interpreter or script of the launcher's installation",
    "launcher.shell_python": "str: the python that the shell finds first",
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


def extract(event: Event, transcript: Transcript) -> Iterator[Fact]:
    """Facts of two installations that the text names; nothing where it names one, or no launcher."""
    shell = (
        _first("python", transcript) or _first("python-said", transcript) or _has_missing(event, transcript)
    )
    if shell is None:
        return
    for name in ("binary", "script", "script-said", "torchrun"):
        ran = _first(name, transcript)
        if ran is None:
            continue
        path, source = ran
        differs = _home(path) != _home(shell[0])
        yield Fact.known("launcher.other_python", differs, source)
        if differs:
            yield Fact.known("launcher.ran_under", path, source)
            yield Fact.known("launcher.shell_python", shell[0], shell[1])
        return


def _has_missing(event: Event, transcript: Transcript) -> tuple[str, str] | None:
    """Where the package that a rank misses lies for the shell's python or pip."""
    missing = _PATTERNS["missing"].search(event.text)
    if missing is None:
        return None
    return _first("found", transcript, missing.group("package")) or _shown_by_pip(
        missing.group("package"), transcript
    )


def _shown_by_pip(package: str, transcript: Transcript) -> tuple[str, str] | None:
    shown = ""
    for event in transcript.events:
        if "Name: " not in event.text and "Location: " not in event.text:
            continue
        for offset, line in enumerate(event.text.split("\n")):
            if (name := _PATTERNS["name"].match(line[:LINE_CHARS])) is not None:
                shown = name.group("package").replace("-", "_").lower()
            found = _PATTERNS["located"].match(line[:LINE_CHARS]) if shown == package.lower() else None
            if found is not None:
                return f"{found.group('path')}/{package}", f"text:{event.source}:{event.line + offset}"
    return None


def _first(name: str, transcript: Transcript, package: str = "") -> tuple[str, str] | None:
    for event in transcript.events:
        if not any(word in event.text for word in ("python", "torchrun", "-packages")):
            continue
        for offset, line in enumerate(event.text.split("\n")):
            found = _PATTERNS[name].search(line[:LINE_CHARS])
            if package and found is not None and found.group("package") != package:
                continue
            if found is not None and "shims" not in found.group("path"):  # pyenv's stand for any of them
                return found.group("path"), f"text:{event.source}:{event.line + offset}"
    return None


def _home(path: str) -> str:
    """The folder that holds bin or Scripts; on Windows python.exe lies beside Scripts."""
    folder = path.replace("\\", "/").rpartition("/")[0].lower()
    folder = re.sub(r"/lib(?:64)?(?:/python[\d.]{1,5})?/(?:site|dist)-packages/.*$", "", folder)
    return re.sub(r"/(?:bin|scripts)$", "", folder)
