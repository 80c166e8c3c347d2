"""The exit codes of the commands; verdicts of ``gate`` have further ones (``torchdoctor.gate.finding``)."""

from __future__ import annotations

FINDINGS = 1
USAGE = 2  # a usage error, or an input or output that cannot be used
COULD_NOT_TELL = 3
UNKNOWN_FAILURE = 4
OUR_FAULT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # as a shell says it of SIGINT
