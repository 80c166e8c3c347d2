"""``torchdoctor gate cleanup``: which processes still hold the GPUs, and the end of those left over."""

from __future__ import annotations

import sys

import click

from torchdoctor.cli import streams, verdicts


@click.command("cleanup", short_help="List processes left over on the GPUs; --kill ends them.")
@click.option(
    "--kill", is_flag=True, help="End those whose job, launcher or parent has ended, and no others."
)
@verdicts.format_option()
@verdicts.output_option
def command(kill: bool, form: str) -> int:
    """List the processes on the GPUs: whose they are, and whether their job still runs.

    A process is left over when its Slurm job has ended, or the launcher or parent that started it. Exit
    codes: 0 nothing is left over, or all of it was ended, 1 something is, or may be, 2 a usage error, or NVML
    gives no answer, 70 a fault of torchdoctor.
    """
    from torchdoctor.gate import cleanup
    from torchdoctor.render import lines

    found = cleanup.holders(cleanup.look(), cleanup.slurm_runs)
    if kill:
        found = cleanup.ended(found)
    with streams.shown():
        if form == "json":
            streams.write(cleanup.to_json(found))
        else:
            lines.write(cleanup.lines(found), sys.stdout, streams.color_wanted())
    return cleanup.exit_code(found)
