"""Help of every command: there, whole, and with its exit codes where it gives verdicts."""

from __future__ import annotations

import pytest
from command_tree import commands

from torchdoctor.cli.main import cli, main

ALL = [(), *commands(cli)]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_is_whole(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*path, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: torchdoctor {' '.join(path)}".rstrip())
    named = ("[ARGS]...", "[TARGET]...", "FILE...", "[PID]...")
    for usage in named:
        text = text.replace(usage, "")
    assert "..." not in text  # nothing is cut
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "name", ["explain", "check", "facts", "globals", "ddp", "checkpoint", "hang", "selftest", "gate", "lint"]
)
def test_help_tells_the_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0 " in text
    assert "70 a fault of" in text
