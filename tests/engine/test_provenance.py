"""When a log may be judged by the facts of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor import intake
from torchdoctor.engine.provenance import printed_here

TRACEBACK = """Traceback (most recent call last):
  File "{path}", line 2, in <module>
    raise SystemError("no good at all")
SystemError: no good at all
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text('import os\nraise SystemError("no good at all")\n', encoding="utf-8")
    return path


def test_a_quoted_line_that_stands_in_a_file_of_this_machine_shows_it(script: Path) -> None:
    assert printed_here(intake.read_text(TRACEBACK.format(path=script)))


def test_another_version_of_the_file_does_not(script: Path) -> None:
    script.write_text('import os\nraise ValueError("something else")\n', encoding="utf-8")
    assert not printed_here(intake.read_text(TRACEBACK.format(path=script)))


def test_a_missing_or_relative_file_does_not(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not printed_here(intake.read_text(TRACEBACK.format(path=script.with_name("other.py"))))
    monkeypatch.chdir(script.parent)
    assert not printed_here(intake.read_text(TRACEBACK.format(path="train.py")))


def test_a_device_or_a_folder_in_the_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    assert not printed_here(intake.read_text(TRACEBACK.format(path="/dev/zero")))
    assert not printed_here(intake.read_text(TRACEBACK.format(path=tmp_path)))
