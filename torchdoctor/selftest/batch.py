"""Checks that shared a process, told apart again: what each wrote, how long it took, which one ended it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torchdoctor.probes.machine import Json, Outcome
from torchdoctor.probes.spawn import REPORT_LIMIT, TAIL_LIMIT, parse_lines

# what a program prints, with its stacks, that ends itself because its time limit is reached
_OVER = "Timeout ("
Read = Callable[[str, int, bool], str]


def outcomes(whole: Outcome, files: Sequence[Sequence[str]], read: Read) -> tuple[Outcome, ...]:
    """The outcome of each program that began; of ``whole`` itself where none did.

    ``files`` are, for each, what it printed, its errors and its results.
    """
    begun = {_number(line.get("begin")): _time(line) for line in whole.lines if "begin" in line}
    ended = {_number(line.get("end")): _time(line) for line in whole.lines if "end" in line}
    if 0 not in begun:
        return (replace(whole, lines=()),)
    found = []
    rest_s = whole.seconds
    for number in sorted(begun):
        out, err, report = files[number]
        own = Outcome(
            exit_code=0,
            seconds=round(ended[number] - begun[number], 3) if number in ended else round(rest_s, 3),
            lines=parse_lines(read(report, REPORT_LIMIT, False)),
            stdout=read(out, TAIL_LIMIT, True),
            stderr=read(err, TAIL_LIMIT, True),
        )
        rest_s -= own.seconds
        found.append(own if number in ended else _broken(whole, own))
    return tuple(found)


def _broken(whole: Outcome, own: Outcome) -> Outcome:
    """The one in which the process ended, with the process's end as its own."""
    if whole.exit_code == 1 and _OVER in own.stderr:
        return replace(own, exit_code=None, timed_out=True, note="timed out")
    return replace(
        own, exit_code=whole.exit_code, signal=whole.signal, timed_out=whole.timed_out, note=whole.note
    )


def _number(value: Json) -> int:
    return value if isinstance(value, int) else -1


def _time(line: dict[str, Json]) -> float:
    value = line.get("t")
    return float(value) if isinstance(value, (int, float)) else 0.0
