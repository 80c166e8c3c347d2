"""JSON that nobody has checked: parsed within a bound of memory, nesting and digits."""

from __future__ import annotations

import json
import re

# What text and values may take, by an estimate from the text; the doctor itself takes 30 MiB.
MOST_BYTES = 110 << 20
_MOST_DIGITS = 40
# CPython 3.10 to 3.14: a dictionary with a few keys, a list, a place in them with a number, half a text
_DICT, _LIST, _PLACE, _QUOTE = 200, 64, 40, 25
_WIDE = re.compile(rb"[\xf0-\xff]|\\u")
_LATIN = re.compile(rb"[\xc4-\xff]")


class JsonRefused(ValueError):
    """A text that is no JSON, is nested too deep, or holds too many values; it says which."""


class JsonTooLarge(JsonRefused):
    """A text whose values would take more memory than they may."""


def parse(data: bytes, most_bytes: int = MOST_BYTES, *, strict: bool = True) -> object:
    """The value of a JSON text in UTF-8. Raises JsonRefused. Takes time in proportion to the text."""
    if weight(data) > most_bytes:
        raise JsonTooLarge("it holds more values than are read")
    try:
        text = data.decode("utf-8-sig", "strict" if strict else "replace")
        return json.loads(text, parse_int=_whole, parse_float=_decimal, strict=strict)
    except RecursionError:
        raise JsonRefused("it is nested too deep") from None
    except UnicodeDecodeError as error:
        raise JsonRefused(f"no UTF-8 text at byte {error.start}") from None
    except ValueError as error:
        raise JsonRefused(str(error)) from None


def weight(data: bytes) -> int:
    """How many bytes text and values of a JSON text take at most, counted without parsing it."""
    width = 1 if data.isascii() and b"\\u" not in data else 4 if _WIDE.search(data) else 2
    if width == 2 and not _LATIN.search(data):
        width = 1
    return (
        _DICT * data.count(b"{")
        + _LIST * data.count(b"[")
        + _PLACE * data.count(b",")
        + _QUOTE * data.count(b'"')
        + 2 * width * len(data)
    )


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of more than {_MOST_DIGITS:,} digits")
    return int(digits)


def _decimal(digits: str) -> float:
    found = float(digits)
    if found in (float("inf"), float("-inf")):
        raise ValueError("a number beyond all that can be computed with")
    return found
