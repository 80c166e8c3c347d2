"""What the reader's torch is too old for: options, variables and launchers that came with a later release.

Sources: the release notes of torch 1.9 to 2.2, and the wheels of 2.3 to 2.5.
"""

from __future__ import annotations

from collections.abc import Callable

from torchdoctor.engine.conditions import ConditionError, as_text, order_key
from torchdoctor.model import Fact

TORCHRUN = (1.0, 10.0)
_SINCE = {
    "TORCH_DISTRIBUTED_DEBUG": (1.0, 9.0),
    "use_reentrant=": (1.0, 11.0),
    "static_graph=": (1.0, 11.0),
    "expandable_segments": (2.0, 1.0),
    "TORCH_LOGS": (2.0, 1.0),
    "TORCH_NCCL_TRACE_BUFFER_SIZE": (2.0, 2.0),
    "flight recorder": (2.0, 2.0),
    "with dynamo=True": (2.0, 5.0),
    "(dynamo=True": (2.0, 5.0),
    "torch.mps.recommended_max_memory": (2.0, 5.0),
}


def older(release: tuple[float, ...], ask: Callable[[str], Fact]) -> bool:
    """Is the torch of the text older than a release, by its version or by what shows its age?"""
    version, before = as_text(ask("torch.version")), as_text(ask("torch.before"))
    try:
        if version:
            return order_key(version) < release
        return bool(before) and order_key(before) <= release
    except ConditionError:
        return False


def too_new(words: str, ask: Callable[[str], Fact]) -> bool:
    """Does a command or a sentence name what this torch does not have yet?"""
    return any(word in words and older(release, ask) for word, release in _SINCE.items())
