"""A program in an image of Apptainer, or of Singularity: how it was started, and what the host has.

``--nv`` and ``--rocm`` bind the host's libraries for the GPU into the container.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "apptainer.binds": "text: the option that binds the host's libraries for the GPU, --nv or --rocm",
    "apptainer.works_without": "bool: the same command without that option ran above and did not fail",
    "apptainer.driver": "bool: nvidia-smi's table stands in the text, and was not printed in the container",
    "apptainer.prefix": "text: what its variables begin with: APPTAINER or SINGULARITY",
}

_CHARS = 2_000  # of an event
_STARTED = (
    r"\b(?P<program>apptainer|singularity) (?:-\S+ )*(?:exec|run|shell|instance start)"
    r"(?P<options>(?: +-\S+(?: +[^\s-]\S*:\S+)?)*) (?P<rest>[^\n]*)"
)
_BINDS = r"(?<!\S)--(?:nv|nvccli|rocm)(?!\S)"
_TABLE = "| NVIDIA-SMI "
_FAILED = (EventKind.EXCEPTION, EventKind.CRASH)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """How the container of this event was started: by the last command above it, or else by the first."""
    commands = _commands(transcript)
    if not commands:
        return
    above = [one for one in commands if one[0] <= event.id]
    at, program, command, option = above[-1] if above else commands[0]
    yield "prefix", program.upper()
    yield "binds", option or None
    plain = [one for one in above if one[0] < at and not one[3]]
    same = next((one[0] for one in reversed(plain) if option and one[2] == command), None)
    between = transcript.events[same + 1 : at] if same is not None else ()
    well = same is not None and not any(one.kind in _FAILED for one in between)
    yield "works_without", True if well else None
    tables = (one.id for one in transcript.events if _TABLE in one.text[:_CHARS])
    yield "driver", True if any(table < at or not above for table in tables) else None


@once_a_text
def _commands(transcript: Transcript) -> list[tuple[int, str, str, str]]:
    """The event and what ``_command`` says of it, for each that starts a container."""
    return [(one.id, *told) for one in transcript.events if (told := _command(one.text)) is not None]


def _command(text: str) -> tuple[str, str, str] | None:
    """The program, the command without the option that binds, and that option; None for another text."""
    text = text[:_CHARS]
    if "apptainer " not in text and "singularity " not in text:
        return None
    found = pattern(_STARTED).search(text)
    if found is None:
        return None
    option = pattern(_BINDS).search(found[0])
    words = [word for word in found[0].split() if option is None or word != option[0]]
    return found["program"], " ".join(words), option[0] if option is not None else ""
