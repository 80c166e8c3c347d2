"""A hang of four ranks by their stack dumps, in every form in which such dumps come."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.model import Report, Standing

SITE = "/opt/venv/lib/python3.11/site-packages/"
LIBRARY = "/usr/lib/python3.11/"
OWN = "/home/u/proj/"
Stack = list[
    tuple[str, str, str, int]
]  # function, file as py-spy prints it, whole file, line; innermost first


def torch(function: str, file: str, line: int) -> tuple[str, str, str, int]:
    return function, f"torch/{file}", f"{SITE}torch/{file}", line


def python(function: str, file: str, line: int) -> tuple[str, str, str, int]:
    return function, file, LIBRARY + file, line


def own(function: str, file: str, line: int) -> tuple[str, str, str, int]:
    return function, file, OWN + file, line


MAIN = [own("main", "train.py", 31), own("<module>", "train.py", 80)]
WRAPPER = torch("wrapper", "distributed/c10d_logger.py", 79)
IDLE = [python("wait", "threading.py", 324), ("run", "tqdm/_monitor.py", SITE + "tqdm/_monitor.py", 60)]
WAITING: dict[str, Stack] = {
    "all_reduce": [
        torch("all_reduce", "distributed/distributed_c10d.py", 2806),
        WRAPPER,
        own("sync", "train.py", 55),
        *MAIN,
    ],
    "backward": [
        torch("_engine_run_backward", "autograd/graph.py", 825),
        torch("backward", "autograd/__init__.py", 347),
        torch("backward", "_tensor.py", 581),
        own("step", "train.py", 44),
        *MAIN,
    ],
}
NEXT = [
    torch("_try_get_data", "utils/data/dataloader.py", 1243),
    torch("_get_data", "utils/data/dataloader.py", 1402),
    torch("__next__", "utils/data/dataloader.py", 701),
    own("epoch", "train.py", 40),
    *MAIN,
]
ODD: dict[str, tuple[Stack, str, str, int]] = {
    "own code": (
        [own("tokenize", "prepare.py", 57), own("build", "prepare.py", 20), *MAIN],
        "dist-timeout-long-rank0-work",
        "prepare.py",
        57,
    ),
    "another library": (
        [
            ("read", "pyarrow/parquet/core.py", SITE + "pyarrow/parquet/core.py", 1400),
            own("build", "prepare.py", 20),
            *MAIN,
        ],
        "dist-timeout-long-rank0-work",
        "prepare.py",
        20,
    ),
    "download": (
        [
            python("readinto", "socket.py", 706),
            python("read", "http/client.py", 500),
            own("get", "fetch.py", 12),
            *MAIN,
        ],
        "dist-timeout-long-rank0-work",
        "fetch.py",
        12,
    ),
    "build lock": (
        [
            torch("wait", "utils/file_baton.py", 49),
            torch("load", "utils/cpp_extension.py", 1314),
            own("ops", "ops.py", 7),
            *MAIN,
        ],
        "extension-stale-lock",
        "ops.py",
        7,
    ),
    "workers": (
        [python("select", "selectors.py", 415), python("_poll", "multiprocessing/connection.py", 440), *NEXT],
        "dataloader-hang",
        "train.py",
        40,
    ),
    "pin thread": (
        [python("wait", "threading.py", 324), python("get", "queue.py", 180), *NEXT],
        "dataloader-hang",
        "train.py",
        40,
    ),
    "barrier": (
        [
            torch("barrier", "distributed/distributed_c10d.py", 4159),
            WRAPPER,
            own("save", "train.py", 66),
            *MAIN,
        ],
        "collective-rank-branch",
        "train.py",
        66,
    ),
}


def spy(stack: Stack, native: bool = False, values: bool = False) -> str:
    lines = ["Process 4100: python -u train.py", "Python v3.11.4 (/usr/bin/python3.11)", ""]
    lines.append('Thread 4100 (idle): "MainThread"')
    if native:
        lines += ["    read (libc.so.6)", "    __GI___poll (poll.c:29)"]
        lines += [
            "    arrow::io::ReadableFile::DoRead(long, void*) (libarrow.so.1400)",
            "    0x7f3b2c1d (a.out)",
        ]
    for function, file, _, line in stack:
        lines.append(f"    {function} ({file}:{line})")
        if values:
            lines += ["        Arguments:", "            self: <Trainer at 0x7f3b>", "        Locals:"]
            lines += ['            text: "a word (train.py:12)"', "            step (barrier.py:3)"]
    if native:
        lines += ["    _PyEval_EvalFrameDefault (python3.11)", "    __libc_start_main_impl (libc.so.6)"]
    lines += [
        'Thread 4150 (idle): "Thread-1"',
        *(f"    {name} ({file}:{line})" for name, file, _, line in IDLE),
    ]
    return "\n".join(lines) + "\n"


def spy_json(stack: Stack) -> str:
    return json.dumps(
        [
            {
                "pid": 4100,
                "thread_id": 1400 + number,
                "thread_name": name,
                "os_thread_id": 4100 + number,
                "active": False,
                "owns_gil": False,
                "frames": [
                    {
                        "name": function,
                        "filename": full,
                        "module": None,
                        "short_filename": short,
                        "line": line,
                        "locals": None,
                    }
                    for function, short, full, line in frames
                ],
            }
            for number, (name, frames) in enumerate((("MainThread", stack), ("Thread-1", IDLE)))
        ]
    )


def plain(stack: Stack, comma: str = "") -> list[str]:
    return [f'  File "{full}", line {line}{comma} in {function}' for function, _, full, line in stack]


def faulthandler(stack: Stack) -> str:
    lines = ["Timeout (0:05:00)!", "Thread 0x00007f96e2aa1700 (most recent call first):", *plain(IDLE), ""]
    return "\n".join([*lines, "Thread 0x00007f96e3402b80 (most recent call first):", *plain(stack)]) + "\n"


def one_thread(stack: Stack) -> str:
    return "\n".join(["Stack (most recent call first):", *plain(stack)]) + "\n"


def gdb(stack: Stack) -> str:
    lines = [
        'Thread 1 (Thread 0x7f96e3402b80 (LWP 4100) "python"):',
        "#0  0x00007f96e5b in poll () from libc.so.6",
    ]
    for number, (function, _, full, line) in enumerate(stack, 1):
        lines.append(
            f"#{number}  0x000055d in _PyEval_EvalFrameDefault (f=Frame 0x55d2c, for file {full}, "
            f"line {line}, in {function} (self=<X at remote 0x7f>), throwflag=0) at ../Python/ceval.c:4277"
        )
    return "\n".join(lines) + "\n"


def py_bt(stack: Stack) -> str:
    lines = ["Traceback (most recent call first):"]
    for one in plain(stack, ","):
        lines += [one, "    value = call()"]
    return "\n".join(lines) + "\n"


FORMS: dict[str, Callable[[Stack], str]] = {
    "py-spy": spy,
    "py-spy --native": lambda stack: spy(stack, native=True),
    "py-spy --locals": lambda stack: spy(stack, values=True),
    "py-spy --native --locals": lambda stack: spy(stack, True, True),
    "py-spy --json": spy_json,
    "faulthandler": faulthandler,
    "faulthandler, one thread": one_thread,
    "gdb": gdb,
    "py-bt": py_bt,
}


def report_of(folder: Path, stacks: dict[int, str], layout: str, rules: RuleSet) -> Report:
    if layout == "one file":
        text = "".join(f"===== rank {rank} =====\n{text}\n" for rank, text in stacks.items())
        (folder / "dumps.txt").write_text(text)
    elif layout == "tail":
        text = "".join(f"==> stacks/rank_{rank}.txt <==\n{text}\n" for rank, text in stacks.items())
        (folder / "all.txt").write_text(text)
    else:
        for rank, text in stacks.items():
            (folder / f"stack_rank{rank}.{'json' if text[0] == '[' else 'txt'}").write_text(text)
    return explain([str(folder)], FactBook(), rules).report


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("form", FORMS)
def test_the_odd_one_of_four(form: str, odd: str, tmp_path: Path, rules: RuleSet) -> None:
    stack, rule, file, line = ODD[odd]
    for number, others in enumerate(WAITING.values()):
        for layout in ("files", "one file", "tail"):
            if layout != "files" and form == "py-spy --json":
                continue
            folder = tmp_path / f"{number} {layout}"
            folder.mkdir()
            stacks = {rank: FORMS[form](stack if rank == 2 else others) for rank in range(4)}
            report = report_of(folder, stacks, layout, rules)
            assert report.diagnoses[0].rule == rule
            frame, first = report.diagnoses[0].frame, report.first_failure
            assert (frame.file.rpartition("/")[2], frame.line) == (file, line)
            assert (first.rank, first.tie) == (2, ())


def test_a_barrier_while_others_average_gradients_may_be_uneven_batches(
    tmp_path: Path, rules: RuleSet
) -> None:
    stacks = {rank: spy(ODD["barrier"][0] if rank == 2 else WAITING["backward"]) for rank in range(4)}
    report = report_of(tmp_path, stacks, "files", rules)
    assert [one.rule for one in report.diagnoses[:2]] == ["collective-rank-branch", "ddp-uneven-inputs"]
    assert {one.standing for one in report.diagnoses[:2]} == {Standing.POSSIBLE}


@pytest.mark.parametrize("odd", ["build lock", "workers"])
@pytest.mark.parametrize("form", FORMS)
def test_one_dump_alone_names_what_it_waits_for(form: str, odd: str, tmp_path: Path, rules: RuleSet) -> None:
    stack, rule, file, line = ODD[odd]
    report = report_of(tmp_path, {2: FORMS[form](stack)}, "files", rules)
    assert report.diagnoses[0].rule == rule
    frame = report.diagnoses[0].frame
    assert (frame.file.rpartition("/")[2], frame.line) == (file, line)


def test_all_ranks_in_the_same_call_are_no_branch(tmp_path: Path, rules: RuleSet) -> None:
    for name, stack in WAITING.items():
        folder = tmp_path / name
        folder.mkdir()
        report = report_of(folder, {rank: spy(stack) for rank in range(4)}, "files", rules)
        assert report.diagnoses == ()
