"""Assertion lines of kernels, as the compilers and libraries of different years print them."""

from __future__ import annotations

import pytest
from extracted import facts

from torchdoctor.model import Event, EventKind, Fact, State

WHERE = "block: [0,0,0], thread: [3,0,0]"


def extract(text: str) -> dict[str, Fact]:
    return facts("assert", Event(0, EventKind.DEVICE_ASSERT, text, "run.log", 4, 4))


@pytest.mark.parametrize(
    ("text", "kernel", "file"),
    [
        (
            f"/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: "
            f"{WHERE} Assertion `t >= 0 && t < n_classes` failed.",
            "nll_loss_forward_reduce_cuda_kernel_2d", "/pytorch/aten/src/ATen/native/cuda/Loss.cu",
        ),
        (  # whole signatures up to about torch 1.7
            f"/pytorch/aten/src/THC/THCTensorRandom.cuh:193: void sampleMultinomialOnce(long *, long, int, "
            f"T *, T *, int, int) [with T = float, AccT = float]: {WHERE} Assertion "
            f"`THCNumerics<T>::ge(val, zero)` failed.",
            "sampleMultinomialOnce", "/pytorch/aten/src/THC/THCTensorRandom.cuh",
        ),
        (  # a functor is known by its class
            f"/w/THCUNN/BCECriterion.cu:42: Acctype bce_functor<Dtype, Acctype>::operator()(Tuple) [with "
            f"Tuple = thrust::tuple<thrust::null_type>, Dtype = float]: {WHERE} Assertion `input >= 0. && "
            f"input <= 1.` failed.",
            "bce_functor", "/w/THCUNN/BCECriterion.cu",
        ),
        (  # Windows leaves the kernel out and has backslashes
            rf"C:\cb\work\aten\src\ATen\native\cuda\Indexing.cu:1239: {WHERE} Assertion "
            "`srcIndex < srcSelectDimSize` failed.",
            None, "C:/cb/work/aten/src/ATen/native/cuda/Indexing.cu",
        ),
        (  # glued to a progress bar
            f" 3%|#3 | 13/412 [00:04<01:58, 3.36it/s]/w/ClassNLLCriterion.cu:101: void f(int): {WHERE} "
            f"Assertion `t >= 0 && t < n_classes` failed.",
            "f", "/w/ClassNLLCriterion.cu",
        ),
        (  # the head of the line was lost
            f"void indexSelectLargeIndex(TensorInfo<T, IndexType>, int) [with T = float]: {WHERE} Assertion "
            "`srcIndex < srcSelectDimSize` failed.",
            "indexSelectLargeIndex", None,
        ),
        (  # back quotes inside the condition
            f"/p/TensorCompare.cu:112: _assert_async_cuda_kernel: {WHERE} Assertion `probability tensor "
            f"contains either `inf`, `nan` or element < 0` failed.",
            "_assert_async_cuda_kernel", "/p/TensorCompare.cu",
        ),
        (
            f"/tmp/torchinductor_u/on/conx.py:29: unknown: {WHERE} Assertion `index out of bounds: 0 <= "
            f"tmp4 < 10` failed.",
            None, "/tmp/torchinductor_u/on/conx.py",
        ),
        (
            "/root/pytorch/aten/src/ATen/native/hip/Loss.hip:250: void at::native::nll_loss_forward(float "
            "*, int) [scalar_t = float]: Device-side assertion `t >= 0 && t < n_classes' failed.",
            "nll_loss_forward", "/root/pytorch/aten/src/ATen/native/hip/Loss.hip",
        ),
        (
            "Assertion `cur_target >= 0 && cur_target < n_classes' failed.  at "
            "/p/THNN/generic/ClassNLLCriterion.c:97",
            None, "/p/THNN/generic/ClassNLLCriterion.c",
        ),
        (
            "1 CUDA device-side assertion failures were found on GPU #0!\nAssertion failure 0\n"
            "  GPU assertion failure message = index >= 0\n  File containing assertion = a/b.cu:33\n"
            "  Device function containing assertion = go\n  Thread ID that failed assertion = [1,2,3]\n"
            "  Block ID that failed assertion = [0,0,0]",
            "go", "a/b.cu",
        ),
    ],
)  # fmt: skip
def test_forms(text: str, kernel: str | None, file: str | None) -> None:
    found = {name: fact.value for name, fact in extract(text).items()}
    assert (found.get("kernel"), found.get("file")) == (kernel, file)


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
