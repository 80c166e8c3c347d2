"""``torchdoctor lint``: pitfalls of training code, found in the source before the run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import exit_codes, progress, streams, verdicts

if TYPE_CHECKING:
    from torchdoctor.lint.run import Linted
    from torchdoctor.model import Report

_FORMATS = ("sarif", "github")


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="[PATHS]")
@verdicts.format_option("For people, programs, code scanning, or GitHub's annotations.", *_FORMATS)
@click.option("--select", metavar="IDS", multiple=True, help="Look only for these: ids separated by commas.")
@click.option("--ignore", metavar="IDS", multiple=True, help="Do not look for these.")
@click.option("--exclude", metavar="PATTERN", multiple=True, help="Skip what matches, as in .gitignore.")
@click.option("--advice", is_flag=True, help="Also look for group 2: what is often, but not always, a fault.")
@click.option("--fix", is_flag=True, help="Make the safe repairs, and report what remains.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option("--statistics", is_flag=True, help="Only count the findings of each id.")
@click.option("--list", "listed", is_flag=True, help="List what is looked for, and stop.")
@click.option("--stdin-filename", metavar="PATH", help="What the file on standard input (-) is called.")
@verdicts.output_option
@verdicts.fail_on_option("problems (group 1)")
def command(
    paths: tuple[str, ...],
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    advice: bool,
    fix: bool,
    diff: bool,
    statistics: bool,
    listed: bool,
    stdin_filename: str | None,
    fail_on: str,
) -> int:
    """Find the pitfalls of training code in PATH: files, notebooks, folders, or - for standard input.

    Nothing is run or imported. `# torchdoctor: ignore[ID]` on a line hides a finding; settings are in
    [tool.torchdoctor.lint] of pyproject.toml. `torchdoctor rules show ID` explains one of them.

    Exit codes: 0 nothing at or above --fail-on, 1 findings (with --diff: something would change), 2 a usage
    error, a mistake in settings or in an ignore comment (the rest is done), 70 a fault of torchdoctor.
    """
    if listed:
        from torchdoctor.lint.page import listing

        streams.write(listing())
        return 0
    if not paths:
        raise click.UsageError("name what to check: torchdoctor lint PATH")
    if fix and diff:
        raise click.UsageError("--diff writes nothing, --fix does; choose one")
    if "-" in paths and len(paths) > 1:
        raise click.UsageError("- is standard input, and stands alone")
    if "-" in paths and fix:
        raise click.UsageError("--fix writes files; of standard input --diff shows the repair")
    from torchdoctor.lint.run import MOST_READ, Run
    from torchdoctor.lint.settings import Asked

    asked = Asked(_split(select), _split(ignore), exclude, advice)
    run = Run(asked, "fix" if fix else "diff" if diff else "")
    if "-" in paths:
        done = run.text(sys.stdin.buffer.read(MOST_READ), stdin_filename or "-")
    else:
        with progress.waiting("reading the code"):
            done = run.paths(paths)
    _show(done, form, diff, statistics)
    for mistake in done.mistakes:
        streams.complain(mistake)
    return _code(done, fail_on, diff)


def _split(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one.strip() for part in given for one in part.split(",") if one.strip())


def _show(done: Linted, form: str, diff: bool, statistics: bool) -> None:
    with streams.shown():
        if diff and form == "text":
            sys.stdout.write(_for_terminal("".join(done.changes)))
        elif form == "json":
            from torchdoctor.render.json import to_json

            streams.write(to_json(done.report))
        elif form == "sarif":
            from torchdoctor import __version__
            from torchdoctor.render.sarif import to_sarif

            streams.write(to_sarif(done.report, __version__))
        elif form == "github":
            from torchdoctor.render.github import to_github

            sys.stdout.write(to_github(done.report))
        elif done.files or not done.mistakes:  # nothing was read: no tick
            _text(done, statistics)


def _for_terminal(diff: str) -> str:
    """A diff as it is, to be applied; on a terminal without what a source could do to that."""
    if not sys.stdout.isatty():
        return diff
    from torchdoctor.render.clean import clean

    return "".join(f"{clean(line)}\n" for line in diff.splitlines())


def _text(done: Linted, statistics: bool) -> None:
    from torchdoctor.model import counted
    from torchdoctor.render.pitfalls import render_pitfalls

    subject = f" in {counted(done.files, 'file')}"
    if done.repaired:
        subject += f"; {counted(done.repaired, 'file')} repaired"
    if done.fixable:
        subject += f"; --fix repairs {done.fixable}"
    render_pitfalls(
        done.report,
        stream=sys.stdout,
        subject=subject,
        width=streams.screen()[0],
        color=streams.color_wanted(),
        statistics=statistics,
    )


def _code(done: Linted, fail_on: str, diff: bool) -> int:
    if done.report.faults:
        streams.complain(f"a fault of torchdoctor; other results are valid:\n{done.report.faults[0]}")
        return exit_codes.OUR_FAULT
    if done.mistakes:
        return exit_codes.USAGE
    if diff:
        return exit_codes.FINDINGS if done.changes else 0
    return exit_codes.FINDINGS if _counts(done.report, fail_on) else 0


def _counts(report: Report, fail_on: str) -> bool:
    from torchdoctor.model import Severity

    counted = {"fail": (Severity.FATAL,), "warn": (Severity.FATAL, Severity.WARNING), "never": ()}[fail_on]
    return any(item.severity in counted for item in report.diagnoses)
