"""Which copy of a library is found first; ELF headers; the loader's cache; the C++ runtime."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.model import Reason, State
from torchdoctor.probes.elf import dynamic_section, loader_cache
from torchdoctor.probes.libraries import stem
from torchdoctor.probes.source import ProbeSource

Look = Callable[..., ProbeSource]


def elf(
    path: Path, needed: tuple[str, ...] = (), *, rpath: str = "", runpath: str = "", wide: bool = True
) -> None:
    """Write the smallest ELF file with a dynamic section that says this."""
    strings, entries = b"\0", []

    def add(tag: int, text: str) -> None:
        nonlocal strings
        entries.append((tag, len(strings)))
        strings += text.encode() + b"\0"

    for name in needed:
        add(1, name)
    add(14, path.name)
    if rpath:
        add(15, rpath)
    if runpath:
        add(29, runpath)
    base = 0x1000
    form = "<qQ" if wide else "<iI"
    head, row = (64, 56) if wide else (52, 32)
    begin = head + 2 * row
    length = (len(entries) + 2) * struct.calcsize(form)
    entries += [(5, base + begin + length), (0, 0)]
    dynamic = b"".join(struct.pack(form, tag, value) for tag, value in entries)
    size = begin + length + len(strings)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    if wide:
        header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, head, 0, 0, head, row, 2, 0, 0, 0)
        table = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
        table += struct.pack("<IIQQQQQQ", 2, 6, begin, base + begin, base + begin, length, length, 8)
    else:
        header = ident + struct.pack("<HHIIIIIHHHHHH", 3, 3, 1, 0, head, 0, 0, head, row, 2, 0, 0, 0)
        table = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
        table += struct.pack("<IIIIIIII", 2, begin, base + begin, base + begin, length, length, 6, 8)
    path.write_bytes(header + table + dynamic + strings)


@pytest.mark.parametrize("wide", [True, False])
def test_dynamic_section(wide: bool, tmp_path: Path) -> None:
    elf(tmp_path / "libx.so", ("libc10.so", "libcudart.so.12"), runpath="$ORIGIN:$ORIGIN/../y", wide=wide)
    assert dynamic_section(str(tmp_path / "libx.so")) == {
        "needed": ["libc10.so", "libcudart.so.12"], "rpath": "", "runpath": "$ORIGIN:$ORIGIN/../y",
        "soname": "libx.so",
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf to compare with")
def test_dynamic_section_of_a_real_file() -> None:
    text = subprocess.run(
        ["readelf", "-dW", sys.executable], capture_output=True, text=True, check=True
    ).stdout
    found = dynamic_section(sys.executable)
    assert isinstance(found, dict)
    wanted = [line.partition("[")[2].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line]
    assert found["needed"] == wanted
    assert wanted


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF",
        b"#!/bin/sh\n" * 20,
        b"\x7fELF\x02\x01" + bytes(200),
        b"\x7fELF\x02\x01" + b"\xff" * 200,
    ],
)
def test_files_that_are_no_elf(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(content)
    try:
        found = dynamic_section(str(path))
    except (ValueError, OSError):
        return
    assert isinstance(found, dict)
    assert found["needed"] == []


def test_loader_cache(tmp_path: Path) -> None:
    rows = [(b"libcuda.so.1", b"/usr/lib/x86_64-linux-gnu/libcuda.so.1"), (b"libz.so.1", b"/lib/libz.so.1"),
            (b"libcuda.so.1", b"/usr/lib/i386-linux-gnu/libcuda.so.1")]  # fmt: skip
    strings, entries = b"", b""
    start = 48 + 24 * len(rows)
    for name, path in rows:
        key = start + len(strings)
        strings += name + b"\0"
        value = start + len(strings)
        strings += path + b"\0"
        entries += struct.pack("<iIIIQ", 0x303, key, value, 0, 0)
    data = (
        b"glibc-ld.so.cache1.1" + struct.pack("<II", len(rows), len(strings)) + bytes(20) + entries + strings
    )
    for prefix in (b"", b"ld.so-1.7.0\0\0\0\0\0"):  # the older form has the newer one behind it
        (tmp_path / "cache").write_bytes(prefix + data)
        assert loader_cache(str(tmp_path / "cache"), ["libcuda.so.1", "libnone.so"]) == {
            "libcuda.so.1": ["/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/i386-linux-gnu/libcuda.so.1"]
        }
    (tmp_path / "cache").write_bytes(data[:60])
    with pytest.raises(ValueError, match="damaged"):
        loader_cache(str(tmp_path / "cache"), ["libcuda.so.1"])
    (tmp_path / "cache").write_bytes(b"something else")
    with pytest.raises(ValueError, match="no loader cache"):
        loader_cache(str(tmp_path / "cache"), ["libcuda.so.1"])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/lib/libcudnn_ops_infer.so.8", "cudnn"),
        ("libcudnn.so.9", "cudnn"),
        ("/x/libcublasLt.so.12.4.5", "cublasLt"),
        ("libnvJitLink.so.12", "nvJitLink"),
        ("libc10_cuda.so", "c10_cuda"),
    ],
)
def test_stems(path: str, name: str) -> None:
    assert stem(path) == name


@pytest.fixture
def cuda(environment: Environment) -> Environment:
    """A CUDA torch whose cuDNN and cuBLAS come from wheels."""
    environment.plant("raise OSError('not today')")
    lib = environment.site / "torch" / "lib"
    lib.mkdir()
    for part, name, version in (
        ("cudnn", "libcudnn.so.9", "9.1.0.70"),
        ("cublas", "libcublas.so.12", "12.4.5.8"),
    ):
        folder = environment.site / "nvidia" / part / "lib"
        folder.mkdir(parents=True)
        elf(folder / name)
        environment.distribution(f"nvidia-{part}-cu12", version)
    elf(
        lib / "libtorch_cuda.so",
        ("libcudnn.so.9", "libcublas.so.12", "libc.so.6"),
        runpath="$ORIGIN/../../nvidia/cudnn/lib",
    )
    return environment


def system_copy(folder: Path, name: str, version: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    elf(folder / f"{name}.{version}")
    (folder / f"{name}.{version.split('.')[0]}").symlink_to(f"{name}.{version}")


def test_nothing_in_the_way(cuda: Environment, look: Look) -> None:
    source = look(cuda)
    assert source.fetch("library.shadows").value == ()
    assert source.fetch("library.search_folders").value == ()
    assert source.fetch("library.torch_search").value == "runpath"
    # cuBLAS is not on torch's own way, but in a wheel, from where torch loads it
    assert source.fetch("library.missing").value == ()


def test_another_version_comes_first(
    cuda: Environment, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cuda" / "lib64"
    system_copy(folder, "libcudnn.so", "9.5.1")
    system_copy(folder, "libcublas.so", "12.4.5")  # the same version does no harm
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/gone:{folder}/")
    source = look(cuda)
    assert source.fetch("library.search_folders").value == (str(folder),)
    shadows = source.fetch("library.shadows").value
    assert isinstance(shadows, tuple)
    assert len(shadows) == 1
    assert str(shadows[0]).startswith(
        f"libcudnn.so.9: {folder} (9.5.1) before {cuda.site}/nvidia/cudnn/lib/libcudnn.so.9 (9.1"
    )
    assert source.fetch("library.shadowed").value is True


def test_the_wheels_own_folder_on_the_path(
    cuda: Environment, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(cuda.site / "nvidia" / "cudnn" / "lib"))
    source = look(cuda)
    assert source.fetch("library.shadows").value == ()


def test_a_wheel_is_missing(cuda: Environment, look: Look) -> None:
    shutil.rmtree(cuda.site / "nvidia" / "cublas")
    assert look(cuda).fetch("library.missing").value == ("libcublas.so.12, needed by libtorch_cuda.so",)


def test_preloaded(cuda: Environment, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(cuda).fetch("library.preloaded").state is State.ABSENT
    libc = next((str(path) for path in Path("/lib").glob("*/libm.so.6")), None)
    if libc is None:
        pytest.skip("no library that can be preloaded without harm")
    monkeypatch.setenv("LD_PRELOAD", f"{libc}  ")
    assert look(cuda).fetch("library.preloaded").value == (libc,)


def test_what_the_import_loads(
    environment: Environment, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The maps of the process are the surest: here a real library under the name of cuDNN."""
    real = next((path for path in Path("/lib").glob("*/libm.so.6")), None)
    if real is None:
        pytest.skip("no library to load")
    wheel = environment.site / "nvidia" / "cudnn" / "lib"
    wheel.mkdir(parents=True)
    elf(wheel / "libcudnn.so.9")
    other = tmp_path / "cuda"
    other.mkdir()
    shutil.copy(real.resolve(), other / "libcudnn.so.9.5.1")
    (other / "libcudnn.so.9").symlink_to("libcudnn.so.9.5.1")
    shutil.copy(real.resolve(), other / "libiomp5.so")
    shutil.copy(real.resolve(), other / "libomp-abc.so.5")
    environment.plant(
        "import ctypes\n"
        + "".join(
            f"ctypes.CDLL({str(other / name)!r})\n"
            for name in ("libcudnn.so.9", "libiomp5.so", "libomp-abc.so.5")
        )
    )
    source = look(environment)
    assert source.fetch("library.loaded_elsewhere").value == (str(other / "libcudnn.so.9.5.1"),)
    assert source.fetch("library.shadowed").value is True
    assert source.fetch("openmp.runtimes").value == (
        str(other / "libiomp5.so"),
        str(other / "libomp-abc.so.5"),
    )
    assert source.fetch("openmp.duplicate").value is True


