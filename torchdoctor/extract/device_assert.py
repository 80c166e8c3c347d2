"""Facts out of the line that a kernel prints when one of its assertions fails.

Forms, each seen from the named program:

- CUDA: ``FILE:LINE: KERNEL: block: [x,y,z], thread: [x,y,z] Assertion `CONDITION` failed.`` Up to about
  torch 1.7 KERNEL is a whole signature; builds with MSVC leave it out; Inductor prints ``unknown``.
- HIP (clang's device library): ``FILE:LINE: SIGNATURE: Device-side assertion `CONDITION' failed.``
- torch built with TORCH_USE_CUDA_DSA: ``GPU assertion failure message = CONDITION`` and further lines.
- the CPU loss functions of torch up to 1.4: ``Assertion `CONDITION' failed.  at FILE:LINE``.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "assert.kernel": "str: name of the kernel, without arguments; absent where the compiler leaves it out",
    "assert.file": "str: source file, / as separator",
}

# A signature may be long, a condition is short; what lies further off belongs to something else.
BEFORE, AFTER = 1600, 800
TRIES = 4

_INDEX = r"\[\d{1,10},\s?\d{1,10},\s?\d{1,10}\]"
_FILE = r"(?P<file>(?:[A-Za-z]:)?[^\s:*?\"<>|`\[\]]{1,300}):\d{1,6}: "
_KERNEL = r"(?P<kernel>[^\n]{1,1200}?): "
_WHERE = f"block: {_INDEX}, thread: {_INDEX}"
# a condition may hold back quotes of its own, so the last one before "failed" ends it
_CONDITION = r",? Assertion [`']?[^\n]{0,300}?[`'] ?failed"

_SOURCES = {
    "cuda": f"{_FILE}(?:{_KERNEL})?{_WHERE}{_CONDITION}",
    "cuda-cut": f"(?:{_KERNEL})?{_WHERE}{_CONDITION}",  # the line's head was lost
    "hip": f"{_FILE}{_KERNEL}Device-side assertion `[^\\n]{{0,300}}?[`'] failed",
    "cpu": r"Assertion `[^\n]{1,300}?' failed\.?[^\n]{0,120}? at (?P<file>\S{1,300}):\d{1,6}",
    "dsa": r"GPU assertion failure message = [^\n]{1,300}",
    "dsa-file": r"File containing assertion = (?P<file>[^\s:]{1,300}):\d{1,6}",
    "dsa-kernel": r"Device function containing assertion = (?P<kernel>[^\n]{1,300})",
    "functor": r"([A-Za-z_]\w*)(?:<[^()]*>)?::operator\(\)",
    "name": r"([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<[^()]*>)?\s*\(",
}
_PATTERNS = Patterns(_SOURCES)
_DSA = ("dsa-file", "dsa-kernel")


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one failed assertion of a kernel; nothing when the event is none."""
    text = event.text
    place = -1
    for _ in range(TRIES):
        place = text.find("ssertion", place + 1)
        if place < 0:
            return
        part = text[max(0, place - BEFORE) : place + AFTER]
        for form in ("cuda", "hip", "cpu", "cuda-cut"):
            found = _PATTERNS[form].search(part)
            if found is not None:
                yield from _named({"file": None, **found.groupdict()})
                return
        if _PATTERNS["dsa"].search(part) is not None:
            parts = [hit.groupdict() for form in _DSA if (hit := _PATTERNS[form].search(part))]
            yield from _named({name: value for one in parts for name, value in one.items()})
            return


def _named(parts: dict[str, str | None]) -> Iterator[Found]:
    if "file" in parts:  # None where the head of the line is missing
        yield "file", (parts["file"] or "").replace("\\", "/") or None
    yield "kernel", _kernel(parts.get("kernel"))


def _kernel(printed: str | None) -> str | None:
    """The kernel's bare name out of a name or a whole signature; None where the message does not name it."""
    if not printed or printed.strip() == "unknown":
        return None
    name = printed.strip()
    if "(" in name and name != "operator()":
        found = _PATTERNS["functor"].search(name) or _PATTERNS["name"].search(name)
        name = found.group(1) if found else name
    return name.rpartition("::")[2] or name
