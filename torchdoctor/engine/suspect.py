"""Failures that no rule knows: which exception looks most like the cause, and did anything fail at all."""

from __future__ import annotations

import re
from itertools import chain

from torchdoctor.engine.context import handed_up, went_on
from torchdoctor.engine.finding import quote
from torchdoctor.engine.frames import of_process, outers, own_frame, user_frame
from torchdoctor.engine.textfacts import frames_of, related
from torchdoctor.intake.ending import rows
from torchdoctor.intake.ending.event import BELOW_WARNING, is_failure, names_error, tells_failure
from torchdoctor.model import (
    Ending,
    Event,
    EventKind,
    Quoted,
    Reading,
    ReadingKind,
    RelationKind,
    Suspect,
    Transcript,
)
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

# exceptions that report the end of something else
_REPORTERS = frozenset((
    "ChildFailedError", "CalledProcessError", "SystemExit", "ProcessExitedException",
    "ProcessRaisedException", "KeyboardInterrupt", "SignalException", "SubprocessFailed", "BrokenPipeError",
    "EOFError", "ConnectionResetError", "RayTaskError", "StopIteration", "GeneratorExit",
    "ActorDiedError", "ActorUnavailableError", "RayActorError", "WorkerCrashedError",
))  # fmt: skip


def _is_reporter(event: Event) -> bool:
    # torch.multiprocessing.spawn had no class of its own for it until 1.6
    spawned = event.type == "Exception" and event.text.lstrip().startswith("-- Process ")
    return spawned or (event.type or "").rpartition(".")[2] in _REPORTERS


def unexplained(transcript: Transcript, explained: set[int]) -> list[Event]:
    """Exceptions that no finding stands on or behind, and that are not reports of another's end.

    ``explained`` holds the ids of events with a finding. The innermost of a chain stands for it. That a
    launcher reports the end of a child explains no exception of the child.
    """
    explained = {
        number
        for number in explained
        if transcript.events[number].kind is not EventKind.LAUNCHER
        and not _is_reporter(transcript.events[number])
    }
    covered: set[int] = set()
    inner: set[int] = set()
    for event in transcript.events:
        chain = {member.id for member in related(event, transcript)}
        if chain & explained:
            covered |= chain
        inner.update(relation.event for relation in event.relations)
    found: list[Event] = []
    for event in transcript.events:
        if event.kind is EventKind.LOG and not event.quoted and event.id not in explained:
            # argparse ends a script so, and what follows under a launcher is its echo
            if ".py: error: " in event.text[:120] and not event.recovered:
                found.append(event)
            continue
        if event.kind is not EventKind.EXCEPTION or event.quoted or event.recovered or event.id in covered:
            continue
        if not event.type or _is_reporter(event) or event.type.endswith("Warning"):
            continue
        if explained and _lost_message(event):
            continue
        if event.headed or event.id in inner:
            found.append(event)
    return found


def _lost_message(event: Event) -> bool:
    """Does an error of torch's C++ stand there without its message, which came in records of its own?"""
    last = event.frames[-1].code if event.frames else ""
    return event.type == "RuntimeError" and not event.text.strip() and last[:5] not in ("", "raise")


def choose(candidates: list[Event], transcript: Transcript, first_rank: int | None) -> Suspect | None:
    """The candidate that looks most like the cause.

    In order: on the first failing rank, no wrapper of another, raised under the user's own code, the inner
    one of a chain, with a stack, the first in the text.
    """
    if not candidates:
        return None

    def key(event: Event) -> tuple[bool, bool, bool, bool, bool, int]:
        return (
            first_rank is not None and event.rank != first_rank,
            any(relation.kind is RelationKind.WRAPS for relation in event.relations),
            all(frame.package for frame in event.frames),
            bool(event.relations),
            not event.frames,  # as Java's, which stands among the lines of a server's worker
            event.id,
        )

    best = min(candidates, key=key)
    told = _cause_of_fixed_words(best, transcript)
    if told is not best:
        return _suspect(replace(told, frames=(*best.frames, *told.frames)), transcript)
    return _suspect(_explained(best, candidates), transcript)


def _cause_of_fixed_words(event: Event, transcript: Transcript) -> Event:
    """What an exception was raised from, if its own message stands in the raise word for word.

    Such words are the same in every run: "An error occurred while generating the dataset".
    """
    while event.frames and f'("{event.text.strip()}") from ' in event.frames[-1].code:
        cause = next((one.event for one in event.relations if one.kind is RelationKind.CAUSE), None)
        if cause is None or transcript.events[cause].type in (None, "KeyError", "StopIteration"):
            break
        event = transcript.events[cause]
    return event


def _explained(inner: Event, candidates: list[Event]) -> Event:
    """The exception that says in words what is the matter with the key that a lookup did not find.

    What puts the same key behind a colon only passes it on.
    """
    key = inner.text.strip().strip("'\"")
    if inner.type != "KeyError" or not key or " " in key:
        return inner
    named = rf"(?<![\w.-]){re.escape(key)}(?![\w-])"
    for outer in candidates:
        behind = {one.event for one in outer.relations if one.kind is not RelationKind.WRAPS}
        says, passed_on = outer.text.strip(), inner.text.strip()
        if inner.id not in behind or says == passed_on or says.endswith(f": {passed_on}"):
            continue
        if re.search(named, says) is not None:
            return outer
    return inner


