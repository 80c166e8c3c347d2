"""Each claim: an input on which it fails, one on which it must not, and one that cannot be told."""

from __future__ import annotations

import pytest
from probe_machines import stated

from torchdoctor.model import Fact, FactValue, Reason, State
from torchdoctor.probes.claims import DERIVED
from torchdoctor.probes.claims_gpu import visible
from torchdoctor.probes.compatibility import (
    audio_of,
    covered_by,
    cuda_of_driver,
    fits,
    is_release,
    parse,
    supports_forward_compatibility,
)
from torchdoctor.probes.names import CATALOGUE, FACTS

DRIVER = {
    "driver__device_nodes": ("/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl"),
    "driver__libcuda": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "driver__libcuda_kind": "driver",
    "driver__modprobe": None,
    "driver__nvml_error": None,
    "os__name": "linux",
    "os__wsl": False,
    "os__container": None,
}


def tell(name: str, **facts: FactValue | Fact) -> FactValue | State:
    """The value of the claim; State.ABSENT or State.UNKNOWN when it has none."""
    table = dict(facts)

    def ask(wanted: str) -> Fact:
        if wanted in DERIVED and wanted.replace(".", "__") not in table:
            return DERIVED[wanted].tell(ask)
        return stated(**table)(wanted)

    fact = DERIVED[name].tell(ask)
    return fact.value if fact.state is State.KNOWN else fact.state


def driver(version: str, cuda: str | None, **more: FactValue | Fact) -> dict[str, FactValue | Fact]:
    """An ordinary Linux host with this driver."""
    return {
        **DRIVER,
        "driver__nvml_version": version,
        "driver__nvml_cuda": cuda,
        "driver__kernel_version": version,
        "driver__library_version": version,
        "driver__nvml_library_version": version,
        **more,
    }


def test_the_table_is_the_catalogue() -> None:
    assert set(DERIVED) == set(CATALOGUE["claims"])
    for name, derived in DERIVED.items():
        assert derived.name == name
        assert set(derived.needs) <= set(FACTS), name


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_nothing_known_gives_no_claim(name: str) -> None:
    fact = DERIVED[name].tell(lambda asked: Fact.unknown(asked, Reason.TIMED_OUT, detail="why"))
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.TIMED_OUT)
    assert fact.detail.startswith("needs ")


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_needs_are_complete(name: str) -> None:
    """What a claim asks for beyond its needs would not be started early, nor be known to the lint."""
    derived = DERIVED[name]
    for sample in (
        None,
        True,
        False,
        "12.4",
        "2.5.1",
        3,
        ("a",),
        ("9.0",),
        ((0, 1, None, "compute"),),
        ("/dev/dxg",),
    ):
        asked: set[str] = set()

        def ask(wanted: str, sample: FactValue = sample, asked: set[str] = asked) -> Fact:
            asked.add(wanted)
            return Fact.absent(wanted) if sample is None else Fact.known(wanted, sample)

        derived.tell(ask)
        assert asked <= set(derived.needs), sample


@pytest.mark.parametrize(
    ("torch", "version", "cuda", "covered"),
    [
        ("12.4", "535.54.03", "12.2", True),  # minor-version compatibility: no error
        ("12.8", "525.60.13", "12.0", True),
        ("12.8", "525.60.11", "12.0", False),
        ("13.0", "575.57.08", "12.9", False),  # another major version
        ("13.0", "580.65.06", "13.0", True),
        ("13.2", "580.159.04", "13.0", True),
        ("11.8", "580.159.04", "13.0", True),  # drivers run older CUDA
        ("11.7", "450.80.02", "11.0", True),
        ("11.7", "450.51.06", "11.0", False),
        ("10.2", "418.67", "10.1", False),  # before CUDA 11 there is no minor-version compatibility
        ("9.0.176", "384.81", "9.0", True),
        ("12.1", "470.57.02", "11.4", False),
    ],
)
def test_driver_against_cuda(torch: str, version: str, cuda: str, covered: bool) -> None:
    assert tell("driver.covers_torch_cuda", torch__cuda=torch, **driver(version, cuda)) is covered


@pytest.mark.parametrize(("version", "covered"), [("535.54.03", True), ("470.57.02", False)])
def test_driver_against_cuda_by_the_table_alone(version: str, covered: bool) -> None:
    unknown = Fact.unknown("driver.nvml_cuda", Reason.TIMED_OUT)
    facts = {**driver(version, None), "driver__nvml_cuda": unknown, "driver__nvml_version": unknown}
    assert tell("driver.covers_torch_cuda", torch__cuda="12.4", **facts) is covered


