"""Each claim: ``claims.cases`` holds facts on which it fails, on which it must not, and cannot be told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_files import table

from torchdoctor.model import Fact, FactValue, Reason, State
from torchdoctor.probes.claims import DERIVED
from torchdoctor.probes.claims_gpu import visible
from torchdoctor.probes.compatibility import (
    audio_of,
    covered_by,
    cuda_of_driver,
    fits,
    is_release,
    parse,
    supports_forward_compatibility,
)
from torchdoctor.probes.names import CATALOGUE, FACTS


def cases() -> Iterator[tuple[str, str, dict[str, Fact]]]:
    """A claim, what it tells, and the facts of the machine: null is absent, what is not there is unknown."""
    for head, lines, _ in table(Path(__file__).with_name("claims.cases")):
        name, told = head.partition("  # ")[0].split(" ", 1)
        facts = {}
        for key, _, text in (line.partition(" = ") for line in lines if line):
            value = values(json.loads(text))
            facts[key] = Fact.absent(key) if value is None else Fact.known(key, value)
        yield name, told, facts


def values(found: Any) -> FactValue:
    return tuple(map(values, found)) if isinstance(found, list) else found


@pytest.mark.parametrize(("name", "told", "facts"), [*cases()])
def test_claims(name: str, told: str, facts: dict[str, Fact]) -> None:
    def ask(wanted: str) -> Fact:
        if wanted in DERIVED and wanted not in facts:
            return DERIVED[wanted].tell(ask)
        return facts[wanted] if wanted in facts else Fact.unknown(wanted, Reason.NOT_ASKED)

    fact = DERIVED[name].tell(ask)
    known = json.dumps(fact.value, ensure_ascii=False)
    assert (known if fact.state is State.KNOWN else fact.state.value) == told


def test_the_table_is_the_catalogue() -> None:
    assert set(DERIVED) == set(CATALOGUE["claims"])
    for name, derived in DERIVED.items():
        assert derived.name == name
        assert set(derived.needs) <= set(FACTS), name


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_nothing_known_gives_no_claim(name: str) -> None:
    fact = DERIVED[name].tell(lambda asked: Fact.unknown(asked, Reason.TIMED_OUT, detail="why"))
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.TIMED_OUT)
    assert fact.detail.startswith("needs ")


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_needs_are_complete(name: str) -> None:
    """What a claim asks for beyond its needs would not be started early, nor be known to the lint."""
    derived = DERIVED[name]
    for sample in (
        None,
        True,
        False,
        "12.4",
        "2.5.1",
        3,
        ("a",),
        ("9.0",),
        ((0, 1, None, "compute"),),
        ("/dev/dxg",),
    ):
        asked: set[str] = set()

        def ask(wanted: str, sample: FactValue = sample, asked: set[str] = asked) -> Fact:
            asked.add(wanted)
            return Fact.absent(wanted) if sample is None else Fact.known(wanted, sample)

        derived.tell(ask)
        assert asked <= set(derived.needs), sample


@pytest.mark.parametrize(
    ("gpu", "supported"),
    [
        ("NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA H100 80GB HBM3", True),
        ("Tesla T4", True),
        ("NVIDIA L40S", True),
        ("NVIDIA A10G", True),
        ("NVIDIA GH200 480GB", True),
        ("NVIDIA GeForce RTX 4090", False),
        ("NVIDIA TITAN V", False),
        ("NVIDIA RTX A6000", None),
        ("NVIDIA RTX 6000 Ada Generation", None),
        ("Quadro RTX 8000", None),
        ("Graphics Device", None),
    ],
)
def test_forward_compatibility_by_model(gpu: str, supported: bool | None) -> None:
    assert supports_forward_compatibility(gpu) is supported


@pytest.mark.parametrize(
    ("capability", "architectures", "how"),
    [
        ("9.0", "sm_80 sm_90", "binary"),
        ("8.6", "sm_80", "binary"),  # later minor version of one generation
        ("8.0", "sm_86", ""),  # never an earlier one
        ("9.0", "sm_80", ""),
        ("12.0", "sm_80 sm_90 compute_90", "ptx"),
        ("12.0", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", ""),
        ("3.7", "sm_50 sm_60 compute_60", ""),
        ("9.0", "sm_90a", "binary"),
        ("9.1", "sm_90a", ""),  # "a" code is for one GPU alone
        ("10.3", "sm_100f", "binary"),
        ("10.3", "sm_100a", ""),
        ("12.1", "sm_120", "binary"),
        ("8.7", "sm_80 sm_86", ""),  # an embedded board
        ("8.9", "sm_87", ""),
        ("8.7", "sm_87", "binary"),
        ("7.5", "gfx90a", ""),
    ],
)
def test_code_for_a_gpu(capability: str, architectures: str, how: str) -> None:
    assert covered_by(capability, tuple(architectures.split())) == how


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        (None, 4),
        ("", 0),
        ("-1", 0),
        ("0", 1),
        ("0,1", 2),
        ("3,2,1,0", 4),
        ("0,4,1", 1),
        ("1,x,2", 1),
        ("NoDevFiles", 0),
        ("GPU-aa", 1),
        ("GPU-aaaa,GPU-bb", 2),
        ("GPU-", 0),
        ("GPU-cc", 0),
        ("MIG-1,MIG-2", 2),
        ("0,0", 0),
        (" 1 , 2 ", 2),
    ],
)
def test_visible_devices(setting: str | None, count: int) -> None:
    assert visible(setting, 4, ("GPU-aaaa", "GPU-bbbb", "GPU-1", "GPU-2")) == count


def test_versions() -> None:
    assert parse("2.6.0a0+ecf.nv25.01") == (2, 6, 0)
    with pytest.raises(ValueError, match="no version"):
        parse("unknown")
    assert [is_release(text) for text in ("2.5.1", "2.5.1+cu124", "2.5.1+rocm6.2", "1.8.0.post2")] == [
        True
    ] * 4
    assert [is_release(text) for text in ("2.6.0a0", "2.7.0.dev1+cu126", "2.5.1+gitabc", "2.5.1rc2")] == [
        False
    ] * 4
    assert cuda_of_driver((550, 54, 14)) == (12, 4)
    assert cuda_of_driver((999,)) == (13, 2)
    assert cuda_of_driver((340, 0)) is None
    assert audio_of((1, 13, 1)) == (0, 13)
    assert audio_of((2, 5, 1)) == (2, 5)
    assert fits(">=2.14", "2.13.0") is False
    assert fits("==2.5.1,!=2.5.2", "2.5.1") is None
