"""Operating system, container, memory, disks, PCI bus, driver files and toolchain, from recorded readings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from probe_machines import Environment, replay

from torchdoctor.model import Reason, State
from torchdoctor.probes.machine import Json, Missing, NotRecorded, Outcome, Unreadable
from torchdoctor.probes.recording import ReplayMachine
from torchdoctor.probes.source import ProbeSource

Look = Callable[..., ProbeSource]


class Host(ReplayMachine):
    """Files, folders and variables not named are not there; every other question is an error."""

    def answer(self, operation: str, subject: str) -> Json:
        try:
            return super().answer(operation, subject)
        except NotRecorded:
            if operation == "variable":
                return None
            if operation in ("file", "status", "folder", "real", "which", "headers", "cache"):
                raise Missing(subject) from None
            raise


def host(programs: dict[str, Outcome] | None = None, **answers: Json) -> ProbeSource:
    """Answers by "operation subject" with "__" for the blank between them."""
    table: dict[tuple[str, str], Json | Unreadable] = {}
    for key, value in answers.items():
        operation, _, subject = key.partition("__")
        table[operation, subject] = value
    return ProbeSource(Host(table, programs))


def there(*paths: str) -> dict[str, Json]:
    status: Json = {"folder": False, "size": 1, "modified": 1.0, "mode": 0o644}
    return {f"status__{path}": status for path in paths}


@pytest.mark.parametrize(
    ("answers", "container"),
    [
        (there("/.dockerenv"), "docker"),
        (there("/run/.containerenv"), "podman"),
        (there("/.singularity.d"), "singularity"),
        ({"variable__KUBERNETES_SERVICE_HOST": "10.0.0.1", **there("/.dockerenv")}, "kubernetes"),
        ({"variable__container": "systemd-nspawn"}, "other"),
        ({"file__/proc/1/cgroup": "0::/kubepods.slice/x\n"}, "kubernetes"),
        ({"file__/proc/1/cgroup": "0::/init.scope\n"}, None),
    ],
)
def test_containers(answers: dict[str, Json], container: str | None) -> None:
    fact = host(**answers).fetch("os.container")
    assert fact.state is (State.ABSENT if container is None else State.KNOWN)
    assert fact.value == container


def test_wsl_and_names() -> None:
    source = host(value__system=["linux", "5.15.167.4-microsoft-standard-WSL2", "x86_64", "pc"])
    assert source.fetch("os.wsl").value is True
    assert source.fetch("os.name").value == "linux"
    assert source.fetch("os.kernel").value == "5.15.167.4-microsoft-standard-WSL2"
    assert host(value__system=["linux", "6.8.0-45-generic", "x86_64", "pc"]).fetch("os.wsl").value is False


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ('PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\n', "Ubuntu 24.04.1 LTS"),
        ("NAME=x\nPRETTY_NAME=Arch\n", "Arch"),
        ("NAME=x\n", None),
    ],
)
def test_distributions(release: str, name: str | None) -> None:
    assert host(**{"file__/etc/os-release": release}).fetch("os.distribution").value == name


def test_processors() -> None:
    info = "processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags\t\t: fpu avx avx2 avx512f\n"
    machine = {"value__system": ["linux", "6", "x86_64", "h"], "head__/proc/cpuinfo": info}
    assert host(**machine).fetch("cpu.model").value == "AMD EPYC 9654"
    assert host(**machine).fetch("cpu.avx2").value is True
    old = {**machine, "head__/proc/cpuinfo": info.replace(" avx2", "")}
    assert host(**old).fetch("cpu.avx2").value is False
    arm = {**machine, "value__system": ["linux", "6", "aarch64", "h"]}
    assert host(**arm).fetch("cpu.avx2").state is State.ABSENT


def test_glibc() -> None:
    assert host(value__glibc="glibc 2.36").fetch("os.glibc").value == "2.36"


def test_memory() -> None:
    text = "MemTotal: 1000 kB\nMemAvailable: 400 kB\nSwapTotal: 300 kB\nSwapFree: 100 kB\nUnevictable: 7 kB\n"
    source = host(**{"file__/proc/meminfo": text, "space__/dev/shm": {"total": 64, "free": 10, "used": 54}})
    assert source.fetch("memory.total_bytes").value == 1000 * 1024
    assert source.fetch("memory.swap_used_bytes").value == 200 * 1024
    assert source.fetch("shm.used_bytes").value == 54
    partial = host(**{"file__/proc/meminfo": "MemTotal: 1000 kB\n", "space__/dev/shm": {}})
    assert partial.fetch("memory.available_bytes").reason is Reason.UNPARSABLE


def test_no_shared_memory() -> None:
    source = replay({("space", "/dev/shm"): Missing("/dev/shm")})
    assert source.fetch("shm.size_bytes").state is State.ABSENT
    closed = replay({("space", "/dev/shm"): Unreadable("/dev/shm", Reason.NOT_PERMITTED)})
    assert closed.fetch("shm.size_bytes").reason is Reason.NOT_PERMITTED


def test_pci_bus() -> None:
    rows: Json = [
        ["0000:00:02.0", 0x8086, 0x030000],
        ["0001:3b:00.0", 0x10DE, 0x030200],
        ["0000:01:00.0", 0x1A03, 0x030000],
    ]
    source = replay({("displays", "/sys/bus/pci/devices"): rows})
    assert source.fetch("gpu.vendors").value == ("intel", "nvidia")
    assert source.fetch("gpu.pci_count").value == 1
    closed = replay({("displays", "/sys/bus/pci/devices"): Unreadable("/sys", Reason.NOT_PERMITTED)})
    assert closed.fetch("gpu.pci_count").reason is Reason.NOT_PERMITTED


@pytest.mark.parametrize(
    ("line", "version", "kind"),
    [
        ("Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  ", "580.159.04", "open"),
        ("x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021", "470.57.02", "proprietary"),
        ("Open Kernel Module for aarch64  570.26  Release Build", "570.26", "open"),
        ("x86_64 Kernel Module  384.81", "384.81", "proprietary"),
    ],
)  # fmt: skip
def test_kernel_modules(line: str, version: str, kind: str) -> None:
    text = f"NVRM version: NVIDIA UNIX {line}\nGCC version:  gcc version 12.2.0\n"
    source = host(**{"file__/proc/driver/nvidia/version": text})
    assert source.fetch("driver.kernel_version").value == version
    assert source.fetch("driver.kernel_kind").value == kind


def test_kernel_modules_that_say_nothing() -> None:
    source = host(**{"file__/proc/driver/nvidia/version": "garbage\n"})
    assert source.fetch("driver.kernel_version").reason is Reason.UNPARSABLE
    assert host().fetch("driver.kernel_version").state is State.ABSENT


@pytest.mark.parametrize(
    ("search", "path", "real", "kind", "version"),
    [
        ("", "/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.550.54.15", "driver", "550.54.15"),
        ("/usr/local/cuda-12.4/compat", "/usr/local/cuda-12.4/compat/libcuda.so.1",
         "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", "compat", "550.54.15"),
        ("/usr/local/cuda/lib64/stubs", "/usr/local/cuda/lib64/stubs/libcuda.so.1",
         "/usr/local/cuda/lib64/stubs/libcuda.so", "stub", None),
        ("/usr/lib/wsl/lib", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "wsl", None),
    ],
)  # fmt: skip
def test_kinds_of_libcuda(search: str, path: str, real: str, kind: str, version: str | None) -> None:
    source = host(**{"variable__LD_LIBRARY_PATH": search, f"real__{path}": real, **there(path)})
    assert source.fetch("driver.libcuda").value == path
    assert source.fetch("driver.libcuda_kind").value == kind
    fact = source.fetch("driver.library_version")
    assert fact.value == version
    assert fact.state is not State.ABSENT


def test_libraries_for_32_bits_do_not_count() -> None:
    paths: Json = ["/usr/lib/i386-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"]
    source = host(**{"cache__libcuda.so.1": {"libcuda.so.1": paths}, **there(*(str(path) for path in paths))})
    assert source.fetch("driver.libcuda").value == "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def test_device_files() -> None:
    like = "nvidia[0-9]*|nvidiactl|nvidia-uvm|nvidia-modeset|nvidia-nvswitch*|dxg|kfd|nvhost-ctrl-gpu"
    answers: dict[str, Json] = {
        f"folder__/dev?{like}": ["nvidia0", "nvidiactl"],
        "access__rw:/dev/nvidia0": False,
        "access__rw:/dev/nvidiactl": True,
        "folder__/proc/driver/nvidia/gpus": ["0000:3b:00.0", "0000:5e:00.0"],
        "file__/proc/driver/nvidia/gpus/0000:3b:00.0/information": "Device Minor: \t 0\n",
        "file__/proc/driver/nvidia/gpus/0000:5e:00.0/information": "Device Minor: \t 1\n",
        **there("/proc/driver/nvidia/version", "/dev/nvidia0", "/dev/nvidiactl"),
    }
    source = host(**answers)
    assert source.fetch("driver.device_nodes").value == ("/dev/nvidia0", "/dev/nvidiactl")
    assert source.fetch("driver.missing_nodes").value == ("/dev/nvidia-uvm", "/dev/nvidia1")
    assert source.fetch("driver.closed_nodes").value == ("/dev/nvidia0",)


def test_toolkits(tmp_path: Path) -> None:
    nvcc = Outcome(exit_code=0, stdout="nvcc: NVIDIA\nCuda compilation tools, release 12.4, V12.4.131\n")
    answers = {"variable__CUDA_HOME": "/opt/cuda/", **there("/opt/cuda/bin/nvcc")}
    source = host({"nvcc --version": nvcc}, **answers)
    assert source.fetch("toolkit.path").value == "/opt/cuda"
    assert source.fetch("toolkit.version").value == "12.4.131"
    json = '{"cuda": {"name": "CUDA SDK", "version": "12.1.20230302"}, "cuda_nvcc": {"version": "12.1.66"}}'
    assert (
        host(**answers, **{"file__/opt/cuda/version.json": json}).fetch("toolkit.version").value == "12.1.66"
    )
    old = {"file__/opt/cuda/version.txt": "CUDA Version 10.2.89\n"}
    assert host(**answers, **old).fetch("toolkit.version").value == "10.2.89"
    # a run-time image has a toolkit's folder and no compiler
    image = host(**there("/usr/local/cuda"))
    assert image.fetch("toolkit.path").value == "/usr/local/cuda"
    assert image.fetch("toolkit.nvcc").state is State.ABSENT
    assert image.fetch("toolkit.version").state is State.ABSENT
    broken = host({"nvcc --version": Outcome(exit_code=1, stderr="no")}, **answers)
    assert broken.fetch("toolkit.version").reason is Reason.CRASHED


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
        ("Ubuntu clang version 14.0.0-1ubuntu1.1", "14.0.0"),
        ("g++ (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)", "4.8.5"),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 13.3.0-2) 13.3.0", "13.3.0"),
    ],
)
def test_compilers(line: str, version: str) -> None:
    source = host(
        {"c++ --version": Outcome(exit_code=0, stdout=f"{line}\nmore\n")}, **{"which__c++": "/usr/bin/c++"}
    )
    assert source.fetch("compiler.cxx_version").value == version
    assert host().fetch("compiler.cxx").state is State.ABSENT


def test_disks(environment: Environment, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchdoctor.probes import disk
    from torchdoctor.probes.machine import Mount

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    mount = Mount("/", "/", "nfs4", ("rw", "noexec"), ())
    monkeypatch.setattr(disk, "mount_of", lambda context, path: mount)
    source = look(environment)
    folders = source.fetch("disk.cache_folders").value
    assert isinstance(folders, tuple)
    assert {str(tmp_path / name) for name in ("triton", "inductor", "extensions")} <= set(folders)
    # only folders whose files are run suffer from noexec
    assert set(source.fetch("disk.cache_noexec").value or ()) == set(folders[:3])
    assert all(str(one).endswith(" (nfs4)") for one in source.fetch("disk.cache_network").value or ())
    assert source.fetch("disk.cache_unwritable").value == ()
    free = source.fetch("disk.cache_free_bytes").value
    assert isinstance(free, int)
    assert free > 0


def test_limits() -> None:
    source = replay(
        {("value", "limit:RLIMIT_NOFILE"): [1024, 524288], ("value", "limit:RLIMIT_MEMLOCK"): [65536, 65536]}
    )
    assert source.fetch("limits.nofile").value == 1024
    assert source.fetch("limits.nofile_hard").value == 524288
    assert source.fetch("limits.memlock_bytes").value == 65536
    assert source.fetch("limits.nproc").reason is Reason.NOT_ASKED
