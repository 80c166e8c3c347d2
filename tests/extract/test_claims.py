"""What follows from names: families of libraries, packages, hidden devices, architectures, ranks."""

from __future__ import annotations

import pytest

from torchdoctor.extract import environment, linked_names, nccl_ranks
from torchdoctor.extract.visible import hides_all, workers_beyond
from torchdoctor.model import Event, EventKind, Transcript


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("libcuda.so.1", "cuda-driver"),
        ("libnvidia-ml.so.1", "nvml"),
        ("libcudart.so.12", "cuda-toolkit"),
        ("libcusparseLt.so.0", "cuda-toolkit"),
        ("cublasLt64_12.dll", "cuda-toolkit"),
        ("libcudnn_ops.so.9", "cudnn"),
        ("cudnn_cnn_infer64_8.dll", "cudnn"),
        ("libnccl.so.2", "nccl"),
        ("libtorch_cuda_cu.so", "torch"),
        ("libc10.so", "torch"),
        ("fbgemm.dll", "torch"),
        ("libtorch_hip.so", "torch-rocm"),
        ("libamdhip64.so.6", "torch-rocm"),
        ("libtorchaudio.so", "torchaudio"),
        ("libmkl_intel_lp64.so.2", "mkl"),
        ("libiomp5.so", "openmp"),
        ("libpython3.10.so.1.0", "python"),
        ("libstdc++.so.6", "cxx-runtime"),
        ("libm.so.6", "libc"),
        ("libGL.so.1", "other"),
        ("libcurl.so.4", "other"),
    ],
)
def test_libraries(name: str, family: str) -> None:
    assert linked_names.library_family(name) == family


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("/v/lib/python3.8/site-packages/mmcv/_ext.cpython-38-x86_64-linux-gnu.so", "mmcv"),
        (
            "/v/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
            "flash_attn_2_cuda",
        ),
        ("/usr/lib/python3/dist-packages/torchaudio/lib/libtorchaudio.so", "torchaudio"),
        ("C:\\v\\Lib\\site-packages\\torch\\lib\\c10.dll", "torch"),
        ("/home/user/vllm/vllm/_C.abi3.so", "vllm"),
        ("/home/user/.cache/torch_extensions/py39/optim_cuda/optim_cuda.so", "optim_cuda"),
        ("/v/lib/python3.9/site-packages/numpy.libs/libopenblas.so", "numpy"),
        ("", ""),
    ],
)
def test_packages(path: str, package: str) -> None:
    assert linked_names.loader_package(path) == package


@pytest.mark.parametrize(
    ("visible", "count", "hidden"),
    [
        ("1", 1, True),
        ("0", 1, False),
        ("-1", 4, True),
        ("", 4, True),
        ("7,0", 4, True),
        ("0,7", 4, False),
        ("GPU-ab", 4, None),
    ],
)
def test_hidden_devices(visible: str, count: int, hidden: bool | None) -> None:
    assert hides_all(visible, count) is hidden


@pytest.mark.parametrize(
    ("arch_list", "capability", "covered"),
    [
        (("sm_50", "sm_80", "sm_90"), 8.6, True),
        (("sm_80", "sm_86", "sm_90"), 12.0, False),
        (("sm_80", "compute_90"), 12.0, True),
        (("sm_86",), 8.0, False),
        (("sm_90a",), 9.0, True),
        (("compute_90a",), 10.0, False),
        (("sm_120",), 12.1, True),
        ((), 8.0, False),
    ],
)
def test_architectures(arch_list: tuple[str, ...], capability: float, covered: bool) -> None:
    assert environment.covers(arch_list, capability) is covered


def watchdog(rank: int, work: str) -> Event:
    text = (
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL({work}, "
        "Timeout(ms)=1800000) ran for 1800116 milliseconds before timing out."
    )
    return Event(rank, EventKind.LOG, text, "job.log", rank + 1, rank + 1)


def test_a_shape_counts_the_elements() -> None:
    (timeout,) = nccl_ranks.timeouts_in(watchdog(3, "OpType=BROADCAST, TensorShape=[3, 5]"))
    assert (timeout.numel_in, timeout.elapsed_ms) == (15, 1800116)


def test_picture_follows_the_transcript_that_is_asked_for() -> None:
    one, other = (
        Transcript(
            ("job.log",),
            tuple(watchdog(rank, f"SeqNum={seq}, OpType=ALLREDUCE") for rank, seq in enumerate(seqs)),
        )
        for seqs in ((1, 2), (1, 1))
    )
    assert [nccl_ranks.picture(text).seqs_differ for text in (one, other, one)] == [True, False, True]


@pytest.mark.parametrize(
    ("alone", "count", "workers"),
    [
        ({"0", "1", "2", "3", "4", "5", "6", "7"}, 4, 8),
        ({"0", "1", "2", "3"}, 4, None),
        ({"0", "3"}, 1, None),  # two tries of a person
        ({"0", "2", "5"}, 2, None),
        (set(), 1, None),
    ],
)
def test_workers_without_a_gpu(alone: set[str], count: int, workers: int | None) -> None:
    assert workers_beyond(alone, count) == workers
