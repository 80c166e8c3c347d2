"""The outcome of a gate as results of checks, for the formats of CI."""

from __future__ import annotations

from torchdoctor.gate.finding import Finding, Verdict, Weight
from torchdoctor.gate.outcome import GateOutcome, ordered, reason
from torchdoctor.gate.text import advice
from torchdoctor.model import CheckResult, Evidence, NotChecked, Outcome, Report
from torchdoctor.model import Verdict as Result

_RESULTS = {Weight.FAIL: Result.FAIL, Weight.WARN: Result.WARN, Weight.INFO: Result.PASS}
_VERDICTS = {Verdict.FIT: Result.PASS, Verdict.INCONCLUSIVE: Result.UNKNOWN}


def as_report(outcome: GateOutcome) -> Report:
    """The verdict as the first check, then the findings as they decide; those suppressed are warnings."""
    verdict = Result.SKIP if outcome.skipped else _VERDICTS.get(outcome.verdict, Result.FAIL)
    whole = CheckResult("verdict", verdict, reason(outcome), reason=outcome.skipped or None)
    return Report(
        Outcome.DIAGNOSED if verdict is Result.FAIL else Outcome.NO_FAILURE,
        checks=(whole, *map(_check, ordered(outcome.findings))),
        not_checked=tuple(NotChecked(one.check, one.reason) for one in outcome.untold),
        notes=(*outcome.suppressions, *outcome.notes),
    )


def _check(one: Finding) -> CheckResult:
    return CheckResult(
        one.check,
        Result.WARN if one.suppressed else _RESULTS[one.weight],
        one.title + (f" (GPU {one.gpu})" if one.gpu is not None else ""),
        one.blame,
        one.observed or None,
        one.expected or None,
        one.source or None,
        tuple(map(Evidence, one.evidence)),
        advice(one) or None,
        f"suppressed by {one.suppressed}" if one.suppressed else None,
    )
