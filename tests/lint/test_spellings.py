"""Each pitfall in the spellings of the fixtures, on the marked lines and nowhere else."""

from __future__ import annotations

import pytest
from lint.spellings import Spelling, all_spellings

from torchdoctor.lint.examine import examine
from torchdoctor.lint.sources import Source


@pytest.mark.parametrize("spelling", all_spellings(), ids=str)
def test_found_where_it_is(spelling: Spelling) -> None:
    result = examine(Source("x.py", spelling.text), frozenset([spelling.check, "syntax-error"]))
    assert result.faults == ()
    assert {one.line for one in result.findings} == spelling.marked
    assert {one.check for one in result.findings} <= {spelling.check}
    assert bool(spelling.marked) == (spelling.kind == "bad")
