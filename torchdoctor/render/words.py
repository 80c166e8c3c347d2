"""What a report says in words, the same in every format for people."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING

from torchdoctor.model import ONLY_RANK, Outcome, Role, Severity, Standing, counted, page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.model import (
        Diagnosis,
        Evidence,
        Fact,
        FirstFailure,
        Frame,
        Incident,
        Report,
    )

NEW_RULE = (
    "If you know the cause, add a rule: it is one TOML file, and --rules DIR uses yours at once. "
    "CONTRIBUTING.md and docs/rule-format.md, in the sources, tell how to write one and give it back."
)
RISKS = {
    "changes-environment": "changes the environment",
    "needs-root": "needs administrator rights",
    "loses-work": "loses work",
    "runs-code": "runs code from the file",
}

# inputs that are no files
_SPOKEN = dict.fromkeys(("-", "<stdin>"), "the standard input") | {"<output>": "the command's output"}


def standing(item: Diagnosis) -> str:
    """How sure it is, and that it is no cause where it is none."""
    words = {
        Standing.CONFIRMED: "confirmed",
        Standing.POSSIBLE: "possible, not proven",
        Standing.UNLIKELY: "unlikely, there is evidence against it",
    }[item.standing]
    if item.role in (Role.CONSEQUENCE, Role.TEARDOWN):
        words += "; a consequence, its cause is not in the text"
    elif item.severity is Severity.WARNING:
        words += "; a warning"
    return words


def others(report: Report) -> list[tuple[str, list[Diagnosis]]]:
    """What else was found, under a heading each: what is certain, what only warns, what it may be instead."""
    first, rest = report.diagnoses[0], report.diagnoses[1:]
    certain = [item for item in rest if item.standing is Standing.CONFIRMED]
    rivals = [item for item in rest if item not in certain]
    warned: list[Diagnosis] = []
    if first.severity is Severity.FATAL:
        warned = [item for item in rivals if item.severity is not Severity.FATAL]
        rivals = [item for item in rivals if item.severity is Severity.FATAL]
    return [("Also found", certain), ("Other possible causes", rivals), ("Warnings to look at", warned)]


def fact(item: Fact) -> str:
    """A fact as it is named, with its value or why there is none, and its source."""
    value = item.state.value if item.value is None else str(item.value)
    reason = f" ({item.reason.value})" if item.reason is not None else ""
    return f"{item.name} = {value}{reason}  {item.source}".rstrip()


def evidence(item: Evidence) -> str:
    """A line of the input as it is; a fact in words instead of by its name."""
    name, equals, value = item.text.partition(" = ")
    if not item.fact or not equals or name != item.fact:
        return item.text
    detail = re.fullmatch(r"[^()]{1,40} \((.+)\)", value)
    return detail[1] if detail else f"{re.sub('[._]', ' ', name)}: {value}"


def proofs(item: Diagnosis, *, whole: bool = False) -> list[Evidence]:
    """What speaks for a cause.

    A yes that was read out of the decisive line says no more than the line, and what is not the case says
    nothing without figures of its own.
    """
    found = [one for one in item.evidence if not one.against]
    first = found[:1]
    return first + [one for one in found[1:] if whole or not (_restates(one, first[0]) or _denies(one))]


def _denies(item: Evidence) -> bool:
    """Is it a no, a 0 or a none, told by no more than what the fact means?"""
    return item.fact is not None and (
        re.fullmatch(rf"{re.escape(item.fact)} = (no|0|none) \(.*: \1\)", item.text) is not None
    )


def _restates(item: Evidence, first: Evidence) -> bool:
    said = item.fact is not None and item.text.startswith(f"{item.fact} = yes")
    return said and (item.file, item.line) == (first.file, first.line)


def foreign(frame: Frame) -> str:
    """Whose code raised, where none of the reader's own is in the stack."""
    at = frame.file if frame.line is None else f"{frame.file}:{frame.line}"
    return f"in code of {frame.package} ({at}); none of your own is in the stack"


def first_failure(item: FirstFailure | None) -> str:
    """Who failed first, or between whom it cannot be told; "" when no rank is named."""
    if item is None:
        return ""
    by = f" ({item.decided_by})" if item.decided_by else ""
    if item.tie:
        return f"ranks {ranks(item.tie)} failed first; which of them is unclear{by}"
    if item.rank is None:
        return ""
    host = f" on {item.host}" if item.host else ""
    if item.decided_by == ONLY_RANK:  # what is true of one that is alone says nothing of who was first
        return f"rank {item.rank}{host}{by}" if item.rank else ""
    time = f" at {time_of(item.time)}" if item.time else ""
    return f"rank {item.rank}{host} failed first{time}{by}"


