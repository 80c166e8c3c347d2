"""Several runs one after another in one input: appended logs, restarts, commands at a prompt.

An input is parted only where a run had an end of its own and a sign shows that a program starts: a command at
a prompt, nohup's first line, another job's number, a new attempt of torchelastic, the first lines of the run
again, or the end of another main program, of which a process has only one; and where a scheduler that closed
one job closes another. Good words are a weak end: an epoch has them, too. Time, process ids and step numbers
part nothing.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from torchdoctor.extract.progress import is_progress, moves
from torchdoctor.intake.ending.event import goodness
from torchdoctor.intake.keep import shape
from torchdoctor.intake.lines import is_prompt
from torchdoctor.model import EventKind
from torchdoctor.patterns import pattern, search

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdoctor.intake.elements import Draft

Heads = dict[str, dict[str, str]]  # stream -> shape -> line

_HEAD = 5  # first lines of a run by which it is known again
_ALIKE = 2  # of these so many must come again within as many lines
_BEHIND = 60  # events between the end of a run and the sign of the next one
_AFTER_REFUSAL = 3  # events
_MOST = 50  # runs

_STARTS = (
    r"(?:\S*[$#%>] |\+ )(?:\w+=\S* )*(?:(?:sudo|nohup|time|env|exec) )*(?:\S*/)?"
    r"(?:python\S*|torchrun|accelerate|deepspeed|srun|mpirun|bash|sh|\./\S+|conda run)\b"
)
JOB = r"(?i)\b(?:slurm[_ ])?job[ _]?id\b\W{1,4}(?P<id>\d{3,12})\b"
# a scheduler closes a job: Slurm where it cancels one, LSF behind the summary that it writes below the output
_CLOSED = r"\*\*\* JOB (?P<id>\d+)\S* ON \S+ CANCELLED AT"
_UPDATES = 10  # of a bar, which show that it counts on
_SUMMARY = "The output (if any) is above this job summary"
_BELOW = ("PS:", "Read file <")
# torchelastic's agent, which starts all processes again
_ATTEMPT = r"will restart worker group|Restarting worker group|Rendezvous'ing worker group"
_NUMBER = r"\d{1,18}"
_REFUSED = r"^\S+\.py: error: "
_REPORTERS = frozenset(("CalledProcessError", "ChildFailedError", "ProcessRaisedException", "SystemExit"))
_SCRIPT = r"(?<![\w/.-])(?P<script>[\w./~-]+\.(?:py|sh)|-m [\w.]+)"
# other processes of the same run print their own ends
_OF_MANY = (EventKind.LAUNCHER, EventKind.SCHEDULER)


def split(drafts: list[Draft]) -> list[list[Draft]]:
    """The drafts of each run, in order; one list where nothing shows that there are several."""
    parts: list[list[Draft]] = []
    begin, end, job = 0, -1, ""
    shut, closed = -1, ""  # where Slurm closed a job, and which
    heads = lru_cache(maxsize=1)(partial(_first_lines, drafts))  # the same for each line behind an end
    several = any(
        one.rank is not None or one.local_rank is not None or one.kind in _OF_MANY for one in drafts
    )
    for index, draft in enumerate(drafts):
        number, closes = _job(draft), _closes(draft)
        at = -1
        if begin <= end < index:
            if closed and closes and closes != closed:
                at = shut + 1
            elif not several and (_is_another(drafts, end, index) or _is_trained_after(drafts, end, index)):
                at = end + 1
            elif _SUMMARY in drafts[end].raw:
                at = -1 if draft.raw.strip().startswith(_BELOW) else index
            elif (number and job and number != job) or _is_start(drafts, begin, end, index, several, heads):
                at = index
        if at > begin:
            parts.append(drafts[begin:at])
            begin = at
            if len(parts) == _MOST:  # the last run is judged
                parts[:2] = [parts[0] + parts[1]]
        job, closed = number or job, closes or closed
        shut = index if closes else shut
        if closes or _SUMMARY in draft.raw or _is_end(draft) or _says_good(draft):
            end = index
    return [*parts, drafts[begin:]]


def _job(draft: Draft) -> str:
    found = pattern(JOB).search(draft.raw[:200]) if "ob" in draft.raw[:200] else None
    return found["id"] if found else ""


def _says_good(draft: Draft) -> bool:
    return draft.kind is EventKind.LOG and goodness(draft.text()) == 2


def _closes(draft: Draft) -> str:
    """The number of the job that Slurm closes with this line."""
    found = pattern(_CLOSED).search(draft.raw[:200]) if "CANCELLED" in draft.raw[:200] else None
    return found["id"] if found else ""


def _is_end(draft: Draft) -> bool:
    """Did a program end here: by what it did not catch, by its arguments, by a signal?"""
    if draft.quoted or draft.recovered:
        return False
    raised = draft.kind is EventKind.EXCEPTION and bool(draft.frames) and draft.type is not None
    return raised or draft.kind is EventKind.CRASH or _refused(draft)


def _refused(draft: Draft) -> bool:
    """Did argparse end the program? It does so at once, before anything else is printed."""
    return draft.kind is EventKind.LOG and search(_REFUSED, draft.raw[:300], ".py: error: ") is not None


def _is_main(draft: Draft) -> bool:
    """Is it the end of a Python program by an exception of its main module, or by argparse?

    Not of a child that multiprocessing spawned, nor of a parent that reports the end of another program.
    """
    if draft.kind is not EventKind.EXCEPTION or not draft.frames or draft.type is None:
        return _refused(draft)
    outer, name = draft.frames[0], draft.type.rpartition(".")[2]
    begins = outer.function == "<module>" or (name == "SyntaxError" and not outer.function)
    return begins and outer.file != "<string>" and name not in _REPORTERS


def _is_another(drafts: list[Draft], end: int, index: int) -> bool:
    """Must what stands at ``index`` be another process than the one that ended at ``end``?

    A main program ends once; what follows the refusal of arguments is no output of the program that refused.
    """
    one, two = drafts[end], drafts[index]
    if _refused(one):
        return index == end + _AFTER_REFUSAL or _is_main(two)
    if two.frames and 0 < two.frames[0].at <= one.end_line:
        return False  # both wrote at once, as ranks do whose lines have no tag
    return _is_main(one) and _is_main(two) and _in_cell(one) == _in_cell(two) and not _linked(one, two)


def _is_trained_after(drafts: list[Draft], end: int, index: int) -> bool:
    """Does a bar count on behind the end of a main program? Both come by stderr, which keeps their order."""
    if not is_progress(drafts[index].raw) or not _is_main(drafts[end]) or _in_cell(drafts[end]):
        return False
    return sum(one.count for one in drafts[end + 1 : index + 1] if is_progress(one.raw)) >= _UPDATES


def _in_cell(draft: Draft) -> bool:
    """Is it an exception of a notebook's cell, which what ran the notebook (papermill) hands on?"""
    return bool(draft.frames) and draft.frames[0].in_cell()


