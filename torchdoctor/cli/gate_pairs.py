"""``torchdoctor gate pairs``: which node breaks a job across nodes."""

from __future__ import annotations

import click

from torchdoctor.cli import streams, verdicts


@click.command("pairs", short_help="Find which node breaks multi-node jobs.")
@click.argument("folder", type=click.Path(file_okay=False), required=False)
@click.option("--nodes", metavar="LIST", default="", help="The nodes, as Slurm lists them: gpu[003-005,9].")
@click.option(
    "--switches",
    metavar="FILE",
    help="Which node is behind which switch: lines 'switch: nodes', or Slurm's topology.conf.",
)
@click.option(
    "--next", "plan", is_flag=True, help="Print the pairs to test next, one per line; none when done."
)
@click.option(
    "--program", is_flag=True, help="Print the path of the program that tests a pair, for torchrun."
)
@verdicts.format_option("For people, JSON, or the bare list of nodes for --exclude.", "exclude")
@verdicts.output_option
def command(
    folder: str | None, nodes: str, switches: str | None, plan: bool, program: bool, form: str
) -> int:
    """Judge the pair tests in FOLDER, or say which pairs to test next.

    A node is to blame when it fails with two different partners that work with others; what fails behind one
    switch or on one rail as a whole is the fabric's fault, and nobody's. Exit codes: 0 all nodes work, 10 a
    node is to blame, 12 the fabric is, or it could not be determined.
    """
    from torchdoctor.gate import pairs
    from torchdoctor.gate.hostlist import hosts_of

    if program:
        streams.write(pairs.PROGRAM)
        return 0
    if folder is None:
        raise click.UsageError("name the folder with the pairs' results, or use --program")
    tests = pairs.read(folder)
    named = hosts_of(nodes) or tuple(sorted({node for one in tests for node in one.nodes}))
    if len(named) < 2:
        raise click.UsageError("--nodes: at least two nodes are needed, for example gpu[003-004]")
    if plan:
        planned = pairs.next_round(named, tests)
        if planned:
            streams.write("\n".join(f"{first},{second}" for first, second in planned))
        return 0
    found = pairs.isolate(named, tests, pairs.switches_of(switches) if switches else None)
    with streams.shown():
        if form == "json":
            streams.write(pairs.to_json(found))
        elif form == "exclude":
            streams.write(",".join(node for node, _ in found.blamed))
        else:
            streams.write_lines(pairs.to_text(found))
    return found.exit_code
