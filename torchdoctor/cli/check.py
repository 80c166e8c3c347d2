"""``torchdoctor check``: what will fail on this machine, before anything is run."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import exit_codes, streams, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.cli.progress import Line
    from torchdoctor.engine import FactBook
    from torchdoctor.model import FactSource, Report
    from torchdoctor.probes import ProbeSource
    from torchdoctor.probes.probe import Limits
    from torchdoctor.watch import Target


_IMPORT_S = 20.0
_DOCUMENTS = ("markdown", "html", "collect-env")


@click.command("check")
@verdicts.python_option
@verdicts.format_option(
    "For people, JSON, JUnit XML, GitHub, Markdown, a page, or torch's own report (collect-env).",
    *verdicts.CI,
    *_DOCUMENTS,
)
@verdicts.output_option
@verdicts.fail_on_option()
@verdicts.strict_option
@click.option(
    "--facts", "facts_file", metavar="FILE", help="Check a recorded machine (see torchdoctor facts --save)."
)
@click.option("--rules", "folders", metavar="DIR", multiple=True, help="A folder with more rules.")
@verdicts.time_limit_option(
    None,
    "How long all of it may take, two thirds for `import torch` (else 20 s).  [default: 30; 300 with --deep, "
    "--target or --model]",
    3600,
)
@click.option(
    "--target",
    metavar="FILE|MODULE",
    help="Also import this program there, and report which of its lines changes a process-wide setting "
    "(see: torchdoctor globals).",
)
@click.option(
    "--model",
    metavar="MODULE:FACTORY",
    help="Also predict what DistributedDataParallel would raise on this model (see: torchdoctor ddp --help).",
)
@click.option(
    "--deep",
    is_flag=True,
    help="Also do in small what a run does: a kernel, Inductor, workers, a collective.",
)
@click.option(
    "--plan", is_flag=True, help="Say which torch fits this driver, GPU and Python, and the command for it."
)
@click.option(
    "-v", "--verbose", count=True, help="Also show the checks that passed, and full reasons; -vv: times too."
)
def command(
    python: str | None,
    form: str,
    fail_on: str,
    strict: bool,
    facts_file: str | None,
    folders: tuple[str, ...],
    time_limit: float | None,
    target: str | None,
    model: str | None,
    deep: bool,
    plan: bool,
    verbose: int,
) -> int:
    """Check this machine and its torch for what will fail, before you run anything.

    Looks at the active environment's interpreter from outside; nothing is installed or changed, and no GPU
    memory is used.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 something could not be
    determined (with --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.probes import ProbeSource
    from torchdoctor.probes.probe import Limits
    from torchdoctor.records import replace

    if facts_file is not None:
        for option, value in (
            ("--python", python), ("--target", target), ("--model", model), ("--deep", deep or None),
        ):  # fmt: skip
            if value is not None:
                raise click.UsageError(f"--facts names a recorded machine, {option} is run on this one")
    program = None
    if target is not None:
        from torchdoctor.watch import parse

        (program,) = parse((target,))
    limit_s = time_limit or (300.0 if target or model or deep else 30.0)
    deadline = time.monotonic() + limit_s
    limits = Limits.within(limit_s, None if time_limit else _IMPORT_S)
    with _opened(facts_file, python, limits, deep) as (source, note, line):
        facts = _facts(source)
        if plan:
            return _planned(facts, form, line)
        if form == "collect-env":
            if not isinstance(source, ProbeSource):
                raise click.UsageError(f"{facts_file}: a report, and no recording; collect-env needs one")
            return _collected(source, line)
        report = _examined(facts, folders)
        if deep:
            report = _deep(report, facts, line)
        if isinstance(source, ProbeSource):
            report = _with_programs(report, source, program, model, deadline)
            report = replace(report, faults=(*source.faults, *report.faults))
        line.clear()
        _show(verdicts.with_note(report, note), form, facts, verbose)
        if verbose > 1 and form == "text" and isinstance(source, ProbeSource):
            streams.write_lines(source.paced())
    return verdicts.exit_code(report, fail_on, strict)


@contextlib.contextmanager
def _opened(
    facts_file: str | None, python: str | None, limits: Limits, deep: bool
) -> Iterator[tuple[FactSource, str, Line]]:
    """The recorded machine or this one, a note on the interpreter that was chosen, the line of progress."""
    from torchdoctor.cli.progress import Line

    line = Line()
    if facts_file is not None:
        from torchdoctor.probes.recorded import load_facts

        yield load_facts(facts_file), "", line
        return
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import open_live, pick

    with ended_by_signals(), ended_with_us():
        chosen = pick(python)
        source = open_live(chosen.python, limits, deep=deep)
        source.tell = lambda what: line.put_late(f"waiting for {what}")
        try:
            yield source, chosen.note, line
        finally:
            line.clear()
            source.close()


def _facts(source: FactSource) -> FactBook:
    from torchdoctor.engine import FactBook  # the programs run while it loads

    return FactBook(source)


def _planned(facts: FactBook, form: str, line: Line) -> int:
    from torchdoctor.engine.plan import lines, plan, to_json

    found = plan(facts)
    line.clear()
    with streams.shown():
        streams.write(to_json(found) if form == "json" else "\n".join(lines(found)))
    return 0 if found.torch else exit_codes.FINDINGS


def _collected(source: ProbeSource, line: Line) -> int:
    from torchdoctor.probes.collect_env import lines
    from torchdoctor.share.publish import published_lines

    told = published_lines(lines(source.context))
    line.clear()
    with streams.shown():
        streams.write("\n".join(told))
    return 0


def _show(report: Report, form: str, facts: FactBook, verbose: int) -> None:
    if form == "github":  # which everybody reads who sees the run
        from torchdoctor.share.publish import published

        report = published(report, here=True)
    if form not in _DOCUMENTS:
        verdicts.show(report, form, partial(_subject, facts), bool(verbose), "torchdoctor.check")
        return
    from torchdoctor.render.checks_document import to_html, to_markdown

    with streams.shown():
        if form == "html":
            streams.write_page(to_html(report, _subject(facts)))
        else:
            from torchdoctor.share.publish import published, published_lines

            (subject,) = published_lines((_subject(facts),))[:1]
            streams.write(to_markdown(published(report, here=True), subject))


def _deep(report: Report, facts: FactBook, line: Line) -> Report:
    from torchdoctor.engine.deep import with_deep
    from torchdoctor.probes.deep import USES

    line.say(USES)
    return with_deep(report, facts)


def _with_programs(
    report: Report, source: ProbeSource, program: Target | None, model: str | None, deadline: float
) -> Report:
    """What --target and --model ask for, in the time that is left."""

    def left() -> float:
        return max(1.0, deadline - time.monotonic())

    if program is not None:
        from torchdoctor.watch import merged, run

        report = merged(report, [run(program, source.context.python, left())])
    if model is not None:
        from torchdoctor.ddp.report import merged as with_model
        from torchdoctor.ddp.session import check_factory

        report = with_model(report, check_factory(model, source.context.python, left()))
    return report


def _examined(facts: FactBook, folders: tuple[str, ...]) -> Report:
    from torchdoctor.cli import loading
    from torchdoctor.engine.check import check
    from torchdoctor.engine.torch_imports import with_import

    return with_import(check(facts, loading.rules(folders)), facts)


def _subject(facts: FactBook) -> str:
    from torchdoctor.probes.fact_table import subject

    return subject(facts.machine)
