"""What a self-check's program wrote, and how it ended, as a result that a report can hold."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchdoctor.model import Blame, CheckResult, Evidence, Fact, NotChecked, Reason, Verdict, counted
from torchdoctor.probes.machine import Json, Outcome
from torchdoctor.probes.probe import signal_name
from torchdoctor.selftest.registry import SelfCheck

# Ends that a sound program does not come to by itself, whatever the machine's load
_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"})
_SHOWN = 6
_NOTES_SHOWN = 4
_FRAMES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement of a check: ``verdict`` is pass, fail, warn, note, skip, unknown or measured."""

    name: str
    verdict: str
    measured: str = ""
    expected: str = ""
    source: str = ""
    value: float | None = None
    limit: float | None = None
    unit: str = ""

    @property
    def words(self) -> str:
        wanted = f", expected {self.expected}" if self.expected else ""
        return f"{self.name}: {self.measured}{wanted}"


@dataclass(frozen=True, slots=True)
class Text:
    """What a failing program printed; ``causes`` are the rules of which one should name it, if any."""

    case: str
    text: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One check on one device. ``repeat`` is the command that does it again, alone."""

    check: SelfCheck
    device: str
    seed: int
    repeat: str = ""

    @property
    def id(self) -> str:
        return f"{self.check.name}@{self.device}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A result with everything beside it that a report has a place for."""

    result: CheckResult
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    cases: tuple[Case, ...] = ()


Explain = Callable[[str], Sequence[tuple[str, str]]]  # a text -> (rule, title) of its diagnoses
Measure = Callable[[Job, Case], Case]  # a speed -> the same, judged

_VERDICTS = frozenset({"pass", "fail", "warn", "note", "skip", "unknown", "measured"})


def cases_of(lines: Sequence[dict[str, Json]]) -> tuple[Case, ...]:
    """The well-formed cases among the lines; what else stands there is no result."""
    found = []
    for line in lines:
        name, verdict = line.get("case"), line.get("verdict")
        if not isinstance(name, str) or not isinstance(verdict, str) or verdict not in _VERDICTS:
            continue
        measured, expected, source, unit = (
            str(line.get(key) or "") for key in ("measured", "expected", "source", "unit")
        )
        value, limit = _number(line.get("value")), _number(line.get("limit"))
        found.append(Case(name, verdict, measured, expected, source, value, limit, unit))
    return tuple(found)


def texts_of(lines: Sequence[dict[str, Json]]) -> tuple[Text, ...]:
    found = []
    for line in lines:
        text, causes = line.get("text"), line.get("causes")
        if isinstance(text, str) and isinstance(causes, list):
            found.append(Text(str(line.get("case")), text, tuple(str(one) for one in causes)))
    return tuple(found)


def _number(value: Json) -> float | None:
    if isinstance(value, str):  # how the program writes what JSON has no spelling for
        return float(value) if value in ("nan", "inf", "-inf") else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def judge(job: Job, outcome: Outcome, explain: Explain, measure: Measure | None = None) -> Judged:
    """The verdict on one check; ``explain`` is asked only where a program's own text is to be understood."""
    cases = list(cases_of(outcome.lines))
    if measure is not None:
        cases = [measure(job, case) if case.verdict == "measured" else case for case in cases]
    named: list[Evidence] = []
    for text in texts_of(outcome.lines):
        found = explain(text.text)
        if text.causes:
            cases.append(_naming(text, found))
        elif found:
            named.append(Evidence(f"{text.case}: {found[0][1]} [{found[0][0]}]"))
    ending = how_it_ended(outcome)
    verdict, reason = _verdict(cases, ending)
    result = CheckResult(
        job.id,
        verdict,
        job.check.fault(reason) if verdict in (Verdict.FAIL, Verdict.WARN) else job.check.title,
        blame=_blame(job, cases, verdict),
        observed=_observed(cases, verdict, reason),
        expected=_expected(cases, verdict),
        threshold_source=_first(case.source for case in _telling(cases, verdict)),
        evidence=(*_evidence(cases, verdict), *named, *_stack(outcome, verdict)),
        action=f"{job.repeat}" if verdict in (Verdict.FAIL, Verdict.WARN) and job.repeat else None,
        reason=reason or None,
    )
    untold = [
        NotChecked(f"{job.id}: {case.name}", case.measured) for case in cases if case.verdict == "unknown"
    ]
    if verdict is Verdict.UNKNOWN and not untold:
        untold = [NotChecked(job.id, reason)]
    facts = (*(fact for case in cases for fact in _facts(job, case)), _seconds(job, outcome))
    return Judged(result, facts, _notes(job, cases), tuple(untold), tuple(cases))


