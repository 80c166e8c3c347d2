"""Which setting a dying torch speaks of, and whether the environment is to blame."""

from __future__ import annotations

import importlib.util

import pytest
from gate_machines import ROOT

from torchdoctor import catalog
from torchdoctor.engine import last_words

GIVEN = {
    "CUDA_VISIBLE_DEVICES": "0,1",
    "NCCL_DEBUG": "INFO",
    "PYTORCH_ALLOC_CONF": "expandable_segments:True,bogus:1",
    "OMP_NUM_THREADS": "four",
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("libgomp: Invalid value for environment variable OMP_NUM_THREADS", ("OMP_NUM_THREADS",)),
        ("Unrecognized key 'bogus' in Accelerator allocator config.", ("PYTORCH_ALLOC_CONF",)),
        ("expected an INFO or a True", ()),  # words of half of all settings
        ("cannot open shared object file", ()),
    ],
)
def test_the_variable_is_the_one_that_is_named_or_whose_value_is_quoted(
    text: str, names: tuple[str, ...]
) -> None:
    assert last_words.quoted(text, GIVEN) == names


@pytest.mark.parametrize(
    "words",
    [
        "terminate called after throwing an instance of 'c10::ValueError'\n"
        "  what():  Unrecognized key 'bogus' in Accelerator allocator config.\n",
        "ValueError: Unrecognized key 'bogus' in CUDA allocator config.\n",
    ],
)
def test_what_a_rule_knows_gets_its_title_and_the_variable_that_is_set(words: str) -> None:
    found = last_words.cause(words, GIVEN)
    assert found is not None
    assert found.rule == "allocator-option-invalid"
    assert found.variables == ("PYTORCH_ALLOC_CONF",)
    assert "bogus" in found.line
    assert found.of_environment


def test_a_fault_of_the_gpu_is_not_the_environments() -> None:
    found = last_words.cause("RuntimeError: CUDA error: uncorrectable ECC error encountered\n", GIVEN)
    assert found is not None
    assert found.rule == "ecc-uncorrectable"
    assert not found.of_environment


@pytest.mark.parametrize("words", ["", "\n", "a warning that nobody minds\n"])
def test_words_that_no_rule_knows_have_no_cause(words: str) -> None:
    assert last_words.cause(words, GIVEN) is None


def test_the_causes_that_lie_in_packages_are_rules() -> None:
    assert set(catalog.load().ids()) >= last_words._PACKAGES


def test_the_jobs_interpreter_tells_the_same_settings() -> None:
    path = ROOT / "torchdoctor" / "gate" / "child" / "environment.py"
    spec = importlib.util.spec_from_file_location("environment_settings", path)
    assert spec is not None
    assert spec.loader is not None
    child = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(child)
    assert child.SETTINGS == last_words._SETTINGS
    assert child.SHOWN == last_words._SHOWN
    assert last_words.settings({"PYTORCH_ALLOC_CONF": "x" * 9999, "HOME": "/home/u"}) == {
        "PYTORCH_ALLOC_CONF": "x" * child.SHOWN
    }
