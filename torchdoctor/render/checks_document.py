"""Results of checks as Markdown and as one HTML page, for an administrator or an issue."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from torchdoctor.model import CheckResult, Report, Verdict, counted
from torchdoctor.render import markdown
from torchdoctor.render.checks import MARKS, grouped, summary, worst
from torchdoctor.render.clean import clean
from torchdoctor.render.page import page

_CLASSES = {Verdict.FAIL: "fail", Verdict.WARN: "warn", Verdict.PASS: "pass"}
_QUOTE = 4000


def to_markdown(report: Report, subject: str) -> str:
    """The findings in sight, what passed folded away; texts of the machine stand in code."""
    bad, good = _parted(report)
    blocks = [f"## {MARKS[worst(report)]} {summary(report)}", markdown.code(subject) if subject else ""]
    for group, members in grouped(bad):
        blocks.append(f"### {group or 'Findings'}")
        for one in members:
            blocks.append(f"**{MARKS[one.verdict]} {markdown.escape(one.title)}** (`{one.id}`)")
            blocks.append(markdown.fence("\n".join(_proof(one)), _QUOTE) if _proof(one) else "")
            blocks += [
                markdown.escape(text) for text in (one.reason, one.action and f"Do: {one.action}") if text
            ]
    blocks += _listed("Could not determine", [f"{one.id}: {one.reason}" for one in report.not_checked])
    blocks += _listed("Notes", report.notes)
    if good:
        rows = [f"- `{one.id}` {markdown.code(one.observed or '')}" for one in good]
        blocks += [
            f"<details><summary>{counted(len(good), 'check')} passed</summary>",
            "\n".join(rows),
            "</details>",
        ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def to_html(report: Report, subject: str) -> str:
    """One page that loads nothing."""
    bad, good = _parted(report)
    mark = f'<span class="mark {_CLASSES.get(worst(report), "ask")}">{MARKS[worst(report)]}</span>'
    body = [f"<h1>{mark}{_text(summary(report))}</h1>", f'<p class="dim">{_text(subject)}</p>']
    for group, members in grouped(bad):
        body.append(f"<h2>{_text(group or 'Findings')}</h2>")
        body += [_finding(one) for one in members]
    untold = [(one.id, one.reason) for one in report.not_checked]
    body.append(_table("Could not determine", untold).replace("<details>", "<details open>"))
    body.append(_table("Notes", [("", note) for note in report.notes]))
    for group, members in grouped(good):
        rows = [(f"{MARKS[one.verdict]} {one.id}", one.observed or "") for one in members]
        body.append(_table(f"Checked, nothing found: {group or 'the rest'}", rows))
    return page(f"torchdoctor check: {summary(report)}", "\n".join(filter(None, body)))


def _parted(report: Report) -> tuple[list[CheckResult], list[CheckResult]]:
    bad = [one for one in report.checks if one.verdict in (Verdict.FAIL, Verdict.WARN)]
    return bad, [one for one in report.checks if one.verdict is Verdict.PASS]


def _proof(one: CheckResult) -> list[str]:
    return [clean(item.text) for item in one.evidence] or ([clean(one.observed)] if one.observed else [])


def _listed(title: str, lines: list[str] | tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield f"### {title}"
        yield "\n".join(f"- {markdown.code(line)}" for line in lines)


def _finding(one: CheckResult) -> str:
    mark = f'<span class="mark {_CLASSES[one.verdict]}">{MARKS[one.verdict]}</span>'
    parts = [f"<section><p>{mark}<strong>{_text(one.title)}</strong> <code>{_text(one.id)}</code></p>"]
    if proof := _proof(one):
        parts.append(f"<pre>{_text(chr(10).join(proof))}</pre>")
    parts += [f"<p>{_text(text)}</p>" for text in (one.reason, one.action and f"Do: {one.action}") if text]
    return "".join(parts) + "</section>"


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<tr><td>{_text(left)}</td><td>{_text(right)}</td></tr>" for left, right in rows)
    return f"<details><summary>{_text(title)}</summary><table>{cells}</table></details>"


def _text(text: str) -> str:
    return escape("\n".join(clean(line) for line in text.splitlines()))
