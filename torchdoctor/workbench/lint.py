"""What a catalog must keep: every rule documented, evidenced, and silent on what is not its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchdoctor import extract
from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.compile import compile_tree
from torchdoctor.catalog.pages import files
from torchdoctor.catalog.reader import CatalogError
from torchdoctor.catalog.remarks import rule_file, versions
from torchdoctor.catalog.rule import Rule
from torchdoctor.engine import textfacts
from torchdoctor.model import Outcome, counted
from torchdoctor.workbench import golden, lint_patterns, lint_rules, literals
from torchdoctor.workbench.examples import collect
from torchdoctor.workbench.fixtures import NONE, SPECIAL, Fixture, read_all
from torchdoctor.workbench.golden import Answer

# Exemptions, rule ids each; a test holds that these lists only shrink.
REGEX_ALLOWED: frozenset[str] = frozenset()  # may use a regular expression
NO_POSITIVE: frozenset[str] = frozenset()  # need no fixture
NO_NEAR_MISS: frozenset[str] = frozenset()  # need no near miss
# Their riskier fix stands first: it is the repair; what follows is another case, a last resort or aftercare.
RISKIER_FIRST: frozenset[str] = frozenset(
    {"checkpoint-class-missing", "driver-gpu-lost", "gpu-memory-held", "windows-dll-load"}
)

_SILENT = {"clean": Outcome.NO_FAILURE, "unknown": Outcome.UNRECOGNISED}


@dataclass(frozen=True, slots=True)
class LintReport:
    """``problems``: one line a fault, each with file or rule. ``summary``: figures worth reading."""

    problems: tuple[str, ...]
    summary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """A rules directory, and the engine's answers to the fixtures beside it, from which pages are made."""

    directory: str
    rules: RuleSet
    fixtures: str | None
    answers: tuple[Answer, ...]
    unreadable: tuple[str, ...]

    def pages(self) -> dict[str, str]:
        """The generated files: path within the rules directory -> text."""
        return files(self.rules, self.directory, collect(self.answers))

    def golden(self) -> str:
        """The golden table of the answers."""
        return golden.table(self.answers, self.fixtures or "")


def examine(directory: str, fixtures: str | None) -> Catalog:
    """Load a rules directory and let the engine answer all fixtures: about ten seconds for two thousand.

    Raises CatalogError for rules that cannot be loaded.
    """
    rules = RuleSet([compile_tree(directory)])
    found, unreadable = read_all(fixtures) if fixtures is not None else ([], [])
    return Catalog(directory, rules, fixtures, tuple(golden.answers(found, rules)), tuple(unreadable))


def lint(directory: str, fixtures: str | None, golden_file: str | None = None) -> LintReport:
    """Check a rules directory, with its fixtures where there are any. Starts no process."""
    try:
        return check(examine(directory, fixtures), golden_file)
    except CatalogError as error:
        return LintReport(error.problems, ())


def check(catalog: Catalog, golden_file: str | None = None) -> LintReport:
    """Every fault of an examined catalog, and its figures."""
    rules, directory = catalog.rules, catalog.directory
    problems: list[str] = []
    facts = fact_names()
    for rule in rules.rules():
        comments = versions(rule_file([directory], rule.family, rule.id))
        for text in lint_rules.static(rule, rules, facts, comments):
            problems.append(f"{rule.family}/{rule.id}.toml: {text}")
        problems.extend(_order(rule, rules))
    problems.extend(lint_rules.permanent(directory, rules))
    problems.extend(lint_patterns.problems(rules, REGEX_ALLOWED))
    problems.extend(literals.problems(directory, rules))
    families = len({rule.family for rule in rules.rules()})
    summary = [
        f"{counted(len(rules) - len(rules.retired), 'rule')} in {counted(families, 'family', 'families')}"
    ]
    if rules.retired:
        summary.append(counted(len(rules.retired), "retired rule"))
    told = literals.summary(directory, rules)
    summary.extend([told] if told else [])
    if catalog.fixtures is not None:
        problems.extend(catalog.unreadable)
        problems.extend(_evidence(rules, [answer.fixture for answer in catalog.answers]))
        problems.extend(_faults(catalog.answers))
        if golden_file is not None:
            problems.extend(golden.differences(golden_file, catalog.golden()))
        problems.extend(_stale_pages(catalog))
        summary.append(_origins([answer.fixture for answer in catalog.answers]))
        summary.extend(_silence(catalog.answers))
    return LintReport(tuple(problems), tuple(summary))


