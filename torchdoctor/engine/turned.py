"""Line numbers as they stand in a text that was read in another order."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from torchdoctor.model import Report
from torchdoctor.records import Record, replace

T = TypeVar("T")


def as_it_stands(report: Report, orders: tuple[tuple[str, tuple[int, ...]], ...]) -> Report:
    """The report with the numbers that the lines have in their files."""
    return _told(report, dict(orders))


def _told(value: T, orders: dict[str, tuple[int, ...]]) -> T:
    if isinstance(value, tuple):
        return cast("T", tuple(_told(one, orders) for one in value))
    if isinstance(value, str):
        return cast("T", _place(value, orders)) if value.startswith("text:") else value
    if not isinstance(value, Record):
        return value
    changes: dict[str, object] = {}
    fields = type(value)._fields
    for name in fields:
        old = getattr(value, name)
        new = _told(old, orders)
        if new is not old:
            changes[name] = new
    order = orders.get(getattr(value, "file", None) or "")
    if order is not None:
        for name in ("line", "end_line"):
            if name in fields:
                changes[name] = _number(getattr(value, name), order)
    return cast("T", replace(cast("Any", value), **changes)) if changes else value


def _number(line: int | None, order: tuple[int, ...]) -> int | None:
    return order[line - 1] if line is not None and 0 < line <= len(order) else line


def _place(text: str, orders: dict[str, tuple[int, ...]]) -> str:
    source, _, line = text.removeprefix("text:").rpartition(":")
    order = orders.get(source)
    return f"text:{source}:{_number(int(line), order)}" if order is not None and line.isdecimal() else text
