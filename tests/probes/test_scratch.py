"""Folders of ours are gone at the end, whoever writes into them meanwhile."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from torchdoctor.probes import scratch


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_dying_program_still_writes_goes_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, remove, late = scratch.Scratch(), shutil.rmtree, ["err", "out"]

    def removed(name: str, ignore_errors: bool) -> None:
        remove(name, ignore_errors=ignore_errors)
        if late:
            os.mkdir(name)
            Path(name, late.pop()).touch()

    monkeypatch.setattr(shutil, "rmtree", removed)
    folder.remove()
    assert (list(place.iterdir()), late) == ([], [])


def test_a_signal_while_one_is_made_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(scratch, "_locked", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scratch.Scratch()
    assert list(place.iterdir()) == []


def test_a_signal_that_comes_before_its_name_is_kept_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def interrupted(name: str, mode: int = 0o777) -> None:
        make(name, mode)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scratch.Scratch()
    assert list(place.iterdir()) == []
