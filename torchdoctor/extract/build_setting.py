"""In which build an error stands: with which toolkit, by whose compiler, and whether it ended anything."""

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
_HIP_MARKS = ("hipcc", ".hip:", "/amd_detail/", "--offload-arch=gfx", "hip/hip_runtime")
# what HIP has under another name, or not at all
_CUDA_HEADERS = (
    r"^(?:cu(?:da|blas|sparse|solver|rand|fft|dnn|pti)\w*\.h|nv\w+\.h|device_launch_parameters\.h|mma\.h"
    r"|cu(?:b|tlass|te)/\S+|cooperative_groups/\S+)$"
)
_INCLUDED = r"In file included from (\S{1,300}):\d+"


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


def is_hip(transcript: Transcript) -> bool:
    """Did AMD's compiler run?"""
    return any(mark in event.text for event in transcript.events for mark in _HIP_MARKS)


def cuda_header(file: str, error: int, header: str, transcript: Transcript) -> str:
    """NVIDIA's header that the sources include: the one not found, else the first that lies in a toolkit."""
    if header:
        return header if pattern(_CUDA_HEADERS).search(header) else ""
    if "/cuda" not in file:
        return ""
    near = "\n".join(event.text for event in transcript.events[max(0, error - 8) : error + 1])
    chain = [found[1] for found in pattern(_INCLUDED).finditer(near[: near.rfind(file)])]
    inside = next((path for path in chain if "/cuda" in path and "/include/" in path), file)
    return inside.rpartition("/include/")[2]


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
