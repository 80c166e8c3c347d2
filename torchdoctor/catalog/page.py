"""One rule as a page: plain text for a terminal, plain data for programs."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from torchdoctor.catalog import template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdoctor.catalog.rule import Condition, Match, Rule
    from torchdoctor.catalog.ruleset import RuleSet

_RISKS = {
    "changes-environment": " (changes the environment)",
    "needs-root": " (needs root)",
    "loses-work": " (loses work)",
}


def as_data(rules: RuleSet, rule_id: str) -> dict[str, Any]:
    """Everything a rule says, as JSON data. Raises UnknownRuleError."""
    rule, words = rules.rule(rule_id), rules.text(rule_id)
    return {
        **summary(rule),
        "why": words.why,
        "matches": [
            {
                "text": [readable(pattern.pattern) for pattern in match.patterns],
                "event": list(match.kinds),
                "type": list(match.types),
                "where": [in_words(item) for item in match.where],
            }
            for match in rule.matches
        ],
        "confirm": [in_words(item) for item in rule.confirm],
        "rule_out": [in_words(item) for item in rule.rule_out],
        "fixes": [
            {
                "do": item.fix.do,
                "run": item.fix.run,
                "risk": item.fix.risk,
                "when": [in_words(one) for one in item.when],
            }
            for item in words.fixes
        ],
        "decide_with": words.decide_with,
        "leads_to": list(rule.leads_to),
        "refines": list(rule.refines),
        "references": list(words.references),
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


def page(rules: RuleSet, rule_id: str, width: int = 80) -> str:
    """The rule for a reader: what it is, why, how it shows, ways out, how it is told from others.

    Raises UnknownRuleError.
    """
    rule, words = rules.rule(rule_id), rules.text(rule_id)
    lines = _wrapped(rule.title, width, "")
    lines.append(f"{rule.id} ({rule.family}, {rule.severity.value}, {rule.role.value})")
    lines += ["", *_wrapped(words.why, width, "")]
    if rule.matches:
        lines += ["", "How it shows"]
    for match in rule.matches:
        lines.extend(_shown(match, width))
    if words.fixes:
        lines += ["", "What to do"]
    for number, item in enumerate(words.fixes, start=1):
        when = f" [when {_joined(item.when)}]" if item.when else ""
        text = item.fix.do + _RISKS.get(item.fix.risk, "") + when
        lines += _wrapped(text, width, "     ", f"  {number}. ")
        lines += [f"     $ {line}" for line in (item.fix.run or "").strip().splitlines()]
    if words.decide_with:
        lines += ["", "To decide", f"  $ {words.decide_with}"]
    told = [
        ("Confirmed when", _joined(rule.confirm)),
        ("Ruled out when", _joined(rule.rule_out, " or ")),
        ("Can lead to", ", ".join(rule.leads_to)),
        ("Replaces the more general", ", ".join(rule.refines)),
    ]
    for title, text in told:
        if text:
            lines += ["", title, *_wrapped(text, width, "  ")]
    if words.references:
        lines += ["", "Read more", *(f"  {address}" for address in words.references)]
    return "\n".join(lines)


def readable(pattern: str) -> str:
    """The template that a pattern was made from; the pattern itself where it was none."""
    pieces: list[str] = []
    rest = pattern
    while rest:
        named = re.match(r"\(\?P<(\w+)>", rest)
        start = named.end() if named else 0
        for kind, body in template._HOLES.items():
            if rest.startswith(body, start):
                end = start + len(body)
                end += rest.startswith("?", end)
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


def _joined(items: Iterable[Condition], word: str = " and ") -> str:
    return word.join(in_words(item) for item in items)


def _shown(match: Match, width: int) -> list[str]:
    about = [*match.types, *(f"{kind} event" for kind in match.kinds)]
    if match.where:
        about.append("where " + _joined(match.where))
    lines: list[str] = []
    for number, pattern in enumerate(match.patterns):
        lines += _wrapped(readable(pattern.pattern), width, "    ", "    and " if number else "  - ")
    if about:
        lead = "    " if match.patterns else "  - "
        lines += _wrapped(f"({'; '.join(about)})", width, "    ", lead)
    return lines


def _wrapped(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        max(width, 30),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
