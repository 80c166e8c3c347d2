"""A case out of a log: what names people, hosts and secrets is replaced, and a label goes with it."""

from __future__ import annotations

import os

from torchdoctor import intake
from torchdoctor.model import Transcript
from torchdoctor.share.redaction import redact
from torchdoctor.workbench.case import CLEAN, NONE, UNKNOWN, UNRECOGNISED, Case, CaseError
from torchdoctor.workbench.cases import put

MAX_LOG_BYTES = 4 << 20


def collect(
    root: str, name: str, log: str, origin: str, rule: str | None, note: str
) -> tuple[Case, list[str]]:
    """Put a log into the tree as the case ``ID/NAME``; returns it, and what was replaced in its text.

    ``rule`` is what is expected, else what the file stands for. Raises CaseError, or IntakeError for a log
    that cannot be read.
    """
    of, _, own = name.partition("/")
    if not own:
        raise CaseError(f'"{name}": a case is called ID/NAME')
    text, transcript = read_log(log)
    shown = redact(text, {event.host for event in transcript.events if event.host})
    expected = rule or {CLEAN: NONE, UNKNOWN: UNRECOGNISED}.get(of, of)
    data = shown.text.encode("utf-8", "replace")
    return put(root, Case(own, expected, of=of, origin=origin, note=note, data=data)), list(shown.replaced)


def read_log(log: str) -> tuple[str, Transcript]:
    """A log as text, and as the engine reads it. Raises CaseError for a folder or a log that is too long."""
    if os.path.isdir(log):
        raise CaseError(f"{log} is a folder; name the one file that shows the failure")
    transcript = intake.read([log])
    if os.path.getsize(log) > MAX_LOG_BYTES:
        raise CaseError(f"{log} is larger than {MAX_LOG_BYTES >> 20} MiB; cut it to what shows the failure")
    with open(log, encoding="utf-8", errors="replace", newline="") as file:
        return file.read(), transcript
