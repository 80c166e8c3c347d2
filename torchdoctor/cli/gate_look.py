"""What the commands that look at a node share: whose Python runs, and the look itself."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import progress, verdicts

if TYPE_CHECKING:
    from torchdoctor.gate.outcome import GateOutcome
    from torchdoctor.gate.supervisor import Wish


def interpreter(python: str | None, tier: str, facts: str | None) -> str:
    """The job's interpreter, for a tier that runs it. Raises UsageError: root runs nobody else's program."""
    if tier == "passive" or facts is not None:
        return sys.executable
    from torchdoctor.gate.launch import refuses
    from torchdoctor.probes.interpreter import choose
    from torchdoctor.probes.opening import resolve

    chosen = resolve(python) if python else choose()[0]
    refusal = refuses(os.environ, os.geteuid(), os.lstat(chosen).st_uid)
    if refusal:
        raise click.UsageError(refusal)
    return chosen


def looked(wish: Wish, facts: str | None, recording: str = "") -> GateOutcome:
    """The outcome, of this machine or a recorded one. Raises WriteError for the ``recording``."""
    from torchdoctor.gate.supervisor import supervise

    machine = verdicts.recorded(facts)
    line = progress.Line()
    try:
        return supervise(wish, machine, recording, line.put if line.wanted else None)
    finally:
        line.clear()
