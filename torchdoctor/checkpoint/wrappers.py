"""Words that wrappers put before the names of a model's parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# word -> what puts it there; these may also stand in the middle of a name
INNER: Final = {
    "_orig_mod.": "torch.compile",
    "_forward_module.": "Lightning Fabric",
    "_fsdp_wrapped_module.": "FullyShardedDataParallel",
    "_checkpoint_wrapped_module.": "activation checkpointing",
}
# these only as the first word of every name: inside they are names like any other
OUTER: Final = {
    "module.": "DataParallel, DistributedDataParallel or DeepSpeed",
    "model.": "a trainer class that keeps the network in .model",
    "base_model.model.": "PEFT",
}


def of(names: Iterable[str]) -> dict[str, str]:
    """The wrappers' words in these names, with who puts them there, outermost first."""
    left = list(names)
    found: dict[str, str] = {}
    while left:
        for word, who in (*OUTER.items(), *INNER.items()):
            if word not in found and all(name.startswith(word) for name in left):
                found[word] = who
                left = [name[len(word) :] for name in left]
                break
        else:
            break
    for word, who in INNER.items():
        if word not in found and any(f".{word}" in f".{name}" for name in left):
            found[word] = who
    return found


def without(name: str, words: Iterable[str]) -> str:
    """A name with the wrappers' words taken out; those of OUTER only at its beginning."""
    for word in words:
        if name.startswith(word):
            name = name[len(word) :]
        elif word in INNER:
            name = f".{name}".replace(f".{word}", ".")[1:]
    return name


def adapters(names: Iterable[str]) -> tuple[int, int]:
    """How many names are of LoRA adapters, and how many are not."""
    total = lora = 0
    for name in names:
        total += 1
        lora += ".lora_" in name or name.startswith("lora_") or ".lora." in name
    return lora, total - lora
