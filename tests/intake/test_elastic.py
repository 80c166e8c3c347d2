"""Records that programs print: the summary box of torchrun, logs in JSON."""

from __future__ import annotations

import json

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.record import lines_of
from torchdoctor.model import EventKind, RelationKind

HEAD = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/bin/torchrun", line 10, in <module>\n    sys.exit(main())\n'
    '  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 317, in '
    "launch_agent\n"
    "    raise ChildFailedError(\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
)

RULE = "=" * 60

THIN = "-" * 60


def box(traceback: str) -> str:
    return (
        f"{RULE}\ntrain.py FAILED\n{THIN}\nFailures:\n[1]:\n  time      : 2026-11-27_23:48:33\n  host      "
        f": node-b\n"
        f"  rank      : 9 (local_rank: 1)\n  exitcode  : -6 (pid: 974)\n  error_file: <N/A>\n"
        f"  traceback : Signal 6 (SIGABRT) received by PID 974\n{THIN}\nRoot Cause (first observed "
        f"failure):\n[0]:\n"
        f"  time      : 2026-11-27_23:48:32\n  host      : node-a\n  rank      : 8 (local_rank: 0)\n  "
        f"exitcode  : 1 (pid: 973)\n"
        f"  error_file: /tmp/e/error.json\n  traceback : {traceback}\n{RULE}\n"
    )


INNER = (
    "Traceback (most recent call last):\n"
    '    File "/opt/venv/lib/python3.12/site-packages/torch/distributed/elastic/multiprocessing/errors/__ini'
    't__.py", line 347, in wrapper\n'
    "      return f(*args, **kwargs)\n"
    '    File "/w/train.py", line 190, in main\n      step()\n  ValueError: Attempting to unscale FP16 '
    "gradients.\n  "
)


def test_the_box_is_one_launcher_event() -> None:
    error, launcher, log = read_text(
        HEAD + box("To enable traceback see: https://pytorch.org/x") + "bye\n"
    ).events
    assert (error.type or "").endswith("ChildFailedError")
    assert (error.text, error.frames[0].package) == ("train.py FAILED", "torch")
    assert [(r.kind, r.event) for r in error.relations] == [(RelationKind.WRAPS, launcher.id)]
    assert launcher.kind is EventKind.LAUNCHER
    assert launcher.text.startswith(
        f"{RULE}\ntrain.py FAILED\n{THIN}\nFailures:\n[1]:\n  time      : 2026-11-27_23:48:33"
    )
    assert "  exitcode  : -6 (pid: 974)" in launcher.text
    assert launcher.text.endswith(RULE)
    assert (launcher.line, launcher.time, launcher.rank) == (7, "2026-11-27T23:48:32", None)
    assert log.text == "bye"


def test_a_traceback_in_the_box_is_an_event_of_its_rank() -> None:
    events = read_text(HEAD + box(INNER)).events
    launcher = next(event for event in events if event.kind is EventKind.LAUNCHER)
    inner = next(event for event in events if event.type == "ValueError")
    assert [(r.kind, r.event) for r in launcher.relations] == [(RelationKind.WRAPS, inner.id)]
    assert inner.text == "Attempting to unscale FP16 gradients."
    assert (inner.rank, inner.local_rank, inner.host, inner.time) == (8, 0, "node-a", "2026-11-27T23:48:32")
    assert [(frame.file, frame.code) for frame in inner.frames][-1] == ("/w/train.py", "step()")
    assert "unscale" not in launcher.text
    assert "host      : node-a" in launcher.text


def test_a_box_whose_head_is_cut_off() -> None:
    text = box("To enable traceback see: x").partition("Root Cause")[2]
    (launcher,) = read_text("Root Cause" + text).events
    assert launcher.kind is EventKind.LAUNCHER
    assert "rank      : 8 (local_rank: 0)" in launcher.text


def test_the_box_of_torch_1_9() -> None:
    text = (
        HEAD.replace("errors.ChildFailedError: ", "api.ChildFailedError:")
        + f"{'*' * 41}\n             run.py FAILED               \n{'=' * 41}\nRoot Cause:\n[0]:\n"
        f"  time: 2021-07-01_12:00:00\n"
        f'  rank: 0 (local_rank: 0)\n  exitcode: 1 (pid: 123)\n  error_file: <N/A>\n  msg: "Process failed '
        f'with exitcode 1"\n'
        f"{'=' * 41}\nOther Failures:\n  <NO_OTHER_FAILURES>\n{'*' * 41}\n"
    )
    launcher = read_text(text).events[1]
    assert launcher.kind is EventKind.LAUNCHER
    assert 'msg: "Process failed with exitcode 1"' in launcher.text
    assert "Other Failures:" in launcher.text


def test_the_box_behind_a_rank_prefix() -> None:
    text = "\n".join("0: " + line for line in (HEAD + box(INNER)).splitlines())
    inner = next(event for event in read_text(text).events if event.type == "ValueError")
    assert (inner.rank, len(inner.frames)) == (8, 2)


# Log records in JSON: the traceback is found in whatever field holds it
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/app/trainer.py", line 77, in run\n'
    "    self.sched.step()\n"
    "ValueError: Tried to step 10001 times\n"
)

BASE = {"time": "2026-05-02T08:13:56Z", "level": "error", "msg": "trainer crashed"}


@pytest.mark.parametrize(
    "fields",
    [
        {"exc": TRACE},
        {"exc_info": TRACE},
        {"stack": TRACE},
        {"error": {"type": "ValueError", "stack_trace": TRACE}},
        {"error.stack": TRACE},
        {"jsonPayload": {"detail": TRACE}},
        {"traceback": TRACE.split("\n")},
        {"msg": "trainer crashed\n" + TRACE},
        {"record": {"exception": TRACE, "padding": "x y " * 2_000}},
    ],
)
def test_a_traceback_is_found_in_any_field(fields: dict[str, object]) -> None:
    events = read_text(json.dumps({**BASE, **fields})).events
    failures = [event for event in events if event.kind is EventKind.EXCEPTION]
    assert [(event.type, event.text) for event in failures] == [("ValueError", "Tried to step 10001 times")]
    assert [(frame.file, frame.line) for frame in failures[0].frames] == [("/app/trainer.py", 77)]


@pytest.mark.parametrize(
    "record",
    [
        {"id": 7, "prompt": "why?", "content": TRACE},  # a row of a data set: no level, no time
        {**BASE, "source": TRACE},
        {**BASE, "exc": "ValueError: no stack"},
        [TRACE],
    ],
)
def test_what_is_no_record_of_a_failure_holds_none(record: object) -> None:
    assert "Traceback" not in "".join(lines_of(json.dumps(record)) or ())


def test_level_time_and_rank_stand_before_the_message() -> None:
    lines = lines_of(json.dumps({**BASE, "rank": 3, "exc": TRACE}))
    assert lines is not None
    assert lines[0] == "[rank3]: 2026-05-02T08:13:56Z ERROR trainer crashed"
    assert lines[1] == "[rank3]: Traceback (most recent call last):"
