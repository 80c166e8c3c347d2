"""What a live process waits for: ``examine`` looks twice from outside and says it as a report."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.model import Report


def examine(pids: Sequence[int], interval_s: float = 1.5) -> Report:
    """What these processes, and all that descend from them, wait for. Blocks for some three seconds.

    Nothing is stopped, written or run in a process. Raises ``targets.TargetError`` when none is there.
    """
    from torchdoctor.hang import report, targets

    return report.examine(targets.of_pids(pids), list(pids), interval_s)
