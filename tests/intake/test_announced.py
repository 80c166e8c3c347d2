"""Tracebacks that the message of another exception announces."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.model import EventKind, RelationKind

PACKAGES = "/opt/v/lib/python3.11/site-packages"
OUTER = f"""\
Traceback (most recent call last):
  File "/w/search.py", line 9, in <module>
    run()
  File "{PACKAGES}/sweeper/core.py", line 40, in run
    raise JobError(text)
sweeper.core.JobError: 3 of 3 jobs failed{{end}}
"""
INNER = """\
Traceback (most recent call last):
  File "{first}", line 12, in call
    work()
  File "/w/net.py", line 5, in work
    raise RuntimeError("no")
RuntimeError: no
"""
JOB = f"{PACKAGES}/sweeper/job.py"


def _wraps(text: str) -> bool:
    events = [event for event in read_text(text).events if event.kind is EventKind.EXCEPTION]
    assert len(events) == 2
    return any(relation.kind is RelationKind.WRAPS for relation in events[0].relations)


@pytest.mark.parametrize(
    ("end", "between"),
    [
        (" with trace:", "----------------------\n"),
        (". See the stack trace below.", ""),
        ("", "\nBelow are details:\n------\n3 jobs failed with the following error:\n"),
        ("", "\nTraceback of job 0 follows\n"),
    ],
)
def test_the_traceback_that_a_message_announces_is_the_inner_one(end: str, between: str) -> None:
    assert _wraps(OUTER.format(end=end) + between + INNER.format(first=JOB))


@pytest.mark.parametrize(
    ("end", "between", "first"),
    [
        ("", "\n", JOB),  # nothing announces it
        ("", "\nI fixed that, and now I get this error:\n", JOB),  # somebody tells of another failure
        ("", "\nretrying after the error:\n", "/w/search.py"),  # it begins in the user's own script
        ("", "\n2024-01-01 10:00:00 INFO saved\n", JOB),
    ],
)
def test_two_failures_after_each_other_stay_apart(end: str, between: str, first: str) -> None:
    assert not _wraps(OUTER.format(end=end) + between + INNER.format(first=first))
