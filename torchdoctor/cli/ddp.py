"""``torchdoctor ddp``: what DistributedDataParallel would raise on a model."""

from __future__ import annotations

import click

from torchdoctor.cli import progress, verdicts


@click.command("ddp")
@verdicts.python_option
@verdicts.format_option()
@verdicts.output_option
@verdicts.fail_on_option()
@verdicts.strict_option
@verdicts.time_limit_option(300, "How long the factory and the batches may take.")
@click.option("-v", "--verbose", is_flag=True, help="Also show the checks that passed, and full reasons.")
@click.argument("factory", metavar="MODULE:FACTORY")
def command(
    python: str | None, form: str, fail_on: str, strict: bool, time_limit: float, verbose: bool, factory: str
) -> int:
    """Predict what DistributedDataParallel would raise on a model, without a process group.

    Parameters that get no gradient, outputs that do not reach the loss, parameters used twice under reentrant
    checkpointing, and more.

    FACTORY is a function without arguments in MODULE (or FILE.py) that returns (model, inputs, loss_fn), or a
    dict or object with those names. inputs: a tuple of positional arguments, a dict of named ones, or a list
    of such batches. loss_fn(outputs) gives the loss; it may be left out.

    Calls it in a child process of your interpreter and runs one forward and backward per batch there.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 something could not be
    determined (with --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.ddp.session import check_factory
    from torchdoctor.engine.check import torch_missing
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import pick

    chosen = pick(python)
    with ended_by_signals(), ended_with_us(), progress.waiting(f"running {factory}"):
        report = torch_missing(chosen.python) or check_factory(factory, chosen.python, time_limit)
    report = verdicts.with_note(report, chosen.note)
    verdicts.show(report, form, lambda: factory, verbose)
    return verdicts.exit_code(report, fail_on, strict)
