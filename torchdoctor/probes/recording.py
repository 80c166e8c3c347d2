"""A whole machine in a file: saved with its names replaced, replayed elsewhere.

The file holds the facts, for people and for ``facts diff``, and what was read to get them, so that a later
torchdoctor can read it better. A file with facts alone, written by hand, is as good.
"""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Mapping

import torchdoctor
from torchdoctor import json_text
from torchdoctor.model import Fact, FactValue, Reason, State
from torchdoctor.probes import named_file
from torchdoctor.probes.facts_file import FactsFileError, right_kind
from torchdoctor.probes.machine import (
    Command,
    Json,
    Machine,
    Memory,
    Missing,
    NotRecorded,
    Outcome,
    Unreadable,
    as_list,
)
from torchdoctor.probes.names import FACTS
from torchdoctor.probes.operations import OPERATIONS
from torchdoctor.probes.probe import value_of
from torchdoctor.probes.pseudonyms import Pseudonyms
from torchdoctor.probes.source import ProbeSource

SCHEMA = "torchdoctor.machine/1"
_MOST_BYTES = 24 << 20
_TOP = ("schema", "about", "facts", "reads", "programs")
_ABOUT = ("torchdoctor", "recorded", "note")
_FACT = ("state", "value", "reason", "source", "detail")
# whose processes run on this machine now is nobody else's business
PRIVATE = frozenset({"gpu.owners", "gpu.neighbours"})
_OUTCOME = ("exit_code", "signal", "timed_out", "seconds", "lines", "stdout", "stderr", "start_error", "note")


class RecordingError(FactsFileError):
    """A recording that cannot be used: which file, where in it, and what would be right."""


class ReplayMachine(Machine):
    """A machine that only remembers. What was not recorded raises NotRecorded."""

    def __init__(
        self,
        answers: Mapping[tuple[str, str], Json | Unreadable] | None = None,
        programs: Mapping[str, Outcome] | None = None,
    ) -> None:
        self._answers = dict(answers or {})
        self._programs = dict(programs or {})

    def answer(self, operation: str, subject: str) -> Json:
        try:
            found = self._answers[operation, subject]
        except KeyError:
            raise NotRecorded(f"{operation} {subject}") from None
        if isinstance(found, Unreadable):
            raise found
        return found

    def running(self, label: str) -> bool:
        return label in self._programs

    def remembered(self) -> Memory:
        return dict(self._answers), dict(self._programs)

    def finish(self, command: Command) -> Outcome:
        try:
            return self._programs[command.label]
        except KeyError:
            raise NotRecorded(command.label) from None


class RecordedSource(ProbeSource):
    """The facts of a recorded machine: read anew from what was recorded, else as they stand in the file.

    Raises RecordingError for a file that is missing, no JSON, or not of this form.
    """

    def __init__(self, path: str, data: Json = None) -> None:
        """``data`` is the content of the file when it was read already."""
        stated, answers, programs = _Checked(path).read(_load(path) if data is None else data)
        super().__init__(ReplayMachine(answers, programs))
        self.path = path
        self.stated = stated
        # A file without readings is written by hand: what it says of a claim is meant.
        self._by_hand = not answers and not programs

    def fetch(self, name: str) -> Fact:
        if self._by_hand and name in self.stated:
            return self.stated[name]
        fact = super().fetch(name)
        if fact.state is State.UNKNOWN and name in self.stated:
            return self.stated[name]
        return fact


