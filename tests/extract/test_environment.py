"""What texts say of the machine they come from, with the line it stands on."""

from __future__ import annotations

import pytest
from case_files import case_text
from pace import bounded

from torchdoctor import intake
from torchdoctor.extract import catalogue, environment
from torchdoctor.model import Event, EventKind, Fact, FactValue, State, Transcript


def facts(text: str) -> dict[str, Fact]:
    found = list(environment.extract_text(intake.read_text(text)))
    assert {fact.name for fact in found} <= set(catalogue())
    assert len({fact.name for fact in found}) == len(found)
    return {fact.name: fact for fact in found}


def values(text: str) -> dict[str, FactValue]:
    return {name: fact.value for name, fact in facts(text).items() if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("PyTorch version: 2.2.2+cpu", "2.2.2+cpu"),
        ("2022-11-08 09:14:31 | INFO | torch 1.12.1+cu113, cuda available: True", "1.12.1+cu113"),
        (
            "Ultralytics YOLOv8.1.15 🚀 Python-3.10.11 torch-2.2.1+cu121 CUDA:0 (NVIDIA X, 12288MiB)",
            "2.2.1+cu121",
        ),
        ("pytorch version: 2.2.1+cu121", "2.2.1+cu121"),
        ("PyTorch Version 2.3.0a0+ebedce2", "2.3.0a0+ebedce2"),
        ("[pip3] torch==2.1.2+cu121", "2.1.2+cu121"),
        ("[conda] torch                     2.4.0                    pypi_0    pypi", "2.4.0"),
        ("torch                         1.13.1", "1.13.1"),
        ("torch.__version__: 2.6.0+cu124", "2.6.0+cu124"),
        ("Successfully installed filelock-3.13 torch-2.9.0 torchvision-0.24.0", "2.9.0"),
        ("- torch: 2.1.0", "2.1.0"),
        ("torch=2.5.1+rocm6.2", "2.5.1+rocm6.2"),
    ],
)
def test_torch_version(text: str, version: str) -> None:
    assert values(f"run 1 started\n{text}\n")["torch.version"] == version


@pytest.mark.parametrize(
    "text",
    [
        "torchvision 0.15.2 requires torch==2.0.1, but you have something else",
        "Collecting torch==2.0.1",
        "      Attempting uninstall: torch 2.0.1",
        "ERROR: Could not find a version that satisfies the requirement torch==1.7.1 (from versions: 2.2.0)",
        "FutureWarning: In PyTorch 2.6 the default will change",
        "this feature needs at least torch 2.1.0",
        "| model torchnet 3.1 | 12.5 % |",
        "pip install torch==2.0.1+cu118 --index-url https://download.pytorch.org/whl/cu118",
        "loaded /opt/models/torch-2.0.1/weights.bin",
    ],
)
def test_versions_that_are_only_talked_about(text: str) -> None:
    assert "torch.version" not in values(f"step 1 loss 0.5\n{text}\nstep 2 loss 0.4\n")


@pytest.mark.parametrize(
    ("text", "cuda", "hip", "cpu_only"),
    [
        ("torch 2.1.0+cu118", "11.8", None, False),
        ("torch 2.9.1+cu130", "13.0", None, False),
        ("torch 2.2.2+cpu", None, None, True),
        ("torch 2.3.1+rocm6.0", None, "6.0", False),
        (
            "pytorch                   1.7.1           py3.7_cuda11.0.221_cudnn8.0.5_0    pytorch",
            "11.0",
            None,
            False,
        ),
        ("pytorch                   1.12.1          py3.9_cpu_0    pytorch", None, None, True),
        ("CUDA used to build PyTorch: 12.1", "12.1", None, False),
    ],
)
def test_what_torch_was_built_for(text: str, cuda: str | None, hip: str | None, cpu_only: bool) -> None:
    found = facts(f"== versions 1.0\n{text}\n")
    assert found["torch.cuda"].value == cuda
    assert found["torch.cuda"].state is (State.KNOWN if cuda else State.ABSENT)
    assert found["torch.hip"].value == hip
    assert found["torch.cpu_only"].value is cpu_only


def test_collect_env_of_a_cpu_build_with_a_gpu() -> None:
    found = values(case_text("torch-cpu-only/env-034"))
    assert found["torch.version"] == "2.2.2+cpu"
    assert found["torch.cpu_only"] is True
    assert found["python.version"] == "3.10.14"
    assert found["conda.env"] == "plants"
    assert found["driver.version"] == "550.54.15"
    assert found["gpu.names"] == ("NVIDIA GeForce RTX 4070",)
    assert found["gpu.count"] == 1
    assert found["torch.cuda_available"] is False


def test_the_last_installation_counts() -> None:
    found = values(
        "Successfully installed torch-2.0.1+cu117\nSuccessfully uninstalled x\nSuccessfully installed "
        "torch-2.4.0\n"
    )
    assert found["torch.version"] == "2.4.0"
    assert "torch.cuda" not in found


