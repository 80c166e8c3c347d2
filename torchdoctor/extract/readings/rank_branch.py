"""Code that makes a collective call under a test of the rank, in a program that hangs."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "rank_branch"

FACTS: dict[str, str] = {
    "rank_branch.call": "str: collective call that only some ranks make",
    "rank_branch.test": "str: test of the rank that it stands under",
    "rank_branch.hangs": "bool: somebody says that the program hangs",
}

_PATTERNS = {
    "test": (
        r"^\s*(?:if|elif)\b[^#\n]{0,60}?(?:\brank\b|_rank\b|get_rank\(\)|local_rank|is_main_process"
        r"|is_master|is_rank_?(?:zero|0))[^#\n]{0,40}:"
    ),
    "call": (
        r"\b(?:dist|distributed|accelerator|hvd|comm)\.(?:barrier|all_reduce|all_gather\w*|reduce"
        r"|reduce_scatter\w*|broadcast\w*"
        r"|gather\w*|scatter\w*|wait_for_everyone|allreduce|allgather)\("
    ),
    "denied": r"(?:nothing|not|never|no longer|doesn't|isn't) (?:is )?(?:hang|stuck|freez|deadlock)\w*",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE if name == "denied" else 0)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the first such call; nothing where the other ranks have a call of their own."""
    found: list[tuple[Line, Line]] = []
    test: Line | None = None
    for line in passage.of(Voice.CODE):
        if test is not None and line.indent <= test.indent:
            if line.text.lstrip().startswith(("else:", "elif ")):
                test = line
                continue
            test = None
        if test is not None and _pattern("call").search(line.text.partition("#")[0]):
            found.append((test, line))
        elif test is None and _pattern("test").match(line.text):
            test = line
    if len({above.at for above, _ in found}) != 1 or not passage.personal:
        return  # in two branches: one rank goes first, the others follow
    hangs = next((line for line in passage.sentences if _hangs(line.text)), None)
    if hangs is None:
        return
    above, call = found[0]
    yield call.fact("rank_branch.call", call.text.strip()[:120])
    yield above.fact("rank_branch.test", above.text.strip()[:120])
    yield hangs.fact("rank_branch.hangs", True)


def _hangs(text: str) -> bool:
    return bool(says("hangs").search(text)) and not _pattern("denied").search(text)
