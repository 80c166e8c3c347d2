"""What a catalog must keep: every rule documented, evidenced, and silent on what is not its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchdoctor import extract
from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.compile import compile_tree
from torchdoctor.catalog.nearest import MESSAGES, messages_text
from torchdoctor.catalog.reader import CatalogError
from torchdoctor.catalog.remarks import EXAMPLES, examples_text, rule_file, versions
from torchdoctor.catalog.rule import Rule
from torchdoctor.engine import install, outputs, text_claims, textfacts
from torchdoctor.model import Outcome, Severity, Standing, counted
from torchdoctor.workbench import golden, lint_patterns, lint_rules, literals
from torchdoctor.workbench.blocks import SUFFIX
from torchdoctor.workbench.case import CLEAN, NONE, TEXTS, UNKNOWN, UNRECOGNISED, Case
from torchdoctor.workbench.cases import read_all
from torchdoctor.workbench.examples import collect, decisive
from torchdoctor.workbench.golden import Answer
from torchdoctor.workbench.shape import repeated

# Exemptions, rule ids each; a test holds that these lists only shrink.
REGEX_ALLOWED: frozenset[str] = frozenset()  # may use a regular expression
NO_POSITIVE: frozenset[str] = frozenset()  # need no fixture
NO_NEAR_MISS: frozenset[str] = frozenset()  # need no near miss
# Their riskier fix stands first: it is the repair; what follows is another case, a last resort or aftercare.
RISKIER_FIRST: frozenset[str] = frozenset()

_SILENT = {CLEAN: (NONE, Outcome.NO_FAILURE), UNKNOWN: (UNRECOGNISED, Outcome.UNRECOGNISED)}


@dataclass(frozen=True, slots=True)
class LintReport:
    """``problems``: one line a fault, each with file or rule. ``summary``: figures worth reading."""

    problems: tuple[str, ...]
    summary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """A rules directory, and the engine's answers to the cases beside it, from which pages are made."""

    directory: str
    rules: RuleSet
    fixtures: str | None
    answers: tuple[Answer, ...]
    unreadable: tuple[str, ...]

    def pages(self) -> dict[str, str]:
        """The generated files: name within the rules directory -> text."""
        examples = examples_text(collect(self.answers))
        return {EXAMPLES: examples, MESSAGES: messages_text(decisive(self.answers))}

    def golden(self, before: str | None = None) -> str:
        """The golden table of the answers; new cases that show nothing new are not recorded.

        ``before`` is the golden file as it is: what stands in it is not new.
        """
        return golden.table(self.answers, self.repeated(before))

    def repeated(self, golden_file: str | None) -> dict[str, str]:
        """Each case new to the golden file that shows what another does: its id -> the other's."""
        return repeated(self.answers, golden.recorded(golden_file))


