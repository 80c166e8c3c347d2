"""Which rules know messages like that of a failure which none of them knows."""

from __future__ import annotations

from torchdoctor.catalog import RuleSet, rules_directory
from torchdoctor.catalog.nearest import nearest
from torchdoctor.model import PROCESS_ENDED, ReadingKind, Resemblance, Suspect
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

# what is read whole: other messages of the same words are about another module, header or signal
_READ = frozenset({
    ReadingKind.BUILD_FAILED, ReadingKind.INSTALL_FAILED, ReadingKind.MODULE_MISSING,
    ReadingKind.NAME_MISSING, ReadingKind.LIBRARY_MISSING, ReadingKind.PROGRAM_MISSING,
    ReadingKind.EXITED, ReadingKind.ENDED_OUTSIDE,
})  # fmt: skip
_SHELL_WORDS = 8  # of a shell's line on a signal
# of these the words are Python's or the system's, whatever failed: the name in them is all that tells
_NAMES_ONLY = ("NameError", "UnboundLocalError", "KeyError", "FileNotFoundError")
_ERRNO = r"\[Errno \d+\]|: No such file or directory\b"


def with_resemblances(suspect: Suspect, rules: RuleSet) -> Suspect:
    """The suspect with the rules whose known messages come nearest to its own, at most three."""
    if suspect.message.startswith(PROCESS_ENDED) and suspect.message.removeprefix(PROCESS_ENDED).isdecimal():
        return suspect  # the words are those of every end, and the number is one that no rule knows
    if (
        not suspect.message
        or (suspect.type or "").endswith(_NAMES_ONLY)
        or pattern(_ERRNO).search(suspect.message[:2_000])
    ):
        return suspect
    reading = suspect.reading
    if reading is not None and (
        reading.kind in _READ
        or (reading.kind is ReadingKind.NATIVE_CRASH and len(suspect.message.split()) <= _SHELL_WORDS)
    ):
        return suspect
    near = nearest(rules_directory(), f"{suspect.type or ''}: {suspect.message}")
    known = [rules.rule(one.rule) for one in near if one.rule in rules]
    return replace(suspect, resembles=tuple(Resemblance(rule.id, rule.title) for rule in known))
