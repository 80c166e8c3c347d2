"""One failure out of a report in JSON: what statistics are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

_LONGEST = 200  # characters of a name
_UUID = re.compile(r"\bGPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_BUS = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?\b", re.IGNORECASE)


class Failure(NamedTuple):
    """What an incident says of itself; None and () for what it does not. ``week`` counts from year 1."""

    outcome: str
    cause: str | None
    title: str
    week: int | None
    node: str | None
    rank: int | None
    gpus: tuple[str, ...]
    frame: str | None


def failures(report: dict[str, Any]) -> Iterator[Failure]:
    """The incidents of a report, one where it does not list several. Raises ValueError when it is none."""
    if not str(report.get("schema", "")).startswith("torchdoctor.report/1"):
        raise ValueError("no report of torchdoctor")
    try:
        for incident in report.get("incidents") or (report,):
            yield _failure(incident, report)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise ValueError("no report of torchdoctor") from None


def _failure(incident: dict[str, Any], report: dict[str, Any]) -> Failure:
    outcome = incident["outcome"]
    first: dict[str, Any] = incident.get("first_failure") or {}
    diagnosis: dict[str, Any] = {}
    cause, title = None, ""
    suspect: dict[str, Any] = incident.get("suspect") or {}
    if outcome == "diagnosed":
        diagnosis = incident["diagnoses"][0]
        cause, title = str(diagnosis["rule"]), str(diagnosis["title"])
    elif outcome == "unrecognised":
        cause = f"unrecognised: {str(suspect.get('type') or 'no exception')[:_LONGEST]}"
    elif not isinstance(outcome, str):
        raise TypeError
    rank = first.get("rank")
    if not isinstance(rank, int):
        rank = diagnosis.get("rank", suspect.get("rank"))
    node = first.get("host")
    return Failure(
        outcome, cause, title[:_LONGEST], _week_of(incident, report, first),
        node[:_LONGEST] if isinstance(node, str) else None, rank if isinstance(rank, int) else None,
        _gpus(diagnosis), _frame(diagnosis.get("frame") or suspect.get("frame")),
    )  # fmt: skip


def _week_of(incident: dict[str, Any], report: dict[str, Any], first: dict[str, Any]) -> int | None:
    times = [first.get("time"), *(one.get("time") for one in report.get("timeline") or ())]
    times += [one.get("started") for one in report.get("runs") or ()]
    return next(
        (week for time in times if isinstance(time, str) and (week := week_of(time[:10])) is not None), None
    )


@lru_cache(maxsize=4096)
def week_of(day: str) -> int | None:
    """The number of the week of a day, ``2026-11-29``, from Monday on; None where the year is missing."""
    try:
        return (date.fromisoformat(day).toordinal() - 1) // 7
    except ValueError:
        return None


def monday(week: int) -> str:
    """The first day of a week."""
    return date.fromordinal(week * 7 + 1).isoformat()


def _gpus(diagnosis: dict[str, Any]) -> tuple[str, ...]:
    """The GPUs that the evidence names, by UUID where it has one, else by bus."""
    text = "\n".join(str(one["text"])[:4000] for one in diagnosis.get("evidence") or ())
    found = _UUID.findall(text) or [bus.lower() for bus in _BUS.findall(text)]
    return tuple(dict.fromkeys(found))


def _frame(frame: dict[str, Any] | None) -> str | None:
    if not frame:
        return None
    line = f":{frame['line']}" if frame.get("line") else ""
    inside = f" in {frame['function']}" if frame.get("function") else ""
    return f"{frame['file']}{line}{inside}"[-_LONGEST:]
