"""Records of kills for memory, and host memory that rises."""

from __future__ import annotations

import pytest

from torchdoctor.extract import host_memory, of_event
from torchdoctor.model import Event, EventKind, FactValue, Transcript


def extract(lines: list[str], at: int) -> dict[str, FactValue]:
    events = tuple(
        Event(number, EventKind.LOG, line, "run.log", number + 1, number + 1)
        for number, line in enumerate(lines)
    )
    found = list(of_event("host_memory", events[at], Transcript(("run.log",), events)))
    assert {fact.name for fact in found} <= set(host_memory.FACTS)
    return {fact.name.removeprefix("host_memory."): fact.value for fact in found}


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("Out of memory: Killed process 93311 (python) total-vm:428113344kB", True),
        ("Out of memory: Kill process 812 (java) score 901 or sacrifice child", False),
        ("Memory cgroup out of memory: Killed process 1211 (pt_data_worker) total-vm:2kB", True),
        ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=pt_main_thread,pid=4,uid=0", True),
    ],
)
def test_the_victim(line: str, ours: bool) -> None:
    found = extract([line], 0)
    assert (found["kill_recorded"], found["ours"]) == (True, ours)


def test_a_record_anywhere_counts_for_every_event() -> None:
    lines = [
        "DataLoader worker (pid 3) is killed by signal: Killed.",
        "$ dmesg",
        "x oom-kill:constraint=A,task=python,pid=3",
    ]
    assert extract(lines, 0)["kill_recorded"] is True


def test_without_a_record_nothing_is_known() -> None:
    assert "kill_recorded" not in extract(["Killed"], 0)


@pytest.mark.parametrize(
    ("lines", "grew"),
    [
        ([f"[worker 0] step {n} rss {3 + 2 * n} GiB" for n in range(6)], True),
        ([f"epoch {n} host mem {30 + 25 * n}.0 GB" for n in range(5)], True),
        ([f"step {n} RAM: {58 + n % 2}.3/503.4 GB" for n in range(8)], False),
        (["rss 3 GiB", "rss 9 GiB"], None),
        ([f"step {n} gpu mem {n} GB" for n in range(1, 9)], None),
    ],
)
def test_growth(lines: list[str], grew: bool | None) -> None:
    assert extract(lines, len(lines) - 1).get("grew") is grew
