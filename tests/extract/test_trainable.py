"""The number of trainable parameters, in the forms in which programs print it."""

from __future__ import annotations

import pytest

from torchdoctor.extract import of_event, trainable
from torchdoctor.model import Event, EventKind, FactValue, Transcript


def count(*texts: str) -> FactValue:
    events = tuple(
        Event(number, EventKind.LOG, text, "run.log", number + 1, number + 1)
        for number, text in enumerate((*texts, "does not require grad"))
    )
    found = list(of_event("trainable", events[-1], Transcript(("run.log",), events)))
    assert {fact.name for fact in found} <= set(trainable.FACTS)
    return found[0].value if found else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("trainable params: 0 || all params: 6,738,415,616 || trainable%: 0.0000", 0),
        ("trainable params: 8,388,608 || all params: 13,024,252,928 || trainable%: 0.0644", 8_388_608),
        ("Trainable params: 1,024", 1024),
        ("11.2 M    Trainable params", 11_200_000),
        ("0         Trainable params", 0),
        ("Trainable params: 1.5 M", 1_500_000),
        ("Non-trainable params: 0", None),
        ("7.0 K     Non-trainable params", None),
        ("all params: 0", None),
    ],
)
def test_forms(text: str, value: FactValue) -> None:
    assert count(text) == value


def test_the_last_count_before_the_error_decides() -> None:
    assert (
        count("trainable params: 99 || all params: 99", "step 1", "trainable params: 0 || all params: 99")
        == 0
    )
