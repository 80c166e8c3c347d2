"""Which failures a process got over: it says so, or the same process plainly went on.

What was caught has its traceback in the log like any other. That something is printed below it proves nothing
by itself: the last words of other ranks, of loggers and of the shell come below a traceback, too.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from torchdoctor.extract.progress import moves
from torchdoctor.intake.ending import rows
from torchdoctor.intake.ending.event import goodness, is_failure, level
from torchdoctor.intake.lines import is_prompt
from torchdoctor.intake.message import is_heading
from torchdoctor.model import Ending, EventKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    import re

    from torchdoctor.intake.elements import Draft

_NEAR = 3  # events in which a program says what it does instead
_CALM = 3  # lines without trouble that a program prints with what it took instead
_MOST = 400
_SAME = 60  # characters by which a message is known again
_FAR = 200  # events
_MANY = 40  # lines of steps, more than another rank or a buffer shows behind the end of a process
_GETS_ON = r"(?i)(?<![\d.])\d+ ?/ ?\d+(?![\d.])|\d%|(?:=|: ?|\s)-?\d+\.\d+"
# programs that speak when another one has ended
_OTHERS = (
    "wandb:", "srun:", "slurmstepd:", "swanlab:", "comet", "mlflow", "clearml", "closing", "make:", "make[",
    "exception ignored", "error:", "process ", "shutting down", "cleaning up", "sys:1:", "uploading logs",
)  # fmt: skip


def mark_recovered(drafts: list[Draft], ending: Ending, good: int) -> None:
    """Mark failures after which the same stream plainly went on; few when the last event is a failure."""
    if ending is Ending.BAD:
        _mark_passed(drafts)
        return
    ends = ended_services(drafts).values()
    steps: dict[str, int] = {}
    retried = False
    for index in range(len(drafts) - 1, -1, -1):
        draft = drafts[index]
        if draft.recovered:
            continue
        if draft.kind is EventKind.LOG and steps.get(draft.stream, 0) >= 2:
            draft.recovered = rows.AROUND.search(draft.raw[:600]) is not None
        if is_failure(draft):
            draft.recovered = index not in ends and (
                came_later(drafts, index)
                or _went_on(drafts, index, ending, good, steps.get(draft.stream, 0), retried)
            )
            if not draft.recovered:
                return
        elif draft.kind is EventKind.LOG:
            text = draft.text()[:600]
            if moves(text):
                lines = 1 + draft.end_line - draft.line  # the states of a bar are one event
                steps[draft.stream] = steps.get(draft.stream, 0) + lines
            elif rows.TROUBLE.search(text):
                well = ending is Ending.GOOD and index < good
                draft.recovered = well or came_later(drafts, index)
            retried = retried or rows.AGAIN.search(text) is not None


def _mark_passed(drafts: list[Draft]) -> None:
    """Of an input that ended badly, mark the exceptions after which its stream took many steps until then.

    Or for which the program took something else, before another exception ended it.
    """
    steps: dict[str, int] = {}
    ends: dict[str, Draft] = {}  # the last exception of each stream
    for index in range(len(drafts) - 1, -1, -1):
        draft = drafts[index]
        if draft.kind in (EventKind.EXCEPTION, EventKind.CRASH) and steps.get(draft.stream, 0) >= _MANY:
            draft.recovered = True
        elif draft.stream in ends and _fell_back(drafts, index, ends[draft.stream]):
            draft.recovered = True
            _mark_announced(drafts, index)
        elif draft.kind is EventKind.LOG and moves(draft.raw[:600]):
            steps[draft.stream] = steps.get(draft.stream, 0) + 1 + draft.end_line - draft.line
        elif draft.kind is EventKind.EXCEPTION and draft.headed and not draft.quoted:
            ends.setdefault(draft.stream, draft)


def _fell_back(drafts: list[Draft], index: int, end: Draft) -> bool:
    """Does the program say right below what it takes instead, get on with that, and fail of something else?

    What is tried again is still the same attempt, and an exception that left the main module was not caught.
    """
    failed = drafts[index]
    message = failed.text().strip()[:_SAME]
    if (
        failed.kind is not EventKind.EXCEPTION
        or not failed.frames
        or failed.quoted
        or not message
        or message in end.text()
        or _ended_program(drafts, index)
        or rows.DIED.search(failed.text()[:_MOST])
    ):
        return False
    below = [one for one in drafts[index + 1 : index + 1 + _MOST] if one.stream == failed.stream]
    calm = [one.text()[:_MOST] for one in takewhile(lambda one: _is_calm(one, failed), below)]
    said = next((at for at, text in enumerate(calm[:_NEAR]) if rows.AROUND.search(text)), None)
    return said is not None and len(calm) - said > _CALM and not rows.AGAIN.search(calm[said])


def _is_calm(draft: Draft, failed: Draft) -> bool:
    """Is it a line of the same program that tells of no trouble, or of what it takes instead of that?"""
    text = draft.text()[:_MOST]
    return _goes_on(draft, failed) and (not rows.TROUBLE.search(text) or bool(rows.AROUND.search(text)))


def _mark_announced(drafts: list[Draft], index: int) -> None:
    """Mark the lines right above a traceback by which the handler of its exception tells the message, too."""
    message = drafts[index].text().strip()[:_SAME]
    for above in drafts[max(0, index - _NEAR) : index]:
        if above.kind is EventKind.LOG and message in above.text():
            above.recovered = True


def ended_services(drafts: list[Draft]) -> dict[int, int]:
    """Where docker compose tells that a service left with an error: its last words, if they are a failure."""
    last: dict[str, int] = {}
    found: dict[int, int] = {}
    for index, draft in enumerate(drafts):
        told = left(draft)
        if told is None:
            last[draft.stream] = index
        elif told["code"] != "0":
            failed = last.get(told["service"], -1)
            if failed >= 0 and is_failure(drafts[failed]):
                found[index] = failed
    return found


def left(draft: Draft) -> re.Match[str] | None:
    """Does docker compose tell that a service has ended? Then its name and its exit code."""
    raw = draft.raw[:120]
    if " exited with code " not in raw or draft.stream:
        return None
    from torchdoctor.signal_words import SERVICE_LEFT

    return pattern(SERVICE_LEFT).match(raw)


def _went_on(drafts: list[Draft], index: int, ending: Ending, good: int, steps: int, retried: bool) -> bool:
    """Did the stream of a failure go on to a good end, or through many steps?"""
    draft = drafts[index]
    if of_child(drafts, index) and not retried:
        return False
    ended = not retried and _ended_program(drafts, index) and not caught(drafts, index)
    if ending is Ending.GOOD and index < good and drafts[good].stream in ("", draft.stream):
        return (
            (steps >= 1 and not ended) or retried or goodness(drafts[good].text()) == 2
            or caught(drafts, index)
        )  # fmt: skip
    if draft.kind is EventKind.LOG and steps >= 2 and rows.REFUSAL.search(draft.text()[:_MOST]) is not None:
        return True  # the script went on behind a tool
    return draft.kind in (EventKind.EXCEPTION, EventKind.CRASH) and steps >= 10 and not ended


def _ended_program(drafts: list[Draft], index: int) -> bool:
    """Did an exception leave the main module, by no logger's word? Then what follows is another program's."""
    failed, above = drafts[index], drafts[max(index - 1, 0)]
    if failed.kind is not EventKind.EXCEPTION or failed.rank is not None or not failed.frames:
        return False
    outermost = failed.frames[0]
    logged = above is not failed and failed.line - above.end_line <= 1 and bool(level(above))
    return (
        outermost.function == "<module>"
        and not outermost.package
        and outermost.file.endswith(".py")
        and not logged
    )


def of_child(drafts: list[Draft], index: int) -> bool:
    """Is it the traceback that ended another program, as the one that had started it tells right above?"""
    while index and drafts[index].kind is EventKind.EXCEPTION:
        failed, above = drafts[index], drafts[index - 1]
        if failed.frames and failed.frames[0].function == "<module>":
            return rows.CHILD.search(above.text()[:4_000]) is not None
        if above.end_line < failed.line:  # it holds no other one's original
            return False
        index -= 1
    return False


def caught(drafts: list[Draft], index: int) -> bool:
    """Did the program say that it caught this exception, or what it does instead, and get on then?"""
    failed = drafts[index]
    if failed.kind is not EventKind.EXCEPTION or not failed.frames or rows.DIED.search(failed.text()[:_MOST]):
        return False
    rest = takewhile(lambda one: not is_heading(one.raw), drafts[index + 1 : index + 1 + _MOST])
    behind = [one.text()[:400] for one in rest if _goes_on(one, failed)]
    if len(behind) < 2 or any(rows.GAVE_UP.search(text) for text in behind):
        return False
    if _by_library(failed):
        return True
    above = drafts[index - 1] if index else failed
    near = above.kind is EventKind.LOG and not above.quoted and above.end_line >= failed.line - 2
    said = above.text()[:400] if near else ""
    if not rows.CAUGHT.search(said) and not any(rows.INSTEAD.search(text) for text in behind[:_NEAR]):
        return False
    onward = [moves(text) or goodness(text) > 0 or bool(pattern(_GETS_ON).search(text)) for text in behind]
    return sum(onward) >= 2 or any(onward[-2:])


def _by_library(failed: Draft) -> bool:
    """Is the traceback all of one package that was being imported? What ends a program begins in it.

    Of one whose head is cut off nobody knows where it begins.
    """
    if (
        failed.kind is not EventKind.EXCEPTION
        or not failed.frames
        or failed.links
        or "Traceback " not in failed.raw
    ):
        return False
    outermost = failed.frames[0]
    return (
        outermost.function == "<module>"
        and outermost.file.endswith(".py")  # no program in bin/
        and {frame.package for frame in failed.frames} == {outermost.package}
        and outermost.package not in ("", "python")
    )


def _goes_on(draft: Draft, failed: Draft) -> bool:
    return (
        draft.kind is EventKind.LOG
        and not draft.quoted
        and draft.stream == failed.stream
        and draft.line > failed.end_line
        and not draft.raw.lower().lstrip().startswith(_OTHERS)
        and "registered at " not in draft.raw  # torch's list of what an operator has kernels for
        and not is_prompt(draft.raw)
    )


def came_later(drafts: list[Draft], index: int) -> bool:
    """A line about something that failed, was tried again at once, and went through to its end.

    Or what a server says of a request that it refused, or an interrupt above all that the next start printed.
    """
    if _refused(drafts, index):
        return True
    if drafts[index].type == "KeyboardInterrupt":
        stream = drafts[index].stream
        return sum(one.kind is EventKind.LOG and one.stream == stream for one in drafts[index:]) >= _MANY
    if drafts[index].kind is EventKind.NCCL:
        return _nccl_went_on(drafts, index)
    if drafts[index].kind is not EventKind.LOG:
        return False
    above = drafts[index - 1] if index else drafts[index]
    if _by_library(above) and drafts[index].line - above.end_line <= 2 and caught(drafts, index - 1):
        return True  # what the library says beside its traceback
    if _left_out(drafts, index):
        return True
    if not any(rows.AGAIN.search(draft.text()[:400]) for draft in drafts[index : index + 3]):
        return False
    return any("100%" in draft.raw[:400] for draft in drafts[index + 1 : index + 40])


def _refused(drafts: list[Draft], index: int) -> bool:
    """Does the server answer right below, with a fault of the client's?"""
    below = drafts[index + 1 : index + 3]  # the traceback of a message stands between
    for above, draft in zip(drafts[index:], below, strict=False):
        if draft.line - above.end_line > 1:
            return False
        found = pattern(_ACCESS).search(draft.raw[:400]) if " HTTP/" in draft.raw[:400] else None
        if found is not None:
            return found[0][-3] == "4"
        if draft.kind is not EventKind.EXCEPTION:
            return False
    return False


