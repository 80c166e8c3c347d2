"""Help of every command: there, whole, and with its exit codes where it gives verdicts."""

from __future__ import annotations

import contextlib
import shlex

import click
import pytest
from command_tree import commands
from printed import Printed

from torchdoctor.cli.examples import EXAMPLES
from torchdoctor.cli.main import cli

ALL = [(), *commands(cli)]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_is_whole(path: tuple[str, ...], printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed([*path, "--help"])
    assert text.startswith(f"Usage: torchdoctor {' '.join(path)}".rstrip())
    named = ("[ARGS]...", "[TARGET]...", "FILE...", "[PID]...")
    for usage in named:
        text = text.replace(usage, "")
    assert "..." not in text  # nothing is cut
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "name", ["explain", "check", "facts", "globals", "ddp", "checkpoint", "hang", "selftest", "gate", "lint"]
)
def test_help_tells_the_exit_codes(name: str, printed: Printed) -> None:
    text = " ".join(printed([name, "--help"]).split())
    assert "Exit codes: 0 " in text
    assert "70 a fault of" in text


def test_alone_it_says_what_to_do_first(printed: Printed) -> None:
    lines = printed([]).splitlines()
    assert [line.split("  ")[1] for line in lines if line.startswith("  ")] == [
        "torchdoctor explain train.log",
        "torchdoctor run -- python train.py",
        "torchdoctor check --python .venv",
    ]


def test_a_group_alone_shows_its_commands_once(printed: Printed) -> None:
    assert printed.errors(["rules"], 2).count("Usage:") == 1


def test_every_help_ends_with_two_examples() -> None:
    assert set(EXAMPLES) == {" ".join(path) for path in commands(cli)}


@pytest.mark.parametrize("path", EXAMPLES)
def test_examples_are_calls_that_the_command_takes(path: str, printed: Printed) -> None:
    shown = printed([*path.split(), "--help"])
    for example in EXAMPLES[path]:
        assert f"\n    torchdoctor {example}\n" in shown
        words = shlex.split(example)
        command: click.Command = cli
        with contextlib.suppress(click.exceptions.Exit):
            while isinstance(command, click.Group) and words and not words[0].startswith("-"):
                found = command.get_command(click.Context(command), words[0])
                assert found is not None
                command, words = found, words[1:]
            command.make_context(path, list(words))
