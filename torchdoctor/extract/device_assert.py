"""Facts out of the line that a kernel prints when one of its assertions fails.

Forms, each seen from the named program:

- CUDA: ``FILE:LINE: KERNEL: block: [x,y,z], thread: [x,y,z] Assertion `CONDITION` failed.`` Up to about
  torch 1.7 KERNEL is a whole signature; builds with MSVC leave it out; Inductor prints ``unknown``.
- HIP (clang's device library): ``FILE:LINE: SIGNATURE: Device-side assertion `CONDITION' failed.``
- torch built with TORCH_USE_CUDA_DSA: ``GPU assertion failure message = CONDITION`` and further lines.
- the CPU loss functions of torch up to 1.4: ``Assertion `CONDITION' failed.  at FILE:LINE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "assert.condition": "str: what had to be true, as printed",
    "assert.kernel": "str: name of the kernel, without arguments; absent where the compiler leaves it out",
    "assert.file": "str: source file, / as separator",
    "assert.line": "int: line in that file",
    "assert.block": "str: block index, as printed (0,0,0)",
    "assert.thread": "str: thread index, as printed (3,0,0)",
    "assert.backend": "str: cuda, hip, inductor (a kernel that torch.compile wrote), triton, or cpu",
}

# A signature may be long, a condition is short; what lies further off belongs to something else.
BEFORE, AFTER = 1600, 800
TRIES = 4

_INDEX = r"\[(?P<%s>\d{1,10},\s?\d{1,10},\s?\d{1,10})\]"
_PLACE = r"(?P<file>(?:[A-Za-z]:)?[^\s:*?\"<>|`\[\]]{1,300}):(?P<line>\d{1,6}): "
_KERNEL = r"(?P<kernel>[^\n]{1,1200}?): "
_WHERE = r"block: " + _INDEX % "block" + r", thread: " + _INDEX % "thread"
# a condition may hold back quotes of its own, so the last one before "failed" ends it
_CONDITION = r",? Assertion [`']?(?P<condition>[^\n]{0,300}?)[`'] ?failed"

_SOURCES = {
    "cuda": _PLACE + f"(?:{_KERNEL})?" + _WHERE + _CONDITION,
    "cuda-cut": f"(?:{_KERNEL})?" + _WHERE + _CONDITION,  # the line's head was lost
    "hip": _PLACE + _KERNEL + r"Device-side assertion `(?P<condition>[^\n]{0,300}?)[`'] failed",
    "cpu": (
        r"Assertion `(?P<condition>[^\n]{1,300}?)' failed\.?[^\n]{0,120}? at "
        r"(?P<file>\S{1,300}):(?P<line>\d{1,6})"
    ),
    "dsa": r"GPU assertion failure message = (?P<condition>[^\n]{1,300})",
    "dsa-file": r"File containing assertion = (?P<file>[^\s:]{1,300}):(?P<line>\d{1,6})",
    "dsa-kernel": r"Device function containing assertion = (?P<kernel>[^\n]{1,300})",
    "dsa-thread": r"Thread ID that failed assertion = " + _INDEX % "index",
    "dsa-block": r"Block ID that failed assertion = " + _INDEX % "index",
    "functor": r"([A-Za-z_]\w*)(?:<[^()]*>)?::operator\(\)",
    "name": r"([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<[^()]*>)?\s*\(",
}
_PATTERNS = Patterns(_SOURCES)


def extract(event: Event, transcript: Transcript) -> Iterator[Fact]:
    """Facts of one failed assertion of a kernel; nothing when the event is none."""
    text = event.text
    source = f"text:{event.source}:{event.line}"
    place = -1
    for _ in range(TRIES):
        place = text.find("ssertion", place + 1)
        if place < 0:
            return
        part = text[max(0, place - BEFORE) : place + AFTER]
        for backend in ("cuda", "hip", "cpu", "cuda-cut"):
            found = _PATTERNS[backend].search(part)
            if found is not None:
                yield from _one_line(backend, found, source)
                return
        if (found := _PATTERNS["dsa"].search(part)) is not None:
            yield from _report(found, part, source)
            return


def _one_line(backend: str, found: re.Match[str], source: str) -> Iterator[Fact]:
    parts = found.groupdict()
    file = (parts.get("file") or "").replace("\\", "/")
    yield Fact.known("assert.condition", str(parts["condition"]).strip(), source)
    if file:
        yield Fact.known("assert.file", file, source)
        yield Fact.known("assert.line", int(str(parts["line"])), source)
    else:
        yield Fact.absent("assert.file", source, "the head of the line is missing")
        yield Fact.absent("assert.line", source)
    yield _kernel(parts.get("kernel"), source)
    if backend.startswith("cuda"):
        for part in ("block", "thread"):
            yield Fact.known(f"assert.{part}", str(parts[part]).replace(" ", ""), source)
        backend = "cuda"
        if file.endswith(".py"):
            backend = "inductor" if "torchinductor" in file else "triton"
    yield Fact.known("assert.backend", backend, source)


def _report(found: re.Match[str], text: str, source: str) -> Iterator[Fact]:
    yield Fact.known("assert.condition", found.group("condition").strip(), source)
    if (place := _PATTERNS["dsa-file"].search(text)) is not None:
        yield Fact.known("assert.file", place.group("file").replace("\\", "/"), source)
        yield Fact.known("assert.line", int(place.group("line")), source)
    kernel = _PATTERNS["dsa-kernel"].search(text)
    yield _kernel(kernel.group("kernel") if kernel else None, source)
    for part in ("block", "thread"):
        if (index := _PATTERNS[f"dsa-{part}"].search(text)) is not None:
            yield Fact.known(f"assert.{part}", index.group("index").replace(" ", ""), source)
    yield Fact.known("assert.backend", "cuda", source)


def _kernel(printed: str | None, source: str) -> Fact:
    """The kernel's bare name out of a name or a whole signature."""
    if not printed or printed.strip() == "unknown":
        return Fact.absent("assert.kernel", source, "the message does not name it")
    name = printed.strip()
    if "(" in name and name != "operator()":
        found = _PATTERNS["functor"].search(name) or _PATTERNS["name"].search(name)
        name = found.group(1) if found else name
    return Fact.known("assert.kernel", name.rpartition("::")[2] or name, source)
