"""``torchdoctor ddp``: what DistributedDataParallel would raise on a model."""

from __future__ import annotations

import sys

import click

from torchdoctor.cli import streams

EXIT_FINDINGS = 1
EXIT_COULD_NOT_TELL = 3


@click.command("ddp")
@click.option("--python", metavar="PATH", help="The interpreter that runs your program, or its environment.")
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
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the factory and the batches may take.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show the checks that passed, and reasons in full.")
@click.argument("factory", metavar="MODULE:FACTORY")
def command(
    python: str | None, form: str, fail_on: str, strict: bool, time_limit: float, verbose: bool, factory: str
) -> int:
    """Say what DistributedDataParallel would raise on a model, without a process group.

    Parameters that get no gradient, outputs that do not reach the loss, parameters used twice under reentrant
    checkpointing, and more.

    FACTORY is a function without arguments in MODULE (or FILE.py) that returns (model, inputs, loss_fn), or a
    dict or object with those names. inputs: a tuple of positional arguments, a dict of named ones, or a list
    of such batches. loss_fn(outputs) gives the loss; it may be left out.

    Calls it in a child process of your interpreter and runs one forward and backward per batch there.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a mistake in the call, 3 could not tell (with
    --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.ddp.session import check_factory
    from torchdoctor.probes.interpreter import choose
    from torchdoctor.probes.opening import resolve

    report = check_factory(factory, resolve(python) if python else choose()[0], time_limit)
    if form == "json":
        from torchdoctor.render.json import to_json

        streams.write(to_json(report))
    else:
        from torchdoctor.render.checks import render_checks

        render_checks(
            report,
            stream=sys.stdout,
            subject=factory,
            width=streams.screen()[0],
            color=streams.color_wanted(),
            verbose=verbose,
        )
    verdicts = {result.verdict.value for result in report.checks}
    counted = {"fail": {"fail"}, "warn": {"fail", "warn"}, "never": set()}[fail_on]
    if verdicts & counted:
        return EXIT_FINDINGS
    return EXIT_COULD_NOT_TELL if strict and report.not_checked else 0
