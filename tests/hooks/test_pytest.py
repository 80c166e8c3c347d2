"""The pytest plug-in, in pytest itself."""

from __future__ import annotations

import traceback
import xml.etree.ElementTree as ET
from pathlib import Path

import failing_programs as failing
import pytest

from torchdoctor.hooks import explain as explaining

pytest_plugins = ["pytester"]
CASES = """
import failing_programs as failing, pytest

@pytest.mark.parametrize("name", failing.PROGRAMS)
def test_program(name):
    getattr(failing, name)()

def test_own():
    assert 1 == 2

def test_exit():
    pytest.fail("no")

@pytest.fixture
def broken():
    failing.label_range()

def test_fixture(broken): pass

def test_good(): pass
"""
FAILED = len(failing.PROGRAMS) + 2


@pytest.fixture
def tests(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(CASES)
    pytester.syspathinsert(Path(failing.__file__).parent)
    return pytester


def properties(file: Path) -> dict[str, str]:
    found = {}
    for case in ET.parse(file).iter("testcase"):
        for one in case.iter("property"):
            assert one.attrib["name"] == "torchdoctor"
            assert case.attrib["name"] not in found
            found[case.attrib["name"]] = one.attrib["value"]
    return found


def test_a_known_cause_has_a_section_and_a_property(tests: pytest.Pytester) -> None:
    ended = tests.runpytest_inprocess("--torchdoctor", "--junitxml=r.xml")
    ended.assert_outcomes(failed=FAILED, errors=1, passed=1)
    text = ended.stdout.str()
    rules = {f"test_program[{name}]": rule for name, rule in failing.PROGRAMS.items()}
    rules["test_fixture"] = "cuda-assert-label-range"
    assert properties(tests.path / "r.xml") == rules
    assert text.count("- torchdoctor -") == len(rules)
    for name in failing.PROGRAMS:
        with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it raises
            getattr(failing, name)()
        printed = "".join(traceback.format_exception(caught.value))
        frame = explaining.explain(printed).diagnoses[0].frame
        assert f"--> {frame.file}:{frame.line}, in {frame.function}" in text
    assert "logits is float32 [3, 5] on cpu; labels is int64 [3] on cpu" in text


@pytest.mark.parametrize("key", ["", "torchdoctor = true"])
def test_the_key_turns_it_on(tests: pytest.Pytester, key: str) -> None:
    tests.makeini(f"[pytest]\n{key}")
    ended = tests.runpytest_inprocess("--junitxml=r.xml", "-k", "label_range or test_own")
    ended.assert_outcomes(failed=2)
    assert ("- torchdoctor -" in ended.stdout.str()) == bool(key)


def test_a_fault_of_ours_changes_nothing(tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "of_error", None)
    ended = tests.runpytest_inprocess("--torchdoctor", "--junitxml=r.xml", "-k", "label_range")
    ended.assert_outcomes(failed=1)
    assert properties(tests.path / "r.xml") == {}
