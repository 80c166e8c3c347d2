"""``torchdoctor rules``: list, show, check and measure the catalog; start a rule; name the facts."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from torchdoctor import catalog
from torchdoctor.cli import completion, exit_codes, loading, progress, rules_case, streams, verdicts
from torchdoctor.model import TorchdoctorError, counted

_FORMAT = verdicts.format_option()
_RULES = click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="A folder with more rules (DIR/FAMILY/ID.toml); may be given several times.",
)


@click.group("rules")
def command() -> None:
    """Browse the failure catalog; check and measure it."""


@command.command("list")
@click.option("--family", metavar="F", help="Only the rules of this family.")
@_RULES
@_FORMAT
@verdicts.output_option
def list_(family: str | None, folders: tuple[str, ...], form: str) -> None:
    """List the rules: id, severity, title."""
    from torchdoctor.catalog.page import summary
    from torchdoctor.lint import page as lint_page

    loaded = loading.rules(folders)
    known = [summary(rule) for rule in loaded.rules()] + lint_page.summaries()
    rules = sorted(known, key=lambda rule: (rule["family"], rule["id"]))
    families = sorted({rule["family"] for rule in rules})
    if family is not None and family not in families:
        raise click.UsageError(f"no family {family!r}; there are: {', '.join(families)}")
    chosen = [rule for rule in rules if family in (None, rule["family"])]
    if form == "json":
        _json(chosen)
        return
    column = max((len(rule["id"]) for rule in chosen), default=0)
    last = ""
    lines: list[str] = []
    for rule in chosen:
        if rule["family"] != last:
            lines += ["", rule["family"]] if lines else [rule["family"]]
            last = rule["family"]
        gone = " (retired)" if rule["id"] in loaded.retired else ""
        lines.append(f"  {rule['id']:<{column}}  {rule['severity']:<7}  {rule['title']}{gone}")
    streams.write_lines(lines)


@command.command("show", short_help="Show one rule: why it happens, what to do.")
@click.argument("rule_id", metavar="ID", shell_complete=completion.rule_ids)
@_RULES
@_FORMAT
@verdicts.output_option
def show(rule_id: str, folders: tuple[str, ...], form: str) -> None:
    """Show a rule: what it is, an example, why it happens, what to do, what looks similar."""
    from torchdoctor.catalog.page import as_data
    from torchdoctor.catalog.pages import gathered, in_text

    rules = loading.rules(folders)
    if rule_id not in rules.ids() and _show_check(rule_id, form):
        return
    page = gathered(rules, rule_id, folders)
    if form == "json":
        _json(as_data(rules, rule_id, page))
    else:
        streams.write(in_text(page, min(streams.screen()[0], 100)))


def _show_check(id_: str, form: str) -> bool:
    """Show a check of ``lint``; False where none has that id."""
    from torchdoctor.lint import page

    check = page.find(id_)
    if check is None:
        return False
    if form == "json":
        _json(page.as_data(check))
    else:
        streams.write(page.in_text(check, min(streams.screen()[0], 100)))
    return True


_FIXTURES = click.option(
    "--fixtures",
    metavar="DIR",
    help="The labelled inputs of the rules; by default those in fixtures/ beside the rules folder.",
)
_FOLDER = click.option(
    "--rules", "folder", metavar="DIR", help="The rules folder to work in, instead of the catalog's."
)


@command.command("lint", short_help="Check the rules and run their cases.")
@click.option(
    "--rules", "folders", metavar="DIR", multiple=True, help="Check these folders instead of the catalog."
)
@_FIXTURES
@click.option(
    "--golden",
    metavar="FILE",
    help="The recorded answers to all cases; by default tests/golden/top1.tsv beside them.",
)
@click.option(
    "--update-golden", is_flag=True, help="Record the answers as they are now, to be reviewed as a diff."
)
def lint(folders: tuple[str, ...], fixtures: str | None, golden: str | None, update_golden: bool) -> int:
    """Check the rules and run their cases; exit 1 when something is wrong with them."""
    from torchdoctor.catalog.reader import CatalogError
    from torchdoctor.workbench.golden import PLACE
    from torchdoctor.workbench.lint import check, examine

    for named in folders:
        if not _has_rules(named):
            lacks = "holds no rule" if os.path.isdir(named) else "no such folder"
            raise click.UsageError(f"--rules {named}: {lacks}; a rules folder holds FAMILY/ID.toml")
    if golden is not None and not update_golden and not os.path.isfile(golden):
        raise click.UsageError(f"--golden {golden}: no such file; --update-golden writes it")
    places = [(folder, _fixtures(fixtures, folder)) for folder in folders or (None,)]
    labelled = places[0][1] if len(places) == 1 else None
    if golden is None and labelled is not None:
        beside = os.path.join(os.path.dirname(os.path.abspath(labelled)), PLACE)
        golden = beside if os.path.exists(beside) or (update_golden and not folders) else None
    if update_golden and (golden is None or len(folders) > 1):
        raise click.UsageError("--update-golden needs fixtures, and --golden FILE for rules of your own")
    wrong, lines = 0, list[str]()
    summary: tuple[str, ...]
    for folder, inputs in places:
        try:
            with progress.waiting("running the cases"):
                found = examine(folder or catalog.rules_directory(), inputs)
        except CatalogError as error:
            problems, summary = error.problems, ()
        else:
            if update_golden and golden is not None:
                _write({golden: found.golden(golden)})
            report = check(found, golden)
            problems, summary = report.problems, report.summary
        wrong += len(problems)
        lines += [*(f"✗ {text}" for text in problems), *(f"  {text}" for text in summary)]
    lines.append(f"✗ {counted(wrong, 'fault')}" if wrong else "✓ no fault")
    with streams.shown():
        streams.write_lines(lines)
    return exit_codes.FINDINGS if wrong else 0


@command.command("pages", short_help="Write what the pages of rules show.")
@_FOLDER
@_FIXTURES
@click.option("--site", metavar="DIR", help="Write the pages instead: one per rule into DIR, with indexes.")
def pages(folder: str | None, fixtures: str | None, site: str | None) -> None:
    """Write, beside the rules, the examples that their pages show, and the messages they are known by."""
    if site is not None:
        from torchdoctor.catalog.pages import site as made_for
        from torchdoctor.catalog.remarks import read_examples

        directory = folder or catalog.rules_directory()
        written = made_for(catalog.load(folder), directory, read_examples(directory))
        made = {os.path.join(site, name): text for name, text in written.items()}
    else:
        from torchdoctor.workbench.lint import examine

        with progress.waiting("running the cases"):
            found = examine(_writable(folder), _fixtures(fixtures, folder))
        made = {os.path.join(found.directory, name): text for name, text in found.pages().items()}
    changed = _write(made)
    streams.write_lines(
        [*(f"wrote {path}" for path in changed), f"{counted(len(made), 'file is', 'files are')} current"]
    )


@command.command("new", short_help="Start a rule from a log.")
@click.argument("rule_id", metavar="ID")
@click.option("--from", "log", metavar="LOG", required=True, help="A log that shows the failure.")
@click.option("--family", metavar="F", help="The rule's family; by default that of rules with similar ids.")
@click.option(
    "--line", type=click.IntRange(1), metavar="N", help="The rule is about the message on line N of the log."
)
@_FOLDER
@_FIXTURES
def new(
    rule_id: str, log: str, family: str | None, line: int | None, folder: str | None, fixtures: str | None
) -> None:
    """Start a rule from a log: template, case and near miss, without the names and secrets in the log.

    The result fails `torchdoctor rules lint` until every TODO in it is filled in. Look at the case
    before you publish it.
    """
    from torchdoctor.workbench.cases import place
    from torchdoctor.workbench.scaffold import start, write

    directory = _writable(folder)
    rules = loading.rules((folder,) if folder and _has_rules(folder) else ())
    if folder:
        os.makedirs(folder, exist_ok=True)
    stubs = start(rule_id, log, rules, directory, fixtures or place(directory), family, line)
    write(stubs)
    streams.write_lines(
        [
            f"{rule_id} in {stubs.family}, from the text",
            f"  {stubs.template}",
            *(f"wrote {os.path.relpath(path)}" for path in stubs.paths),
            *(f"! {note}" for note in stubs.notes),
            f"Next: fill every TODO, then `torchdoctor rules lint{_named(folder, fixtures)}`.",
        ]
    )


def _named(folder: str | None, fixtures: str | None) -> str:
    """The options that name what was just written, for the next command."""
    from shlex import quote

    given = (("--rules", folder), ("--fixtures", fixtures))
    return "".join(f" {option} {quote(path)}" for option, path in given if path)


def _writable(folder: str | None) -> str:
    """The rules folder to write in; that of an installed package is no place for anybody's work."""
    directory = folder or catalog.rules_directory()
    if folder is None and not os.path.exists(os.path.join(os.path.dirname(directory), "pyproject.toml")):
        raise click.UsageError("this is an installed catalog; name a folder of your own with --rules DIR")
    return directory


