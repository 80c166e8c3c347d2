"""Why shapes differ: one cause that explains all of them, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from torchdoctor.model import counted

Row = tuple[str, tuple[int, ...], tuple[int, ...]]  # name, shape in the file, shape in the model
Shape = tuple[int, ...]

_WORDS: Final = ("embed", "wte", "lm_head", "word_emb", "shared", "vocab", "decoder.bias",
    "cls.predictions", "output.weight", "embed_out",
                 "token_emb", "predictions", "head.weight")  # fmt: skip
_POSITIONS: Final = ("pos_emb", "position", "wpe", "relative_coords", "rel_pos", "rotary", "relative_pos")
_HEADS: Final = (
    "classifier",
    "fc",
    "head",
    "cls",
    "logits",
    "out_proj",
    "linear",
    "output",
    "score",
    "class",
    "predict",
    "last",
    "box",
)


def explain(rows: Sequence[Row], both: int) -> tuple[str, str]:
    """Kind and words of the cause; two empty texts when several things differ. ``both``: names in common."""
    if not rows:
        return "", ""
    for kind, test in _TESTS:
        words = test(rows, both)
        if words:
            return kind, words
    return "", ""


def _transposed(rows: Sequence[Row], _: int) -> str:
    if not all(len(file) >= 2 and file != model and _turned(file, model) for _, file, model in rows):
        return ""
    first = rows[0]
    return (
        f"the weights are transposed: {list(first[1])} in the file, {list(first[2])} in the model (one "
        "stores a linear layer as "
        "(out, in), the other as (in, out))"
    )


def _turned(file: Shape, model: Shape) -> bool:
    """Two dimensions exchanged, or all of them turned round or moved (as HWIO to OIHW)."""
    return len(file) == len(model) and sorted(file) == sorted(model)


def _lora_rank(rows: Sequence[Row], _: int) -> str:
    if not all("lora" in name.lower() for name, _, _ in rows):
        return ""
    pair = _one_pair(rows)
    return (
        f"the LoRA rank is {pair[0]} in the file and {pair[1]} in the model: set r={pair[0]}" if pair else ""
    )


def _one_pair(rows: Sequence[Row]) -> tuple[int, int] | None:
    """The one pair of sizes that differs in every row, in one dimension each."""
    pairs = {pair for _, file, model in rows for pair in _differing(file, model)}
    single = all(len(_differing(file, model)) == 1 for _, file, model in rows)
    return next(iter(pairs)) if len(pairs) == 1 and single else None


def _differing(file: Shape, model: Shape) -> list[tuple[int, int]]:
    if len(file) != len(model):
        return [(-1, -1), (-2, -2)]
    return [(one, other) for one, other in zip(file, model, strict=True) if one != other]


def _positions(rows: Sequence[Row], _: int) -> str:
    if not all(any(word in name.lower() for word in _POSITIONS) for name, _, _ in rows):
        return ""
    pairs = sorted({pair for _, file, model in rows for pair in _differing(file, model)})
    told = ", ".join(f"{one} → {other}" for one, other in pairs[:4])
    return f"the number of positions differs (file → model: {told}): another sequence length or image size"


def _vocabulary(rows: Sequence[Row], _: int) -> str:
    """The first dimension of embeddings and of the output layer, by the same two sizes."""
    pair = _one_pair(rows)
    if pair is None or not all(file[0] != model[0] for _, file, model in rows):
        return ""
    tokens = [
        name for name, file, _ in rows if any(word in name.lower() for word in _WORDS[:6]) and len(file) == 2
    ]
    if not tokens or not all(any(word in name.lower() for word in _WORDS) for name, _, _ in rows):
        return ""
    if max(pair) < 128:
        return ""
    words = f"the vocabulary has {counted(pair[0], 'token')} in the file and {pair[1]:,} in the model"
    return words + (
        f" ({pair[0] - pair[1]:+,}: padded, or with added tokens)" if abs(pair[0] - pair[1]) <= 256 else ""
    )


def _classes(rows: Sequence[Row], both: int) -> str:
    """Output layers alone, in the first dimension alone; all else fits."""
    if not all(len(file) == len(model) and file[1:] == model[1:] for _, file, model in rows):
        return ""
    layers = {name.rpartition(".")[0] for name, _, _ in rows}
    heads = all(any(word in layer.lower() for word in _HEADS) for layer in layers)
    if not heads and (len(layers) > 4 or both < 4 * len(rows)):
        return ""
    pairs = sorted({(file[0], model[0]) for _, file, model in rows})
    if len(pairs) == 1:
        return (
            f"the number of classes is {pairs[0][0]:,} in the file and {pairs[0][1]:,} in the model "
            f"({', '.join(sorted(layers)[:4])})"
        )
    steps = {(one - other) for one, other in pairs}
    told = ", ".join(f"{one} → {other}" for one, other in pairs[:4])
    same = f", {abs(next(iter(steps)))} apart everywhere" if len(steps) == 1 else ""
    return f"the number of classes differs (file → model: {told}{same})" if len(layers) <= 12 else ""


def _width(rows: Sequence[Row], both: int) -> str:
    """Every size that differs does so by one factor, or by one pair: a narrower or wider model."""
    if len(rows) < 2 or not all(len(file) == len(model) for _, file, model in rows):
        return ""
    pairs = {pair for _, file, model in rows for pair in _differing(file, model)}
    factors = {one / other for one, other in pairs if other}
    if len(factors) == 1:
        factor = next(iter(factors))
        told = f"{factor:g} times as wide as" if factor > 1 else f"{factor:g} of the width of"
        return f"the file is of another size of the model: {told} this one"
    if len(pairs) == 1:
        one, other = next(iter(pairs))
        return f"the size {one} in the file is {other} in the model, everywhere"
    return ""


def _channels(rows: Sequence[Row], _: int) -> str:
    """The second dimension of one convolution or patch embedding: the number of input channels."""
    if len(rows) > 2 or not all(
        len(file) == len(model) >= 3 and file[0] == model[0] for _, file, model in rows
    ):
        return ""
    pair = _one_pair(rows)
    return (
        f"the first layer takes {pair[0]} input channels in the file and {pair[1]} in the model"
        if pair
        else ""
    )


_TESTS: Final[tuple[tuple[str, Callable[[Sequence[Row], int], str]], ...]] = (
    ("lora-rank", _lora_rank),
    ("transposed", _transposed),
    ("positions", _positions),
    ("vocabulary", _vocabulary),
    ("channels", _channels),
    ("classes", _classes),
    ("width", _width),
)

_LAYER: Final = re.compile(r"(?:^|\.)(\d{1,4})\.")
_RENAMES: Final = (
    ("gamma", "weight"), ("beta", "bias"), ("weight_g", "parametrizations.weight.original0"),
    ("weight_v", "parametrizations.weight.original1"), ("num_batches_tracked", ""), ("position_ids", ""),
    ("weight_orig", "weight"), ("qweight", "weight"),
)  # fmt: skip


def explain_names(
    missing: Sequence[str], unexpected: Sequence[str], model: Mapping[str, Shape], file: Mapping[str, Shape]
) -> str:
    """What explains names that only one side has; "" when nothing simple does."""
    if not missing and not unexpected:
        return ""
    return (
        _adapters(missing, unexpected)
        or _depth(missing, unexpected, model, file)
        or _renamed(missing, unexpected)
        or _one_module(missing, unexpected)
    )


def _adapters(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    if unexpected and not missing and all("lora_" in name for name in unexpected):
        return "the file has LoRA adapters, the model has none: wrap it with PEFT first"
    if missing and not unexpected and all("lora_" in name for name in missing):
        return (
            "the model has LoRA adapters, the file is the plain model: load it before they are added, "
            "or with strict=False"
        )
    return ""


def _depth(
    missing: Sequence[str], unexpected: Sequence[str], model: Mapping[str, Shape], file: Mapping[str, Shape]
) -> str:
    """Whole numbered layers on one side only: another depth."""
    if bool(missing) == bool(unexpected):
        return ""
    extra, other = (missing, file) if missing else (unexpected, model)
    stems = {name[: found.start(1)] for name in extra if (found := _LAYER.search(name))}
    if len(stems) != 1 or not all(_LAYER.search(name) for name in extra):
        return ""
    (stem,) = stems
    numbers = {int(found[1]) for name in extra if (found := _LAYER.search(name))}
    known = {int(found[1]) for name in other if name.startswith(stem) and (found := _LAYER.search(name))}
    if not known or min(numbers) <= max(known):
        return ""
    here, there = max(known) + 1, max(numbers) + 1
    return (
        f"{stem}N has {here} layers in the {'file' if missing else 'model'} and {there} in the "
        f"{'model' if missing else 'file'}"
    )


def _renamed(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """Last words that are called otherwise, one for one."""
    for old, new in _RENAMES:
        if not new and not missing and unexpected and all(name.endswith(old) for name in unexpected):
            return (
                f"only buffers named {old} are too many: this version of the model does not save them; "
                "strict=False is safe here"
            )
        if not new and not unexpected and missing and all(name.endswith(old) for name in missing):
            return (
                f"only buffers named {old} are missing: the version that saved them had none; "
                "strict=False is safe here"
            )
    wanted = set(missing)
    pairs = [(old, new) for old, new in _RENAMES if new and any(name.endswith(old) for name in unexpected)]
    changed = set()
    for name in unexpected:
        for old, new in pairs:
            if name.endswith(old):
                changed.add(name[: -len(old)] + new)
    if pairs and changed >= wanted and wanted:
        told = ", ".join(f"{old} → {new}" for old, new in pairs)
        return f"the same parts under other names (file → model): {told}"
    return ""


def _one_module(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    """All on one side, and all of it under one or two heads: a part that only one side has."""
    if bool(missing) == bool(unexpected):
        return ""
    extra = missing or unexpected
    heads = sorted({name.rpartition(".")[0].split(".")[0] or name for name in extra})
    if len(heads) > 3:
        return ""
    side = "the model has, and the file lacks" if missing else "the file has, and the model lacks"
    return f"{side}, all of {', '.join(heads)}"
