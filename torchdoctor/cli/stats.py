"""``torchdoctor stats``: what many reports have in common."""

from __future__ import annotations

import sys

import click

from torchdoctor.cli import progress, streams, verdicts


@click.command("stats")
@verdicts.format_option("Tables, JSON, or one HTML page with charts that needs no network.", "html")
@verdicts.output_option
@click.option(
    "--top", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="Rows of each table."
)
@click.argument("reports", metavar="REPORTS.jsonl…", nargs=-1, required=True)
def command(form: str, top: int, reports: tuple[str, ...]) -> int:
    """Count failures over many reports: causes, nodes, GPUs, ranks and lines of code, by week; what is new;
    which node fails more often than chance explains.

    REPORTS.jsonl holds one report per line, as `explain --each --format jsonl` writes them; "-" is standard
    input. JSON has all rows.

    Exit codes: 0 done, 2 a usage error or reports that cannot be read, 70 a fault of torchdoctor.
    """
    from torchdoctor.fleet import show
    from torchdoctor.fleet.stats import of_files

    with progress.waiting("reading reports"):
        stats = of_files(reports, sys.stdin.buffer if "-" in reports else None)
    with streams.shown():
        if form == "json":
            streams.write(show.to_json(stats))
        elif form == "html":
            streams.write_page(show.to_html(stats, top))
        else:
            streams.write_lines(show.to_text(stats, streams.screen()[0], top))
    return 0
