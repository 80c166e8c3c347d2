"""``check --deep``: one result for each thing that was done in small."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.engine.factbook import FactBook
from torchdoctor.model import (
    VERDICT_ORDER,
    Blame,
    CheckResult,
    Evidence,
    FactValue,
    NotChecked,
    Outcome,
    Report,
    State,
    Verdict,
)
from torchdoctor.probes.deep import NAME
from torchdoctor.records import replace

_TITLES = {
    "kernel": "A first kernel of torch fails",
    "cublas": "A first product on the GPU fails (cuBLAS)",
    "cudnn": "A first convolution on the GPU fails (cuDNN)",
    "inductor": "torch.compile fails on three lines",
    "loader": "A DataLoader with two workers fails",
    "collective": "A process group of one process fails",
}
_DIED = {"fail": Verdict.FAIL, "died": Verdict.FAIL, "ok": Verdict.PASS}


def with_deep(report: Report, facts: FactBook) -> Report:
    """The report with what was done; blocks until it is. Runs code of torch and of its extensions."""
    fact = facts.machine(NAME)
    if fact.state is not State.KNOWN or not isinstance(fact.value, tuple):
        why = fact.reason.value if fact.reason else "not-asked"
        untold = NotChecked("deep", f"could not tell: {why}" + (f", {fact.detail}" if fact.detail else ""))
        return replace(report, not_checked=(*report.not_checked, untold))
    rows = [row for row in fact.value if isinstance(row, tuple) and len(row) == 5]
    results = [_result(row) for row in rows if row[1] in _DIED]
    late = [
        NotChecked(f"deep-{step}", f"could not tell: timed-out, {detail}")
        for step, state, detail, *_ in rows
        if state == "late"
    ]
    bad = any(result.verdict is Verdict.FAIL for result in results)
    return replace(
        report,
        outcome=Outcome.DIAGNOSED if bad else report.outcome,
        checks=tuple(sorted((*results, *report.checks), key=lambda one: VERDICT_ORDER[one.verdict])),
        not_checked=(*report.not_checked, *late),
        notes=(*report.notes, *(f"{step}: {detail}" for step, state, detail, *_ in rows if state == "skip")),
    )


def _result(row: tuple[FactValue, ...]) -> CheckResult:
    step, state, detail, seconds, trace = row
    title = _TITLES.get(str(step), f"A first call of {step} fails")
    told = str(detail) or (f"{seconds} s" if seconds is not None else "done")
    if state == "ok":
        return CheckResult(f"deep-{step}", Verdict.PASS, title, observed=told, group="deep")
    return CheckResult(
        f"deep-{step}", Verdict.FAIL, title, Blame.ENVIRONMENT, observed=told, expected="it works",
        evidence=tuple(_evidence(told, str(trace))), group="deep",
        action="Look at the message; what it needs is broken in this environment, whatever the program does.",
    )  # fmt: skip


def _evidence(told: str, trace: str) -> Iterator[Evidence]:
    yield from (Evidence(line) for line in told.splitlines()[:12] if line.strip())
    if not trace:
        return
    from torchdoctor import catalog
    from torchdoctor.engine.diagnose import diagnose
    from torchdoctor.intake import read_text

    found = diagnose(read_text(trace, "<deep>"), FactBook(None), catalog.load()).diagnoses
    if found:
        yield Evidence(f"this is a case of: {found[0].title} ({found[0].rule})")
