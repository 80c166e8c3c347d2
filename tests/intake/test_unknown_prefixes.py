"""Ranks interleaved in one file behind prefixes that nobody wrote a template for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain

FRAMES = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 9, in step',
    "    self.quota.charge()",
]
OWN = [*FRAMES, "proj.Spent: no units left"]
ECHO = [
    FRAMES[0], '  File "/w/train.py", line 5, in step', "    dist.all_reduce(x)",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer "
    "[10.2.0.17]:41822",
]  # fmt: skip
PREFIXES: dict[str, Callable[[int, str], str]] = {
    "srun -l": lambda rank, line: f"{rank:3d}: {line}",
    "srun -l, of a step of up to 100": lambda rank, line: f"{rank:2d}: {line}",
    "letter": lambda rank, line: f"R{rank}| {line}",
    "angle": lambda rank, line: f"<r{rank}> {line}",
    "of": lambda rank, line: f"[{rank}/64] {line}",
    "number": lambda rank, line: f"[{rank}] {line}",
    "colon": lambda rank, line: f"p{rank}: {line}",
    "word": lambda rank, line: f"proc {rank}: {line}",
    "at": lambda rank, line: f"@{rank}@ {line}",
    "hash": lambda rank, line: f"task_{rank}# {line}",
    "abbreviated": lambda rank, line: f"[rk:{rank}] {line}",
    "greater": lambda rank, line: f"{rank}> {line}",
    "tab": lambda rank, line: f"{rank}\t{line}",
    "node and rank": lambda rank, line: f"[Rank {rank} | Node {rank // 8}] {line}",
    "variable": lambda rank, line: f"GLOBAL_RANK={rank} {line}",
    "compose": lambda rank, line: f"worker-{rank}  | {line}",
    "stern": lambda rank, line: f"job-worker-{rank} pytorch {line}",
    "jobset": lambda rank, line: f"[pod/train-workers-0-{rank}-x7k2p/main] {line}",
    "json": lambda rank, line: json.dumps({"time": "2026-03-09T14:00:00", "rank": rank, "message": line}),
}


@pytest.mark.parametrize("ranks", [4, 48])
@pytest.mark.parametrize("name", PREFIXES)
def test_each_line_finds_its_rank(name: str, ranks: int, tmp_path: Path, rules: RuleSet) -> None:
    prefix, victim = PREFIXES[name], ranks // 2
    lines = [prefix(rank, f"step {step} loss 0.5") for step in range(12) for rank in range(ranks)]
    order = [victim, *(rank for rank in range(ranks) if rank != victim)]
    for number in range(4):
        lines += [prefix(rank, (OWN if rank == victim else ECHO)[number]) for rank in order]
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    report = explain([str(tmp_path / "job.log")], FactBook(), rules).report
    assert report.suspect is not None
    assert report.suspect.type == "proj.Spent"
    assert report.first_failure is not None
    assert (report.first_failure.rank, report.first_failure.tie) == (victim, ())
    assert len(report.timeline) == ranks
