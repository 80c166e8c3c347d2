"""From processes to a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from torchdoctor.hang import building, flights, judge, procfs, stacks
from torchdoctor.hang.look import INTERVAL_S, Seen, look
from torchdoctor.hang.wait import Wait, at, kernel
from torchdoctor.model import Diagnosis, Evidence, NotChecked, Outcome, Report, Severity, Suspect, counted

_NO_SPY = (
    "py-spy is not installed beside torchdoctor: pip install 'torchdoctor[hang]' shows the stacks of Python"
)


def examine(pids: Sequence[int], roots: Sequence[int] = (), interval_s: float = INTERVAL_S) -> Report:
    """Look twice at these processes and say what they wait for. Blocks for the interval and the two looks.

    Never stops or changes a process. ``roots`` are those that were asked for; the others belong to them.
    """
    spy = stacks.program()
    seen, untold = look(pids, interval_s, spy)
    return of_looks(seen, untold, tuple(roots or pids), spy)


def of_looks(seen: Sequence[Seen], untold: Mapping[int, str], roots: Sequence[int], spy: str) -> Report:
    """What the processes were found to wait for; ``untold`` says of others why they were not seen."""
    waits, unsaid = judge.judge(seen, roots)
    missing = [NotChecked(f"process {pid}", why) for pid, why in untold.items() if pid in roots]
    missing += list(_unreadable(seen, spy))
    for one in seen:
        if one.pid in roots and (one.second.state == "Z" or one.ended):
            missing.append(NotChecked(f"process {one.pid}", _over(one)))
    unsaid = [one for one in unsaid if one.second.state != "Z" and not one.ended]
    bad = [wait for wait in waits if wait.rule not in judge.INFO]
    outcome = (
        Outcome.DIAGNOSED
        if bad
        else Outcome.UNRECOGNISED
        if unsaid or (missing and not waits)
        else Outcome.NO_FAILURE
    )
    records = flights.files(seen)
    diagnoses = [_diagnosis(wait, seen) for wait in waits]
    known = {one.rule for one in diagnoses}
    diagnoses += [one for one in flights.read(records) if one.rule not in known]
    if any(one.severity is Severity.FATAL for one in diagnoses):
        outcome = Outcome.DIAGNOSED
        diagnoses = [one for one in diagnoses if one.severity is not Severity.INFO]
    return Report(
        outcome,
        source=tuple(f"process {pid}" for pid in roots),
        diagnoses=tuple(diagnoses),
        suspect=_suspect(unsaid) if unsaid and not bad else None,
        not_checked=tuple(missing),
        notes=tuple(_notes(seen, records)),
    )


def _over(one: Seen) -> str:
    return (
        "has ended and waits for its parent to notice (zombie)"
        if one.second.state == "Z"
        else "ended while it was looked at"
    )


def _unreadable(seen: Sequence[Seen], spy: str) -> Iterator[NotChecked]:
    """What could not be looked at, each with its remedy."""
    if not spy:
        yield NotChecked("stacks", _NO_SPY)
    for one in seen:
        if not one.second.command and one.second.state != "Z":
            yield NotChecked(
                f"process {one.pid}",
                f"a thread of the kernel ({one.second.name}): it has no stack of a program",
            )
            continue
        why = one.after.why
        if spy and why and one.second.state != "Z" and not one.ended and _is_python(one):
            yield NotChecked(f"stacks of process {one.pid}", f"{why[:200]}. {_remedy(one, why)}".strip())
        elif not one.second.readable and one.second.state != "Z":
            yield NotChecked(f"calls and files of process {one.pid}", _remedy(one, "Permission"))


def _is_python(one: Seen) -> bool:
    return bool(one.second.command) and "python" in os.path.basename(one.second.command[0])


def _remedy(one: Seen, why: str) -> str:
    if not stacks.is_refusal(why):
        return ""
    if one.second.user != os.getuid():
        return f"It belongs to user {one.second.user}: run torchdoctor as that user, or with sudo."
    if procfs.ptrace_scope() not in ("", "0"):
        return (
            "The kernel lets only parents look (Yama): sudo sysctl kernel.yama.ptrace_scope=0, or run "
            "torchdoctor with sudo."
        )
    return "In a container: start it with --cap-add SYS_PTRACE, or run torchdoctor on the host as root."


def _diagnosis(wait: Wait, seen: Sequence[Seen]) -> Diagnosis:
    from torchdoctor import catalog

    rules = catalog.load()
    rule, text = rules.rule(wait.rule), rules.text(wait.rule)
    one = next((item for item in seen if item.pid == wait.pid), None)
    rank = one.rank if one is not None else None
    alone = sum(item.rank is not None for item in seen) < 2  # else the words name the ranks
    return Diagnosis(
        rule.id, rule.family, rule.title, Severity.INFO if wait.rule in judge.INFO else Severity.FATAL,
        rule.role, wait.standing,
        why=text.why, rank=rank, frame=wait.frame,
        evidence=tuple(Evidence(words, rank=rank if alone else None) for words in wait.says),
        fixes=wait.fixes or tuple(it.fix for it in text.fixes[:3] if "{" not in it.fix.do and not it.when),
        decide_with=wait.decide_with, references=text.references,
        reasons=("seen in the live process, which was not stopped",),
    )  # fmt: skip


def _suspect(unsaid: Sequence[Seen]) -> Suspect:
    """The stacks of what could not be judged, in words."""
    lines = []
    for one in unsaid[:8]:
        lines.append(
            f"process {one.pid} ({' '.join(one.second.command)[:80] or one.second.name}): {kernel(one)}"
        )
        lines += _locked(one)
        for stack in one.after.stacks[:16]:
            lines.append(f"  thread {stack.name or stack.tid}: {at(stack)}")
            lines += [
                f"    {frame.function} ({frame.file}:{frame.line})" for frame in reversed(stack.frames[-6:])
            ]
    text = "\n".join(lines)
    return Suspect(
        None, text, unsaid[0].rank, unsaid[0].main.own if unsaid[0].main else None, Evidence(lines[0])
    )


def _locked(one: Seen) -> Iterator[str]:
    """The file whose lock it waits for, and who has that."""
    task = one.second.main
    if task is None or task.call not in ("flock", "fcntl"):
        return
    path = procfs.file_of(one.pid, task.argument)
    if path.startswith("/"):
        others = [pid for pid in building.holders(path) if pid != one.pid]
        yield (
            f"  it waits for the lock of {path}, open in process "
            f"{', '.join(map(str, others)) or 'none that we see'}"
        )


def standing(seen: Sequence[Seen]) -> Iterator[str]:
    """Where each process that runs Python, or waits, stood; one line a process."""
    for one in seen:
        if one.second.state != "Z" and (one.main is not None or len(seen) == 1):
            rank = "" if one.rank is None else f" (rank {one.rank})"
            place = f"at {at(one.main)}; " if one.main is not None else ""
            yield f"process {one.pid}{rank}: {place}{kernel(one)}"


def _notes(seen: Sequence[Seen], records: Sequence[str]) -> Iterator[str]:
    if records:
        yield f"flight records read: {', '.join(records[:8])}"
    if len(seen) > 1:
        yield f"{counted(len(seen), 'process', 'processes')} looked at: " + ", ".join(
            f"{one.pid} {one.second.name}" for one in seen[:12]
        )
