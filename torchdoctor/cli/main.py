"""The command line: finds the command asked for, and turns whatever ends it into an exit code."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from typing import NoReturn

import click

from torchdoctor import __version__
from torchdoctor.cli import examples, exit_codes, streams
from torchdoctor.cli.plain import PlainHelp
from torchdoctor.model import TorchdoctorError

# name -> (module under torchdoctor.cli, what the list of commands says of it)
_COMMANDS = {
    "explain": ("explain", "Explain why a run failed, from its logs."),
    "run": ("run", "Run a command, and explain its failure behind its output."),
    "check": ("check", "Find what will fail on this machine, before you run anything."),
    "facts": ("facts", "Show what is known about this machine; save it, compare it."),
    "globals": ("globals_", "Find which line of a program changes a process-wide setting."),
    "ddp": ("ddp", "Predict what DistributedDataParallel would raise on a model."),
    "hang": ("hang", "Say what a live process waits for."),
    "checkpoint": ("checkpoint", "Say what is wrong with a file of weights, without loading it."),
    "selftest": ("selftest", "Test that this GPU, with this torch, computes correctly."),
    "gate": ("gate", "Decide whether this node is fit for a job, and whose fault it is if not."),
    "stats": ("stats", "Count causes, nodes, GPUs and lines of code over many reports."),
    "lint": ("lint", "Find the pitfalls of training code in its source, before the run."),
    "hook": ("hook", "Explain the uncaught exceptions of an environment where they appear."),
    "mcp": ("mcp", "Serve coding agents, over the Model Context Protocol."),
    "skill": ("skill", "Print where the instructions for coding agents are."),
    "completion": ("completion", "Print the completion script of a shell."),
    "rules": ("rules", "Browse the failure catalog; check and measure it."),
}


class Commands(PlainHelp, click.Group):
    """A group whose commands are imported when they are called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        from importlib import import_module

        command = import_module(f"torchdoctor.cli.{_COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)
        examples.add(command, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, _COMMANDS, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Commands: {', '.join(_COMMANDS)}."
            if os.path.exists(name):
                hint = f"To explain the file: torchdoctor explain {name}"
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"torchdoctor, version {__version__}")
        ctx.exit()


@click.command(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.pass_context
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def cli(ctx: click.Context) -> None:
    """The doctor for PyTorch: explains why a run failed, and what to change."""
    if ctx.invoked_subcommand is None:
        streams.write(examples.START)


def run() -> NoReturn:
    """The program: ``main`` on the arguments of the process, whose exit code ends it."""
    _tell_of_children()
    code = main()
    # All is written and nothing is left to run. Taking the interpreter down object by object would cost as
    # much time as the diagnosis took.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _tell_of_children() -> None:
    """Let the system tell how a child ended, also where what started us ignores that and loses exit codes."""
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def main(args: list[str] | None = None) -> int:
    """Run a command; returns its exit code: 2 for a usage error or an input, 70 for our own fault."""
    streams.prepare()
    try:
        with streams.shown():
            return _run(sys.argv[1:] if args is None else args)
        return 0  # the reader has gone, of something that has no other exit code
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        streams.refuse(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return exit_codes.INTERRUPTED
    except TorchdoctorError as error:
        streams.complain(*error.problems)
        return exit_codes.USAGE
    # The last guard: whatever else escapes is a bug, and a bug has an exit code of its own.
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # raised in __set_name__
            return exit_codes.INTERRUPTED
        if isinstance(error, OSError) and _is_output(error):
            streams.complain(f"the output cannot be written: {error.strerror or error}")
            streams.abandon(sys.stdout)
            return exit_codes.USAGE
        if isinstance(error, FileNotFoundError) and _nowhere():
            streams.complain("the working folder was deleted; run it from another one")
            return exit_codes.USAGE
        return _our_fault(error)


def _run(args: list[str]) -> int:
    if "_TORCHDOCTOR_COMPLETE" in os.environ:
        cli.main(args, prog_name="torchdoctor")
    # not cli.main(): it takes an EOFError for Ctrl-C and ends with 1 on a broken pipe
    with cli.make_context("torchdoctor", list(args)) as context:
        code = cli.invoke(context)
    return code if isinstance(code, int) else 0


def _nowhere() -> bool:
    """Was the working folder deleted? Then no relative path leads anywhere."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _is_output(error: OSError) -> bool:
    if error.filename is not None:
        return False
    import errno

    return error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF, errno.EFBIG)


def _our_fault(error: Exception) -> int:
    if os.environ.get("TORCHDOCTOR_DEBUG"):
        import traceback

        streams.complain(*"".join(traceback.format_exception(error)).splitlines())
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = ""
    if place is not None:
        where = f" at {os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}"
    version = ".".join(map(str, sys.version_info[:3]))
    streams.complain(
        f"internal error: {type(error).__name__}: {error}{where}",
        "This is a fault of torchdoctor, not of your program. Please report it with the input and with what",
        "the same command prints under TORCHDOCTOR_DEBUG=1 "
        f"(torchdoctor {__version__}, Python {version}, {sys.platform}).",
    )
    return exit_codes.OUR_FAULT
