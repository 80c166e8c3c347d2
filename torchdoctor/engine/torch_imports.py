"""Whether the interpreter starts and torch imports in it: checks for ways of failing that no rule names.

A rule knows what a message means (a missing library, a GLIBC too old). An import that hangs, crashes or ends
the interpreter says nothing, and an exception may be one that no rule knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor.engine.factbook import FactBook
from torchdoctor.model import Blame, CheckResult, Evidence, Fact, NotChecked, Outcome, Report, State, Verdict

# What the import may have done, in words, with what to do about it.
_WAYS = {
    "error": ("Importing torch raises an exception", "Reinstall torch, or mend what the message names."),
    "exit": (
        "Importing torch ends the interpreter",
        "Look at the file that the import ran last: something in it calls sys.exit or os._exit.",
    ),
    "signal": (
        "Importing torch crashes the interpreter",
        "Reinstall torch and what it loads; look for libraries of other versions (torchdoctor facts).",
    ),
    "hang": (
        "Importing torch does not come to an end",
        "Look at the frames above; a cold network disk, a lock, or a sick driver holds it. "
        "If the disk is only slow, give it more time with --time-limit.",
    ),
}


def with_import(report: Report, facts: FactBook) -> Report:
    """The report with a check on the interpreter and one on the import, where they say something new."""
    results = tuple(_results(report, facts))
    unsure = tuple(_unsure(facts))
    if not results and not unsure:
        return report
    order = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.PASS: 3, Verdict.SKIP: 4}
    checks = sorted((*results, *report.checks), key=lambda result: order[result.verdict])
    failed = any(result.verdict is Verdict.FAIL for result in results)
    return replace(
        report,
        outcome=Outcome.DIAGNOSED if failed else report.outcome,
        checks=tuple(checks),
        not_checked=(*report.not_checked, *unsure),
        facts=facts.asked(),
    )


def _results(report: Report, facts: FactBook) -> Iterator[CheckResult]:
    start = facts.machine("python.start_error")
    if start.state is State.KNOWN:
        yield CheckResult(
            "python-start",
            Verdict.FAIL,
            "The Python interpreter does not run",
            Blame.ENVIRONMENT,
            observed=str(start.value),
            evidence=(_evidence(start),),
            action="Name the interpreter that runs your program: --python PATH.",
        )
        return
    ok = facts.machine("torch.import_ok")
    if ok.state is not State.KNOWN:
        return
    seconds = facts.machine("torch.import_seconds")
    if ok.value is True:
        yield CheckResult(
            "torch-import",
            Verdict.PASS,
            "torch does not import",
            observed=f"{seconds.value} s" if seconds.state is State.KNOWN else None,
        )
        return
    if _explained(report):
        return
    title, action = _WAYS.get(str(facts.machine("torch.import_outcome").value), _WAYS["error"])
    told = [facts.machine(f"torch.import_{part}") for part in ("error", "where", "stack", "output")]
    signal = facts.machine("torch.import_signal")
    yield CheckResult(
        "torch-import",
        Verdict.FAIL,
        f"{title}: {signal.value}" if signal.state is State.KNOWN else title,
        Blame.ENVIRONMENT,
        observed=str(told[0].value) if told[0].state is State.KNOWN else None,
        expected="import torch works",
        evidence=tuple(_evidence(fact) for fact in told if fact.state is State.KNOWN),
        action=action,
    )


def _explained(report: Report) -> bool:
    """Does a check that failed already rest on what the import said, or on the want of a real torch?"""
    return any(
        result.verdict is Verdict.FAIL
        and any(
            item.fact and item.fact.startswith(("torch.import_", "torch.shadowed"))
            for item in result.evidence
        )
        for result in report.checks
    )


def _unsure(facts: FactBook) -> Iterator[NotChecked]:
    fact = facts.machine("torch.import_ok")
    if fact.state is State.UNKNOWN and facts.machine("python.start_error").state is not State.KNOWN:
        reason = fact.reason.value if fact.reason else "not-asked"
        yield NotChecked(
            "torch-import", f"could not tell: {reason}" + (f", {fact.detail}" if fact.detail else "")
        )


def _evidence(fact: Fact) -> Evidence:
    return Evidence(f"{fact.name}: {fact.value}", fact.source or None, fact=fact.name)
