"""What a failure that no rule knows says by itself: who refused what, ended the process, or crashed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.engine.textfacts import log_value
from torchdoctor.extract import of_event
from torchdoctor.model import Event, EventKind, Reading, ReadingKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.model import Frame, Transcript

_CRASHES = frozenset(("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"))
_LIBRARY = r"(?:^|[\s/(\[])(?P<library>[\w.+-]{1,80}\.(?:so(?:\.\d+)*|dll|dylib|pyd))\b"
_ENDED_BY = (
    (r"\bslurmstepd\b|\bsrun\b|\bscancel\b|\bslurmd\b", "Slurm"),
    (r"\bkubelet\b|\bOOMKilled\b|\b[Ee]victed\b", "Kubernetes"),
    (r"\b(?:Out of memory|oom-kill|Memory cgroup)\b", "the kernel"),
)
_SENT = r"\bSIG(?:KILL|TERM|HUP)\b|\bCANCELLED\b|\b[Ee]victed\b|\b[Pp]reempted\b|\bOOMKilled\b"
# what it wants and what it got, in the two orders in which messages say it
_WANTS = (
    r"(?:expect(?:ed|s|ing)?|should(?: be| have)?|must(?: be| have)?|requires?|needs?|wants?|supports? only)"
)
_GOT = r"(?:got|found|received|given)"
_BUT = rf"(?:[,;]? but (?:it )?(?:{_GOT}|ha[sd]|have|was|were|is|are)|[,;]? {_GOT}|, not|,? instead of)"
_IN_ORDER = rf"(?i)\b{_WANTS}:? (?P<wants>[^\n]{{1,160}}?){_BUT}\b:? (?P<got>[^\n]{{1,160}})"
_REVERSED = rf"(?i)\b{_GOT}:? (?P<got>[^\n]{{1,160}}?)[,;]? (?:but )?\b{_WANTS}:? (?P<wants>[^\n]{{1,160}})"
_FORMS = (_REVERSED, _IN_ORDER, r"\bmust (?:be|have) (?P<wants>[^\n]{1,160})")
_FORWARDS = r"\b(?:func|fn|f|function|method|wrapped|callable)\(\*\w+, \*\*\w+\)"
_RAISED_BY_C = ("RuntimeError", "IndexError", "ValueError", "TypeError", "NotImplementedError")


def read(event: Event, transcript: Transcript) -> Reading | None:
    """The reading of one event; None where it says no more than its text."""
    if event.kind is EventKind.EXCEPTION and (event.type or "").rpartition(".")[2] != "SignalException":
        return _refused(event, transcript)
    facts = {fact.name: fact.value for fact in of_event("exit", event, transcript)}
    signal = facts.get("exit.signal")
    if signal in _CRASHES or "terminate called" in event.text:
        return _crashed(event, transcript)
    if signal is not None or pattern(_SENT).search(event.text[:2_000]):
        owner = next((name for words, name in _ENDED_BY if pattern(words).search(event.text)), None)
        return Reading(ReadingKind.ENDED_OUTSIDE, owner)
    return None


def _crashed(event: Event, transcript: Transcript) -> Reading:
    """The library that the lines around the end name, else the package in whose call the stack stood."""
    near = transcript.events[max(0, event.id - 3) : event.id + 4]
    for one in (event, *near):
        found = pattern(_LIBRARY).search(one.text[:4_000])
        if found is not None:
            return Reading(ReadingKind.NATIVE_CRASH, found["library"])
    for one in (event, *near):
        owner, function = _called(one.frames, innermost_last=one.kind is not EventKind.CRASH)
        if owner:
            return Reading(ReadingKind.NATIVE_CRASH, owner, function)
    return Reading(ReadingKind.NATIVE_CRASH)


def _refused(event: Event, transcript: Transcript) -> Reading | None:
    owner, function = _called(event.frames)
    kind = (event.type or "").rpartition(".")[2]
    if not owner and kind in _RAISED_BY_C and log_value("log.torch_seen", transcript):
        code = event.frames[-1].code.lstrip() if event.frames else ""
        owner = "" if code.startswith(("raise", "assert")) else "torch"
    if not owner:
        return None
    text = event.text[:4_000]
    told = next((found for form in _FORMS if (found := pattern(form).search(text)) is not None), None)
    said = {name: _cut(value) for name, value in (told.groupdict() if told is not None else {}).items()}
    return Reading(ReadingKind.LIBRARY_REFUSED, owner, function, said.get("wants"), said.get("got"))


def _called(frames: tuple[Frame, ...], innermost_last: bool = True) -> tuple[str, str | None]:
    """The package of the innermost frame, and its function that was called from outside of it."""
    ordered = frames if innermost_last else tuple(reversed(frames))
    owner = next((one.package for one in reversed(ordered) if one.package != "python"), "")
    if not owner:
        return "", None
    inside: list[Frame] = []
    for frame in reversed(ordered):
        if frame.package not in (owner, "python"):
            break
        inside.insert(0, frame)
    names = (_public_name(frame, owner) for frame in inside if frame.package == owner)
    return owner, next((name for name in names if name is not None), None)


def _public_name(frame: Frame, owner: str) -> str | None:
    """``torch.nn.functional.linear``; None for what is private or only passes its arguments on."""
    path = re.split(r"(?:site|dist)-packages/", frame.file.replace("\\", "/"))[-1]
    at = path.find(f"{owner}/")
    parts = path[at if at >= 0 else 0 :].removesuffix(".py").removesuffix("/__init__").split("/")
    parts.append(frame.function)
    if any(not part or part[0] in "_<" for part in parts) or pattern(_FORWARDS).search(frame.code):
        return None
    return ".".join(parts)


def _cut(text: str) -> str:
    """The part up to the end of its sentence."""
    return pattern(r"[.;](?:\s|$)|\n").split(text, 1)[0].strip(" ,:!")