def _has_rules(folder: str) -> bool:
    from torchdoctor.catalog.loader import rule_files

    return os.path.isdir(folder) and next(rule_files(folder), None) is not None


def _fixtures(named: str | None, folder: str | None) -> str | None:
    """The fixtures named, else those beside the rules folder, where ``rules new`` writes them; None where
    there are none."""
    from torchdoctor.workbench.cases import beside

    if named is not None and not os.path.isdir(named):
        raise click.UsageError(f"--fixtures {named}: no such folder; it holds the cases, ID.cases")
    return named or beside(folder or catalog.rules_directory())


def _write(texts: dict[str, str]) -> list[str]:
    """Write what is not so already; returns the paths that were written. Raises TorchdoctorError."""
    changed: list[str] = []
    for path, text in texts.items():
        try:
            try:
                with open(path, encoding="utf-8", newline="") as file:
                    if file.read() == text:
                        continue
            except (FileNotFoundError, UnicodeDecodeError):
                pass
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise TorchdoctorError(f"{path}: cannot be written: {error.strerror}") from error
        changed.append(path)
    return changed


command.add_command(rules_case.command)


@command.command("facts", short_help="List every fact that a rule can ask for.")
@_FORMAT
@verdicts.output_option
def facts(form: str) -> None:
    """List every fact that a rule can ask for, with its type and meaning."""
    from torchdoctor.workbench.lint import fact_names

    found = fact_names()
    if form == "json":
        _json(dict(sorted(found.items())))
        return
    column = max(map(len, found))
    streams.write_lines(f"{name:<{column}}  {meaning}" for name, meaning in sorted(found.items()))


