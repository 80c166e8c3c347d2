"""``torchdoctor explain``: why a run failed, from its logs."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, BinaryIO, cast

import click
from click.core import ParameterSource

from torchdoctor.cli import exit_codes, loading, streams, verdicts
from torchdoctor.cli.plain import PlainHelp
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import ALL_RUNS, STDIN, Local, explain, explain_each, explain_runs
from torchdoctor.model import Outcome, Report
from torchdoctor.number import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from torchdoctor.engine.incident import Answer, Publisher
    from torchdoctor.model import Transcript
    from torchdoctor.probes import ProbeSource

    Heading = Callable[[Report, int], str]

_PUBLIC = ("markdown", "html", "github")  # formats for others to read


@click.command("explain", cls=PlainHelp)
@click.argument("files", metavar="[FILE…|-]", nargs=-1)
@click.option(
    "--each", is_flag=True, help="Treat each FILE, and each file below a folder, as a separate incident."
)
@click.option(
    "--run",
    metavar="N|all",
    help="Explain run N of the input, or all of its runs, instead of the last one.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "jsonl", "markdown", "html", "github"]),
    default="text",
    show_default=True,
    help="Text for people; one JSON report; one report per line; Markdown for an issue; one HTML page that "
    "needs no network; or annotations and a step summary for GitHub Actions.",
)
@click.option(
    "--redact/--no-redact",
    default=None,
    help="Replace names of people, hosts and addresses, and secrets, with placeholders. The default for "
    "Markdown, HTML and GitHub.",
)
@click.option("--offline", is_flag=True, help="Judge by the text alone, and look at nothing on this machine.")
@click.option(
    "--here",
    is_flag=True,
    help="The log is from this machine: also use its facts, and query its Python and tools. By default only "
    "facts from files are used, when the log quotes lines of your own code that are in your files.",
)
@click.option(
    "--python",
    metavar="PATH",
    help="Like --here, with the interpreter (or environment) that the run used.",
)
@click.option("--facts", "facts_file", metavar="FILE", help="Take the facts of the machine from FILE (JSON).")
@click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="A folder with more rules (DIR/FAMILY/ID.toml); may be given several times.",
)
@verdicts.output_option
@click.option(
    "--fail-on",
    type=click.Choice(["unknown"]),
    help="Exit 4 when the text holds a failure that no rule knows.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 256), default=1, metavar="N", help="With --each: use N processes."
)
@click.option(
    "--tee",
    is_flag=True,
    help="Pass standard input on to standard output while it is read; the report goes to standard error.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show all evidence, facts, reasons and references.")
def command(
    files: tuple[str, ...],
    each: bool,
    run: str | None,
    form: str,
    redact: bool | None,
    offline: bool,
    here: bool,
    python: str | None,
    facts_file: str | None,
    folders: tuple[str, ...],
    fail_on: str | None,
    jobs: int,
    tee: bool,
    verbose: bool,
) -> int:
    """Explain why a run failed: the cause, the lines that prove it, what followed, what to change.

    FILE is a log or a folder of logs; "-" is standard input, which is also read when something is piped in.
    Ctrl-C or SIGTERM while that is read ends the reading, and what was read is explained.

    Exit codes: 0 done, 2 a usage error or an input that cannot be read (the others are still
    done), 4 with --fail-on unknown, 130 or 143 after Ctrl-C or SIGTERM, 70 a fault of torchdoctor.
    """
    files = files or _piped()
    _refuse_mistakes(files, each, run, offline, here, python, facts_file, tee, jobs)
    number = _number(run)
    facts = _facts(facts_file)
    local = None if offline else _local(here, python)
    rules = loading.rules(folders)
    public = redact if redact is not None else form in _PUBLIC
    publish = _publisher() if public else None
    if form == "github":
        publish = _in_workspace(publish)
    heading = _heading(each, number)
    seen = _Seen()
    with _standard_input(STDIN in files, tee) as stdin, _report_stream(tee), streams.shown():
        if each:
            answers: Iterable[Answer] = explain_each(
                files, facts, rules, stdin, local, publish=publish, jobs=jobs
            )
        elif number == ALL_RUNS:
            answers = explain_runs(files, facts, rules, stdin, local, publish=publish)
        else:
            answers = _one(lambda: explain(files, facts, rules, stdin, local, run=number, publish=publish))
        if stdin is None:  # which tells by itself how far it is
            answers = _awaited(answers, files)
        _write(seen.watch(answers), form, heading, verbose)
    if signal := getattr(stdin, "signal", 0):
        return 128 + int(signal)
    if seen.faults:
        return exit_codes.OUR_FAULT
    if seen.unreadable:
        return exit_codes.USAGE
    return exit_codes.UNKNOWN_FAILURE if fail_on and Outcome.UNRECOGNISED in seen.outcomes else 0


def _heading(each: bool, number: int | None) -> Heading | None:
    if not each and number != ALL_RUNS:
        return None
    from torchdoctor.render import words

    return words.heading_of_input if each else words.heading_of_run


def _piped() -> tuple[str, ...]:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(
            "no FILE. Name a log, or pipe one in: python train.py 2>&1 | torchdoctor explain"
        )
    return (STDIN,)


def _refuse_mistakes(
    files: tuple[str, ...],
    each: bool,
    run: str | None,
    offline: bool,
    here: bool,
    python: str | None,
    facts_file: str | None,
    tee: bool,
    jobs: int,
) -> None:
    if STDIN in files and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    if tee and STDIN not in files:
        raise click.UsageError("--tee passes standard input through: pipe a log in, and name no FILE or -")
    if run is not None and each:
        raise click.UsageError("--run takes the runs of one incident, --each takes several: choose one")
    if jobs > 1 and (STDIN in files or not each):
        raise click.UsageError(
            "--jobs shares the files of --each among processes: add --each, and name files"
        )
    if offline and (here or python):
        asks = "--here" if here else "--python"
        raise click.UsageError(f"--offline looks at nothing on this machine, {asks} does: choose one")
    if facts_file and python:
        raise click.UsageError("--facts names a recorded machine, --python an interpreter on this one")


class _Seen:
    """What came by: decides the exit code once all is written."""

    def __init__(self) -> None:
        self.outcomes: set[Outcome] = set()
        self.unreadable = False
        self.faults = False

    def watch(self, answers: Iterable[Answer]) -> Iterator[Report]:
        for answer in answers:
            self.outcomes |= {answer.report.outcome, *(one.outcome for one in answer.report.incidents)}
            for complaint in answer.unreadable:
                self.unreadable = True
                streams.complain(complaint)
            for fault in answer.report.faults:
                self.faults = True
                streams.complain(f"a fault of torchdoctor, please report it: {fault}")
            yield answer.report


def _one(explained: Callable[[], Answer]) -> Iterator[Answer]:
    """The only answer, made when it is asked for, as each of several is."""
    yield explained()


def _awaited(answers: Iterable[Answer], files: tuple[str, ...]) -> Iterable[Answer]:
    """The answers; a person who waits for one is told how long it takes."""
    if not sys.stderr.isatty():
        return answers
    from torchdoctor.cli.progress import waited_for

    return waited_for(answers, f"reading {files[0]}{' and others' if files[1:] else ''}")


def _number(run: str | None) -> int | None:
    if run is None or run == "all":
        return None if run is None else ALL_RUNS
    number = count(run)
    if not number:
        raise click.UsageError(f"--run {run}: give the number of a run, from 1 on, or all")
    return number


def _standard_input(wanted: bool, tee: bool) -> AbstractContextManager[BinaryIO | None]:
    """Standard input, where it is read; with a descriptor as ``Piped``."""
    if not wanted:
        return nullcontext()
    try:
        source = sys.stdin.fileno()
    except (OSError, ValueError):  # put there by who called, not by the system
        return nullcontext(sys.stdin.buffer)
    if sys.platform == "win32":
        return nullcontext(sys.stdin.buffer)
    from torchdoctor.cli.piped import Piped

    return cast("AbstractContextManager[BinaryIO]", Piped(source, 1 if tee else None))


def _report_stream(tee: bool) -> AbstractContextManager[object]:
    """Standard error for the report, where standard output passes the input through and no file was named."""
    named = click.get_current_context().get_parameter_source("output")
    return redirect_stdout(sys.stderr) if tee and named is ParameterSource.DEFAULT else nullcontext()


def _local(here: bool, python: str | None) -> Local:
    """This machine; an interpreter that was named is looked for at once, so that a mistake is told."""
    named = None
    if python is not None:
        from torchdoctor.probes.opening import resolve

        named = resolve(python)

    def probes(programs: bool, site: str) -> ProbeSource:
        from torchdoctor.probes.opening import open_for_log

        return open_for_log(named, programs, site)

    return Local(probes, sure=here or named is not None)


def _publisher() -> Publisher:
    from torchdoctor.share.publish import published

    return published


def _in_workspace(publish: Publisher | None) -> Publisher:
    """Files of the checkout as the repository names them, before the folders above them are replaced."""
    from torchdoctor.render.github import in_workspace

    root = os.environ.get("GITHUB_WORKSPACE", "")

    def named(report: Report, transcript: Transcript, here: bool) -> Report:
        report = in_workspace(report, root)
        return publish(report, transcript, here) if publish is not None else report

    return named


def _facts(path: str | None) -> FactBook:
    if path is None:
        return FactBook(None)
    from torchdoctor.probes.recorded import load_facts

    return FactBook(load_facts(path))


def _write(reports: Iterator[Report], form: str, heading: Heading | None, verbose: bool) -> None:
    if form == "text":
        _write_text(reports, heading, verbose)
        return
    if form in ("markdown", "html"):
        _write_document(list(reports), form, heading)
        return
    if form == "github":
        _write_github(reports)
        return
    from torchdoctor.render.json import to_json

    if form == "jsonl" or not heading:
        for report in reports:
            streams.write(to_json(report))
        return
    # an array, written as it comes: thousands of files need not fit into memory
    for number, report in enumerate(reports):
        streams.write(("[" if number == 0 else ",") + to_json(report))
    streams.write("]")


def _write_github(reports: Iterator[Report]) -> None:
    from torchdoctor.render.github import step_summary, to_github

    for report in reports:
        sys.stdout.write(to_github(report))
        streams.step_summary(step_summary(report))


def _write_document(reports: list[Report], form: str, heading: Heading | None) -> None:
    headings = [heading(report, index) for index, report in enumerate(reports)] if heading else []
    if form == "html":
        from torchdoctor.render.html import to_html

        streams.write_page(to_html(reports, headings=headings))
        return
    from torchdoctor.render.markdown import documents

    streams.write(documents(reports, headings=headings))


def _write_text(reports: Iterator[Report], heading: Heading | None, verbose: bool) -> None:
    from torchdoctor.render.text import render

    width, height = streams.screen()
    color = streams.color_wanted()
    first = True
    for index, report in enumerate(reports):
        if report.outcome is Outcome.UNREADABLE:
            continue  # said on standard error
        if not first:
            streams.write("")
        first = False
        render(
            report,
            stream=sys.stdout,
            width=width,
            height=height,
            color=color,
            verbose=verbose,
            heading=heading(report, index) if heading else None,
        )
