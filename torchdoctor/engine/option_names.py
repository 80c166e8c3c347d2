"""Arguments of torch that programs over it call otherwise: rules speak of torch's own.

Sources: ultralytics/cfg/default.yaml, transformers.TrainingArguments, Megatron-LM's arguments.py.
"""

from __future__ import annotations

from collections.abc import Mapping

_WORKERS = "num_workers="
_NAMES = {"ultralytics": "workers=", "trainer": "dataloader_num_workers=", "megatron": "--num-workers="}


def named(do: str, seen: Mapping[str, frozenset[str]]) -> str:
    """The advice with the names that the program which builds the loaders gives its options."""
    if "DataLoader(" in do:
        return do
    name = next((own for tag, own in _NAMES.items() if tag in seen.get("program", ())), _WORKERS)
    return do.replace(_WORKERS, name)
