"""``torchdoctor selftest``: does this device, with this torch, compute right?"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import streams, verdicts

if TYPE_CHECKING:
    from torchdoctor.cli.progress import Line
    from torchdoctor.model import Report
    from torchdoctor.selftest.registry import SelfCheck
    from torchdoctor.selftest.session import Progress, Request


@click.command("selftest")
@verdicts.python_option
@click.option(
    "--device",
    metavar="DEVICE",
    help="cpu, cuda (all GPUs), cuda:N or mps.  [default: all GPUs, or the CPU where there are none]",
)
@click.option("--list", "listing", is_flag=True, help="List the checks, what they prove and when they run.")
@click.option(
    "--only", "names", metavar="NAME", multiple=True, help="Only this check; may be given several times."
)
@click.option(
    "--level",
    type=click.Choice(["quick", "standard", "deep"]),
    default="standard",
    show_default=True,
    help="How much to test.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    default=0,
    show_default=True,
    help="The seed of all random numbers.",
)
@click.option("--show", "shown", metavar="NAME", help="Print a check as a program that needs only torch.")
@click.option(
    "--baseline",
    metavar="FILE",
    help="Compare with the measurements in this file; where there is none, write them into it.",
)
@verdicts.format_option(
    "For people, JSON, a page with charts of measured against expected, or JUnit XML.", "html", "junit"
)
@verdicts.output_option
@verdicts.fail_on_option("failures")
@verdicts.strict_option
@verdicts.time_limit_option(
    None, "How long all of it may take; what has not finished by then is not determined."
)
@click.option(
    "--stretch",
    type=click.FloatRange(0.01, 100),
    default=1.0,
    metavar="FACTOR",
    help="Multiply each check's own time limit, for a slow machine.",
)
@click.option(
    "--share/--isolate",
    "share",
    default=None,
    help="Let checks of one GPU share a process, or give each its own.  [default: isolate at level deep]",
)
@click.option("-v", "--verbose", is_flag=True, help="Show full reasons.")
def command(
    python: str | None,
    device: str | None,
    listing: bool,
    names: tuple[str, ...],
    level: str,
    seed: int,
    shown: str | None,
    baseline: str | None,
    form: str,
    fail_on: str,
    strict: bool,
    time_limit: float | None,
    stretch: float,
    share: bool | None,
    verbose: bool,
) -> int:
    """Test that this GPU, with this torch, computes correctly, and show known traps with numbers.

    Each check runs in a process of its own (at quick and standard those of a GPU share one, and one that
    crashes does not take the others along), with a time limit, and can be repeated from its seed. On a GPU
    the standard level makes the driver write Xid 43 lines into the kernel log (device-assert); a warning
    comes first.

    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 a usage error, 3 something could not be
    determined (with --strict), 70 a fault of torchdoctor.
    """
    if listing:
        _list()
        return 0
    if shown is not None:
        from torchdoctor.selftest.standalone import compose

        streams.write(compose(_check(shown).file))
        return 0
    from torchdoctor.probes.opening import pick
    from torchdoctor.selftest.registry import Level
    from torchdoctor.selftest.session import Request

    chosen = pick(python)
    request = Request(
        python=chosen.python,
        device=device,
        only=tuple(_check(name) for name in dict.fromkeys(names)),
        level=Level(level),
        seed=seed,
        limit_scale=stretch,
        time_limit_s=time_limit,
        fault=os.environ.get("TORCHDOCTOR_FAULT", ""),
        share=share,
        baseline=baseline or "",
    )
    report = verdicts.with_note(_run(request), chosen.note)
    _write(report, form, request.python, verbose)
    return verdicts.exit_code(report, fail_on, strict)


def _run(request: Request) -> Report:
    from torchdoctor.cli.progress import Line
    from torchdoctor.selftest.session import run

    line = Line()
    try:
        return run(request, partial(_show, line) if line.wanted else None, line.say)
    finally:
        line.clear()


def _check(name: str) -> SelfCheck:
    from difflib import get_close_matches

    from torchdoctor.selftest.registry import CHECKS, find

    found = find(name)
    if found is None:
        known = [check.name for check in CHECKS]
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
        raise click.UsageError(f"no self-check {name!r}; {hint}")
    return found


def _list() -> None:
    from torchdoctor.selftest.registry import CHECKS

    width = max(len(check.name) for check in CHECKS)
    for check in CHECKS:
        streams.write(f"{check.name:{width}}  {check.level.value:8}  {check.place.value:6}  {check.title}")


def _write(report: Report, form: str, python: str, verbose: bool) -> None:
    from torchdoctor.selftest.summary import passed, subject

    if form == "html":
        from torchdoctor.render.chart import to_html

        with streams.shown():
            streams.write_page(to_html(report, subject(report, python)))
        return
    verdicts.show(report, form, lambda: subject(report, python), verbose=False, suite="torchdoctor.selftest")
    if form == "text":
        with streams.shown():
            for text in passed(report, streams.screen()[0], verbose):
                streams.write(text)


def _show(line: Line, progress: Progress) -> None:
    names = ", ".join(progress.running)
    line.put(f"[{progress.done}/{progress.total}] {progress.seconds:.0f} s  {names}")
