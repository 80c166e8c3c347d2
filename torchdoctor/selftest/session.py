"""A whole self-test: survey, plan, run, judge; a report comes out."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from torchdoctor.model import CheckResult, Fact, FactSource, NotChecked, Outcome, Report, Verdict, counted
from torchdoctor.probes.descendants import ended_with_us
from torchdoctor.probes.interrupts import ended_by_signals
from torchdoctor.probes.machine import Outcome as Ended
from torchdoctor.selftest import baseline, death, runner, standalone, survey
from torchdoctor.selftest.neighbours import Neighbours
from torchdoctor.selftest.registry import Level, Place, SelfCheck, upto
from torchdoctor.selftest.results import Job, Judged, judge
from torchdoctor.selftest.siblings import Siblings

_ORDER = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.PASS: 3, Verdict.SKIP: 4}


@dataclass(frozen=True, slots=True)
class Request:
    """What to test. ``only`` empty means all of the level; ``limit_scale`` stretches every time limit, and
    ``time_limit_s`` is that of the whole.

    ``fault`` spoils every program on purpose, or with @DEVICE those of one device, to test the tests.
    ``share`` lets the checks that allow it share a process; one that crashes takes no other along.
    ``baseline`` is a file: where it is there the run is compared with it, else written into it.
    """

    python: str
    device: str | None = None
    only: tuple[SelfCheck, ...] = ()
    level: Level = Level.STANDARD
    seed: int = 0
    limit_scale: float = 1.0
    time_limit_s: float | None = None
    fault: str = ""
    fork: bool = True
    share: bool | None = None
    baseline: str = ""

    @property
    def shares(self) -> bool:
        """May checks share a process? Where nothing is said, at all levels but the longest."""
        return self.level is not Level.DEEP if self.share is None else self.share


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is, for a line on a terminal."""

    done: int
    total: int
    running: tuple[str, ...]
    seconds: float


Tell = Callable[[Progress], None]
Warn = Callable[[str], None]


def run(request: Request, tell: Tell | None = None, warn: Warn | None = None) -> Report:
    """Do it. Blocks; starts children of the interpreter. Raises DeviceError; KeyboardInterrupt if stopped."""
    with ended_by_signals(), ended_with_us():
        programs = runner.Programs()
        try:
            executor = _executor(request)
            try:
                return _Session(request, programs, executor, tell, warn).report()
            finally:
                executor.stop()
        finally:
            programs.close()


def _executor(request: Request) -> runner.Executor:
    if not request.fork:
        return runner.Plain(request.python)
    from torchdoctor.selftest.forking import Forking

    return Forking(request.python, survey.SURVEY_S / 2 * request.limit_scale)


