"""``torchdoctor run``: a command, and a report when it fails."""

from __future__ import annotations

import click

from torchdoctor.cli.hang import Duration
from torchdoctor.cli.plain import PlainHelp


class _Mistake(click.UsageError):
    exit_code = 125


class _Command(PlainHelp, click.Command):
    """Usage errors end with 125: what is below 125 belongs to the command that is run."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise _Mistake(error.format_message(), error.ctx) from None


@click.command("run", cls=_Command, context_settings={"allow_interspersed_args": False})
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Of the report: for people, one JSON report, or Markdown for an issue, without names and secrets.",
)
@click.option("-o", "--output", "file", metavar="FILE", help="Write the report to FILE as well.")
@click.option(
    "--save",
    "folder",
    metavar="DIR",
    help="When the command fails, save log, facts and report in DIR, without names and secrets.",
)
@click.option("--offline", is_flag=True, help="Judge by the output alone, and query nothing on this machine.")
@click.option("-q", "--quiet", is_flag=True, help="Write nothing to the terminal; the report goes to FILE.")
@click.option(
    "--stall",
    type=Duration(),
    metavar="TIME",
    help="When nothing was printed for TIME (10m) and nothing works any more, say once what hangs.",
)
@click.option("--kill-on-stall", is_flag=True, help="Then end the command, with exit code 137.")
@click.argument("command", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    form: str,
    file: str | None,
    folder: str | None,
    offline: bool,
    quiet: bool,
    stall: float | None,
    kill_on_stall: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command as if it ran by itself; when it fails, explain why behind its output.

    Terminal, output, keys, signals and exit code are passed through. On the first Ctrl-C the stacks of all
    processes are taken, for a second at most, then it is passed on; a second Ctrl-C skips that, a further one
    ends everything. Around torchrun, accelerate, deepspeed and srun the logs of the ranks are read as well.

    Exit codes: 0 or the command's own, 128 + n when signal n ended it (137 with --kill-on-stall); 125 a usage
    error or a fault of torchdoctor before the start, 126 not executable, 127 not found.
    """
    from torchdoctor.hooks.run.run import run
    from torchdoctor.hooks.run.wish import Wish

    if kill_on_stall and stall is None:
        raise _Mistake("--kill-on-stall needs --stall TIME")
    return run(Wish(command, form, file, folder, offline, quiet, stall, kill_on_stall))