def examine(directory: str, fixtures: str | None) -> Catalog:
    """Load a rules directory and let the engine answer all cases: about fifteen seconds for a thousand.

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
        problems.extend(_evidence(rules, [answer.case for answer in catalog.answers]))
        problems.extend(_faults(catalog.answers))
        places = {answer.case.id: answer.case.place for answer in catalog.answers}
        problems.extend(
            f"{places[one]}: {one} shows what {other} shows; a new case is real, or its decisive line is new"
            for one, other in catalog.repeated(golden_file).items()
        )
        if golden_file is not None:
            problems.extend(golden.differences(golden_file, golden.table(catalog.answers)))
        problems.extend(_stale_pages(catalog))
        summary.append(_origins([answer.case for answer in catalog.answers]))
        summary.extend(_silence(catalog.answers))
        summary.extend(_written(catalog.answers))
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

    return {
        **FACTS,
        **extract.catalogue(),
        **textfacts.FACTS,
        **text_claims.FACTS,
        **install.FACTS,
        **outputs.FACTS,
    }


def _evidence(rules: RuleSet, cases: Sequence[Case]) -> Iterator[str]:
    """Each rule that matches texts has a log that it must take, and one that it must not."""
    positives = Counter(case.of for case in cases if not case.near)
    near = Counter(case.of for case in cases if case.near)
    for of in sorted({case.of for case in cases} - {*_SILENT, TEXTS, *rules.ids()}):
        yield f"fixtures/{of}{SUFFIX}: no rule has this id"
    for case in cases:
        wanted = _SILENT[case.of][0] if case.of in _SILENT else case.rule
        if case.rule != wanted or (case.of in _SILENT and case.also):
            yield f"{case.place}: {case.name}: nothing may fire here, so its rule is {wanted}"
        named = [item for item in (case.rule, *case.also) if item not in (NONE, UNRECOGNISED)]
        unknown = [item for item in named if item not in rules]
        if unknown:
            yield f"{case.place}: {case.name}: names {', '.join(unknown)}, which no rule has as its id"
        if case.unfinished:
            yield f"{case.place}: {case.name}: a TODO of the stub is left"
    for rule in rules.rules():
        if not rule.matches:
            continue
        if not positives[rule.id] and rule.id not in NO_POSITIVE:
            yield f"{rule.id}: no case of it in fixtures/{rule.id}{SUFFIX}"
        if not near[rule.id] and rule.id not in NO_NEAR_MISS:
            yield f"{rule.id}: no near miss in fixtures/{rule.id}{SUFFIX}"


def _faults(answers: Sequence[Answer]) -> Iterator[str]:
    for answer in answers:
        # of what people wrote all together are judged
        fault = fault_of(answer) if answer.case.of != TEXTS or answer.report.faults else None
        if fault:
            yield f"{answer.case.place}: {answer.case.name}: {fault}"


def fault_of(answer: Answer) -> str | None:
    """What is wrong with the engine's answer to a case; None when it is right."""
    case, report = answer.case, answer.report
    if report.faults:
        return f"a fault of the engine: {report.faults[0]}"
    right = {NONE if item == UNRECOGNISED else item for item in (case.rule, *case.also)}
    if answer.top not in right:
        return f"expected {case.rule}, got {answer.top}"
    if not report.diagnoses:
        return None
    top = report.diagnoses[0]
    if case.standing is not None and top.standing.value != case.standing and answer.top == case.rule:
        return f"{top.rule} is {top.standing.value}, expected {case.standing}"
    if case.rank is not None and top.rank != case.rank:
        return f"{top.rule} stands on rank {top.rank}, expected {case.rank}"
    return None


def _stale_pages(catalog: Catalog) -> Iterator[str]:
    """What is recorded beside the rules exists where somebody wrote it once; from then on it must be true."""
    if not os.path.exists(os.path.join(catalog.directory, EXAMPLES)):
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
    for of, (_, outcome) in _SILENT.items():
        found = [answer.report.outcome is outcome for answer in answers if answer.case.of == of]
        if found:
            yield f"{of}{SUFFIX}: {sum(found)} of {len(found)} with the outcome {outcome.value}"


def _written(answers: Sequence[Answer]) -> Iterator[str]:
    """What is said of texts that no program printed."""
    texts = [answer.report for answer in answers if answer.case.of == TEXTS]
    alarms = [report for report in texts if any(one.severity is Severity.FATAL for one in report.diagnoses)]
    certain = sum(report.diagnoses[0].standing is Standing.CONFIRMED for report in alarms)
    if texts:
        yield f"{TEXTS}{SUFFIX}: {len(alarms)} of {len(texts)} are taken for a failure, {certain} for certain"


def _origins(cases: Sequence[Case]) -> str:
    origins = Counter(case.origin for case in cases)
    real = origins["captured"] + origins["reported"]
    return (
        f"{counted(len(cases), 'case')}: {origins['captured']:,} captured, "
        f"{origins['reported']:,} reported, {origins['reconstructed']:,} reconstructed "
        f"({100 * real // (len(cases) or 1)} % from real programs or reports)"
    )
