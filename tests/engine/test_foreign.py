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
