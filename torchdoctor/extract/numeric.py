"""What the quoted lines say of the arithmetic that failed: what is guarded already, what cannot overflow."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "numeric.finite_power": "bool: the forward line of a power raises to a whole number from 1 on",
    "numeric.jittered": "bool: a line adds a multiple of the identity to the matrix",
}

_NEIGHBOURS = 30  # events; anomaly detection prints the forward call just before the error
_CHARS = 1000
_POWER = r"\*\* ?(?:[1-9]\d?)(?![\w.])|\bpow\([^()]{1,80}, ?[1-9]\d?\)|\.pow\([1-9]\d?\)|\bsquare\("
_OTHER_POWER = r"\*\* ?(?:-|\(|0|[A-Za-z_]|\d{1,3}\.)|\brsqrt\(|\bsqrt\(|\bpow\([^()]{0,80}(?:-|\.)\d"
_IDENTITY = r"(?i)\+[^+=]{0,60}(?:\beye\b|\bidentity\b|\bdiag\w{0,20}\b)|\bdiagonal\([^()]{0,40}\)\.add_\("


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one error of a decomposition or of anomaly detection, by the lines that are quoted."""
    line = _forward_line(event, transcript) if "PowBackward" in event.text else ""
    yield "finite_power", bool(pattern(_POWER).search(line)) and not pattern(_OTHER_POWER).search(line)
    yield "jittered", any(pattern(_IDENTITY).search(line) for line in _lines(event, transcript))


def _lines(event: Event, transcript: Transcript) -> Iterator[str]:
    """The user's lines in the stack, and those before it: two processes may print into one another."""
    yield from (frame.code for frame in event.frames if not frame.package)
    for earlier in transcript.events[max(0, event.id - _NEIGHBOURS) : event.id]:
        yield from (frame.code for frame in earlier.frames if not frame.package)
        if earlier.kind is EventKind.LOG:
            yield earlier.text[:_CHARS]


def _forward_line(event: Event, transcript: Transcript) -> str:
    """The user's last line of the forward call that anomaly detection shows."""
    for earlier in reversed(transcript.events[max(0, event.id - _NEIGHBOURS) : event.id]):
        own = [frame.code for frame in earlier.frames if not frame.package and frame.code]
        if own and "Error detected in Pow" in earlier.text:
            return own[-1]
    return ""
