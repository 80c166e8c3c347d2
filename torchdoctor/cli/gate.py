"""``torchdoctor gate``: is this node fit for the job?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from torchdoctor.cli import (
    exit_codes,
    gate_cleanup,
    gate_look,
    gate_merge,
    gate_pairs,
    gate_policy,
    gate_verify,
    streams,
    verdicts,
)

if TYPE_CHECKING:
    from torchdoctor.gate.outcome import GateOutcome


@click.group("gate", invoke_without_command=True)
@click.option(
    "--tier",
    type=click.Choice(["passive", "quick", "standard", "deep"]),
    help="How much is examined, and how long it may take: at most 10, 30, 120 or 900 s.  [default: quick]",
)
@click.option("--python", metavar="PATH", help="The job's interpreter or environment.")
@click.option("--policy", "policy_file", type=click.Path(dir_okay=False), help="The site's policy (TOML).")
@click.option(
    "--gpus", type=click.IntRange(0, 1024), metavar="N", help="How many GPUs this node should have."
)
@click.option(
    "-o",
    "--output",
    cls=verdicts.Renamed,
    earlier=["--verdict-file"],
    metavar="FILE|FOLDER/",
    help="Write the verdict to FILE, completely or not at all. A name ending in / is a folder; the file in "
    "it is named after the node.",
)
@click.option("--prometheus", metavar="FILE", help="Write metrics to FILE for a textfile collector.")
@verdicts.format_option(
    "For people; JSON; one line of JSON per finding with the verdict last; one line for a scheduler; or for "
    "CI, JUnit XML or GitHub's annotations and step summary.",
    "jsonl", "reason", *verdicts.CI,
)  # fmt: skip
@click.option(
    "--exit-style",
    type=click.Choice(["native", "slurm", "slurm-prolog", "nagios", "npd", "k8s"]),
    default="native",
    show_default=True,
    help="Which system's exit codes to use.",
)
@click.option("--drain", is_flag=True, help="With --exit-style slurm: exit 1 when the node is unfit.")
@click.option("--observe", is_flag=True, help="Record the verdict and exit 0 whatever it is.")
@click.option("--before-job", is_flag=True, help="A job is about to start: the GPUs should be free.")
@click.option(
    "--every-process",
    is_flag=True,
    help="Examine the node in every process that a launcher starts on it. By default only local rank 0 does, "
    "and the others say so and exit with 0.",
)
@verdicts.facts_option(
    "Judge a recorded machine instead of this one; a folder of --save with its tier and policy.",
    "FILE|FOLDER",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=3),
    metavar="SECONDS",
    help="End sooner than the tier does by itself; what is not examined by then is undetermined.",
)
@click.option(
    "--save",
    metavar="FILE|FOLDER/",
    help="Save what was read, for --facts. A name ending in / is a folder, which also holds the command, "
    "the policy and the verdict.",
)
@click.option("--explain", is_flag=True, help="Say for each finding what to do next, with the commands.")
@click.option("-v", "--verbose", is_flag=True, help="Also show findings that are only informational.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> int:
    """Decide whether this node is fit for the job, and whose fault it is if it is not.

    Exit codes: 0 fit, 10 the node is unfit, 11 the node is fit but the job's environment or request is not,
    12 it could not be determined, 2 a usage error or a mistake in the policy, 70 a fault of torchdoctor.
    """
    if context.invoked_subcommand is not None:
        from torchdoctor.gate import ending

        ending.limit(None)  # the limits are those of a look at this node
        return 0
    return _gate(**options)


def _gate(
    tier: str | None,
    python: str | None,
    policy_file: str | None,
    gpus: int | None,
    output: str | None,
    prometheus: str | None,
    form: str,
    exit_style: str,
    drain: bool,
    observe: bool,
    before_job: bool,
    every_process: bool,
    facts: str | None,
    time_limit: float | None,
    save: str | None,
    explain: bool,
    verbose: bool,
) -> int:
    from torchdoctor.gate import bundle
    from torchdoctor.gate.files import WriteError
    from torchdoctor.gate.launch import looks_elsewhere
    from torchdoctor.gate.policy import Policy
    from torchdoctor.gate.supervisor import TIERS, Wish

    style = exit_style.removesuffix("-prolog")
    if drain and style != "slurm":
        raise click.UsageError("--drain changes only the exit codes of --exit-style slurm")
    call = bundle.Call(tier or "quick", gpus, before_job)
    if facts is not None and os.path.isdir(facts):
        facts, recorded, policy_then = bundle.read(facts)
        if tier is not None and bundle.too_little(recorded, tier):
            raise click.UsageError(
                f"--tier {tier}: the recording holds only what tier {recorded.tier} examines"
            )
        call = bundle.Call(
            tier or recorded.tier,
            recorded.gpus if gpus is None else gpus,
            before_job or recorded.before_job,
        )
        policy_file = policy_file or policy_then
    limit_s = TIERS[call.tier].limit_s
    if time_limit is not None and time_limit > limit_s:
        raise click.UsageError(
            f"--time-limit {time_limit:g}: tier {call.tier} ends after {limit_s:g} s by itself"
        )
    policy = gate_policy.policy_of(policy_file) if policy_file else Policy()
    elsewhere = "" if every_process else looks_elsewhere(os.environ)
    if elsewhere:
        return _skipped(elsewhere, call.tier, form)
    bundled = save is not None and save.endswith("/")
    for option, path in (
        ("--output", output),
        ("--prometheus", prometheus),
        ("--save", None if bundled else save),
    ):
        verdicts.can_be_written(option, path)
    interpreter = gate_look.interpreter(python, call.tier, facts)
    wish = Wish(
        call.tier, policy, interpreter, call.gpus, call.before_job or call.tier != "passive", observe,
        fault=os.environ.get("TORCHDOCTOR_FAULT", ""), limit_s=time_limit,
    )  # fmt: skip
    try:
        recording = bundle.prepare(save) if bundled and save else save or ""
    except WriteError as error:
        raise click.UsageError(f"--save: {error}") from None
    try:
        outcome = gate_look.looked(wish, facts, recording)
        if bundled and save:
            bundle.complete(save, outcome, call, policy.text)
    except WriteError as error:
        streams.complain(f"--save cannot be written: {error}")
        return _mapped_fault(style)
    show = partial(_show, form=form, verbose=verbose, explain=explain)
    return _deliver(outcome, output, prometheus, show, style, drain)


def _skipped(why: str, tier: str, form: str) -> int:
    """Local rank 0 looks at the node: that is told, and no file is touched: it may be the same."""
    from torchdoctor.gate.supervisor import skipped

    outcome = skipped(why, tier)
    streams.complain(f"not looked: {why}; --every-process looks in each")
    with streams.shown():
        _show(outcome, "", form)
    return 0


def _deliver(
    outcome: GateOutcome,
    output: str | None,
    prometheus: str | None,
    show: Callable[[GateOutcome, str], None],
    exit_style: str,
    drain: bool,
) -> int:
    """Files first, then the screen: its reader may have gone, and the verdict holds all the same."""
    from torchdoctor.gate.files import WriteError, replace_file
    from torchdoctor.gate.launch import node_name
    from torchdoctor.gate.outcome import to_json, to_prometheus

    try:
        if output is not None and output.endswith("/"):
            output += f"{node_name(os.environ, outcome.host)}.json"
        if output is not None:
            replace_file(output, to_json(outcome) + "\n")
        if prometheus is not None:
            replace_file(prometheus, to_prometheus(outcome))
    except WriteError as error:
        # without its file the verdict is not to be acted on
        streams.complain(f"the verdict cannot be written: {error}")
        return _mapped_fault(exit_style)
    try:
        with streams.shown():
            show(outcome, output or "")
    except OSError as error:
        if streams.is_closed() and output is not None:
            return outcome.exit_code(exit_style, drain)  # the file is the output that was wanted
        streams.complain(f"the verdict cannot be written: {error.strerror or error}")
        streams.abandon(sys.stdout)
        return _mapped_fault(exit_style)
    return outcome.exit_code(exit_style, drain)


def _show(outcome: GateOutcome, output: str, form: str, verbose: bool = False, explain: bool = False) -> None:
    from torchdoctor.gate.outcome import reason, to_json, to_json_lines

    if form == "json":
        streams.write(to_json(outcome))
    elif form == "jsonl":
        streams.write("\n".join(to_json_lines(outcome)))
    elif form == "reason":
        streams.write(reason(outcome))
    elif form in verdicts.CI:
        from torchdoctor.gate.checks_report import as_report

        verdicts.for_ci(as_report(outcome), form, "torchdoctor.gate")
    elif not outcome.skipped:
        from torchdoctor.gate.text import render
        from torchdoctor.render import lines

        lines.write(
            render(outcome, streams.screen()[0], verbose, explain, output),
            sys.stdout,
            streams.color_wanted(),
        )


def _mapped_fault(exit_style: str) -> int:
    """A fault of ours in the codes of others: unknown where they have that; it never drains a node."""
    return {"slurm": 0, "nagios": 3, "npd": 2}.get(exit_style, exit_codes.OUR_FAULT)


for _module in (gate_verify, gate_cleanup, gate_merge, gate_pairs, gate_policy):
    command.add_command(_module.command)