_OF_ARGUMENTS = r"\bsys\.argv\b|\bparse_(?:known_)?args\("


def _about(event: Event) -> str | None:
    """The settings that its message says have to agree, or the one that it names; of a division its divisor.

    What the same program reads from the command line is named as the option that it is there.
    """
    from torchdoctor.extract.asked import setting
    from torchdoctor.extract.disagree import told
    from torchdoctor.extract.line_parts import divisor

    kind = (event.type or "").rpartition(".")[2]
    if kind == "ZeroDivisionError":
        return divisor(event.frames[-1].code) if event.frames else None
    if (pair := told(event.text)) is not None:
        return "{} ({}) or {} ({})".format(*pair)
    name = None if kind == "ImportError" else setting(event.text, [frame.code for frame in event.frames])
    if name is None or not pattern(r"[a-z]\w*").fullmatch(name):
        return name
    owner = event.frames[-1].package if event.frames else ""
    of_program = [frame.code for frame in event.frames if owner and frame.package == owner]
    by_option = any(pattern(_OF_ARGUMENTS).search(code) is not None for code in of_program)
    return f"--{name.replace('_', '-')}" if by_option else name


def _suspect(event: Event, transcript: Transcript) -> Suspect:
    from torchdoctor.engine.reading import read
    from torchdoctor.extract.asked import asked, choice
    from torchdoctor.extract.launcher_hosts import only_host
    from torchdoctor.extract.python_error import of_setup_script

    apart = () if event.frames or event.type is None else tuple(frames_of(event, transcript))
    if apart:  # a report, or a log cut in two, gives them apart
        event = replace(event, frames=apart)
    # what stands near a build's own stack is another program's
    frame = (own_frame if of_setup_script(event) else user_frame)(event, transcript)
    made = read(event, transcript)
    host = only_host(event, transcript)
    chosen = choice(event.text)
    return Suspect(
        event.type,
        event.text,
        event.rank,
        frame,
        quote(event),
        reading=made,
        asks=asked(event.text),
        setting=_about(event),
        choices=chosen[1] if chosen is not None else (),
        host=host,
        caught=_is_caught(event, transcript),
    )


def _is_caught(event: Event, transcript: Transcript) -> bool:
    """Does neither its stack nor one that goes on from it begin with the file that was started?"""
    chain = [event, *of_process(list(outers([event], transcript)), {event.id})]
    begins = [one.frames[0].function for one in chain if one.frames]
    return bool(begins) and not any(pattern(_STARTED).fullmatch(name) for name in begins)


_STARTED = r"<module>|<cell line: \d+>|<frozen runpy>|_run_module_as_main|_run_code|"


def fallback(transcript: Transcript) -> Suspect | None:
    """Where no exception is left: the last line that says something failed.

    A stack whose class and message were cut off says least: where a line of any level names an error, it is
    taken for what the stack lost.
    """
    cut: Event | None = None
    for event in reversed(transcript.events):
        serious = event.kind is EventKind.SCHEDULER or event.level in _SERIOUS
        if is_failure(event) or (serious and not event.quoted and not event.recovered):
            if not _is_cut_off(event):
                return _suspect(_signalled(event, transcript) or event, transcript)
            cut = cut or event
    return _of_cut_off(cut, transcript) if cut is not None else None


def _signalled(event: Event, transcript: Transcript) -> Event | None:
    """The line above an abort by which a handler of signals (Ray's, absl's) or a GPU's runtime tells why."""
    if event.kind is not EventKind.CRASH or "Aborted" not in event.text:
        return None
    above = transcript.events[max(0, event.id - _NEAR) : event.id]
    asked = (
        one
        for one in above
        if one.kind is EventKind.DEVICE_ASSERT or pattern(_ASKED).search(one.text[:400]) is not None
    )
    return next(asked, None)


def _is_cut_off(event: Event) -> bool:
    return event.kind is EventKind.EXCEPTION and event.type is None and not event.text.strip()


_NEAR = 20  # events
_ASKED = r"\*\*\* SIG(?:TERM|INT|HUP) received at time="
_CLASS = r"(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception)) ?: (?P<text>.+)"


def _of_cut_off(stack: Event, transcript: Transcript) -> Suspect:
    """The class and the message of a stack that lost its own, from the line of the text that names one."""
    from torchdoctor.engine.reading import raised

    frame = user_frame(stack, transcript)
    for event in transcript.events:
        found = None if event.quoted or event.recovered else pattern(_CLASS).search(event.text[:2_000])
        if found is not None:
            kind, text = found["type"], found["text"].strip()
            return Suspect(kind, text, event.rank, frame, quote(event), reading=raised(kind, text, stack))
    if (said := _announced(stack, transcript)) is not None:
        return Suspect(None, said.text, stack.rank, frame, quote(said))
    evidence = quote(stack)
    if not evidence.text:  # the head of the traceback is all that is left
        evidence = replace(evidence, text="Traceback (most recent call last):")
    return Suspect(None, "", stack.rank, frame, evidence)


