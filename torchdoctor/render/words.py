"""What a report says in words, the same in every format for people."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING

from torchdoctor.model import Role, Severity, Standing, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.model import Diagnosis, Evidence, FirstFailure, Frame

# the head above rules that are no diagnosis
RESEMBLES = "Resembles these, but this message is not known for them"

RISKS = {
    "changes-environment": "changes the environment",
    "needs-root": "needs root",
    "loses-work": "loses work",
    "runs-code": "runs code from the file",
}


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
    time = f" at {time_of(item.time)}" if item.time else ""
    return f"rank {item.rank}{host} failed first{time}{by}"


def time_of(iso: str) -> str:
    """A time as people write it: milliseconds at most, no "T", no dashes for a year that the log lacks."""
    return re.sub(r"(\.\d{3})\d+", r"\1", iso.removeprefix("--").replace("T", " ", 1))


def prompt(command: str) -> str:
    """Whether a command is for the shell or for a line of Python."""
    return ">>> " if command.lstrip().startswith(("print(", "torch.", "import ", "assert ")) else "$ "


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


def sources(names: Sequence[str]) -> str:
    """The inputs, for a sentence."""
    if len(names) > 1:
        return counted(len(names), "file")
    if not names:
        return "the input"
    return "the standard input" if names[0] in ("-", "<stdin>") else names[0]


def place(item: Evidence, rank: int | None = None, folder: str = "") -> str:
    """Where a piece of evidence stands: file (without ``folder``), line and rank, or the name of the fact."""
    rank = item.rank if item.rank is not None else rank
    where = (item.file or item.fact or "").removeprefix(folder)
    if item.file and item.line:
        where += f":{item.line}"
    return f"{where} (rank {rank})" if rank is not None and where else where


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
