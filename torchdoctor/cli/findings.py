"""What ``checkpoint`` and ``hang`` share: how a report of findings is shown, and its exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from torchdoctor.cli import exit_codes, streams

if TYPE_CHECKING:
    from torchdoctor.model import Report

_COUNTED = {"fail": {"fatal"}, "warn": {"fatal", "warning"}, "never": set()}


def show(report: Report, form: str, clear: str, verbose: bool) -> None:
    """Write the report as text or JSON; ``clear`` is the verdict when nothing is wrong."""
    if form == "json":
        from torchdoctor.render.json import to_json

        with streams.shown():
            streams.write(to_json(report))
        return
    from torchdoctor.render.findings import render_findings

    with streams.shown():
        render_findings(
            report,
            stream=sys.stdout,
            clear=clear,
            width=streams.screen()[0],
            color=streams.color_wanted(),
            verbose=verbose,
        )


def exit_code(report: Report, fail_on: str, strict: bool) -> int:
    """1: findings at or above ``fail_on``; 3, where ``strict`` asks for it: something is not known."""
    if report.faults:
        streams.complain(f"a fault in torchdoctor; the rest of the report is valid:\n{report.faults[0]}")
        return exit_codes.OUR_FAULT
    if {one.severity.value for one in report.diagnoses} & _COUNTED[fail_on]:
        return exit_codes.FINDINGS
    unsure = bool(report.not_checked) or report.outcome.value == "unrecognised"
    return exit_codes.COULD_NOT_TELL if strict and unsure else 0