def _naming(text: Text, found: Sequence[tuple[str, str]]) -> Case:
    rule = found[0][0] if found else "nothing"
    verdict = "pass" if rule in text.causes else "warn"
    return Case(f"{text.case}, cause named", verdict, rule, " or ".join(text.causes), "torchdoctor explain")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended that did not come to its end; both empty when it did."""

    verdict: Verdict | None = None
    reason: str = ""


def how_it_ended(outcome: Outcome) -> Ending:
    """FAIL for what a sound device and library never do; UNKNOWN for what can come from outside."""
    if any(line.get("done") is True for line in outcome.lines):
        return Ending()
    stages = [str(line["stage"]) for line in outcome.lines if isinstance(line.get("stage"), str)]
    at = f" in: {stages[-1]}" if stages and stages[-1] != "begin" else ""
    if outcome.start_error:
        return Ending(Verdict.UNKNOWN, f"its program could not be started: {outcome.start_error}")
    if outcome.timed_out:
        last = max((_number(line.get("t")) or 0.0 for line in outcome.lines), default=0.0)
        if not stages:
            return Ending(
                Verdict.UNKNOWN, f"not started in {outcome.seconds:.0f} s: importing torch hangs or is slow"
            )
        if last > outcome.seconds / 2:
            return Ending(Verdict.UNKNOWN, f"slow, not stuck: not finished in {outcome.seconds:.0f} s{at}")
        return Ending(Verdict.FAIL, f"stuck: no further output for {outcome.seconds - last:.0f} s{at}")
    if outcome.note:
        return Ending(Verdict.UNKNOWN, outcome.note)
    if outcome.signal is not None:
        name = signal_name(outcome.signal)
        if name in _CRASHES:
            return Ending(Verdict.FAIL, f"crashed: ended by {name}{at}")
        return Ending(Verdict.UNKNOWN, f"ended from outside by {name}{at}; out of memory shows as SIGKILL")
    last_words = outcome.stderr.strip().splitlines()[-1:] if outcome.exit_code else []
    words = f": {last_words[0][:300]}" if last_words else ""
    return Ending(Verdict.UNKNOWN, f"ended without a result, exit code {outcome.exit_code}{at}{words}")


def _verdict(cases: Sequence[Case], ending: Ending) -> tuple[Verdict, str]:
    told = {case.verdict for case in cases}
    if "fail" in told:
        count = sum(case.verdict == "fail" for case in cases)
        tried = sum(case.verdict in ("fail", "pass", "warn") for case in cases)
        words = f"{count} of {counted(tried, 'case')} failed"
        return Verdict.FAIL, f"{words}; then it {ending.reason}" if ending.reason else words
    if ending.verdict is not None:
        return ending.verdict, ending.reason
    if "warn" in told:
        return Verdict.WARN, "; ".join(case.words for case in cases if case.verdict == "warn")[:300]
    if "unknown" in told:
        return Verdict.UNKNOWN, next(case.measured for case in cases if case.verdict == "unknown")
    if "pass" in told:
        return Verdict.PASS, ""
    if "skip" in told:
        return Verdict.SKIP, next(case.measured for case in cases if case.verdict == "skip")
    return Verdict.UNKNOWN, "its program measured nothing that has an expected value"


def _blame(job: Job, cases: Sequence[Case], verdict: Verdict) -> Blame | None:
    """A wrong result speaks against the device; an exception or a crash may come from the software too."""
    if verdict is not Verdict.FAIL:
        return None
    wrong = any(case.verdict == "fail" and not case.measured.startswith("raised ") for case in cases)
    if job.check.blame is Blame.NODE and not wrong:
        return None
    if job.check.blame is not Blame.ENVIRONMENT and job.device in ("cpu", "mps"):
        return None
    return job.check.blame


def _telling(cases: Sequence[Case], verdict: Verdict) -> Sequence[Case]:
    """The cases that the verdict rests on, the worst first."""
    word = {Verdict.FAIL: "fail", Verdict.WARN: "warn", Verdict.PASS: "pass"}.get(verdict, "unknown")
    return sorted((case for case in cases if case.verdict == word), key=_share, reverse=True)


def _share(case: Case) -> float:
    """The part of its limit that a case used up."""
    if case.value is None or case.limit is None:
        return 0.0
    if case.expected.startswith("at least"):
        return case.limit / case.value if case.value else float("inf")
    if case.value != case.value:
        return float("inf")
    return case.value / case.limit if case.limit else case.value


def _observed(cases: Sequence[Case], verdict: Verdict, reason: str) -> str | None:
    telling = _telling(cases, verdict)
    if verdict is Verdict.PASS:
        rates = [case for case in cases if case.verdict in ("pass", "measured") and case.unit]
        words = counted(len(telling), "case")
        worst = telling[0]
        if rates:
            return f"{words}: " + ", ".join(f"{case.name} {case.measured}" for case in rates[:_SHOWN])
        return f"{words}, nearest to its limit: {worst.words}" if worst.limit else words
    return telling[0].words if telling else reason or None


def _expected(cases: Sequence[Case], verdict: Verdict) -> str | None:
    return _first(case.expected for case in _telling(cases, verdict))


def _first(texts: object) -> str | None:
    assert hasattr(texts, "__iter__")
    return next((text for text in texts if text), None)


def _evidence(cases: Sequence[Case], verdict: Verdict) -> tuple[Evidence, ...]:
    if verdict not in (Verdict.FAIL, Verdict.WARN):
        return ()
    telling = _telling(cases, verdict)
    shown = [
        Evidence(f"{case.words}{f' ({case.source})' if case.source else ''}") for case in telling[:_SHOWN]
    ]
    if len(telling) > len(shown):
        shown.append(Evidence(f"and {len(telling) - len(shown)} more, all in the JSON"))
    return tuple(shown)


def _stack(outcome: Outcome, verdict: Verdict) -> tuple[Evidence, ...]:
    """Where it was when it hung or crashed, innermost first, as faulthandler wrote it."""
    if verdict is Verdict.PASS or not (
        "Fatal Python error" in outcome.stderr or "Timeout (" in outcome.stderr
    ):
        return ()
    found = re.findall(r'^  File "([^"<]+)", line (\d+) in (\S+)', outcome.stderr, re.MULTILINE)
    frames = [f"{os.path.basename(file)}:{line} ({function})" for file, line, function in found]
    return (Evidence("it was at " + ", called from ".join(frames[:_FRAMES_SHOWN])),) if frames else ()


def _notes(job: Job, cases: Sequence[Case]) -> tuple[str, ...]:
    notes = [case for case in cases if case.verdict == "note"]
    if not notes:
        return ()
    if job.check.remark:
        return (f"{job.id}: {job.check.remark}",)
    shown = "; ".join(case.words for case in notes[:_NOTES_SHOWN])
    more = f"; {len(notes) - _NOTES_SHOWN} more in the JSON" if len(notes) > _NOTES_SHOWN else ""
    return (f"{job.id}: {shown}{more}",)


def _facts(job: Job, case: Case) -> tuple[Fact, ...]:
    """The measurement and, as a number too, what it was held against."""
    fact = _fact(job, case)
    if case.limit is None or case.value is None or case.verdict not in ("pass", "warn", "fail"):
        return (fact,)
    word = "at_least" if case.expected.startswith("at least") else "at_most"
    return fact, Fact.known(f"{fact.name}.{word}", case.limit, case.source, case.unit)


def _fact(job: Job, case: Case) -> Fact:
    name = f"selftest.{job.id}.{case.name}"
    if case.verdict == "skip":
        return Fact.absent(name, case.source, case.measured)
    if case.verdict == "unknown":
        return Fact.unknown(name, Reason.UNPARSABLE, case.source, case.measured)
    detail = f"{case.verdict}: {case.measured}" + (f", expected {case.expected}" if case.expected else "")
    return Fact.known(name, case.measured if case.value is None else case.value, case.source, detail)


def _seconds(job: Job, outcome: Outcome) -> Fact:
    return Fact.known(f"selftest.{job.id}.seconds", outcome.seconds, f"seed {job.seed}")
