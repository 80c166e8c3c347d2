"""Which rules know messages like that of a failure which none of them knows."""

from __future__ import annotations

from torchdoctor.catalog import RuleSet, rules_directory
from torchdoctor.catalog.nearest import nearest
from torchdoctor.model import PROCESS_ENDED, Resemblance, Suspect
from torchdoctor.records import replace


def with_resemblances(suspect: Suspect, rules: RuleSet) -> Suspect:
    """The suspect with the rules whose known messages come nearest to its own, at most three."""
    if suspect.message.startswith(PROCESS_ENDED) and suspect.message.removeprefix(PROCESS_ENDED).isdecimal():
        return suspect  # the words are those of every end, and the number is one that no rule knows
    near = nearest(rules_directory(), f"{suspect.type or ''}: {suspect.message}")
    known = [rules.rule(one.rule) for one in near if one.rule in rules]
    return replace(suspect, resembles=tuple(Resemblance(rule.id, rule.title) for rule in known))
