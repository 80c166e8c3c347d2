"""Numbers out of text that nobody has checked: logs, environment variables, command lines, answers of tools.

``int`` takes digits of every script, refuses ``²`` although ``isdigit`` accepts it, and gives up beyond 4,300
digits with an error; ``float`` makes infinity of a long number, which no whole number can be made of.
"""

from __future__ import annotations

MOST_DIGITS = 18  # always fits into 64 bits, so that it can be an index, a size and part of a date


def number(text: str | None, most_digits: int = MOST_DIGITS) -> int | None:
    """The whole number that a text consists of, with or without a sign, spaces around it left out.

    None for anything else, and for more than ``most_digits`` digits behind the leading zeros.
    """
    if text is None or len(text) > 4_000:
        return None
    text = text.strip()
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal()) or len(digits.lstrip("0")) > most_digits:
        return None
    return int(text)


def count(text: str | None, most_digits: int = MOST_DIGITS) -> int | None:
    """The whole number that a text consists of, digits alone: no sign, no space. None for anything else."""
    return number(text, most_digits) if text is not None and text.isascii() and text.isdecimal() else None


def elements(shape: str) -> int:
    """How many elements a tensor of a printed shape has, ``8, 1024``; 0 where it cannot have so many."""
    found = 1
    for part in shape.split(","):
        if part.strip():
            found *= number(part, 12) or 0
            if not 0 < found < 1 << 62:
                return 0
    return found


def amount(text: str | None) -> float | None:
    """The decimal number that a text consists of, below 10 to the 30th; None for all else, ``nan`` too."""
    if text is None or len(text) > 400:
        return None
    try:
        found = float(text)
    except ValueError:
        return None
    return found if -1e30 < found < 1e30 else None
