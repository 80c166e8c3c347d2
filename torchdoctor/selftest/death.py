"""A torch that ended the interpreter or raised before any check began: what it said, put to the rules."""

from __future__ import annotations

import os

from torchdoctor.model import Blame, CheckResult, Evidence, NotChecked, Verdict
from torchdoctor.selftest.results import Judged
from torchdoctor.selftest.survey import Survey

ID = "torch"


def judge(found: Survey) -> Judged | None:
    """A failed check with the cause, None where no rule knows it; its blame is the environment's, or open."""
    # with all of the engine, which nobody needs whose torch starts
    from torchdoctor.engine.last_words import cause, settings

    given = settings(os.environ)
    said = cause(found.stderr, given)
    if said is None:
        return None
    reason = found.fault or found.no_gpu
    shown = tuple(Evidence(f"{name}={given[name]}") for name in said.variables)
    change = (
        f"Change or unset {', '.join(said.variables)}" if shown else f"torchdoctor rules show {said.rule}"
    )
    result = CheckResult(
        ID,
        Verdict.FAIL,
        f"{said.title} [{said.rule}]",
        blame=Blame.ENVIRONMENT if said.of_environment else None,
        observed=said.line or reason,
        expected="torch starts",
        evidence=(Evidence(reason), *shown),
        action=change,
    )
    return Judged(result, not_checked=() if said.of_environment else (NotChecked(ID, reason),))
