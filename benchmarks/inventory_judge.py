"""What the engine says of a message: told by a rule, read, open; and why some are never seen by users."""

from __future__ import annotations

import re
from dataclasses import dataclass

from inventory_message import NUMBERS, Message

from torchdoctor import catalog, intake
from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.page import readable
from torchdoctor.engine import resembles
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.model import Outcome, ReadingKind, Report
from torchdoctor.workbench.literals import every_literal

TOLD, READ, BY_LINE, INTERNAL, OPEN, TICK = "told", "read", "by line", "internal", "open", "tick"

# how a library prints in its own voice; an exception in the voice "check" has a traceback
_LINES = {
    "log": "ERROR:launch:{}\n",
    "exit": "{}\n",
    "slurm": "slurmstepd: error: {}\n",
    "nccl": "node1:4127:4190 [0] NCCL WARN {}\n",
    "ptxas": "ptxas fatal   : {}\n",
    "rocblas": "rocBLAS error: {}\n",
}
_SESSION = """Traceback (most recent call last):
  File "/home/ann/serve.py", line 12, in <module>
    session = onnxruntime.InferenceSession(path)
  File "/opt/env/lib/python3.11/site-packages/onnxruntime/capi/onnxruntime_inference_collection.py", \
line 465, in __init__
    self._create_inference_session(providers, provider_options, disabled_optimizers)
  File "/opt/env/lib/python3.11/site-packages/onnxruntime/capi/onnxruntime_inference_collection.py", \
line 537, in _create_inference_session
    sess.initialize_session(providers, provider_options, disabled_optimizers)
onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : {}
"""
_HEAD = """Traceback (most recent call last):
  File "/home/ann/train.py", line 84, in <module>
    {}
"""
_IN_MODULE = """Traceback (most recent call last):
  File "/home/ann/train.py", line 84, in <module>
    output = model(batch)
  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1762, in _call_impl
    return forward_call(*args, **kwargs)
  File "/home/ann/net.py", line 31, in forward
    {}
"""
_UNNAMED, _NAMED = "return self.act(x, self.weight)", "return torch.act(x, self.weight)"
# below a line of the user's: torch's own checks, and what it asked of a driver
_RAISED = {"check": "{}", "hip": "HIP error: {}", "cuda": "CUDA error: {}"}
_SITE = "/opt/env/lib/python3.11/site-packages"
_LEAST_PIECE = 16

_BUG = re.compile(
    r"(?i)INTERNAL ASSERT|\binternal (?:error|assert)|"
    r"\b(?:please|kindly) (?:report|file|open) (?:an?|this)\b.{0,12}\b(?:bug|issue)|"
    r"\b(?:should|must) (?:never|not) (?:happen|be reached|reach|get here|be here)|"
    r"\bunreachable\b|\bthis is (?:likely |probably )?a bug\b"
)
_CONDITION = re.compile(r"^Expected .{1,400} to be true, but got false\b")
_PRIVATE = re.compile(r"(?:^|/)_(?!_init__)\w")
_ERROR_NAME = re.compile(r"(?:Error|Exception|Exit|Interrupt|Warning|Failure|Timeout|Fault|Invalid)\w*$")
_INNER = re.compile(r"/(?:passes|codegen|ir|tensorexpr|detail|internal|_internal|lowering)/")


@dataclass(frozen=True, slots=True)
class Answer:
    """The class of a message, and the rule, the function or the reason that says so."""

    message: Message
    kind: str
    by: str


