"""The failure catalog: rule files, their compiled form, and the set of rules the engine asks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from torchdoctor.catalog.ruleset import RuleSet, UnknownRuleError

__all__ = ["RuleSet", "UnknownRuleError", "load", "rules_directory"]

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
    from torchdoctor.catalog.compile import packed

    if directory is None:
        ready = os.path.join(_PACKAGE, "_rules", "catalog.json")
        try:
            with open(ready, "rb") as file:
                packs = [file.read()]
        except OSError:
            packs = [packed(rules_directory())]
    else:
        packs = [packed(directory)]
    if not extra:
        return RuleSet(packs)
    from torchdoctor.catalog.loader import read_groups

    base = RuleSet(packs)
    groups = read_groups(directory or rules_directory(), [])
    for folder in extra:
        packs.append(packed(folder, base.ids(), groups))
        base = RuleSet(packs)
    return base
