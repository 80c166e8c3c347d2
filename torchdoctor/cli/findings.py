"""What ``checkpoint`` and ``hang`` share: how a report of findings is shown, and its exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdoctor.cli import verdicts

if TYPE_CHECKING:
    from torchdoctor.model import Report

_COUNTED = {"fail": {"fatal"}, "warn": {"fatal", "warning"}, "never": set()}


def show(report: Report, form: str, clear: str, verbose: bool) -> None:
    """Write the report as text or JSON; ``clear`` is the verdict when nothing is wrong."""

    def text(**screen: Any) -> None:
        from torchdoctor.render.findings import render_findings

        render_findings(report, clear=clear, verbose=verbose, **screen)

    verdicts.write(report, form, text)


def exit_code(report: Report, fail_on: str, strict: bool) -> int:
    """1: findings at or above ``fail_on``; 3, where ``strict`` asks for it: something is not known."""
    found = {one.severity.value for one in report.diagnoses} & _COUNTED[fail_on]
    unsure = bool(report.not_checked) or report.outcome.value == "unrecognised"
    return verdicts.ended(report, bool(found), unsure, strict)
