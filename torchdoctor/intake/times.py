"""Times as logs print them, turned into ISO 8601."""

from __future__ import annotations

from torchdoctor.patterns import pattern

_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_CLOCK = r"(\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
_FULL = (
    r"(\d{4})[-/](\d\d)[-/](\d\d)(?:[T _]|, )"
    r"(\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?|(?=\] )))(?: ?(Z|[+-]\d\d:?\d\d))?"  # ComfyUI-Manager's: no seconds
)
_AMERICAN = rf"(\d\d)/(\d\d)/(\d{{4}}) {_CLOCK}(?: [AP]M)?"
_SHORT_YEAR = rf"(\d\d)[-/](\d\d)[-/](\d\d) {_CLOCK}"
_NO_YEAR = rf"(\d\d)[-/](\d\d) {_CLOCK}"
_MAIL = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) (\w{{3}}) (\d{{4}}) {_CLOCK}"
_STAMP = r"\b(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
_HEAD_CHARS = 64
_CLOCK_ONLY = rf"{_CLOCK}(?=[ \]|:,-])"
ANY = (
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T _]|, )\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
    r"|(?:\d\d[-/]){1,2}(?:\d{4}|\d\d) \d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
)


def match_time(text: str, at: int) -> tuple[int, str] | None:
    """(end, time) of the time that begins at ``at``, or None.

    The time is ISO 8601; without year ``--MM-DDThh:mm:ss``, without date ``hh:mm:ss``.
    """
    if text[at + 3 : at + 5] == ", ":
        found = pattern(_MAIL).match(text, at)
        if found is None or found[2] not in MONTHS:
            return None
        return found.end(), f"{found[3]}-{MONTHS[found[2]]:02d}-{found[1]}T{_clock(found[4])}"
    if text[at + 2 : at + 3] == ":":
        found = pattern(_CLOCK_ONLY).match(text, at)
        return (found.end(), _clock(found[1])) if found else None
    if text[at + 4 : at + 5] in ("-", "/"):
        found = pattern(_FULL).match(text, at)
        if found is None:
            return None
        return found.end(), f"{found[1]}-{found[2]}-{found[3]}T{_clock(found[4])}{found[5] or ''}"
    if text[at + 2 : at + 3] not in ("-", "/"):
        return None
    found = pattern(_AMERICAN).match(text, at)
    if found:
        return found.end(), f"{found[3]}-{found[1]}-{found[2]}T{_clock(found[4])}"
    found = pattern(_SHORT_YEAR).match(text, at)
    if found:
        return found.end(), f"20{found[1]}-{found[2]}-{found[3]}T{_clock(found[4])}"
    found = pattern(_NO_YEAR).match(text, at)
    return (found.end(), f"--{found[1]}-{found[2]}T{_clock(found[3])}") if found else None


def stamp(text: str) -> str | None:
    """The date and time that a line has near its beginning, as text that sorts; without zone."""
    head = text[:_HEAD_CHARS]
    dated = ":" in head and ("-" in head or "/" in head)
    found = pattern(_STAMP).search(head) if dated else None
    return found[1] if found is not None else None


def _clock(text: str) -> str:
    return text.replace(",", ".")


def kernel_time(text: str) -> str | None:
    """The time in the brackets of ``dmesg -T``, in any language: ``Sun Apr 16 11:02:40 2023``."""
    found = pattern(r"(\w+) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})$").search(text)
    if not found:
        return None
    month = MONTHS.get(found[1]) or int("".join(c for c in found[1] if c.isdecimal()) or 0)
    return f"{found[4]}-{month:02d}-{int(found[2]):02d}T{found[3]}" if 1 <= month <= 12 else ""
