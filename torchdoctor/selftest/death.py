"""A torch that ended the interpreter or raised before any check began: what it said, put to the rules."""

from __future__ import annotations

import os

from torchdoctor.model import Blame, CheckResult, Evidence, Verdict
from torchdoctor.selftest.results import Judged
from torchdoctor.selftest.survey import Survey

ID = "torch"


def judge(found: Survey) -> Judged | None:
    """A failed check that names the setting; None where no rule knows one in what was said.

    Anything else that keeps torch from starting is not told by a test: `torchdoctor check` is there for it.
    """
    # with all of the engine, which nobody needs whose torch starts
    from torchdoctor.engine.last_words import cause, settings

    given = settings(os.environ)
    said = cause(found.stderr, given)
    if said is None or not said.variables:
        return None
    reason = found.fault or found.no_gpu
    result = CheckResult(
        ID,
        Verdict.FAIL,
        f"{said.title} [{said.rule}]",
        blame=Blame.ENVIRONMENT,
        observed=said.line or reason,
        expected="torch starts",
        evidence=(Evidence(reason), *(Evidence(f"{name}={given[name]}") for name in said.variables)),
        action=f"Change or unset {', '.join(said.variables)}",
    )
    return Judged(result)
