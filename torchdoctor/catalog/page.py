"""One rule for readers: gathered once, then shown on a terminal, on a page, or as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchdoctor.catalog import template
from torchdoctor.catalog.remarks import Example

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torchdoctor.catalog.rule import Condition, ConditionalFix, Match, Rule
    from torchdoctor.catalog.ruleset import RuleSet

_INSTALL = re.compile(r"\{install\.(\w+)\}")
_VALUE = re.compile(r"\{\w+\.(\w+)\}|\bmatch\.(\w+)")
_HOLE = re.compile(r"(?<!\{)\{(\w*):\w+\}")
# facts that most conditions ask for, as readers call them
_WORDS = (
    ("event.text", "the message"),
    ("event.type", "the exception"),
    ("event.frames", "the stack"),
    ("log.text", "the log"),
)
RISKS = {
    "changes-environment": "changes the environment",
    "needs-root": "needs administrator rights",
    "loses-work": "loses work",
    "runs-code": "runs code from the file",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One way in which the rule shows: who prints it, the templates, and what else must hold."""

    versions: str
    texts: tuple[str, ...]
    about: str


@dataclass(frozen=True, slots=True)
class Page:
    """What readers are told of a rule. ``look_alikes`` holds id, title and in what it is alike."""

    id: str
    family: str
    severity: str
    role: str
    title: str
    retired: str
    example: Example
    why: str
    shown: tuple[Shown, ...]
    fixes: tuple[ConditionalFix, ...]
    decide_with: str | None
    decide_note: str | None
    more: str
    confirmed: str
    ruled_out: str
    look_alikes: tuple[tuple[str, str, str], ...]
    leads_to: tuple[str, ...]
    references: tuple[str, ...]


