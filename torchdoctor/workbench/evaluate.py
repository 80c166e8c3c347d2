"""How often the rules are right: runs ``diagnose`` over labelled inputs and counts.

Two layouts are read: a folder with ``labels.tsv`` (columns case, cause, also, difficulty, …), or a tree of
fixtures (``<rule>/<case>``, ``near/``, ``clean/``, ``unknown/``; see ``fixtures.walk``).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake import read
from torchdoctor.model import (
    Diagnosis,
    FactSource,
    Outcome,
    Report,
    Role,
    Standing,
    TorchdoctorError,
    counted,
)
from torchdoctor.workbench.fixtures import NONE as NO_RULE
from torchdoctor.workbench.fixtures import walk

NONE = "none-of-the-above"
LABELS = "labels.tsv"
MACHINE = "machine.json"
TOP = 3
_OUTCOMES = {"clean": Outcome.NO_FAILURE, "unknown": Outcome.UNRECOGNISED}


class EvaluationError(TorchdoctorError):
    """A folder that holds no labelled inputs, or labels that cannot be read."""


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled input. ``cause`` is a rule id or NONE; ids under ``also`` are right as well.

    ``rank``, ``user_frame`` (FILE_NAME:LINE), ``standing``, ``suspect`` (last part of a class name) and
    ``outcome`` are compared where they are given.
    """

    name: str
    paths: tuple[str, ...]
    cause: str
    also: tuple[str, ...] = ()
    difficulty: str = ""
    machine: str | None = None
    standing: str | None = None
    rank: int | None = None
    user_frame: str | None = None
    suspect: str | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A case and what came out of it. ``has_rule`` says that the catalog knows the cause at all."""

    case: Case
    report: Report
    family: str
    has_rule: bool

    @property
    def got(self) -> tuple[Diagnosis, ...]:
        return self.report.diagnoses

    @property
    def none(self) -> bool:
        return self.case.cause == NONE

    def right_within(self, places: int) -> bool:
        if self.none:
            return not self.got
        accepted = (self.case.cause, *self.case.also)
        return any(item.rule in accepted for item in self.got[:places])

    @property
    def wrong_and_confirmed(self) -> bool:
        """The answer is a cause, said to be certain, and it is not the right one."""
        if not self.got or self.right_within(1):
            return False
        return self.got[0].standing is Standing.CONFIRMED and self.got[0].role is Role.CAUSE

    @property
    def user_frame_right(self) -> bool:
        """The frame shown, of the answer or else of the suspect, is the one of the label."""
        return _shown_frame(self.report) == self.case.user_frame

    @property
    def differences(self) -> tuple[str, ...]:
        """What else the label states and the report has otherwise."""
        found: list[str] = []
        case, first = self.case, self.got[0] if self.got else None
        if case.outcome is not None and self.report.outcome is not case.outcome:
            found.append(f"outcome {self.report.outcome.value}, expected {case.outcome.value}")
        if case.suspect and first is None and _suspect(self.report) != case.suspect:
            found.append(f"suspect {_suspect(self.report)}, expected {case.suspect}")
        if case.user_frame and not self.user_frame_right:
            found.append(f"user frame {_shown_frame(self.report)}, expected {case.user_frame}")
        if first is None or not self.right_within(1):
            return tuple(found)
        if case.standing and first.standing.value != case.standing:
            found.append(f"standing {first.standing.value}, expected {case.standing}")
        if case.rank is not None and _rank(self.report) != case.rank:
            found.append(f"rank {_rank(self.report)}, expected {case.rank}")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    right: int
    of: int

    def __str__(self) -> str:
        percent = f"{100 * self.right / self.of:6.1f} %" if self.of else "     - "
        return f"{self.right:4d} / {self.of:<4d} {percent}"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All results of a folder."""

    results: tuple[Result, ...]

    @property
    def known(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.has_rule)

    @property
    def unknown(self) -> tuple[Result, ...]:
        """Cases whose cause has no rule: they can only be wrong, so they are counted apart."""
        return tuple(item for item in self.results if not item.has_rule and not item.none)

    @property
    def negatives(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.none)

    @property
    def user_frames(self) -> Share:
        """How often the user's frame is right, of the cases that are labelled with one."""
        labelled = [item for item in self.results if item.case.user_frame]
        return Share(sum(item.user_frame_right for item in labelled), len(labelled))

    @property
    def false_positives(self) -> tuple[Result, ...]:
        return tuple(item for item in self.negatives if item.got)

    @property
    def wrong_and_confirmed(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.wrong_and_confirmed)

    @property
    def misses(self) -> tuple[Result, ...]:
        missed = [item for item in (*self.known, *self.negatives) if not item.right_within(1)]
        return (*missed, *(item for item in self.unknown if item.wrong_and_confirmed))

    def as_data(self) -> dict[str, Any]:
        """The figures and the misses as JSON data."""
        return {
            "cases": len(self.results),
            "with_rule": len(self.known),
            "top1": sum(item.right_within(1) for item in self.known),
            "top3": sum(item.right_within(TOP) for item in self.known),
            "none_of_the_above": len(self.negatives),
            "false_positives": [item.case.name for item in self.false_positives],
            "wrong_and_confirmed": [item.case.name for item in self.wrong_and_confirmed],
            "user_frames": {"labelled": self.user_frames.of, "right": self.user_frames.right},
            "without_rule": {
                "cases": len(self.unknown),
                "right": sum(item.right_within(1) for item in self.unknown),
                "unrecognised": sum(not item.got for item in self.unknown),
            },
            "by_difficulty": _data(_shares(self.known, lambda item: item.case.difficulty)),
            "by_family": _data(_shares(self.known, lambda item: item.family)),
            "misses": [_miss_data(item) for item in self.misses],
            "differences": {
                item.case.name: list(item.differences) for item in self.results if item.differences
            },
        }


