"""How often the rules are right: runs ``diagnose`` over labelled inputs and counts."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.model import Diagnosis, Outcome, Report, Role, Severity, Standing
from torchdoctor.workbench.case import CLEAN, NONE, UNRECOGNISED, Case, facts, transcript
from torchdoctor.workbench.labelled import cases

TOP = 3


@dataclass(frozen=True, slots=True)
class Result:
    """A case and what came out of it. ``has_rule`` says that the catalog knows the cause at all.

    ``special`` are the rules that refine an expected one: a label names a cause that was known when it
    was written, and a special case that has got a rule since is no other cause.
    """

    case: Case
    report: Report
    family: str
    has_rule: bool
    special: frozenset[str] = frozenset()

    @property
    def got(self) -> tuple[Diagnosis, ...]:
        return self.report.diagnoses

    @property
    def none(self) -> bool:
        return self.case.rule == NONE

    @property
    def part(self) -> str:
        """The case's origin, else what its name begins with up to the first hyphen."""
        prefix = re.match(r"[A-Za-z0-9]+-", self.case.name)
        return self.case.origin or (prefix[0] if prefix else "")

    @property
    def alarm(self) -> bool:
        """A fatal diagnosis; warnings and remarks alarm nobody."""
        return any(item.severity is Severity.FATAL for item in self.got)

    def right_within(self, places: int) -> bool:
        """An expected rule stands in these places, or nothing does where that is expected."""
        accepted = (self.case.rule, *self.case.also)
        if any(item.rule in accepted or item.rule in self.special for item in self.got[:places]):
            return True
        if UNRECOGNISED in accepted and self.report.outcome is Outcome.UNRECOGNISED:
            return True
        return NONE in accepted and not self.alarm

    @property
    def by_special_case(self) -> bool:
        """The answer refines an expected rule."""
        return bool(self.got) and self.got[0].rule in self.special

    @property
    def tick(self) -> bool:
        """A failure of which the report says that nothing failed: the worst answer."""
        return self.report.outcome is Outcome.NO_FAILURE and not self.right_within(TOP)

    @property
    def doubted(self) -> bool:
        """Nothing failed, and the report asks whether something did."""
        return self.none and self.case.of in ("", CLEAN) and self.report.outcome is Outcome.UNRECOGNISED

    @property
    def wrong_and_confirmed(self) -> bool:
        """The answer is a cause, said to be certain, and it is not the right one."""
        if not self.got or self.right_within(1):
            return False
        return self.got[0].standing is Standing.CONFIRMED and self.got[0].role is Role.CAUSE

    @property
    def user_frame_right(self) -> bool:
        """The frame shown, of the answer or else of the suspect, is the one of the label."""
        return _shown_frame(self.report) == self.case.frame

    @property
    def differences(self) -> tuple[str, ...]:
        """What else the label states and the report has otherwise."""
        found: list[str] = []
        case, first = self.case, self.got[0] if self.got else None
        if case.suspect and first is None and _suspect(self.report) != case.suspect:
            found.append(f"suspect {_suspect(self.report)}, expected {case.suspect}")
        if case.frame and not self.user_frame_right:
            found.append(f"user frame {_shown_frame(self.report)}, expected {case.frame}")
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
    """All results of a folder, or of a part of it."""

    results: tuple[Result, ...]

    @property
    def known(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.has_rule)

    @property
    def unrecognised(self) -> tuple[Result, ...]:
        """Failures that no rule should know: the outcome is judged."""
        return tuple(item for item in self.results if item.case.rule == UNRECOGNISED)

    @property
    def unknown(self) -> tuple[Result, ...]:
        """Cases whose cause has no rule: they can only be wrong, so they are counted apart."""
        labels = (NONE, UNRECOGNISED)
        return tuple(item for item in self.results if not item.has_rule and item.case.rule not in labels)

    @property
    def negatives(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.none)

    @property
    def user_frames(self) -> Share:
        """How often the user's frame is right, of the cases that are labelled with one."""
        labelled = [item for item in self.results if item.case.frame]
        return Share(sum(item.user_frame_right for item in labelled), len(labelled))

    @property
    def false_positives(self) -> tuple[Result, ...]:
        return tuple(item for item in self.negatives if not item.right_within(1))

    @property
    def by_special_case(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.by_special_case)

    @property
    def ticks(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.tick)

    @property
    def doubted(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.doubted)

    @property
    def wrong_and_confirmed(self) -> tuple[Result, ...]:
        return tuple(item for item in self.results if item.wrong_and_confirmed)

    @property
    def misses(self) -> tuple[Result, ...]:
        judged = (*self.known, *self.unrecognised, *self.negatives)
        missed = [item for item in judged if not item.right_within(1)]
        return (*missed, *(item for item in self.unknown if item.wrong_and_confirmed or item.tick))

    @property
    def parts(self) -> dict[str, Evaluation]:
        """The results by origin or beginning of their names."""
        groups: defaultdict[str, list[Result]] = defaultdict(list)
        for item in self.results:
            groups[item.part].append(item)
        return {name: Evaluation(tuple(group)) for name, group in sorted(groups.items())}

    def top(self, places: int) -> Share:
        """How often an expected rule stands in these places, of the cases whose cause has a rule."""
        return share(self.known, places)

    def as_data(self) -> dict[str, Any]:
        """The figures and the misses as JSON data."""
        return {
            "cases": len(self.results),
            "with_rule": len(self.known),
            "top1": self.top(1).right,
            "top3": self.top(TOP).right,
            "by_special_case": _names(self.by_special_case),
            "none_of_the_above": len(self.negatives),
            "false_positives": _names(self.false_positives),
            "wrong_and_confirmed": _names(self.wrong_and_confirmed),
            "ticks": _names(self.ticks),
            "doubted": _names(self.doubted),
            "unrecognised": {"cases": len(self.unrecognised), "right": share(self.unrecognised, 1).right},
            "user_frames": {"labelled": self.user_frames.of, "right": self.user_frames.right},
            "without_rule": {
                "cases": len(self.unknown),
                "right": share(self.unknown, 1).right,
                "unrecognised": sum(not item.got for item in self.unknown),
            },
            "by_part": {name: _part_data(part) for name, part in self.parts.items()},
            "by_family": _data(shares(self.known, lambda item: item.family)),
            "misses": [_miss_data(item) for item in self.misses],
            "differences": {
                item.case.id: list(item.differences) for item in self.results if item.differences
            },
        }


