"""What a line of the stack calls, ``encoder`` in ``h = encoder(x.to(device)).last``, and what it hands on."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, parsed, source
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern, search

FACTS: dict[str, str] = {
    "call.module": "text: the only module that the user's innermost line calls, as self.encoder",
    "call.argument": "text: the name that it alone was called with, where its layers are torch's",
    "call.buffer": "text: the name into a part of which that line writes, as targets in targets[i] = x",
    "call.value": "text: the name of what it writes there",
    "call.map_location": "text: the name that the line which loads a checkpoint hands on as map_location",
    "call.copy": "text: the copy.deepcopy that a line of the user's hands on, by its name",
    "call.copied": "text: what that is a copy of",
    "call.floated": "text: what a line made with .float() that the next ones hand on, by its name",
    "call.floated_at": "text: the file and line that hands it on",
}

_MAP_LOCATION = r"\bmap_location ?= ?([A-Za-z_][\w.]{0,60})(?=[,) ]|$)(?! *lambda)"
_MODULE = "torch/nn/modules/module.py"  # behind whose call the layers of a module are
# what a tensor may be asked for between the parentheses
_OF_TENSORS = frozenset({
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "bool", "type", "detach",
    "clone", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "contiguous", "size",
})  # fmt: skip
# pi = copy.deepcopy(ref).to(device), ids = torch.tensor(rows).float()
_MADE = (
    (
        "copy",
        r"\s*(?P<name>[A-Za-z_][\w.]{0,60}) = (?:copy\.)?deepcopy\((?P<copied>[A-Za-z_][\w.]{0,60})\)",
    ),
    ("floated", r"\s*(?P<name>[A-Za-z_][\w.]{0,60}) = .{1,200}\.float\(\)\s*(?:#|$)"),
)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The names, None for one that the line does not show."""
    del transcript
    yield "map_location", _map_location(event)
    yield from _made_above(event)
    at = max((number for number, frame in enumerate(event.frames) if not frame.package), default=-1)
    below = event.frames[at + 1 :]
    if at < 0:
        return
    if not below:
        yield from zip(("buffer", "value"), _written(event.frames[at].code.strip()), strict=True)
        return
    called = below[0].file.replace("\\", "/").endswith(_MODULE)
    module, argument = _names(event.frames[at].code.strip()) if called else (None, None)
    yield "module", module
    # a package's model does more with what it gets than to hand it to its layers
    of_torch = all(frame.package in ("torch", "python") for frame in below)
    yield "argument", argument if of_torch else None


def _map_location(event: Event) -> str | None:
    """What the last line outside of torch hands on; a constant and a function that moves are none."""
    caller = next((one for one in reversed(event.frames) if one.package not in ("torch", "python")), None)
    found = search(_MAP_LOCATION, caller.code, "map_location") if caller is not None else None
    return found[1] if found is not None and found[1] != "None" else None


def _made_above(event: Event) -> Iterator[Found]:
    """What the innermost frames show to be made above their line, and to be handed on by it."""
    told: set[str] = set()
    for frame in reversed(event.frames):
        for line in reversed(frame.above.splitlines()):
            for what, form in _MADE:
                made = pattern(form).match(line) if what not in told else None
                if made is None or not _hands_on(frame.code, made["name"]):
                    continue
                told.add(what)
                yield what, made["name"]
                if what == "copy":
                    yield "copied", made["copied"]
                else:
                    yield "floated_at", frame.place()


def _hands_on(code: str, name: str) -> bool:
    from torchdoctor.extract.line_parts import handed

    return name in handed(code)


def _written(code: str) -> tuple[str | None, str | None]:
    """The buffer and the value of ``buffer[index] = value``, both of them plain names."""
    found = pattern(r"([\w.]{1,80})\[[^=]{1,200}\] = ([A-Za-z_][\w.]{0,80})").fullmatch(code)
    return (found[1], found[2]) if found is not None else (None, None)


def _names(code: str) -> tuple[str | None, str | None]:
    """The one module that a line calls, and the name that it hands over alone."""
    import ast

    tree = parsed(code)
    if tree is None:
        return None, None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    rest = [
        one for one in calls if not (isinstance(one.func, ast.Attribute) and one.func.attr in _OF_TENSORS)
    ]
    name = source(rest[0].func) if len(rest) == 1 else ""
    if not name or not all(part.isidentifier() for part in name.split(".")):
        return None, None
    given = rest[0].args[0] if len(calls) == 1 and len(rest[0].args) == 1 and not rest[0].keywords else None
    return name, given.id if isinstance(given, ast.Name) else None
