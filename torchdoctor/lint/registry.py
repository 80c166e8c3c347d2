"""All checks, by id, in the order of the catalog."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from torchdoctor.lint import checks
from torchdoctor.lint.finding import Check

SYNTAX_ERROR = "syntax-error"  # of a file that does not parse: no check finds it


@cache
def all_checks() -> dict[str, Check]:
    """One object of each check, sorted by group and id."""
    for module in pkgutil.iter_modules(checks.__path__):
        import_module(f"{checks.__name__}.{module.name}")
    made = [one() for one in _subclasses(Check) if "id" in one.__dict__]
    return {one.id: one for one in sorted(made, key=lambda one: (one.group, one.id))}


def _subclasses(kind: type[Check]) -> list[type[Check]]:
    found: list[type[Check]] = []
    for one in kind.__subclasses__():
        found += [one, *_subclasses(one)]
    return found


@cache
def all_ids() -> frozenset[str]:
    """Every id that can be selected or ignored."""
    return frozenset(all_checks())


def default_ids(advice: bool) -> frozenset[str]:
    """What is looked for when nobody selects: group 1, with ``advice`` group 2 as well."""
    return frozenset(id_ for id_, one in all_checks().items() if one.group < 2 or advice)
