"""The file of weights that a log names, where it lies here: what it says of itself names the very cause."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from torchdoctor.engine.untrusted import may_be_asked, waits_for_mount
from torchdoctor.extract.state_dict import mismatched
from torchdoctor.model import Evidence, Fact, Fix, counted
from torchdoctor.patterns import pattern
from torchdoctor.probes.machine import Command, Outcome
from torchdoctor.probes.spawn import Running
from torchdoctor.records import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Diagnosis, Event, FactValue, Report, Transcript

FAMILY = "checkpoint"
LIMIT_S = 2.0
_PROGRAM = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "checkpoint", "child", "tell_facts.py"
)
_BEFORE = 40  # events before the failure in which the file may be named
_SAID = 3
_FIXES = 3
_SUFFIXES = "pt|pth|bin|ckpt|safetensors|distcp|pkl|tar"
_FILE = rf"(?<![\w.~/-])(?:/|\./)?[\w.@+~-]+(?:/[\w.@+~=-]+)*\.(?:{_SUFFIXES})\b"


def with_checkpoint(report: Report, transcript: Transcript, folder: str, torch: str) -> Report:
    """The report with what the file says that its checkpoint diagnosis is about: facts, evidence, fixes.

    A relative name counts below ``folder``, unless that is "". ``torch``: the version that loads it, or "".
    The file is read in a child, which is ended after two seconds; nothing in it is executed.
    """
    for number, diagnosis in enumerate(report.diagnoses):
        if diagnosis.family != FAMILY:
            continue
        events = _events(diagnosis, transcript)
        for path in _named(events, folder):
            told = _told(path, torch, _wanted(events))
            if told is not None:
                facts, better = _read(path, told, diagnosis)
                diagnoses = (*report.diagnoses[:number], better, *report.diagnoses[number + 1 :])
                note = f"{path} was read in a process of its own; nothing in it was executed"
                return replace(
                    report, diagnoses=diagnoses, facts=(*report.facts, *facts), notes=(*report.notes, note)
                )
    return report


def _events(diagnosis: Diagnosis, transcript: Transcript) -> list[Event]:
    """The event of the evidence, then those before it, the nearest first."""
    places = {(one.file, one.line) for one in diagnosis.evidence if one.line is not None}
    for number in range(len(transcript.events) - 1, -1, -1):
        event = transcript.events[number]
        if any(event.source == file and event.line <= (line or 0) <= event.end_line for file, line in places):
            return [*transcript.events[max(0, number - _BEFORE) : number + 1]][::-1]
    return []


def _named(events: list[Event], folder: str) -> Iterator[str]:
    """Paths that may be files of weights, by their text alone."""
    seen = set()
    for event in events:
        texts = [event.text, *(frame.code for frame in reversed(event.frames) if not frame.package)]
        for text in texts:
            for found in pattern(_FILE).finditer(text[:8000]):
                path = found[0]
                if not path.startswith("/"):
                    if not folder:
                        continue
                    path = os.path.join(folder, path.removeprefix("./"))
                if path not in seen and may_be_asked(path) and not waits_for_mount(path):
                    seen.add(path)
                    yield path


def _wanted(events: list[Event]) -> dict[str, tuple[int, ...]]:
    """The shapes of the model, as the message of load_state_dict tells them."""
    return {name: model for name, _, model in mismatched(events[0].text)} if events else {}


def _told(path: str, torch: str, wanted: dict[str, tuple[int, ...]]) -> Outcome | None:
    if not sys.executable:
        return None
    command = (sys.executable, _PROGRAM, path, torch, json.dumps(wanted))
    outcome = Running(Command("checkpoint", command, LIMIT_S, reports=True)).finish()
    return outcome if outcome.lines else None


def _read(path: str, outcome: Outcome, diagnosis: Diagnosis) -> tuple[list[Fact], Diagnosis]:
    facts: list[Fact] = []
    rows: list[dict[str, Any]] = []
    for line in outcome.lines:
        if isinstance(line.get("name"), str) and "value" in line:
            facts.append(Fact.known(str(line["name"]), _value(line["value"]), path))
        elif "rule" in line:
            rows.append(line)
    # what is said of the same cause, else what makes the file unusable
    same = [row for row in rows if row["rule"] == diagnosis.rule]
    same = same or [row for row in rows if row["severity"] == "fatal"]
    says = [str(words) for row in same for words in row["says"]]
    more = says[_SAID:]
    if more:
        says = [*says[:_SAID], f"and {counted(len(more), 'more finding')}: torchdoctor checkpoint {path}"]
    fixes = [
        Fix(str(do), None if run is None else str(run), str(risk))
        for row in same
        for do, run, risk in row["fixes"]
        if run is not None or row["rule"] != diagnosis.rule  # in words the rule itself says more
    ]
    return facts, replace(
        diagnosis,
        evidence=(*diagnosis.evidence, *(Evidence(f"the file: {words}", path) for words in says)),
        fixes=(*fixes, *diagnosis.fixes)[: max(_FIXES, len(diagnosis.fixes))],
    )


def _value(value: Any) -> FactValue:
    return tuple(map(_value, value)) if isinstance(value, list) else value
