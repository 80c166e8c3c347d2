"""Incidents that benchmarks/real_incidents.py made on two H200 with NCCL and torch 2.11, in two runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain

REAL = Path(__file__).resolve().parent / "real"
sys.path.insert(0, str(REAL.parents[2] / "benchmarks"))
from real_incidents import files_of, judge  # noqa: E402

LABELS = json.loads((REAL / "labels.json").read_text(encoding="utf-8"))
# what an explanation may name besides the rank; an exception of the program's own has no rule
RULES = {
    "rank-branch-rank0": {"collective-rank-branch"},
    "rank-branch-rank1-detail": {"nccl-collective-mismatch"},
    "uneven-batches-rank1": {"ddp-uneven-inputs", "nccl-timeout", "collective-rank-branch"},
    "slow-rank1": {"dist-timeout-long-rank0-work", "nccl-timeout"},
    "lock-stuck-rank0": {"dist-timeout-long-rank0-work"},
    "shape-mismatch": {"nccl-collective-mismatch"},
    "same-on-all": {"", "own-code-error"},
    "oom-rank1": {"cuda-oom-too-big"},
    "oom-rank0-tee": {"cuda-oom-too-big"},
    "label-range-rank1": {"cuda-assert-label-range"},
    "dataset-error-rank0": {"dataloader-worker-error"},
    "user-exception-rank1-tee": {"", "own-code-error"},
    "sigkill-rank1": {"host-oom-killed"},
    "sigsegv-rank0": {"segfault"},
    "loader-stuck-rank1": {"dataloader-hang"},
}


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label["case"])
def test_real_incident(label: dict[str, object]) -> None:
    case = str(label["case"])
    report = explain(files_of(REAL / case, bool(label["tee"])), FactBook(), load()).report
    first = report.first_failure
    assert first is not None
    assert judge(label, first.rank, list(first.tie)), (first.rank, first.tie, first.decided_by)
    assert (report.diagnoses[0].rule if report.diagnoses else "") in RULES[case.rpartition("/")[2]]


def test_the_records_are_kept() -> None:
    records = [path for path in REAL.rglob("nccl_trace_rank_*") if os.path.getsize(path)]
    assert len(records) >= 8
