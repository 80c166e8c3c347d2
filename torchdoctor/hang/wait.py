"""What a process was found to wait for, and the others that were looked at with it."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.hang.look import Seen
from torchdoctor.hang.stacks import Stack
from torchdoctor.model import Fix, Frame, Record, Standing
from torchdoctor.records import record


@record(frozen=True, slots=True)
class Wait(Record):
    """A rule of the catalog, the process to blame, what was seen; the first of ``says`` is the cause.

    ``pid`` is 0 where nobody can say which of the ranks is the odd one out.
    """

    rule: str
    pid: int
    says: tuple[str, ...]
    frame: Frame | None = None
    fixes: tuple[Fix, ...] = ()
    standing: Standing = Standing.CONFIRMED
    decide_with: str | None = None


class Group:
    """All processes that were looked at together."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        self.all = tuple(seen)
        self._by_pid = {one.pid: one for one in seen}

    def children(self, one: Seen) -> list[Seen]:
        return [other for other in self.all if other.second.parent == one.pid]

    def below(self, one: Seen) -> list[Seen]:
        """All descendants."""
        found: list[Seen] = []
        pending = [one]
        while pending:
            inner = self.children(pending.pop())
            found += inner
            pending += inner
        return found

    def parent(self, one: Seen) -> Seen | None:
        return self._by_pid.get(one.second.parent)


def at(stack: Stack) -> str:
    """``train.py:41 in step: code``, of the user's innermost frame or of the innermost of all."""
    frame = stack.own or stack.inner
    if frame is None:
        return "at an unknown place"
    code = f": {frame.code}" if frame.code else ""
    return f"{frame.file}:{frame.line} in {frame.function}{code}"


def kernel(one: Seen) -> str:
    """The main thread's state in the kernel, in words."""
    task = one.second.main
    if task is None:
        return f"state {one.second.state}"
    words = f"state {task.state}"
    if task.call and task.call != "running":
        words += f", in {task.call}"
    if task.waits_in and task.waits_in != "0":
        words += f" ({task.waits_in})"
    return words
