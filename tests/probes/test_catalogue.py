"""The catalogue of facts, what is done once in small, and what differs between two machines."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.engine import FactBook
from torchdoctor.engine.deep import with_deep
from torchdoctor.model import Fact, FactValue, Outcome, Reason, Report, State, Verdict
from torchdoctor.probes import FACTS
from torchdoctor.probes.difference import compare
from torchdoctor.probes.fact_table import lines, show, size, subject
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.names import CATALOGUE, MODULES
from torchdoctor.probes.probe import Cost, Limits, Probe
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
    # without what the packages of this environment import at the start of Python
    program = (
        "import sys; bare = {*sys.modules}; import torchdoctor.probes; print(sorted({*sys.modules} - bare))"
    )
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


# ``check --deep``: each thing is done for itself, what it says is a result, and nothing stays behind


TORCH = """
class cuda: is_available = staticmethod(lambda: False)
class device:
    type = "cpu"
    def __init__(self, name): pass
float32 = None
class Values:
    def __mul__(self, other): return self
    def sum(self): return 4032.0
def arange(*a, **k): return Values()
"""


def look(environment: Environment, deep_s: float = 20.0) -> Report:
    source = ProbeSource(LiveMachine(), str(environment.python), limits=Limits(deep_s=deep_s), deep=True)
    try:
        return with_deep(Report(Outcome.NO_FAILURE), FactBook(source))
    finally:
        source.close()
        assert source.faults == []


def test_each_step_is_a_result_of_its_own(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    environment.plant(TORCH, cuda=None)
    (environment.site / "torchvision.py").write_text("import os\nos.abort()\n")
    (environment.site / "torchaudio.py").write_text("import time\ntime.sleep(99)\n")
    (environment.site / "xformers.py").write_text(
        "raise OSError('libcudart.so.12: cannot open shared object '\n'file: No such file or directory')\n"
    )
    report = look(environment, 4.0)
    found = {one.id: (one.verdict, one.observed) for one in report.checks}
    assert found["deep-kernel"][0] is Verdict.PASS
    assert found["deep-torchvision"] == (Verdict.FAIL, "ended by signal 6")
    assert found["deep-xformers"][0] is Verdict.FAIL
    assert found["deep-loader"][0] is Verdict.FAIL  # this torch has none
    (xformers,) = (one for one in report.checks if one.id == "deep-xformers")
    assert "(cuda-library-missing)" in xformers.evidence[-1].text
    assert [item.id for item in report.not_checked] == ["deep-torchaudio"]
    assert "cublas: no GPU that torch can use" in report.notes
    assert "inductor: torch before 2.0 has no torch.compile" in report.notes
    assert report.outcome is Outcome.DIAGNOSED
    assert os.listdir(temporary) == []


def test_without_torch_nothing_is_green(environment: Environment) -> None:
    report = look(environment)
    assert report.checks == ()
    assert [item.id for item in report.not_checked] == ["deep"]
    assert "No module named 'torch'" in report.not_checked[0].reason


def test_only_when_asked(environment: Environment) -> None:
    source = ProbeSource(LiveMachine(), str(environment.python))
    fact = source.fetch("deep.steps")
    assert (fact.reason, fact.detail) == (Reason.NOT_ASKED, "only with --deep")
    source.close()


# What changed between two machines: order, noise, lists, and what is no difference


def facts(**values: FactValue | Fact) -> tuple[Fact, ...]:
    made = []
    for key, value in values.items():
        name = key.replace("__", ".")
        made.append(
            value
            if isinstance(value, Fact)
            else Fact.absent(name)
            if value is None
            else Fact.known(name, value)
        )
    return tuple(made)


GOOD = facts(
    limits__nofile=65536,
    os__uptime_seconds=1.0,
    env__NCCL_P2P_DISABLE=None,
    driver__version="550.54.15",
    torch__version="2.5.1",
    numpy__version="1.26.4",
    shm__size_bytes=64 << 30,
    gpu__names=("A", "A"),
    memory__available_bytes=7,
    torch__libraries=("/a", "/b"),
    gpu__nvlink_down=None,
)
BAD = facts(
    limits__nofile=1024,
    os__uptime_seconds=9.0,
    env__NCCL_P2P_DISABLE="1",
    driver__version="535.54.03",
    torch__version="2.5.1",
    numpy__version="2.1.0",
    shm__size_bytes=64 << 20,
    gpu__names=("A",),
    memory__available_bytes=8,
    torch__libraries=("/b", "/c"),
    gpu__nvlink_down=False,
)


def test_what_tells_most_comes_first() -> None:
    found = compare(GOOD, BAD)
    assert [change.name for change in found.changes] == [
        "driver.version",
        "gpu.names",
        "numpy.version",
        "env.NCCL_P2P_DISABLE",
        "torch.libraries",
        "shm.size_bytes",
        "limits.nofile",
    ]
    assert {change.name for change in found.noise} == {
        "os.uptime_seconds",
        "memory.available_bytes",
        "gpu.nvlink_down",
    }
    words = {change.name: change.text for change in found.changes}
    assert words["driver.version"] == "550.54.15 → 535.54.03"
    assert words["env.NCCL_P2P_DISABLE"] == "not there → 1"
    assert words["shm.size_bytes"] == "64 GiB → 64 MiB"
    assert words["torch.libraries"] == "- /a  + /c"
    assert words["gpu.names"] == "A, A → A"


def test_a_machine_against_itself() -> None:
    assert compare(GOOD, GOOD).changes == ()
    assert compare(GOOD, GOOD).noise == ()


def test_what_was_not_asked_is_no_difference() -> None:
    one = facts(gpu__count=Fact.unknown("gpu.count", Reason.NOT_ASKED))
    two = facts(gpu__count=2)
    assert compare(one, two).changes == ()
    assert compare(one, two).untold == ("gpu.count",)
    hung = facts(gpu__count=Fact.unknown("gpu.count", Reason.TIMED_OUT))
    assert [change.text for change in compare(two, hung).changes] == ["2 → could not tell (timed-out)"]
    crashed = facts(gpu__count=Fact.unknown("gpu.count", Reason.CRASHED))
    assert compare(hung, crashed).changes == ()


def test_long_lists_are_cut() -> None:
    one, two = facts(torch__libraries=()), facts(torch__libraries=tuple(f"/{at}" for at in range(30)))
    (change,) = compare(one, two).changes
    assert change.text == "+ /0  + /1  + /2  + /3  + /4  + 25 more"


def test_listing() -> None:
    text = "\n".join(
        lines(
            facts(
                driver__version=None,
                gpu__count=0,
                gpu__names=None,
                env__RANK="0",
                env__WORLD_SIZE=None,
                limits__nofile=2**63 - 1,
                torch__import_ok=Fact.unknown("torch.import_ok", Reason.TIMED_OUT, detail="60 s"),
                torch__numpy_ok=True,
                apex__version=None,
                torch__import_stack="a:1 in f\nb:2 in g",
            )
        )
    )
    assert "could not tell: timed-out (60 s)" in text
    assert "unlimited" in text
    assert "a:1 in f | b:2 in g" in text
    assert "WORLD_SIZE" not in text
    assert "apex" not in text
    assert "driver\n" in text  # that there is none is worth a line


def test_values_for_people() -> None:
    assert [size(number) for number in (0, 1023, 1024, 1536, 81559 << 20, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1.5 KiB",
        "79.6 GiB",
        "5 TiB",
    ]
    assert show("a.b", ()) == "none"
    assert show("a.b", (True, None, "x", (1, 2))) == "yes, –, x, 1, 2"
    assert len(show("a.b", ("x" * 300, "y" * 300))) == 400


def test_subject() -> None:
    table = {
        fact.name: fact
        for fact in facts(torch__version="2.5.1", gpu__names=("A", "A", "B"), python__version="3.11.7")
    }
    ask = lambda name: table.get(name, Fact.unknown(name, Reason.CRASHED))  # noqa: E731
    assert subject(ask) == "torch 2.5.1, Python 3.11.7, 2 × A, 1 × B"
