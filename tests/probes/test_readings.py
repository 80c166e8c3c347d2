"""What probes make of readings: ``readings.cases`` holds what a machine answers, and the facts of it.

A case begins with ``=== what it shows``. ``operation subject = JSON`` is an answer, ``missing`` or a reason
in its place that there is none, ``$ program = JSON`` how a program ended. Files and variables that are not
named are not there.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_files import table

from torchdoctor.model import Fact, Reason, State
from torchdoctor.probes.machine import Json, Missing, NotRecorded, Outcome, Unreadable
from torchdoctor.probes.recording import ReplayMachine
from torchdoctor.probes.source import ProbeSource


class Host(ReplayMachine):
    def answer(self, operation: str, subject: str) -> Json:
        try:
            return super().answer(operation, subject)
        except NotRecorded:
            if operation == "variable":
                return None
            if operation in ("file", "status", "folder", "real", "which", "headers", "cache"):
                raise Missing(subject) from None
            raise


def machine(lines: list[str]) -> ProbeSource:
    answers: dict[tuple[str, str], Json | Unreadable] = {}
    programs = {}
    for line in lines:
        head, _, text = line.partition(" = ")
        operation, _, subject = head.partition(" ")
        if operation == "$":
            programs[subject] = Outcome(**json.loads(text))
        elif text == "missing":
            answers[operation, subject] = Missing(subject)
        elif text in set(Reason):
            answers[operation, subject] = Unreadable(subject, Reason(text))
        else:
            answers[operation, subject] = json.loads(text)
    return ProbeSource(Host(answers, programs))


def told(fact: Fact) -> str:
    if fact.state is State.KNOWN:
        return f"{fact.name} = {json.dumps(fact.value, ensure_ascii=False)}"
    return f"{fact.name} {fact.reason.value if fact.reason else 'absent'}"


CASES = table(Path(__file__).with_name("readings.cases"))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_readings(lines: list[str], expected: list[str]) -> None:
    source = machine(lines)
    assert [told(source.fetch(line.split(" ")[0])) for line in expected] == expected
    assert source.faults == []
