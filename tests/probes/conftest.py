"""An empty environment to plant torches in, and a way to look at it."""

from __future__ import annotations

import shutil
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.probe import Limits
from torchdoctor.probes.source import ProbeSource


@pytest.fixture(scope="session")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("env") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


@pytest.fixture
def environment(empty_python: Path, tmp_path: Path) -> Iterator[Environment]:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = empty_python / "lib" / version / "site-packages"
    work = tmp_path / "work"
    work.mkdir()
    yield Environment(empty_python / "bin" / "python", site, work)
    for entry in site.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ProbeSource]]:
    """Open the live machine for an interpreter, in a working folder, with short limits; closed at the end."""
    opened: list[ProbeSource] = []
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "TORCH_EXTENSIONS_DIR"):
        monkeypatch.delenv(name, raising=False)

    def open_it(environment: Environment, import_s: float = 20.0) -> ProbeSource:
        monkeypatch.chdir(environment.work)
        source = ProbeSource(LiveMachine(), str(environment.python), limits=Limits(import_s=import_s))
        opened.append(source)
        return source

    yield open_it
    for source in opened:
        source.close()
        assert source.faults == []
