"""Locks of extension builds: who holds them, and when that cannot be told; caches and their disks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.model import State
from torchdoctor.probes import extension, operations
from torchdoctor.probes.source import ProbeSource


@pytest.fixture
def opened(
    environment: Environment,
    look: Callable[..., ProbeSource],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], ProbeSource]:
    """The machine with TORCH_EXTENSIONS_DIR in a folder of the test and torch 2.13 in the environment."""
    environment.plant("", version="2.13.0")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    # the host of the tests may be a container, on whose mounted folders nothing can be told
    monkeypatch.setattr("torchdoctor.probes.host._container", lambda context: None)
    return lambda: look(environment)


def lock(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path.joinpath("extensions", *names)
    folder.mkdir(parents=True)
    path = folder / "lock"
    path.touch()
    return path


def test_no_folder(opened: Callable[[], ProbeSource]) -> None:
    source = opened()
    assert source.fetch("extension.locks").value == ()
    assert source.fetch("extension.lock_owner").state is State.ABSENT
    assert source.fetch("extension.lock_stale").value is False


@pytest.mark.parametrize("names", [("fused",), ("py311_cu124", "fused")])
def test_a_leftover_lock(names: tuple[str, ...], opened: Callable[[], ProbeSource], tmp_path: Path) -> None:
    path = lock(tmp_path, *names)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    source = opened()
    assert source.fetch("extension.locks").value == (str(path),)
    age = source.fetch("extension.lock_age_seconds").value
    assert isinstance(age, float)
    assert age > 1e8
    if os.geteuid() != 0:
        pytest.skip("only root sees the open files of all processes")
    assert source.fetch("extension.lock_owner").value == "none"
    assert source.fetch("extension.lock_stale").value is True


def test_a_lock_whose_builder_lives(opened: Callable[[], ProbeSource], tmp_path: Path) -> None:
    path = lock(tmp_path, "fused")
    # as torch/utils/file_baton.py does: opened for creation and kept open while building
    program = f"import os, time; os.open({str(path)!r}, os.O_CREAT); print(1, flush=True); time.sleep(60)"
    builder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        builder.stdout.readline()
        source = opened()
        assert source.fetch("extension.lock_owner").value == "alive"
        assert source.fetch("extension.lock_pids").value == (builder.pid,)
        assert source.fetch("extension.lock_stale").value is False
    finally:
        builder.kill()
        builder.communicate()


def test_processes_that_may_not_be_looked_at(
    opened: Callable[[], ProbeSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(tmp_path, "fused")
    listdir = os.listdir

    def closed(path: str) -> list[str]:
        if path.startswith("/proc/") and path.endswith("/fd") and path != f"/proc/{os.getpid()}/fd":
            raise PermissionError(13, "Permission denied", path)
        return listdir(path)

    monkeypatch.setattr(operations.os, "listdir", closed)
    source = opened()
    assert source.fetch("extension.lock_owner").value == "unknown"
    assert source.fetch("extension.lock_stale").state is State.UNKNOWN
    assert source.faults == []


def test_a_network_disk(
    opened: Callable[[], ProbeSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchdoctor.probes.machine import Mount

    lock(tmp_path, "fused")
    mount = Mount(str(tmp_path), "/", "nfs4", ("rw",), ())
    monkeypatch.setattr(extension, "mount_of", lambda context, path: mount)
    source = opened()
    assert source.fetch("extension.filesystem").value == "nfs4"
    owner = source.fetch("extension.lock_owner")
    assert owner.value == "unknown"
    assert "another host" in owner.detail


def test_a_folder_mounted_into_a_container(
    opened: Callable[[], ProbeSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchdoctor.probes.host._container", lambda context: "docker")
    lock(tmp_path, "fused")
    source = opened()
    if source.fetch("extension.filesystem").value == "overlay":
        pytest.skip("the folder of the tests belongs to the container itself")
    assert source.fetch("extension.lock_stale").state is State.UNKNOWN


def test_other_files_are_no_locks(opened: Callable[[], ProbeSource], tmp_path: Path) -> None:
    folder = tmp_path / "extensions" / "fused"
    folder.mkdir(parents=True)
    (folder / "lock.cpp").touch()
    (folder / "build.ninja").touch()
    (tmp_path / "extensions" / "lock").touch()  # not where torch puts it
    (folder / "lock").mkdir()
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    source = opened()
    assert source.fetch("extension.locks").value == ()


def test_where_torch_builds(
    look: Callable[..., ProbeSource], environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/scratch/cache")
    assert look(environment).fetch("extension.folder").value == "/scratch/cache/torch_extensions"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert look(environment).fetch("extension.folder").value == "/home/someone/.cache/torch_extensions"


def test_disks(
    environment: Environment,
    look: Callable[..., ProbeSource],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
