"""What must hold of a single rule, seen without any input: its words, its facts, its id."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torchdoctor.catalog import RuleSet
from torchdoctor.catalog.loader import published_ids
from torchdoctor.catalog.reader import meant
from torchdoctor.catalog.rule import Condition, ConditionalFix, Rule, RuleText
from torchdoctor.engine import wording
from torchdoctor.model import Role
from torchdoctor.workbench import lint_words
from torchdoctor.workbench.case import UNFINISHED

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LEAST_WHY = 80
_ONLY_UPDATE = ("try updating", "update to the latest", "try to update")
# what lets a file, or a repository, run code of its own in this process
_RUNS_CODE = re.compile(
    r"weights_only=False|NO_WEIGHTS_ONLY_LOAD=1|allow_pickle=True|trust_remote_code=True|pickle\.loads?\("
)
_HOLE_TYPES = {"int": "int", "size": "int", "float": "float"}
_NUMBERS = frozenset({"int", "float"})
_TEXTS = frozenset({"text", "str", "version"})
# which of two risks is the greater: what an expert does first may be an installation, but is no restart and
# no command as root where something else helps; code of others may do anything
_RISK = {"safe": 0, "changes-environment": 0, "needs-root": 1, "loses-work": 1, "runs-code": 2}
# what the constant of a word may be, for a fact of a type
_PYTHON = {"int": (int,), "float": (int, float), "bool": (bool,), "list": (tuple,)}


def static(rule: Rule, rules: RuleSet, facts: Mapping[str, str], versions: Sequence[str]) -> Iterator[str]:
    """Every fault of one rule, in words. ``versions`` are the comments above its matches."""
    words = rules.text(rule.id)
    if not _ID.fullmatch(rule.id):
        yield "an id is small letters, digits and single hyphens"
    if words.retired:
        return
    yield from _words(rule, words, versions)
    holes = {
        f"match.{name}": _HOLE_TYPES.get(kind, "text")
        for match in rule.matches
        for pattern in match.patterns
        for name, kind in pattern.holes
    }
    known = {**{name: meaning.partition(":")[0].strip() for name, meaning in facts.items()}, **holes}
    for condition in _conditions(rule, words):
        problem = fits(condition, known)
        if problem:
            yield problem
    for fix in words.fixes:
        for name in wording.names(f"{fix.fix.do} {fix.fix.run or ''}"):
            if name not in known and not name.startswith("env."):
                yield f'a fix names "{{{name}}}", which is neither a fact nor a hole of a template'


def _words(rule: Rule, words: RuleText, versions: Sequence[str]) -> Iterator[str]:
    texts = [rule.title, words.why, words.more or "", words.decide_with or "", words.decide_note or ""]
    texts.extend(words.references)
    texts.extend(f"{item.fix.do} {item.fix.run or ''}" for item in words.fixes)
    if any(UNFINISHED in text for text in (*texts, *versions)):
        yield f"a {UNFINISHED} of the stub is left"
    yield from lint_words.problems(words)
    if len(words.why) < _LEAST_WHY:
        yield "why is too short to explain anything"
    if not words.fixes and rule.role is Role.CAUSE:
        yield "a cause needs at least one [[fix]]"
    for item in words.fixes:
        if item.fix.risk != "runs-code" and _RUNS_CODE.search(f"{item.fix.do}\n{item.fix.run or ''}"):
            yield "a fix that lets a file run code of its own has the risk runs-code"
        if item.fix.do.lower().startswith(_ONLY_UPDATE):
            yield "a fix that only says to update is none: name the version and what it changes"
    if rule.matches and versions and not versions[0]:
        yield "no comment above the first [[match]]: which versions, or which program, print the text?"
    for address in words.references:
        if not address.startswith("https://"):
            yield f"reference {address!r} is no https address"


def risk_order(fixes: Sequence[ConditionalFix]) -> str | None:
    """What is wrong with the order of fixes; None when none stands behind a riskier one.

    What is for some readers, or under a condition, takes its place by how well it fits, not by its risk;
    only what runs code of others is always last.
    """
    before: ConditionalFix | None = None
    for number, item in enumerate(fixes, start=1):
        if (
            before
            and _RISK[before.fix.risk] > _RISK[item.fix.risk]
            and (_for_all(item) or _runs_code(before))
        ):
            return (
                f"fix {number} ({item.fix.risk}) stands behind a riskier one ({before.fix.risk}): "
                "fixes stand from simple and safe to hard and risky"
            )
        if _for_all(item) or _runs_code(item):
            before = item
    return None


def _for_all(item: ConditionalFix) -> bool:
    return not (item.when or item.wanted or item.not_for or wording.names(item.fix.do))


def _runs_code(item: ConditionalFix) -> bool:
    return item.fix.risk == "runs-code"


def _conditions(rule: Rule, words: RuleText) -> Iterator[Condition]:
    yield from rule.confirm
    yield from rule.rule_out
    yield from rule.follows_if
    yield from words.decide_when
    for match in rule.matches:
        yield from match.where
    for fix in words.fixes:
        yield from fix.when
    if rule.check:
        yield from rule.check.applies_if
        yield from rule.check.fail_if


def fits(condition: Condition, known: Mapping[str, str]) -> str | None:
    """What is wrong with a condition; None when its fact exists and word and constant suit the fact's type.

    ``known``: name of a fact -> int, float, bool, text, str, version or list.
    """
    name, word, constant = condition.fact, condition.word, condition.constant
    if name not in known and not name.startswith("env."):
        if name.startswith("match."):
            return f'condition names "{name}", but no template has that hole'
        return f'condition names the unknown fact "{name}"{meant(name, known)}'
    kind = known.get(name, "text")
    if word in ("known", "absent"):
        return None
    if word in ("contains", "contains_any", "lacks"):
        return (
            None
            if kind in _TEXTS or kind == "list"
            else f'"{name}" is of type {kind}, which contains nothing'
        )
    if word == "matches_version":
        return None if kind in _TEXTS else f'"{name}" is of type {kind}, which is no version'
    if word in ("at_least", "below"):
        wanted = _TEXTS if isinstance(constant, str) else _NUMBERS
        return (
            None if kind in wanted else f'"{name}" is of type {kind}; {word} {constant!r} never holds of it'
        )
    constants = constant if word == "in" and isinstance(constant, tuple) else (constant,)
    for item in constants:
        if not isinstance(item, _PYTHON.get(kind, (str,))) or (isinstance(item, bool) and kind != "bool"):
            return f'"{name}" is of type {kind}, but compared with {item!r}'
    return None


def permanent(directory: str, rules: RuleSet) -> list[str]:
    """``ids.txt`` lists every id that was ever published; none may go missing or appear unlisted."""
    listed = published_ids(directory)
    if not listed:
        return []
    problems = [
        f"ids.txt: {name} was published and has no rule" for name in sorted({*listed} - {*rules.ids()})
    ]
    problems.extend(f"ids.txt: {name} is not listed; add it" for name in sorted({*rules.ids()} - {*listed}))
    if listed != sorted(set(listed)):
        problems.append("ids.txt: its lines are not sorted, or an id stands twice")
    return problems
