"""The pytest plug-in: under each failed test with a known cause a section, and a property for JUnit.

Does nothing without ``--torchdoctor`` or ``torchdoctor = true`` in the settings of pytest.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

TITLE = "torchdoctor"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--torchdoctor``, and the key ``torchdoctor`` in the settings."""
    about = "explain failed tests whose cause torchdoctor knows"
    parser.getgroup("torchdoctor").addoption("--torchdoctor", action="store_true", help=about)
    parser.addini("torchdoctor", about, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Begin, where it is asked for."""
    if config.getoption("--torchdoctor") or config.getini("torchdoctor"):
        config.pluginmanager.register(Explaining(), "torchdoctor-explaining")


class Explaining:
    """Adds to the reports of failed tests."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, Any, None]:
        outcome = yield
        report: pytest.TestReport = outcome.get_result()
        error = call.excinfo.value if call.excinfo is not None else None
        if report.failed and isinstance(error, Exception):
            try:
                _explain(error, item, report)
            except Exception:
                return  # a fault here is none of the test's


def _explain(error: Exception, item: pytest.Item, report: pytest.TestReport) -> None:
    from torchdoctor.engine.context import OWN_CODE
    from torchdoctor.hooks.explain import of_error
    from torchdoctor.model import Outcome
    from torchdoctor.render.note import text

    found = of_error(error)
    if found.outcome is not Outcome.DIAGNOSED:
        return
    if found.diagnoses[0].rule == OWN_CODE and isinstance(error, AssertionError):
        return  # a failed test is no cause
    report.sections.append((TITLE, text(found)))
    rule = (TITLE, found.diagnoses[0].rule)
    item.user_properties.append(rule)  # which the report of the teardown takes to JUnit
    report.user_properties.append(rule)
