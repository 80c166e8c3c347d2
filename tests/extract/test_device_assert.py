"""Assertion lines of kernels, as the compilers and libraries of different years print them."""

from __future__ import annotations

import pytest

from torchdoctor.extract import device_assert
from torchdoctor.model import Event, EventKind, Fact, FactValue, State, Transcript

WHERE = "block: [0,0,0], thread: [3,0,0]"


def extract(text: str) -> dict[str, Fact]:
    event = Event(0, EventKind.DEVICE_ASSERT, text, "run.log", 4, 4)
    found = list(device_assert.extract(event, Transcript(("run.log",), (event,))))
    assert {fact.name for fact in found} <= set(device_assert.FACTS)
    return {fact.name.removeprefix("assert."): fact for fact in found}


def values(text: str) -> dict[str, FactValue]:
    return {name: fact.value for name, fact in extract(text).items() if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("text", "condition", "kernel", "file", "line", "backend"),
    [
        (
            f"/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: "
            f"nll_loss_forward_reduce_cuda_kernel_2d: {WHERE} "
            "Assertion `t >= 0 && t < n_classes` failed.",
            "t >= 0 && t < n_classes", "nll_loss_forward_reduce_cuda_kernel_2d",
            "/pytorch/aten/src/ATen/native/cuda/Loss.cu", 245, "cuda",
        ),
        (  # whole signatures up to about torch 1.7
            "/pytorch/aten/src/THC/THCTensorRandom.cuh:193: void sampleMultinomialOnce(long *, long, "
            "int, T *, T *, "
            f"int, int) [with T = float, AccT = float]: {WHERE} Assertion `THCNumerics<T>::ge(val, "
            f"zero)` failed.",
            "THCNumerics<T>::ge(val, zero)", "sampleMultinomialOnce",
            "/pytorch/aten/src/THC/THCTensorRandom.cuh", 193, "cuda",
        ),
        (  # a functor is known by its class
            "/w/THCUNN/BCECriterion.cu:42: Acctype bce_functor<Dtype, Acctype>::operator()(Tuple) "
            "[with Tuple = "
            f"thrust::tuple<thrust::null_type>, Dtype = float]: {WHERE} Assertion `input >= 0. && "
            f"input <= 1.` failed.",
            "input >= 0. && input <= 1.", "bce_functor", "/w/THCUNN/BCECriterion.cu", 42, "cuda",
        ),
        (  # Windows leaves the kernel out and has backslashes
            rf"C:\cb\work\aten\src\ATen\native\cuda\Indexing.cu:1239: {WHERE} Assertion "
            "`srcIndex < srcSelectDimSize` failed.",
            "srcIndex < srcSelectDimSize", None, "C:/cb/work/aten/src/ATen/native/cuda/Indexing.cu",
            1239, "cuda",
        ),
        (  # glued to a progress bar
            f" 3%|#3 | 13/412 [00:04<01:58, 3.36it/s]/w/ClassNLLCriterion.cu:101: void f(int): "
            f"{WHERE} Assertion "
            "`t >= 0 && t < n_classes` failed.",
            "t >= 0 && t < n_classes", "f", "/w/ClassNLLCriterion.cu", 101, "cuda",
        ),
        (  # the head of the line was lost
            f"void indexSelectLargeIndex(TensorInfo<T, IndexType>, int) [with T = float]: {WHERE} Assertion "
            "`srcIndex < srcSelectDimSize` failed.",
            "srcIndex < srcSelectDimSize", "indexSelectLargeIndex", None, None, "cuda",
        ),
        (  # back quotes inside the condition
            f"/p/TensorCompare.cu:112: _assert_async_cuda_kernel: {WHERE} Assertion `probability "
            f"tensor contains "
            "either `inf`, `nan` or element < 0` failed.",
            "probability tensor contains either `inf`, `nan` or element < 0", "_assert_async_cuda_kernel",
            "/p/TensorCompare.cu", 112, "cuda",
        ),
        (
            f"/tmp/torchinductor_u/on/conx.py:29: unknown: {WHERE} Assertion `index out of bounds: 0 "
            f"<= tmp4 < 10` "
            "failed.",
            "index out of bounds: 0 <= tmp4 < 10", None, "/tmp/torchinductor_u/on/conx.py", 29, "inductor",
        ),
        (
            "/root/pytorch/aten/src/ATen/native/hip/Loss.hip:250: void "
            "at::native::nll_loss_forward(float *, int) "
            "[scalar_t = float]: Device-side assertion `t >= 0 && t < n_classes' failed.",
            "t >= 0 && t < n_classes", "nll_loss_forward",
            "/root/pytorch/aten/src/ATen/native/hip/Loss.hip", 250, "hip",
        ),
        (
            "Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
            "/p/THNN/generic/ClassNLLCriterion.c:97",
            "cur_target >= 0 && cur_target < n_classes", None,
            "/p/THNN/generic/ClassNLLCriterion.c", 97, "cpu",
        ),
        (
            "1 CUDA device-side assertion failures were found on GPU #0!\nAssertion failure 0\n"
            "  GPU assertion failure message = index >= 0\n  File containing assertion = a/b.cu:33\n"
            "  Device function containing assertion = go\n  Thread ID that failed assertion = [1,2,3]\n"
            "  Block ID that failed assertion = [0,0,0]",
            "index >= 0", "go", "a/b.cu", 33, "cuda",
        ),
    ],
)  # fmt: skip
def test_forms(
    text: str, condition: str, kernel: str | None, file: str | None, line: int | None, backend: str
) -> None:
    found = values(text)
    assert (found["condition"], found.get("kernel"), found["backend"]) == (condition, kernel, backend)
    assert (found.get("file"), found.get("line")) == (file, line)


def test_place_in_the_grid() -> None:
    found = values("a/b.cu:1: k: block: [229,0,0], thread: [32, 0, 1] Assertion `x` failed.")
    assert (found["block"], found["thread"]) == ("229,0,0", "32,0,1")


def test_a_kernel_that_is_not_named_is_absent() -> None:
    assert extract(rf"C:\x\Indexing.cu:5: {WHERE} Assertion `x` failed.")["kernel"].state is State.ABSENT


@pytest.mark.parametrize(
    "text",
    [
        'ringtest: ring.cpp:4: int Ring::at(size_t): Assertion `i < b.size() && "ring index"\' failed.',
        "AssertionError: expected 3 classes",
        "CUDA error: device-side assert triggered",
        "",
    ],
)
def test_other_assertions_give_nothing(text: str) -> None:
    assert extract(text) == {}
