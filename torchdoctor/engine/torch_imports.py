"""Whether the interpreter starts and torch imports in it: checks for ways of failing that no rule names.

A rule knows what a message means (a missing library, a GLIBC too old). An import that hangs, crashes or ends
the interpreter says nothing, and an exception may be one that no rule knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.last_words import Cause, cause, settings
from torchdoctor.model import (
    VERDICT_ORDER,
    Blame,
    CheckResult,
    Evidence,
    Fact,
    NotChecked,
    Outcome,
    Reason,
    Report,
    State,
    Verdict,
)
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.records import replace

# What the import may have done, in words, with what to do about it.
_WAYS = {
    "error": ("Importing torch raises an exception", "Reinstall torch, or fix what the message names."),
    "exit": (
        "Importing torch ends the interpreter",
        "Look at the file that the import ran last: something in it calls sys.exit or os._exit.",
    ),
    "signal": (
        "Importing torch crashes the interpreter",
        "Reinstall torch and what it loads; look for libraries of other versions (torchdoctor facts).",
    ),
}

_GROUP = "environment"
_SHELL = (
    "Sources that were not built: build and install them. The rest of a torch, or a file or folder of your "
    "own with this name: move it away, and install torch (python -m pip install torch)."
)


def with_import(report: Report, facts: FactBook) -> Report:
    """The report with a check on the interpreter and one on the import, where they say something new."""
    results = tuple(replace(result, group=_GROUP) for result in _results(report, facts))
    unsure = tuple(_unsure(facts))
    known = tuple(_with_error(result, facts) for result in report.checks)
    if not results and not unsure and known == report.checks:
        return report
    checks = sorted((*results, *known), key=lambda result: VERDICT_ORDER[result.verdict])
    failed = any(result.verdict is Verdict.FAIL for result in results)
    return replace(
        report,
        outcome=Outcome.DIAGNOSED if failed else report.outcome,
        checks=tuple(checks),
        not_checked=(*unsure, *report.not_checked),
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
    if ok.reason is Reason.TIMED_OUT:
        yield CheckResult(
            "torch-import", Verdict.UNKNOWN, "Importing torch does not finish", observed=ok.detail
        )
    if ok.state is not State.KNOWN or _explained(report):
        return
    shell = _shell(facts)
    if ok.value is True and not _rests_on_any(report, "torch.cuda_error"):
        yield from _cuda(facts)
    if ok.value is not True:
        yield _failed(facts, shell)
    elif (none := facts.machine("torch.imported_version")).detail.startswith("AttributeError"):
        yield CheckResult(
            "torch-import",
            Verdict.FAIL,
            "What is imported as torch is not torch",
            Blame.ENVIRONMENT,
            observed=none.detail,
            expected="a torch",
            evidence=(*shell, Evidence(f"{none.name}: {none.detail}", none.source, fact=none.name)),
            action=_SHELL,
        )
    else:
        seconds = facts.machine("torch.import_seconds")
        yield CheckResult(
            "torch-import",
            Verdict.PASS,
            "torch does not import",
            observed=f"{seconds.value} s" if seconds.state is State.KNOWN else None,
        )


def _failed(facts: FactBook, shell: tuple[Evidence, ...]) -> CheckResult:
    title, action = _WAYS.get(str(facts.machine("torch.import_outcome").value), _WAYS["error"])
    signal = facts.machine("torch.import_signal")
    error = facts.machine("torch.import_error")
    told = [facts.machine(f"torch.import_{part}") for part in ("error", "output")]
    given = _settings(facts)
    said = cause("\n".join(str(fact.value) for fact in told if fact.state is State.KNOWN), given)
    if said is not None and said.variables:
        action = f"Change or unset {', '.join(said.variables)}."
    elif signal.state is State.KNOWN and given:
        action += f" Settings that torch reads while it starts may do it too: leave out {', '.join(given)}."
    return CheckResult(
        "torch-import",
        Verdict.FAIL,
        f"{title}: {signal.value}" if signal.state is State.KNOWN else title,
        Blame.ENVIRONMENT,
        observed=str(error.value) if error.state is State.KNOWN else None,
        expected="import torch works",
        evidence=(*_cause_evidence(said, given), *shell, *_import_evidence(facts)),
        action=_SHELL if shell else action,
    )


def _cuda(facts: FactBook) -> Iterator[CheckResult]:
    """CUDA that did not start because of a setting, in words that a rule knows and no check asks for.

    The question for cuDNN comes first and may start CUDA, which then does not refuse a second time.
    """
    given = _settings(facts)
    for name in ("torch.cuda_error", "torch.cudnn_error"):
        error = facts.machine(name)
        said = cause(str(error.value), given) if error.state is State.KNOWN else None
        if said is not None and said.variables:
            break
    else:
        return
    yield CheckResult(
        "torch-cuda",
        Verdict.FAIL,
        "torch cannot start CUDA",
        Blame.ENVIRONMENT,
        observed=str(error.value),
        expected="torch.cuda starts",
        evidence=(*_cause_evidence(said, given), _evidence(error)),
        action=f"Change or unset {', '.join(said.variables)}.",
    )


def _cause_evidence(said: Cause | None, given: Mapping[str, str]) -> tuple[Evidence, ...]:
    """Of a setting alone: what else the words may mean, the rules decide by facts, which say more."""
    if said is None or not said.variables:
        return ()
    named = tuple(
        Evidence(f"{name}={given[name]}", "environment", fact=f"env.{name}") for name in said.variables
    )
    return (Evidence(f"{said.title} [{said.rule}]"), *named)


def _settings(facts: FactBook) -> dict[str, str]:
    """What of the machine's variables torch and its libraries read while they start."""
    names = (name.removeprefix("env.") for name in CATALOGUE["variables"])
    asked = {name: facts.machine(f"env.{name}") for name in names}
    return settings({name: str(fact.value) for name, fact in asked.items() if fact.state is State.KNOWN})


