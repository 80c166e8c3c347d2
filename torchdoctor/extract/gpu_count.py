"""How many GPUs a program's own check wanted, and how many it found: "require 4 GPUs, but only 2 available".

The larger number is what was wanted: for too many of them no check is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.extract.asserted import values_told
from torchdoctor.extract.line_parts import of_code
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "gpu_count.wanted": "int: how many GPUs the check of a program wanted, by its message",
    "gpu_count.found": "int: how many it found; at least one",
    "gpu_count.setting": "text: the setting whose value is that number, by the line that raised",
}

_COUNTS = r"(?i)(?<![\w.:])\d{1,4}(?![\w.:%]|\s?[GM]i?B\b)"
_GPU = r"(?:gpu|cuda device)s?\b"
# the number beside the word: "4 more GPUs", "num_gpus=4", "GPUs: need 4"; and no number of one card
_WANTED = rf"(?i)(?:\b{{0}} (?:\w+ ){{{{0,2}}}}{_GPU}|{_GPU}\W{{{{1,3}}}}(?:\w+ ){{{{0,2}}}}{{0}}\b)"
_OF_ONE = r"(?i)\b(?:index|id|rank|ordinal)\b"
_FOUND = r"(?i)\b(?:only|available|visible|found|detected)\b"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of an exception that the user's own line raised; nothing for another event."""
    del transcript
    last = event.frames[-1] if event.frames else None
    if event.kind is not EventKind.EXCEPTION or last is None or last.package:
        return
    text = event.text.strip().partition("\n")[0][:200]
    numbers = [int(one) for one in pattern(_COUNTS).findall(text)]
    if len(numbers) != 2 or min(numbers) < 1 or numbers[0] == numbers[1]:
        return
    if pattern(_FOUND).search(text) is None or pattern(_OF_ONE).search(text) is not None:
        return
    if re.search(_WANTED.format(max(numbers)), text) is None:
        return
    yield "wanted", max(numbers)
    yield "found", min(numbers)
    yield "setting", _setting(last.code, text, str(max(numbers)))


def _setting(code: str, text: str, wanted: str) -> str | None:
    """The name behind the last dot of what the message prints as that number: no call, and no index."""
    line = of_code(code.strip())
    for node in ast.walk(line) if line is not None else ():
        told = node.exc if isinstance(node, ast.Raise) else node.msg if isinstance(node, ast.Assert) else None
        told = told.args[0] if isinstance(told, ast.Call) and len(told.args) == 1 else told
        names = (
            [name for name, value in values_told(told, text).items() if value == wanted]
            if told is not None
            else []
        )
        if len(names) == 1 and pattern(r"[A-Za-z_][\w.]*").fullmatch(names[0]):
            return names[0].rpartition(".")[2]
    return None
