"""The active set, in a process of its own: self-tests of the job's GPUs, what fails is done a second time.

Called with a JSON object of python, tier, fault and limit_s, and the path of the file for the results.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from torchdoctor.model import CheckResult, NotChecked, Report, Verdict
from torchdoctor.probes.descendants import die_with_parent
from torchdoctor.selftest.registry import Level, find
from torchdoctor.selftest.session import Progress, Request, run

LABEL = "gate-active"
NOW = "now"  # the checks that run, in a line of its own
_QUICK = ("gemm-exact", "h2d", "dataloader")
_STANDARD = (*_QUICK, "bit-equal", "bit-equal-hot", "nan", "d2h", "hbm", "gemm-rate", "p2p", "nccl")
CHECKS = {"quick": _QUICK, "standard": _STANDARD, "deep": (*_STANDARD, "memory", "jitter")}
SPEEDS = frozenset(("h2d", "d2h", "hbm", "gemm-rate", "p2p", "jitter"))
_WITHOUT_GPU = ("dataloader",)
_COMPUTED = ("gemm-exact", "bit-equal", "bit-equal-hot", "nan", "memory")
_IDLE_S = 10.0
# the longest limit of a check, stretched or shortened to the time that there is
_LONGEST_S = 120.0
Show = Callable[[Progress], None] | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What the supervisor asks for. On a node of processors alone ``device`` is cpu, and workers are all."""

    python: str
    tier: str
    limit_s: float
    fault: str = ""
    device: str = "cuda"


def measure(wish: Wish, show: Show = None) -> tuple[Report, Report | None]:
    """All checks of the tier, and a second run of those that failed or were slow; None when none was.

    ``show`` is told what runs.
    """
    begun = time.monotonic()
    names = CHECKS[wish.tier] if wish.device == "cuda" else _WITHOUT_GPU
    first = _run(wish, names, wish.limit_s, show)
    again = tuple(
        dict.fromkeys(
            name
            for one in first.checks
            if (name := one.id.partition("@")[0]) and one.verdict in (Verdict.FAIL, Verdict.WARN)
            # wrong is wrong; whether it comes and goes helps whoever has to find out why
            if name in SPEEDS or (one.verdict is Verdict.FAIL and name in _COMPUTED)
        )
    )
    left_s = wish.limit_s - (time.monotonic() - begun)
    if not again or left_s < 4.0:
        return first, None
    if SPEEDS & set(again):
        time.sleep(min(_IDLE_S, left_s / 3))
    return first, _run(wish, again, wish.limit_s - (time.monotonic() - begun), show)


def _run(wish: Wish, names: tuple[str, ...], limit_s: float, show: Show) -> Report:
    checks = tuple(check for check in (find(name) for name in names) if check is not None)
    scale = max(0.05, min(1.0, limit_s / _LONGEST_S))
    level = Level(wish.tier)  # deep: products under heat, patterns over nearly all of the free memory
    return run(Request(wish.python, wish.device, checks, level, limit_scale=scale, fault=wish.fault), show)


def lines(first: Report, second: Report | None) -> list[dict[str, object]]:
    """Results as the supervisor reads them: an object for each check, and for each that was not made."""
    found: list[dict[str, object]] = []
    again = {one.id: one for one in second.checks} if second is not None else {}
    for one in first.checks:
        entry = _result(one)
        if one.id in again and one.verdict in (Verdict.FAIL, Verdict.WARN):
            entry["again"] = _result(again[one.id])
        found.append(entry)
    found += [_untold(one) for one in first.not_checked]
    found.append({"done": True, "notes": list(first.notes)})
    return found


def _result(one: CheckResult) -> dict[str, object]:
    return {
        "check": one.id,
        "verdict": one.verdict.value,
        "title": one.title,
        "blame": one.blame.value if one.blame else None,
        "observed": one.observed or one.reason or "",
        "expected": one.expected or "",
        "source": one.threshold_source or "",
        "evidence": [item.text for item in one.evidence],
        "repeat": one.action or "",
    }


def _untold(one: NotChecked) -> dict[str, object]:
    return {"untold": one.id, "reason": one.reason}


def main() -> None:
    die_with_parent()
    wish = Wish(**json.loads(sys.argv[1]))
    with open(sys.argv[2], "a", encoding="utf-8", buffering=1) as stream:
        running: list[str] = []

        def show(progress: Progress) -> None:
            if running != list(progress.running):
                running[:] = progress.running
                stream.write(json.dumps({NOW: running}) + "\n")

        first, second = measure(wish, show)
        stream.writelines(json.dumps(line) + "\n" for line in lines(first, second))


if __name__ == "__main__":
    main()
