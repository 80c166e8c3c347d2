"""Figures of tables and sentences as numbers: decimal commas, thousands, units behind them or in the head."""

from __future__ import annotations

from torchdoctor.extract.readings.patterns import patterns

_PATTERNS = {
    "number": (
        r"(?<![\w.,])-?\d{1,3}(?:[,\u202f\u00a0']\d{3})+(?![\d,])(?:\.\d+)?|(?<![\w.])-?\d+(?:[.,]\d+)?"
    ),
    "size": (
        r"(?<![\w.,])(?P<number>\d{1,12}(?:[.,]\d{1,6})?)\s?(?P<unit>[KMGTkmgt])(?:i?[Bb]|i|o|\u0411"
        r"|\u0431)?(?![\w/])"
    ),
    "cyrillic": (
        r"(?<![\w.,])(?P<number>\d{1,12}(?:[.,]\d{1,6})?)\s?(?P<unit>[\u041a\u041c\u0413\u0422])[\u0411\u0431"
        r"]"
    ),
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
    for name, units in (("size", "KMGT"), ("cyrillic", "\u041a\u041c\u0413\u0422")):
        for one in _pattern(name).finditer(text):
            size = value(one.group("number"))
            if size is not None:
                power = 1 + units.index(one.group("unit").upper())
                found.append((one.start(), one.end(), size * 1024.0**power))
    return sorted(found)