def evaluate(folder: str, rules: RuleSet, only: Sequence[str] = ()) -> Evaluation:
    """Diagnose every labelled input of the folder, without asking this machine.

    ``only`` chooses cases by patterns of their names. Raises EvaluationError for faulty labels, IntakeError
    when an input cannot be read.
    """
    return Evaluation(tuple(judge(case, rules) for case in cases(folder, only)))


def judge(case: Case, rules: RuleSet) -> Result:
    """Diagnose one case, without asking this machine. Raises IntakeError, CaseError."""
    report = diagnose(transcript(case), FactBook(facts(case)), rules)
    has_rule = case.rule in rules
    family = rules.rule(case.rule).family if has_rule else ""
    expected = {case.rule, *case.also}
    special = (item.rule for item in report.diagnoses if item.rule not in expected)
    refining = frozenset(rule for rule in special if expected.intersection(rules.rule(rule).refines))
    return Result(case, report, family, has_rule, refining)


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


def share(results: Sequence[Result], places: int) -> Share:
    """How many of the results are right within these places."""
    return Share(sum(item.right_within(places) for item in results), len(results))


def shares(results: Iterable[Result], key: Callable[[Result], str]) -> list[tuple[str, Share, Share]]:
    """For each group of results: its name, how many are right, and right within TOP places."""
    groups: defaultdict[str, list[Result]] = defaultdict(list)
    for item in results:
        groups[key(item) or "-"].append(item)
    return [(name, share(group, 1), share(group, TOP)) for name, group in sorted(groups.items())]


def evidence(item: Result) -> tuple[str | None, int | None, str]:
    """File, line and text that the answer or the suspect of a result stands on."""
    suspect = item.report.suspect
    first = item.got[0].evidence[:1] if item.got else (suspect.evidence,) if suspect else ()
    if not first:
        return None, None, ""
    text = " ".join(first[0].text.split())
    file = item.case.path if item.case.path else first[0].file
    return file and os.path.basename(file), first[0].line, text if len(text) <= 160 else text[:159] + "…"


def _names(results: Sequence[Result]) -> list[str]:
    return [item.case.id for item in results]


def _data(found: list[tuple[str, Share, Share]]) -> dict[str, dict[str, int]]:
    return {name: {"cases": one.of, "top1": one.right, "top3": three.right} for name, one, three in found}


def _part_data(part: Evaluation) -> dict[str, int]:
    return {
        "cases": len(part.results),
        "with_rule": len(part.known),
        "top1": part.top(1).right,
        "none_of_the_above": len(part.negatives),
        "false_positives": len(part.false_positives),
        "unrecognised": len(part.unrecognised),
        "unrecognised_right": share(part.unrecognised, 1).right,
        "ticks": len(part.ticks),
        "doubted": len(part.doubted),
        "wrong_and_confirmed": len(part.wrong_and_confirmed),
    }


def _miss_data(item: Result) -> dict[str, Any]:
    file, line, text = evidence(item)
    return {
        "case": item.case.id,
        "expected": item.case.rule,
        "also": list(item.case.also),
        "outcome": item.report.outcome.value,
        "got": [{"rule": one.rule, "standing": one.standing.value} for one in item.got[:TOP]],
        "evidence": {"file": file, "line": line, "text": text},
    }
