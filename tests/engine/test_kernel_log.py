"""The kernel's log beside a job's, and jobs of one file: what belongs to the job, to which rank."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from case_files import case_text
from printed import Printed

from torchdoctor import catalog
from torchdoctor.cli.main import main
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.jobs import WorkerError, in_order
from torchdoctor.intake import read, read_text
from torchdoctor.model import Outcome, Report
from torchdoctor.xid_codes import CLASSES, codes

COMM = (
    "2026-11-28 03:10:01 {host}:{pid}:4800 [{gpu}] NCCL INFO comm 0x55aa rank {rank} nranks 4 cudaDev {gpu} "
    "nvmlDev {gpu} busId {bus} commId 0x1 - Init COMPLETE\n"
)
JOB = (
    COMM.format(host="gpu17", pid=4710, gpu=0, rank=0, bus="1b000")
    + COMM.format(host="gpu17", pid=4711, gpu=1, rank=1, bus="9d000")
    + COMM.format(host="gpu18", pid=4710, gpu=0, rank=2, bus="1b000")
    + COMM.format(host="gpu18", pid=4713, gpu=1, rank=3, bus="9d000")
    + """\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/srv/exp/train.py", line 33, in <module>
[rank3]:     loss.backward()
[rank3]: torch.AcceleratorError: CUDA error: unspecified launch failure
[rank0]:[E1128 03:22:40.123456789 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation \
timeout: WorkNCCL(SeqNum=881, OpType=ALLREDUCE, NumelIn=655360, NumelOut=655360, Timeout(ms)=600000) ran for \
600062 milliseconds before timing out.
"""
)


def report(tmp_path: Path, kernel: str, job: str = JOB) -> Report:
    (tmp_path / "job.txt").write_text(job, encoding="utf-8")
    (tmp_path / "kernel.txt").write_text(kernel, encoding="utf-8")
    transcript = read([str(tmp_path / "job.txt"), str(tmp_path / "kernel.txt")])
    return diagnose(transcript, FactBook(None), catalog.load())


@pytest.mark.parametrize(
    ("kernel", "rule", "rank"),
    [
        # the node and the card name the rank
        ("2026-11-28T03:12:40Z gpu18 kernel: NVRM: Xid (PCI:0000:9d:00): 79, gone", "driver-gpu-lost", 3),
        ("Nov 28 03:12:40 gpu17 kernel: NVRM: Xid (PCI:0000:9d:00): 79, gone", "driver-gpu-lost", 1),
        (
            "Nov 28 03:12:40 gpu18 kernel: NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.",
            "driver-gpu-lost", 2,
        ),
        ("[Sat Nov 28 03:12:40 2026] NVRM: Xid (PCI:0000:9d:00): 79, gone", "driver-gpu-lost", None),
        # without a node two cards have the address; the process tells them apart
        (
            "[Sat Nov 28 03:12:40 2026] NVRM: Xid (PCI:0000:9d:00): 95, pid=4713, name=python, Uncontained",
            "ecc-uncorrectable", 3,
        ),
        ("[1234.5] NVRM: Xid (PCI:0000:9d:00): 48, pid=4713, name=python, DBE", "ecc-uncorrectable", 3),
    ],
)  # fmt: skip
def test_an_error_of_the_jobs_own_gpu_is_the_cause_and_has_its_rank(
    kernel: str, rule: str, rank: int | None, tmp_path: Path
) -> None:
    found = report(tmp_path, kernel + "\n")
    assert found.diagnoses[0].rule == rule
    assert found.diagnoses[0].rank == rank
    assert "nccl-timeout" in {link.rule for link in found.diagnoses[0].leads_to}


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        ("[Fri Nov 20 01:00:00 2026] NVRM: Xid (PCI:0000:9d:00): 79, gone", "before this job began"),
        ("[Mon Nov 30 09:00:00 2026] NVRM: Xid (PCI:0000:9d:00): 79, gone", "after this job had ended"),
        ("Nov 28 03:12:40 gpu99 kernel: NVRM: Xid (PCI:0000:9d:00): 79, gone", "where this job did not run"),
        (
            "[Sat Nov 28 03:12:40 2026] NVRM: Xid (PCI:0000:3b:00): 48, DBE",
            "the GPU at 0000:3b:00, which this job did not use",
        ),
        (
            "[Sat Nov 28 03:12:40 2026] NVRM: Xid (PCI:0001:9d:00): 48, DBE",
            "the GPU at 0001:9d:00, which this job did not use",
        ),
    ],
)  # fmt: skip
def test_what_others_did_is_set_aside_and_said(kernel: str, why: str, tmp_path: Path) -> None:
    found = report(tmp_path, kernel + "\n")
    assert found.diagnoses[0].rule == "cuda-launch-failure"
    assert any("kernel.txt, line 1" in note and note.endswith(why) for note in found.notes)


def test_a_clock_in_another_zone_does_not_hide_the_cause(tmp_path: Path) -> None:
    kernel = "[Fri Nov 27 19:12:40 2026] NVRM: Xid (PCI:0000:9d:00): 79, gone\n"
    assert report(tmp_path, kernel).diagnoses[0].rule == "driver-gpu-lost"


def test_with_zones_an_hour_is_far(tmp_path: Path) -> None:
    job = (
        "2026-11-28T03:10:00Z gpu17 trainer[9]: start\n"
        "2026-11-28T03:20:00Z RuntimeError: CUDA error: unknown error\n"
    )
    kernel = "2026-11-28T00:10:00+00:00 gpu17 kernel: NVRM: Xid (PCI:0000:9d:00): 79, gone\n"
    assert report(tmp_path, kernel, job).diagnoses[0].rule != "driver-gpu-lost"


def test_a_kernel_log_alone_is_judged_whole() -> None:
    text = "[Fri Nov 20 01:00:00 2026] NVRM: Xid (PCI:0000:9d:00): 79, gone\n"
    found = diagnose(read_text(text), FactBook(None), catalog.load())
    assert found.diagnoses[0].rule == "driver-gpu-lost"
    assert found.notes == ()


@pytest.mark.parametrize("code", [92, 121, 13, 43])
def test_a_code_that_is_no_failure_is_said_in_words(code: int) -> None:
    text = f"[Fri Nov 20 01:00:00 2026] NVRM: Xid (PCI:0000:9d:00): {code}, pid=1, name=python, x\n" * 3
    found = diagnose(read_text(text), FactBook(None), catalog.load())
    assert found.outcome is Outcome.NO_FAILURE
    (note,) = found.notes
    known = codes()[code]
    assert note.startswith(f"Xid {code} at 0000:9d:00 (<text>, line 1")
    assert note.endswith(f"{known.meaning}; {CLASSES[known.kind]}")


def test_every_code_has_a_class_in_words_and_the_grave_ones_a_diagnosis() -> None:
    table = codes()
    assert set(table) == set(range(1, 174))
    assert {item.kind for item in table.values()} == set(CLASSES)
    rules = catalog.load()
    for code, item in table.items():
        if item.kind in ("RESET", "REBOOT", "RMA", "LINK"):
            text = f"[Fri Nov 20 01:00:00 2026] NVRM: Xid (PCI:0000:9d:00): {code}, pid=<unknown>, x\n"
            assert diagnose(read_text(text), FactBook(None), rules).outcome is Outcome.DIAGNOSED, code


MESSAGES = {
    "xid": (
        "NVRM: Xid (PCI:0000:9d:00): 79, pid=4713, name=python, GPU has fallen off the bus.",
        "driver-gpu-lost",
    ),
    "domain of eight digits": (
        "NVRM: Xid (PCI:00000000:9d:00): 48, pid=4713, name=python, DBE",
        "ecc-uncorrectable",
    ),
    "NVLink 5": (
        "NVRM: Xid (PCI:0000:9d:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 04 (0x004505c6 0x0 0x0 0x0)",
        "nvlink-error",
    ),
    "no code": ("NVRM: GPU 0000:9d:00.0: GPU has fallen off the bus.", "driver-gpu-lost"),
    "control group": (
        "Memory cgroup out of memory: Killed process 4713 (pt_main_thread) total-vm:9kB, anon-rss:9kB, "
        "file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:1kB oom_score_adj:0",
        "host-oom-killed",
    ),
}


def written(form: str, message: str) -> str:
    """One line of the kernel log of gpu18 at 03:12:40, as a program prints it."""
    entry = {
        "__CURSOR": "s=1", "__REALTIME_TIMESTAMP": "1795835560432101", "_HOSTNAME": "gpu18",
        "_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel", "PRIORITY": "3", "MESSAGE": message,
    }  # fmt: skip
    return {
        "dmesg": f"[98765.432101] {message}\n",
        "dmesg --raw": f"<3>[98765.432101] {message}\n",
        "dmesg -T": f"[Sat Nov 28 03:12:40 2026] {message}\n",
        "dmesg -x": f"kern  :err   : [98765.432101] {message}\n",
        "dmesg --time-format iso": f"2026-11-28T03:12:40,432101+00:00 {message}\n",
        "short": f"-- Logs begin at Mon 2026-11-02 10:00:00 UTC. --\nNov 28 03:12:40 gpu18 kernel: {message}"
        "\n",
        "short-iso": f"2026-11-28T03:12:40+0000 gpu18 kernel: {message}\n",
        "short-iso-precise": f"2026-11-28T03:12:40.432101+0000 gpu18 kernel: {message}\n",
        "short-full": f"Sat 2026-11-28 03:12:40 UTC gpu18 kernel: {message}\n",
        "short-monotonic": f"[98765.432101] gpu18 kernel: {message}\n",
        "short-unix": f"1795835560.432101 gpu18 kernel: {message}\n",
        "rsyslog": f"Nov 28 03:12:40 gpu18 kernel: [98765.432101] {message}\n",
        "json": json.dumps(entry) + "\n",
    }[form]


FORMS = (
    "dmesg", "dmesg --raw", "dmesg -T", "dmesg -x", "dmesg --time-format iso", "short", "short-iso",
    "short-iso-precise", "short-full", "short-monotonic", "short-unix", "rsyslog", "json",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MESSAGES)
def test_every_form_is_joined_with_the_job(name: str, form: str, tmp_path: Path) -> None:
    message, rule = MESSAGES[name]
    job = JOB
    if name == "control group":  # the killed rank itself prints nothing
        job = "\n".join(line for line in JOB.splitlines() if not line.startswith("[rank3]")) + "\n"
    told = report(tmp_path, written(form, message), job)
    assert told.diagnoses[0].rule == rule
    if "pid=" in message or "process" in message or form in ("short", "short-iso", "json"):
        assert told.first_failure.rank == 3


# Several processes share many inputs: the same answers in the same order, whatever becomes of a process


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
    others = psutil.Process().children()  # of other tests, which keep theirs over a session
    with pytest.raises(WorkerError, match="a: ZeroDivisionError"):
        list(in_order(["a", "b"], lambda _: 1 / 0, 2, lambda *_: 0.0))
    assert psutil.Process().children() == others


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
def test_jobs_need_files_of_each(files: list[str], printed: Printed) -> None:
    assert "--jobs shares the files of --each" in printed.errors(["explain", "--jobs", "2", *files], 2)
