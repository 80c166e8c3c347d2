"""Facts of a machine out of a file instead of from the machine.

The file is JSON: a recording of a whole machine (see ``recording``), ``{"facts": [...]}`` with entries as in
a report's ``facts``, or ``{"name": value}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchdoctor import json_text
from torchdoctor.model import Fact, FactSource, FactValue, Reason, State
from torchdoctor.probes import named_file
from torchdoctor.probes.facts_file import FactsFileError as FactsFileError
from torchdoctor.probes.facts_file import right_kind
from torchdoctor.probes.names import FACTS

_MAX_BYTES = 24 << 20
_MOST_PROBLEMS = 20


class RecordedFacts:
    """A FactSource that knows what a file says and nothing else."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self._facts = dict(facts)

    def names(self) -> Sequence[str]:
        return tuple(self._facts)

    def fetch(self, name: str) -> Fact:
        return self._facts[name] if name in self._facts else Fact.unknown(name, Reason.NOT_ASKED)


def all_facts(path: str) -> tuple[Fact, ...]:
    """Every fact of a facts file. Raises FactsFileError."""
    source = load_facts(path)
    return tuple(source.fetch(name) for name in source.names())


def load_facts(path: str) -> FactSource:
    """Read a facts file. Raises FactsFileError with every problem in it."""
    try:
        data = named_file.read(path, _MAX_BYTES)
    except OSError as error:
        raise FactsFileError(
            f"{path}: cannot be read: {error.strerror}; expected a file of `torchdoctor facts --save`, or "
            'facts as {"torch.version": "2.9.0"}'
        ) from error
    try:
        content = json_text.parse(data)
    except json_text.JsonRefused as error:
        raise FactsFileError(
            f"{path}: not JSON, expected a file of `torchdoctor facts --save`: {error}"
        ) from error
    if not isinstance(content, dict):
        raise FactsFileError(f'{path}: must be an object, {{"facts": [...]}} or {{"name": value}}')
    if str(content.get("schema", "")).startswith("torchdoctor.machine/"):
        from torchdoctor.probes.recording import RecordedSource

        return RecordedSource(path, content)
    problems: list[str] = []
    facts: dict[str, Fact] = {}
    if "facts" in content:
        rows = content["facts"]
        if not isinstance(rows, list):
            raise FactsFileError(f"{path}: facts must be a list")
        for number, row in enumerate(rows, start=1):
            if len(problems) > _MOST_PROBLEMS:
                break
            fact = _fact(row, f"facts[{number}]", path, problems)
            if fact is not None:
                facts[fact.name] = fact
        # a newer report may hold names that are not known yet; one that holds no other is none of a machine
        if facts and not any(_is_name(name) for name in facts):
            problems.append(f"no fact of a machine in it; {_unknown(next(iter(facts)))}")
    else:
        for name, raw in content.items():
            if len(problems) > _MOST_PROBLEMS:
                break
            if not _is_name(name):
                problems.append(_unknown(name))
                continue
            value = _value(raw, name, problems)
            if raw is not None and not isinstance(raw, dict) and not right_kind(name, raw):
                problems.append(f"{name}: {raw!r} is no {FACTS.get(name, 'text')}")
            facts[name] = Fact.known(name, value, path) if raw is not None else Fact.absent(name, path)
    if problems:
        if len(problems) > _MOST_PROBLEMS:
            problems[_MOST_PROBLEMS:] = ["and more mistakes like these"]
        raise FactsFileError(*(f"{path}: {problem}" for problem in problems))
    return RecordedFacts(facts)


def _is_name(name: str) -> bool:
    return name in FACTS or name.startswith("env.")


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(FACTS), 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else "`torchdoctor rules facts` lists them"
    return f"unknown fact {name!r}; {hint}"


def _fact(row: object, where: str, path: str, problems: list[str]) -> Fact | None:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        problems.append(f'{where} must be an object with a "name"')
        return None
    name: str = row["name"]
    try:
        state = State(row.get("state", "known"))
        reason = Reason(row["reason"]) if row.get("reason") is not None else None
    except ValueError as error:
        problems.append(
            f"{where} ({name}): {error}; states: {', '.join(one.value for one in State)}; "
            f"reasons: {', '.join(one.value for one in Reason)}"
        )
        return None
    if state is State.UNKNOWN and reason is None:
        problems.append(f"{where} ({name}): an unknown fact needs a reason")
    value = _value(row.get("value"), name, problems)
    return Fact(name, state, value, reason, str(row.get("source") or path), str(row.get("detail") or ""))


def _value(raw: Any, name: str, problems: list[str]) -> FactValue:
    if isinstance(raw, list):
        return tuple(_value(item, name, problems) for item in raw)
    if raw is None or isinstance(raw, (str, int, float, bool)):
        return raw
    problems.append(f"{name}: a value is a text, a number, true, false or a list of them, not an object")
    return None