def evaluate(folder: str, rules: RuleSet) -> Evaluation:
    """Diagnose every labelled input of the folder, without asking this machine.

    Raises EvaluationError or FixtureError for faulty labels, IntakeError when an input cannot be read.
    """
    results: list[Result] = []
    for case in cases(folder):
        report = diagnose(read(case.paths), FactBook(_recorded(case)), rules)
        has_rule = case.cause in rules
        results.append(Result(case, report, rules.rule(case.cause).family if has_rule else "", has_rule))
    return Evaluation(tuple(results))


def cases(folder: str) -> list[Case]:
    """The labelled inputs of a folder, in order of their names. Raises EvaluationError, FixtureError."""
    if not os.path.isdir(folder):
        raise EvaluationError(f"{folder}: no such folder")
    labels = os.path.join(folder, LABELS)
    found = list(_from_labels(labels) if os.path.exists(labels) else _from_tree(folder))
    if not found:
        raise EvaluationError(f"{folder}: holds neither {LABELS} nor fixtures")
    return found


def _from_labels(path: str) -> Iterator[Case]:
    with open(path, encoding="utf-8") as file:
        header, *rows = (line.rstrip("\r\n").split("\t") for line in file if line.strip())
    for column in ("case", "cause"):
        if column not in header:
            raise EvaluationError(f'{path}:1: no column "{column}" in the first line')
    for number, row in enumerate(rows, start=2):
        values = dict(zip(header, row, strict=False))
        name = values["case"]
        file_name = os.path.join(os.path.dirname(path), name)
        if not os.path.exists(file_name):
            raise EvaluationError(f"{path}:{number}: {name} is not there")
        also = tuple(item.strip() for item in values.get("also", "").split(",") if item.strip())
        yield Case(name, (file_name,), values["cause"], also, values.get("difficulty", ""))


def _from_tree(folder: str) -> Iterator[Case]:
    for item in walk(folder):
        machine = os.path.join(item.path, MACHINE)
        yield Case(
            os.path.relpath(item.path, folder).replace(os.sep, "/"),
            (item.input,),
            NONE if item.rule == NO_RULE else item.rule,
            item.also,
            machine=machine if os.path.exists(machine) else None,
            standing=item.standing,
            rank=item.rank,
            user_frame=item.user_frame,
            suspect=item.suspect,
            outcome=_OUTCOMES.get(item.group),
        )


def _recorded(case: Case) -> FactSource | None:
    if case.machine is None:
        return None
    from torchdoctor.probes.recorded import load_facts

    return load_facts(case.machine)


def _rank(report: Report) -> int | None:
    failure = report.first_failure
    if failure is not None and failure.rank is not None:
        return failure.rank
    return report.diagnoses[0].rank if report.diagnoses else None


def _shown_frame(report: Report) -> str | None:
    suspect = report.suspect
    frame = report.diagnoses[0].frame if report.diagnoses else suspect.frame if suspect else None
    if frame is None:
        return None
    name = frame.file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{frame.line}"


