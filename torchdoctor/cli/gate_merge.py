"""``torchdoctor gate merge``: the verdicts of all nodes as one table."""

from __future__ import annotations

import click

from torchdoctor.cli import streams, verdicts


@click.command("merge", short_help="Join the verdicts of all nodes into one table.")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option(
    "--nodes",
    metavar="LIST",
    default="",
    help="The nodes that must have reported, as Slurm lists them: gpu[003-005,9]. A missing one counts "
    "as undetermined.",
)
@click.option(
    "--since",
    metavar="SECONDS",
    type=float,
    default=0.0,
    help="Ignore verdicts from before this time, in seconds since the epoch (date +%s).",
)
@click.option(
    "--switches",
    metavar="FILE",
    help="For tests of pairs: which node is behind which switch (see gate pairs).",
)
@verdicts.format_option(
    "A table, JSON, the bare list of nodes for --exclude, or a page: nodes, checks, and what differs.",
    "exclude",
    "html",
)
@verdicts.output_option
def command(folder: str, nodes: str, since: float, switches: str | None, form: str) -> int:
    """Join the verdict files in FOLDER, one per node, into one table and a list for --exclude.

    Results of gate pairs in the same folder are included. Only nodes that are themselves
    to blame are in the list. Exit codes are those of gate, for the worst node; a node without a verdict
    makes it 12.
    """
    from torchdoctor.gate.fleet import merge, table, to_json
    from torchdoctor.gate.hostlist import hosts_of
    from torchdoctor.gate.pairs import switches_of

    fleet = merge(folder, hosts_of(nodes), since, switches_of(switches) if switches else None)
    with streams.shown():
        if form == "json":
            streams.write(to_json(fleet))
        elif form == "exclude":
            streams.write(",".join(fleet.exclude))
        elif form == "html":
            from torchdoctor.gate.fleet_page import to_html

            streams.write_page(to_html(fleet))
        else:
            streams.write_lines(table(fleet, streams.screen()[0]))
    return fleet.exit_code
