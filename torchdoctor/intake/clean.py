"""Cleaning of lines: escape sequences, carriage returns, control characters, escaped JSON, length."""

from __future__ import annotations

import re

from torchdoctor.patterns import pattern

# ECMA-48: CSI, OSC with either end, DCS/PM/APC/SOS strings, two-character escapes; then the 8-bit CSI.
_ANSI = (
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)"
    r"|[PX^_][^\x1b]{0,2048}\x1b\\|[ -/]{0,8}[0-~])"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
# Colour codes whose escape character got lost on the way through a web form or `cat -v`.
_BARE_COLOUR = (
    r"(?:\^\[)?\[(?:\d{1,3}(?:;\d{1,3}){0,4})?m(?![\w.])|\^\[\[[0-9;]{0,12}[mKABCDHJ]"
    r"|\[(?:\d{1,3};){1,4}\d{1,3}m|\[[01]m"
)

# Control characters, invisible marks and direction overrides: none may reach a terminal or a pattern.
_RANGES = ((0x00, 0x09), (0x0B, 0x20), (0x7F, 0xA0), (0x200B, 0x2010), (0x202A, 0x202F), (0x2060, 0x206A))
_DROP = dict.fromkeys(code for start, end in _RANGES for code in range(start, end)) | {0xFEFF: None}
_DROP_TABLE: dict[int, int | str | None] = {
    **_DROP,
    0x0A: " ",
    0x2028: " ",
    0x2029: " ",
    0x85: None,
    0xA0: " ",
}


def clean(text: str) -> list[str]:
    """The logical lines of one physical line: one, or one for each part between carriage returns."""
    if text.isprintable() and "[0" not in text:
        return [text]
    if "\x1b" in text or "\x9b" in text:
        text = pattern(_ANSI).sub("", text)
    if "[0m" in text or "[0;" in text or "^[[" in text:
        text = pattern(_BARE_COLOUR).sub("", text)
    if "\x08" in text:  # old progress bars erase themselves with backspaces
        text = pattern(r"\x08{4,}").sub("\r", text)
    if "\r" in text:
        text = text.rstrip("\r")
        if "\r" in text:
            parts = [part.translate(_DROP_TABLE) for part in text.split("\r")]
            return [part for part in parts if part and not part.isspace()] or [""]
    return [text if text.isprintable() else text.translate(_DROP_TABLE)]


def bounded(text: str) -> str:
    """The text with every run of more than 128 digits cut to its beginning: no number that means anything.

    Whole numbers of thousands of digits cannot be computed with, and readers that look for a number behind
    each digit would take time in proportion to the square of the run.
    """
    return pattern(r"(\d{32})\d{97,}").sub("\\1…", text) if len(text) > 128 else text


def unmarked(text: str) -> str:
    """The message of a report that a program made in Markdown: ``- **Exception Message:** words``."""
    return pattern(r"^\s*(?:[-*] )?\*\*(?:Exception|Error)(?: Message)?:\*\* (?=\S)").sub("", text, count=1)


def unbold(text: str) -> str:
    """A line of a program in which a person set words in bold letters: ``UserWarning: **Using a …**``."""
    head = pattern(r"(?:Error|Warning|Exception): ").search(text)
    if head is None or "**" in text[: head.end()].lstrip("* "):
        return text  # bold letters that open before the message: the question of a list, a heading
    bold = pattern(r"\*\*(?=[^\s*])((?:[^*]|\*(?!\*)){3,300}?[^\s*])\*\*(?![\w(])")
    return text[: head.end()] + bold.sub(r"\1", text[head.end() :])


_ESCAPES = {"n": "\n", "r": "", "t": "\t", '"': '"', "\\": "\\", "/": "/", "b": "", "f": "", "'": "'"}


def unescape(text: str) -> list[str] | None:
    """The lines of a traceback that stands in one line as a JSON or repr string; None when there is none."""
    if (
        "Traceback (most recent call last)" not in text
        and '\\n  File \\"' not in text
        and '\\n  File "' not in text
        and not ("\\u001b[" in text and "Error" in text)
    ):
        return None

    plain = unescaped(text)
    if "\\n" in plain and plain.count("\n") < 2:
        return None
    lines: list[str] = []
    for part in plain.split("\n"):
        lines.extend(clean(part))
    if lines:  # the quote and key in front, the quote and what follows it behind
        end = next(
            (at for at in range(1, len(lines)) if pattern(r'^["\']\s*[,}\]]').match(lines[at])), len(lines)
        )
        whole = end == len(lines)
        del lines[end:]
        lines[0] = pattern(r'^\s*[{\[]?\s*(?:"[\w ]{1,40}"\s*:\s*)?b?["\']').sub("", lines[0])
        # the last line of the text may end in a quotation mark of its own
        last = pattern(r'(["\'])[,}\]\s]*$').search(lines[-1]) if whole else None
        if last and lines[-1].count(last[1]) % 2:
            lines[-1] = lines[-1][: last.start()]
    return lines


def unescaped(text: str) -> str:
    """The text without the escapes of JSON and of repr()."""
    return pattern(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf\"'\\/])").sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] in "ux" and len(code) > 1 else _ESCAPES.get(code, code)
