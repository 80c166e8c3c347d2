"""Facts of a torch.compile error: which stage raised it, and the error it wraps.

Dynamo and Inductor raise their own class over whatever stopped them, so the class says only how far they
were. The wrapped error decides: a shape error of the user's code, a missing compiler, or a fault of the
compiler itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "compile.inner_internal": "bool: the wrapped error is of a kind that only the compiler raises; unknown "
    "for classes that user code raises, too",
    "compile.recompiled": "str: name of the function that was compiled too often",
    "compile.recompiled_at": "str: file and line of that function",
    "compile.last_reason": "str: the guard that failed last, as Dynamo words it",
    "compile.generated": "bool: the kernel that Triton compiled is one that Inductor wrote",
    "compile.card": "text: architecture of the card that ptxas or LLVM does not know",
    "compile.card_cuda": "text: the first CUDA whose ptxas knows the card that ptxas or LLVM does not know",
    "compile.card_torch": "text: the first torch whose Triton brings such a ptxas",
    "compile.ptxas_variable": "text: the variable by which Triton takes another ptxas for this card",
    "compile.cc": "text: the C compiler that ran and failed, by the command in the message",
    "compile.headers": "text: the folder of the distribution's own Python headers that it was given",
    "compile.headers_python": "text: the release of that Python, as 3.12",
    "compile.driver_folder": "text: the folder of the driver's library that it was to link as -lcuda",
}
# how subprocess shows a command that failed, and what of it compiles C
_COMMAND = r"Command '\[(?P<parts>'[^\]\n]{1,8000}')\]' returned non-zero exit status"
_SOURCE = r"(?:main|cuda_utils|__triton_launcher|hip_utils)\.c$"
_HEADERS = r"-I(/usr/include/python(3\.\d{1,2})[a-z]?)$"

# compute capability without its dot -> the first CUDA whose ptxas knows it, and the first torch with it.
# Sources: release notes of CUDA; the ptxas in Triton's wheels, which is that of CUDA 12.8 in 3.3, and for
# Blackwell those of 12.9 in 3.6 and 13.1 in 3.7.
_CARDS = {
    "89": ("11.8", "2.1"), "90": ("11.8", "2.1"),
    "100": ("12.8", "2.7"), "101": ("12.8", "2.7"), "120": ("12.8", "2.7"),
    "103": ("12.9", "2.10"), "121": ("12.9", "2.10"), "110": ("13.0", "2.12"),
}  # fmt: skip
_UNKNOWN_CARD = (
    r"'(?P<name>sm_(?P<card>\d{2,3})[af]?)' is not (?:defined for option|a recognized processor)"
    r"|does not support \.target (?P<target>sm_(?P<code>\d{2,3})[af]?)"
)

# Inductor names its kernels triton_poi_fused_…; their lines may be events of their own
_GENERATED = r"\bdef triton_\w{2,6}_\w+\("
_KERNEL_LINES = 40

# how far the compiler was when it raised, by the class
_STAGES = (
    ("backend", (
        "BackendCompilerFailed", "InductorError", "LoweringException", "SubprocException", "TritonMissing",
        "GPUTooOldForTriton", "CppCompileError",
    )),
    ("fake-tensor", (
        "TorchRuntimeError", "GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound",
        "DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException",
        "UnsupportedOperatorException", "UnsupportedMutationAliasingException",
    )),
    ("dynamo", (
        "InternalTorchDynamoError", "Unsupported", "UserError", "FailOnRecompileLimitHit",
        "UncapturedHigherOrderOpError",
    )),
)  # fmt: skip

# (literal that must be there, pattern); each gives the class and the text of the wrapped error
_WRAPPED = (
    # BackendCompilerFailed; torch 2.0: debug_wrapper raised RuntimeError: …; 2.1 on: backend='x' raised:
    (" raised", r"^(?:backend='[^']*'|\w+) raised:?\s+(?P<type>[\w.]+): ?(?P<text>.*)"),
    # torch 2.1 on: … with fake tensors: …: got RuntimeError('…'); the closing may be cut off
    ("got ", r": got (?P<type>[A-Za-z_]\w*(?:Error|Exception|SymNode|NotFound))\(['\"](?P<text>.*)"),
    # torch 2.0 to 2.6: Failed running call_function …(*(FakeTensor(…), …), **{}): and the text below it
    ("Failed running ", r"Failed running [^\n]{0,4000}:\n(?P<text>.+)"),
    # torch 2.5 on: InductorError: TYPE: …, InternalTorchDynamoError: TYPE: …, LoweringException: TYPE: …
    (":", r"^(?P<type>[\w.]*(?:Error|Exception|NotFound|OutOfResources|Missing|"
     r"InvalidCxxCompiler|StopIteration)): ?(?P<text>.*)"),
)  # fmt: skip

# classes that generated code and the compiler's own checks raise, and a user's forward() does not
_INTERNAL_TYPES = frozenset(
    {
        "AssertionError", "LoweringException", "CppCompileError", "CompilationError", "SubprocException",
        "KeyError", "NameError", "SyntaxError", "CantSplit", "InvalidCxxCompiler", "NoTritonConfigsError",
        "SubgraphLoweringException", "UnsupportedMutationAliasingException",
        "CppWrapperCodegenError", "MissingOperatorWithoutDecomp", "MissingOperatorWithDecomp",
        "UnsupportedFakeTensorException", "UnsupportedOperatorException", "DataDependentOutputException",
        "DynamicOutputShapeException", "GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound",
    }
)  # fmt: skip
_INTERNAL_TEXTS = (
    "FakeTensor", "fake impl", "data-dependent", "data dependent", "Meta kernel", "unbacked", "SymInt",
)  # fmt: skip


def wrapped(text: str) -> tuple[str, str]:
    """Class and text of the error inside a compile error, "" for each not said."""
    for literal, source in _WRAPPED:
        found = pattern(source, re.DOTALL).search(text) if literal in text else None
        if found is not None:
            groups = found.groupdict()
            message = groups["text"].split("\n\nfrom user code")[0].strip()
            return (groups.get("type") or "").rpartition(".")[2], message
    return "", ""


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one exception of torch.compile; nothing when the event is none."""
    lately = transcript.events[max(0, event.id - _KERNEL_LINES) : event.id + 1]
    if any(pattern(_GENERATED).search(one.text) for one in lately if "def triton_" in one.text):
        yield "generated", True
    if "torch._dynamo hit config." in event.text:
        yield from _recompiled(event, transcript)
        return
    yield from _unknown_card(event, transcript)
    yield from _launcher_build(event.text)
    name = (event.type or "").rpartition(".")[2]
    stage = next((stage for stage, names in _STAGES if name in names), "")
    if any(words in event.text for words in ("FakeTensors first", "with fake tensors", "no fake impl")) or (
        not stage and event.text.startswith("Failed running call_")
    ):
        stage = "fake-tensor"
    if not stage:
        return
    inner_type, message = wrapped(event.text)
    internal = inner_type in _INTERNAL_TYPES or (stage == "fake-tensor" and name in _INTERNAL_TYPES)
    # a backend's text may quote fake tensors freely; in the other stages only the compiler speaks of them
    if internal or (stage != "backend" and any(mark in (message or event.text) for mark in _INTERNAL_TEXTS)):
        yield "inner_internal", True


