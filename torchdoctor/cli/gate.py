"""``torchdoctor gate``: is this node fit for the job?"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from torchdoctor.cli import exit_codes, streams, verdicts
from torchdoctor.cli.gate_merge import command as merge
from torchdoctor.cli.gate_pairs import command as pairs
from torchdoctor.model import counted

if TYPE_CHECKING:
    from torchdoctor.gate.outcome import GateOutcome
    from torchdoctor.gate.policy import Policy


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
    "--verdict-file",
    "-o",
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
@click.option(
    "--replay",
    metavar="FILE|FOLDER",
    help="Judge a recorded machine instead of this one; a folder of --save with its tier and policy.",
)
@click.option(
    "--save",
    metavar="FILE|FOLDER/",
    help="Save what was read, for --replay. A name ending in / is a folder, which also holds the command, "
    "the policy and the verdict.",
)
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
    verdict_file: str | None,
    prometheus: str | None,
    form: str,
    exit_style: str,
    drain: bool,
    observe: bool,
    before_job: bool,
    every_process: bool,
    replay: str | None,
    save: str | None,
    verbose: bool,
) -> int:
    from torchdoctor.gate import bundle
    from torchdoctor.gate.launch import looks_elsewhere, refuses
    from torchdoctor.gate.policy import Policy
    from torchdoctor.gate.supervisor import Wish, supervise
    from torchdoctor.probes.interpreter import choose
    from torchdoctor.probes.opening import resolve

    style = exit_style.removesuffix("-prolog")
    if drain and style != "slurm":
        raise click.UsageError("--drain changes only the exit codes of --exit-style slurm")
    call = bundle.Call(tier or "quick", gpus, before_job)
    if replay is not None and os.path.isdir(replay):
        replay, recorded, policy_then = bundle.read(replay)
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
    policy = _policy(policy_file) if policy_file else Policy()
    elsewhere = "" if every_process else looks_elsewhere(os.environ)
    if elsewhere:
        return _skipped(elsewhere, call.tier, form)
    bundled = save is not None and save.endswith("/")
    for option, path in (
        ("--verdict-file", verdict_file),
        ("--prometheus", prometheus),
        ("--save", None if bundled else save),
    ):
        _can_be_written(option, path)
    interpreter = sys.executable
    if call.tier != "passive" and replay is None:
        interpreter = resolve(python) if python else choose()[0]
        refusal = refuses(os.environ, os.geteuid(), os.lstat(interpreter).st_uid)
        if refusal:
            raise click.UsageError(refusal)
    wish = Wish(
        call.tier, policy, interpreter, call.gpus, call.before_job or call.tier != "passive", observe,
        fault=os.environ.get("TORCHDOCTOR_FAULT", ""),
    )  # fmt: skip
    machine = None
    if replay is not None:
        from torchdoctor.probes.recording import RecordedSource

        machine = RecordedSource(replay).machine
    from torchdoctor.gate.files import WriteError

    try:
        recording = bundle.prepare(save) if bundled and save else save or ""
    except WriteError as error:
        raise click.UsageError(f"--save: {error}") from None
    try:
        outcome = supervise(wish, machine, recording)
        if bundled and save:
            bundle.complete(save, outcome, call, policy.text)
    except WriteError as error:
        streams.complain(f"--save cannot be written: {error}")
        return _mapped_fault(style)
    return _deliver(outcome, verdict_file, prometheus, form, style, drain, verbose)


def _skipped(why: str, tier: str, form: str) -> int:
    """Local rank 0 looks at the node: that is told, and no file is touched: it may be the same."""
    from torchdoctor.gate.supervisor import skipped

    outcome = skipped(why, tier)
    streams.complain(f"not looked: {why}; --every-process looks in each")
    with streams.shown():
        _show(outcome, form, verbose=False)
    return 0


def _can_be_written(option: str, path: str | None) -> None:
    """Told before the node is looked at, not when the time is spent."""
    if not path:
        return
    folder = os.path.dirname(path)
    if folder and not path.endswith("/") and not os.path.isdir(folder):
        raise click.UsageError(f"{option} {path}: there is no folder {folder}")
    from torchdoctor.gate.files import refusal

    why = refusal(path)
    if why == "is a folder":
        hint = "name a file" if option == "--prometheus" else f"name a file, or {path}/ for one in it"
        raise click.UsageError(f"{option} {path}: this is a folder; {hint}")
    if why:
        raise click.UsageError(f"{option} {path}: {why}")


def _policy(path: str) -> Policy:
    from torchdoctor.gate import passive
    from torchdoctor.gate.policy import load

    return load(path, passive.NAMES)


def _deliver(
    outcome: GateOutcome,
    verdict_file: str | None,
    prometheus: str | None,
    form: str,
    exit_style: str,
    drain: bool,
    verbose: bool,
) -> int:
    """Files first, then the screen: its reader may have gone, and the verdict holds all the same."""
    from torchdoctor.gate.files import WriteError, replace_file
    from torchdoctor.gate.launch import node_name
    from torchdoctor.gate.outcome import to_json, to_prometheus

    try:
        if verdict_file is not None and verdict_file.endswith("/"):
            verdict_file += f"{node_name(os.environ, outcome.host)}.json"
        if verdict_file is not None:
            replace_file(verdict_file, to_json(outcome) + "\n")
        if prometheus is not None:
            replace_file(prometheus, to_prometheus(outcome))
    except WriteError as error:
        # without its file the verdict is not to be acted on
        streams.complain(f"the verdict cannot be written: {error}")
        return _mapped_fault(exit_style)
    try:
        with streams.shown():
            _show(outcome, form, verbose)
    except OSError as error:
        if streams.is_closed() and verdict_file is not None:
            return outcome.exit_code(exit_style, drain)  # the file is the output that was wanted
        streams.complain(f"the verdict cannot be written: {error.strerror or error}")
        streams.abandon(sys.stdout)
        return _mapped_fault(exit_style)
    return outcome.exit_code(exit_style, drain)


def _show(outcome: GateOutcome, form: str, verbose: bool) -> None:
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

        streams.write("\n".join(render(outcome, streams.screen()[0], verbose)))


def _mapped_fault(exit_style: str) -> int:
    """A fault of ours in the codes of others: unknown where they have that; it never drains a node."""
    return {"slurm": 0, "nagios": 3, "npd": 2}.get(exit_style, exit_codes.OUR_FAULT)


@command.group("policy")
def policy_group() -> int:
    """Make or check a policy file."""
    return 0


@policy_group.command("check", short_help="Check whether a policy file can be used.")
@click.argument("file", type=click.Path(dir_okay=False))
def policy_check(file: str) -> int:
    """Check whether the policy FILE can be used; with exit code 2, the message names what is wrong."""
    found = _policy(file)
    streams.write_lines(
        [
            f"{file}: good; {counted(len(found.suppressions), 'suppression')}, "
            f"{counted(len(found.profiles), 'profile')}"
        ]
    )
    return 0


@policy_group.command("learn", short_help="Write a policy from this healthy node.")
@click.option("--replay", metavar="FILE", help="Learn from a recorded machine instead of this one.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the policy to FILE; leave it alone when nothing was learned.",
)
def policy_learn(replay: str | None, output: str | None) -> int:
    """Print a policy made from this healthy node: expect what it has.

    Refuses (exit code 12) when the node is not fit, or shows nothing to learn.
    """
    from torchdoctor.gate.files import WriteError, replace_file
    from torchdoctor.gate.learn import learn

    if output is not None:
        _can_be_written("--output", output)
    machine = None
    if replay is not None:
        from torchdoctor.probes.recording import RecordedSource

        machine = RecordedSource(replay).machine
    text, why = learn(machine)
    if why:
        streams.complain(f"no policy was made: {why}")
        return 12
    if output is None:
        streams.write(text)
        return 0
    try:
        replace_file(output, text)
    except WriteError as error:
        raise click.UsageError(f"--output: {error}") from None
    streams.complain(f"wrote {output}")
    return 0


command.add_command(merge)
command.add_command(pairs)
