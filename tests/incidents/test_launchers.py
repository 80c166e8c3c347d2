"""One incident as the launchers and shippers of big jobs leave it: rank, host and first failure of each."""

# ruff: noqa: E501  lines of logs are as long as they are

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.model import Part

RANKS, PER_NODE, VICTIM = 8, 4, 5
HEADER = "Traceback (most recent call last):"
OWN = [
    HEADER,
    '  File "/w/train.py", line 9, in step',
    "    self.quota.charge()",
    "proj.Spent: no units left",
]
ECHO = [
    HEADER,
    '  File "/w/train.py", line 5, in step',
    "    dist.all_reduce(x)",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer "
    "[10.2.0.17]:41822",
]


def failure(rank: int, tagged: bool = True) -> list[str]:
    lines = OWN if rank == VICTIM else ECHO
    return [f"[rank{rank}]: {line}" for line in lines] if tagged else list(lines)


def host(rank: int) -> str:
    return f"gpu-node-{rank // PER_NODE}"


def interleaved(ranks: list[int], line_of: Callable[[int, str], str], tagged: bool = True) -> list[str]:
    order = sorted(ranks, key=lambda rank: rank != VICTIM)
    return [line_of(rank, failure(rank, tagged)[number]) for number in range(4) for rank in order]


def megatron(folder: Path) -> list[str]:
    """A file a node, torchrun's tags before the lines of its processes, iterations by the last rank alone."""
    for node in range(RANKS // PER_NODE):
        ranks = list(range(node * PER_NODE, (node + 1) * PER_NODE))
        lines = [f"[default{rank % PER_NODE}]:> rank {rank}: building GPT model ..." for rank in ranks]
        if node == 1:
            lines += [
                f"[default3]: [2026-03-09 14:00:{step:02d}] iteration {step:8d}/  500000 | consumed samples: "
                f"{step * 512:12d} | elapsed time per iteration (ms): 1000.1 | learning rate: 6.000E-05 | "
                "global batch size:   512 | lm loss: 9.1E+00 | loss scale: 1.0 | grad norm: 1.2 |"
                for step in range(1, 20)
            ]
        lines += interleaved(ranks, lambda rank, line: f"[default{rank % PER_NODE}]:{line}")
        (folder / f"gpu-node-{node}.log").write_text("\n".join(lines) + "\n")
    return [str(folder)]


def deepspeed(folder: Path) -> list[str]:
    """One stream of pdsh: the node before each line, the launcher's own records between them."""
    lines = []
    for node in range(RANKS // PER_NODE):
        lines += [
            f"gpu-node-{node}: [2026-03-09 14:00:00,1{local}0] [INFO] [launch.py:258:main] process {4000 + local} "
            f"spawned with command: ['/opt/venv/bin/python', '-u', 'train.py', '--local_rank={local}']"
            for local in range(PER_NODE)
        ]
    lines += interleaved(list(range(RANKS)), lambda rank, line: f"{host(rank)}: {line}")
    lines.append(
        "gpu-node-1: [2026-03-09 14:01:00,000] [ERROR] [launch.py:325:sigkill_handler] ['/opt/venv/bin/python', "
        "'-u', 'train.py', '--local_rank=1'] exits with return code = 1"
    )
    (folder / "deepspeed.log").write_text("\n".join(lines) + "\n")
    return [str(folder / "deepspeed.log")]


def lightning(folder: Path) -> list[str]:
    """Slurm's file a task; Lightning says the ranks as they start."""
    for rank in range(RANKS):
        lines = [
            f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/{RANKS}",
            f"LOCAL_RANK: {rank % PER_NODE} - CUDA_VISIBLE_DEVICES: [0,1,2,3]",
            *failure(rank),
        ]
        (folder / f"slurm-8123_{rank}.{host(rank)}.out").write_text("\n".join(lines) + "\n")
    return [str(folder)]


def ray(folder: Path) -> list[str]:
    """``session_latest/logs`` of each node: a file a worker, named by what nobody can count."""
    for rank in range(RANKS):
        logs = folder / host(rank) / "session_latest" / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        name = f"worker-{rank * 7919 % 65536:04x}c0ffee{rank * 104729 % 65536:04x}-01000000-{4100 + rank}"
        (logs / f"{name}.out").write_text(
            f"[RayTrainWorker] world rank {rank}, local rank {rank % PER_NODE}\n"
        )
        (logs / f"{name}.err").write_text("\n".join(failure(rank)) + "\n")
        (logs / "raylet.out").write_text("[2026-03-09 14:00:00,000 I 77 77] (raylet) main.cc:1: started\n")
    return [str(folder)]


def pods(folder: Path) -> list[str]:
    """A file a pod, as ``kubectl logs`` of each writes it."""
    for rank in range(RANKS):
        name = "llm-master-0" if rank == 0 else f"llm-worker-{rank - 1}"
        (folder / f"{name}.log").write_text("\n".join(failure(rank, tagged=False)) + "\n")
    return [str(folder)]


def kubectl(folder: Path) -> list[str]:
    """``kubectl logs --prefix -l job=llm``: the pod before each line."""

    def line_of(rank: int, line: str) -> str:
        name = "llm-master-0" if rank == 0 else f"llm-worker-{rank - 1}"
        return f"[pod/{name}/pytorch] {line}"

    (folder / "job.log").write_text("\n".join(interleaved(list(range(RANKS)), line_of, tagged=False)) + "\n")
    return [str(folder / "job.log")]


def journal(folder: Path) -> list[str]:
    """``journalctl -o json`` of each node."""
    for node in range(RANKS // PER_NODE):
        ranks = list(range(node * PER_NODE, (node + 1) * PER_NODE))
        lines = interleaved(ranks, lambda rank, line: f"{rank}|{line}")
        entries = [
            {
                "__REALTIME_TIMESTAMP": str(1_795_835_560_000_000 + number),
                "_HOSTNAME": f"gpu-node-{node}",
                "SYSLOG_IDENTIFIER": "torchrun",
                "_PID": str(4000 + int(line.partition("|")[0])),
                "MESSAGE": line.partition("|")[2],
            }
            for number, line in enumerate(lines)
        ]
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
        (folder / f"journal-{node}.json").write_text(text)
    return [str(folder)]


def actions(folder: Path) -> list[str]:
    """The archive of logs of a GitHub Actions run: a file a step, a time before each line."""
    lines = interleaved(list(range(RANKS)), lambda _, line: f"2026-03-09T14:00:01.1234567Z {line}")
    with zipfile.ZipFile(folder / "logs_123.zip", "w") as archive:
        archive.writestr("test-gpu/1_Set up job.txt", "2026-03-09T13:59:00.0000000Z Current runner version\n")
        archive.writestr("test-gpu/5_Run torchrun.txt", "\ufeff" + "\n".join(lines) + "\n")
    return [str(folder / "logs_123.zip")]


@pytest.mark.parametrize(
    ("write", "hosted"),
    [
        (megatron, True),
        (deepspeed, True),
        (lightning, True),
        (ray, True),
        (pods, True),
        (kubectl, False),
        (journal, True),
        (actions, False),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_first_failure_is_named(
    write: Callable[[Path], list[str]], hosted: bool, tmp_path: Path, rules: RuleSet
) -> None:
    report = explain(write(tmp_path), FactBook(), rules).report
    first = report.first_failure
    assert (first.rank, first.tie) == (VICTIM, ())
    if hosted:
        assert first.host in (host(VICTIM), f"llm-worker-{VICTIM - 1}")
    assert (report.suspect.type, report.suspect.rank) == ("proj.Spent", VICTIM)
    assert {moment.rank for moment in report.timeline if moment.role is Part.ECHO} == set(range(RANKS)) - {
        VICTIM
    }


def test_the_last_attempt_of_torchrun_is_judged(tmp_path: Path, rules: RuleSet) -> None:
    for attempt, error in enumerate(("KeyError: 'lr'", "ZeroDivisionError: division by zero")):
        for rank in range(2):
            log = tmp_path / "none_x" / f"attempt_{attempt}" / str(rank) / "stderr.log"
            log.parent.mkdir(parents=True)
            frame = '  File "/w/t.py", line 9, in f\n    g()\n'
            log.write_text(f"Traceback (most recent call last):\n{frame}{error}\n")
    report = explain([str(tmp_path)], FactBook(), rules).report
    assert report.first_failure.tie == (0, 1)
    assert report.diagnoses[0].evidence[0].text == "ZeroDivisionError: division by zero"
    assert [run.rule for run in report.runs] == ["own-code-error", "own-code-error"]
    assert "attempt_0/0/stderr.log: run 1 ended by own-code-error" in report.notes[1]