class _Session:
    def __init__(
        self,
        request: Request,
        programs: runner.Programs,
        executor: runner.Executor,
        tell: Tell | None,
        warn: Warn | None,
    ) -> None:
        self._request = request
        self._programs = programs
        self._executor = executor
        self._tell = tell
        self._warn = warn
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._running: dict[str, None] = {}
        self._total = 0
        self._ended: list[tuple[Job, Ended]] = []

    def report(self) -> Report:
        request = self._request
        before = baseline.load(request.baseline) if request.baseline else None
        self._total = 1
        self._show("survey")
        found = self._survey()
        if found.fault and (missing := _torch_missing(request.python)) is not None:
            return missing
        chosen, refused = survey.devices(request.device, found)
        facts = [
            Fact.known("selftest.seed", request.seed, "--seed"),
            Fact.known("selftest.level", request.level.value, "--level"),
            Fact.known("selftest.torch", found.torch, request.python)
            if found.torch
            else Fact.absent("selftest.torch", request.python, found.fault),
            Fact.known("selftest.devices", chosen, "--device"),
            Fact.known("selftest.gpus", found.gpus, "torch.cuda.get_device_name"),
        ]
        notes = [f"Seed {request.seed}; a check alone, as a program: torchdoctor selftest --show NAME"]
        if self._executor.fallback and not found.fault:
            notes.append(f"Every check has an interpreter of its own: {self._executor.fallback}")
        jobs = self._plan(chosen)
        if found.fault or refused:
            reason = found.fault or refused
            if found.fault or found.unanswered:
                notes.append("`torchdoctor check` says why; --python PATH names another interpreter")
            judged = [_not_run(job, reason) for job in jobs]
            died = death.judge(found)
            if died is not None:
                judged.append(died)
            return self._finished(judged, facts, notes)
        if request.device is None and chosen == ("cpu",):
            notes.append(f"The CPU was tested: {found.no_gpu}")
        notes += self._left_out(jobs)
        warned = [job.check.warning for job in jobs if job.check.warning and job.device != "cpu"]
        for words in dict.fromkeys(warned):
            notes.append(words)
            if self._warn is not None:
                self._warn(words)
        self._run(jobs)
        order = {job.id: number for number, job in enumerate(jobs)}
        self._ended.sort(key=lambda item: order[item[0].id])
        measure = Neighbours(found, _machine).judge(Siblings(found, self._ended).judge)
        drift = baseline.Drift(before, found, request.seed, measure) if before is not None else None
        measure = drift.judge if drift is not None else measure
        judged = [judge(job, ended, explain, measure) for job, ended in self._ended]
        late = f"not finished when the time limit of {request.time_limit_s or 0:g} s was over"
        finished = {job.id for job, _ in self._ended}
        judged += [_not_run(job, late) for job in jobs if job.id not in finished]
        try:
            notes += self._kept(found, judged, drift)
        except baseline.BaselineError as error:
            return self._finished(judged, facts, notes, (str(error),))
        return self._finished(judged, facts, notes)

    def _kept(
        self, found: survey.Survey, judged: Sequence[Judged], drift: baseline.Drift | None
    ) -> list[str]:
        """Say what was compared with the baseline; without one, this run is it, if it is sound."""
        path = self._request.baseline
        if not path:
            return []
        if drift is not None:
            compared = counted(drift.compared, "measurement was", "measurements were")
            return [*drift.notes, f"{compared} compared with the baseline {path}"]
        bad = [one.result.id for one in judged if one.result.verdict in (Verdict.FAIL, Verdict.WARN)]
        if bad:
            return [f"No baseline was written: {', '.join(bad)} did not pass"]
        baseline.save(path, baseline.gather(found, self._request.seed, self._ended))
        return [f"The baseline was written to {path}: later runs are compared with it"]

    def _survey(self) -> survey.Survey:
        limit_s = survey.SURVEY_S * self._request.limit_scale
        limit_s = min(limit_s, self._request.time_limit_s or limit_s)
        return survey.read(self._executor.run("survey", (f"{standalone.FOLDER}/survey.py",), limit_s))

    def _plan(self, devices: Sequence[str]) -> list[Job]:
        """Every check on every device it is about: the checks of one device follow each other."""
        request = self._request
        checks = request.only or upto(request.level)
        jobs = []
        for device in devices:
            kinds = {Place.DEVICE} if device in ("cpu", "mps") else {Place.DEVICE, Place.GPU}
            jobs += [self._job(check, device) for check in checks if check.place in kinds]
        named = bool(request.only)
        if named or (devices[0].startswith("cuda") and request.device in (None, "cuda")):
            jobs += [self._job(check, "cuda") for check in checks if check.place is Place.GPUS]
        if named or request.device in (None, "cpu"):
            jobs += [self._job(check, "host") for check in checks if check.place is Place.HOST]
        if named:  # one that was asked for is not left out in silence: its program says why it cannot
            planned = {job.check.name for job in jobs}
            jobs += [self._job(check, devices[0]) for check in checks if check.name not in planned]
        return jobs

    def _left_out(self, jobs: Sequence[Job]) -> list[str]:
        """What the level has and these devices cannot: said, so that nobody takes it for tested."""
        planned = {job.check.name for job in jobs}
        left = [check.name for check in upto(self._request.level) if check.name not in planned]
        if not left or self._request.only:
            return []
        return [f"Not run on {jobs[0].device if jobs else 'this device'}: {', '.join(left)}"]

    def _job(self, check: SelfCheck, device: str) -> Job:
        request = self._request
        file = f"{check.file}.py"
        topic = f" --topic {check.topic}" if check.topic else ""
        there = "cpu" if device == "host" else device
        repeat = (
            f"torchdoctor selftest --show {check.name} > {file}; {shlex.quote(request.python)} {file} "
            f"--device {there} --seed {request.seed} --level {request.level.value}{topic}"
        )
        return Job(check, device, request.seed, repeat)

    def _run(self, jobs: Sequence[Job]) -> None:
        """First what computes, beside what is about the host; then speeds, then what is about all GPUs.

        Nothing else runs while speeds are measured but the same on the other GPUs.
        """
        self._total = len(jobs)
        computing = [job for job in jobs if not job.check.measures and job.device != "cuda"]
        measuring = [job for job in jobs if job.check.measures and job.device != "cuda"]
        together = [job for job in jobs if job.device == "cuda"]
        for stage in (computing, measuring, together):
            lanes: dict[str, list[Job]] = {}
            for job in stage:
                lanes.setdefault(job.device, []).append(job)
            groups = [self._groups(lane) for lane in lanes.values()]
            runner.run_lanes(groups, self._executor, self._argv, self._job_begun, self._job_done, self._over)
            if self._over():
                break

    def _over(self) -> bool:
        limit_s = self._request.time_limit_s
        return limit_s is not None and time.monotonic() - self._begun >= limit_s

    def _groups(self, lane: Sequence[Job]) -> list[list[Job]]:
        """Those that may share a process first, then the others, alone."""
        share = [job for job in lane if job.check.shares] if self._request.shares else []
        return [*([share] if share else []), *([job] for job in lane if job not in share)]

    def _argv(self, job: Job) -> tuple[tuple[str, ...], float]:
        limit_s = job.check.limit_s * self._request.limit_scale
        path = self._programs.path(job.check.file)
        fault, _, device = self._request.fault.partition("@")
        if device not in ("", job.device):
            fault = ""
        return runner.arguments(job, path, self._request.level.value, limit_s, fault), limit_s

    def _job_begun(self, job: Job) -> None:
        self._show(job.id)

    def _job_done(self, job: Job, ended: Ended) -> None:
        with self._lock:
            self._ended.append((job, ended))
            self._running.pop(job.id, None)
        self._show()

    def _show(self, name: str = "") -> None:
        if self._tell is None:
            return
        with self._lock:
            if name:
                self._running[name] = None
            if len(self._running) > 1:
                self._running.pop("survey", None)
            seconds = time.monotonic() - self._begun
            self._tell(Progress(len(self._ended), self._total, tuple(self._running), seconds))

    def _finished(
        self, judged: Sequence[Judged], facts: list[Fact], notes: list[str], faults: tuple[str, ...] = ()
    ) -> Report:
        results = sorted((one.result for one in judged), key=lambda result: _ORDER[result.verdict])
        bad = any(one.verdict in (Verdict.FAIL, Verdict.WARN) for one in results)
        return Report(
            outcome=Outcome.DIAGNOSED if bad else Outcome.NO_FAILURE,
            checks=tuple(results),
            not_checked=tuple(item for one in judged for item in one.not_checked),
            notes=(*(note for one in judged for note in one.notes), *notes),
            facts=(*facts, *(fact for one in judged for fact in one.facts)),
            faults=faults,
        )


@contextmanager
def _machine() -> Iterator[FactSource]:
    from torchdoctor.probes import ProbeSource  # with psutil, which a job's interpreter need not have

    source = ProbeSource()
    try:
        yield source
    finally:
        source.close()


def _not_run(job: Job, reason: str) -> Judged:
    result = CheckResult(job.id, Verdict.UNKNOWN, job.check.title, reason=reason)
    return Judged(result, not_checked=(NotChecked(job.id, reason),))


def _torch_missing(python: str) -> Report | None:
    from torchdoctor.engine.check import torch_missing  # with all of the engine

    return torch_missing(python)


def explain(text: str) -> tuple[tuple[str, str], ...]:
    """The causes that ``torchdoctor explain`` names for a text, the first being the answer."""
    from torchdoctor import catalog
    from torchdoctor.engine import FactBook, diagnose
    from torchdoctor.intake import read_text

    report = diagnose(read_text(text), FactBook(None), catalog.load())
    return tuple((item.rule, item.title) for item in report.diagnoses)


__all__ = ["Progress", "Request", "run"]
