"""What a catalog must keep: every rule documented, evidenced, and silent on what is not its own."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass

from torchdoctor import extract, intake
from torchdoctor.catalog import RuleSet, template
from torchdoctor.catalog.compile import compile_tree
from torchdoctor.catalog.loader import CatalogError, published_ids
from torchdoctor.catalog.rule import Condition, Rule
from torchdoctor.engine import textfacts, wording
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.fixtures import NONE, SPECIAL, Fixture, FixtureError, walk
from torchdoctor.model import Role

# The only rules that may use a regular expression; this list shrinks.
REGEX_ALLOWED: frozenset[str] = frozenset()

HOSTILE_S = 0.05
_HOSTILE = (
    "a" * 20_000,
    "1" * 20_000,
    "1.1e1" * 4_000,
    "'\" {}[]()<>" * 2_000,
    "x y " * 5_000,
    "/a" * 10_000,
)
_TYPES = {"int": int, "float": float, "bool": bool, "text": str, "str": str, "list": tuple, "version": str}


@dataclass(frozen=True, slots=True)
class LintReport:
    """``problems``: one line a fault, each with file or rule. ``summary``: figures worth reading."""

    problems: tuple[str, ...]
    summary: tuple[str, ...]


def lint(rules_directory: str, fixtures: str | None) -> LintReport:
    """Check a rules directory, with its fixtures where there are any.

    Runs every fixture through the engine; about a minute for a few hundred. Starts no process.
    """
    try:
        rules = RuleSet([compile_tree(rules_directory)])
    except CatalogError as error:
        return LintReport(error.problems, ())
    problems: list[str] = []
    facts = fact_names()
    for rule in rules.rules():
        problems.extend(f"{rule.family}/{rule.id}.toml: {text}" for text in _static(rule, rules, facts))
    problems.extend(_permanent(rules_directory, rules))
    summary = [f"{len(rules)} rules in {len({rule.family for rule in rules.rules()})} families"]
    if fixtures is not None:
        _with_fixtures(rules, fixtures, problems, summary)
    return LintReport(tuple(problems), tuple(summary))


def fact_names() -> dict[str, str]:
    """Every fact that a condition may name: name -> type and meaning."""
    from torchdoctor.probes import FACTS

    return {**FACTS, **extract.catalogue(), **textfacts.FACTS}


def _static(rule: Rule, rules: RuleSet, facts: dict[str, str]) -> list[str]:
    found: list[str] = []
    words = rules.text(rule.id)
    if len(words.why) < 80:
        found.append("why is too short to explain anything")
    if not words.fixes and rule.role is Role.CAUSE:
        found.append("a cause needs at least one [[fix]]")
    for text in (fix.fix.do for fix in words.fixes):
        if text.lower().startswith(("try updating", "update to the latest", "try to update")):
            found.append("a fix that only says to update is none: name the version and what it changes")
    holes = {
        f"match.{name}" for match in rule.matches for pattern in match.patterns for name, _ in pattern.holes
    }
    conditions = [*rule.confirm, *rule.rule_out]
    conditions.extend(item for match in rule.matches for item in match.where)
    conditions.extend(item for fix in words.fixes for item in fix.when)
    if rule.check:
        conditions.extend((*rule.check.applies_if, *rule.check.fail_if))
    for condition in conditions:
        problem = _fits(condition, facts, holes)
        if problem:
            found.append(problem)
    for fix in words.fixes:
        for name in wording.names(f"{fix.fix.do} {fix.fix.run or ''}"):
            if name not in facts and name not in holes and not name.startswith("env."):
                found.append(f'a fix names "{{{name}}}", which is neither a fact nor a hole of a template')
    for number, match in enumerate(rule.matches, start=1):
        for pattern in match.patterns:
            started = time.perf_counter()
            compiled = template.compiled(pattern.pattern)
            for text in _HOSTILE:
                compiled.search(text)
            spent = time.perf_counter() - started
            if spent > HOSTILE_S * len(_HOSTILE):
                found.append(f"[[match]] {number} takes {spent:.2f} s on hostile input; bound its holes")
    return found


def _fits(condition: Condition, facts: dict[str, str], holes: set[str]) -> str | None:
    name = condition.fact
    if name.startswith("match."):
        return None if name in holes else f'condition names "{name}", but no template has that hole'
    if name.startswith("env."):
        return None
    if name not in facts:
        from difflib import get_close_matches

        near = get_close_matches(name, facts, 1)
        return f'condition names the unknown fact "{name}"' + (f'; did you mean "{near[0]}"?' if near else "")
    kind = _TYPES.get(facts[name].partition(":")[0].strip())
    if kind is None or condition.word in ("known", "absent", "matches_version", "in"):
        return None
    constant = condition.constant
    if condition.word == "contains":
        return None if kind in (str, tuple) else f'"{name}" is {facts[name]!r}, which contains nothing'
    if condition.word == "is" and not isinstance(constant, (int, float) if kind is float else kind):
        return f'"{name}" is compared with {constant!r}, but is {facts[name]!r}'
    return None


def _permanent(directory: str, rules: RuleSet) -> list[str]:
    """``ids.txt`` lists every id that was ever published; none may go missing or appear unlisted."""
    listed = set(published_ids(directory))
    if not listed:
        return []
    problems = [
        f"ids.txt: {name} was published and has no rule" for name in sorted(listed - set(rules.ids()))
    ]
    problems.extend(f"ids.txt: {name} is not listed; add it" for name in sorted(set(rules.ids()) - listed))
    return problems


def _with_fixtures(rules: RuleSet, root: str, problems: list[str], summary: list[str]) -> None:
    positives: Counter[str] = Counter()
    near: Counter[str] = Counter()
    origins: Counter[str] = Counter()
    wrong: dict[str, list[str]] = defaultdict(list)
    try:
        fixtures = list(walk(root))
    except FixtureError as error:
        problems.append(str(error))
        return
    for fixture in fixtures:
        if fixture.group not in SPECIAL and fixture.group not in rules:
            problems.append(f"fixtures/{fixture.group}: no rule has this id")
        origins[fixture.origin] += 1
        if fixture.group == "near":
            near[fixture.of] += 1
        elif fixture.of:
            positives[fixture.of] += 1
        fault = judge_fixture(fixture, rules)
        if fault:
            wrong[fixture.group].append(f"{fixture.path}: {fault}")
    for rule_id in rules.ids():
        if rules.rule(rule_id).matches and not positives[rule_id]:
            problems.append(f"{rule_id}: no fixture in fixtures/{rule_id}/")
        if rules.rule(rule_id).matches and not near[rule_id]:
            problems.append(f"{rule_id}: no near miss in fixtures/near/{rule_id}/")
    for group in sorted(wrong):
        problems.extend(wrong[group])
    total = sum(origins.values()) or 1
    real = origins["captured"] + origins["reported"]
    summary.append(
        f"{total} fixtures: {origins['captured']} captured, {origins['reported']} reported, "
        f"{origins['reconstructed']} reconstructed ({100 * real // total} % from real programs or reports)"
    )


def judge_fixture(fixture: Fixture, rules: RuleSet) -> str | None:
    """What is wrong with the engine's answer to a fixture; None when it is right."""
    report = diagnose(intake.read([fixture.input]), FactBook(), rules)
    top = report.diagnoses[0] if report.diagnoses else None
    got = top.rule if top else NONE
    if got != fixture.rule and got not in fixture.also:
        return f"expected {fixture.rule}, got {got}"
    if top is None:
        return None
    if fixture.standing is not None and top.standing.value != fixture.standing and got == fixture.rule:
        return f"{got} is {top.standing.value}, expected {fixture.standing}"
    if fixture.rank is not None and top.rank != fixture.rank:
        return f"{got} stands on rank {top.rank}, expected {fixture.rank}"
    return None
