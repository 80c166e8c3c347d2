"""The same failure as it comes through other hands: indented, fenced, quoted, prefixed, coloured, wrapped.

Each form is a way in which a log reaches a reader. Fixtures are taken at even steps, so that every family is
there, and told once more in each form; the answer may not change. A few texts mean something else in another
form (one line that becomes a quotation), hence a share and not all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.workbench.fixtures import NONE, Fixture, walk

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHARE = 0.95
EVERY = 31
LONGEST = 20_000  # bytes


def each(form: str) -> Callable[[str], str]:
    """A form that puts something around every line."""
    return lambda text: "\n".join(form.format(line) for line in text.split("\n"))


def stamped(form: str) -> Callable[[str], str]:
    return lambda text: "\n".join(
        form.format(number % 60, line) for number, line in enumerate(text.split("\n"))
    )


def docker(text: str) -> str:
    when = "2025-03-04T10:11:12.123456789Z"
    lines = ({"log": f"{line}\n", "stream": "stderr", "time": when} for line in text.split("\n"))
    return "\n".join(map(json.dumps, lines))


def indented(text: str) -> str:
    inner = each("    {}")(text)
    return f"Hello, my training stops with this, what is wrong?\n\n{inner}\n\nThanks in advance!\n"


def quoted(text: str) -> str:
    inner = each("> {}")(text)
    return f"Dear support, could you please have a look at this:\n\n{inner}\n\nBest regards\nKim\n"


def fenced(text: str) -> str:
    above, below = "Hi all, since yesterday I get the error below.", "Any help is welcome."
    return f"{above}\n\n```\n{text.rstrip()}\n```\n\n{below}\n"


def issue(text: str) -> str:
    return (
        "### Bug description\n\nThe run fails, see the log.\n\n### Error messages and logs\n\n```shell\n"
        f"{text.rstrip()}\n```\n\n### Environment\n\n_No response_\n"
    )


def after_steps(text: str) -> str:
    steps = "\n".join(f"[{n:03}] step {n} loss {2.0 - n * 0.01:.4f} lr 1e-4" for n in range(12))
    return f"{steps}\n{text}"


FORMS: dict[str, Callable[[str], str]] = {
    "indented": indented,
    "quoted": quoted,
    "fenced": fenced,
    "issue": issue,
    "after steps": after_steps,
    "kubectl": stamped("2025-03-04T10:11:{:02d}.123456Z stdout F {}"),
    "actions": stamped("2025-03-04T10:11:{:02d}.1234567Z {}"),
    "compose": each("worker-0 | {}"),
    "platform": each("app[web.1]: {}"),
    "coloured": each("\x1b[31m{}\x1b[0m"),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "docker": docker,
}


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load()


@pytest.fixture(scope="module")
def told() -> list[tuple[Fixture, str]]:
    """Every 31st fixture with a cause, and its text."""
    causes = [one for one in walk(str(FIXTURES)) if one.rule != NONE and one.group != "near"]
    texts = ((one, Path(one.input).read_bytes()) for one in causes[::EVERY])
    return [(one, text.decode("utf-8", "replace")) for one, text in texts if len(text) <= LONGEST]


@pytest.mark.parametrize("form", FORMS)
def test_the_answer_stays(form: str, told: list[tuple[Fixture, str]], rules: RuleSet) -> None:
    missed = []
    for fixture, text in told:
        report = diagnose(read_text(FORMS[form](text)), FactBook(None), rules)
        answer = report.diagnoses[0].rule if report.diagnoses else report.outcome.value
        if answer not in (fixture.rule, *fixture.also):
            missed.append((fixture.name, answer))
    assert len(told) >= 80
    assert len(missed) <= (1 - SHARE) * len(told), missed