def test_driver_against_cuda_where_there_is_nothing_to_compare() -> None:
    assert tell("driver.covers_torch_cuda", torch__cuda=None, **driver("535.54.03", "12.2")) is State.ABSENT
    none = dict.fromkeys(("driver__device_nodes", "driver__libcuda", "driver__kernel_version"))
    assert tell("driver.covers_torch_cuda", torch__cuda="12.4", **none) is State.ABSENT
    unknown = Fact.unknown("driver.kernel_version", Reason.NOT_PERMITTED)
    some = {
        **DRIVER,
        "driver__kernel_version": unknown,
        "driver__nvml_version": None,
        "driver__nvml_cuda": None,
    }
    assert tell("driver.covers_torch_cuda", torch__cuda="12.4", **some) is State.UNKNOWN


def test_drivers_of_windows_have_numbers_of_their_own() -> None:
    wsl = {
        **driver("546.33", "12.3"),
        "os__wsl": True,
        "driver__kernel_version": None,
        "driver__libcuda_kind": "wsl",
    }
    assert tell("driver.covers_torch_cuda", torch__cuda="12.8", **wsl) is True
    assert tell("driver.covers_torch_cuda", torch__cuda="13.0", **wsl) is False
    no_nvml = {**wsl, "driver__nvml_cuda": Fact.unknown("driver.nvml_cuda", Reason.CRASHED)}
    assert tell("driver.cuda", **no_nvml) == "12.3"


def test_compilers() -> None:
    gcc = {"compiler__cxx": "/usr/bin/g++", "compiler__cxx_version": "14.2.0"}
    clang = {"compiler__cxx": "/usr/bin/clang++-18", "compiler__cxx_version": "18.1.0"}
    assert tell("toolkit.takes_compiler", toolkit__version="12.4.131", **gcc) is False
    assert tell("toolkit.takes_compiler", toolkit__version="12.8", **gcc) is True
    assert tell("toolkit.takes_compiler", toolkit__version="12.4", **clang) is False
    assert tell("toolkit.takes_compiler", toolkit__version="99.0", **gcc) is State.UNKNOWN
    old = {**gcc, "compiler__cxx_version": "9.4.0"}
    assert tell("compiler.takes_headers", torch__version="2.12.0+cu130", **old) is True
    assert tell("compiler.takes_headers", torch__version="2.13.0+cu130", **old) is False
    assert tell("compiler.takes_headers", torch__version="2.13.0+cu130", **clang) is State.ABSENT


def test_forward_compatibility() -> None:
    facts = driver("470.57.02", "11.4", driver__libcuda_kind="compat", driver__library_version="550.54.15")
    assert tell("driver.covers_torch_cuda", torch__cuda="12.4", **facts) is True
    assert tell("driver.covers_torch_cuda", torch__cuda="13.0", **facts) is False
    assert tell("driver.forward_compat", **facts) is True
    # the compat libcuda differs from the kernel module on purpose
    assert tell("driver.library_matches", **facts) is True
    nameless = {**facts, "driver__library_version": None}
    assert tell("driver.covers_torch_cuda", torch__cuda="12.4", **nameless) is State.UNKNOWN


@pytest.mark.parametrize(
    ("gpu", "supported"),
    [
        ("NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA H100 80GB HBM3", True),
        ("Tesla T4", True),
        ("NVIDIA L40S", True),
        ("NVIDIA A10G", True),
        ("NVIDIA GH200 480GB", True),
        ("NVIDIA GeForce RTX 4090", False),
        ("NVIDIA TITAN V", False),
        ("NVIDIA RTX A6000", None),
        ("NVIDIA RTX 6000 Ada Generation", None),
        ("Quadro RTX 8000", None),
        ("Graphics Device", None),
    ],
)
def test_forward_compatibility_by_model(gpu: str, supported: bool | None) -> None:
    assert supports_forward_compatibility(gpu) is supported
    expected = State.UNKNOWN if supported is None else supported
    assert tell("driver.forward_compat_supported", gpu__names=(gpu,)) is expected


def test_minor_compatible() -> None:
    assert tell("driver.minor_compatible", torch__cuda="12.4", **driver("535.54.03", "12.2")) is True
    assert tell("driver.minor_compatible", torch__cuda="12.1", **driver("535.54.03", "12.2")) is False
    assert tell("driver.minor_compatible", torch__cuda="13.0", **driver("535.54.03", "12.2")) is False


def test_library_matches() -> None:
    assert tell("driver.library_matches", **driver("535.54.03", "12.2")) is True
    upgraded = driver("535.54.03", "12.2", driver__nvml_library_version="550.54.15")
    assert tell("driver.library_matches", **upgraded) is False
    said = driver("535.54.03", None, driver__nvml_error="Driver/library version mismatch")
    assert tell("driver.library_matches", **said) is False
    silent = driver("535.54.03", "12.2", driver__nvml_library_version=None, driver__library_version=None)
    assert tell("driver.library_matches", **silent) is State.UNKNOWN


