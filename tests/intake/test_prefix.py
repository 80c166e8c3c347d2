"""What stands in front of a message, known and learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.intake import read_text
from torchdoctor.intake.learning import common_shape, shape_of
from torchdoctor.intake.prefix import split
from torchdoctor.intake.times import kernel_time, match_time

MESSAGE = "RuntimeError: x"


@pytest.mark.parametrize(
    ("prefix", "key", "rank", "local", "host", "time", "level"),
    [
        ("[rank3]: ", "rank3", 3, None, None, None, None),
        ("[default1]:[rank9]: ", "default1", 9, 1, None, None, None),
        ("[default1]:", "default1", None, 1, None, None, None),
        ("[1,5]<stderr>:", "1,5", 5, None, None, None, None),
        ("[2]<stdout>:", "2", 2, None, None, None, None),
        ("0: ", "0", 0, None, None, None, None),
        ("12: ", "12", 12, None, None, None, None),
        ("3: [rank7]: ", "3/rank7", 7, None, None, None, None),
        ("2021-03-10T13:22:37.440Z: [1,0]<stderr>:", "1,0", 0, None, None, "2021-03-10T13:22:37.440Z", None),
        (
            "(EngineCore_0 pid=8123) ERROR 01-02 03:04:05 "
            "[core.py:390] ", "EngineCore_0 pid=8123", None, None, None,
         "--01-02T03:04:05", "ERROR"),
        ("(train_fn pid=77, ip=10.0.0.5) ", "train_fn pid=77", None, None, "10.0.0.5", None, None),
        ("(head, rank=0, pid=2345) ", "head, rank=0 pid=2345", 0, None, None, None, None),
        ("[2025-01-29 09:03:12 TP5] ", "TP5", 5, None, None, "2025-01-29T09:03:12", None),
        ("[2025-01-29 09:03:12 DP1 TP5] ", "DP1 TP5", None, None, None, "2025-01-29T09:03:12", None),
        ("2026-04-27T08:40:51.7732186Z ", "", None, None, None, "2026-04-27T08:40:51.7732186Z", None),
        (
            "2024-01-01T10:00:00.000000001Z "
            "stderr F ", "", None, None, None, "2024-01-01T10:00:00.000000001Z", None),
        ("Oct 04 15:02:41 llm forge[394]: ", "forge[394]", None, None, "llm", "--10-04T15:02:41", None),
        (
            "2024-10-04T15:02:41+0200 "
            "gpu7 train[77]: ", "train[77]", None, None, "gpu7", "2024-10-04T15:02:41+0200", None),
        (
            "E0303 15:20:45.800000 139 "
            "torch/x/api.py:826] ", "", None, None, None, "--03-03T15:20:45.800000", "ERROR"),
        (
            "2025-03-21 17:08:31,569 - finetune "
            "- ERROR - ", "", None, None, None, "2025-03-21T17:08:31.569", "ERROR"),
        ("2022-11-08 09:14:31 | ERROR | train | ", "", None, None, None, "2022-11-08T09:14:31", "ERROR"),
        (
            "2022-12-03 11:20:37 | ERROR    | "
            "damo.apis.trainer:301 - ", "", None, None, None, "2022-12-03T11:20:37", "ERROR"),
        ("08/12/2023 07:30:11 - ERROR - __main__ - ", "", None, None, None, "2023-08-12T07:30:11", "ERROR"),
        (
            "[2023-04-05 14:01:22,300] [ERROR] "
            "[launch.py:1:f] ", "", None, None, None, "2023-04-05T14:01:22.300", "ERROR"),
        (
            "[2024-01-01, 10:00:00 UTC] "
            "{task.py:12} ERROR - ", "", None, None, None, "2024-01-01T10:00:00", "ERROR"),
        ("[2024-08-12 03:00:10,431][root][INFO] - ", "", None, None, None, "2024-08-12T03:00:10.431", "INFO"),
        ("2025-03-14 10:02:55,117 auto WARNING ", "", None, None, None, "2025-03-14T10:02:55.117", "WARNING"),
        ("[ERROR] ", "", None, None, None, None, "ERROR"),
        ("ERROR:root:", "", None, None, None, None, "ERROR"),
        ("| ", "", None, None, None, None, None),
        ("│ ", "", None, None, None, None, None),
        ("#10 2.604 ", "", None, None, None, None, None),
        ("", "", None, None, None, None, None),
    ],
)  # fmt: skip
def test_known_prefixes(
    prefix: str,
    key: str,
    rank: int | None,
    local: int | None,
    host: str | None,
    time: str | None,
    level: str | None,
) -> None:
    mark, _, bare = split(prefix + MESSAGE, [])
    assert (prefix + MESSAGE)[bare:] == MESSAGE
    assert (mark.key, mark.rank, mark.local_rank, mark.host) == (key, rank, local, host)
    assert (mark.time, mark.level) == (time, level)


@pytest.mark.parametrize(
    "text",
    ["RuntimeError: x",
        "  File \"a.py\", line 1, in f", "Epoch: [0] x", "cuda:0 ready", "[123, 456] x", "(torch) $ ls",
     "| a | b |", "12 items", "/path: x", "EngineCore: y"],
)  # fmt: skip
def test_no_prefix(text: str) -> None:
    mark, shown, bare = split(text, [])
    assert (shown, bare, mark.key, mark.rank) == (0, 0, "", None)


def test_the_rank_of_a_c10d_line_is_taken_and_its_tag_stays() -> None:
    line = "[rank1]:[E1127 23:47:16.644959436 ProcessGroupNCCL.cpp:689] [Rank 1] Watchdog caught collective"
    mark, shown, bare = split(line, [])
    assert line[shown:] == line[bare:] == line[8:]
    assert (mark.rank, mark.level, mark.time) == (1, "ERROR", "--11-27T23:47:16.644959436")
    old = "[E ProcessGroupNCCL.cpp:719] [Rank 4] Watchdog caught collective operation timeout"
    assert split(old, [])[0].rank == 4
    assert split("[E915 08:23:10.411 a.cpp:1] x", [])[0].time == "--09-15T08:23:10.411"
    assert split("[rank2]:[W104 07:05:28.6 compiler_depend.ts:83] Warning: x", [])[0].level == "WARNING"


def test_times() -> None:
    assert match_time("19-04-22 20:35:30.702 - x", 0) == (21, "2019-04-22T20:35:30.702")
    assert match_time("x 12:41:07] y", 2) == (10, "12:41:07")
    assert match_time("12:41", 0) is None
    assert match_time("[2024-04-23 22:31] got prompt", 1) == (17, "2024-04-23T22:31")
    assert match_time("2024-04-23 22:31 x", 0) is None
    assert match_time("2024-05", 0) is None
    assert kernel_time("Sun Apr 16 11:02:40 2023") == "2023-04-16T11:02:40"
    assert kernel_time("四 3月 20 21:01:25 2025") == "2025-03-20T21:01:25"
    assert kernel_time("no time here 2025") is None


# Prefixes that no list knows
BODIES = [
    "loading weights",
    "step 1 loss 2.5",
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 7, in <module>',
    "    main()",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "[main] shutting down",
]


def test_shape_generalises_numbers() -> None:
    shape = shape_of("<job-12/3> ")
    assert shape.pattern.match("<job-7/44> hello")
    assert not shape.pattern.match("<task-7/44> hello")


def test_common_shape_finds_what_every_line_begins_with() -> None:
    shape = common_shape([f"trainer_{i % 2}> {body}" for i, body in enumerate(BODIES)])
    head = shape.pattern.match("trainer_9> hello")
    assert head[0] == "trainer_9> "


def test_common_shape_of_indented_paste() -> None:
    shape = common_shape(["    " + body for body in BODIES])
    assert shape.tag is False
    head = shape.pattern.match("    Traceback")
    assert head[0] == "    "


def test_no_shape_for_logs_that_repeat_a_word() -> None:
    assert common_shape([f"Epoch {i}: loss {i / 7:.3f}" for i in range(30)]) is None
    assert common_shape(BODIES) is None
    assert common_shape(["x> one", "x> two"]) is None


def test_identity_keeps_names_and_drops_counters() -> None:
    shape = shape_of("[w1] ")
    assert shape.identity("[w1] ") == "w1"
    assert shape.identity("[w2] ") == "w2"
    counter = shape_of("[line 1] ")
    names = {counter.identity(f"[line {i}] ") for i in range(1000)}
    assert len(names) <= 81  # until then they may be as many ranks in their order
    scattered = shape_of("[request 1] ")
    names = {scattered.identity(f"[request {i * 7919 % 100_003}] ") for i in range(100)}
    assert len(names) < 12
    ranks = shape_of("<r1> ")
    assert {ranks.identity(f"<r{i % 64}> ") for i in range(1000)} == {f"r{i}" for i in range(64)}


def test_long_indented_messages_are_no_indented_paste() -> None:
    frames = ['  File "/app/train.py", line 7, in <module>', "    main()"] * 3
    keys = [f"  size of layer.{n} differs" for n in range(40)]
    lines = ["Traceback (most recent call last):", *frames, "RuntimeError: bad keys", *keys]
    assert common_shape(lines) is None
    (event,) = read_text("\n".join(lines)).events
    assert event.text.split("\n") == ["bad keys", *keys]
    assert event.end_line == len(lines)


# Ranks interleaved in one file behind prefixes that nobody wrote a template for
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
    assert report.suspect.type == "proj.Spent"
    assert (report.first_failure.rank, report.first_failure.tie) == (victim, ())
    assert len(report.timeline) == ranks
