"""Runs self-checks: each in a child of the examined interpreter, GPUs side by side, checks of one in turn.

Nothing here imports torch or touches a GPU. However it ends, by itself, by Ctrl-C or by SIGTERM, no child and
no file is left behind.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from torchdoctor.probes.machine import Command, Outcome
from torchdoctor.probes.scratch import Scratch
from torchdoctor.probes.spawn import Running
from torchdoctor.selftest import standalone
from torchdoctor.selftest.results import Job

# The program prints its stacks so long before its time limit is reached
_STACKS_BEFORE_S = 2.0
_BREATH_S = 0.1
STOPPED = Outcome(note="stopped: the self-test was interrupted")


class Executor(Protocol):
    """A way to run programs in the examined interpreter; usable from several threads.

    ``fallback`` says why it is not the way that was wanted; empty when it is.
    """

    fallback: str

    def run(self, label: str, argv: Sequence[str], limit_s: float) -> Outcome:
        """Run the program, with a file for its results as its last argument; blocks until it has ended."""
        ...

    def run_batch(self, asked: Sequence[tuple[Sequence[str], float]]) -> tuple[Outcome, ...]:
        """Run as many of the programs, from the first on, as one process can; the outcomes of those."""
        ...

    def stop(self) -> None:
        """End everything that runs; what is asked for afterwards does not begin."""
        ...


class Plain:
    """A new interpreter for each program."""

    def __init__(self, python: str) -> None:
        self.fallback = ""
        self._python = python
        self._lock = threading.Lock()
        self._running: set[Running] = set()
        self._stopped = False

    def run(self, label: str, argv: Sequence[str], limit_s: float) -> Outcome:
        command = Command(label, (self._python, *argv), limit_s, reports=True)
        with self._lock:
            if self._stopped:
                return STOPPED
            running = Running(command)
            self._running.add(running)
        try:
            return running.finish()
        finally:
            with self._lock:
                self._running.discard(running)

    def run_batch(self, asked: Sequence[tuple[Sequence[str], float]]) -> tuple[Outcome, ...]:
        return (self.run("batch", *asked[0]),)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for running in self._running:
                running.interrupt()


class Programs:
    """The composed programs as files, for as long as they are needed; lanes ask for the same one at once."""

    def __init__(self) -> None:
        self._folder = Scratch()
        self._paths: dict[str, str] = {}
        self._lock = threading.Lock()

    def path(self, module: str) -> str:
        """The program's file, which is whole when anybody learns of it."""
        with self._lock:
            if module not in self._paths:
                path = os.path.join(self._folder.name, f"{module}.py")
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(standalone.compose(module))
                self._paths[module] = path
            return self._paths[module]

    def close(self) -> None:
        self._folder.remove()


def arguments(job: Job, path: str, level: str, limit_s: float, fault: str = "") -> tuple[str, ...]:
    """The command line of a check's program, without interpreter and results file."""
    device = "cpu" if job.device == "host" else job.device
    given = (path, "--device", device, "--seed", str(job.seed), "--level", level)
    topic = ("--topic", job.check.topic) if job.check.topic else ()
    stacks = ("--limit", f"{max(limit_s - _STACKS_BEFORE_S, limit_s / 2):g}")
    return (*given, *topic, *stacks, *(("--fault", fault) if fault else ()))


Done = Callable[[Job, Outcome], None]
Begun = Callable[[Job], None]


def run_lanes(
    lanes: Sequence[Sequence[Sequence[Job]]],
    executor: Executor,
    argv: Callable[[Job], tuple[tuple[str, ...], float]],
    begun: Begun,
    done: Done,
    over: Callable[[], bool],
) -> None:
    """Run each lane's jobs in turn, the lanes side by side; ``begun`` and ``done`` come from threads.

    The jobs of a lane stand in groups; those of one share a process for as long as it lives. Once the time is
    ``over`` what runs is ended, and is not done.
    """
    stopped = threading.Event()
    faults: list[BaseException] = []

    def go(lane: Sequence[Sequence[Job]]) -> None:
        try:
            for group in lane:
                rest = list(group)
                while rest and not stopped.is_set():
                    for job in rest:
                        begun(job)
                    outcomes = (
                        executor.run_batch([argv(job) for job in rest])
                        if len(rest) > 1
                        else (executor.run(rest[0].id, *argv(rest[0])),)
                    )
                    if not stopped.is_set():
                        for job, outcome in zip(rest, outcomes, strict=False):
                            done(job, outcome)
                    rest = rest[len(outcomes) :]
        except Exception as error:  # carried to the thread that waits, which raises it
            faults.append(error)

    threads = [threading.Thread(target=go, args=(lane,), daemon=True) for lane in lanes if lane]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and not over():
                thread.join(_BREATH_S)
    finally:
        stopped.set()
        if any(thread.is_alive() for thread in threads):
            executor.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join(10.0)
    if faults:
        raise faults[0]
