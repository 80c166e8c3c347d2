"""The kernel's log beside a job's: what belongs to the job, to which rank, and what is of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor import catalog
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.extract.xid_codes import CLASSES, codes
from torchdoctor.intake import read, read_text
from torchdoctor.model import Outcome, Report

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
