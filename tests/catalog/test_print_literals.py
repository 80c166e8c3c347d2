"""The script that makes programs print what no file of theirs holds whole."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchdoctor.workbench import literals

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("torch")
    path = ROOT / "benchmarks" / "print_literals.py"
    spec = importlib.util.spec_from_file_location("print_literals", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_raised_and_warned_of_without_the_source_of_frames(script: ModuleType) -> None:
    call = 'import warnings\nwarnings.warn("one  thing")\nraise ValueError("another")  # a comment'
    assert script.printed(call) == "ValueError: another one thing"
    assert script.printed("1 + 1") == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the system's own words are Linux's")
def test_what_is_recorded_as_printed_is_printed(script: ModuleType) -> None:
    recorded = literals.read_recorded(str(ROOT / "rules"))
    claimed = {literal for literal, where in recorded.items() if where.startswith(literals.PRINTED)}
    assert claimed
    texts = [script.printed(call) for call in script.CALLS.strip().split("\n\n")]
    assert [item for item in claimed if not any(" ".join(item.split()) in text for text in texts)] == []
