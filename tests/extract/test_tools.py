"""Tables that tools print: nvidia-smi's processes, ps, free; and the rules that read them."""

from __future__ import annotations

import pytest
from extracted import values

from torchdoctor.catalog import load
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.extract import of_event
from torchdoctor.extract.tools import gpu_processes
from torchdoctor.intake import read_text

OLD = """\
|    0     62250      C   /usr/bin/python3.6                          4903MiB |
|    0     62251      C   /usr/bin/python3.6                           725MiB |
|    1     62251      C   /usr/bin/python3.6                          4903MiB |"""

WITH_INSTANCES = """\
|    0   N/A  N/A    811020      C   ...nda3/envs/torch2/bin/python3.10    38120MiB |
|    0   N/A  N/A    811021    C+G   ...nda3/envs/torch2/bin/python3.10      514MiB |
|    1   N/A  N/A    811021      C   ...nda3/envs/torch2/bin/python3.10    38120MiB |"""

ONE_MODEL_ON_ALL = """\
|    0   N/A  N/A     41120      C   python                          18022MiB |
|    1   N/A  N/A     41120      C   python                          20114MiB |"""

CHECKPOINTS = """\
|    0   N/A  N/A     51920      C   .../venvs/sr/bin/python          3281MiB |
|    0   N/A  N/A     51921      C   .../venvs/sr/bin/python          2514MiB |
|    0   N/A  N/A     51922      C   .../venvs/sr/bin/python          2710MiB |
|    1   N/A  N/A     51921      C   .../venvs/sr/bin/python          1405MiB |
|    2   N/A  N/A     51922      C   .../venvs/sr/bin/python          1405MiB |"""

# pipelines of two cards each
TWO_EACH = """\
|    0   N/A  N/A       100      C   python                          18022MiB |
|    1   N/A  N/A       100      C   python                          17001MiB |
|    0   N/A  N/A       101      C   python                          18044MiB |
|    1   N/A  N/A       101      C   python                          16900MiB |"""

GPUSTAT = """\
[0] Tesla V100 | 51'C,  98 % | 13102 / 16160 MB | lin:python/9101(10911M) lin:python/9102(729M)
[1] Tesla V100 | 50'C,  99 % | 10915 / 16160 MB | lin:python/9102(10911M)"""


@pytest.mark.parametrize(
    ("table", "strays"),
    [(OLD, 1), (WITH_INSTANCES, 1), (ONE_MODEL_ON_ALL, 0), (GPUSTAT, 1), (CHECKPOINTS, 2), (TWO_EACH, 0)],
)
def test_strays_on_gpu_0(table: str, strays: int) -> None:
    assert values("process_table", *table.splitlines(), at=0)["strays_on_gpu0"] == strays


def test_a_row() -> None:
    assert values("process_table", *WITH_INSTANCES.splitlines(), at=1)["gpu"] == 0
    (row,) = gpu_processes.rows(WITH_INSTANCES.splitlines()[1])
    assert row == gpu_processes.Row(0, 811021, 514 * 1024**2)


@pytest.mark.parametrize(
    "line", ["|  No running processes found |", "memory: 9877 MiB", "| 27%   33C | 10982MiB / 11019MiB |"]
)
def test_other_lines_give_nothing(line: str) -> None:
    assert values("process_table", *line.splitlines(), at=0) == {}


# Tables of ps and free, and the rules that read them
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