def save(source: ProbeSource, path: str) -> None:
    """Ask for every fact and write the recording. Raises RecordingError when it cannot be written."""
    text = to_text(source, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from error


def to_text(source: ProbeSource, recorded: str) -> str:
    """The recording as JSON, one entry a line, names replaced. ``recorded`` is a time in ISO 8601."""
    facts = source.all()
    answers, programs = source.machine.remembered()
    names = _pseudonyms(source.machine)
    data: dict[str, dict[str, Json]] = {
        "facts": {fact.name: _fact_json(fact, names) for fact in facts if fact.name not in PRIVATE},
    }
    for (operation, subject), found in sorted(answers.items()):
        key = f"{operation} {names.text(subject)}"
        data.setdefault("reads", {})[key] = _answer_json(operation, subject, found, names)
    data["programs"] = {
        label: names.tree(_outcome_json(outcome)) for label, outcome in sorted(programs.items())
    }
    about = {"torchdoctor": torchdoctor.__version__, "recorded": recorded}
    lines = [f'{{"schema": {json.dumps(SCHEMA)},', f' "about": {json.dumps(about)}']
    for block, entries in data.items():
        lines[-1] += ","
        lines.append(f' "{block}": {{')
        lines += [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in entries.items()]
        lines[-1] = lines[-1].rstrip(",")
        lines.append(" }")
    return "\n".join([*lines, "}"]) + "\n"


def _pseudonyms(machine: Machine) -> Pseudonyms:
    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    home = ""
    try:
        system, user = machine.value("system"), machine.value("user")
        home = str(machine.value("home"))
        hosts, users = (str(as_list(system)[3]),), (str(as_list(user)[1]),)
    except (Unreadable, NotRecorded):
        pass
    return Pseudonyms(hosts=hosts, users=users, home=home)


def _fact_json(fact: Fact, names: Pseudonyms) -> Json:
    value = _json_of(fact.value)
    if fact.name.startswith("env."):
        value = names.variable(fact.name[len("env.") :], value)
    elif fact.name == "os.hostname":
        value = names.host(str(value)) if isinstance(value, str) else value
    else:
        value = names.tree(value)
    found: dict[str, Json] = {"state": fact.state.value}
    if fact.state is State.KNOWN:
        found["value"] = value
    if fact.reason is not None:
        found["reason"] = fact.reason.value
    if fact.source:
        found["source"] = names.text(fact.source)
    if fact.detail:
        found["detail"] = names.text(fact.detail)
    return found


def _json_of(value: FactValue) -> Json:
    return [_json_of(item) for item in value] if isinstance(value, tuple) else value


def _answer_json(operation: str, subject: str, found: Json | Unreadable, names: Pseudonyms) -> Json:
    if isinstance(found, Missing):
        return {"missing": True}
    if isinstance(found, Unreadable):
        return {"refused": found.reason.value, "detail": names.text(found.detail)}
    if operation == "variable":
        return {"is": names.variable(subject, found)}
    if (operation, subject) == ("value", "system") and isinstance(found, list):
        return {"is": [*found[:3], names.host(str(found[3]))]}
    if (operation, subject) == ("value", "user") and isinstance(found, list):
        return {"is": [found[0], names.text(str(found[1]))]}
    return {"is": names.tree(found)}


def _outcome_json(outcome: Outcome) -> Json:
    found: dict[str, Json] = {}
    for name in _OUTCOME:
        value = getattr(outcome, name)
        if name == "lines":
            value = [line for line in value if line.get("name") not in PRIVATE]
        # an exit code of 0 is worth writing, though it equals False
        if value is not None and value is not False and value not in ("", []):
            found[name] = value
    return found


def _load(path: str) -> Json:
    try:
        data = json_text.parse(named_file.read(path, _MOST_BYTES))
    except OSError as error:
        raise RecordingError(
            f"{path}: {error.strerror or error}; expected a file of `torchdoctor facts --save`"
        ) from error
    except json_text.JsonRefused as error:
        raise RecordingError(
            f"{path}: no JSON: {error}; expected a file of `torchdoctor facts --save`"
        ) from error
    return data  # type: ignore[return-value]


class _Checked:
    """Reads a recording strictly: every error names the file, the place, and what would be right."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.newer = False

    def read(
        self, data: Json
    ) -> tuple[dict[str, Fact], dict[tuple[str, str], Json | Unreadable], dict[str, Outcome]]:
        top = self._mapping(data, "", _TOP)
        if top.get("schema") != SCHEMA:
            raise self.error("schema", f"{top.get('schema')!r} is not {SCHEMA!r}")
        about = self._mapping(top.get("about", {}), "about", _ABOUT)
        # A newer torchdoctor may tell facts we do not know; a hand-written file may only misspell them.
        self.newer = about.get("torchdoctor") not in (None, torchdoctor.__version__)
        facts = {}
        for name, value in self._mapping(top.get("facts", {}), "facts").items():
            fact = self._fact(name, value)
            if fact is not None:
                facts[name] = fact
        answers = {}
        for key, value in self._mapping(top.get("reads", {}), "reads").items():
            operation, _, subject = key.partition(" ")
            if operation not in OPERATIONS:
                if self.newer:
                    continue
                raise self.unknown("reads", operation, OPERATIONS)
            answers[operation, subject] = self._answer(subject, value, f"reads.{key}")
        programs = {}
        for label, value in self._mapping(top.get("programs", {}), "programs").items():
            programs[label] = self._outcome(value, f"programs.{label}")
        return facts, answers, programs

    def error(self, place: str, text: str) -> RecordingError:
        return RecordingError(f"{self.path}: {place}: {text}" if place else f"{self.path}: {text}")

    def unknown(self, place: str, name: str, known: Mapping[str, object] | tuple[str, ...]) -> RecordingError:
        near = difflib.get_close_matches(name, list(known), 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(list(known)[:8])}"
        return self.error(place, f"unknown name {name!r}; {hint}")

    def _mapping(self, value: Json, place: str, known: tuple[str, ...] = ()) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise self.error(place, f"expected an object, found {_kind(value)}")
        for name in value:
            if known and name not in known:
                raise self.unknown(place or "top", name, known)
        return value

    def _fact(self, name: str, value: Json) -> Fact | None:
        place = f"facts.{name}"
        if name not in FACTS and not name.startswith("env."):
            if self.newer:
                return None
            raise self.unknown("facts", name, FACTS)
        if value is None:
            raise self.error(place, 'null says neither absent nor unknown; write {"state": "absent"}')
        if not isinstance(value, dict):
            return Fact.known(name, self._value(name, value, place), self.path)
        parts = self._mapping(value, place, _FACT)
        state = self._choice(parts.get("state", "known"), f"{place}.state", [one.value for one in State])
        source, detail = str(parts.get("source", self.path)), str(parts.get("detail", ""))
        if state == State.KNOWN.value:
            if parts.get("value") is None:
                raise self.error(place, "a known fact needs a value")
            return Fact.known(name, self._value(name, parts["value"], f"{place}.value"), source, detail)
        if "value" in parts:
            raise self.error(place, f"a fact that is {state} has no value")
        if state == State.ABSENT.value:
            return Fact.absent(name, source, detail)
        reasons = [one.value for one in Reason]
        reason = self._choice(parts.get("reason", Reason.NOT_ASKED.value), f"{place}.reason", reasons)
        return Fact.unknown(name, Reason(reason), source, detail)

    def _choice(self, value: Json, place: str, known: list[str]) -> str:
        if isinstance(value, str) and value in known:
            return value
        raise self.error(place, f"{value!r} is none of {', '.join(known)}")

    def _value(self, name: str, value: Json, place: str) -> FactValue:
        if not right_kind(name, value):
            kind = FACTS.get(name, "text").partition(":")[0]
            raise self.error(place, f"{value!r} is no {kind}: {FACTS.get(name, 'an environment variable')}")
        try:
            return value_of(value)
        except ValueError as error:
            raise self.error(place, str(error)) from error

    def _answer(self, subject: str, value: Json, place: str) -> Json | Unreadable:
        parts = self._mapping(value, place, ("is", "missing", "refused", "detail"))
        if "missing" in parts:
            return Missing(subject)
        if "refused" in parts:
            reason = self._choice(parts["refused"], f"{place}.refused", [one.value for one in Reason])
            return Unreadable(subject, Reason(reason), str(parts.get("detail", "")))
        if "is" not in parts:
            raise self.error(place, 'expected one of "is", "missing", "refused"')
        return parts["is"]

    def _outcome(self, value: Json, place: str) -> Outcome:
        parts = self._mapping(value, place, _OUTCOME)
        lines = parts.get("lines", [])
        if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
            raise self.error(f"{place}.lines", "expected a list of objects")
        numbers = {}
        for name in ("exit_code", "signal", "seconds"):
            number = parts.get(name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
                raise self.error(f"{place}.{name}", f"{number!r} is no number")
            numbers[name] = number
        code, signal, seconds = numbers["exit_code"], numbers["signal"], numbers["seconds"]
        return Outcome(
            exit_code=_whole(code),
            signal=_whole(signal),
            timed_out=parts.get("timed_out") is True,
            seconds=float(seconds or 0.0),
            lines=tuple(line for line in lines if isinstance(line, dict)),
            stdout=str(parts.get("stdout", "")),
            stderr=str(parts.get("stderr", "")),
            start_error=str(parts.get("start_error", "")),
            note=str(parts.get("note", "")),
        )


def _whole(value: float | None) -> int | None:
    return None if value is None or not abs(value) < 1 << 31 else int(value)


def _kind(value: Json) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "null")
