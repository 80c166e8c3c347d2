"""Whether a larger share of the GPU would hold the cache that vLLM could not make, or the weights fill it.

``gpu_memory_utilization`` is a share of the whole card. How much a larger one brings follows from the card's
size, which a log prints, or from what the share held: weights, graphs and what was left for the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, Transcript
from torchdoctor.number import amount
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "kv_cache.more_is_enough": "bool: 0.95 of the GPU would hold one longest request; unknown where the"
    " share or the sizes are not printed",
    "kv_cache.weights_bytes": "int: what the weights took, as vLLM says, where memory ran out",
    "kv_cache.weights_fill": "bool: that is nine tenths of the card or more",
    "kv_cache.missing_bytes": "int: how much more than the share of the GPU weights and the trial batch took,"
    " by what vLLM says is left",
}

_NUMBER = r"(\d{1,6}(?:\.\d{1,6})?)"
_SOURCES = {
    "needed": rf"{_NUMBER} GiB KV cache is needed",
    "left": rf"larger than the available KV cache memory \({_NUMBER} GiB\)",
    # an option, an argument, the arguments as vLLM prints them, its report on the card
    "share": rf"gpu[_-]memory[_-]utilization['\"]?\)?(?:[=: ]| \(){{1,2}}{_NUMBER}",
    "card": rf"total_gpu_memory \({_NUMBER} ?GiB\)|/{_NUMBER} GiB\) on startup",
    "capacity": rf"total capacity of {_NUMBER} GiB",
    "weights": rf"Model loading took {_NUMBER} Gi?B",
    "graphs": rf"Estimated CUDA graph memory: {_NUMBER} GiB",
    "missing": rf"Available KV cache memory: -{_NUMBER} GiB",
}
_PATTERNS = Patterns(_SOURCES)
_MOST = 0.95
_FILLED = 0.9
_GIB = 1024**3
_ACTIVATIONS = 1.1  # what a share holds beside weights, graphs and cache, at most


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The claims, for a message of vLLM that names the cache, and for one that memory ran out."""
    if (card := _PATTERNS["capacity"].search(event.text)) is not None:
        weights = _told(transcript).get("weights")
        if weights is not None:
            yield "weights_bytes", int(weights * _GIB)
            yield "weights_fill", weights >= _FILLED * (amount(card[1]) or 0.0)
        return
    if "KV cache" not in event.text and "cache blocks" not in event.text:
        return
    told = _told(transcript)
    if told.get("missing"):
        yield "missing_bytes", int(told["missing"] * _GIB)
    share = told.get("share")
    if share is None:
        return
    if share >= _MOST:
        yield "more_is_enough", False
        return
    needed, left = _PATTERNS["needed"].search(event.text), _PATTERNS["left"].search(event.text)
    if needed is None or left is None:
        return
    free = amount(left[1]) or 0.0
    whole = told.get("card")
    if whole is None and "weights" in told:
        whole = (told["weights"] + told.get("graphs", 0.0) + free) * _ACTIVATIONS / share
    if whole is not None:
        yield "more_is_enough", free + (_MOST - share) * whole >= (amount(needed[1]) or 0.0)


@once_a_text
def _told(transcript: Transcript) -> dict[str, float]:
    """The figures of the log, each as it was printed last."""
    told: dict[str, float] = {}
    for event in transcript.events:
        for name in ("share", "card", "weights", "graphs", "missing"):
            for found in _PATTERNS[name].finditer(event.text[:4_000]):
                value = amount(next(group for group in found.groups() if group))
                if value:
                    told[name] = value
    return told
