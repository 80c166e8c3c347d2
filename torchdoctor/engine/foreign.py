"""Which messages of CUDA come from a program that is none of torch's: llama.cpp, Paddle, TensorFlow, JAX."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.engine.textfacts import log_value, related

if TYPE_CHECKING:
    import re

    from torchdoctor.model import Event, Transcript

_NEAR = 30
_TRAINED = 2000  # events in which a program names its framework
# causes whose messages are those of CUDA and its libraries, which every program prints alike
_SHARED = ("cuda-", "cublas-", "cudnn-", "no-kernel-image")
_PROGRESS = ("loss-nan",)  # losses are printed alike by every framework, too


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    import re

    others = re.compile(
        r"\bggml[_-]|\bllama(?:[_-]\w+| runner|\.cpp)|\bollama\b|koboldcpp|whisper\.cpp"
        r"|\bpaddle\b|\bpaddlepaddle\b|\(External\) CUDA error|\bppocr\b"
        r"|\btensorflow\b|local_xla|stream_executor|XlaRuntimeError|\bjaxlib\b",
        re.IGNORECASE,
    )
    # not the words with which TensorFlow's library greets a program that imports it beside torch
    trainers = re.compile(
        r"\b(?:tensorflow|keras)\b(?![\\/.]\w)|\btf\.keras\.|\bpaddlepaddle\b|\bmxnet\b|\bjax\b(?!lib)",
        re.IGNORECASE,
    )
    return (
        others,
        trainers,
        re.compile(r"\btorch|pytorch|TORCH_USE|CUDA_LAUNCH_BLOCKING|c10::", re.IGNORECASE),
    )


def is_foreign(rule_id: str, event: Event, transcript: Transcript) -> bool:
    """True when the event's message is one of CUDA's and another framework printed it.

    Its own words and frames decide; else the lines around it, when they name another framework and not torch.
    """
    if not rule_id.startswith(_SHARED) and rule_id not in _PROGRESS:
        return False
    others, trainers, torch = _patterns()
    if rule_id in _PROGRESS:
        texts = "\n".join(item.text[:4000] for item in transcript.events[:_TRAINED])
        return trainers.search(texts) is not None and not log_value("log.torch_seen", transcript)
    frames = [frame for member in related(event, transcript) for frame in member.frames]
    if any(frame.package == "torch" for frame in frames):
        return False
    own = f"{event.type}: {event.text} " + " ".join(frame.file for frame in frames)
    if torch.search(own):
        return False
    if others.search(own):
        return True
    around = transcript.events[max(0, event.id - _NEAR) : event.id + _NEAR]
    near = "\n".join(item.text[:4000] for item in around)
    return others.search(near) is not None and torch.search(near) is None
