"""``torchdoctor checkpoint``: what a file of weights says, without loading it."""

from __future__ import annotations

import click

from torchdoctor.cli import findings, progress, verdicts


@click.command("checkpoint")
@verdicts.python_option
@click.option(
    "--torch", "version", metavar="VERSION", help="Judge for this torch instead of the interpreter's."
)
@click.option(
    "--against",
    metavar="MODULE:FACTORY|FILE",
    help="Hold the names and shapes against a model, or another file. The factory is called in a child "
    "of your interpreter.",
)
@click.option("--values", is_flag=True, help="Also read all numbers, for NaN and infinity.")
@verdicts.format_option()
@verdicts.output_option
@verdicts.fail_on_option()
@verdicts.strict_option
@verdicts.time_limit_option(120, "How long the factory may take.")
@click.option("-v", "--verbose", is_flag=True, help="Show all evidence, and every tensor.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
def command(
    python: str | None,
    version: str | None,
    against: str | None,
    values: bool,
    form: str,
    fail_on: str,
    strict: bool,
    time_limit: float,
    verbose: bool,
    files: tuple[str, ...],
) -> int:
    """Say what a checkpoint is, what is wrong with it, and whether it fits a model, without loading it.

    Reads .pt, .pth, .bin, .ckpt, .safetensors and .distcp files, folders of shards, index files of
    Hugging Face, and the layouts of DeepSpeed, Megatron and torch.distributed.checkpoint.

    Nothing in a file is executed: its pickle is read instruction by instruction. torch is not imported.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 could not tell (with
    --strict), 70 a fault of torchdoctor.
    """
    from torchdoctor.checkpoint.report import examine
    from torchdoctor.checkpoint.target import of_interpreter, of_version
    from torchdoctor.probes.interpreter import choose
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import resolve

    interpreter = resolve(python) if python else choose()[0]
    with ended_by_signals(), progress.waiting(f"reading {files[0]}"):
        if version is not None:
            try:
                target = of_version(version, interpreter)
            except ValueError:
                raise click.UsageError(f"--torch {version}: no version; expected as 2.6 or 2.6.0") from None
        else:
            target = of_interpreter(interpreter)
        report = examine(files, target, values, against, time_limit)
    clear = f"Nothing wrong found in {files[0] if len(files) == 1 else f'{len(files)} files'}"
    findings.show(report, form, clear, verbose)
    return findings.exit_code(report, fail_on, strict)