def test_loaded_libraries_after_a_crash_are_not_known(environment: Environment, look: Look) -> None:
    environment.plant("import os; os.abort()")
    fact = look(environment).fetch("library.loaded_elsewhere")
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.CRASHED)


def test_the_cxx_runtime(
    environment: Environment, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "libstdc++.so.6").write_bytes(
        b"x\0GLIBCXX_3.4\0GLIBCXX_3.4.9\0GLIBCXX_3.4.10\0GLIBCXX_DEBUG\0"
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "old"))
    source = look(environment)
    assert source.fetch("libstdcxx.path").value == str(tmp_path / "old" / "libstdc++.so.6")
    assert source.fetch("libstdcxx.glibcxx").value == "3.4.10"  # by number, not by letter


def test_requirements(environment: Environment, look: Look) -> None:
    environment.plant(
        "",
        needs="nvidia-nccl-cu12==2.21.5; platform_system == 'Linux'\nfilelock\nsympy==1.13.1\n"
        "colorama; sys_platform == 'win32'\nopt-einsum>=3.3; extra == 'opt-einsum'\n"
        "cuda-toolkit[cublas]==13.0.3\ntriton==3.1.0",
    )
    environment.distribution("nvidia-nccl-cu12", "2.27.3")
    environment.distribution("SymPy", "1.14.0")
    environment.distribution(
        "cuda-toolkit", "13.0.3", "nvidia-cublas==13.1.*; extra == 'cublas'\nnvidia-cufft; extra == 'cufft'"
    )
    environment.distribution("triton", "3.1.0")
    source = look(environment)
    assert source.fetch("torch.requirements_missing").value == ("filelock", "nvidia-cublas")
    assert source.fetch("torch.requirements_other").value == (
        "nvidia-nccl-cu12 2.27.3, wants ==2.21.5", "sympy 1.14.0, wants ==1.13.1",
    )  # fmt: skip
    assert source.fetch("torch.requirements_ok").value is False
    assert source.fetch("torch.wants_triton").value == "==3.1.0"
    assert source.fetch("triton.fits_torch").value is True
    assert source.fetch("torch.installer").value == "pip"


