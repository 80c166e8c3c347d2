"""That no template runs away: bounded holes, and time on texts made to hurt it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import cache

from torchdoctor.catalog import RuleSet, template
from torchdoctor.catalog.page import readable
from torchdoctor.workbench.pace import slower

HOSTILE_S = 0.05
LENGTH = 20_000
_BEYOND_DOUBT_S = 1.0
_ATTEMPTS = 3  # a neighbour on the machine may disturb one measurement, hardly three

_FILLINGS = {"int": "1", "float": "1", "size": "1", "version": "1.", "path": "/a", "word": "a", "rest": "a "}
_SPLIT = re.compile(r"\{\w*:(\w+)\}")


@cache
def _common() -> tuple[str, ...]:
    seeds = ("a", "1", "1.1e1", "'\" {}[]()<>", "x y ", "/a", "1 GiB ", "é…")
    return tuple(_long(seed) for seed in seeds)


def _long(seed: str) -> str:
    return (seed * (LENGTH // len(seed) + 1))[:LENGTH]


def hostile(source: str) -> Iterator[str]:
    """Texts that a template nearly matches, over and over: its literals, filled holes, no end."""
    yield from _common()
    parts = _SPLIT.split(source)
    literals = [part.replace("{{", "{").replace("}}", "}") or " " for part in parts[::2]]
    kinds = parts[1::2]
    for literal in dict.fromkeys(literals):
        yield _long(literal)
        yield _long(literal + " ")
    whole = literals[0]
    for number, kind in enumerate(kinds):
        filling = _FILLINGS.get(kind, "a")
        # all that stands before the hole, once and often, then more than the hole can take
        yield whole + _long(filling)
        yield _long(whole + filling * 20)
        if number + 1 < len(kinds):
            # each later literal repeatedly, so that every hole has many places to end
            later = "".join(item + filling for item in literals[number + 1 : -1])
            yield _long(whole + _long(later)[: 40 * max(1, len(later))])
        whole += filling + literals[number + 1]
    yield _long(whole[:-1])


def problems(rules: RuleSet, allowed: frozenset[str]) -> Iterator[str]:
    """Every pattern that is no template though its rule may not have one, or is slow."""
    seen: set[str] = set()
    for rule in rules.rules():
        for number, match in enumerate(rule.matches, start=1):
            for pattern in match.patterns:
                if pattern.pattern in seen:
                    continue
                seen.add(pattern.pattern)
                place = f"{rule.family}/{rule.id}.toml: [[match]] {number}"
                source = readable(pattern.pattern)
                if source == pattern.pattern and _is_regex(source) and rule.id not in allowed:
                    yield f"{place} uses a regular expression, which its rule may not"
                spent, text = slowest(pattern.pattern, tuple(hostile(source)))
                if spent > HOSTILE_S:
                    yield f"{place} takes {1000 * spent:.0f} ms on hostile input such as {text[:60]!r}…"


def _is_regex(source: str) -> bool:
    """No template gives this pattern."""
    try:
        return template.parse(source).pattern != source
    except template.TemplateError:
        return True


def slowest(pattern: str, texts: Sequence[str]) -> tuple[float, str]:
    """Seconds that the first text above the limit takes, else the worst, the best of three; and that text.

    They are seconds of the reference machine of ``pace``, where this one is slower.
    """
    compiled = template.compiled(pattern)
    worst, culprit = 0.0, ""
    for text in texts:
        best = float("inf")
        for _ in range(_ATTEMPTS):
            started = time.thread_time()
            compiled.search(text)
            best = min(best, time.thread_time() - started)
            if best <= HOSTILE_S or best > _BEYOND_DOUBT_S:
                break
        if best > HOSTILE_S:
            best /= slower()
        if best > worst:
            worst, culprit = best, text
        if worst > HOSTILE_S:
            break  # one is enough, and the next may take minutes
    return worst, culprit
