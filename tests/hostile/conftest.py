"""The marks of the situations."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "held_before: the situation held already before version 0.2")
