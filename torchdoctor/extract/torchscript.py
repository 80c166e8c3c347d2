"""The source that TorchScript shows under its refusal, as ``File "net.py", line 8`` with marks and an arrow.

Sources: torch/csrc/jit/frontend/source_range.cpp and torch/jit/frontend.py, torch 1.2 to 2.13. The place that
was refused stands first, and below it the calls that led there. What the interpreter prints when a compiled
program fails looks the same and is none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.number import count
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "script.variable": "text: the arguments of variable number in the own function that was refused, "
    "as **kwargs or *xs, **kw",
    "script.function": "text: the name of that function",
    "script.package": "text: the package, torch apart, whose code was refused, with none of the reader's",
}

_ARROW = "<--- HERE"
_RUNS = ("Traceback of TorchScript", "in the TorchScript interpreter")
_SHOWN = (
    r'(?m)^[ \t]*File "(?P<file>[^"\n]{1,300})", line (?P<line>\d{1,7})[ \t]*\n'
    r"(?P<source>(?:(?!.*<--- HERE)(?![ \t]*File \").*\n){1,12}?)(?P<marks>[ \t]*)~+[ \t]*<--- HERE"
)
_DEF = r"(?m)^[ \t]*(?:async )?def (?P<name>\w{1,80})\("
_INSTALLED = r"[\\/](?:site|dist)-packages[\\/](?P<package>\w+)|[\\/]torch[\\/]"
# of a signature, before any string; a ** between values is a power
_VARIABLE = r"(?<=[(,])\s*(\*{1,2}[A-Za-z_]\w{0,60})\b"


def places(event: Event) -> list[Frame]:
    """The places that a compile error shows, innermost first; none where a compiled program ran.

    Their package is left open.
    """
    text = event.text[:20_000]
    if event.kind is not EventKind.EXCEPTION or _ARROW not in text or any(words in text for words in _RUNS):
        return []
    return [_frame(found) for found in pattern(_SHOWN).finditer(text)]


def _frame(found: re.Match[str]) -> Frame:
    lines = found["source"].splitlines()
    named = pattern(_DEF).search(found["source"])
    return Frame(found["file"], count(found["line"]), named["name"] if named else "", lines[-1].strip())


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The signature that was refused, where the marks stand under a def of the reader's own; else whose."""
    del transcript
    shown = places(event)
    found = [pattern(_INSTALLED).search(place.file) for place in shown]
    package = found[0]["package"] if found and found[0] is not None and None not in found else None
    yield "package", package if package != "torch" else None
    own = found[:1] == [None]
    named = pattern(_DEF).match(shown[0].code) if own else None
    variable = pattern(_VARIABLE).findall(shown[0].code) if named is not None else []
    yield "variable", ", ".join(variable) or None
    yield "function", named["name"] if named is not None and variable else None