def _shell(facts: FactBook) -> tuple[Evidence, ...]:
    """Where the thing is that is called torch, when no torch that was built and installed is to be found."""
    path, copies = facts.machine("torch.path"), facts.machine("torch.copies")
    if path.state is not State.KNOWN or copies.value != ():
        return ()
    metadata = facts.machine("torch.metadata_version")
    told = f"the metadata of {metadata.value}" if metadata.state is State.KNOWN else "no package metadata"
    return (
        Evidence(
            f"torch.path: {path.value}, without the version.py that each built torch has, and with {told}",
            path.source or None,
            fact=path.name,
        ),
    )


def _import_evidence(facts: FactBook) -> tuple[Evidence, ...]:
    told = [facts.machine(f"torch.import_{part}") for part in ("error", "where", "stack", "output")]
    return tuple(_evidence(fact) for fact in told if fact.state is State.KNOWN)


def _with_error(result: CheckResult, facts: FactBook) -> CheckResult:
    """What hides the real torch is told with what its import says."""
    if result.verdict is not Verdict.FAIL or not _rests_on(result, "torch.shadowed"):
        return result
    return replace(result, evidence=(*result.evidence, *_import_evidence(facts)))


def _explained(report: Report) -> bool:
    """Does a check that failed already rest on what the import said, or on the want of a real torch?"""
    return any(
        result.verdict is Verdict.FAIL and _rests_on(result, "torch.import_", "torch.shadowed")
        for result in report.checks
    )


def _rests_on_any(report: Report, name: str) -> bool:
    return any(one.verdict is Verdict.FAIL and _rests_on(one, name) for one in report.checks)


def _rests_on(result: CheckResult, *names: str) -> bool:
    return any(item.fact and item.fact.startswith(names) for item in result.evidence)


def _unsure(facts: FactBook) -> Iterator[NotChecked]:
    fact = facts.machine("torch.import_ok")
    if fact.state is not State.UNKNOWN or facts.machine("python.start_error").state is State.KNOWN:
        return
    reason = fact.reason.value if fact.reason else "not-asked"
    told = f"could not tell: {reason}" + (f", {fact.detail}" if fact.detail else "")
    if fact.reason is Reason.TIMED_OUT:
        told += "; a slow disk, a lock or a faulty driver may hold it up: --time-limit SECONDS waits longer"
    yield NotChecked("torch-import", told)


def _evidence(fact: Fact) -> Evidence:
    return Evidence(f"{fact.name}: {fact.value}", fact.source or None, fact=fact.name)