def _unknown_card(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What knows a card that ptxas or LLVM does not; the command that ran ptxas stands around the message."""
    around = transcript.events[max(0, event.id - 4) : event.id + 8]
    texts = [event.text, *(item.text for item in around if "ptxas" in event.text or "PTX" in event.text)]
    found = next(filter(None, map(pattern(_UNKNOWN_CARD).search, texts)), None)
    if found is None:
        return
    yield "card", found["name"] or found["target"]
    known = _CARDS.get(found["card"] or found["code"])
    if known is not None:
        yield "card_cuda", known[0]
        yield "card_torch", known[1]
    # Triton 3.6 and later have an assembler of their own for compute capability 10 and higher
    apart = any("ptxas-blackwell" in item.text for item in around)
    yield "ptxas_variable", "TRITON_PTXAS_BLACKWELL_PATH" if apart else "TRITON_PTXAS_PATH"


def _launcher_build(text: str) -> Iterator[Found]:
    """What the command was given by which Triton has its small C module compiled, where that failed."""
    found = pattern(_COMMAND).search(text) if "'-shared'" in text else None
    parts = found["parts"][1:-1].split("', '") if found is not None else []
    if not any(pattern(_SOURCE).search(part) for part in parts):
        return
    yield "cc", parts[0]
    headers = next(filter(None, map(pattern(_HEADERS).match, reversed(parts))), None)
    if headers is not None:
        yield "headers", headers[1]
        yield "headers_python", headers[2]
    folders = [part[2:] for part in parts if part.startswith("-L/") and "-packages/" not in part]
    if "-lcuda" in parts and folders:
        yield "driver_folder", folders[0]


def _recompiled(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Function and last reason, which stand in the lines below the one that tells the limit."""
    for item in transcript.events[event.id : event.id + 8]:
        if item.rank != event.rank:
            continue
        named = pattern(r"function: '(?P<name>[^'\n]{1,200})' \((?P<at>[^)\n]{1,300})\)").search(item.text)
        if named is not None:
            yield Fact.known("compile.recompiled", named["name"], item.place())
            yield Fact.known("compile.recompiled_at", named["at"], item.place())
        reason = pattern(r"last reason: (?:\d+/\d+: )?(?P<reason>[^\n]{1,200})").search(item.text)
        if reason is not None:
            words = " ".join(reason["reason"].partition("  # ")[0].split())
            yield Fact.known("compile.last_reason", words, item.place())
            return
