"""Many inputs worked on by several processes: each takes its share of them, and the answers come in order."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NoReturn, TypeVar

_Answer = TypeVar("_Answer")
_SIZE = 8  # bytes of the length before each answer
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux
_AHEAD = 1 << 20  # so many bytes of answers may wait for those before them


class WorkerError(Exception):
    """A fault of ours in a process that worked on an input."""


def in_order(
    inputs: Sequence[str],
    work: Callable[[str], _Answer],
    jobs: int,
    lost: Callable[[str, str], _Answer],
) -> Iterator[_Answer]:
    """What ``work`` makes of each input, by ``jobs`` forked processes. Memory does not grow with the inputs.

    ``lost`` answers for an input whose process was killed, for the reason given; another goes on behind it.
    Raises WorkerError. Answers must be picklable.
    """
    workers = [_Worker(inputs, number, jobs, work) for number in range(min(jobs, len(inputs)))]
    try:
        for number, one in enumerate(inputs):
            place = number % jobs
            data = workers[place].read()
            if data is not None:
                answer = pickle.loads(data)
                if isinstance(answer, WorkerError):
                    raise answer
                yield answer
                continue
            yield lost(one, f"the process that read it {workers[place].end()}")
            workers[place] = _Worker(inputs, number + jobs, jobs, work)
    finally:
        for worker in workers:
            worker.kill()


class _Worker:
    """A process that works on every ``step``-th input from ``first`` on and writes answers into a pipe."""

    def __init__(self, inputs: Sequence[str], first: int, step: int, work: Callable[[str], object]) -> None:
        source, target = os.pipe()
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(target, _SET_PIPE_SIZE, _AHEAD)
        self.pid = os.fork()
        if not self.pid:
            os.close(source)
            _serve(inputs[first::step], work, target)
        os.close(target)
        self._pipe: BinaryIO = os.fdopen(source, "rb")

    def read(self) -> bytes | None:
        """The next answer; None when the process has ended before it."""
        head = self._pipe.read(_SIZE)
        data = self._pipe.read(int.from_bytes(head, "big")) if len(head) == _SIZE else b""
        return data or None

    def end(self) -> str:
        """How it ended, in words."""
        self._pipe.close()
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        if os.WIFSIGNALED(status):
            return f"was ended by signal {os.WTERMSIG(status)}"
        return f"ended with exit code {os.waitstatus_to_exitcode(status)}"

    def kill(self) -> None:
        self._pipe.close()
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _serve(inputs: Sequence[str], work: Callable[[str], object], target: int) -> NoReturn:
    with contextlib.suppress(KeyboardInterrupt, OSError), os.fdopen(target, "wb") as stream:
        for one in inputs:
            try:
                answer = work(one)
            except Exception as error:
                answer = WorkerError(f"{one}: {type(error).__name__}: {error}")
            data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
            stream.write(len(data).to_bytes(_SIZE, "big") + data)
            stream.flush()
    os._exit(0)
