"""Fixes say the numbers and names of the message, each read out of a fixture as a user would send it."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_files import catalogued

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.engine.wording import duration
from torchdoctor.model import Diagnosis, Fix
from torchdoctor.workbench.case import transcript

HERE = Path(__file__).parent
# (kind, case, words): "says" stands in a fix, "runs" in a command, "never" is advice that a value rules out,
# "undecided" a command that decides other cases of the rule
ROWS = [line.split("\t") for line in (HERE / "fix_values.tsv").read_text("utf-8").splitlines()]
# two cases of each rule in whose fixtures a value makes another fix the first
FIRST = [line.split("\t") for line in (HERE / "first_fix.tsv").read_text("utf-8").splitlines()]


def of(kind: str) -> list[tuple[str, str]]:
    return [(case, words) for one, case, words in ROWS if one == kind]


def _diagnosis(case: str, rules: RuleSet) -> Diagnosis:
    report = diagnose(transcript(catalogued()[case]), FactBook(None), rules)
    found = [diagnosis for diagnosis in report.diagnoses if diagnosis.rule == case.partition("/")[0]]
    assert found, f"{case} is not diagnosed as its own rule"
    return found[0]


def _fixes(case: str, rules: RuleSet) -> tuple[Fix, ...]:
    return _diagnosis(case, rules).fixes


@pytest.mark.parametrize(("case", "sentence"), of("says"))
def test_a_fix_says_the_values_of_the_message(case: str, sentence: str, rules: RuleSet) -> None:
    assert [fix.do for fix in _fixes(case, rules) if sentence in fix.do], [
        fix.do for fix in _fixes(case, rules)
    ]


def test_what_runs_code_of_the_file_stands_last_and_says_so(rules: RuleSet) -> None:
    fixes = _fixes("checkpoint-weights-only/ag-061", rules)
    risks = ["weights_only=False" in fix.do or "NO_WEIGHTS_ONLY" in (fix.run or "") for fix in fixes]
    assert risks == sorted(risks)
    assert any(risks)
    assert [fix.risk == "runs-code" for fix in fixes] == risks


@pytest.mark.parametrize(("case", "start"), FIRST)
def test_a_value_chooses_the_first_fix(case: str, start: str, rules: RuleSet) -> None:
    assert _fixes(case, rules)[0].do.startswith(start)


@pytest.mark.parametrize(("case", "command"), of("runs"))
def test_a_command_holds_the_values_of_the_message(case: str, command: str, rules: RuleSet) -> None:
    assert any(command in (fix.run or "") for fix in _fixes(case, rules))


@pytest.mark.parametrize(("case", "words"), of("never"))
def test_advice_that_a_value_rules_out_is_not_shown(case: str, words: str, rules: RuleSet) -> None:
    assert not [fix for fix in _fixes(case, rules) if words in fix.do or words in (fix.run or "")]


@pytest.mark.parametrize(("case", "words"), of("undecided"))
def test_a_command_that_decides_nothing_here_is_not_shown(case: str, words: str, rules: RuleSet) -> None:
    found = _diagnosis(case, rules)
    assert words in (rules.text(found.rule).decide_with or "")
    assert found.decide_with is None
    assert found.decide_note is None


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(900, "900 ms"), (60_000, "60 s"), (600_000, "10 min"), (1_800_000, "30 min"), (9_000_000, "2.5 h")],
)
def test_durations(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


@pytest.mark.parametrize(
    ("case", "fact", "line"),
    [
        ("cuda-oom-absurd-request/set24c-001", "oom.absurd", 27),
        ("cuda-library-shadowed/env-087", "dlopen.kind", 7),
    ],
)
def test_a_value_of_the_message_is_cited_by_its_line(case: str, fact: str, line: int, rules: RuleSet) -> None:
    report = diagnose(transcript(catalogued()[case]), FactBook(None), rules)
    assert {one.line for one in report.diagnoses[0].evidence if one.fact == fact} == {line}
