"""TOML that nobody has checked: parsed within a bound of size, nesting and length of keys."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 1 << 20
# Each part of a dotted key makes a table in a table: thousands of them take the stack of whoever walks them.
_DOTTED = re.compile(r"""(?:(?:[\w-]{1,80}|"[^"\n]{0,80}"|'[^'\n]{0,80}')[ \t]{0,8}\.[ \t]{0,8}){32}""")


class TomlRefused(ValueError):
    """A text that is no TOML, or larger or nested deeper than any of ours; it says what and where."""


def parse(data: bytes) -> dict[str, Any]:
    """The table that a TOML text describes. Raises TomlRefused."""
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise TomlRefused(f"not UTF-8: {error}") from None
    if len(data) > MOST_BYTES:
        raise TomlRefused(f"it is larger than {MOST_BYTES >> 20} MiB")
    found = _DOTTED.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise TomlRefused(f"a key of more than 32 parts (at line {line})")
    try:
        table: dict[str, Any] = tomllib.loads(text)
        return table
    except RecursionError:
        raise TomlRefused("it is nested too deep") from None
    except ValueError as error:  # a number of thousands of digits is one, besides what tomllib says itself
        raise TomlRefused(str(error)) from None
