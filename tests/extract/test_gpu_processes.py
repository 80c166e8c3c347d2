"""Rows of nvidia-smi's process table."""

from __future__ import annotations

import pytest

from torchdoctor.extract import of_event
from torchdoctor.extract.tools import gpu_processes
from torchdoctor.model import Event, EventKind, FactValue, Transcript

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


def extract(table: str, row: int) -> dict[str, FactValue]:
    events = tuple(
        Event(number, EventKind.LOG, line, "run.log", number + 1, number + 1)
        for number, line in enumerate(table.splitlines())
    )
    found = list(of_event("process_table", events[row], Transcript(("run.log",), events)))
    assert {fact.name for fact in found} <= set(gpu_processes.FACTS)
    return {fact.name.removeprefix("process_table."): fact.value for fact in found}


@pytest.mark.parametrize(
    ("table", "strays"),
    [(OLD, 1), (WITH_INSTANCES, 1), (ONE_MODEL_ON_ALL, 0), (GPUSTAT, 1), (CHECKPOINTS, 2), (TWO_EACH, 0)],
)
def test_strays_on_gpu_0(table: str, strays: int) -> None:
    assert extract(table, 0)["strays_on_gpu0"] == strays


def test_a_row() -> None:
    assert extract(WITH_INSTANCES, 1)["gpu"] == 0
    (row,) = gpu_processes.rows(WITH_INSTANCES.splitlines()[1])
    assert row == gpu_processes.Row(0, 811021, 514 * 1024**2)


@pytest.mark.parametrize(
    "line", ["|  No running processes found |", "memory: 9877 MiB", "| 27%   33C | 10982MiB / 11019MiB |"]
)
def test_other_lines_give_nothing(line: str) -> None:
    assert extract(line, 0) == {}
