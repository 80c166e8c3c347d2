"""What changed between two machines: order, noise, lists, and what is no difference."""

from __future__ import annotations

from torchdoctor.model import Fact, FactValue, Reason
from torchdoctor.probes.difference import compare
from torchdoctor.probes.fact_table import lines, show, size, subject


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
