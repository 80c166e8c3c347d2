"""The skill, the server without its extra, and answers that fit."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click
import pytest
from command_tree import commands

from torchdoctor.cli.main import cli, main
from torchdoctor.hooks.answers import LIMIT, fitted


def test_the_skill_is_there_and_names_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    file = Path(capsys.readouterr().out.strip())
    text = file.read_text(encoding="utf-8")
    head = re.match(r"---\nname: ([a-z-]{1,64})\ndescription: (.{1,1024})\n---\n", text)
    assert head is not None
    assert head[1] == file.parent.name
    known = {path[0]: cli.get_command(click.Context(cli), path[0]) for path in commands(cli)}
    called = re.findall(r"`torchdoctor (\w+)([^`]*)`", text)
    assert {"explain", "check", "hang", "lint", "rules"} <= {name for name, _ in called}
    for name, rest in called:
        command = known[name]
        if isinstance(command, click.Group):
            command = command.commands[rest.split()[0]]
        assert command is not None
        options = {option for one in command.params for option in one.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options
    for word in ("`standing`", "could not be determined", "`risk` is `safe`", "without asking"):
        assert word in text


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 2
    assert "pip install 'torchdoctor[mcp]'" in capsys.readouterr().err


@pytest.mark.parametrize("number", [1, 100, 100_000])
def test_any_answer_fits(number: int) -> None:
    row = {"text": "ü" * number, "rows": [{"id": "x" * number, "n": number}] * number}
    text = fitted({"outcome": "diagnosed", "diagnoses": [row] * 20}, "torchdoctor explain")
    assert len(text.encode()) <= LIMIT
    data = json.loads(text)
    assert data["outcome"] == "diagnosed"
    assert data["cut"] == (number > 1)
    assert data["rest"] == "torchdoctor explain"
