"""``torchdoctor globals``: which statement changes a process-wide setting."""

from __future__ import annotations

import click

from torchdoctor.cli import progress, verdicts


@click.command("globals")
@verdicts.python_option
@click.option("-c", "code", metavar="CODE", help="Run this code.")
@verdicts.format_option()
@verdicts.output_option
@verdicts.fail_on_option()
@verdicts.strict_option
@verdicts.time_limit_option(120, "How long a target may run.")
@click.option("-v", "--verbose", is_flag=True, help="Show full reasons.")
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
    """Run a program's imports and report which statement of which file changes a process-wide setting:
    gradients, default dtype and device, deterministic mode, TF32, threads, seeds, signal handlers,
    environment variables, hooks on all modules, replaced parts of torch, CUDA initialised at import.

    TARGET is a module, or a script, whose top level is run under its own name: the code under
    `if __name__ == "__main__":` is not run. A whole program with its arguments stands behind `--`:
    -- python train.py --epochs 1

    Runs the target in a child process of your interpreter; files that it writes are really written.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 something could not be
    determined (with --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.engine.check import torch_missing
    from torchdoctor.model import Outcome, Report
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import pick
    from torchdoctor.watch import Target, merged, parse, run

    wanted = ((Target("code", code),) if code is not None else ()) + parse(targets)
    if not wanted:
        raise click.UsageError("name a module, a script, or a program: -- python train.py")
    named = next((target.python for target in wanted if target.python), None)
    if named and python:
        raise click.UsageError(f"--python names an interpreter, and so does {named}: leave one of them out")
    chosen = pick(named or python)
    with ended_by_signals(), ended_with_us(), progress.waiting(f"running {wanted[0].words}"):
        known = torch_missing(chosen.python) or Report(Outcome.NO_FAILURE)
        runs = [run(target, chosen.python, time_limit) for target in wanted]
    report = verdicts.with_note(merged(known, runs), chosen.note)
    torch = next((one.torch for one in runs if one.torch), None)
    about = ", ".join(one.target.words for one in runs) + (f" with torch {torch}" if torch else "")
    verdicts.show(report, form, lambda: about, verbose)
    return verdicts.exit_code(report, fail_on, strict)
