"""In which build an error stands: of which extension, with which toolkit, and whether it ended anything."""

from __future__ import annotations

from torchdoctor.model import EventKind, Transcript
from torchdoctor.patterns import pattern

# a command that failed is said to have failed; of a question (setuptools' has_function) nothing more is said
_FAILED = (
    "failed with exit", "build stopped", "Unable to pre-compile", "Error building extension", "FAILED:",
    "CompileError", "CalledProcessError", "CompilationError", "LinkError", "make: ***", "make[",
    "Failed building",
)  # fmt: skip
_TOOLKIT = r"(?:[\\/]CUDA[\\/]{1,2}v|/cuda-)(\d{1,2}\.\d)(?=[\\/])"


def is_question(error: int, transcript: Transcript) -> bool:
    """Did the program go on after the error, up to an exception of another kind?"""
    later = transcript.events[error:]
    if any(mark in f"{event.type or ''} {event.text}" for event in later for mark in _FAILED):
        return False
    return any(event.kind is EventKind.EXCEPTION and event.type and event.id > error for event in later)


def toolkit(transcript: Transcript) -> str:
    """The toolkit whose folder the lines of the build name; "" for none, or several."""
    found = {
        one[1]
        for event in transcript.events
        if "cuda-" in event.text or "CUDA" in event.text
        for one in pattern(_TOOLKIT).finditer(event.text[:20_000])
    }
    return found.pop() if len(found) == 1 else ""


def extension(transcript: Transcript) -> str:
    """Name of the extension module that was built; "" where nothing names it."""
    patterns = (
        r"Error building extension '([^']+)'",
        r"building '([^']+)' extension",
        r"-DTORCH_EXTENSION_NAME=(\w+)",
        r"Building extension module (\w+)",
    )
    for event in transcript.events:
        if "xtension" not in event.text and "EXTENSION" not in event.text:
            continue
        for source in patterns:
            found = pattern(source).search(event.text)
            if found is not None:
                return found.group(1)
    return ""
