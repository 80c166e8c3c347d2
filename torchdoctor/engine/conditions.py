"""One fact, one word, one constant: three-valued evaluation of rule conditions."""

from __future__ import annotations

from collections.abc import Iterable

from torchdoctor.catalog.rule import Condition
from torchdoctor.extract import meaning
from torchdoctor.model import Fact, FactValue, State, TorchdoctorError


class ConditionError(TorchdoctorError):
    """A condition whose word cannot be applied to its fact's value."""


def holds(condition: Condition, fact: Fact) -> bool | None:
    """True, False, or None when it cannot be told.

    A fact that is ABSENT was looked for and is not there: every word but ``absent`` and ``lacks`` is false.
    """
    if fact.state is State.UNKNOWN:
        return None
    if condition.word == "known":
        return fact.state is State.KNOWN
    if condition.word == "absent":
        return fact.state is State.ABSENT
    if fact.state is State.ABSENT:
        return condition.word == "lacks"
    return _apply(condition, fact.value)


def _apply(condition: Condition, value: FactValue) -> bool | None:
    constant = condition.constant
    word = condition.word
    if word == "is":
        return value == constant and isinstance(value, bool) == isinstance(constant, bool)
    if word == "in":
        return isinstance(constant, tuple) and value in constant
    if word in ("contains", "contains_any", "lacks"):
        wanted = constant if isinstance(constant, tuple) else (constant,)
        if not isinstance(value, (str, tuple)):
            return False
        found = [str(item) in value if isinstance(value, str) else item in value for item in wanted]
        return all(found) if word == "contains" else any(found) is (word == "contains_any")
    if word in ("at_least", "below"):
        try:
            reached = order_key(value) >= order_key(constant)
        except ConditionError:
            if not isinstance(value, str):
                raise
            return None  # a garbled text: whatever stands where a number or a version should
        return reached if word == "at_least" else not reached
    if word == "matches_version":
        from packaging.specifiers import SpecifierSet
        from packaging.version import InvalidVersion, Version

        try:
            version = Version(str(value))
        except InvalidVersion:
            return None  # as above
        return SpecifierSet(str(constant)).contains(version, prereleases=True)
    raise ConditionError(f"unknown word {word!r} in a condition on {condition.fact}")


def order_key(value: FactValue) -> tuple[float, ...]:
    """Numbers by size, version texts by their numeric parts."""
    if isinstance(value, (int, float)):
        return (float(value),)
    if isinstance(value, str):
        parts = value.partition("+")[0].split(".")
        try:
            return tuple(float(part) for part in parts)
        except ValueError as error:
            raise ConditionError(f"{value!r} has no order: neither a number nor a dotted version") from error
    raise ConditionError(f"{value!r} has no order")


def every(values: Iterable[bool | None]) -> bool | None:
    """False when any is false, else None when any cannot be told, else True."""
    result: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def in_words(condition: Condition, fact: Fact) -> str:
    """The condition and what was found, for people."""
    if fact.state is State.UNKNOWN:
        if fact.detail and fact.source.startswith("text:"):
            return fact.detail
        reason = fact.reason.value if fact.reason else "not-asked"
        return f"{condition.fact} ({reason})"
    said = meaning(condition.fact)
    if fact.state is State.ABSENT:
        return f"{condition.fact} = none ({said}: none)" if said else f"{condition.fact}: absent"
    value = shown(fact.value)
    detail = fact.detail or (f"{said}: {value}" if said else "")
    return f"{condition.fact} = {value}" + (f" ({detail})" if detail else "")


def as_text(fact: Fact) -> str:
    """The value as text; "" where it is not known."""
    return str(fact.value) if fact.state is State.KNOWN else ""


def shown(value: FactValue) -> str:
    """A fact's value as people write it."""
    if isinstance(value, tuple):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "…"