def _suspect(report: Report) -> str | None:
    return (report.suspect.type or "").rpartition(".")[2] if report.suspect else None


def _shares(results: Iterable[Result], key: Callable[[Result], str]) -> list[tuple[str, Share, Share]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for item in results:
        groups[key(item) or "-"].append(item)
    return [
        (
            name,
            Share(sum(item.right_within(1) for item in group), len(group)),
            Share(sum(item.right_within(TOP) for item in group), len(group)),
        )
        for name, group in sorted(groups.items())
    ]


def _data(shares: list[tuple[str, Share, Share]]) -> dict[str, dict[str, int]]:
    return {name: {"cases": one.of, "top1": one.right, "top3": three.right} for name, one, three in shares}


def _miss_data(item: Result) -> dict[str, Any]:
    evidence = _evidence(item)
    return {
        "case": item.case.name,
        "expected": item.case.cause,
        "also": list(item.case.also),
        "outcome": item.report.outcome.value,
        "got": [{"rule": one.rule, "standing": one.standing.value} for one in item.got[:TOP]],
        "evidence": {"file": evidence[0], "line": evidence[1], "text": evidence[2]},
    }


def _evidence(item: Result) -> tuple[str | None, int | None, str]:
    suspect = item.report.suspect
    first = item.got[0].evidence[:1] if item.got else (suspect.evidence,) if suspect else ()
    if not first:
        return None, None, ""
    text = " ".join(first[0].text.split())
    return first[0].file, first[0].line, text if len(text) <= 160 else text[:159] + "…"


def in_words(result: Evaluation) -> str:
    """The figures, then every miss with what was expected, what came, and the line it stands on."""
    known, negatives, unknown = result.known, result.negatives, result.unknown
    lines = [
        f"{counted(len(result.results), 'case')}: {len(known)} whose cause has a rule, "
        f"{len(unknown)} without one, {len(negatives)} with nothing to find",
        "",
        f"  top-1                {Share(sum(item.right_within(1) for item in known), len(known))}",
        f"  top-{TOP}                {Share(sum(item.right_within(TOP) for item in known), len(known))}",
        f"  false positives      {Share(len(result.false_positives), len(negatives))}",
        f"  wrong and confirmed  {len(result.wrong_and_confirmed):4d}",
    ]
    if result.user_frames.of:
        lines.append(f"  user frame           {result.user_frames}")
    tables: tuple[tuple[str, Callable[[Result], str]], ...] = (
        ("difficulty", lambda item: item.case.difficulty),
        ("family", lambda item: item.family),
    )
    for title, key in tables:
        lines += ["", f"  {title:<16} top-1                 top-{TOP}"]
        lines += [f"  {name:<14} {one}   {three}" for name, one, three in _shares(known, key)]
    if unknown:
        lines += ["", f"  no rule for the cause: {_unknown_in_words(unknown)}"]
    if result.misses:
        lines += ["", "Misses"]
        lines += [line for item in result.misses for line in _miss_in_words(item)]
    differing = [(item.case.name, item.differences) for item in result.results if item.differences]
    if differing:
        lines += ["", "Other differences from the label"]
        lines += [f"  {name}: {'; '.join(texts)}" for name, texts in differing]
    return "\n".join(lines)


def _unknown_in_words(results: Sequence[Result]) -> str:
    right = sum(item.right_within(1) for item in results)
    silent = sum(not item.got for item in results)
    wrong = sum(item.wrong_and_confirmed for item in results)
    other = len(results) - right - silent - wrong
    return (
        f"{right} right through `also`, {silent} without a diagnosis, "
        f"{other} a consequence or not certain, {wrong} wrong and confirmed"
    )


def _miss_in_words(item: Result) -> list[str]:
    also = f" (or {', '.join(item.case.also)})" if item.case.also else ""
    got = ", ".join(f"{one.rule} ({one.standing.value})" for one in item.got[:TOP])
    file, line, text = _evidence(item)
    place = f"{os.path.basename(file)}:{line}" if file and line else "-"
    rule = "" if item.has_rule or item.none else ", which has no rule"
    lines = [
        f"  {item.case.name}: expected {item.case.cause}{also}{rule}",
        f"    got   {got or item.report.outcome.value}",
    ]
    return [*lines, f"    line  {place}  {text}"] if text else lines
