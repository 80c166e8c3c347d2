"""The file of weights that a command is about, where the log names it: rules write FILE for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote

from torchdoctor.model import Event
from torchdoctor.patterns import pattern

_NEAR = 5  # events before the failure in which the file is named as it is loaded
_CHARS = 4000
_SUFFIXES = "pt|pth|bin|ckpt|safetensors|pkl|tar"
# a path of POSIX: nothing of Windows, of an address, or behind a wildcard
_FILE = rf"(?<![\w.~/\\:*$%}}-])(?:/|\./|~/)?[\w.@+-]+(?:/[\w.@+=-]+)*\.(?:{_SUFFIXES})\b(?![\w./\\*-])"
_BLANK = r"(?<![\w$.-])FILE(?![\w=])"


def named(command: str, event: Event, events: Sequence[Event]) -> str:
    """The command with the file of the log; as it is where none, or more than one, is named nearest."""
    if not re.search(_BLANK, command):
        return command
    for text in _texts(event, events):
        found = {one[0] for one in pattern(_FILE).finditer(text[:_CHARS])}
        if found:
            told = quote(found.pop())  # without a backslash, by the pattern
            return command if found else re.sub(_BLANK, told, command)
    return command


def _texts(event: Event, events: Sequence[Event]) -> Iterator[str]:
    """The message, the reader's own lines that led to it, and what was printed shortly before."""
    yield event.text
    yield from (frame.code for frame in reversed(event.frames) if not frame.package)
    at = next((at for at, one in enumerate(events) if one is event), 0)
    yield from (one.text for one in reversed(events[max(0, at - _NEAR) : at]))