class Judge:
    """Asks the engine, once for equal messages of several versions."""

    def __init__(self) -> None:
        self._rules = catalog.load()
        self._templates = _templates(self._rules)
        self._triggers = tuple(every_literal(self._rules))
        self._known: dict[tuple[object, ...], tuple[str, str]] = {}
        # what a message resembles is no part of its class, and takes most of the time
        resembles.with_resemblances = lambda suspect, rules: suspect

    def answer(self, message: Message) -> Answer:
        """A message with its class."""
        reason = why_internal(message)
        if reason:
            return Answer(message, INTERNAL, reason)
        key = (message.parts, message.kind, message.voice, message.piece, _path(message))
        if key not in self._known:
            self._known[key] = self._asked(message)
        return Answer(message, *self._known[key])

    def _asked(self, message: Message) -> tuple[str, str]:
        """The class, and what says so; of several values the one that a rule reads, else the first."""
        first, *others = dict.fromkeys(message.filled(value) for value in NUMBERS)
        found = self._told(_scene(message, first))
        for text in others:
            if found[0] != TOLD and any(one in text for one in self._triggers):
                other = self._told(_scene(message, text))
                found = other if other[0] == TOLD else found
        if found[0] != TOLD and message.piece and self._is_piece(message):
            return TOLD, "a piece of a template"
        if found[0] == OPEN and message.voice in _RAISED:
            kind, by = self._told(_scene(message, first, _NAMED))
            return (BY_LINE, by) if kind == READ else found
        return found

    def _told(self, log: str) -> tuple[str, str]:
        report = diagnose(intake.read_text(log), FactBook(), self._rules)
        if report.diagnoses:
            return TOLD, report.diagnoses[0].rule
        if report.outcome is Outcome.NO_FAILURE:
            return TICK, ""
        function = _function(report)
        return (READ, function) if function else (OPEN, "")

    def _is_piece(self, message: Message) -> bool:
        """Is the longest piece of a message part of a template?"""
        piece = max((one for one in message.parts if isinstance(one, str)), key=len, default="")
        folded = " ".join(piece.split())
        return len(folded) >= _LEAST_PIECE and folded in self._templates


def _path(message: Message) -> tuple[tuple[str, str], ...]:
    return tuple((place.file, place.function) for place in message.places)


def why_internal(message: Message) -> str:
    """Why no user sees a message, by its form and place; "" where nothing says so."""
    text, kind = message.template, message.kind.rpartition(".")[2]
    private = bool(_PRIVATE.search(message.file))
    if _BUG.search(text):
        return "says itself that it is a fault of the program"
    if _CONDITION.search(text):
        return "prints a condition of the source code, no words"
    if message.abstract and kind == "NotImplementedError":
        return "abstract method"
    if message.caught:
        return "caught in the same function"
    if kind and not _ERROR_NAME.search(kind) and private:
        return "control flow: its class is not named an error"
    if kind == "AssertionError" and private:
        return "assertion in a private module"
    if kind == "AssertionError" and message.places and message.places[0].function[:1] == "_":
        return "assertion in a private function"
    if _INNER.search(message.file) and message.voice == "check":
        return "inner layer of a compiler"
    return ""


def _function(report: Report) -> str:
    """Which package refused, with its function, or what it wants; "" where one of the two is not told.

    A native library's own line is read where it names the library, whose step follows.
    """
    reading = report.suspect.reading if report.suspect is not None else None
    if reading is not None and reading.kind is ReadingKind.LIBRARY_REPORTED:
        return reading.owner or ""
    if reading is None or reading.kind is not ReadingKind.LIBRARY_REFUSED or not reading.owner:
        return ""
    wanted = f"{reading.owner}: wants {reading.wants}" if reading.wants else ""
    return reading.function or wanted


def _templates(rules: RuleSet) -> str:
    sources = (
        pattern.pattern for rule in rules.rules() for match in rule.matches for pattern in match.patterns
    )
    return "\n".join(readable(source) for source in sources)


def _scene(message: Message, text: str, call: str = _UNNAMED) -> str:
    """The least log that ends in a message; ``call`` is the user's line below which C++ raised it."""
    if message.voice in _RAISED:
        return f"{_IN_MODULE.format(call)}RuntimeError: {_RAISED[message.voice].format(text)}\n"
    if message.voice == "ort":
        return _SESSION.format(text)
    if not message.kind:
        return _LINES[message.voice].format(text)
    lines = [_HEAD.format(message.places[0].call)]
    if message.places[0].function == "__post_init__":
        lines.append('  File "<string>", line 4, in __init__\n')
    for place, inner in zip(message.places, (*message.places[1:], None), strict=True):
        code = inner.call.replace("output = ", "return ") if inner is not None else message.code
        line = place.line if inner is not None else message.line
        lines.append(f'  File "{_SITE}/{place.file}", line {line}, in {place.function}\n    {code}\n')
    return "".join(lines) + f"{message.kind}: {text}\n"
