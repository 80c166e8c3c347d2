"""``torchdoctor facts``: what is known of this machine; saved, and compared with another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import exit_codes, progress, streams, verdicts
from torchdoctor.model import counted

if TYPE_CHECKING:
    from torchdoctor.model import Fact
    from torchdoctor.probes.difference import Change


@click.group("facts", invoke_without_command=True)
@verdicts.python_option
@click.option(
    "--save", metavar="FILE", help="Record the machine in FILE: names, serials and addresses are replaced."
)
@click.option("--facts", "facts_file", metavar="FILE", help="Show a recorded machine instead of this one.")
@verdicts.format_option()
@verdicts.output_option
@verdicts.time_limit_option(None, "How long `import torch` may take.  [default: 60]", 3600)
@click.pass_context
def command(
    context: click.Context,
    python: str | None,
    save: str | None,
    facts_file: str | None,
    form: str,
    time_limit: float | None,
) -> int:
    """Show what is known about this machine and its torch, and where each fact comes from.

    A recording (--save) can be examined elsewhere: check --facts, explain --facts, facts diff.

    Exit codes: 0 done, 2 a usage error or a file that cannot be used, 70 a fault of torchdoctor.
    """
    if context.invoked_subcommand is not None:
        return 0
    if facts_file is not None:
        if python is not None or save is not None:
            raise click.UsageError("--facts names a recorded machine; --python and --save are for this one")
        from torchdoctor.probes.recorded import all_facts

        _show(all_facts(facts_file), form)
        return 0
    from torchdoctor.probes.descendants import ended_with_us
    from torchdoctor.probes.interrupts import ended_by_signals
    from torchdoctor.probes.opening import open_live, pick
    from torchdoctor.probes.probe import Limits

    chosen = pick(python)
    if chosen.note:
        streams.complain(chosen.note)
    with ended_by_signals(), ended_with_us():
        source = open_live(chosen.python, Limits(import_s=time_limit) if time_limit else None)
        try:
            if save is not None:
                from torchdoctor.probes.recording import save as save_recording

                with progress.waiting("looking at this machine"):
                    save_recording(source, save)
                streams.complain(f"saved in {save}; read it before you share it")
            else:
                with progress.waiting("looking at this machine"):
                    known = source.all()
                _show(known, form)
        finally:
            source.close()
    if source.faults:
        streams.complain(
            "a fault of torchdoctor while looking at the machine:", *source.faults[0].splitlines()
        )
        return exit_codes.OUR_FAULT
    return 0


@command.command("diff", short_help="Show what differs between two recorded machines.")
@click.argument("good")
@click.argument("bad")
@verdicts.format_option()
@verdicts.output_option
@click.option(
    "--all", "everything", is_flag=True, help="Also show readings that always differ, such as free memory."
)
def diff(good: str, bad: str, form: str, everything: bool) -> int:
    """Show what differs between two recorded machines, most meaningful first.

    GOOD and BAD are files of `torchdoctor facts --save`.
    """
    from torchdoctor.probes.difference import compare
    from torchdoctor.probes.recorded import all_facts

    found = compare(all_facts(good), all_facts(bad))
    changes = (*found.changes, *found.noise) if everything else found.changes
    if form == "json":
        rows = [_change(change) for change in changes]
        streams.write(
            json.dumps({"schema": "torchdoctor.facts-diff/1", "changes": rows, "untold": list(found.untold)})
        )
        return 0
    width = max((len(change.name) for change in changes), default=0)
    for change in changes:
        _line(f"{change.name:{width}}  {change.text}")
    if not changes:
        _line("No meaningful difference.")
    if found.noise and not everything:
        _line(
            f"{counted(len(found.noise), 'reading')} left out: they differ anyway, or follow from these "
            "(see --all)."
        )
    if found.untold:
        _line(f"Not recorded on one side: {', '.join(found.untold)}")
    return 0


def _show(facts: tuple[Fact, ...], form: str) -> None:
    if form == "json":
        from torchdoctor.model import Outcome, Report
        from torchdoctor.render.json import to_json

        streams.write(to_json(Report(Outcome.NO_FAILURE, facts=facts)))
        return
    from torchdoctor.probes.fact_table import lines

    for line in lines(facts):
        _line(line)


def _line(text: str) -> None:
    streams.write_lines([text])


def _change(change: Change) -> dict[str, object]:
    return {
        "name": change.name,
        "good": {"state": change.good.state.value, "value": change.good.value},
        "bad": {"state": change.bad.state.value, "value": change.bad.value},
        "noise": change.noise,
    }
