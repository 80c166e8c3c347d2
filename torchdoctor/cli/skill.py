"""``torchdoctor skill``: where the instructions for coding agents are."""

from __future__ import annotations

import os

import click

from torchdoctor import hooks
from torchdoctor.cli import streams


@click.command("skill")
def command() -> int:
    """Print the path of SKILL.md, which tells coding agents when to call what, and how to read the answers.

    Its folder can be linked or copied to where an agent looks for skills.

    Exit codes: 0 done, 2 a usage error.
    """
    folder = os.path.dirname(os.path.abspath(hooks.__file__))
    streams.write_lines([os.path.join(folder, "skill", "torchdoctor", "SKILL.md")])
    return 0
