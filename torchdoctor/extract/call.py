"""The call in the user's innermost line, where a module was called with one tensor: its names."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "call.module": "text: the module whose call in the user's own line raised, as self.encoder",
    "call.argument": "text: the name of the only thing that it was called with",
}

_CALL = r"(?<![\w.])(?P<module>[A-Za-z_]\w*(?:\.\w+)*)\((?P<argument>[A-Za-z_]\w*)\)"
_INTO = frozenset({"_wrapped_call_impl", "_call_impl", "__call__"})


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Both names; nothing where the line calls more than one thing, or something else than a module."""
    del transcript
    own = [at for at, frame in enumerate(event.frames) if not frame.package]
    if not own or own[-1] + 1 >= len(event.frames):
        return
    line, *below = event.frames[own[-1] :]
    calls = list(pattern(_CALL).finditer(line.code))
    # a package's model does more with what it gets than to hand it to its layers
    of_torch = below[0].function in _INTO and all(frame.package in ("torch", "python") for frame in below)
    if of_torch and len(calls) == 1 == line.code.count("("):
        yield "module", calls[0]["module"]
        yield "argument", calls[0]["argument"]
    else:
        yield "module", None
        yield "argument", None
