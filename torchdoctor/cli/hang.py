"""``torchdoctor hang``: what a live process waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from torchdoctor.cli import findings, progress, verdicts

if TYPE_CHECKING:
    _Parameter = click.ParamType[float]
else:
    _Parameter = click.ParamType  # before click 8.3 it takes no type


class Duration(_Parameter):
    """``90``, ``90s``, ``10m``, ``2h``."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from torchdoctor.durations import seconds

        if isinstance(value, float):
            return value
        try:
            return seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("hang")
@click.option(
    "--job",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="The processes of a Slurm job here (default: SLURM_JOB_ID), or of the tree of a launcher's PID.",
)
@click.option("--all", "every", is_flag=True, help="All processes of yours that have libtorch mapped.")
@click.option(
    "--interval",
    type=Duration(),
    default="1.5s",
    show_default=True,
    metavar="TIME",
    help="Between the two looks.",
)
@click.option(
    "--watch", type=Duration(), metavar="TIME", help="Look again and again, so far apart, until Ctrl-C."
)
@verdicts.format_option()
@verdicts.output_option
@verdicts.fail_on_option()
@verdicts.strict_option
@click.option("-v", "--verbose", is_flag=True, help="Show all evidence.")
@click.argument("pids", metavar="[PID]...", nargs=-1, type=click.IntRange(1))
def command(
    job: str | None,
    every: bool,
    interval: float,
    watch: float | None,
    form: str,
    fail_on: str,
    strict: bool,
    verbose: bool,
    pids: tuple[int, ...],
) -> int:
    """Say what a live process and its children wait for: a lock, a worker, another rank, a file system, a
    person.

    Looks twice from outside, with py-spy and /proc: nothing is stopped, and nothing runs in the process.
    Ranks of one job on this node are held against each other. What works or idles is reported as such.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 could not tell (with
    --strict), 70 a fault of torchdoctor.
    """
    import os
    import time

    from torchdoctor.hang import report, targets
    from torchdoctor.probes.interrupts import ended_by_signals

    if (job is not None) + every + bool(pids) != 1:
        raise click.UsageError("name processes by their numbers, or --job, or --all")
    with ended_by_signals():
        while True:
            if pids:
                found, roots = targets.of_pids(pids), list(pids)
            else:
                found = targets.all_of_torch(os.getpid()) if every else targets.of_job(job, os.getpid())
                roots = list(found)
            with progress.waiting("looking at the processes"):
                said = report.examine(found, roots, interval)
            clear = (
                f"{'Nothing hangs' if said.diagnoses else 'Nothing found'} in {', '.join(said.source[:4])}"
            )
            findings.show(said, form, clear, verbose)
            if watch is None:
                return findings.exit_code(said, fail_on, strict)
            time.sleep(watch)
