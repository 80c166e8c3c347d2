"""The rules of the catalog, loaded once for all tests, and a cache that they share."""

from __future__ import annotations

import os

import pytest
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog import RuleSet

# pytest-xdist tells its workers the size of a terminal that they do not have
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def rules() -> RuleSet:
    return catalog.load()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache folder for commands that are to leave that of the user alone: the catalog is compiled once."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)
