"""What was seen of a model, as results of checks and, where DDP raises, as diagnoses of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor.ddp.observation import Failure, Observation
from torchdoctor.ddp.predict import Kind, Raised, Setting, predict
from torchdoctor.ddp.seen import never_graded, remarks, warnings
from torchdoctor.ddp.wording import ACTIONS, FIND_UNUSED, TITLES, USE_OR_FREEZE, at, names, verdict_of
from torchdoctor.model import (
    Blame,
    CheckResult,
    Diagnosis,
    Evidence,
    Fix,
    Frame,
    NotChecked,
    Outcome,
    Report,
    Standing,
    Verdict,
    counted,
)

_ORDER = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.PASS: 3, Verdict.SKIP: 4}
# rules that say: what the factory asks for is not on this machine
NO_GPU = ("torch-cpu-only", "no-cuda-gpus", "driver-not-found", "hip-no-device", "invalid-device-ordinal")
MODEL_CHECK = "ddp-model-raises"
_PASSED = "DistributedDataParallel raises on this model"


def report_of(seen: Observation) -> Report:
    """Everything that DDP would raise, and what it would get wrong without a word."""
    predicted = predict(seen)
    results = [
        *_raising(predicted, frozenset(item.name for item in never_graded(seen))),
        *warnings(seen, predicted),
    ]
    unsure: list[NotChecked] = []
    for number, batch in enumerate(seen.batches, 1):
        if batch.error is not None:
            failed = failed_result(MODEL_CHECK, f"batch {number}", batch.error)
            (unsure if isinstance(failed, NotChecked) else results).append(failed)  # type: ignore[arg-type]
    found = [one for one in predicted.values() if one is not None]
    if not found and not any(one.verdict is Verdict.FAIL for one in results) and seen.batches:
        trainable = sum(item.reduced for item in seen.parameters)
        results.append(
            CheckResult("ddp", Verdict.PASS, _PASSED,
                        observed=f"{counted(trainable, 'parameter')}, "
                        f"{counted(len(seen.batches), 'batch', 'batches')}: under no setting")
        )  # fmt: skip
    results.sort(key=lambda one: _ORDER[one.verdict])
    bad = any(one.verdict in (Verdict.FAIL, Verdict.WARN) for one in results)
    return Report(
        Outcome.DIAGNOSED if bad else Outcome.NO_FAILURE,
        diagnoses=tuple(_diagnoses(results)),
        checks=tuple(results),
        not_checked=tuple(unsure),
        notes=tuple(remarks(seen)),
    )


def merged(report: Report, other: Report) -> Report:
    """The first report with what the second found."""
    checks = sorted((*other.checks, *report.checks), key=lambda one: _ORDER[one.verdict])
    return replace(
        report,
        outcome=Outcome.DIAGNOSED if other.outcome is Outcome.DIAGNOSED else report.outcome,
        diagnoses=(*report.diagnoses, *other.diagnoses),
        checks=tuple(checks),
        not_checked=(*other.not_checked, *report.not_checked),
        notes=(*report.notes, *other.notes),
    )


def _raising(predicted: dict[Setting, Raised | None], never: frozenset[str]) -> Iterator[CheckResult]:
    """One result for each kind of failure, with what each setting does.

    ``never`` names the parameters that got no gradient in any batch.
    """
    kinds = dict.fromkeys(one.kind for one in predicted.values() if one is not None)
    plain = predicted[Setting.PLAIN]
    for kind in kinds:
        raised = [one for one in predicted.values() if one is not None and one.kind is kind]
        named = tuple(dict.fromkeys(name for one in raised for name in one.parameters))
        evidence = [Evidence(f"parameter {name}") for name in named[:200]]
        if len(named) > 200:
            evidence.append(Evidence(f"and {counted(len(named) - 200, 'more parameter')}"))
        if len(named) > 6:
            evidence = [Evidence(f"parameters: {names(named, 200)}")]
        evidence += [Evidence(verdict_of(setting, one)) for setting, one in predicted.items()]
        yield CheckResult(
            kind.value,
            Verdict.FAIL if plain is not None and plain.kind is kind else Verdict.WARN,
            TITLES[kind],
            Blame.USER,
            observed=(f"{names(named)}: " if named else "")
            + "; ".join(f"raises with {one.setting.value}" for one in raised),
            expected="one gradient for each trainable parameter in each iteration"
            if kind in (Kind.UNUSED, Kind.TWICE)
            else None,
            threshold_source="torch/csrc/distributed/c10d/reducer.cpp, torch/nn/parallel/distributed.py",
            evidence=tuple(evidence),
            action=_action(kind, named, never),
        )


def _action(kind: Kind, named: tuple[str, ...], never: frozenset[str]) -> str:
    """Where all batches or only some leave the parameters out, the advice for that case."""
    if kind is not Kind.UNUSED or not never:
        return ACTIONS[kind]
    if never.issuperset(named):
        return f"{USE_OR_FREEZE} No batch gave them a gradient."
    some = [name for name in named if name not in never]
    return f"{USE_OR_FREEZE} {names(some)} got one in some batches: there {FIND_UNUSED}."


def failed_result(check: str, subject: str, error: Failure) -> CheckResult | NotChecked:
    """The user's own code raised: with the catalog's name for it where it has one."""
    rule, title = named(error.traceback)
    words = f"{error.type}: {error.message}" if error.message else error.type
    if rule in NO_GPU:
        return NotChecked(check, f"{subject} needs a GPU that is not here ({rule}): {words}")
    where = {
        "import": "its module raises when it is imported",
        "factory": "the factory raises",
        "forward": "forward raises",
        "loss": "the loss function raises",
        "loss-type": "the loss is no tensor",
        "loss-grad": "the loss has no gradient",
        "backward": "backward raises",
        "torch": "torch cannot be imported",
    }.get(error.stage, "the examination of the model raises")
    evidence = [Evidence(line) for line in words.splitlines()[:12] if line.strip()]
    if title:
        evidence.append(Evidence(f"this is a case of: {title} ({rule})"))
    evidence += [
        Evidence(f"at {at(place)} in {place.function}: {place.code or '?'}", place.file, place.line)
        for place in error.stack[::-1][:8]
    ]
    return CheckResult(
        check,
        Verdict.FAIL,
        f"{subject}: {where}",
        Blame.USER,
        observed=words[:500],
        evidence=tuple(evidence),
        expected="a forward and a backward that run on one process",
        action="Fix this first: it fails without DDP too.",
    )  # fmt: skip


def named(traceback: str) -> tuple[str, str]:
    """What the catalog calls the failure; two empty texts when it knows none."""
    if not traceback:
        return "", ""
    from torchdoctor import catalog
    from torchdoctor.engine import FactBook, diagnose
    from torchdoctor.intake import read_text

    found = diagnose(read_text(traceback, "<model>"), FactBook(None), catalog.load()).diagnoses
    return (found[0].rule, found[0].title) if found else ("", "")


def _diagnoses(results: list[CheckResult]) -> Iterator[Diagnosis]:
    """For each result above a note whose id is a rule's: that rule, with what was seen as its evidence."""
    from torchdoctor import catalog

    if not any(one.verdict in (Verdict.FAIL, Verdict.WARN) for one in results):
        return
    rules = catalog.load()
    known = set(rules.ids())
    for one in results:
        if one.verdict not in (Verdict.FAIL, Verdict.WARN) or one.id not in known:
            continue
        rule = rules.rule(one.id)
        text = rules.text(one.id)
        place = next((item for item in one.evidence if item.file), None)
        yield Diagnosis(
            rule.id, rule.family, rule.title, rule.severity, rule.role, Standing.CONFIRMED, why=text.why,
            frame=Frame(place.file, place.line, "", place.text) if place is not None and place.file else None,
            evidence=one.evidence, fixes=(Fix(one.action),) if one.action else (),
            decide_with=text.decide_with, references=text.references,
            reasons=("seen in a forward and backward of the model on one process",),
        )  # fmt: skip
