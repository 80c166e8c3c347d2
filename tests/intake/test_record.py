"""Log records in JSON: the traceback is found in whatever field holds it."""

from __future__ import annotations

import json

import pytest

from torchdoctor.intake.clean import unescape
from torchdoctor.intake.record import traced
from torchdoctor.intake.transcript import read_text
from torchdoctor.model import EventKind

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


def test_an_exception_in_fields_of_its_own_ends_a_traceback_without_one() -> None:
    frames = TRACE.rpartition("ValueError")[0]
    record = {**BASE, "error": {"type": "ValueError", "message": "too far", "stack_trace": frames}}
    found = traced(json.dumps(record))
    assert found is not None
    assert found[3].endswith("self.sched.step()\nValueError: too far")


def test_a_record_that_was_cut_off_keeps_what_there_is_of_its_traceback() -> None:
    text = json.dumps({**BASE, "exc": TRACE})
    found = traced(text[: text.index("10001")])
    assert found is not None
    assert found[3].endswith("ValueError: Tried to step")


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
    assert traced(json.dumps(record)) is None


def test_level_time_and_rank_stand_before_the_message() -> None:
    lines = unescape(json.dumps({**BASE, "rank": 3, "exc": TRACE}))
    assert lines is not None
    assert lines[0] == "[rank3]: 2026-05-02T08:13:56Z ERROR trainer crashed"
    assert lines[1] == "[rank3]: Traceback (most recent call last):"
