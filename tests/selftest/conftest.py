"""One forking process for all tests here, and a way to run one check's program and judge it.

It is made for this package and ended with it: the gate, in whose tests it would be a stranger, ends all
children of its process.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from torchdoctor.selftest import runner
from torchdoctor.selftest.forking import Forking
from torchdoctor.selftest.registry import find
from torchdoctor.selftest.results import Job, Judged, judge
from torchdoctor.selftest.session import explain

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
Try = Callable[..., Judged]


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that spin for each other on a busy machine would cost more than they compute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="package")
def executor(one_thread: None) -> Iterator[Forking]:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here")
    forking = Forking(sys.executable, 60.0)
    assert forking.fallback == ""
    yield forking
    forking.stop()


@pytest.fixture
def imported(executor: Forking, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command takes the forking process that is there, and imports no torch of its own."""

    class Lent:
        fallback = ""
        run = staticmethod(executor.run)
        run_batch = staticmethod(executor.run_batch)

        def stop(self) -> None:
            """Others still need it."""

    monkeypatch.setattr("torchdoctor.selftest.session._executor", lambda request: Lent())


@pytest.fixture(scope="package")
def programs() -> Iterator[runner.Programs]:
    made = runner.Programs()
    yield made
    made.close()


@pytest.fixture(scope="package")
def attempt(executor: Forking, programs: runner.Programs) -> Try:
    """Run a check on the CPU, spoilt or not, and judge it; the same is run once."""

    def run(name: str, fault: str = "", limit_s: float = 0.0, way: runner.Executor | None = None) -> Judged:
        check = find(name)
        job = Job(check, "cpu", 2147483647, "repeat")
        limit_s = limit_s or check.limit_s
        words = runner.arguments(job, programs.path(check.file), "standard", limit_s, fault)
        return judge(job, (way or executor).run(job.id, words, limit_s), explain)

    once = cache(run)
    return lambda name, fault="", **how: run(name, fault, **how) if how else once(name, fault)
