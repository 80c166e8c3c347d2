"""Several processes share many inputs: the same answers in the same order, whatever becomes of a process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from case_files import case_text

from torchdoctor.cli.main import main
from torchdoctor.engine.jobs import WorkerError, in_order

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def lost(name: str, reason: str) -> str:
    return f"{name}: {reason}"


def test_answers_come_in_order_and_processes_differ() -> None:
    names = [str(number) for number in range(50)]
    answers = list(in_order(names, lambda name: (name, os.getpid()), 3, lambda *_: ("", 0)))
    assert [name for name, _ in answers] == names
    assert len({pid for _, pid in answers} - {os.getpid()}) == 3


def test_one_that_is_killed_loses_one_input() -> None:
    def work(name: str) -> str:
        if name in "37":
            os.kill(os.getpid(), signal.SIGKILL)
        return name * 300_000  # more than fits into a pipe

    answers = list(in_order(list("0123456789"), work, 2, lost))
    assert [answer[:45] for answer in answers if ":" in answer] == [
        f"{name}: the process that read it was ended by signal 9"[:45] for name in "37"
    ]
    assert "".join(answer[0] for answer in answers) == "0123456789"


def test_a_fault_of_ours_is_raised_and_nothing_is_left_running() -> None:
    with pytest.raises(WorkerError, match="a: ZeroDivisionError"):
        list(in_order(["a", "b"], lambda _: 1 / 0, 2, lambda *_: 0.0))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_each_file_by_several_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(7):
        folder = tmp_path / f"node{number % 2}"
        folder.mkdir(exist_ok=True)
        log = case_text("cuda-assert-label-range/h200x2-label-rank0") if number % 3 else "epoch 1\n"
        (folder / f"{number}.log").write_text(log)
    told = []
    for jobs in ("1", "3"):
        call = [
            "explain",
            "--offline",
            "--each",
            "--jobs",
            jobs,
            "--format",
            "jsonl",
            str(tmp_path),
            "missing",
        ]
        assert main(call) == 2
        told.append(capsys.readouterr())
    assert told[0] == told[1]
    assert len(told[0].out.splitlines()) == 8
    assert "missing: no such file" in told[0].err


@pytest.mark.parametrize("files", [["--each", "-"], ["train.log"]])
def test_jobs_need_files_of_each(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--jobs", "2", *files]) == 2
    assert "--jobs shares the files of --each" in capsys.readouterr().err
