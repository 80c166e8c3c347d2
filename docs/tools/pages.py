"""Hooks of mkdocs: the pages that are made when the site is built, and the links between all of them.

A page for each command (its help), for each rule and for each check of lint is made here; README, SECURITY,
CONTRIBUTING, CHANGELOG and the READMEs of deploy/ are pages too. In all of them a link is written as it holds
in the repository, so that it works there; here it is turned into the page it leads to.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

# file of the repository -> page of the site; those of docs/ keep their names
OUTSIDE = {
    "README.md": "readme.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE",
    "rules": "rules/index.md",
    "torchdoctor/schema/report-1.json": "schema/report-1.json",
    **{f"deploy/{path.parent.name}/README.md": f"deploy/{path.parent.name}.md"
       for path in (ROOT / "deploy").glob("*/README.md")},
}  # fmt: skip
_PLACES = {page: path for path, page in OUTSIDE.items()}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(?=[)#])|(?:(?<=src=\")|(?<=srcset=\"))(docs/[^\"]+)")
_ADDRESS = re.compile(r"(?:\]\(|<)(https?:[^\s)>]*)")
_CODE = re.compile(r"^ *(`{3,})[^\n]*\n.*?^ *\1$|(`+)[^`].*?\2(?!`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made, and what lies outside of docs/."""
    for path, page in OUTSIDE.items():
        if path != "rules":
            files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    for page, text in {**_commands(), **_rules(), **_checks()}.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a file of the repository into links between pages; look at addresses."""
    here = page.file.src_uri
    for address in _ADDRESS.findall(_CODE.sub("", markdown)):
        if not _sound(address):
            raise PluginError(f"{here}: {address} is no address")
    if here.startswith(("commands/", "rules/", "lint/")):
        return markdown
    written = _PLACES.get(here, f"docs/{here}")

    def leads_to(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(written), found[0]))
        target = OUTSIDE.get(target, target.removeprefix("docs/"))
        if found[
            2
        ]:  # of a picture in HTML, which mkdocs leaves alone: as it is seen from the page's own folder
            return "../" + target
        return posixpath.relpath(target, posixpath.dirname(here) or ".")

    return _LINK.sub(leads_to, markdown)


def _sound(address: str) -> bool:
    """Has an address that a link leads to a sound form? More cannot be checked without a network."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(re.fullmatch(r"localhost|[\w-]+(?:\.[\w-]+)+", host)) and not host.endswith(".invalid")


def _commands() -> dict[str, str]:
    """A page for each command: what it is, its help; and a list of them."""
    from torchdoctor.cli.main import cli

    made: dict[str, str] = {}
    rows = ["# Commands", "", "| command | |", "|---|---|"]
    for path, command in _below(cli, ()):
        name, slug = " ".join(path), "-".join(path)
        context = click.Context(
            command, info_name=f"torchdoctor {name}", max_content_width=80, terminal_width=80
        )
        handbook = ROOT / "docs" / f"{path[0]}.md"
        lines = [f"# torchdoctor {name}", "", "```text", command.get_help(context), "```", ""]
        if handbook.exists():
            lines += [f"[More on {path[0]}](../{path[0]}.md) · [all commands](index.md)", ""]
        made[f"commands/{slug}.md"] = "\n".join(lines)
        rows.append(f"| [{name}]({slug}.md) | {command.get_short_help_str(200)} |")
    return {"commands/index.md": "\n".join([*rows, ""]), **made}


def _below(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _below(command, (*path, name))


def _rules() -> dict[str, str]:
    from torchdoctor import catalog
    from torchdoctor.catalog.pages import site
    from torchdoctor.catalog.remarks import read_examples

    directory = catalog.rules_directory()
    made = site(catalog.load(), directory, read_examples(directory))
    return {f"rules/{name}": text for name, text in made.items()}


def _checks() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "tests"))
    from lint.spellings import TEXTS

    from torchdoctor.lint.page import site

    made = site({id_: _example(text) for id_, text in TEXTS.items()})
    return {f"lint/{name}": text for name, text in made.items()}


def _example(cases: str) -> str:
    """The first source that has the pitfall, without the imports of all, spaced as ruff wants it."""
    first = re.search(r"^#: bad .*\n((?:(?!#: ).*\n)*)", cases, re.MULTILINE)
    assert first
    lines: list[str] = []
    before = ""
    for line in first[1].replace("  # <-", "").strip("\n").split("\n"):
        if line and not line[0].isspace():
            kind = line.split()[0].rstrip(":")
            gap = 2 if {kind, before} & {"def", "class"} else int(before == "import")
            kind = "import" if kind == "from" else kind
            if before and not (before == kind == "import") and (gap or not lines[-1]):
                while lines[-1] == "":
                    lines.pop()
                lines += [""] * max(gap, 1)
            before = kind
        lines.append(line)
    return "\n".join(lines)
