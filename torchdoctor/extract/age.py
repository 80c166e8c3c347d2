"""Which release torch is older than, where no version is printed: by its files, its words, its Python.

Sources: the trees of torch 1.5 to 2.5, and the wheels of each release.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.model import Event, Fact, Frame, Transcript
from torchdoctor.patterns import pattern

# a file of torch, a function in it or any, and the first release without
_FILES = (
    ("torch/nn/modules/module.py", "__call__", (1, 6)),
    ("torch/tensor.py", "", (1, 9)),
    ("torch/onnx/symbolic_registry.py", "", (1, 13)),
    ("torch/onnx/__init__.py", "_run_symbolic_function", (1, 13)),
)
# a function of torch, the line it stands below in all releases before, and the first one where it does not
_LINES = (
    ("torch/distributed/distributed_c10d.py", "all_reduce", 1_500, (2, 0)),
    ("torch/nn/modules/module.py", "_wrapped_call_impl", 1_520, (2, 3)),
    ("torch/nn/modules/module.py", "_wrapped_call_impl", 1_540, (2, 4)),
    ("torch/nn/modules/module.py", "_wrapped_call_impl", 1_600, (2, 5)),
)
_THC = "THCudaCheck FAIL"
_NO_THC = (1, 11)
# a collective is printed with its number since the first, with its count of elements since the second
_NUMBERED, _COUNTED = (1, 10), (2, 1)
# the line of ProcessGroupNCCL.cpp that says so: 474 and 475 in 2.1, 523 and further down since
_GIVES_UP, _LONGER = r"ProcessGroupNCCL\.cpp:[1-4]\d\d\] \[Rank \d+\] Watchdog caught collective", (2, 2)
_VERBOSE = "Set torch._dynamo.config.verbose=True"  # of Dynamo 2.0; later ones name TORCH_LOGS
_OTHER_VERBOSE = (2, 1)
# Python -> the first release of torch without a wheel for it
_NOT_FOR = {"2.7": (1, 5), "3.5": (1, 6), "3.6": (1, 11), "3.7": (2, 0), "3.8": (2, 5), "3.9": (2, 9)}

Release = tuple[int, int]


def of_torch(transcript: Transcript, python: Fact | None) -> Iterator[Fact]:
    """``torch.before``, from the sign that says most."""
    found = [(release, event.place()) for event in transcript.events for release in _of_event(event)]
    if python is not None:
        minor = ".".join(str(python.value).split(".")[:2])
        found += [(_NOT_FOR[minor], python.source)] if minor in _NOT_FOR else []
    if found:
        (major, minor_), source = min(found)
        yield Fact.known("torch.before", f"{major}.{minor_}", source)


def _of_event(event: Event) -> Iterator[Release]:
    if _THC in event.text:
        yield _NO_THC
    work, timeout, _ = event.text.partition("WorkNCCL(")[2].partition("Timeout(ms)=")
    if timeout and "NumelIn=" not in work:
        yield _COUNTED if "SeqNum=" in work else _NUMBERED
    if timeout and pattern(_GIVES_UP).search(event.text):
        yield _LONGER
    if _VERBOSE in event.text:
        yield _OTHER_VERBOSE
    for frame in event.frames:
        if frame.package == "torch":
            yield from _of_frame(frame)


def _of_frame(frame: Frame) -> Iterator[Release]:
    file = frame.file.replace("\\", "/")
    for end, function, release in _FILES:
        if file.endswith(end) and function in ("", frame.function):
            yield release
    for end, function, line, release in _LINES:
        if frame.function == function and file.endswith(end) and frame.line and frame.line < line:
            yield release