def _order(rule: Rule, rules: RuleSet) -> Iterator[str]:
    """Fixes stand from safe to risky, and no exemption is kept that a rule does not need."""
    fault = lint_rules.risk_order(rules.text(rule.id).fixes)
    if fault is not None and rule.id not in RISKIER_FIRST:
        yield f"{rule.family}/{rule.id}.toml: {fault}"
    elif fault is None and rule.id in RISKIER_FIRST:
        yield f"{rule.family}/{rule.id}.toml: safe fixes stand first: take it out of RISKIER_FIRST"


def fact_names() -> dict[str, str]:
    """Every fact that a condition may name: name -> type and meaning."""
    from torchdoctor.probes import FACTS

    return {**FACTS, **extract.catalogue(), **textfacts.FACTS}


def _evidence(rules: RuleSet, fixtures: Sequence[Fixture]) -> Iterator[str]:
    """Each rule that matches texts has a log that it must take, and one that it must not."""
    positives = Counter(fixture.of for fixture in fixtures if fixture.group != "near")
    near = Counter(fixture.of for fixture in fixtures if fixture.group == "near")
    for fixture in fixtures:
        if fixture.group not in SPECIAL and fixture.group not in rules:
            yield f"fixtures/{fixture.group}: no rule has this id"
        elif fixture.of not in ("", NONE) and fixture.of not in rules:
            yield f"fixtures/{fixture.group}/{fixture.of}: no rule has this id"
        if fixture.group in _SILENT and (fixture.rule != NONE or fixture.also):
            yield f"{fixture.path}: nothing may fire here, so its rule is {NONE}"
        unknown = [other for other in fixture.also if other not in rules]
        if unknown:
            yield f"{fixture.path}: also names {', '.join(unknown)}, which no rule has as its id"
        if fixture.unfinished:
            yield f"{fixture.path}/about.toml: a TODO of the stub is left"
    for rule in rules.rules():
        if not rule.matches:
            continue
        if not positives[rule.id] and rule.id not in NO_POSITIVE:
            yield f"{rule.id}: no fixture in fixtures/{rule.id}/"
        if not near[rule.id] and rule.id not in NO_NEAR_MISS:
            yield f"{rule.id}: no near miss in fixtures/near/{rule.id}/"


def _faults(answers: Sequence[Answer]) -> Iterator[str]:
    for answer in answers:
        fault = fault_of(answer)
        if fault:
            yield f"{answer.fixture.path}: {fault}"


def fault_of(answer: Answer) -> str | None:
    """What is wrong with the engine's answer to a fixture; None when it is right."""
    fixture, report = answer.fixture, answer.report
    if report.faults:
        return f"a fault of the engine: {report.faults[0]}"
    if answer.top != fixture.rule and answer.top not in fixture.also:
        return f"expected {fixture.rule}, got {answer.top}"
    if not report.diagnoses:
        return None
    top = report.diagnoses[0]
    if fixture.standing is not None and top.standing.value != fixture.standing and answer.top == fixture.rule:
        return f"{top.rule} is {top.standing.value}, expected {fixture.standing}"
    if fixture.rank is not None and top.rank != fixture.rank:
        return f"{top.rule} stands on rank {top.rank}, expected {fixture.rank}"
    return None


def _stale_pages(catalog: Catalog) -> Iterator[str]:
    """Pages exist where somebody wrote them once; from then on they must be what the rules give."""
    if not os.path.exists(os.path.join(catalog.directory, "README.md")):
        return
    for name, text in catalog.pages().items():
        try:
            with open(os.path.join(catalog.directory, name), encoding="utf-8", newline="") as file:
                current = file.read() == text
        except OSError:
            current = False
        if not current:
            yield f"{name}: is not what the rules and fixtures give; `torchdoctor rules pages` writes it"


def _silence(answers: Sequence[Answer]) -> Iterator[str]:
    """Whether the outcome, too, is what nothing of ours in a log should give."""
    for group, outcome in _SILENT.items():
        found = [answer.report.outcome is outcome for answer in answers if answer.fixture.group == group]
        if found:
            yield f"{group}/: {sum(found)} of {len(found)} with the outcome {outcome.value}"


def _origins(fixtures: Sequence[Fixture]) -> str:
    origins = Counter(fixture.origin for fixture in fixtures)
    real = origins["captured"] + origins["reported"]
    return (
        f"{counted(len(fixtures), 'fixture')}: {origins['captured']:,} captured, "
        f"{origins['reported']:,} reported, {origins['reconstructed']:,} reconstructed "
        f"({100 * real // (len(fixtures) or 1)} % from real programs or reports)"
    )