def gather(
    rules: RuleSet,
    rule_id: str,
    versions: Sequence[str] = (),
    example: Example | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Page:
    """All that a page says. Raises UnknownRuleError.

    ``versions`` are the comments above the matches, ``groups`` the named consequences of the catalog.
    """
    rule, words = rules.rule(rule_id), rules.text(rule_id)
    example = example or Example()
    retired = ""
    if words.retired:
        heirs = ", ".join(rules.retired[rule_id])
        retired = f"Retired: {words.retired}." + (f" Its failures are told by {heirs}." if heirs else "")
    return Page(
        rule.id,
        rule.family,
        rule.severity.value,
        rule.role.value,
        rule.title,
        retired,
        example,
        " ".join(words.why.split()),
        tuple(
            _shown(match, versions[number] if number < len(versions) else "")
            for number, match in enumerate(rule.matches)
        ),
        words.fixes,
        words.decide_with,
        words.decide_note,
        " ".join((words.more or "").split()),
        for_readers(joined(rule.confirm)),
        for_readers(joined(rule.rule_out, " or ")),
        tuple(_look_alikes(rules, rule, example)),
        tuple(_consequences(rule, groups or {})),
        words.references,
    )


def as_data(rules: RuleSet, rule_id: str, shown: Page | None = None) -> dict[str, Any]:
    """Everything a rule says, as JSON data. Raises UnknownRuleError."""
    rule, words = rules.rule(rule_id), rules.text(rule_id)
    shown = shown or gather(rules, rule_id)
    return {
        **summary(rule),
        "why": words.why,
        "more": words.more,
        "example": {"fixture": shown.example.fixture or None, "lines": list(shown.example.lines)},
        "matches": [
            {
                "text": [readable(pattern.pattern) for pattern in match.patterns],
                "event": list(match.kinds),
                "type": list(match.types),
                "where": [in_words(item) for item in match.where],
                "versions": way.versions or None,
            }
            for match, way in zip(rule.matches, shown.shown, strict=True)
        ],
        "confirm": [in_words(item) for item in rule.confirm],
        "rule_out": [in_words(item) for item in rule.rule_out],
        "fixes": [
            {
                "do": item.fix.do,
                "run": item.fix.run,
                "risk": item.fix.risk,
                "when": [in_words(one) for one in item.when],
                "for": list(item.wanted),
                "not_for": list(item.not_for),
            }
            for item in words.fixes
        ],
        "decide_with": words.decide_with,
        "decide_note": words.decide_note,
        "look_alikes": [{"rule": name, "alike_in": how} for name, _, how in shown.look_alikes],
        "leads_to": list(rule.leads_to),
        "refines": list(rule.refines),
        "references": list(words.references),
        "retired": words.retired,
        "replaced_by": list(rules.retired.get(rule_id, ())),
    }


def summary(rule: Rule) -> dict[str, Any]:
    """What the list of rules says of one."""
    return {
        "id": rule.id,
        "family": rule.family,
        "severity": rule.severity.value,
        "role": rule.role.value,
        "title": rule.title,
    }


def _look_alikes(rules: RuleSet, rule: Rule, example: Example) -> Iterator[tuple[str, str, str]]:
    """Rules that are taken for this one easily, the nearest first, each once."""
    own = {match.patterns for match in rule.matches if match.patterns}
    sharing = [
        other.id for other in rules.rules() if not own.isdisjoint(match.patterns for match in other.matches)
    ]
    found: dict[str, str] = dict.fromkeys(rule.refines, "the more general case, which this rule replaces")
    for other in rules.rules():
        if rule.id in other.refines:
            found.setdefault(other.id, "a special case, which replaces this rule where it is sure")
    for name in sharing:
        found.setdefault(name, "prints the same text")
    for name in example.near:
        found.setdefault(name, "its logs look alike")
    for name, how in found.items():
        if name != rule.id and name in rules:
            yield name, rules.rule(name).title, how


def _consequences(rule: Rule, groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What the rule leads to: each group that it names whole by the group's name, then the others."""
    left = list(rule.leads_to)
    for name, members in groups.items():
        others = [member for member in members if member != rule.id]
        if len(others) > 1 and set(others) <= set(rule.leads_to):
            yield f"@{name}"
            left = [one for one in left if one not in others]
    yield from left


def for_readers(text: str) -> str:
    """A text of a rule in which values of the message stand as {match.name}, for a page: as NAME."""
    for fact, words in _WORDS:
        text = text.replace(fact, words)
    return _VALUE.sub(lambda found: (found[1] or found[2]).upper(), _INSTALL.sub(_install, text))


def _install(found: re.Match[str]) -> str:
    """For a page, which has no reader's machine: the command with its build as a word."""
    tag = found[1] if found[1] not in ("torch", "first", "same") else "BUILD"
    return f"python -m pip install torch torchvision torchaudio --index-url https://download.pytorch.org/whl/{tag}"


def _as_shown(pattern: str) -> str:
    """A template for readers: the names of its holes in capitals, "…" for a hole without one."""
    shown = _HOLE.sub(lambda found: found[1].upper() or "…", readable(pattern))
    return shown.replace("{{", "{").replace("}}", "}")


def readable(pattern: str) -> str:
    """The template that a pattern was made from; the pattern itself where it was none."""
    pieces: list[str] = []
    lead = next((lead for lead in template.LEADING.values() if pattern.startswith(lead)), "")
    rest = pattern[len(lead) :]
    while rest:
        named = re.match(r"\(\?P<(\w+)>", rest)
        start = named.end() if named else 0
        for kind, body in template.HOLES.items():
            if rest.startswith(body, start):
                end = start + len(body)
                end += (
                    len(template.ENDING)
                    if rest.startswith(template.ENDING, end)
                    else rest.startswith("?", end)
                )
                end += rest.startswith(")", end) if named else 0
                pieces.append(f"{{{named[1] if named else ''}:{kind}}}")
                rest = rest[end:]
                break
        else:
            size = 2 if rest[0] == "\\" else 1
            char = rest[size - 1 : size]
            pieces.append(char * 2 if char in "{}" else char)
            rest = rest[size:]
    source = "".join(pieces)
    try:
        return source if template.parse(source).pattern == pattern else pattern
    except template.TemplateError:
        return pattern


def in_words(item: Condition) -> str:
    """A condition as a sentence."""
    if item.word in ("known", "absent"):
        return f"{item.fact} is {item.word}"
    constant = item.constant
    shown = ", ".join(map(str, constant)) if isinstance(constant, tuple) else str(constant)
    return f"{item.fact} {item.word.replace('_', ' ')} {shown}"


def joined(items: Iterable[Condition], word: str = " and ") -> str:
    """Conditions as one sentence."""
    return word.join(in_words(item) for item in items)


def _shown(match: Match, versions: str) -> Shown:
    about = [*match.types, *(f"{kind} event" for kind in match.kinds)]
    if match.where and not (match.patterns or about):
        about.append("a text in which nothing failed")
    if match.where:
        about.append("where " + joined(match.where))
    texts = tuple(_as_shown(pattern.pattern) for pattern in match.patterns)
    return Shown(versions, texts, for_readers("; ".join(about)))
