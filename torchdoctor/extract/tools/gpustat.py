"""gpustat's lines: ``[0] Tesla V100 | 35'C, 0 % | 9012 / 16160 MB | user:python/62251(725M)``."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.patterns import pattern

_LINE = r"\[(?P<gpu>\d{1,3})\] [^|]{3,80}\|[^|]{3,60}\|\s*\d{1,7} / +\d{1,7} MB \|(?P<users>[^\n]{3,2000})"
_USER = r"/(?P<pid>\d{1,8})\((?P<mib>\d{1,7})M\)"


def rows(text: str) -> Iterator[tuple[int, int, int]]:
    """(GPU, process, bytes) of each process that a text's lines of gpustat show."""
    for line in pattern(_LINE).finditer(text):
        for user in pattern(_USER).finditer(line["users"]):
            yield int(line["gpu"]), int(user["pid"]), int(user["mib"]) * 1024**2