def _linked(one: Draft, two: Draft) -> bool:
    """Do the two belong to one exception, or say the same of another process?"""
    tied = any(to is one for _, to in two.links) or any(to is two for _, to in one.links)
    if tied or one.type != two.type:
        return tied
    alike = shape(one.text()) == shape(two.text())
    places = [[(frame.file, frame.line) for frame in draft.frames] for draft in (one, two)]
    return alike or (bool(one.frames) and places[0] == places[1])


def _first_lines(drafts: list[Draft], begin: int, end: int) -> Heads:
    """The lines by which the run that ended last is known again."""
    found: Heads = {}
    first = drafts[begin : min(begin + _HEAD, end)]
    stop = next((index for index, one in enumerate(first) if _is_end(one)), _HEAD)  # no start is behind it
    for one in reversed(first[:stop]):
        if not moves(one.raw):
            found.setdefault(one.stream, {})[shape(one.raw)] = one.raw
    return found


def _is_start(
    drafts: list[Draft], begin: int, end: int, index: int, several: bool, heads: Callable[[int, int], Heads]
) -> bool:
    """Does a program start here, behind the end of a run that began at ``begin``?"""
    draft = drafts[index]
    if draft.line <= drafts[end].end_line:
        return False  # between the lines of what ended it
    if "orker group" in draft.raw and pattern(_ATTEMPT).search(draft.raw[:400]):
        return True
    ended = bool(_closes(drafts[end])) or _is_end(drafts[end])
    near = index - end <= _BEHIND or bool(_closes(drafts[end]))
    if not near or draft.kind in (EventKind.EXCEPTION, EventKind.WARNING):
        return False
    raw = draft.raw.strip()
    if raw.startswith("nohup: ignoring input") or _is_same_command(drafts[:index], draft):
        return True
    if draft.rank is not None or draft.kind is not EventKind.LOG or not _tells(draft):
        return False
    # a launcher prints the lines of each rank when it gets to them: those of another one begin nothing
    first = heads(begin, end).get(draft.stream, {})
    known = first.get(shape(draft.raw)) if first else None
    if known is None or _is_inside(drafts, index):
        return False
    here = {shape(one.raw) for one in drafts[max(end + 1, index - _HEAD) : index + _HEAD]}
    alike = len(here & first.keys())
    if not ended:
        return alike >= max(_ALIKE, len(first)) and not _counts_on(known, draft.raw)
    within = [shape(one.raw) for one in drafts[begin : begin + _BEHIND] if one.line <= drafts[end].end_line]
    marks = within.count(shape(draft.raw)) > 1  # parts the lines of one run
    weak = several or marks or _is_logged(drafts[end])
    return alike >= (_ALIKE if weak else min(_ALIKE, len(first)))


def _is_logged(draft: Draft) -> bool:
    """Is it an exception that the program's own function caught and wrote down, as each rank may do?"""
    frames = draft.frames if draft.kind is EventKind.EXCEPTION else []
    return bool(frames) and frames[0].function not in ("<module>", "") and not _in_cell(draft)


def _is_inside(drafts: list[Draft], index: int) -> bool:
    """Does a line stand between the first line of an exception and its last, in the same stream?"""
    draft = drafts[index]
    return any(
        one.kind is EventKind.EXCEPTION and one.end_line > draft.line and one.stream == draft.stream
        for one in drafts[max(0, index - _BEHIND) : index]
    )


def _counts_on(one: str, two: str) -> bool:
    """Do two lines differ in one number only, and is it the next one?"""
    pairs = list(zip(pattern(_NUMBER).findall(one), pattern(_NUMBER).findall(two), strict=False))
    changed = [(int(a), int(b)) for a, b in pairs if a != b]
    return len(changed) == 1 and changed[0][1] == changed[0][0] + 1


def _is_same_command(before: list[Draft], draft: Draft) -> bool:
    """Is it a command at a prompt that runs a script which one before it ran, too?"""
    script = _script(draft)
    return bool(script) and any(_script(one) == script for one in before)


def _script(draft: Draft) -> str:
    if not is_prompt(draft.raw) or not pattern(_STARTS).match(draft.raw.strip()):
        return ""
    found = pattern(_SCRIPT).search(draft.raw[:1_000])
    return found["script"] if found else ""


def _tells(draft: Draft) -> bool:
    """Is it a line by which the start of a program is known again, not one of its steps?"""
    return sum(c.isalpha() for c in draft.raw) >= 5 and not moves(draft.raw)
