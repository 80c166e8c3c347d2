"""What stands in front of a message, known and learned."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
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


def test_times() -> None:
    assert match_time("19-04-22 20:35:30.702 - x", 0) == (21, "2019-04-22T20:35:30.702")
    assert match_time("x 12:41:07] y", 2) == (10, "12:41:07")
    assert match_time("12:41", 0) is None
    assert match_time("2024-05", 0) is None
    assert kernel_time("Sun Apr 16 11:02:40 2023") == "2023-04-16T11:02:40"
    assert kernel_time("四 3月 20 21:01:25 2025") == "2025-03-20T21:01:25"
    assert kernel_time("no time here 2025") is None


@pytest.mark.parametrize(
    "prefix",
    ["worker-1: ", "app_7  | ", "<<gpu 3>> ", "job/abc12 ", "anna: ", "2024-01-01T00:00:00Z pod-x: ", "    "],
)
def test_a_prefix_is_learned_from_the_frames_behind_it(prefix: str) -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in <module>',
        "    main()",
        "ValueError: y",
    ]
    (event,) = read_text("\n".join(prefix + line for line in trace)).events
    assert (event.type, event.text, event.line) == ("ValueError", "y", 1)
    assert [(frame.line, frame.code) for frame in event.frames] == [(3, "main()")]


def test_learned_prefixes_that_differ_in_numbers_are_separate_streams() -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in <module>',
        "    main()",
        "ValueError: y",
    ]
    lines = [f"worker-{n}: {line}" for line in trace for n in (1, 2)]
    first, second = read_text("\n".join(lines)).events
    assert (first.stream, first.type, first.text) == ("worker-1", "ValueError", "y")
    assert (second.stream, second.type, second.text) == ("worker-2", "ValueError", "y")
    assert len(first.frames) == len(second.frames) == 1
    assert (first.host, second.host) == ("worker-1", "worker-2")


def test_a_tag_that_every_line_carries_is_learned() -> None:
    lines = [f"tests> line {n}" for n in range(9)] + ["tests>", "tests> E   RuntimeError: x"]
    event = read_text("\n".join(lines)).events[-1]
    assert (event.type, event.text) == ("RuntimeError", "x")


def test_what_stands_glued_before_a_traceback_is_no_prefix() -> None:
    text = (
        'Applying 0002...Traceback (most recent call last):\n  File "a.py", line 1, in f\n    '
        "g()\nKeyError: 'k'\n"
    )
    log, event = read_text(text).events
    assert log.text == "Applying 0002..."
    assert (event.type, event.text, event.line) == ("KeyError", "'k'", 1)


def test_interleaved_ranks_come_out_whole() -> None:
    trace = [
        "Traceback (most recent call last):",
        '  File "a.py", line {n}, in <module>',
        "    main()",
        "ValueError: y{n}",
    ]
    lines = [f"[rank{n}]: {line.format(n=n)}" for line in trace for n in (4, 6)]
    first, second = read_text("\n".join(lines)).events
    assert (first.rank, first.text, first.frames[0].line) == (4, "y4", 4)
    assert (second.rank, second.text, second.frames[0].line) == (6, "y6", 6)


def test_a_record_that_goes_on_without_its_tag() -> None:
    text = (
        "[2025-02-24 14:09:40 TP10] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srt/scheduler.py", line 18, in run\n    f()\nRuntimeError: NCCL error: x\n\n'
        "[2025-02-24 14:09:40] Received sigquit from a child proces.\n"
    )
    event = next(event for event in read_text(text).events if event.type)
    assert (event.rank, event.text, event.frames[0].function) == (10, "NCCL error: x", "run")


def test_times_without_a_year_get_the_year_of_the_others() -> None:
    text = "2023-05-06 07:08:09 INFO start\nE0506 07:08:10.000000 139 torch/a.py:1] failed\n"
    assert [event.time for event in read_text(text).events] == [
        "2023-05-06T07:08:09",
        "2023-05-06T07:08:10.000000",
    ]
    assert (
        read_text("E0506 07:08:10.000000 139 torch/a.py:1] failed\n").events[0].time
        == "--05-06T07:08:10.000000"
    )


@pytest.mark.parametrize(
    ("tag", "host"), [("node7 | ", "node7"), ("gpu0 | ", None), ("rank0.log: ", None), ("train.log: ", None)]
)
def test_a_process_or_a_file_is_no_machine(tag: str, host: str | None) -> None:
    frame = '  File "a.py", line 3, in <module>'
    trace = ["Traceback (most recent call last):", frame, "    go()", "KeyError: 1"]
    (event,) = read_text("\n".join(tag + line for line in trace)).events
    assert event.host == host


def test_a_line_that_mpirun_tags_in_each_of_its_pieces() -> None:
    text = (
        "[1,19]<stderr>:Traceback (most recent call last):\n"
        '[1,19]<stderr>:  File "src/run.py", line 388, in <module>\n'
        "[1,19]<stderr>:    main()\n"
        "[1,19]<stderr>:RuntimeError[1,19]<stderr>:: NCCL communicator was aborted on rank 19."
        "[1,19]<stderr>:\n"
    )
    (event,) = read_text(text).events
    assert event.rank == 19
    assert event.text == "NCCL communicator was aborted on rank 19."
