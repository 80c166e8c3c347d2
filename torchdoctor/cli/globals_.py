"""``torchdoctor globals``: which statement changes a process-wide setting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import streams

if TYPE_CHECKING:
    from torchdoctor.model import Report

EXIT_FINDINGS = 1
EXIT_COULD_NOT_TELL = 3
EXIT_OUR_FAULT = 70


@click.command("globals", context_settings={"allow_interspersed_args": False})
@click.option("--python", metavar="PATH", help="The interpreter that runs your program, or its environment.")
@click.option("-c", "code", metavar="CODE", help="Run this code.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or JSON.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["fail", "warn", "never"]),
    default="fail",
    show_default=True,
    help="Exit 1 at problems, at warnings too, or never.",
)
@click.option(
    "--strict", is_flag=True, help="Exit 3 when something could not be told and nothing else is wrong."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1, 86400),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a target may run.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show reasons in full.")
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
def command(
    python: str | None,
    code: str | None,
    form: str,
    fail_on: str,
    strict: bool,
    time_limit: float,
    verbose: bool,
    targets: tuple[str, ...],
) -> int:
    """Run a program's imports and tell which statement of which file changes a setting of the whole process:
    gradients, default dtype and device, deterministic mode, TF32, threads, seeds, signal handlers,
    environment variables, hooks on all modules, replaced parts of torch, CUDA initialised at import.

    TARGET is a module, or a script, whose top level is run under its own name: what stands behind
    `if __name__ == "__main__":` is not run. A whole program with its arguments: -- python train.py --epochs 1

    Runs the target in a child process of your interpreter; what it writes, it writes.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a mistake in the call, 3 could not tell (with
    --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.probes.interpreter import choose
    from torchdoctor.probes.opening import resolve
    from torchdoctor.watch import Target, parse, report_of, run

    wanted = ((Target("code", code),) if code is not None else ()) + parse(targets)
    if not wanted:
        raise click.UsageError("name a module, a script, or a program: -- python train.py")
    for named in filter(None, (target.python for target in wanted)):
        if python:
            raise click.UsageError(
                f"--python names an interpreter, and so does {named}: leave one of them out"
            )
        resolve(named)
    interpreter = resolve(python) if python else choose()[0]
    runs = [run(target, interpreter, time_limit) for target in wanted]
    report = report_of(runs)
    if form == "json":
        from torchdoctor.render.json import to_json

        streams.write(to_json(report))
    else:
        from torchdoctor.render.checks import render_checks

        torch = next((one.torch for one in runs if one.torch), None)
        about = ", ".join(one.target.words for one in runs) + (f" with torch {torch}" if torch else "")
        render_checks(
            report,
            stream=sys.stdout,
            subject=about,
            width=streams.screen()[0],
            color=streams.color_wanted(),
            verbose=verbose,
        )
    if report.faults:
        streams.complain(f"a fault of torchdoctor while watching the program:\n{report.faults[0]}")
        return EXIT_OUR_FAULT
    return exit_code(report, fail_on, strict)


def exit_code(report: Report, fail_on: str, strict: bool) -> int:
    verdicts = {result.verdict.value for result in report.checks}
    counted = {"fail": {"fail"}, "warn": {"fail", "warn"}, "never": set()}[fail_on]
    if verdicts & counted:
        return EXIT_FINDINGS
    return EXIT_COULD_NOT_TELL if strict and report.not_checked else 0
