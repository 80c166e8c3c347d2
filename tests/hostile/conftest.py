"""The marks of the situations, and what they share."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile.command import run


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "held_before: the situation held already before version 0.2")


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the catalog in it, so that not every situation compiles it."""
    folder = tmp_path_factory.mktemp("warm") / "work"
    folder.mkdir()
    assert run(["rules", "list"], folder).returncode == 0
    return folder.parent / "cache"
