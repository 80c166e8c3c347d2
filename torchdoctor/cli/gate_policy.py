"""``torchdoctor gate policy``: make or check a site's policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from torchdoctor.cli import streams, verdicts
from torchdoctor.model import counted

if TYPE_CHECKING:
    from torchdoctor.gate.policy import Policy


def policy_of(path: str) -> Policy:
    """The policy in a file. Raises PolicyError."""
    from torchdoctor.gate import passive
    from torchdoctor.gate.policy import load

    return load(path, passive.NAMES)


@click.group("policy")
def command() -> int:
    """Make or check a policy file."""
    return 0


@command.command("check", short_help="Check whether a policy file can be used.")
@click.argument("file", type=click.Path(dir_okay=False))
def policy_check(file: str) -> int:
    """Check whether the policy FILE can be used; with exit code 2, the message names what is wrong."""
    found = policy_of(file)
    streams.write_lines(
        [
            f"{file}: good; {counted(len(found.suppressions), 'suppression')}, "
            f"{counted(len(found.profiles), 'profile')}"
        ]
    )
    return 0


@command.command("learn", short_help="Write a policy from this healthy node.")
@verdicts.facts_option("Learn from a recorded machine instead of this one.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the policy to FILE; leave it alone when nothing was learned.",
)
def policy_learn(facts: str | None, output: str | None) -> int:
    """Print a policy made from this healthy node: expect what it has.

    Refuses (exit code 12) when the node is not fit, or shows nothing to learn.
    """
    from torchdoctor.gate.files import WriteError, replace_file
    from torchdoctor.gate.learn import learn

    if output is not None:
        verdicts.can_be_written("--output", output)
    text, why = learn(verdicts.recorded(facts))
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
