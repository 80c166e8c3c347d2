"""Findings of a comparison: which of the catalog's rules it is, and the snippet that loads the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchdoctor.checkpoint import against
from torchdoctor.checkpoint.against import Comparison, Shapes
from torchdoctor.checkpoint.contents import Contents, Finding, StateDict
from torchdoctor.model import Fix, Severity, counted

_SHOWN = 6


def closest(contents: Sequence[Contents], model: Shapes) -> tuple[StateDict, Comparison] | None:
    """The state dict, of one file or of all shards together, that fits the model best; None without any."""
    candidates = [state for one in contents for state in one.states if state.tensors]
    if len(contents) > 1:
        whole: StateDict = StateDict((), {})
        for one in contents:
            for state in one.states:
                if not state.path:
                    whole.tensors.update(state.tensors)
        candidates.insert(0, whole)
    best: tuple[StateDict, Comparison] | None = None
    for state in candidates[:64]:
        found = against.compare({name: tensor.shape for name, tensor in state.tensors.items()}, model)
        if best is None or _worth(found) > _worth(best[1]):
            best = state, found
    return best


def _worth(found: Comparison) -> tuple[int, int, int]:
    return found.same, len(found.mismatched), -len(found.unexpected)


def findings(state: StateDict, found: Comparison, path: str, other: str) -> Iterator[Finding]:
    """What stands in the way of load_state_dict; nothing when the file fits as it is."""
    snippet = _snippet(state, found, path)
    if not found.same and not found.mismatched:
        yield Finding(
            "checkpoint-missing-keys",
            (f"no name of the file is one of {other}: it belongs to another model", *_names(found)),
            file=path,
            fixes=(Fix("Take the checkpoint of this model, or build the model that this file is of."),),
        )
        return
    if not found.change.nothing:
        yield Finding(
            "checkpoint-module-prefix",
            _prefix_words(found, other),
            file=path,
            fixes=(Fix("Load it so:", snippet),),
        )
    if found.mismatched:
        yield Finding(
            "checkpoint-size-mismatch",
            tuple(_size_words(found)),
            file=path,
            fixes=tuple(_size_fixes(found, snippet)),
        )
    if found.missing or found.unexpected:
        harmless = "strict=False is safe" in found.names_cause
        says = [found.names_cause] if found.names_cause else []
        fixes = [Fix("Load it so, which leaves out what does not meet:", snippet)] if found.same else []
        yield Finding(
            "checkpoint-missing-keys", (*says, *_names(found)),
            Severity.WARNING if harmless else Severity.FATAL, file=path,
            fixes=tuple(fixes),
        )  # fmt: skip


def _prefix_words(found: Comparison, other: str) -> tuple[str, ...]:
    change = found.change
    says = []
    if change.removed:
        says.append(
            f"the names of the file carry {', '.join(map(repr, change.removed))}, those of {other} do not"
        )
    if change.prefix:
        says.append(f"the names of the file begin with {change.prefix!r}, those of {other} do not")
    if change.added:
        says.append(f"the names of {other} begin with {change.added!r}, those of the file do not")
    says.append(
        f"without that {counted(found.same + len(found.mismatched), 'name')} meet, {found.same:,} of them "
        "in their "
        "shapes"
    )
    return tuple(says)


def _size_words(found: Comparison) -> Iterator[str]:
    if found.cause:
        yield found.cause
    for one in found.mismatched[:_SHOWN]:
        yield f"{one.name}: {list(one.file)} in the file, {list(one.model)} in the model"
    if len(found.mismatched) > _SHOWN:
        yield f"and {len(found.mismatched) - _SHOWN:,} more"


def _size_fixes(found: Comparison, snippet: str) -> Iterator[Fix]:
    """What makes the two meet, by the kind of cause."""
    first = found.mismatched[0]
    if found.kind == "transposed":
        yield Fix(
            "Turn these weights before loading: sd[name] = sd[name].t().contiguous() (for convolutions "
            "permute), for the names listed."
        )
    elif found.kind == "vocabulary":
        size = first.file[0]
        yield Fix(
            "Give the model the vocabulary of the file before loading: "
            f"model.resize_token_embeddings({size}), or vocab_size={size}."
        )
    elif found.kind == "classes":
        sizes = ", ".join(dict.fromkeys(str(one.file[0]) for one in found.mismatched[:4]))
        yield Fix(f"Build the model with the file's number of classes ({sizes}) to use it as it is.")
        yield Fix("To train on other classes leave the last layer out:", snippet)
    elif found.kind == "lora-rank":
        yield Fix(
            f"Build the adapter with the rank of the file: {found.cause.rpartition('set ')[2]} in its "
            "LoraConfig."
        )
    elif found.kind == "positions":
        yield Fix("Build the model with the length or image size of the file, or interpolate the positions.")
    elif found.kind == "channels":
        yield Fix(
            f"Build the model with {first.file[1]} input channels, or change the first layer after loading."
        )
    else:
        yield Fix("Build the model with the configuration that the file was saved with.")


def _names(found: Comparison) -> Iterator[str]:
    for words, names in (("missing from the file", found.missing), ("only in the file", found.unexpected)):
        if names:
            more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            yield f"{counted(len(names), 'name')} {words}: {', '.join(names[:_SHOWN])}{more}"


def _snippet(state: StateDict, found: Comparison, path: str) -> str:
    """Lines of Python, on one line, that load what fits."""
    if path.endswith(".safetensors"):
        lines = [f"import torch; from safetensors.torch import load_file; sd = load_file({path!r})"]
    else:
        keys = "".join(f"[{key!r}]" for key in state.path)
        lines = [f"import torch; sd = torch.load({path!r}, map_location='cpu'){keys}"]
    if state.owner:
        lines.append("sd = sd.state_dict()")
    if not found.change.nothing:
        lines.append(found.change.snippet())
    if found.mismatched:
        lines.append(
            "own = model.state_dict(); sd = {k: v for k, v in sd.items() if k in own and v.shape == "
            "own[k].shape}"
        )
    strict = not (found.missing or found.unexpected or found.mismatched)
    lines.append(f"model.load_state_dict(sd{'' if strict else ', strict=False'})")
    return "; ".join(lines)