def which_rank(report: Report, item: Diagnosis) -> str:
    """The rank that failed first, else that of the diagnosis; "" where there is none, or rank 0 alone."""
    if report.first_failure is None and item.rank is not None:
        return f"on rank {item.rank}"
    return first_failure(report.first_failure)


def time_of(iso: str) -> str:
    """A time as people write it: milliseconds at most, no "T", no dashes for a year that the log lacks."""
    return re.sub(r"(\.\d{3})\d+", r"\1", iso.removeprefix("--").replace("T", " ", 1))


def without_stamp(line: str) -> str:
    """The line without the level, time and place that glog puts before it: what is left of it says more."""
    return re.sub(r"^\[?[EWFI]\d{4} [\d:.]{8,18} (?:\d{1,20} )?\S{1,200}:\d{1,6}\] *", "… ", line)


def ranks(numbers: Sequence[int], most: int = 24) -> str:
    """``0, 2-5``; of more than ``most`` such pieces the first ones, and how many ranks there are."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = runs if len(runs) <= most else runs[: most - 8]
    told = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in shown)
    return (
        told
        if len(shown) == len(runs)
        else f"{told}, … ({counted(len(numbers), 'rank')}, up to {runs[-1][-1]})"
    )


def heading_of_input(report: Report, _: int = 0) -> str:
    """What stands above the report on one of several inputs."""
    return ", ".join(report.source)


def heading_of_run(report: Report, index: int) -> str:
    """What stands above the report on one of several runs of an input, with its index."""
    if not report.runs:
        return heading_of_input(report)
    run = report.runs[index]
    return f"{run.file}, run {run.number} of {len(report.runs)}, lines {run.line} to {run.end_line}"


def incidents(report: Report) -> list[str]:
    """Where the inputs are several incidents, one line for each."""
    return [f"{sources(one.source)}: {_came_of(one)}" for one in report.incidents]


def _came_of(one: Incident) -> str:
    if one.outcome is Outcome.DIAGNOSED:
        first = one.diagnoses[0]
        return f"{first.title} ({first.rule}, {first.standing.value}){_at(first.evidence[:1])}"
    if one.outcome is Outcome.UNRECOGNISED:
        kind = f", {one.suspect.type}" if one.suspect is not None and one.suspect.type else ""
        place = _at([one.suspect.evidence]) if one.suspect is not None else ""
        return f"a failure that no rule knows{kind}{place}"
    return "no failure found" if one.outcome is Outcome.NO_FAILURE else "could not be read"


def _at(evidence: Sequence[Evidence]) -> str:
    return "".join(f", line {item.line}" for item in evidence if item.line)


def no_failure(report: Report, where: str = "") -> tuple[str, str]:
    """The mark and the title of a report without a failure on the inputs, named as ``where`` says.

    A tick is earned by a good end, or by a text that shows no run.
    """
    where = where or sources(report.source)
    if report.got_over:
        return "!", f"No failure ended the run in {where}; it continued after the errors below"
    if report.open_end:
        return "–", f"No failure so far in {where}"
    return "✓", f"No failure found in {where}"


def sources(names: Sequence[str]) -> str:
    """The inputs, for a sentence."""
    if len(names) > 1:
        return counted(len(names), "file")
    if not names:
        return "the input"
    return _SPOKEN.get(names[0], names[0])


def place(item: Evidence, rank: int | None = None, folder: str = "") -> str:
    """Where a piece of evidence stands: file (without ``folder``), line and rank, or the name of the fact."""
    rank = item.rank if item.rank is not None else rank
    where = (item.file or item.fact or "").removeprefix(folder)
    if item.file and item.line:
        where += f":{item.line}"
    return f"{where} (rank {rank})" if rank is not None and where else where


def page(item: Diagnosis) -> str:
    """Where to read more on a rule: in the documentation, or printed."""
    return f"Page: {page_of(item.rule, item.family)} (torchdoctor rules show {item.rule})"


def frame(item: Frame) -> str:
    """``train.py:12, in forward``."""
    where = item.file if item.line is None else f"{item.file}:{item.line}"
    return f"{where}, in {item.function}" if item.function else where


def long_folder(sources: Sequence[str], width: int) -> str:
    """The folder that all inputs lie in, when their paths are too long to stand beside what they say."""
    room = (width - 4) // 3 - len(":12345 (rank 7)")
    if not sources or max(map(len, sources)) <= room:
        return ""
    folders = [os.path.dirname(name) for name in sources]
    try:
        folder = os.path.commonpath(folders)
    except ValueError:  # on different drives, or some relative and some not
        return ""
    return folder.rstrip(os.sep) + os.sep if folder else ""
