"""The skill, the server without its extra, completion, and `torchdoctor hook`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from command_tree import commands
from printed import Printed

from torchdoctor.cli.main import cli, main
from torchdoctor.hooks.answers import LIMIT, fitted


def test_the_skill_is_there_and_names_commands_that_exist(printed: Printed) -> None:
    file = Path(printed(["skill"]).strip())
    text = file.read_text(encoding="utf-8")
    head = re.match(r"---\nname: ([a-z-]{1,64})\ndescription: (.{1,1024})\n---\n", text)
    assert head[1] == file.parent.name
    known = {path[0]: cli.get_command(click.Context(cli), path[0]) for path in commands(cli)}
    called = re.findall(r"`torchdoctor (\w+)([^`]*)`", text)
    assert {"explain", "check", "hang", "lint", "rules"} <= {name for name, _ in called}
    for name, rest in called:
        command = known[name]
        if isinstance(command, click.Group):
            command = command.commands[rest.split()[0]]
        options = {option for one in command.params for option in one.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options
    for word in ("`standing`", "could not be determined", "`risk` is `safe`", "without asking"):
        assert word in text


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install 'torchdoctor[mcp]'" in printed.errors(["mcp"], 2)


@pytest.mark.parametrize("number", [1, 100, 100_000])
def test_any_answer_fits(number: int) -> None:
    row = {"text": "ü" * number, "rows": [{"id": "x" * number, "n": number}] * number}
    text = fitted({"outcome": "diagnosed", "diagnoses": [row] * 20}, "torchdoctor explain")
    assert len(text.encode()) <= LIMIT
    data = json.loads(text)
    assert data["outcome"] == "diagnosed"
    assert data["cut"] == (number > 1)
    assert data["rest"] == "torchdoctor explain"


# Completion, in the shells that are here and as they ask for it
BIN = Path(sys.executable).parent

ASK = """
export PATH={bin}:$PATH
eval "$(torchdoctor completion bash)"
complete -p torchdoctor
COMP_WORDS=(torchdoctor rules show nccl-t) COMP_CWORD=3
_torchdoctor_completion torchdoctor
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_ids() -> None:
    ended = subprocess.run(
        ["bash", "--norc", "-c", ASK.format(bin=BIN)], capture_output=True, text=True, timeout=60
    )
    head, *words = ended.stdout.split("\n")
    assert head.endswith("_torchdoctor_completion torchdoctor")
    assert "nccl-timeout" in words
    assert all(word.startswith("nccl-t") for word in words if word)


@pytest.mark.parametrize(
    ("shell", "word"), [("zsh", "#compdef torchdoctor"), ("fish", "complete --no-files")]
)
def test_other_shells(shell: str, word: str, printed: Printed) -> None:
    assert word in printed(["completion", shell])
    if shutil.which(shell):
        script = printed(["completion", shell])
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("torchdoctor rules show zero-grad-m", "zero-grad-missing"),  # a pitfall of lint
        ("torchdoctor rules case matmul-s", "matmul-shape"),
        ("torchdoctor expl", "explain"),
    ],
)
def test_what_is_completed(words: str, expected: str) -> None:
    parts = words.split()
    environment = {
        "_TORCHDOCTOR_COMPLETE": "fish_complete", "COMP_WORDS": " ".join(parts[:-1]), "COMP_CWORD": parts[-1],
    }  # fmt: skip
    ended = subprocess.run([BIN / "torchdoctor"], capture_output=True, text=True, timeout=60, env=environment)
    assert expected in [line.split("\t")[0].partition(",")[2] for line in ended.stdout.splitlines()]


# ``torchdoctor hook``, in an environment of its own
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site(python: Path) -> Path:
    return next(python.parents[1].glob("lib/python3*/site-packages"))


def test_from_refusal_to_a_note_and_back(python: Path, printed: Printed) -> None:
    assert f"{python} -m pip install torchdoctor" in printed.errors(
        ["hook", "enable", "--python", str(python)], 2
    )
    assert list(site(python).glob("*hook*")) == []
    paths = [str(ROOT), *(path for path in sys.path if "site-packages" in path)]
    (site(python) / "_paths.pth").write_text("\n".join(paths), encoding="utf-8")

    file = site(python) / "torchdoctor_hook.pth"
    for verb, answer in (
        ("status", f"disabled: {file} is not there"),
        ("enable", f"enabled: {file}"),
        ("enable", f"enabled: {file}"),
        ("status", f"enabled: {file}"),
    ):
        assert printed(["hook", verb, "--python", str(python)]).strip() == answer

    def failing(**environment: str) -> str:
        ended = subprocess.run(
            [str(python), "-c", "{}['b']"], capture_output=True, text=True, env={**os.environ, **environment}
        )
        assert ended.returncode == 1
        return ended.stderr

    assert "✗ torchdoctor: " in failing(PYTHONIOENCODING="utf-8")
    assert "torchdoctor:" not in failing(TORCHDOCTOR_HOOK="0")
    (site(python) / "_paths.pth").unlink()  # as when torchdoctor is uninstalled and the file stays
    assert failing() == failing(TORCHDOCTOR_HOOK="0")
    assert main(["hook", "disable", "--python", str(python)]) == 0
    assert main(["hook", "disable", "--python", str(python)]) == 0
    assert not file.exists()


def test_what_is_no_interpreter_is_refused(printed: Printed) -> None:
    assert "/bin/cat does not answer: " in printed.errors(["hook", "status", "--python", "/bin/cat"], 2)
    assert main(["hook", "status", "--python", "/nowhere/python"]) == 2
