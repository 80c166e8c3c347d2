"""What questions and logs show of installs and builds: pip's remarks, locks in the folder of extensions."""

from __future__ import annotations

from importlib import import_module

import pytest

from torchdoctor.extract.readings.passage import Passage
from torchdoctor.intake import read_text
from torchdoctor.model import FactValue

REMARK = "vllm 0.6.3 requires torch==2.4.0, but you have torch 2.2.0 which is incompatible.\n"
LOCK = "/home/dev/.cache/torch_extensions/py39_cu118/raster/lock"
EXISTS = f"Lock file exists in build directory: '{LOCK}'\n"
ROOT = "Using /home/dev/.cache/torch_extensions/py39_cu118 as PyTorch extensions root...\n"


def facts(namespace: str, text: str) -> dict[str, FactValue]:
    module = import_module(f"torchdoctor.extract.readings.{namespace}")
    found = list(module.read(Passage(read_text(text, "question.txt"))))
    assert {fact.name for fact in found} <= set(module.FACTS)
    return {fact.name.partition(".")[2]: fact.value for fact in found}


def test_a_remark_names_the_package_and_both_versions() -> None:
    assert facts("pip_remark", REMARK) == {
        "package": "vllm",
        "release": "0.6.3",
        "wanted": "==2.4.0",
        "have": "2.2.0",
        "open": True,
    }


def test_older_words_of_pip() -> None:
    text = (
        "ERROR: fastai 2.3 has requirement torch<1.8,>=1.7.0, but you'll have torch 1.9.0 "
        "which is incompatible."
    )
    found = facts("pip_remark", text)
    assert (found["package"], found["wanted"], found["have"]) == ("fastai", "<1.8,>=1.7.0", "1.9.0")


@pytest.mark.parametrize(
    ("text", "left_open"),
    [
        (REMARK + "Successfully installed torch-2.2.0\n", False),
        ("Which one should I keep? I get this:\n\n" + REMARK + "Successfully installed torch-2.2.0\n", True),
        (REMARK + "$ python -c 'import torch; print(torch.__version__)'\n2.2.0\n", False),
        ("pip says\n\n" + REMARK + "\nDespite the error it still works for me.\n", False),
    ],
)
def test_a_remark_counts_where_it_is_the_end_or_asked_about(text: str, left_open: bool) -> None:
    assert ("open" in facts("pip_remark", text)) is left_open


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (EXISTS + ROOT, True),
        ("My script is stuck at this line, I waited an hour:\n\n" + EXISTS, True),
        (EXISTS + ROOT + "Loading extension module raster...\niter 10 loss 0.3\n", False),
        ("If a build hangs, delete the lock file under ~/.cache/torch_extensions.\n", False),
        ("It hung at import. Turned out there was a lock file in ~/.cache/torch_extensions.\n", False),
    ],
)
def test_a_lock_counts_where_somebody_waits_for_it(text: str, waits: bool) -> None:
    found = facts("build_lock", text)
    assert ("waits" in found) is waits
    if waits:
        assert found["path"] == LOCK
