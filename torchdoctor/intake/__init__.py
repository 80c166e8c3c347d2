"""Reading: files, folders and standard input become a Transcript of events."""

from __future__ import annotations

from torchdoctor.intake.inputs import files_below, is_pattern, matches
from torchdoctor.intake.source import IntakeError
from torchdoctor.intake.transcript import Reading, read, read_all, read_text

__all__ = [
    "IntakeError", "Reading", "files_below", "is_pattern", "matches", "read", "read_all",
    "read_text",
]  # fmt: skip
