"""What is told of a check: in lists, and on its page."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from torchdoctor.lint import registry
from torchdoctor.lint.finding import FAMILY
from torchdoctor.model import page_of

if TYPE_CHECKING:
    from torchdoctor.lint.finding import Check

_GROUPS = {
    0: "always looked for, a warning",
    1: "group 1: looked for by default, fatal",
    2: "group 2: with --advice, a warning",
}


def listing() -> str:
    """All checks, a line each, by group."""
    lines: list[str] = []
    column = max(map(len, registry.all_checks()))
    for group, head in _GROUPS.items():
        lines += ["", head] if lines else [head]
        for id_, one in registry.all_checks().items():
            if one.group == group:
                lines.append(f"  {id_:<{column}}  {'fix ' if one.fixable else '    '}  {one.title}")
    lines += ["", "fix: --fix makes the repair where that is safe", ""]
    return "\n".join(lines)


def find(id_: str) -> Check | None:
    """The check of that id."""
    return registry.all_checks().get(id_)


def summaries() -> list[dict[str, Any]]:
    """The summary of every check."""
    return [summary(one) for one in registry.all_checks().values()]


def summary(check: Check) -> dict[str, Any]:
    """Id, family, severity and title, as of a rule."""
    return {
        "id": check.id,
        "family": FAMILY,
        "severity": "fatal" if check.group == 1 else "warning",
        "role": "cause",
        "title": check.title,
    }


def as_data(check: Check) -> dict[str, Any]:
    """Everything that is told of a check, as JSON data."""
    return {
        **summary(check),
        "group": check.group,
        "why": " ".join(check.why.split()),
        "fixes": [{"do": one, "run": None, "risk": "safe"} for one in check.fix],
        "cause": check.cause or None,
        "fixable": check.fixable,
        "overlaps": check.overlaps or None,
    }


def site(examples: dict[str, str]) -> dict[str, str]:
    """One page a check, ID.md, with an index: name of the file -> text.

    ``examples`` holds code that has the pitfall, by id.
    """
    lines = ["# What lint looks for", ""]
    for group, head in _GROUPS.items():
        lines += [f"## {head[0].upper()}{head[1:]}", "", "| check | pitfall | repair |", "|---|---|---|"]
        for id_, one in registry.all_checks().items():
            if one.group == group:
                lines.append(f"| [{id_}]({id_}.md) | {one.title} | {'`--fix`' if one.fixable else ''} |")
        lines.append("")
    made = {f"{id_}.md": _page(one, examples.get(id_, "")) for id_, one in registry.all_checks().items()}
    return {"index.md": "\n".join(lines), **made}


def _page(check: Check, example: str) -> str:
    lines = [f"# {check.id}", "", f"**{check.title}** ({_GROUPS[check.group]})", ""]
    lines += ["```python", example, "```", ""] if example else []
    lines += [" ".join(check.why.split()), "", "**What to do**", "", *(f"- {one}" for one in check.fix), ""]
    if check.fixable:
        lines += ["`torchdoctor lint --fix` does it where that is safe.", ""]
    if check.cause:
        lines += [f"When it runs it shows as [{check.cause}](../rules/{check.cause}.md).", ""]
    if check.overlaps:
        lines += [f"Other linters: {check.overlaps}.", ""]
    return "\n".join([*lines, "[All checks](index.md)", ""])


def in_text(check: Check, width: int) -> str:
    """The page of a check for a terminal."""

    def wrapped(text: str, indent: str = "  ", first: str = "  ") -> str:
        return textwrap.fill(
            " ".join(text.split()),
            width,
            initial_indent=first,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )

    parts = [f"{check.id}  ({FAMILY}, {_GROUPS[check.group]})", "", wrapped(check.title, "", ""), ""]
    parts += ["Why", wrapped(check.why), "", "What to do"]
    parts += [wrapped(one, "     ", f"  {at}. ") for at, one in enumerate(check.fix, 1)]
    if check.fixable:
        parts.append("  `torchdoctor lint --fix` does it where that is safe.")
    if check.cause:
        parts += ["", "When it runs", f"  It shows as {check.cause} (torchdoctor rules show {check.cause})."]
    if check.overlaps:
        parts += ["", "Other linters", wrapped(check.overlaps)]
    parts += ["", f"To hide one: # torchdoctor: ignore[{check.id}]", f"Page: {page_of(check.id, FAMILY)}"]
    return "\n".join(parts)
