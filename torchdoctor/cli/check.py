"""``torchdoctor check``: what will fail on this machine, before anything is run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import verdicts

if TYPE_CHECKING:
    from torchdoctor.engine import FactBook
    from torchdoctor.model import FactSource
    from torchdoctor.probes import ProbeSource
    from torchdoctor.watch import Target


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
    help="How long `import torch` may take.  [default: 60]",
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
    if facts_file is not None:
        if python is not None:
            raise click.UsageError("--facts names a recorded machine, --python an interpreter on this one")
        if target is not None:
            raise click.UsageError("--target is imported on this machine, --facts names a recorded one")
        if model is not None:
            raise click.UsageError("--model is run on this machine, --facts names a recorded one")
        from torchdoctor.probes.recorded import load_facts

        return _finish(load_facts(facts_file), form, fail_on, strict, folders, verbose)
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import open_live

    program = None
    if target is not None:
        from torchdoctor.watch import parse

        (program,) = parse((target,))
    with ended_by_signals(), ended_with_us():
        source: ProbeSource = open_live(python, time_limit)
        try:
            return _finish(source, form, fail_on, strict, folders, verbose, program, model)
        finally:
            source.close()


def _finish(
    source: FactSource,
    form: str,
    fail_on: str,
    strict: bool,
    folders: tuple[str, ...],
    verbose: bool,
    target: Target | None = None,
    model: str | None = None,
) -> int:
    from torchdoctor.cli import loading
    from torchdoctor.engine import FactBook
    from torchdoctor.engine.check import check
    from torchdoctor.engine.torch_imports import with_import
    from torchdoctor.probes import ProbeSource

    facts = FactBook(source)
    report = with_import(check(facts, loading.rules(folders)), facts)
    if target is not None:
        from torchdoctor.watch import merged, run

        assert isinstance(source, ProbeSource)
        report = merged(report, [run(target, source.context.python)])
    if model is not None:
        from torchdoctor.ddp.report import merged as with_model
        from torchdoctor.ddp.session import check_factory

        assert isinstance(source, ProbeSource)
        report = with_model(report, check_factory(model, source.context.python))
    if isinstance(source, ProbeSource) and source.faults:
        report = replace(report, faults=(*source.faults, *report.faults))
    verdicts.show(report, form, lambda: _subject(facts), verbose, "torchdoctor.check")
    return verdicts.exit_code(report, fail_on, strict)


def _subject(facts: FactBook) -> str:
    from torchdoctor.probes.fact_table import subject

    return subject(facts.machine)