@command.command("nearest", short_help="Find the rules with messages like one.")
@click.argument("message", metavar="MESSAGE")
@_FORMAT
@verdicts.output_option
def nearest(message: str, form: str) -> None:
    """Find the rules whose known messages come nearest to MESSAGE: the one that a new wording belongs to."""
    from torchdoctor.catalog.nearest import nearest as find

    found = find(catalog.rules_directory(), message, limit=10, least=0.1)
    if form == "json":
        _json([one._asdict() for one in found])
        return
    lines = (f"{one.likeness:.2f}  {one.rule}\n      {one.message}" for one in found)
    streams.write_lines(lines if found else ["no known message is near enough: give more of its words"])


@command.command("eval", short_help="Measure the rules on labelled inputs.")
@click.argument("folder", metavar="FOLDER")
@click.option("--only", metavar="PATTERNS", help="Only cases with matching names, such as 'ag-*,dx-*'.")
@_RULES
@_FORMAT
@verdicts.output_option
def evaluate(folder: str, only: str | None, folders: tuple[str, ...], form: str) -> None:
    """Measure the rules on labelled inputs: FOLDER/labels.tsv, or the ID.cases of FOLDER."""
    from torchdoctor.workbench.evaluate import evaluate
    from torchdoctor.workbench.scoreboard import in_words

    patterns = [item.strip() for item in (only or "").split(",") if item.strip()]
    with progress.waiting("running the cases"):
        result = evaluate(folder, loading.rules(folders), patterns)
    if form == "json":
        _json(result.as_data())
    else:
        streams.write(in_words(result))


def _json(value: Any) -> None:
    streams.write(json.dumps(value, indent=2))