def test_provenance() -> None:
    found = facts("starting\nPyTorch version: 2.2.2+cpu\n")
    assert found["torch.version"].source.endswith(":2")


@pytest.mark.parametrize(
    ("path", "version", "conda"),
    [
        (
            "/home/u/miniconda3/envs/head/lib/python3.8/site-packages/torch/nn/modules/linear.py",
            "3.8",
            "head",
        ),
        (
            "C:\\Users\\u\\AppData\\Local\\anaconda3\\envs\\edm\\lib\\site-packages\\torch\\cuda\\__init__.py",
            None,
            "edm",
        ),
        ("C:\\Python311\\Lib\\site-packages\\torch\\cuda\\__init__.py", "3.11", None),
        ("/usr/local/lib/python3.13/dist-packages/torch/_ops.py", "3.13", None),
    ],
)
def test_interpreter_out_of_frames(path: str, version: str | None, conda: str | None) -> None:
    found = values(
        f'Traceback (most recent call last):\n  File "{path}", line 114, in f\n    return '
        f"g()\nRuntimeError: bad\n"
    )
    assert found.get("python.version") == version
    assert found.get("conda.env") == conda


def test_table_of_nvidia_smi() -> None:
    table = (
        "| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |\n"
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:06.0 Off |                    0 |\n"
        "| N/A   33C    P0            125W /  700W |       0MiB /  81559MiB |      8%      Default |\n"
        "|   1  NVIDIA H100 80GB HBM3          On  |   00000000:00:07.0 Off |                    0 |\n"
        "| N/A   33C    P0            125W /  700W |       0MiB /  81559MiB |      8%      Default |\n"
        "| Processes:                                                                              |\n"
        "|  No running processes found                                                             |\n"
    )
    found = values(table)
    assert (found["driver.version"], found["driver.cuda"]) == ("580.159.04", "13.0")
    assert found["gpu.names"] == ("NVIDIA H100 80GB HBM3",) * 2
    assert found["gpu.count"] == 2
    assert found["gpu.held_by_dead"] is False


def test_memory_that_no_process_explains() -> None:
    found = values(case_text("gpu-memory-held/env-089"))
    assert found["gpu.held_by_dead"] is True


def test_memory_that_the_list_explains() -> None:
    found = values(
        "|   0  NVIDIA A100-SXM4-40GB        On  | 00000000:07:00.0 Off |                    0 |\n"
        "| N/A   45C    P0    90W / 400W |  39201MiB / 40960MiB |     98%      Default |\n"
        "| Processes:                                                                  |\n"
        "|    0   N/A  N/A     20011      C   python                          39198MiB |\n"
    )
    assert found["gpu.held_by_dead"] is False


@pytest.mark.parametrize(
    ("now", "most", "degraded"), [("16x", "16x", False), ("4x", "16x", True), ("8x", "16x", True)]
)
def test_link_width_of_nvidia_smi_q(now: str, most: str, degraded: bool) -> None:
    text = (
        "GPU 00000000:17:00.0\n        GPU Link Info\n            PCIe Generation\n                Max : 5\n"
        f"                Current : 1\n            Link Width\n                Max : {most}\n           "
        f"     Current : {now}\n"
    )
    assert values(text)["gpu.pcie_degraded"] is degraded


def test_link_width_of_a_query() -> None:
    found = values(case_text("gpu-pcie-degraded/env-001"))
    assert found["gpu.pcie_degraded"] is True


def test_volatile_errors_count_aggregate_ones_do_not() -> None:
    section = (
        "    ECC Errors\n        Volatile\n            DRAM Uncorrectable : {now}\n"
        "        Aggregate\n            DRAM Uncorrectable : 4\n"
    )
    assert values(section.format(now=0))["gpu.ecc_failed"] is False
    assert values(section.format(now=2))["gpu.ecc_failed"] is True


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (
            "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).",
            "driver.cuda",
            "11.4",
        ),
        ("w0:26110:26110 [0] NCCL INFO cudaDriverVersion 12040", "driver.cuda", "12.4"),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.113.01  Tue Sep 12",
            "driver.kernel_version",
            "535.113.01",
        ),
        ("NVML library version: 535.129", "driver.library_version", "535.129"),
        ("NCCL version 2.21.5+cuda12.4", "nccl.version_in_text", "2.21.5"),
        ("numpy                         1.26.4", "numpy.version", "1.26.4"),
        (
            "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.1 as it may crash.",
            "numpy.version",
            "2.0.1",
        ),
        ("torchvision 0.17.1+cpu", "torchvision.version", "0.17.1+cpu"),
        ("[pip3] torchaudio==2.1.2+cu121", "torchaudio.version", "2.1.2+cu121"),
        ("[pip3] triton==2.1.0", "triton.version", "2.1.0"),
        ("Libc version: glibc-2.35", "os.glibc", "2.35"),
        ("ldd (GNU libc) 2.17", "os.glibc", "2.17"),
        ("shm                64M   64M     0 100% /dev/shm", "shm.size_bytes", 64 * 1024**2),
        ("tmpfs            252G  1.2G  251G   1% /dev/shm", "shm.size_bytes", 252 * 1024**3),
        ("NOTE: The SHMEM allocation limit is set to the default of 64MB.", "shm.size_bytes", 64 * 1024**2),
        ("open files                      (-n) 1024", "limits.nofile", 1024),
        (
            "LD_LIBRARY_PATH=/usr/local/cuda-11.1/lib64:/opt/x",
            "env.LD_LIBRARY_PATH",
            "/usr/local/cuda-11.1/lib64:/opt/x",
        ),
        ("CUDA_VISIBLE_DEVICES = 1", "env.CUDA_VISIBLE_DEVICES", "1"),
        ("LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]", "env.CUDA_VISIBLE_DEVICES", "0,1"),
        ("[launch.py:162:main] Setting CUDA_VISIBLE_DEVICES=0,1,2,3", "env.CUDA_VISIBLE_DEVICES", "0,1,2,3"),
        ("CUDA_VISIBLE_DEVICES=", "env.CUDA_VISIBLE_DEVICES", ""),
        ("CUDA_VISIBLE_DEVICES=GPU-1f2e", "env.CUDA_VISIBLE_DEVICES", "GPU-1f2e"),
    ],
)
def test_single_lines(text: str, name: str, value: FactValue) -> None:
    assert values(f"run started 1\n{text}\nrun ended 2\n").get(name) == value


