"""The rules of the catalog, loaded once for all tests."""

from __future__ import annotations

import pytest

from torchdoctor import catalog
from torchdoctor.catalog import RuleSet


@pytest.fixture(scope="session")
def rules() -> RuleSet:
    return catalog.load()
