"""Tables of ps and free, and the rules that read them."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import load
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.extract import of_event
from torchdoctor.intake import read_text

STOPPED = """\
RuntimeError: CUDA error: out of memory
$ ps aux
USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.0   2484  1280 ?        Ss   09:01   0:00 /bin/sh
u          41273 12.0  3.1 98213404 8123404 pts/2 Tl  09:14   4:11 python train.py --bs 8
u          41991  0.0  0.0  10072  3456 pts/2    R+   09:40   0:00 ps aux
"""
FREE = """\
              total        used        free      shared  buff/cache   available
Mem:          251Gi       247Gi       1.1Gi        12Gi       2.9Gi       1.9Gi
Swap:            0B          0B          0B
"""


def rules_of(text: str) -> list[str]:
    return [item.rule for item in diagnose(read_text(text), FactBook(None), load()).diagnoses]


def test_a_stopped_process_keeps_its_memory() -> None:
    transcript = read_text(STOPPED)
    head = next(event for event in transcript.events if "%MEM" in event.text)
    assert [fact.value for fact in of_event("ps", head, transcript)] == [41273]
    assert "gpu-memory-held" in rules_of(STOPPED)


def test_a_running_process_is_none() -> None:
    transcript = read_text(STOPPED.replace(" Tl ", " Sl "))
    head = next(event for event in transcript.events if "%MEM" in event.text)
    assert list(of_event("ps", head, transcript)) == []


def test_what_free_left() -> None:
    transcript = read_text(FREE)
    (fact,) = of_event("free", transcript.events[0], transcript)
    assert fact.value == pytest.approx(1.9 / 251)
    killed = f"{FREE}epoch 3 step 20 loss 0.4\n[1]+  Killed                  ./run.sh\n"
    assert rules_of(killed) == ["host-oom-killed"]


@pytest.mark.parametrize(
    "row", ["Mem: x y z 1 2 3", "Mem: 1 2", f"Mem: {'9' * 400} 1 1 1 1 1", "Swap: 1 2 3 4 5 6"]
)
def test_rows_that_are_none(row: str) -> None:
    transcript = read_text(FREE.split("\n")[0] + "\n" + row)
    assert list(of_event("free", transcript.events[0], transcript)) == []