def test_driver_present() -> None:
    assert tell("driver.present", **driver("535.54.03", "12.2")) is True
    # a container without the GPU runtime sees /proc/driver/nvidia of the host, and nothing else
    container = {**driver("535.54.03", None), "driver__device_nodes": None, "driver__libcuda": None}
    assert tell("driver.present", **container) is False
    # a host on which nobody has used the GPU yet
    fresh = {
        **driver("535.54.03", None),
        "driver__device_nodes": None,
        "driver__modprobe": "/usr/bin/nvidia-modprobe",
    }
    assert tell("driver.present", **fresh) is True
    # a login node has the libraries and no GPU
    login = {**driver("535.54.03", None), "driver__device_nodes": None, "driver__kernel_version": None}
    assert tell("driver.present", **login) is False


def test_uvm_stub_fabric() -> None:
    facts = driver("535.54.03", "12.2")
    assert tell("driver.uvm_ready", **facts) is True
    without = {**facts, "driver__device_nodes": ("/dev/nvidia0", "/dev/nvidiactl")}
    assert tell("driver.uvm_ready", **without) is False
    assert tell("driver.uvm_ready", **{**without, "driver__modprobe": "/usr/bin/nvidia-modprobe"}) is True
    assert tell("driver.stub", **facts) is False
    assert tell("driver.stub", **{**facts, "driver__libcuda_kind": "stub"}) is True
    fabric = {"driver__nvswitches": 4, "driver__fabric_manager": True}
    assert tell("fabric.ready", gpu__fabric_states=("completed", "in-progress"), **fabric) is False
    assert tell("fabric.ready", gpu__fabric_states=("completed",) * 8, **fabric) is True
    assert tell("fabric.ready", gpu__fabric_states=None, **fabric) is True
    assert (
        tell("fabric.ready", gpu__fabric_states=None, driver__nvswitches=4, driver__fabric_manager=False)
        is False
    )
    assert tell("fabric.ready", gpu__fabric_states=(None,), driver__nvswitches=0) is State.ABSENT
    closed = Fact.unknown("driver.fabric_manager", Reason.NOT_PERMITTED)
    assert (
        tell("fabric.ready", gpu__fabric_states=None, driver__nvswitches=4, driver__fabric_manager=closed)
        is State.UNKNOWN
    )


