"""Which module the reader's line calls: ``encoder`` in ``h = encoder(batch["x"].to(device)).last``."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.model import Frame

_MODULE = "torch/nn/modules/module.py"  # behind whose call the layers of a module are
# what a tensor may be asked for between the parentheses
_OF_TENSORS = frozenset({
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "bool", "type", "detach",
    "clone", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "contiguous", "size",
})  # fmt: skip


def module(frames: Sequence[Frame]) -> str | None:
    """The module that the innermost line of the user's own calls, where it calls no other."""
    at = max((number for number, frame in enumerate(frames) if not frame.package), default=-1)
    if not 0 <= at < len(frames) - 1 or not frames[at + 1].file.replace("\\", "/").endswith(_MODULE):
        return None
    import ast

    try:
        tree = ast.parse(frames[at].code.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a part of a statement
        return None
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    rest = [one for one in calls if not (isinstance(one, ast.Attribute) and one.attr in _OF_TENSORS)]
    name = ast.unparse(rest[0]) if len(rest) == 1 else ""
    return name if name and all(part.isidentifier() for part in name.split(".")) else None
