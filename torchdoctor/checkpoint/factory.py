"""Names and shapes that a model wants: of ``MODULE:FACTORY`` in a child of the user's interpreter."""

from __future__ import annotations

import os
import re
from typing import Final

from torchdoctor.model import TorchdoctorError
from torchdoctor.probes.machine import Command
from torchdoctor.probes.machine import Outcome as Ended
from torchdoctor.probes.spawn import REPORT_LIMIT

PROGRAM: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "call_factory.py")
LIMIT_S: Final = 120.0


class FactoryError(TorchdoctorError):
    """What was named is no factory, or gives no model; the text says what it did instead."""


def is_factory(name: str) -> bool:
    """``MODULE:FACTORY`` or ``FILE.py:FACTORY``, and no file that is there."""
    where, _, attribute = name.rpartition(":")
    return (
        bool(where)
        and not os.path.exists(name)
        and bool(re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", attribute))
    )


def shapes_of(name: str, python: str, limit_s: float = LIMIT_S) -> dict[str, tuple[int, ...]]:
    """Call the factory in a child of ``python``; blocks up to the limit, then ends the child and its group.

    Raises FactoryError when it raises, hangs, crashes or gives no model.
    """
    from torchdoctor.probes.live import LiveMachine

    command = Command(
        "factory", (python, PROGRAM, name, str(limit_s)), limit_s + 3.0, reports=True, named=True
    )
    machine = LiveMachine()
    try:
        return _read(name, python, machine.finish(command))
    finally:
        machine.close()


def _read(name: str, python: str, ended: Ended) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    total = -1
    for line in ended.lines:
        if "mistake" in line:
            raise FactoryError(f"{name}: {line['mistake']}")
        if "error" in line:
            at = line.get("at")
            places = f" (at {', '.join(map(str, at))})" if isinstance(at, list) and at else ""
            raise FactoryError(f"{name} raises: {str(line['error'])[:1000]}{places}")
        rows = line.get("rows")
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list) and len(row) == 3 and isinstance(row[1], list):
                shapes[str(row[0])] = tuple(size for size in row[1] if isinstance(size, int))
        if isinstance(line.get("names"), int):
            total = int(str(line["names"]))
    if total >= 0 and shapes:
        return shapes
    if ended.start_error:
        raise FactoryError(
            f"{python} does not start: {ended.start_error}; name another interpreter with --python"
        )
    if shapes:
        raise FactoryError(
            f"{name}: its names and shapes take more than {REPORT_LIMIT >> 20} MiB, more than is read"
        )
    if ended.timed_out or "Timeout (" in ended.stderr:
        raise FactoryError(f"{name} did not end within {ended.seconds:.0f} s, and was ended")
    if ended.signal is not None:
        raise FactoryError(f"{name} crashes the interpreter (signal {ended.signal})")
    last = ended.stderr.strip().rpartition("\n")[2][:300]
    raise FactoryError(f"{name} ends the process with code {ended.exit_code}" + (f": {last}" if last else ""))