@pytest.mark.parametrize(
    ("capability", "architectures", "how"),
    [
        ("9.0", "sm_80 sm_90", "binary"),
        ("8.6", "sm_80", "binary"),  # later minor version of one generation
        ("8.0", "sm_86", ""),  # never an earlier one
        ("9.0", "sm_80", ""),
        ("12.0", "sm_80 sm_90 compute_90", "ptx"),
        ("12.0", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", ""),
        ("3.7", "sm_50 sm_60 compute_60", ""),
        ("9.0", "sm_90a", "binary"),
        ("9.1", "sm_90a", ""),  # "a" code is for one GPU alone
        ("10.3", "sm_100f", "binary"),
        ("10.3", "sm_100a", ""),
        ("12.1", "sm_120", "binary"),
        ("8.7", "sm_80 sm_86", ""),  # an embedded board
        ("8.9", "sm_87", ""),
        ("8.7", "sm_87", "binary"),
        ("7.5", "gfx90a", ""),
    ],
)
def test_code_for_a_gpu(capability: str, architectures: str, how: str) -> None:
    assert covered_by(capability, tuple(architectures.split())) == how


def test_covers_gpu() -> None:
    facts = {"torch__version": "2.5.1+cu124", "torch__cuda": "12.4", "torch__device_capability": None}
    gpu = {"gpu__compute_capability": ("9.0", "12.0")}
    archs = ("sm_80", "sm_90")
    assert tell("torch.covers_gpu", torch__arch_list=archs, **gpu, **facts) is False
    assert tell("torch.covers_gpu", torch__arch_list=(*archs, "sm_120"), **gpu, **facts) is True
    # an empty list is "could not tell", as is one that was never got
    assert tell("torch.covers_gpu", torch__arch_list=(), **gpu, **facts) is State.UNKNOWN
    assert tell("torch.covers_gpu", **gpu, **facts) is State.UNKNOWN
    assert (
        tell("torch.covers_gpu", torch__arch_list=archs, gpu__compute_capability=None, **facts)
        is State.ABSENT
    )
    cpu = {**facts, "torch__cuda": None}
    assert tell("torch.covers_gpu", torch__arch_list=None, **gpu, **cpu) is State.ABSENT
    # torch itself says which GPUs it gets
    seen = {**facts, "torch__device_capability": ("9.0",)}
    assert tell("torch.covers_gpu", torch__arch_list=archs, **gpu, **seen) is True
    ptx = (*archs, "compute_90")
    assert tell("torch.covers_gpu", torch__arch_list=ptx, **gpu, **facts) is True
    assert tell("torch.needs_ptx_jit", torch__arch_list=ptx, **gpu, **facts) is True
    assert tell("torch.needs_ptx_jit", torch__arch_list=(*archs, "sm_120"), **gpu, **facts) is False


def test_torch_itself() -> None:
    cuda = {"torch__version": "2.5.1+cu124", "torch__cuda": "12.4", "torch__hip": None, "torch__xpu": None}
    assert tell("torch.cpu_only", os__name="linux", **cuda) is False
    assert tell("torch.cpu_only", os__name="linux", **{**cuda, "torch__cuda": None}) is True
    assert tell("torch.cpu_only", os__name="macos", **{**cuda, "torch__cuda": None}) is False
    assert tell("torch.cpu_only", torch__version=None) is State.ABSENT
    assert tell("torch.installed", torch__copies=("/a/torch",)) is True
    lost: dict[str, FactValue | Fact] = {"torch__copies": (), "torch__path": None}
    assert tell("torch.installed", torch__metadata_version=None, **lost) is False
    assert tell("torch.installed", torch__metadata_version="2.5.1", **lost) is False
    bare: dict[str, FactValue | Fact] = {"torch__copies": (), "torch__path": "/a/torch"}
    assert tell("torch.installed", torch__metadata_version=None, **bare) is True
    assert tell("torch.shadowed", **bare) is False
    assert (
        tell("torch.metadata_matches", torch__version="2.5.1+cu124", torch__metadata_version="2.5.1") is True
    )
    assert (
        tell("torch.metadata_matches", torch__version="2.5.1+cu124", torch__metadata_version="2.4.0") is False
    )
    wants = {
        "torch__metadata_version": "2.5.1",
        "torch__requirements_missing": (),
        "torch__requirements_other": (),
    }
    assert tell("torch.requirements_ok", **wants) is True
    assert (
        tell("torch.requirements_ok", **{**wants, "torch__requirements_missing": ("nvidia-cublas-cu12",)})
        is False
    )
    newer = {**wants, "torch__requirements_other": ("sympy 1.14, wants ==1.13.1",)}
    assert tell("torch.requirements_ok", **newer) is True
    other = {**wants, "torch__requirements_other": ("nvidia-nccl-cu12 2.27.3, wants ==2.21.5",)}
    assert tell("torch.requirements_ok", **other) is False


def test_fits_vendor() -> None:
    hip = {"torch__version": "2.5.1+rocm6.2", "torch__hip": "6.2", "torch__cuda": None}
    cuda = {"torch__version": "2.5.1+cu124", "torch__hip": None, "torch__cuda": "12.4"}
    assert tell("torch.fits_vendor", gpu__vendors=("nvidia",), **hip) is False
    assert tell("torch.fits_vendor", gpu__vendors=("amd", "nvidia"), **hip) is True
    assert tell("torch.fits_vendor", gpu__vendors=("intel", "nvidia"), **cuda) is True
    # the default wheel on a laptop with nothing but the processor's own graphics
    assert tell("torch.fits_vendor", gpu__vendors=("intel",), **cuda) is State.ABSENT
    assert tell("torch.fits_vendor", gpu__vendors=("amd",), **cuda) is State.ABSENT


@pytest.mark.parametrize(
    ("torch", "vision", "wants", "fit"),
    [
        ("2.5.1+cu124", "0.20.1", "==2.5.1", True),
        ("2.5.1", "0.20.0", "==2.5.0", True),  # patch releases mix
        ("2.5.1", "0.19.1", "==2.4.1", False),
        ("2.5.1", "0.20.1+cu124", None, True),
        ("2.5.1", "0.19.1", None, False),
        ("1.13.1", "0.14.1", None, True),
        ("2.14.1", "0.29.1", ">=2.14", True),
        ("2.15.0", "0.29.2", ">=2.14", True),  # stable ABI
        ("2.15.0", "0.29.0", "==2.14.0", False),
        ("2.6.0a0+ecf3bae40a.nv25.01", "0.20.0a0", "==2.5.1", State.UNKNOWN),  # a vendor's build
        ("2.7.0.dev20250101+cu126", "0.22.0.dev20250101", None, State.UNKNOWN),
        ("2.15.0", "0.29.0", None, State.UNKNOWN),  # newer than the table
        ("2.5.1", None, None, State.ABSENT),
        (None, "0.20.1", None, State.ABSENT),
    ],
)
def test_torchvision(torch: str | None, vision: str | None, wants: str | None, fit: bool | State) -> None:
    facts = {"torch__version": torch, "torchvision__version": vision, "torchvision__wants_torch": wants}
    assert tell("torchvision.fits_torch", **facts) is fit


@pytest.mark.parametrize(
    ("torch", "audio", "wants", "fit"),
    [
        ("2.5.1", "2.5.1", "==2.5.1", True),
        ("2.5.1", "2.4.0", "==2.4.0", False),
        ("1.13.1", "0.13.1", None, True),
        ("1.13.1", "0.12.1", None, False),
        ("2.0.1", "2.0.2", None, True),
        ("2.13.0", "2.11.0", None, True),  # from 2.11 on built for the stable ABI
        ("2.10.0", "2.11.0", None, False),
        ("2.14.0", "2.10.0", None, False),
    ],
)
def test_torchaudio(torch: str, audio: str, wants: str | None, fit: bool) -> None:
    facts = {"torch__version": torch, "torchaudio__version": audio, "torchaudio__wants_torch": wants}
    assert tell("torchaudio.fits_torch", **facts) is fit


def test_other_companions() -> None:
    vision = {"torchvision__version": "0.20.1", "torch__version": "2.5.1+cu124"}
    assert tell("torchvision.same_build", torchvision__build="cu124", **vision) is True
    assert tell("torchvision.same_build", torchvision__build="cpu", **vision) is False
    assert tell("torchvision.same_build", torchvision__build=None, **vision) is State.UNKNOWN
    assert tell("triton.fits_torch", triton__version="3.1.0", torch__wants_triton="==3.1.0") is True
    assert tell("triton.fits_torch", triton__version="3.0.0", torch__wants_triton="==3.1.0") is False
    assert tell("triton.fits_torch", triton__version="3.8.2", torch__wants_triton="~=3.8.0") is True
    assert tell("triton.fits_torch", triton__version="3.9.0", torch__wants_triton="~=3.8.0") is False
    assert tell("triton.fits_torch", triton__version="3.1.0", torch__wants_triton=None) is State.ABSENT
    assert tell("triton.fits_torch", triton__version="3.1.0", torch__wants_triton=">3") is State.UNKNOWN
    ok = {"torch__numpy_ok": True, "torch__numpy_error": None}
    assert tell("numpy.fits_torch", numpy__version="2.0.1", torch__version="2.2.2", **ok) is False
    assert tell("numpy.fits_torch", numpy__version="1.26.4", torch__version="2.2.2", **ok) is True
    assert tell("numpy.fits_torch", numpy__version="2.4.6", torch__version="2.3.0", **ok) is True
    said = {"torch__numpy_ok": False, "torch__numpy_error": "RuntimeError: Numpy is not available"}
    assert tell("numpy.fits_torch", numpy__version="1.26.4", torch__version="2.5.1", **said) is False
    assert tell("numpy.fits_torch", numpy__version=None, torch__version="2.5.1") is State.ABSENT


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        (None, 4),
        ("", 0),
        ("-1", 0),
        ("0", 1),
        ("0,1", 2),
        ("3,2,1,0", 4),
        ("0,4,1", 1),
        ("1,x,2", 1),
        ("NoDevFiles", 0),
        ("GPU-aa", 1),
        ("GPU-aaaa,GPU-bb", 2),
        ("GPU-", 0),
        ("GPU-cc", 0),
        ("MIG-1,MIG-2", 2),
        ("0,0", 0),
        (" 1 , 2 ", 2),
    ],
)
def test_visible_devices(setting: str | None, count: int) -> None:
    assert visible(setting, 4, ("GPU-aaaa", "GPU-bbbb", "GPU-1", "GPU-2")) == count


