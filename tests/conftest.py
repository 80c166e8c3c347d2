"""The rules of the catalog, loaded once for all tests, and a cache that they share."""

from __future__ import annotations

import os
import signal

import pytest
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog import RuleSet

# pytest-xdist tells its workers the size of a terminal that they do not have
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# a job in the background of a script has it ignored, and so would every program that a test starts
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
