"""Figures of tables and sentences as numbers: decimal commas, thousands, units behind them or in the head."""

from __future__ import annotations

from torchdoctor.extract.readings.patterns import patterns

_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "\u043a": 1, "\u043c": 2, "\u0433": 3, "\u0442": 4}

_PATTERNS = {
    "number": (
        r"(?<![\w.,])-?\d{1,3}(?:[,\u202f\u00a0']\d{3})+(?![\d,])(?:\.\d+)?|(?<![\w.])-?\d+(?:[.,]\d+)?"
    ),
    # "5,1 Go", "1,190 MB", "22100MiB", "43.2 \u0413\u0411"; in a list without blanks a comma parts
    "size": (
        r"(?<![\w.])(?<!\d,)(?P<number>\d{1,3}(?:[,\u202f\u00a0']\d{3})+(?:\.\d{1,6})?(?!\d)"
        r"|\d{1,12}(?:\.\d{1,6}|,\d{1,2})?)\s?"
        r"(?:(?P<unit>[KMGTkmgt])(?:i?[Bb]|i|(?<=[KMGkmg])o|\u0411|\u0431)?"
        r"|(?P<cyrillic>[\u043a\u043c\u0433\u0442\u041a\u041c\u0413\u0422])[\u0411\u0431])(?!\w|/[a-z])"
    ),
    # the figure behind a comma, where what stands before it is another one
    "after": r"(?<=\d,)(?P<number>\d{4,12}(?:\.\d{1,6})?)\s?(?P<unit>[KMGTkmgt])i?[Bb](?!\w|/[a-z])",
}


_pattern = patterns(_PATTERNS)


def number(text: str) -> float | None:
    """The first number of a text: "1,190" and "5,1" are told apart by the digits behind the comma."""
    found = _pattern("number").search(text)
    return value(found.group()) if found is not None else None


def value(digits: str) -> float | None:
    """A number as people write it; None for what is none."""
    plain = digits.replace("\u202f", "").replace("\u00a0", "").replace("'", "")
    head, comma, tail = plain.rpartition(",")
    if comma:
        thousands = len(tail.partition(".")[0]) == 3
        plain = head.replace(",", "") + tail if thousands else f"{head}.{tail}"
    try:
        return float(plain)
    except ValueError:
        return None


def amounts(text: str) -> list[float]:
    """The sizes of a text in bytes, with the unit behind each: "5,1 Go", "611Mi", "43.2 \u0413\u0411"."""
    return [size for _, _, size in placed(text)]


def placed(text: str) -> list[tuple[int, int, float]]:
    """The sizes of a text with the columns they stand in: start, end, bytes."""
    found: list[tuple[int, int, float]] = []
    for one in (*_pattern("size").finditer(text), *_pattern("after").finditer(text)):
        size = value(one.group("number"))
        if size is not None:
            unit = one.groupdict().get("cyrillic") or one.group("unit")
            found.append((one.start(), one.end(), size * 1024.0 ** _POWERS[unit.lower()]))
    return sorted(found)