def test_gpu_counts() -> None:
    assert tell("gpu.count", driver__nvml_error=None, gpu__nvml_count=None) == 0
    assert tell("gpu.count", driver__nvml_error=None, gpu__nvml_count=8) == 8
    assert tell("gpu.count", driver__nvml_error="Driver Not Loaded") == 0
    hung = Fact.unknown("gpu.nvml_count", Reason.TIMED_OUT)
    assert tell("gpu.count", driver__nvml_error="NVML did not answer", gpu__nvml_count=hung) is State.UNKNOWN
    two = {"driver__nvml_error": None, "gpu__nvml_count": 2}
    assert tell("gpu.visible_count", env__CUDA_VISIBLE_DEVICES="1", **two) == 1
    assert tell("gpu.hidden", env__CUDA_VISIBLE_DEVICES="", **two) is True
    assert tell("gpu.hidden", env__CUDA_VISIBLE_DEVICES=None, **two) is False
    assert tell("gpu.hidden", env__CUDA_VISIBLE_DEVICES="", gpu__count=0) is State.ABSENT
    capabilities = {"torch__device_capability": None, "gpu__compute_capability": ("9.0", "7.0", "12.0")}
    assert tell("gpu.lowest_capability", **capabilities) == 7.0


def test_gpu_states() -> None:
    one = {"gpu__count": 2}
    assert tell("gpu.mig", gpu__mig_modes=(False, True), **one) is True
    assert tell("gpu.mig", gpu__mig_modes=(None, None), **one) is False
    assert tell("gpu.mig_without_instance", gpu__mig_modes=(True, True), gpu__mig_instances=0, **one) is True
    assert tell("gpu.mig_without_instance", gpu__mig_modes=(True, True), gpu__mig_instances=2, **one) is False
    assert (
        tell("gpu.mig_without_instance", gpu__mig_modes=(True, False), gpu__mig_instances=0, **one) is False
    )
    assert tell("gpu.exclusive", gpu__compute_modes=("default", "exclusive-process"), **one) is True
    assert tell("gpu.exclusive", gpu__compute_modes=("default", None), **one) is False
    two = {"gpu__names": ("NVIDIA A100-SXM4-40GB", "NVIDIA DGX Display"), **one}
    assert tell("gpu.order_ambiguous", env__CUDA_DEVICE_ORDER=None, **two) is True
    assert tell("gpu.order_ambiguous", env__CUDA_DEVICE_ORDER="PCI_BUS_ID", **two) is False
    assert tell("gpu.order_ambiguous", env__CUDA_DEVICE_ORDER=None, gpu__names=("A", "A"), **one) is False
    assert tell("gpu.lost", driver__nvml_error=None, gpu__errors=("GPU 1: GPU is lost",), **one) is True
    assert tell("gpu.lost", driver__nvml_error=None, gpu__errors=("GPU 1: Timeout",), **one) is False
    assert tell("gpu.virtual", gpu__virtualization=("vgpu",), gpu__mig_modes=None, **one) is True
    assert tell("gpu.virtual", gpu__virtualization=("passthrough",), gpu__mig_modes=(False,), **one) is False
    assert tell("gpu.throttled", gpu__throttle_reasons=((), ("hw-power-brake",)), **one) is True
    # the cap of the power limit is how the card is meant to run
    assert tell("gpu.throttled", gpu__throttle_reasons=(("sw-power-cap",), None), **one) is False
    assert tell("gpu.pcie_degraded", gpu__pcie_width=(16, 8), gpu__pcie_width_max=(16, 16), **one) is True
    assert tell("gpu.pcie_degraded", gpu__pcie_width=(8, None), gpu__pcie_width_max=(8, 16), **one) is False
    assert tell("gpu.ecc_failed", gpu__ecc_uncorrected=(0, 3), gpu__remap_failed=None, **one) is True
    assert (
        tell("gpu.ecc_failed", gpu__ecc_uncorrected=(0, None), gpu__remap_failed=(False, True), **one) is True
    )
    assert (
        tell("gpu.ecc_failed", gpu__ecc_uncorrected=(0, 0), gpu__remap_failed=(False, False), **one) is False
    )


