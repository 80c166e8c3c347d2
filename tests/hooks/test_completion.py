"""Completion, in the shells that are here and as they ask for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchdoctor.cli.main import main

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
def test_other_shells(shell: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert word in capsys.readouterr().out
    if shutil.which(shell):
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
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
