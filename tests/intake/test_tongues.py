"""The tables of words: each that is asked for is there, and none is there that nobody asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchdoctor.intake import tongues
from torchdoctor.intake.voice import Text

INTAKE = Path(tongues.__file__).parent
TABLES = dict(re.findall(r"(?m)^\[([\w-]+): (\w+)\]$", (INTAKE / "tongues.txt").read_text(encoding="utf-8")))
MODULES = ("voice", "sentence", "published")
READ = {"rules": tongues.rules, "words": tongues.words, "phrases": tongues.phrases}


@pytest.mark.parametrize("name", TABLES)
def test_each_table_can_be_read_and_is_used(name: str) -> None:
    found = READ[TABLES[name]](name)
    assert found
    assert "" not in found
    sources = "".join((INTAKE / f"{module}.py").read_text(encoding="utf-8") for module in MODULES)
    within = (INTAKE / "tongues.txt").read_text(encoding="utf-8")
    assert f'"{name}"' in sources or f"${name}" in within


def test_what_is_asked_for_is_there() -> None:
    for module in MODULES:
        source = (INTAKE / f"{module}.py").read_text(encoding="utf-8")
        for kind, name in re.findall(r'tongues\.(\w+)\("([\w-]+)"\)', source):
            assert TABLES.get(name) == kind


@pytest.mark.parametrize("name", [name for name, kind in TABLES.items() if kind == "rules"])
def test_each_rule_holds_in_a_sentence_of_its_own_words(name: str) -> None:
    for rule in tongues.rules(name):
        words = [(sorted(group.words - set(group.inside)) or list(group.inside))[0] for group in rule.groups]
        sentence = " ".join(word.replace("_", " ") for word in words)
        assert Text([sentence]).has(name), (name, sentence)


def test_a_word_behind_the_minus_forbids() -> None:
    assert Text(["how do we train it?"]).has("asks")
    assert not Text(["how do we fix it?"]).has("asks")
