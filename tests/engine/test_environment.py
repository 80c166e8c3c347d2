"""Which environment's facts are used for a log: that which its frames name, of which only files are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor import intake
from torchdoctor.catalog import load
from torchdoctor.engine import FactBook
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.incident import Local, explain
from torchdoctor.engine.provenance import site_of
from torchdoctor.model import Fact, Reason, State
from torchdoctor.probes.opening import open_for_log
from torchdoctor.probes.source import ProbeSource


class Bare:
    """A machine of which only one fact is known: its interpreter has no torch."""

    def names(self) -> tuple[str, ...]:
        return ("torch.version", "torch.cuda", "gpu.count")

    def fetch(self, name: str) -> Fact:
        return Fact.absent(name, "sys.path")


def log(site: str, script: str = "/w/train.py") -> str:
    return (
        f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>\n    step(range(100))\n'
        f'  File "{script}", line 2, in step\n    return torch.frobnicate(batch)\n'
        f'  File "{site}/torch/functional.py", line 9, in frobnicate\n    raise ValueError("frob")\n'
        "ValueError: frob\n"
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment that is not the active one; what lies in it as an interpreter must not be run."""
    site = tmp_path / "env" / "lib" / "python3.9" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "version.py").write_text("__version__ = '1.13.1'\ncuda = '11.7'\n")
    (site / "torch-1.13.1.dist-info").mkdir()
    (site / "torch-1.13.1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 1.13.1\n")
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    python.chmod(0o755)
    return site


@pytest.mark.parametrize("programs", [False, True])
def test_of_the_environment_that_the_log_names_files_are_read(
    programs: bool, site: Path, tmp_path: Path
) -> None:
    source = open_for_log(None, programs, str(site))
    try:
        told = {
            name: source.fetch(name) for name in ("torch.version", "torch.cuda", "torch.metadata_version")
        }
        version = source.fetch("python.version")
        imported = source.fetch("torch.cuda_available")
    finally:
        source.close()
    assert {name: fact.value for name, fact in told.items()} == {
        "torch.version": "1.13.1", "torch.cuda": "11.7", "torch.metadata_version": "1.13.1",
    }  # fmt: skip
    assert (version.state, imported.state) == (State.UNKNOWN, State.UNKNOWN)
    assert not (tmp_path / "was-run").exists()


def test_the_engine_hands_over_the_folder(site: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def step(batch):\n    return torch.frobnicate(batch)\nstep(range(100))\n")
    (tmp_path / "run.log").write_text(log(str(site), str(script)))
    asked: list[tuple[bool, str]] = []

    def opened(programs: bool, folder: str) -> ProbeSource:
        asked.append((programs, folder))
        return open_for_log(None, programs, folder)

    explain([str(tmp_path / "run.log")], FactBook(), load(), local=Local(opened))
    assert asked == [(False, str(site))]


@pytest.mark.parametrize("place", ["env/lib/site-packages", "/proc/1/root/lib/site-packages", "/opt/x"])
def test_places_that_name_no_environment(place: str) -> None:
    assert site_of(intake.read_text(log(place))) == ""


def test_a_log_with_frames_of_torch_never_says_that_torch_is_absent() -> None:
    book = FactBook(Bare())
    facts = TextFacts(intake.read_text(log("/opt/env/lib/python3.9/site-packages")), book)
    told = facts.fact("torch.version")
    assert (told.state, told.reason) == (State.UNKNOWN, Reason.NOT_ASKED)
    assert facts.fact("gpu.count").state is State.ABSENT
    assert TextFacts(intake.read_text("step 1\n"), book).fact("torch.version").state is State.ABSENT
