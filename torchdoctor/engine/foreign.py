"""Which messages of CUDA come from a program that is none of torch's.

llama.cpp, Paddle, TensorFlow, JAX, CuPy, Numba, and programs in CUDA C++ with their own report of errors.
"""

from __future__ import annotations

import re
from functools import cache

from torchdoctor.engine.textfacts import log_value, related
from torchdoctor.model import Event, Transcript

_NEAR = 30
_TRAINED = 2000  # events in which a program names its framework
_FAR = 5_000
# causes whose messages are those of CUDA and its libraries, which every program prints alike
_SHARED = ("cuda-", "cudagraph-", "cublas-", "cudnn-", "no-kernel-image", "nccl-", "cpu-alloc-failed")
_PROGRESS = ("loss-nan",)  # losses are printed alike by every framework, too


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    import re

    others = re.compile(
        # not the models and tools that bear the name: llama-3, LLaMA-Factory
        r"\bggml[_-]|\bllama(?:_\w{1,60}:|_cpp\b| runner|[.-]cpp"
        r"|-(?:bench|cli|perplexity|quantize|run|server|swap)\b)|\bollama\b|koboldcpp|whisper\.cpp"
        r"|\bpaddle\b|\bpaddlepaddle\b|\(External\) CUDA error|\bppocr\b"
        r"|\bxgboost\b|\bcupy\b|\bcupy_backends\b|\bnumba\b|\bcudf\b|\bcuML\b|\brmm(?:/|::)|\bfaiss\b"
        r"|\bopenmm\b|\bgromacs\b|\bblender\b|\bcatboost\b"
        r"|\blightgbm\b|\bmxnet\b|\bmindspore\b|\boneflow\b|\btrtexec\b|\bnamd\b|\bLAMMPS\b"
        r"|\bonnxruntime\b|; hostname=\S+ ;|Error Code \d+: Cuda (?:Runtime|Driver)"
        r"|\bnnet\.internal\b|\bgpuArray\b|^[^\n]*Error using \w|\btensorflow\b|local_xla|stream_executor"
        r"|XlaRuntimeError|\bjaxlib\b",
        re.IGNORECASE,
    )
    # compute-sanitizer and its forerunner, nvcc, the macros of samples and courses, thrust and cub; torch's
    # extensions use them, too, but then torch or Python stands somewhere
    native = re.compile(
        r"compute-sanitizer|cuda-memcheck|\bnvcc\b|cuda-gdb|checkCudaErrors|gpuErrchk|GPUassert|CUDA_CHECK"
        r"|CUDA_CALL|CUDA error at \S{1,200}:\d|\bthrust::|\bcub::|\b(?:CUDA )?samples?/|cudaGetLastError"
        r"|[\w./-]\.cuh?[:(]\d+\)?|\bcode=\d+\(cudaError"
        r"|Check failed: [^\n]{0,60}\b(?:cudaSuccess|CUBLAS_STATUS_SUCCESS|CUDNN_STATUS_SUCCESS) ",
        re.IGNORECASE,
    )
    # not the words with which TensorFlow's library greets a program that imports it beside torch
    trainers = re.compile(
        r"\b(?:tensorflow|keras)\b(?![\\/.]\w)|\btf\.keras\.|\bpaddlepaddle\b|\bmxnet\b|\bjax\b(?!lib)",
        re.IGNORECASE,
    )
    # the servers that run torch's models in programs of their own belong to it
    torch = (
        r"\btorch|pytorch|TORCH_USE|CUDA_LAUNCH_BLOCKING|c10::|\baten[/\\]|\bat::native|\bTHC"
        r"|tensorrt[_-]llm|\[FT\]\["
    )
    return others, trainers, re.compile(torch, re.IGNORECASE), native


def is_foreign(rule_id: str, event: Event, transcript: Transcript) -> bool:
    """True when the event's message is one of CUDA's and another framework printed it.

    Its own words and frames decide; else the lines around it, when they name another framework and not torch.
    """
    if not rule_id.startswith(_SHARED) and rule_id not in _PROGRESS:
        return False
    others, trainers, torch, native = _patterns()
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
    if torch.search(near):
        return False
    if others.search(near):
        return True
    if rule_id.startswith("nccl-"):
        return False  # NCCL's own tests are no torch, and what they say holds for it
    if event.type == "RuntimeError":
        return False  # a class of Python's, though a program in C++ may be shown beside it
    return bool(native.search(near)) and not _python(transcript)


def _python(transcript: Transcript) -> bool:
    """Does the text show that Python, or torch further away, was running?"""
    torch = _patterns()[2]
    return any(
        event.frames or ".py" in event.text[:4000] or torch.search(event.text[:4000])
        for event in transcript.events[:_FAR]
    )
