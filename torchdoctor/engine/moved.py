"""Which package moved a model that it was loading, where the user asked for the load and not for the move."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.model import Fact, Frame
from torchdoctor.patterns import pattern

_LOADS = r"__init__|_{0,2}(?:from|load)(?:_\w{1,80})?"  # functions whose work is to make a model
_MOVES = frozenset({"to", "cuda", "cpu", "half", "float", "bfloat16", "double"})
_WITH = ("transformers", "accelerate")  # which fill weights that were made on the meta device
_BASE = ("torch", "python")


def loader(frames: Sequence[Frame]) -> str | None:
    """The innermost package that called torch; None where the user's line moves the model or loads none."""
    own = max((number for number, frame in enumerate(frames) if not frame.package), default=-1)
    below = frames[own + 1 :]
    moved = bool(below) and below[-1].package == "torch" and any(one.function in _MOVES for one in below)
    if not moved or below[0].package == "torch" or below[0].function in _MOVES:
        return None
    packages = [frame for frame in below if frame.package not in _BASE]
    loads = any(pattern(_LOADS).fullmatch(frame.function) for frame in packages)
    return packages[-1].package if loads else None


def update(name: str, pip: str, package: str) -> Fact:
    """The command that updates the package with those that it loads with."""
    if not package:
        return Fact.absent(name, "text")
    together = dict.fromkeys((package.replace("_", "-"), *_WITH))
    return Fact.known(name, f"{pip} -U {' '.join(together)}", "text")
