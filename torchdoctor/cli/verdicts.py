"""What the commands that give verdicts share: their options, how a report is shown, and their exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from torchdoctor.cli import exit_codes, streams

if TYPE_CHECKING:
    from torchdoctor.model import Report
    from torchdoctor.probes.machine import Machine


CI = ("junit", "github")
_COUNTED: dict[str, set[str]] = {"fail": {"fail"}, "warn": {"fail", "warn"}, "never": set()}
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Renamed(click.Option):
    """An option that still answers to ``earlier`` names, which neither help nor messages show."""

    def __init__(self, names: Sequence[str], *, earlier: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(names, **settings)
        self.earlier = list(earlier)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        parser.add_option(self, self.earlier, dest=self.name, action="store", nargs=1)


python_option = click.option(
    "--python", metavar="PATH", help="The interpreter or environment that runs your program."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Exit 3 when something could not be determined and nothing else is wrong."
)


def _written_to(context: click.Context, _: click.Parameter, path: str | None) -> str | None:
    if path is not None and not context.resilient_parsing:
        context.with_resource(streams.into(path))
    return path


# of commands whose report goes to standard output, or else to this file
output_option = click.option(
    "-o",
    "--output",
    metavar="FILE",
    expose_value=False,
    callback=_written_to,
    help="Write the report to FILE, and not to standard output.",
)


def format_option(told: str = "For people, or JSON.", *more: str) -> Callable[[_Function], _Function]:
    """``--format``: text, the default, json, and ``more`` that one command has; ``told`` is the help."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", *more]),
        default="text",
        show_default=True,
        help=told,
    )


def fail_on_option(worst: str = "problems") -> Callable[[_Function], _Function]:
    """``--fail-on``; ``worst`` is what the command calls a failure."""
    return click.option(
        "--fail-on",
        type=click.Choice(list(_COUNTED)),
        default="fail",
        show_default=True,
        help=f"Exit 1 at {worst}, at warnings too, or never.",
    )


def time_limit_option(seconds: int | None, told: str, most: int = 86400) -> Callable[[_Function], _Function]:
    """``--time-limit``: ``seconds`` is the default, ``told`` the help, which tells one that depends."""
    return click.option(
        "--time-limit",
        type=click.FloatRange(1, most),
        default=seconds,
        show_default=seconds is not None,
        metavar="SECONDS",
        help=told,
    )


def facts_option(told: str, metavar: str = "FILE") -> Callable[[_Function], _Function]:
    """``--facts``: a recorded machine instead of this one; ``told`` is the help."""
    return click.option("--facts", cls=Renamed, earlier=["--replay"], metavar=metavar, help=told)


def can_be_written(option: str, path: str | None) -> None:
    """Told before the work is done, not when the time is spent. Raises UsageError."""
    if not path:
        return
    folder = os.path.dirname(path)
    if folder and not path.endswith("/") and not os.path.isdir(folder):
        raise click.UsageError(f"{option} {path}: there is no folder {folder}")
    from torchdoctor.gate.files import refusal

    why = refusal(path)
    if why == "is a folder":
        hint = "name a file" if option == "--prometheus" else f"name a file, or {path}/ for one in it"
        raise click.UsageError(f"{option} {path}: this is a folder; {hint}")
    if why:
        raise click.UsageError(f"{option} {path}: {why}")


def recorded(facts: str | None) -> Machine | None:
    """The machine of a recording; None for the one that this runs on. Raises what a bad recording does."""
    if facts is None:
        return None
    from torchdoctor.probes.recording import RecordedSource

    return RecordedSource(facts).machine


def with_note(report: Report, note: str) -> Report:
    """The report, with a first note where there is one to make."""
    from torchdoctor.records import replace

    return replace(report, notes=(note, *report.notes)) if note else report


def show(report: Report, form: str, subject: Callable[[], str], verbose: bool, suite: str = "") -> None:
    """Write the report as text, JSON or for CI; ``subject`` is asked only where it is shown.

    ``suite`` is the name that JUnit gives to the checks.
    """
    if form in CI:
        for_ci(report, form, suite)
        return

    def text(**screen: Any) -> None:
        from torchdoctor.render.checks import render_checks

        render_checks(report, subject=subject(), verbose=verbose, **screen)

    write(report, form, text)


def for_ci(report: Report, form: str, suite: str) -> None:
    """Write JUnit XML, or GitHub's annotations and the summary of the step."""
    with streams.shown():
        if form == "junit":
            from torchdoctor.render.junit import to_junit

            streams.write(to_junit(report, suite))
        else:
            from torchdoctor.render.github import step_summary, to_github

            sys.stdout.write(to_github(report))
            streams.step_summary(step_summary(report))


def write(report: Report, form: str, text: Callable[..., None]) -> None:
    """Write the report as JSON, or have ``text`` write it to a ``stream``, in ``width`` and ``color``."""
    with streams.shown():
        if form == "json":
            from torchdoctor.render.json import to_json

            streams.write(to_json(report))
        else:
            text(stream=sys.stdout, width=streams.screen()[0], color=streams.color_wanted())


def exit_code(report: Report, fail_on: str, strict: bool) -> int:
    """The exit code of results of checks; see ``ended``."""
    found = {result.verdict.value for result in report.checks} & _COUNTED[fail_on]
    return ended(report, bool(found), bool(report.not_checked), strict)


def ended(report: Report, found: bool, unsure: bool, strict: bool) -> int:
    """70 a fault of ours, which is told; else 1 for what was ``found``, 3 could not tell, where ``strict``
    asks for it, 0."""
    if report.faults:
        streams.complain("a fault of torchdoctor; other results are valid:", *report.faults[0].splitlines())
        return exit_codes.OUR_FAULT
    if found:
        return exit_codes.FINDINGS
    return exit_codes.COULD_NOT_TELL if strict and unsure else 0
