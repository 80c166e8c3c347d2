"""The catalog with the engine's answers to all fixtures: ten seconds, so once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor import catalog
from torchdoctor.workbench.lint import Catalog, examine

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def examined() -> Catalog:
    return examine(catalog.rules_directory(), str(ROOT / "fixtures"))


@pytest.fixture(scope="session")
def pages(examined: Catalog) -> dict[str, str]:
    return examined.pages()
