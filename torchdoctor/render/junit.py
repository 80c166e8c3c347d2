"""Results of checks as JUnit XML: a suite of one test case for each check.

The common subset of what Ant, Jenkins, GitLab and pytest read: failed checks are failures, those that could
not be made are skipped, warnings pass and say why on standard output.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from torchdoctor.model import Verdict
from torchdoctor.render.clean import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import CheckResult, Report


def to_junit(report: Report, suite: str) -> str:
    """The report as XML in UTF-8; ``suite`` is its name, as ``torchdoctor.check``."""
    cases = [*_cases(report, suite)]
    failures = sum(one.verdict is Verdict.FAIL for one in report.checks)
    skipped = sum("<skipped" in case for case in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{len(report.faults)}"'
    name = _quoted(suite)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites {counts}>\n<testsuite name={name} {counts} skipped="{skipped}">\n'
        f"{''.join(cases)}</testsuite>\n</testsuites>\n"
    )


def _cases(report: Report, suite: str) -> Iterator[str]:
    for one in report.checks:
        yield _case(suite, one.id, _result(one))
    for left in report.not_checked:
        yield _case(suite, left.id, f"<skipped message={_quoted(left.reason)}/>")
    for fault in report.faults:
        head = fault.strip().rpartition("\n")[2]
        yield _case(suite, "torchdoctor", f"<error message={_quoted(head)}>{_text(fault)}</error>")


def _case(suite: str, name: str, inside: str) -> str:
    return f"<testcase classname={_quoted(suite)} name={_quoted(name)}>{inside}</testcase>\n"


def _result(one: CheckResult) -> str:
    told = _text("\n".join(_told(one)))
    if one.verdict is Verdict.FAIL:
        kind = one.blame.value if one.blame is not None else "failure"
        return f"<failure message={_quoted(one.title)} type={_quoted(kind)}>{told}</failure>"
    if one.verdict in (Verdict.UNKNOWN, Verdict.SKIP):
        return f"<skipped message={_quoted(one.reason or one.title)}/>"
    if one.verdict is Verdict.WARN:
        return f"<system-out>{_text(f'warning: {one.title}')}\n{told}</system-out>"
    return ""


def _told(one: CheckResult) -> Iterator[str]:
    yield from (item.text for item in one.evidence)
    if one.observed and not one.evidence:
        yield one.observed
    if one.expected:
        yield f"expected {one.expected}" + (f" ({one.threshold_source})" if one.threshold_source else "")
    if one.reason:
        yield " ".join(one.reason.split())
    if one.action:
        yield f"Do: {one.action}"


def _text(text: str) -> str:
    """Characters that XML may hold; ``clean`` leaves none of the others."""
    return escape("\n".join(map(clean, text.splitlines())), quote=False)


def _quoted(text: str) -> str:
    return f'"{escape(clean(" ".join(text.split())))}"'
