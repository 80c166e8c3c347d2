"""The patterns of a reading, by name: most texts need few of them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


def patterns(
    sources: Mapping[str, str],
    flags: int = 0,
    *,
    only: Collection[str] | None = None,
    but: Collection[str] = (),
) -> Callable[[str], re.Pattern[str]]:
    """What gives the pattern of a name, compiled when it is first asked for.

    ``flags`` are for all of them, for ``only`` these, or for all ``but`` these. Raises KeyError for a name
    that is none.
    """

    @cache
    def pattern(name: str) -> re.Pattern[str]:
        flagged = name not in but if only is None else name in only
        return re.compile(sources[name], flags if flagged else 0)

    return pattern
