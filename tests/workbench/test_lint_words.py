"""Advice is short, an action first, and its commands run as they are printed."""

from __future__ import annotations

import subprocess

import pytest

from torchdoctor import catalog
from torchdoctor.catalog.rule import ConditionalFix, RuleText
from torchdoctor.model import Fix
from torchdoctor.workbench.lint_words import fault_of, problems


def words(
    do: str = "Set the limit.", run: str | None = None, why: str = "w " * 20, note: str | None = None
) -> RuleText:
    return RuleText(why, (ConditionalFix(Fix(do, run), ()),), None, (), decide_note=note)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (words(why="w " * 61), "why has 61 words, more than 60"),
        (words(do="Set " + "x" * 157), "the first fix has 161 characters"),
        (words(do="If it is large, split it."), "no action on a thing"),
        (words(do="{match.one} is not {match.other}: convert."), "no action on a thing"),
        (words(do="See which library is taken."), "no action on a thing"),
        (words(run="torchrun … train.py"), "run of fix 1 holds prose or a gap"),
        (words(note="after the step"), "decide_note is a sentence"),
    ],
)
def test_a_fault_of_the_advice_is_told(text: RuleText, complaint: str) -> None:
    assert [line for line in problems(text) if complaint in line]


def test_good_advice_has_no_fault() -> None:
    assert list(problems(words(run="A=1 python train.py", note="After the step."))) == []


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("print(labels.max()) before the loss", "is no Python"),
        ("python -c 'import torch; print(torch.'", "is no Python"),
        ("echo 'open", "is no shell command"),
        ("docker run --shm-size=16g ...", "prose"),
        ("py-spy dump --pid 7 # on every rank", "prose"),
        ("look which of the lines repeat in it", "prose"),
        ("pip install torch=>2.0", "is no requirement"),
        ('python -c "import torch; print(torch.cuda.memory_summary())"', "cannot show"),
    ],
)
def test_what_is_no_command(command: str, complaint: str) -> None:
    assert complaint in (fault_of(command) or "")


@pytest.mark.parametrize(
    "command",
    [
        "print(labels.min().item())",
        "export A=$(python -c 'import torch; print(torch.version.cuda)')",
        'pip install "numpy>={match.maker},<2" && pip check',
        "{install.torch}",
        "pip install torch=={match.release}+{match.tag} --index-url https://x/{match.tag}",
    ],
)
def test_what_is_one(command: str) -> None:
    assert fault_of(command) is None


def test_every_command_of_the_catalog_is_one_for_bash() -> None:
    rules = catalog.load()
    commands = [
        command
        for rule in rules.ids()
        for command in (rules.text(rule).decide_with, *(item.fix.run for item in rules.text(rule).fixes))
        if command and not command.lstrip().startswith(("print(", "torch.", "import ", "assert "))
    ]
    assert len(commands) > 300
    script = "\n".join(
        f"f{number}() {{\n{one.replace('{', '').replace('}', '')}\n}}" for number, one in enumerate(commands)
    )
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
