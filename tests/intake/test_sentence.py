"""How a message stands in the line that holds it."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.intake.sentence import sayings, shows, stand
from torchdoctor.model import Event, EventKind, Stand

MESSAGE = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)"


def test_a_line_is_taken_apart() -> None:
    first, second = sayings(f'I read "CUDA out of memory" there, but `{MESSAGE}` is mine.')
    assert first == ("I read ", "CUDA out of memory", " there, but ")
    assert second == (" there, but ", MESSAGE, " is mine.")
    assert sayings("nothing is held `here`") == [("nothing is held `here`", "", "")]


SHOWN = {
    "a verb of meeting": f'I get "{MESSAGE}" since the update',
    "words and a colon": f"the job ends with: {MESSAGE}",
    "announced for the next line": "My run stops with the following error:",
    "the other of two": f'I read the FAQ ("CUDA out of memory: lower it"), but it ends with "{MESSAGE}".',
    "Chinese": f"训练时报错 {MESSAGE}",
    "French": f"j'ai l'erreur « {MESSAGE} »",
}
SUPPOSED = {
    "a condition": f'If you see "{MESSAGE}", check the head',
    "explained": f'The message "{MESSAGE}" means that a layer is too wide',
    "the future": f'Jobs will end with "{MESSAGE}" tomorrow',
    "a reader": f'A colleague shows you "{MESSAGE}"',
    "the past": f'Last summer we got "{MESSAGE}"',
    "a commit": f"fix: avoid {MESSAGE}",
}


@pytest.mark.parametrize("name", SHOWN)
def test_words_that_lead_up_to_it(name: str) -> None:
    assert shows(SHOWN[name], personal=True) is True


@pytest.mark.parametrize("name", SUPPOSED)
def test_words_that_suppose_it(name: str) -> None:
    assert shows(SUPPOSED[name], personal=True) is None


def _stand(text: str, *, quoted: bool = False, log: bool = True, level: str | None = None) -> Stand:
    event = Event(0, EventKind.LOG, text, "a.txt", 1, 1, quoted=quoted, told=quoted, level=level)
    start = text.index("mat1 and mat2")
    return stand(event, text, start, text.index("multiplied") + 10, log=log)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (MESSAGE, Stand.ITSELF),
        (f"worker 3: {MESSAGE}", Stand.ITSELF),
        (f'this is what the tests on "{MESSAGE}"', Stand.NAMED),
        (f'[ML-311] wrong width: "{MESSAGE}" with small. Merged in !204', Stand.NAMED),
        ("the words mat1 and mat2 shapes cannot be multiplied are printed when it is so.", Stand.TOLD),
        ("see mat1 and mat2 shapes cannot be multiplied, and what it wants of you.", Stand.TOLD),
    ],
)
def test_how_it_stands(text: str, how: Stand) -> None:
    assert _stand(text) is how


def test_a_record_of_a_program_is_the_message_itself() -> None:
    assert _stand(f'this is what the tests on "{MESSAGE}"', level="ERROR") is Stand.ITSELF


def test_of_what_somebody_tells_only_what_he_copied_counts() -> None:
    assert _stand(f"> {MESSAGE}", quoted=True) is Stand.ITSELF
    assert _stand(f"now it says {MESSAGE}", quoted=True) is Stand.ITSELF
    assert _stand(f'we should not raise "{MESSAGE}"', quoted=True) is Stand.NAMED


@pytest.mark.parametrize(
    "unit", ['"', '` "', "a: ", "Error: ", "if you ", ", ", "\u300c", "AError: ", "means "]
)
def test_hostile_lines_take_no_time(unit: str) -> None:
    line = unit * (20_000 // len(unit))
    shows("the tables are read", personal=True)
    event = Event(0, EventKind.LOG, line, "a.txt", 1, 1)
    bounded(0.05, lambda: shows(line, personal=True))
    bounded(0.05, lambda: stand(event, line, len(line) - 10, len(line), log=True))
