"""What a watched run shows, as results of checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torchdoctor.model import (
    VERDICT_ORDER,
    Blame,
    CheckResult,
    Evidence,
    NotChecked,
    Outcome,
    Report,
    Verdict,
    counted,
)
from torchdoctor.watch.meaning import Meaning, meaning_of, subject
from torchdoctor.watch.target import Change, Place, Run

_STACK_SHOWN = 8
# rules that say: what the target asks for is not on this machine
_NO_GPU = ("torch-cpu-only", "no-cuda-gpus", "driver-not-found", "hip-no-device", "invalid-device-ordinal")
_TORCH_MISSING = "torch-missing"
TARGET_CHECK = "target-import"
GLOBALS_CHECK = "process-globals"


def report_of(runs: Sequence[Run]) -> Report:
    """Changed settings that stayed changed, and whether each target came to its end."""
    return merged(Report(Outcome.NO_FAILURE), runs)


def merged(report: Report, runs: Sequence[Run]) -> Report:
    """The report with the results of these runs."""
    results: list[CheckResult] = []
    unsure: list[NotChecked] = []
    notes: list[str] = []
    no_torch = any(one.id == _TORCH_MISSING and one.verdict is Verdict.FAIL for one in report.checks)
    for run in runs:
        found, remarks = findings(run.changes, own=run.target.kind not in ("module", "script"))
        results += found
        notes += remarks
        if not found and run.ended != "start" and not no_torch:
            results.append(
                CheckResult(
                    GLOBALS_CHECK,
                    Verdict.PASS,
                    "A process-wide setting is changed",
                    observed=f"{run.target.words}: nothing above a note",
                )
            )
        ending = _ending(run, no_torch)
        if isinstance(ending, CheckResult):
            results.append(ending)
        elif ending is not None:
            unsure.append(ending)
        if not run.traced and not run.faults:
            notes.append(
                f"{run.target.words}: sets a trace function of its own; later statements cannot be determined"
            )
        if run.ended in ("ok", "exit") and run.torch is None:
            notes.append(f"{run.target.words}: does not import torch")
        if run.forked:
            notes.append(
                f"{run.target.words}: forks at {run.forked[-1].words}; the child's settings are its own"
            )
    checks = sorted((*results, *report.checks), key=lambda result: VERDICT_ORDER[result.verdict])
    failed = any(result.verdict in (Verdict.FAIL, Verdict.WARN) for result in results)
    return replace(
        report,
        outcome=Outcome.DIAGNOSED if failed else report.outcome,
        checks=tuple(checks),
        not_checked=(*report.not_checked, *unsure),
        notes=(*report.notes, *notes),
        faults=(*report.faults, *(f"{run.target.words}: {fault}" for run in runs for fault in run.faults)),
    )


def lasting(changes: Iterable[Change]) -> tuple[tuple[Change, ...], ...]:
    """For each setting that did not come back to what it was: its changes, the one that stayed last."""
    by_setting: dict[str, list[Change]] = {}
    for change in changes:
        by_setting.setdefault(change.setting, []).append(change)
    # hooks are told apart by what they are, so their list is compared by its first and last state as well
    return tuple(tuple(all_) for all_ in by_setting.values() if all_[0].before != all_[-1].after)


def findings(changes: Iterable[Change], own: bool) -> tuple[list[CheckResult], list[str]]:
    """Results and notes. With ``own`` the outermost file is the program, whose settings are its choice."""
    results: list[CheckResult] = []
    notes: list[str] = []
    for meaning, group in _grouped(lasting(changes)):
        last = [history[-1] for history in group]
        place = last[0].stack[-1] if last[0].stack else None
        mine = own and place is not None and place.file == last[0].stack[0].file
        verdict = meaning.own if mine else meaning.imported
        if verdict is not None and all(_harmless(change) for change in last):
            verdict = None
        observed = "; ".join(_observed(change) for change in last)
        if place is not None:
            observed += f" at {_short(place)}"
        if verdict is None:
            notes.append(f"{meaning.title} ({meaning.id}): {observed}" + _quoted(place))
            continue
        results.append(
            CheckResult(
                meaning.id,
                verdict,
                meaning.title,
                Blame.USER,
                observed=observed,
                evidence=tuple(_evidence(group)),
                action=meaning.do,
                reason=meaning.why,
            )
        )
    return results, notes


def _quoted(place: Place | None) -> str:
    if place is None:
        return ""
    return f": {place.code}" if place.line is not None else " (the line could not be determined)"


def _grouped(
    histories: Sequence[tuple[Change, ...]],
) -> Iterator[tuple[Meaning, tuple[tuple[Change, ...], ...]]]:
    """Changes of one meaning by one statement belong together: seeds of three generators, TF32 two ways."""
    groups: dict[tuple[str, object], list[tuple[Change, ...]]] = {}
    for history in histories:
        meaning = meaning_of(history[-1].setting)
        title = "" if meaning.id in ("seed-set", "autocast-enabled", "torch-patched") else meaning.title
        groups.setdefault((meaning.id + title, history[-1].stack), []).append(history)
    ids = {(group[-1][-1].stack, meaning_of(group[-1][-1].setting).id) for group in groups.values()}
    for group in groups.values():
        meaning = meaning_of(group[0][-1].setting)
        stack = group[0][-1].stack
        if meaning.id == "tf32-changed" and (stack, "matmul-precision-changed") in ids:
            continue
        if meaning.id == "environment-changed" and (stack, "cuda-visible-set-late") in ids:
            continue
        yield meaning, tuple(group)


def _harmless(change: Change) -> bool:
    """Is this value of the setting no matter of concern, whoever sets it?"""
    if change.setting == "start-method":
        # what every use of multiprocessing fixes, and what a program would choose for CUDA
        return change.before is None and change.after in ("fork", "forkserver")
    if change.setting == "visible-devices-late":
        # torch counts devices through NVML since 2.0, which reads the variable anew each time
        return change.asked == "device_count"
    if change.setting.startswith("patch."):
        return change.before is None  # a method with a name of its own is in nobody's way
    if change.setting.startswith(("signal.", "module-hooks.")):
        return (change.after or "").startswith("torch.")  # the one of DataLoader, for its workers
    return change.setting in ("grad-mode", "cudnn-enabled") and change.after == "True"


def _observed(change: Change) -> str:
    return f"{subject(change.setting)}: {_value(change.before)} -> {_value(change.after)}"


def _value(value: str | None) -> str:
    return "not set" if value is None else value


def _short(place: Place) -> str:
    """Below the working folder the path as one would type it."""
    try:
        relative = os.path.relpath(place.file)
    except ValueError:  # another drive
        return place.words
    return place.words if relative.startswith(os.pardir) else place.words.replace(place.file, relative, 1)


def _evidence(group: Sequence[tuple[Change, ...]]) -> Iterator[Evidence]:
    last = group[0][-1]
    for history in group:
        for change in history if len(history) > 1 else history[-1:]:
            earlier = "" if change is history[-1] else "earlier, "
            where = f" at {_short(change.stack[-1])}" if earlier and change.stack else ""
            yield Evidence(f"{earlier}{_observed(change)}{where}")
    if last.early:
        yield Evidence("before the program's first line: by sitecustomize, a .pth file or the environment")
    elif not last.stack:
        yield Evidence(
            "the statement could not be determined: no line of the program was running, or none we can see"
        )
    else:
        yield _frame(
            "set" if last.stack[-1].line is not None else "set (the line could not be determined)",
            last.stack[-1],
        )
        for place in last.unsure:
            yield Evidence(
                "or this line, which ran too often to be looked at each time", place.file, place.line
            )
        if last.threads > 1:
            yield Evidence(
                f"{last.threads} threads were running: one that began earlier may have done it instead"
            )
    outer = last.stack[:-1][::-1]
    for place in outer[:_STACK_SHOWN]:
        yield _frame("called from", place)
    if len(outer) > _STACK_SHOWN:
        yield Evidence(f"and {counted(len(outer) - _STACK_SHOWN, 'more frame')} above")
    if last.asked_at:
        yield _frame(f"torch.cuda.{last.asked}() was called before", last.asked_at[-1])
    rule = meaning_of(last.setting).rule
    if rule:
        yield Evidence(f"what it leads to, in the catalog: {rule}")


def _frame(role: str, place: Place) -> Evidence:
    word = "" if role == "called from" else "in "
    inside = f" {word}{place.function}" if place.function not in ("<module>", "") else ""
    return Evidence(f"{role}{inside}" + (f": {place.code}" if place.code else ""), place.file, place.line)


def _ending(run: Run, no_torch: bool) -> CheckResult | NotChecked | None:
    """How the target ended, but for want of a torch that is told already."""
    name = run.target.words
    if run.ended == "ok":
        return CheckResult(
            TARGET_CHECK, Verdict.PASS, "The target does not import", observed=f"{name}: {run.seconds} s"
        )
    upto = "; what it had changed until then is reported" if run.changes else ""
    at = f" at {_short(run.place)}" if run.place else ""
    if run.ended in ("exit", "os._exit") and run.target.kind != "module" and not run.code:
        return CheckResult(
            TARGET_CHECK, Verdict.PASS, "The target does not import", observed=f"{name}: ends itself{at}"
        )
    if run.ended == "exit" and run.target.kind != "module":
        hint = (
            ""
            if run.target.kind.startswith("main")
            else f" Give it its arguments: -- python {run.target.name} …"
        )
        return NotChecked(
            TARGET_CHECK, f"{name} ends itself with code {run.code}{at}{_said(run)}{upto}.{hint}"
        )
    if run.reads_stdin:
        return NotChecked(TARGET_CHECK, f"{name} reads from standard input{at}, where nobody answers{upto}")
    if run.ended == "error":
        rule, title = _named(run.traceback)
        if rule in _NO_GPU:
            return NotChecked(
                TARGET_CHECK, f"{name} needs a GPU that is not here ({rule}): {_message(run)}{at}{upto}"
            )
        if no_torch and rule == _TORCH_MISSING:
            return None
        case = title and f"{title} ({rule})"
        return _failed(run, f"{name} raises {run.type}", _message(run) + at, case, upto)
    if run.ended == "hang":
        return _hang(run, upto)
    if run.ended == "exec":
        return NotChecked(
            TARGET_CHECK,
            f"{name} continues as another program ({run.message}){at}, which is not watched{upto}",
        )
    words = {
        "signal": f"{name} crashes: {run.message}",
        "exit": f"Importing {name} ends the interpreter (code {run.code})",
        "os._exit": f"{name} ends the process without any message (code {run.code})",
        "flood": f"{name} was {run.message}",
        "start": f"{name} could not be run: the interpreter "
        + ("is older than 3.6, the oldest that can be watched" if _too_old(run) else "does not start"),
    }[run.ended]
    return _failed(run, words, (run.message or run.output) + at, "", upto)


def _too_old(run: Run) -> bool:
    """Could it not read our own program?"""
    return "SyntaxError" in run.message and "run_target.py" in run.message


def _said(run: Run) -> str:
    """The last line that it wrote to stderr."""
    return "".join(f": {line}" for line in run.output.splitlines()[-1:])


def _hang(run: Run, upto: str) -> CheckResult | NotChecked:
    at = f", last seen at {_short(run.place)}" if run.place else ""
    if run.target.kind != "module":
        hint = "" if run.target.kind.startswith("main") else "; put what it does behind a main guard"
        return NotChecked(TARGET_CHECK, f"{run.target.words}: {run.message}{at}{upto}{hint}")
    return _failed(run, f"Importing {run.target.words} does not finish", run.message + at, "", upto)


def _failed(run: Run, title: str, message: str, meaning: str, upto: str) -> CheckResult:
    evidence = [Evidence(line) for line in message.splitlines()[:12] if line.strip()]
    verb = "imported" if run.target.kind == "module" else "run"
    if meaning:
        evidence.append(Evidence(f"this is a case of: {meaning}"))
    places = [place for place in run.stack if "importlib" not in place.file]
    evidence += [_frame("at", place) for place in places[::-1][:_STACK_SHOWN]]
    return CheckResult(
        TARGET_CHECK,
        Verdict.FAIL,
        title,
        Blame.USER,
        observed=message[:500] or None,
        expected=f"it can be {verb}",
        evidence=tuple(evidence),
        action=f"See to it that it can be {verb}{upto}."
        if run.ended != "start"
        else "Name the interpreter: --python.",
    )


def _message(run: Run) -> str:
    return f"{run.type}: {run.message}" if run.message else run.type


def _named(traceback: str) -> tuple[str, str]:
    """What the catalog calls the failure; two empty texts when it knows none."""
    if not traceback:
        return "", ""
    from torchdoctor import catalog
    from torchdoctor.engine import FactBook, diagnose
    from torchdoctor.intake import read_text

    found = diagnose(read_text(traceback, "<target>"), FactBook(None), catalog.load()).diagnoses
    return (found[0].rule, found[0].title) if found else ("", "")
