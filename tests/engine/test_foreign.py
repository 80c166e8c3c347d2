"""CUDA's messages from programs that are none of torch's."""

from __future__ import annotations

import pytest

from torchdoctor.engine.foreign import is_foreign
from torchdoctor.intake.transcript import read_text

OTHERS = [
    "Error: llama runner process has terminated: CUDA error: out of memory",
    "CUDA error: out of memory\n  current device: 0, in function ggml_cuda_sync at ggml-cuda.cu:2437",
    "OSError: (External) CUDA error(719), unspecified launch failure.",
]


@pytest.mark.parametrize("text", OTHERS)
def test_another_framework_is_told(text: str) -> None:
    transcript = read_text(text)
    event = next(event for event in transcript.events if "CUDA error" in event.text)
    assert is_foreign("cuda-context-oom", event, transcript)
    assert not is_foreign("host-oom-killed", event, transcript)


def test_torch_beside_another_framework_is_torch() -> None:
    text = f"{OTHERS[0]}\nRuntimeError: CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"
    transcript = read_text(text)
    event = next(event for event in transcript.events if event.text.startswith("CUDA error"))
    assert not is_foreign("cuda-context-oom", event, transcript)


NATIVE = [
    "CUDA error at reduce.cu:88: an illegal memory access was encountered",
    "$ nvcc -O2 hist.cu -o hist\nGPUassert: an illegal memory access was encountered hist.cu 112",
    "what(): CUDA free failed: an illegal memory access was encountered; thrust::system",
]


@pytest.mark.parametrize("text", NATIVE)
def test_a_program_in_cuda_is_told_and_an_extension_of_torch_is_none(text: str) -> None:
    for beside, foreign in (("", True), ("\nimport torch, my_extension", False)):
        transcript = read_text(text + beside)
        event = next(event for event in transcript.events if "illegal memory" in event.text)
        assert is_foreign("cuda-illegal-access", event, transcript) is foreign


def test_the_files_of_aten_are_torch() -> None:
    text = (
        "aten/src/ATen/native/cuda/Loss.cu:250: f: block: [0,0,0], thread: [4,0,0] Assertion `t < n` failed."
    )
    transcript = read_text(text)
    assert not is_foreign("cuda-assert-other", transcript.events[0], transcript)


def test_what_glog_checks_of_cuda_is_none_of_torch() -> None:
    text = "F0312 10:19:11.5 20426 a.cc:661] Check failed: cudaSuccess == cudaStat (0 vs. 77) Cuda Error: no"
    transcript = read_text(text)
    assert is_foreign("cuda-illegal-access", transcript.events[0], transcript)


def test_an_exception_of_python_beside_a_program_in_cuda_is_torchs() -> None:
    transcript = read_text("main.cu:777 'no'\nRuntimeError: CUDA error: no\n")
    assert is_foreign("cuda-illegal-access", transcript.events[0], transcript)
    assert not is_foreign("cuda-illegal-access", transcript.events[1], transcript)


def test_what_nccl_says_in_its_own_tests_holds_without_torch() -> None:
    transcript = read_text("Test NCCL failure common.cu:777 'no'\n")
    assert not is_foreign("nccl-system-error", transcript.events[0], transcript)
