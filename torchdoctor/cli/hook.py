"""``torchdoctor hook``: the note under tracebacks, for all programs of an environment."""

from __future__ import annotations

import click

from torchdoctor.cli import streams, verdicts


@click.group("hook")
def command() -> int:
    """Explain each uncaught exception of an environment's programs, right under its traceback.

    Off unless enabled here. A program of your own can call torchdoctor.install() instead, and
    TORCHDOCTOR_HOOK=0 switches the hook off for one process.
    """
    return 0


def _named(python: str | None) -> str:
    from torchdoctor.probes.opening import pick

    return pick(python).python


@command.command("enable", short_help="Switch it on.")
@verdicts.python_option
def enable(python: str | None) -> int:
    """Switch it on, with a .pth file in the site-packages of the interpreter.

    Exit codes: 0 done, 2 a usage error, or torchdoctor cannot be imported there.
    """
    from torchdoctor.hooks import environment

    streams.write_lines([f"enabled: {environment.enable(_named(python)).path}"])
    return 0


@command.command("disable", short_help="Switch it off.")
@verdicts.python_option
def disable(python: str | None) -> int:
    """Switch it off: remove the .pth file.

    Exit codes: 0 done (also when it was off), 2 a usage error, or the file cannot be removed.
    """
    from torchdoctor.hooks import environment

    where = environment.disable(_named(python))
    streams.write_lines([f"disabled: {where.path} is not there"])
    return 0


@command.command("status", short_help="Say whether it is on.")
@verdicts.python_option
def status(python: str | None) -> int:
    """Say whether it is on, and whether torchdoctor can be imported there.

    Exit codes: 0 done, 2 a usage error.
    """
    from torchdoctor.hooks import environment

    where = environment.place(_named(python))
    lines = [f"enabled: {where.path}" if where.enabled else f"disabled: {where.path} is not there"]
    if where.trouble:
        lines.append(f"torchdoctor cannot be imported there: {where.trouble}")
    streams.write_lines(lines)
    return 0