@pytest.mark.parametrize(
    "text",
    [
        "e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
        "export CUDA_VISIBLE_DEVICES=$GPU",
        "check your LD_LIBRARY_PATH and try again",
        "export LD_LIBRARY_PATH=$LD",
    ],
)
def test_variables_that_are_only_named(text: str) -> None:
    found = values(f"run started 1\n{text}\nrun ended 2\n")
    assert "env.CUDA_VISIBLE_DEVICES" not in found
    assert "env.LD_LIBRARY_PATH" not in found


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
    assert environment.hides_all(visible, count) is hidden


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


def test_architectures_out_of_torchs_warning() -> None:
    found = values(case_text("no-kernel-image/env-098"))
    assert found["torch.arch_list"] == ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    assert found["gpu.compute_capability"] == ("12.0",)
    assert found["gpu.lowest_capability"] == 12.0
    assert found["torch.covers_gpu"] is False


@pytest.mark.parametrize(("own", "covered"), [("12.1", True), ("6.1", False), ("13.0", False), ("8.9", True)])
def test_capability_range_of_torch_2_8_to_2_10(own: str, covered: bool) -> None:
    found = values(
        "/v/torch/cuda/__init__.py:283: UserWarning: \n"
        f"    Found GPU0 NVIDIA GB10 which is of cuda capability {own}.\n"
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is\n    (8.0) - "
        "(12.0)\n"
        "    \n  warnings.warn(\n"
    )
    assert found["torch.covers_gpu"] is covered


def test_a_text_that_says_nothing_gives_nothing() -> None:
    assert facts("epoch 1 loss 0.5\nepoch 2 loss 0.4\n") == {}


@pytest.mark.parametrize(
    "text",
    [
        "numpy=-1.1" * 3000,
        "torch" + " " * 20000,
        "MiB" + "1" * 20000,
        "1MiB/ " * 4000,
        "Found GPU0 " * 3000,
        "| 0 " * 5000,
        "supports CUDA capabilities " + "sm_80 " * 4000,
        "/dev/shm" + " a" * 10000,
    ],
)
def test_hostile_texts_cost_little(text: str) -> None:
    event = Event(0, EventKind.LOG, text, "a.log", 1, 1)
    transcript = Transcript(("a.log",), (event,))
    bounded(0.5, lambda: list(environment.extract_text(transcript)))


@pytest.mark.parametrize(
    ("header", "row", "throttled"),
    [
        ("index, clocks_throttle_reasons.hw_thermal_slowdown", "0, Active", True),
        ("index, clocks_throttle_reasons.hw_thermal_slowdown", "0, Not Active", False),
        ("index, clocks_event_reasons.active", "0, 0x0000000000000040", True),
        ("index, clocks_event_reasons.active", "0, 0x0000000000000004", False),
        (
            "index, clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_slowdown",
            "0, Active, Not Active",
            False,
        ),
    ],
)
def test_clocks_of_a_query(header: str, row: str, throttled: bool) -> None:
    assert values(f"{header}\n{row}\n")["gpu.throttled"] is throttled


@pytest.mark.parametrize("mask", ["0x000000000000000\u00b6", "0x", "0x0000 0008", "0xg", "0x\u00b2"])
def test_a_broken_mask_says_nothing(mask: str) -> None:
    assert "gpu.throttled" not in values(f"index, clocks_throttle_reasons.active\n0, {mask}\n")
    assert values("index, clocks_throttle_reasons.active\n0, 0x0000000000000008\n")["gpu.throttled"] is True