def test_nvlinks_that_are_down() -> None:
    bridge = {
        "gpu__count": 2,
        "gpu__names": ("NVIDIA H100 PCIe",) * 2,
        "gpu__fabric_states": None,
        "driver__nvswitches": 0,
    }
    # a card without its bridge has links that are down by construction
    assert (
        tell("gpu.nvlink_down", gpu__nvlinks_active=(0, 0), gpu__nvlinks_inactive=(12, 12), **bridge) is False
    )
    assert (
        tell("gpu.nvlink_down", gpu__nvlinks_active=(12, 12), gpu__nvlinks_inactive=(6, 6), **bridge) is False
    )
    assert (
        tell("gpu.nvlink_down", gpu__nvlinks_active=(18, 17), gpu__nvlinks_inactive=(0, 1), **bridge) is True
    )
    switch = {**bridge, "driver__nvswitches": 4}
    assert (
        tell("gpu.nvlink_down", gpu__nvlinks_active=(17, 17), gpu__nvlinks_inactive=(1, 1), **switch) is True
    )


def test_memory_of_others() -> None:
    gib = 1 << 30
    facts = {
        "gpu__count": 2,
        "gpu__memory_total_bytes": (80 * gib, 80 * gib),
        "gpu__memory_used_bytes": (0, 78 * gib),
        "gpu__mig_modes": (False, False),
        "os__container": None,
        "os__wsl": False,
    }
    assert tell("gpu.others_memory_bytes", **facts) == 78 * gib
    assert tell("gpu.others_memory_share", **facts) == 0.975
    assert tell("gpu.held_by_dead", gpu__processes=(), **facts) is True
    assert tell("gpu.held_by_dead", gpu__processes=((1, 4711, None, "compute"),), **facts) is False
    assert (
        tell("gpu.held_by_dead", gpu__processes=(), **{**facts, "os__container": "docker"}) is State.UNKNOWN
    )
    assert tell("gpu.held_by_dead", gpu__processes=(), **{**facts, "gpu__mig_modes": (False, True)}) is False
    idle = {**facts, "gpu__memory_used_bytes": (0, 4 << 20), "os__container": "docker"}
    assert tell("gpu.held_by_dead", gpu__processes=(), **idle) is False
    silent = {**facts, "gpu__memory_used_bytes": (None, None)}
    assert tell("gpu.others_memory_share", **silent) is State.UNKNOWN


