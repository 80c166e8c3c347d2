"""Where programs of ours may find code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchdoctor.probes.search_paths import program_on_path, without_current_folder


@pytest.mark.parametrize(
    ("variable", "value", "left"),
    [
        ("PATH", "/usr/bin:/bin", "/usr/bin:/bin"),
        ("PATH", ":/usr/bin::/bin:", "/usr/bin:/bin"),
        ("PATH", ".:bin:../bin:/usr/bin", "/usr/bin"),
        ("PATH", "{here}:{here}/:/usr/bin:{here}/bin", "/usr/bin:{here}/bin"),
        ("PYTHONPATH", "", None),
        ("PYTHONPATH", ".", None),
        ("LD_LIBRARY_PATH", "/opt/lib", "/opt/lib"),
        ("LD_PRELOAD", "libjemalloc.so.2", "libjemalloc.so.2"),
        ("LD_PRELOAD", "libjemalloc.so.2:./libx.so {here}/liby.so", "libjemalloc.so.2"),
        ("PYTHONHOME", "/opt/python", "/opt/python"),
        ("PYTHONHOME", ".", None),
        ("HOME", ".", "."),
    ],
)
def test_what_is_left_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, left: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    found = without_current_folder({variable: value.format(here=tmp_path)})
    assert found.get(variable) == (left if left is None else left.format(here=tmp_path))
    assert found["PYTHONSAFEPATH"] == "1"


def test_a_folder_that_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert without_current_folder({"PATH": ":/bin"})["PATH"] == "/bin"


def test_a_program_of_the_current_folder_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", os.pathsep, str(tmp_path)):
        assert program_on_path("tool", path) == ""
    monkeypatch.chdir("/")
    assert program_on_path("tool", str(tmp_path)) == str(tmp_path / "tool")
