"""Can a regular expression run away? Every repeat must have a bound, and their product must be small.

Python's ``re`` tries one way after the other to share a text among the parts of a pattern, so that the number
of ways bounds its steps from one start. Imported only where a rule has a regex.
"""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_parse as parser

MAX_SOURCE = 2000
MAX_TEXT = 4000  # so many characters of an event are tried
MOST_WAYS = 12 * MAX_TEXT  # two of {0,200} one behind the other
MOST_REPEATS = 400
_REFUSED = {
    "GROUPREF": "a back-reference",
    "GROUPREF_IGNORE": "a back-reference",
    "GROUPREF_EXISTS": "a condition on a group",
    "ASSERT": "a look-around",
    "ASSERT_NOT": "a look-around",
}


class _Refused(Exception):
    """Why the pattern may take more than linear time; the text completes "the regex …"."""


def complaint(source: str) -> str:
    """Why the regular expression, which compiles, is refused; "" for one that is linear."""
    if len(source) > MAX_SOURCE:
        return f"the regex is longer than {MAX_SOURCE} characters"
    try:
        if _ways(parser.parse(source)) > MOST_WAYS:
            raise _Refused(
                "has parts that can share one text in too many ways; use smaller bounds, and no repeat or "
                "alternative within a repeat"
            )
    except _Refused as error:
        return f"the regex {error}"
    except (RecursionError, OverflowError, re.error) as error:
        return f"the regex cannot be examined: {error}"
    return ""


def _ways(tree: Any) -> float:
    """In how many ways a sequence can take one text, at most. Raises _Refused."""
    total = 1.0
    for operation, value in tree:
        name = str(operation)
        if name in _REFUSED:
            raise _Refused(f"has {_REFUSED[name]}, which is not linear")
        if name == "SUBPATTERN":
            total *= _ways(value[-1])
        elif name == "ATOMIC_GROUP":
            total *= _ways(value)
        elif name == "BRANCH":
            total *= sum(_ways(item) for item in value[1])
        elif name.endswith("_REPEAT"):
            least, most, body = value
            if most > MOST_REPEATS:
                raise _Refused(
                    f"repeats without a bound; bound each repeat, as [^:]{{0,80}}, by {MOST_REPEATS}"
                )
            # within a repeat each length counts again for each turn
            total *= (most - least + 1) * min(_ways(body), 1e6) ** min(most, 50)
    return total