def test_libraries() -> None:
    shadow = (
        "libcudnn.so.9: /usr/local/cuda/lib64 (9.5.1) before /v/nvidia/cudnn/lib/libcudnn.so.9 (9.1.0.70)",
    )
    crashed = Fact.unknown("library.loaded_elsewhere", Reason.CRASHED)
    loaded = {
        "library__loaded_elsewhere": (),
        "torch__import_ok": True,
        "torch__libraries": ("/v/libcudart.so.12",),
    }
    other = ("/usr/local/cuda/lib64/libcudnn.so.9.5.1",)
    assert tell("library.shadowed", library__loaded_elsewhere=other) is True
    assert tell("library.shadowed", library__shadows=(), **loaded) is False
    # one that the import did not load yet may still come
    assert tell("library.shadowed", library__shadows=shadow, **loaded) is State.UNKNOWN
    settled = {**loaded, "torch__libraries": ("/v/nvidia/cudnn/lib/libcudnn.so.9",)}
    assert tell("library.shadowed", library__shadows=shadow, **settled) is False
    failed = {**loaded, "torch__import_ok": False}
    assert tell("library.shadowed", library__shadows=shadow, **failed) is True
    assert tell("library.shadowed", library__loaded_elsewhere=crashed, library__shadows=shadow) is True
    gnu = ("/a/libgomp.so.1", "/b/libgomp-24e2ab19.so.1.0.0")
    assert tell("openmp.duplicate", openmp__runtimes=gnu) is False
    assert tell("openmp.duplicate", openmp__runtimes=("/a/libiomp5.so", "/b/libomp.so")) is True
    assert tell("openmp.duplicate", openmp__runtimes=("/a/libgomp.so.1", "/b/libiomp5.so")) is False
    conda = {"libstdcxx__path": "/c/lib/libstdc++.so.6", "libstdcxx__system_glibcxx": "3.4.30"}
    assert tell("libstdcxx.older_than_system", libstdcxx__glibcxx="3.4.9", **conda) is True
    assert tell("libstdcxx.older_than_system", libstdcxx__glibcxx="3.4.32", **conda) is False
    assert tell("toolkit.matches_torch", toolkit__version="12.8.93", torch__cuda="12.4") is True
    assert tell("toolkit.matches_torch", toolkit__version="11.8.89", torch__cuda="12.4") is False
    assert tell("toolkit.matches_torch", toolkit__version=None, torch__cuda="12.4") is State.ABSENT


def test_locks() -> None:
    lock = {
        "extension__locks": ("/home/u/.cache/torch_extensions/py311_cu124/x/lock",),
        "torch__version": "2.13.0",
    }
    assert tell("extension.lock_stale", extension__lock_owner="none", **lock) is True
    assert tell("extension.lock_stale", extension__lock_owner="alive", **lock) is False
    assert tell("extension.lock_stale", extension__lock_owner="unknown", **lock) is State.UNKNOWN
    newer = {**lock, "torch__version": "2.14.0+cu130"}
    assert tell("extension.lock_stale", extension__lock_owner="none", **newer) is False
    assert tell("extension.lock_stale", extension__locks=()) is False
    assert tell("extension.lock_stale", **{**lock, "torch__version": None}) is State.ABSENT


def test_resources() -> None:
    assert tell("cpu.usable", cpu__affinity=16, cpu__count=64, cgroup__cpu_quota=2.5) == 2.5
    assert tell("cpu.usable", cpu__affinity=16, cpu__count=64, cgroup__cpu_quota=None) == 16
    assert tell("cpu.usable", cpu__affinity=None, cpu__count=8, cgroup__cpu_quota=None) == 8
    assert tell("memory.limit_bytes", memory__total_bytes=100, cgroup__memory_limit_bytes=40) == 40
    assert tell("memory.limit_bytes", memory__total_bytes=100, cgroup__memory_limit_bytes=None) == 100
    assert tell("shm.small", shm__size_bytes=64 << 20) is True
    assert tell("shm.small", shm__size_bytes=8 << 30) is False
    assert tell("shm.small", shm__size_bytes=None) is State.ABSENT


def test_what_is_left_for_a_run() -> None:
    gib = 1 << 30
    free = {"memory__available_bytes": 8 * gib}
    assert tell("memory.headroom_bytes", **free, cgroup__memory_limit_bytes=None) == 8 * gib
    assert tell("memory.headroom_bytes", **free, cgroup__memory_limit_bytes=gib) == gib
    assert (
        tell("memory.headroom_bytes", memory__available_bytes=None, cgroup__memory_limit_bytes=1)
        is State.ABSENT
    )
    assert tell("cpu.overcounted", cpu__count=64, cpu__usable=2.0) is True
    assert tell("cpu.overcounted", cpu__count=64, cpu__usable=32.0) is False
    assert tell("cpu.overcounted", cpu__count=4, cpu__usable=1.0) is False
    disks = {f"disk__{one}_free_bytes": 9 * gib for one in ("tmp", "home", "work", "cache")}
    assert tell("disk.low", **disks) is State.ABSENT
    assert tell("disk.low", **{**disks, "disk__tmp_free_bytes": 5 << 20}) == ("temporary files: 5 MiB free",)
    assert tell("disk.low") is State.UNKNOWN
    assert tell("net.https_unproxied", net__proxies=("HTTP_PROXY",)) is True
    assert tell("net.https_unproxied", net__proxies=("http_proxy", "https_proxy")) is False


