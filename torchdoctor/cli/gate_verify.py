"""``torchdoctor gate verify``: after a repair, does what failed pass now?"""

from __future__ import annotations

import sys

import click

from torchdoctor.cli import gate_look, gate_policy, streams, verdicts


@click.command("verify", short_help="After a repair: do the checks that failed pass now?")
@click.option("--python", metavar="PATH", help="The job's interpreter or environment.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(dir_okay=False),
    help="The site's policy.  [default: that of the verdict]",
)
@verdicts.facts_option("Look at a recorded machine instead of this one.")
@click.option("-o", "--output", metavar="FILE", help="Write the new verdict to FILE.")
@verdicts.format_option()
@click.argument("verdict", type=click.Path(dir_okay=False))
def command(
    python: str | None,
    policy_file: str | None,
    facts: str | None,
    output: str | None,
    form: str,
    verdict: str,
) -> int:
    """Make the checks that failed in VERDICT again, on the same GPUs by UUID, in the same tier.

    Exit codes: 0 all pass now, 10 or 11 something fails (as for gate), 12 not the same GPU, or not run, 2 a
    usage error, 70 a fault of torchdoctor.
    """
    import json

    from torchdoctor.gate import verify
    from torchdoctor.gate.files import WriteError, replace_file
    from torchdoctor.gate.outcome import to_json
    from torchdoctor.gate.policy import Policy
    from torchdoctor.gate.supervisor import TIERS, Wish
    from torchdoctor.render import lines

    verdicts.can_be_written("--output", output)
    before = verify.earlier(verdict)
    if before.tier not in TIERS:
        raise click.UsageError(f"{verdict}: unknown tier {before.tier!r}")
    policy = policy_file or before.policy
    wish = Wish(
        before.tier,
        gate_policy.policy_of(policy) if policy else Policy(),
        gate_look.interpreter(python, before.tier, facts),
        before.gpus,
        before.tier != "passive",
    )
    outcome = gate_look.looked(wish, facts)
    verified = verify.compare(before, outcome)
    if output is not None:
        try:
            replace_file(output, to_json(outcome) + "\n")
        except WriteError as error:
            raise click.UsageError(f"--output: {error}") from None
    with streams.shown():
        if form == "json":
            streams.write(verify.to_json(verified, json.loads(to_json(outcome))))
        else:
            lines.write(verify.lines(verified), sys.stdout, streams.color_wanted())
    return verified.exit_code
