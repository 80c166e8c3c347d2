"""The native frames that a crash report of Windows has below its exception code: whose code stood innermost.

AMD's runtime prints them, in LLVM's form or in that of dbghelp. Names of functions are those of the nearest
export, which may be far off: the dispatcher's alone, ``at::_ops::NAME::call``, are names of the operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile, takewhile

from torchdoctor.extract import Found
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "native.library": "text: library of the innermost native frame of a crash, the system's own apart",
    "native.package": "text: package that the library belongs to: torch, _rocm_sdk; absent for a driver's",
    "native.operation": "text: operation of torch that ran in those frames, as _int_mm",
}
_CODE = "Exception Code: 0x"
_FRAME = (
    # #1 0x00007ffe5056c36d at::cuda::_int_mm(class at::Tensor const &) (C:\env\Lib\torch_hip.dll+0x26dc36d)
    r"\s*#\d{1,3} 0x[0-9A-Fa-f]{8,16}(?: (?P<symbol>.*))?"
    r" \((?P<file>[^()\n]{1,300})\+0x[0-9A-Fa-f]{1,16}\)\s*$"
    # 0x00007FF8CD6A13BD, C:\env\amdhip64_7.dll(0x00007FF8CD320000) + 0x3813BD byte(s), hipLaunchKernel()
    r"|\s*0x[0-9A-Fa-f]{8,16}, (?P<path>[^()\n]{1,300})\(0x[0-9A-Fa-f]{8,16}\)"
    r" \+ 0x[0-9A-Fa-f]{1,16} byte\(s\)(?:, (?P<function>.*))?\s*$"
)
_OPERATION = r"\bat::_ops::(\w{1,80})::(?:call|redispatch)\b"
# what only hands a fault on
_OF_SYSTEM = r"(?i)(?:ntdll|kernel32|kernelbase|ucrtbase|vcruntime\w*|msvcp\w*)\.dll"
# of _rocm_sdk there is one more with libraries for each family of cards
_PACKAGE = r"[\\/](?:site|dist)-packages[\\/](_rocm_sdk(?=_)|[^\\/]+(?=[\\/]))"
_MOST = 60  # frames, and lines from the message of the crash to them: one stack of each thread


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of a crash that such frames follow; nothing for any other event."""
    if event.kind is not EventKind.CRASH:
        return
    frames = list(_frames(event, transcript))
    if not frames:
        return
    library = next((file for file, _ in frames if not pattern(_OF_SYSTEM).fullmatch(_name(file))), "")
    yield "library", _name(library) or None
    packaged = pattern(_PACKAGE).search(library)
    yield "package", packaged[1] if packaged is not None else None
    found = (pattern(_OPERATION).search(symbol) for _, symbol in frames)
    yield "operation", next((one[1] for one in found if one is not None), None)


def _frames(event: Event, transcript: Transcript) -> Iterator[tuple[str, str]]:
    """(file, function) of the frames below the exception code, which stands here or soon after."""
    behind = [
        other.text
        for other in transcript.events[event.id : event.id + 2 * _MOST]
        if other.stream == event.stream and other.kind is not EventKind.STACK
    ]
    below = list(dropwhile(lambda text: _CODE not in text, behind))[1 : 1 + _MOST]
    read = takewhile(lambda found: found is not None, (pattern(_FRAME).match(text) for text in below))
    for found in read:
        if found is not None:
            yield found["file"] or found["path"], found["symbol"] or found["function"] or ""


def _name(file: str) -> str:
    return re.split(r"[\\/]", file)[-1]