def test_neighbours() -> None:
    one = {
        "gpu__count": 1, "gpu__memory_used_bytes": (108 << 30,), "gpu__memory_total_bytes": (140 << 30,),
        "gpu__utilization": (100,), "gpu__processes": ((0, 4711, 108 << 30, "compute"),),
        "gpu__owners": ((4711, "python", "ada", 7200, True),), "gpu__mig_modes": (None,),
    }  # fmt: skip
    assert tell("gpu.neighbours", **one) == (
        "GPU 0: 108.0 of 140.0 GiB in use, 100 % busy: process 4711 (python of ada, 2.0 h old, an orphan)",
    )
    unseen = tell("gpu.neighbours", **{**one, "gpu__processes": (), "gpu__owners": None})
    assert unseen == ("GPU 0: 108.0 of 140.0 GiB in use, 100 % busy: no process of it can be seen from here",)
    for quiet in (
        {"gpu__memory_used_bytes": (4 << 20,)},  # a driver that was just started reports load
        {"gpu__memory_used_bytes": (600 << 20,), "gpu__utilization": (5,)},
        {"gpu__mig_modes": (True,)},
        {
            "gpu__memory_used_bytes": (9 << 30,), "gpu__display_active": (True,),
            "gpu__processes": ((0, 7, 9 << 30, "graphics"),),
        },
    ):  # fmt: skip
        assert tell("gpu.neighbours", **{**one, **quiet}) is State.ABSENT, quiet
    small = {**one, "gpu__memory_used_bytes": (400 << 20,), "gpu__owners": None}
    assert tell("gpu.neighbours", **small) == ("GPU 0: 0.4 of 140.0 GiB in use, 100 % busy: process 4711",)


def test_recent_hardware_errors() -> None:
    rows = (
        ("0000:3b:00", 79, 7200),
        ("0000:3b:00", 43, 60),
        ("0000:3b:00", 79, 3600),
        ("0000:86:00", 48, 90000),
    )
    assert tell("gpu.xid_recent", kernel__gpu_errors=rows) == ("Xid 79 of 0000:3b:00, 1.0 h ago",)
    assert tell("gpu.xid_recent", kernel__gpu_errors=()) is State.ABSENT
    # 142 is of the video encoder, which a program can upset; 54 and 156 are of the card
    rows = tuple(("0000:3b:00", code, 0) for code in (142, 54, 156))
    told = tell("gpu.xid_recent", kernel__gpu_errors=rows)
    assert told == ("Xid 54 of 0000:3b:00, 0.0 h ago", "Xid 156 of 0000:3b:00, 0.0 h ago")


def test_leaked_debug_variables() -> None:
    unset = {need.replace(".", "__"): None for need in DERIVED["env.leaked_debug"].needs}
    assert tell("env.leaked_debug", **unset) is State.ABSENT
    found = tell("env.leaked_debug", **{**unset, "env__CUDA_LAUNCH_BLOCKING": "1", "env__NCCL_DEBUG": "info"})
    assert isinstance(found, tuple)
    assert [str(one).partition(":")[0] for one in found] == ["CUDA_LAUNCH_BLOCKING=1", "NCCL_DEBUG=info"]
    harmless = {
        **unset,
        "env__CUDA_LAUNCH_BLOCKING": "0",
        "env__NCCL_DEBUG": "WARN",
        "env__NVIDIA_TF32_OVERRIDE": "1",
    }
    assert tell("env.leaked_debug", **harmless) is State.ABSENT


def test_versions() -> None:
    assert parse("2.6.0a0+ecf.nv25.01") == (2, 6, 0)
    with pytest.raises(ValueError, match="no version"):
        parse("unknown")
    assert [is_release(text) for text in ("2.5.1", "2.5.1+cu124", "2.5.1+rocm6.2", "1.8.0.post2")] == [
        True
    ] * 4
    assert [is_release(text) for text in ("2.6.0a0", "2.7.0.dev1+cu126", "2.5.1+gitabc", "2.5.1rc2")] == [
        False
    ] * 4
    assert cuda_of_driver((550, 54, 14)) == (12, 4)
    assert cuda_of_driver((999,)) == (13, 2)
    assert cuda_of_driver((340, 0)) is None
    assert audio_of((1, 13, 1)) == (0, 13)
    assert audio_of((2, 5, 1)) == (2, 5)
    assert fits(">=2.14", "2.13.0") is False
    assert fits("==2.5.1,!=2.5.2", "2.5.1") is None
