"""The score of labelled cases, and the words that the lint keeps out of rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.rule import ConditionalFix, RuleText
from torchdoctor.model import Fix
from torchdoctor.typed import is_python
from torchdoctor.workbench.evaluate import Evaluation, evaluate
from torchdoctor.workbench.labelled import EvaluationError
from torchdoctor.workbench.lint_words import fault_of, problems
from torchdoctor.workbench.scoreboard import in_words

RULE = """\
id = "test-{severity}"
family = "tensor"
severity = "{severity}"
role = "cause"
title = "The {severity} of the tests"
why = "Invented, so that nothing here depends on a rule of the catalog, and long enough for that to be said."
[[match]]
text = "this line means {severity} number {{number:int}}"
[[fix]]
do = "Do without it."
"""
FATAL = "RuntimeError: this line means fatal number 3\n"
WARNS = "epoch 1\nUserWarning: this line means warning number 3\nepoch 2 loss 0.4\n"
STRANGE = (
    'Traceback (most recent call last):\n  File "/home/u/train.py", line 41, in <module>\n    step()\n'
    "ZorkError: the frobnicator is out of phase\n"
)
HEALTHY = "epoch 1 loss 0.5\nepoch 2 loss 0.4\nTraining finished.\n"

CASES = [
    # name, cause, also, text
    ("ag-right.txt", "test-fatal", "", FATAL),
    ("ag-tick.txt", "test-fatal", "", HEALTHY),
    ("ag-missed.txt", "test-fatal", "", STRANGE),
    ("ag-either.txt", "test-fatal", "unrecognised", STRANGE),
    ("fr-strange.txt", "unrecognised", "", STRANGE),
    ("fr-ticked.txt", "unrecognised", "", HEALTHY),
    ("fr-claimed.txt", "unrecognised", "", FATAL),
    ("neg-warned.txt", "none-of-the-above", "", WARNS),
    ("neg-alarm.txt", "none-of-the-above", "", FATAL),
    ("neg-doubted.txt", "none-of-the-above", "", STRANGE),
    ("neg-quiet.txt", "none-of-the-above", "", HEALTHY),
    ("x-later.txt", "test-not-yet", "", HEALTHY),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = ["case\tcause\talso"]
    for name, cause, also, text in CASES:
        (tmp_path / name).write_text(text, encoding="utf-8")
        rows.append(f"{name}\t{cause}\t{also}")
    (tmp_path / "labels.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "rules" / "tensor").mkdir(parents=True)
    for severity in ("fatal", "warning"):
        text = RULE.format(severity=severity)
        (tmp_path / "rules" / "tensor" / f"test-{severity}.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rules(folder: Path) -> RuleSet:
    return catalog.load(extra=[str(folder / "rules")])


@pytest.fixture
def result(folder: Path, rules: RuleSet) -> Evaluation:
    return evaluate(str(folder), rules)


def test_only_a_fatal_diagnosis_alarms(result: Evaluation) -> None:
    assert result.as_data()["false_positives"] == ["neg-alarm.txt"]
    warned = next(item for item in result.results if item.case.name == "neg-warned.txt")
    assert [item.rule for item in warned.got] == ["test-warning"]


def test_unrecognised_is_judged_by_the_outcome(result: Evaluation) -> None:
    assert result.as_data()["unrecognised"] == {"cases": 3, "right": 1}
    assert "fr-claimed.txt" in result.as_data()["wrong_and_confirmed"]


def test_unrecognised_may_be_accepted_beside_a_rule(result: Evaluation) -> None:
    assert (result.as_data()["with_rule"], result.as_data()["top1"]) == (4, 2)


def test_a_failure_called_none_is_a_tick_also_without_a_rule(result: Evaluation) -> None:
    assert result.as_data()["ticks"] == ["ag-tick.txt", "fr-ticked.txt", "x-later.txt"]
    assert {"ag-tick.txt", "fr-ticked.txt", "x-later.txt"} < {item.case.id for item in result.misses}


def test_doubt_of_a_healthy_input_is_counted_and_no_alarm(result: Evaluation) -> None:
    assert result.as_data()["doubted"] == ["neg-doubted.txt"]
    assert "neg-doubted.txt" not in [item.case.id for item in result.misses]


def test_a_label_that_becomes_a_rule_counts_from_then_on(folder: Path) -> None:
    text = RULE.format(severity="not-yet").replace('severity = "not-yet"', 'severity = "fatal"')
    (folder / "rules" / "tensor" / "test-not-yet.toml").write_text(text, encoding="utf-8")
    (folder / "x-later.txt").write_text("RuntimeError: this line means not-yet number 3\n", encoding="utf-8")
    data = evaluate(str(folder), catalog.load(extra=[str(folder / "rules")])).as_data()
    assert data["without_rule"]["cases"] == 0
    assert (data["with_rule"], data["top1"]) == (5, 3)


def test_a_special_case_of_the_label_is_right_and_counted_apart(folder: Path) -> None:
    text = RULE.format(severity="later").replace('severity = "later"', 'severity = "fatal"')
    special = folder / "rules" / "tensor" / "test-later.toml"
    special.write_text(text, encoding="utf-8")
    (folder / "x-later.txt").write_text("RuntimeError: this line means later number 3\n", encoding="utf-8")
    (folder / "labels.tsv").write_text("case\tcause\talso\nx-later.txt\ttest-fatal\t\n")
    apart = evaluate(str(folder), catalog.load(extra=[str(folder / "rules")])).as_data()
    assert (apart["top1"], apart["by_special_case"], apart["wrong_and_confirmed"]) == (0, [], ["x-later.txt"])
    special.write_text(text.replace("\nfamily", '\nrefines = ["test-fatal"]\nfamily', 1), encoding="utf-8")
    refined = evaluate(str(folder), catalog.load(extra=[str(folder / "rules")])).as_data()
    assert (refined["top1"], refined["by_special_case"]) == (1, ["x-later.txt"])
    assert refined["wrong_and_confirmed"] == []


def test_parts_are_told_by_the_beginning_of_the_names(result: Evaluation) -> None:
    parts = result.as_data()["by_part"]
    assert list(parts) == ["ag-", "fr-", "neg-", "x-"]
    assert parts["fr-"] == {
        "cases": 3,
        "with_rule": 0,
        "top1": 0,
        "none_of_the_above": 0,
        "false_positives": 0,
        "unrecognised": 3,
        "unrecognised_right": 1,
        "ticks": 1,
        "doubted": 0,
        "wrong_and_confirmed": 1,
    }
    told = [line.split() for line in in_words(result).splitlines() if line.startswith("  neg-  ")]
    assert told == [["neg-", "4", "0", "/", "0", "-", "1/4", "-", "0", "1", "1"]]


def test_cases_are_chosen_by_patterns_of_their_names(folder: Path, rules: RuleSet) -> None:
    chosen = evaluate(str(folder), rules, ["ag-*", "neg-q*"])
    assert len(chosen.results) == 5
    with pytest.raises(EvaluationError, match=r"no case has a name like zz-\* or y"):
        evaluate(str(folder), rules, ["zz-*", "y"])


@pytest.mark.usefixtures("folder")
def test_the_command_chooses_too(printed: Printed) -> None:
    command = ["rules", "eval", ".", "--rules", "rules", "--only", "ag-*, neg-quiet*", "--format", "json"]
    assert json.loads(printed(command))["cases"] == 5
    assert "no case has a name like zz-*" in printed.errors(["rules", "eval", ".", "--only", "zz-*"], 2)


# Advice is short, an action first, and its commands run as they are printed


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
        if command and not is_python(command)
    ]
    assert len(commands) > 300
    script = "\n".join(
        f"f{number}() {{\n{one.replace('{', '').replace('}', '')}\n}}" for number, one in enumerate(commands)
    )
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.stderr == ""