def _announced(stack: Event, transcript: Transcript) -> Event | None:
    """The line above a stack by which its handler says what it caught: "Error in x: …"."""
    before = transcript.events[stack.id - 1] if stack.id else None
    if before is None or before.kind is not EventKind.LOG or before.quoted or before.rank != stack.rank:
        return None
    doing, colon, _ = before.text[:200].partition(": ")
    return before if colon and rows.TROUBLE.search(doing.lower()) is not None else None


_SERIOUS = ("ERROR", "CRITICAL", "FATAL")


def named(transcript: Transcript, *, failed: bool) -> Suspect | None:
    """Of the lines that programs printed, the first that names an error and behind which nothing went on.

    What pip prints above the words of a build only announces them, and a build tells last what ended it. If
    the run is known to have ``failed``, whatever was logged as an error counts.
    """
    if transcript.ending is Ending.GOOD:
        return None
    from torchdoctor.engine.build_reading import ANNOUNCED

    telling = [
        event
        for event in transcript.events
        if not event.quoted and not event.recovered and event.level not in BELOW_WARNING
        if _names_failure(event) or (failed and event.level in _SERIOUS)
    ]
    announced = [event for event in telling if pattern(ANNOUNCED).match(event.text[:400]) is not None]
    numbers = {event.id for event in announced}
    said = [event for event in telling if event.id not in numbers]
    closing = said[-1:] if announced and said and pattern(_GIVES_UP).match(said[-1].text) else []
    # one by one: a log of errors alone has many, and how each went on is looked for far below it
    ends = (event for event in chain(closing, said, announced) if not _went_on(event, transcript))
    first = next(ends, None)
    return _suspect(first, transcript) if first is not None else None


_GIVES_UP = r"\s*error: (?!command )\S"  # the word with which setuptools ends


def ended(transcript: Transcript) -> Suspect | None:
    """A last line that says with which code a process ended."""
    last = transcript.events[-1] if transcript.events else None
    if last is None or last.quoted or last.recovered:
        return None
    return _suspect(last, transcript) if pattern(_EXITED).search(last.text[-400:]) is not None else None


_EXITED = r"\bexited with (?:exit )?(?:code|status):? -?[1-9]\d{0,9}\.?\s*$"


def _names_failure(event: Event) -> bool:
    if event.kind is EventKind.EXCEPTION and event.type is not None:
        return not event.type.endswith("Warning") and not _is_reporter(event)
    if event.kind is EventKind.BUILD:
        return is_failure(event)
    return tells_failure(event.text[:2_000])


def _went_on(event: Event, transcript: Transcript) -> bool:
    """Did the process go on? NCCL does, unless it returns from its functions behind a warning.

    A build tells much behind the first error of a compiler, and fails of it.
    """
    if event.kind is EventKind.BUILD:
        from torchdoctor.extract.build_setting import fails_behind

        if fails_behind(event.id, transcript):
            return False
    if event.kind is not EventKind.NCCL:
        return went_on(event, transcript)
    behind = any(one.kind is EventKind.NCCL for one in transcript.events[event.id + 1 :])
    return behind and not handed_up(event, transcript)


def written(transcript: Transcript) -> Suspect | None:
    """Of the lines that were written and not printed, the first that names an error."""
    for event in transcript.events:
        if event.quoted is not Quoted.WRITTEN or event.recovered:
            continue
        if names_error(event.text[:2_000]):
            return Suspect(
                event.type, event.text, event.rank, None, quote(event), reading=Reading(ReadingKind.QUOTED)
            )
    return None


def has_failure(transcript: Transcript) -> bool:
    """Does the text hold a failure that the run did not get over?"""
    ended_well = transcript.ending is Ending.GOOD
    return transcript.ending is Ending.BAD or any(
        _failed(event, ended_well) for event in transcript.events if not event.quoted and not event.recovered
    )


def all_cut_off(transcript: Transcript) -> bool:
    """Are the only exceptions of the text stacks without a class and a message?"""
    raised = [one for one in transcript.events if one.kind is EventKind.EXCEPTION and not one.quoted]
    return bool(raised) and all(one.type is None and one.frames for one in raised)


def _failed(event: Event, ended_well: bool) -> bool:
    if event.kind is EventKind.EXCEPTION:
        # a class and a message without frames may be a remark of a run that went on
        return event.headed or (
            event.type is not None and not ended_well and not event.type.endswith("Warning")
        )
    if event.kind is EventKind.SCHEDULER:
        return any(
            word in event.text for word in ("error", "CANCELLED", "OOM", "Failed", "Killed", "Evicted")
        )
    if event.kind is EventKind.LAUNCHER:  # the box that torchrun draws; its head may be cut off
        return not ended_well and pattern(r"(?m)^\s*exitcode *: ?-?[1-9]").search(event.text) is not None
    return event.kind in (EventKind.CRASH, EventKind.DEVICE_ASSERT, EventKind.WATCHDOG)
