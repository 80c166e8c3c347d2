"""``torchdoctor rules case``: print, explain or add one labelled input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from torchdoctor.cli import completion, loading, streams

if TYPE_CHECKING:
    from torchdoctor.workbench.case import Case


@click.command("case", short_help="Print, explain or add a labelled input.")
@click.argument("name", metavar="ID[/NAME]", shell_complete=completion.rule_ids)
@click.option(
    "--explain", "explained", is_flag=True, help="Explain it, and compare the result with its label."
)
@click.option("-o", "--output", metavar="PATH", help="Write it to PATH; several files become a folder.")
@click.option("--from", "log", metavar="LOG", help="Add it: a log, without the names and secrets in it.")
@click.option(
    "--origin",
    type=click.Choice(["captured", "reported", "reconstructed"]),
    help="With --from: a program's own output, from a report, or reconstructed.",
)
@click.option(
    "--rule", metavar="RULE", help='With --from: the rule expected, "none" or "unrecognised"; by default ID.'
)
@click.option("--note", metavar="TEXT", default="", help="With --from: what is special, what was replaced.")
@click.option("--rules", "folder", metavar="DIR", help="The rules folder that the cases belong to.")
@click.option("--fixtures", metavar="DIR", help="The folder of ID.cases, if not fixtures/ beside the rules.")
def command(
    name: str,
    explained: bool,
    output: str | None,
    log: str | None,
    origin: str | None,
    rule: str | None,
    note: str,
    folder: str | None,
    fixtures: str | None,
) -> None:
    """Print the input of the case ID/NAME byte for byte; ID alone lists the cases of a rule.

    A file of cases counts bytes, so add cases with --from, not with a text editor.
    """
    root = _root(fixtures, folder)
    if log is not None:
        _add(root, name, log, origin, rule, note)
        return
    if origin or rule or note:
        raise click.UsageError("--origin, --rule and --note label a case that is added with --from")
    if "/" not in name:
        if output is not None:
            raise click.UsageError(f"--output writes one case: name it as {name}/NAME")
        _list(root, name)
        return
    from torchdoctor.workbench.cases import find, unpack

    case = find(root, name)
    if explained:
        _explain(case, folder)
    elif output is not None:
        streams.write("\n".join(f"wrote {path}" for path in unpack(case, output)))
    else:
        _print(case)


def _root(fixtures: str | None, folder: str | None) -> str:
    from torchdoctor import catalog
    from torchdoctor.workbench.cases import beside, place

    rules = folder or catalog.rules_directory()
    root = fixtures or beside(rules) or (place(rules) if folder else None)
    if root is None:
        raise click.UsageError("there are no cases beside the rules; name their folder with --fixtures DIR")
    return root


def _add(root: str, name: str, log: str, origin: str | None, rule: str | None, note: str) -> None:
    from torchdoctor.workbench.collect import collect

    if origin is None:
        raise click.UsageError("--from needs --origin: captured, reported or reconstructed")
    case, replaced = collect(root, name, log, origin, rule, note)
    told = f"; taken out: {', '.join(replaced)}" if replaced else ""
    streams.write(f"wrote {case.id}, of which {case.rule} is expected{told}")


def _list(root: str, of: str) -> None:
    from torchdoctor.workbench.cases import file_of, read_file
    from torchdoctor.workbench.scoreboard import listed

    cases, problems = read_file(file_of(root, of))
    for problem in problems:
        streams.complain(problem)
    streams.write(listed(cases))


def _print(case: Case) -> None:
    """The very bytes; a terminal gets them without what would move its cursor or change its colours."""
    held = case.input()
    if sys.stdout.isatty():
        from torchdoctor.render.clean import clean

        streams.write("\n".join(clean(line) for line in held.decode("utf-8", "replace").splitlines()))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(held)
    sys.stdout.buffer.flush()


def _explain(case: Case, folder: str | None) -> None:
    from torchdoctor.render.text import render
    from torchdoctor.workbench.evaluate import judge
    from torchdoctor.workbench.scoreboard import compared

    result = judge(case, loading.rules((folder,) if folder else ()))
    width, height = streams.screen()
    with streams.shown():
        render(result.report, stream=sys.stdout, width=width, height=height, color=streams.color_wanted())
        streams.write(f"\n{compared(result)}")