def test_companions(environment: Environment, look: Look) -> None:
    environment.plant("")
    environment.distribution("torchvision", "0.19.1", "numpy\ntorch (==2.4.1)")
    environment.distribution("pytorch-lightning", "2.4.0")
    environment.distribution("apex", "0.9.10.dev0")
    (environment.site / "torchvision").mkdir()
    (environment.site / "torchvision" / "version.py").write_text("__version__ = '0.19.1+cpu'\n")
    source = look(environment)
    assert source.fetch("torchvision.version").value == "0.19.1"
    assert source.fetch("torchvision.wants_torch").value == "==2.4.1"
    assert source.fetch("torchvision.fits_torch").value is False
    assert source.fetch("torchvision.same_build").value is False
    assert source.fetch("lightning.version").value == "2.4.0"
    assert source.fetch("apex.is_nvidia").value is False
    (environment.site / "apex" / "normalization").mkdir(parents=True)
    assert look(environment).fetch("apex.is_nvidia").value is True
    assert source.fetch("numpy.version").state is State.ABSENT


def test_two_installations_of_torch(
    environment: Environment, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.plant("")
    other = tmp_path / "other"
    (other / "torch").mkdir(parents=True)
    (other / "torch" / "__init__.py").write_text("")
    (other / "torch" / "version.py").write_text("__version__ = '1.13.1'\ncuda: Optional[str] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(other))
    source = look(environment)
    assert source.fetch("torch.copies").value == (str(other / "torch"), str(environment.site / "torch"))
    assert source.fetch("torch.version").value == "1.13.1"
    assert source.fetch("torch.cuda").state is State.ABSENT
    assert source.fetch("torch.metadata_matches").value is False
