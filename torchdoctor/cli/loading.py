"""The rules a command works with: the catalog, the packs installed beside it, the folders named."""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor import catalog
from torchdoctor.cli import streams


def rules(folders: Sequence[str]) -> catalog.RuleSet:
    """All rules; a pack that cannot be used is told on standard error. Raises CatalogError."""
    found, problems = catalog.load_with_packs(folders)
    for problem in problems:
        streams.complain(problem)
    return found
