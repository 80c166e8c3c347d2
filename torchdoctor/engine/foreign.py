"""Which messages of CUDA come from a program that is none of torch's: llama.cpp, Paddle, TensorFlow, JAX."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.engine.textfacts import related

if TYPE_CHECKING:
    import re

    from torchdoctor.model import Event, Transcript

_NEAR = 30
# causes whose messages are those of CUDA and its libraries, which every program prints alike
_SHARED = ("cuda-", "cublas-", "cudnn-", "no-kernel-image", "nccl-", "cpu-alloc-failed")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    import re

    others = re.compile(
        r"\bggml[_-]|\bllama(?:[_-]\w+| runner|\.cpp)|\bollama\b|koboldcpp|whisper\.cpp"
        r"|\bpaddle\b|\bpaddlepaddle\b|\(External\) CUDA error|\bppocr\b"
        r"|\bxgboost\b|\bcupy\b|\bnumba\b|\bcudf\b|\brmm/|\bfaiss\b|\bopenmm\b|\bgromacs\b|\bblender\b"
        r"|\bcatboost\b"
        r"|\blightgbm\b|\bmxnet\b|\bmindspore\b|\boneflow\b|\btrtexec\b|\bnamd\b|\bLAMMPS\b"
        r"|\bnnet\.internal\b|\bgpuArray\b|^[^\n]*Error using \w|\btensorflow\b|local_xla|stream_executor"
        r"|XlaRuntimeError|\bjaxlib\b",
        re.IGNORECASE,
    )
    # macros that programs in CUDA C bring with them, and what watches over their kernels; extensions of torch
    # use them, too, but then torch stands near
    plain = re.compile(
        r"\bGPUassert: |\bcode=\d+\(cudaError|COMPUTE-SANITIZER|CUDA-MEMCHECK|\bcheckCudaErrors\b"
        r"|\bCUDA error\b[^\n]{0,120}[\w/]\.cuh?\b|[\w/]\.cuh?[:(]\d+\)?:? [^\n]{0,40}\bCUDA error",
        re.IGNORECASE,
    )
    torch = r"\btorch|pytorch|TORCH_USE|CUDA_LAUNCH_BLOCKING|c10::|at::native"
    return others, re.compile(torch, re.IGNORECASE), plain


def is_foreign(rule_id: str, event: Event, transcript: Transcript) -> bool:
    """True when the event's message is one of CUDA's and another framework printed it.

    Its own words and frames decide; else the lines around it, when they name another framework and not torch.
    """
    if not rule_id.startswith(_SHARED):
        return False
    others, torch, plain = _patterns()
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
    if torch.search(near):
        return False
    return others.search(near) is not None or (plain.search(near) is not None and ".py" not in near)
