"""``torchdoctor check``: what will fail on this machine, before anything is run."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import verdicts

if TYPE_CHECKING:
    from torchdoctor.engine import FactBook
    from torchdoctor.model import Report


@click.command("check")
@verdicts.python_option
@verdicts.format_option(
    "For people, JSON, JUnit XML, or GitHub's annotations and step summary.", *verdicts.CI
)
@verdicts.fail_on_option()
@verdicts.strict_option
@click.option(
    "--facts", "facts_file", metavar="FILE", help="Check a recorded machine (see torchdoctor facts --save)."
)
@click.option("--rules", "folders", metavar="DIR", multiple=True, help="A folder with more rules.")
@click.option(
    "--time-limit",
    type=click.FloatRange(1, 3600),
    metavar="SECONDS",
    help="How long all of it may take, two thirds of it for `import torch`.  [default: 30; 300 with --target "
    "or --model]",
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
@click.option("-v", "--verbose", is_flag=True, help="Also show the checks that passed, and full reasons.")
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
    verbose: bool,
) -> int:
    """Check this machine and its torch for what will fail, before you run anything.

    Looks at the active environment's interpreter from outside; nothing is installed or changed, and no GPU
    memory is used.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 something could not be
    determined (with --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.engine import FactBook

    if facts_file is not None:
        for option, value in (("--python", python), ("--target", target), ("--model", model)):
            if value is not None:
                raise click.UsageError(f"--facts names a recorded machine, {option} is run on this one")
        from torchdoctor.probes.recorded import load_facts

        facts = FactBook(load_facts(facts_file))
        report = _examined(facts, folders)
    else:
        limit_s = time_limit or (30.0 if target is None and model is None else 300.0)
        facts, report = _live(python, limit_s, folders, target, model)
    verdicts.show(report, form, partial(_subject, facts), verbose, "torchdoctor.check")
    return verdicts.exit_code(report, fail_on, strict)


def _live(
    python: str | None, limit_s: float, folders: tuple[str, ...], target: str | None, model: str | None
) -> tuple[FactBook, Report]:
    from torchdoctor.cli.progress import Line
    from torchdoctor.engine import FactBook
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import open_live, pick
    from torchdoctor.records import replace

    program = None
    if target is not None:
        from torchdoctor.watch import parse

        (program,) = parse((target,))
    line = Line()
    with ended_by_signals(), ended_with_us():
        deadline = time.monotonic() + limit_s
        chosen = pick(python)
        source = open_live(chosen.python, limit_s)
        source.tell = lambda what: line.put_late(f"waiting for {what}")
        try:
            facts = FactBook(source)
            report = _examined(facts, folders)
            if program is not None:
                from torchdoctor.watch import merged, run

                report = merged(report, [run(program, chosen.python, _left(deadline))])
            if model is not None:
                from torchdoctor.ddp.report import merged as with_model
                from torchdoctor.ddp.session import check_factory

                report = with_model(report, check_factory(model, chosen.python, _left(deadline)))
        finally:
            line.clear()
            source.close()
    report = replace(report, faults=(*source.faults, *report.faults))
    return facts, verdicts.with_note(report, chosen.note)


def _left(deadline: float) -> float:
    return max(1.0, deadline - time.monotonic())


def _examined(facts: FactBook, folders: tuple[str, ...]) -> Report:
    from torchdoctor.cli import loading
    from torchdoctor.engine.check import check
    from torchdoctor.engine.torch_imports import with_import

    return with_import(check(facts, loading.rules(folders)), facts)


def _subject(facts: FactBook) -> str:
    from torchdoctor.probes.fact_table import subject

    return subject(facts.machine)
