"""``torchdoctor rules``: list, show, lint and measure the catalog; name the facts that rules can ask for."""

from __future__ import annotations

import json
from typing import Any

import click

from torchdoctor import catalog
from torchdoctor.cli import streams

_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)
_RULES = click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="A folder of further rules (DIR/FAMILY/ID.toml); may be given several times.",
)


@click.group("rules")
def command() -> None:
    """Look into the failure catalog, check and measure it."""


@command.command("list")
@click.option("--family", metavar="F", help="Only the rules of this family.")
@_RULES
@_FORMAT
def list_(family: str | None, folders: tuple[str, ...], form: str) -> None:
    """List the rules: id, severity, title."""
    from torchdoctor.catalog.page import summary

    rules = sorted(catalog.load(extra=folders).rules(), key=lambda rule: (rule.family, rule.id))
    families = sorted({rule.family for rule in rules})
    if family is not None and family not in families:
        raise click.UsageError(f"no family {family!r}; there are: {', '.join(families)}")
    chosen = [rule for rule in rules if family in (None, rule.family)]
    if form == "json":
        _json([summary(rule) for rule in chosen])
        return
    column = max((len(rule.id) for rule in chosen), default=0)
    last = ""
    lines: list[str] = []
    for rule in chosen:
        if rule.family != last:
            lines += ["", rule.family] if lines else [rule.family]
            last = rule.family
        lines.append(f"  {rule.id:<{column}}  {rule.severity.value:<7}  {rule.title}")
    streams.write("\n".join(lines))


@command.command("show")
@click.argument("rule_id", metavar="ID")
@_RULES
@_FORMAT
def show(rule_id: str, folders: tuple[str, ...], form: str) -> None:
    """Show a rule: what it is, why it happens, how it shows, what to do."""
    from torchdoctor.catalog.page import as_data, page

    rules = catalog.load(extra=folders)
    if form == "json":
        _json(as_data(rules, rule_id))
    else:
        streams.write(page(rules, rule_id, min(streams.screen()[0], 100)))


@command.command("lint")
@click.option(
    "--rules", "folders", metavar="DIR", multiple=True, help="Check these folders instead of the catalog."
)
@click.option(
    "--fixtures",
    metavar="DIR",
    help="Labelled inputs that the rules must get right; by default those beside the catalog.",
)
def lint(folders: tuple[str, ...], fixtures: str | None) -> int:
    """Check the rules and run their fixtures; exit 1 when something is wrong with them."""
    import os

    from torchdoctor.engine.lint import lint

    beside = os.path.join(os.path.dirname(catalog.rules_directory()), "fixtures")
    if fixtures is None and not folders and os.path.isdir(beside):
        fixtures = beside
    if fixtures is not None and not os.path.isdir(fixtures):
        raise click.UsageError(f"{fixtures}: no such folder")
    wrong = 0
    for folder in folders or (catalog.rules_directory(),):
        report = lint(folder, fixtures)
        wrong += len(report.problems)
        streams.write("".join(f"✗ {line}\n" for line in report.problems))
        streams.write("".join(f"  {line}\n" for line in report.summary))
    streams.write(f"✗ {wrong} faults" if wrong else "✓ no fault")
    return 1 if wrong else 0


@command.command("facts")
@_FORMAT
def facts(form: str) -> None:
    """Name every fact that a rule can ask for, with its type and meaning."""
    from torchdoctor.engine.lint import fact_names

    found = fact_names()
    if form == "json":
        _json(dict(sorted(found.items())))
        return
    column = max(map(len, found))
    streams.write("\n".join(f"{name:<{column}}  {meaning}" for name, meaning in sorted(found.items())))


@command.command("eval")
@click.argument("folder", metavar="FOLDER")
@_RULES
@_FORMAT
def evaluate(folder: str, folders: tuple[str, ...], form: str) -> None:
    """Measure the rules on labelled inputs: FOLDER/labels.tsv, or a tree of fixtures with about.toml."""
    from torchdoctor.engine.evaluate import evaluate, in_words

    result = evaluate(folder, catalog.load(extra=folders))
    if form == "json":
        _json(result.as_data())
    else:
        streams.write(in_words(result))


def _json(value: Any) -> None:
    streams.write(json.dumps(value, indent=2))
