"""The failure catalog: rule files, their compiled form, and the set of rules the engine asks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from torchdoctor.catalog.ruleset import RuleSet, UnknownRuleError

__all__ = ["RuleSet", "UnknownRuleError", "load", "load_with_packs", "rules_directory"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def rules_directory() -> str:
    """Where the rule files lie: inside the package in a wheel, beside it in a checkout."""
    inside = os.path.join(_PACKAGE, "_rules")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(_PACKAGE), "rules")


def load(directory: str | None = None, extra: Sequence[str] = ()) -> RuleSet:
    """The catalog, with the rules of further folders added to it.

    ``directory`` replaces the shipped catalog. Raises CatalogError with all problems of all files.
    Reads one compiled file; parses TOML only when that is missing or stale.
    """
    rules = RuleSet([_shipped() if directory is None else _packed(directory)])
    for folder in extra:
        rules.add(_addition(folder, rules, directory))
    return rules


def _shipped() -> bytes:
    try:
        with open(os.path.join(_PACKAGE, "_rules", "catalog.json"), "rb") as file:
            return file.read()
    except OSError:
        return _packed(rules_directory())


def _packed(directory: str) -> bytes:
    from torchdoctor.catalog.compile import packed

    return packed(directory)


def load_with_packs(extra: Sequence[str] = ()) -> tuple[RuleSet, tuple[str, ...]]:
    """The catalog with the packs that are installed beside it, then the rules of further folders.

    A pack that cannot be used is left out, and told in the second value: whoever runs the doctor can seldom
    mend what somebody else installed. Raises CatalogError for faults in the catalog or in ``extra``.
    """
    from torchdoctor.catalog.packs import installed

    rules = load()
    packs, problems = installed()
    told = list(problems)
    for name, folder in packs:
        from torchdoctor.catalog.reader import CatalogError

        try:
            rules.add(_addition(folder, rules, None))
        except CatalogError as error:
            told.append(f"rule pack {name} is left out:")
            told.extend(f"  {problem}" for problem in error.problems)
    for folder in extra:
        rules.add(_addition(folder, rules, None))
    return rules, tuple(told)


def _addition(folder: str, rules: RuleSet, directory: str | None) -> bytes:
    from torchdoctor.catalog.compile import packed

    def groups() -> dict[str, list[str]]:
        from torchdoctor.catalog.loader import read_groups

        return read_groups(directory or rules_directory(), [])

    return packed(folder, rules.ids(), groups)
