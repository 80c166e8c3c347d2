"""Which rules know messages like that of a failure which none of them knows."""

from __future__ import annotations

from torchdoctor.catalog import RuleSet, rules_directory
from torchdoctor.catalog.nearest import nearest
from torchdoctor.model import Resemblance, Suspect
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

# the words are those of every end, and the number is one that no rule knows
_ENDED = r"Process finished with exit code \d+"


def with_resemblances(suspect: Suspect, rules: RuleSet) -> Suspect:
    """The suspect with the rules whose known messages come nearest to its own, at most three."""
    if pattern(_ENDED).fullmatch(suspect.message):
        return suspect
    near = nearest(rules_directory(), f"{suspect.type or ''}: {suspect.message}")
    known = [rules.rule(one.rule) for one in near if one.rule in rules]
    return replace(suspect, resembles=tuple(Resemblance(rule.id, rule.title) for rule in known))
