"""Every fact has one probe, every probe tells what it promises, and starting up stays cheap."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from torchdoctor.model import Fact, State
from torchdoctor.probes import FACTS
from torchdoctor.probes.names import CATALOGUE, MODULES
from torchdoctor.probes.probe import Cost, Probe
from torchdoctor.probes.recording import ReplayMachine
from torchdoctor.probes.source import ProbeSource

PROBED = sorted(set(CATALOGUE) - {"claims"})
TYPES = {"text", "int", "float", "bool", "list"}


def probes(module: str) -> tuple[Probe, ...]:
    found: tuple[Probe, ...] = import_module(f"torchdoctor.probes.{module}").PROBES
    return found


@pytest.mark.parametrize("module", PROBED)
def test_every_fact_has_one_probe(module: str) -> None:
    names = [name for probe in probes(module) for name in probe.names]
    assert sorted(names) == sorted(CATALOGUE[module])


@pytest.mark.parametrize("module", PROBED)
def test_probes_state_what_they_need_and_cost(module: str) -> None:
    for probe in probes(module):
        assert isinstance(probe.cost, Cost)
        assert set(probe.needs) <= set(FACTS)
        assert (probe.command is not None) == (probe.cost in (Cost.SLOW, Cost.INVASIVE))


@pytest.mark.parametrize("name", sorted(FACTS))
def test_names_and_meanings(name: str) -> None:
    kind, _, meaning = FACTS[name].partition(": ")
    assert kind in TYPES
    assert meaning
    group, _, rest = name.partition(".")
    assert group.islower()
    assert rest
    assert (MODULES[name] == "claims") or not meaning.startswith("claim")


def test_nothing_is_told_twice() -> None:
    assert sum(len(table) for table in CATALOGUE.values()) == len(FACTS)


def test_a_machine_without_memory_gives_no_fact() -> None:
    """Not one probe may take "not recorded" for "not there"."""
    source = ProbeSource(ReplayMachine())
    wrong = [fact for fact in source.all() if fact.state is not State.UNKNOWN]
    assert wrong == []
    assert source.faults == []


def test_values_are_of_the_type_the_catalogue_says() -> None:
    right = {"text": str, "int": int, "float": (int, float), "bool": bool, "list": tuple}
    source = ProbeSource(python=sys.executable)
    try:
        facts: tuple[Fact, ...] = tuple(
            source.fetch(name) for name in FACTS if not name.startswith(("torch.import", "torch.cuda_"))
        )
    finally:
        source.close()
    for fact in facts:
        if fact.state is State.KNOWN:
            kind = FACTS[fact.name].partition(":")[0]
            assert isinstance(fact.value, right[kind]), fact
            assert kind not in ("int", "float") or not isinstance(fact.value, bool), fact
    assert source.faults == []


def test_the_catalogue_is_cheap_to_import() -> None:
    program = "import sys, torchdoctor.probes; print(sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    for heavy in (
        "subprocess",
        "json",
        "torchdoctor.probes.source",
        "torchdoctor.probes.machine",
        "tempfile",
    ):
        assert f"'{heavy}'" not in loaded, heavy


def test_unknown_names() -> None:
    source = ProbeSource(ReplayMachine())
    fact = source.fetch("gpu.flux")
    assert fact.state is State.UNKNOWN
    assert "no such fact" in fact.detail


def test_a_fault_of_a_probe_is_kept_and_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchdoctor.probes import limits

    def broken(context: object) -> list[Fact]:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(limits, "PROBES", (Probe(("limits.nofile",), Cost.FREE, broken),))
    source = ProbeSource(ReplayMachine({("variable", "RANK"): "3"}))
    fact = source.fetch("limits.nofile")
    assert fact.state is State.UNKNOWN
    assert "a fault of torchdoctor" in fact.detail
    assert "ZeroDivisionError: ours" in source.faults[0]
    assert source.fetch("env.RANK").value == "3"


def test_a_dead_disk_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading
    import time

    from torchdoctor.model import Reason
    from torchdoctor.probes import disk
    from torchdoctor.probes.live import LiveMachine
    from torchdoctor.probes.probe import Limits

    release = threading.Event()

    def hanging(context: object) -> list[Fact]:
        release.wait(30)
        return []

    monkeypatch.setattr(disk, "PROBES", (Probe(("disk.tmp_free_bytes",), Cost.CHEAP, hanging),))
    source = ProbeSource(LiveMachine(), limits=Limits(files_s=0.2))
    begun = time.monotonic()
    fact = source.fetch("disk.tmp_free_bytes")
    release.set()
    assert time.monotonic() - begun < 5
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.TIMED_OUT)


ROOT = __import__("pathlib").Path(__file__).parents[2]