_DETAIL = r"(?:\[[\d :,.-]{8,30}\] )?\s*[*-] \S"


def _left_out(drafts: list[Draft], index: int) -> bool:
    """Does the program say below the details in a list that it leaves this out, and do the rest?"""
    stream = drafts[index].stream
    below = (one for one in drafts[index + 1 : index + _MOST] if one.stream == stream)
    for details, one in enumerate(below):
        if not pattern(_DETAIL).match(one.raw):
            said = details > 0 and rows.AROUND.search(one.text()[:_MOST]) is not None
            return said and any(goodness(later.text()) for later in below)
    return False


def _nccl_went_on(drafts: list[Draft], index: int) -> bool:
    """Does the process that NCCL warns in say next what it does, and not through which calls it left?

    Its version it tells where the checks of its surroundings are behind it.
    """
    process = _process(drafts[index])
    for draft in drafts[index + 1 : index + _MOST]:
        if draft.raw.startswith(("NCCL version ", "RCCL version ")):
            return True
        more = draft.kind is EventKind.NCCL and level(draft) != "WARNING"
        if more and _process(draft) == process:
            return draft.level == "INFO" and not pattern(r" -> \d+\b").search(draft.text())
    return False


def _process(draft: Draft) -> str:
    """What NCCL puts before its lines, without the thread: host and number of the process."""
    found = pattern(r"[\w.-]+:\d+(?=:\d+ \[)").search(draft.text()[:200])
    return found[0] if found else ""


def tried_between(drafts: list[Draft], failure: int, good: int) -> bool:
    """Does a line from right above a failure on to the good end speak of another attempt?"""
    around = [draft.text()[:400] for draft in drafts[max(0, failure - 1) : good + 1]]
    around[min(failure, 1)] = around[min(failure, 1)].partition("\n")[2]  # not what the failure itself says
    return any(rows.AGAIN.search(text) or rows.AROUND.search(text) for text in around)


_ACCESS = r"\"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \S{1,300} HTTP/\d(?:\.\d)?\"? [2-5]\d\d\b"


def of_another(drafts: list[Draft], failure: int, good: int) -> bool:
    """Did a service print a traceback on its way to a failure, and is the good line on another request?"""
    printed = drafts[max(0, failure - _FAR) : failure + 1]
    return any(one.kind is EventKind.EXCEPTION and one.frames for one in printed) and (
        pattern(_ACCESS).search(drafts[good].text()[:400]) is not None
    )
