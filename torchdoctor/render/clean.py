"""What a log may put on a terminal: printable characters that the stream can encode, nothing else."""

from __future__ import annotations

import re
from functools import cache

# What stands for the marks and for typographic characters where the encoding lacks them.
_ASCII = {
    "✓": "ok", "✗": "x", "…": "...", "·": "-", "–": "-", "—": "--", "→": "->", "≤": "<=", "≥": ">=",
    "×": "x", "−": "-", "≠": "!=", "“": '"', "”": '"', "‘": "'", "’": "'",
}  # fmt: skip


def clean(text: str) -> str:
    """The text as one printable line: no escape sequence, no control, format or bidirectional character.

    Each white-space character becomes a plain space, an undecodable byte U+FFFD; all else unprintable goes.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _escape_sequences().sub("", text)
    return text if text.isprintable() and text.isascii() else "".join(map(_printable, text))


def encodable(text: str, encoding: str) -> str:
    """The text in characters of the encoding: typographic ones become ASCII, all others ``\\uXXXX``."""
    if text.isascii():
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = "".join(_ASCII.get(char, char) for char in text)
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _printable(char: str) -> str:
    if char.isspace():
        return " "
    if char.isprintable():
        return char
    return "\ufffd" if "\ud800" <= char <= "\udfff" else ""


@cache
def _escape_sequences() -> re.Pattern[str]:
    # ECMA-48 and xterm: control strings (OSC, DCS, SOS, PM, APC) with what they carry; control sequences;
    # escapes of two characters. A control string without its end goes up to the line's end.
    return re.compile(
        r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)?"
        r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
        r"|\x1b[ -/]*[0-~]?"
    )
