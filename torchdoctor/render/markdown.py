"""Reports as Markdown, to be pasted into an issue: the verdict in sight, the length folded away.

Text from a log stands in code fences and code spans only, where a forge neither renders nor links it and
nobody called @name is told of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.model import Outcome, Severity, Standing, counted
from torchdoctor.render import unknown, words
from torchdoctor.render.clean import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdoctor.model import Diagnosis, Evidence, Frame, Report

LIMIT = 60_000  # a GitHub issue holds 65,536 characters, a GitLab one more
_QUOTE_CHARS = (4_000, 1_200, 400, 160)  # tried in turn until all fits
_CUT = "\n\n*(cut here: the report is longer than an issue may be)*\n"
_CLOSING = "</details>"
_LEAST = 800  # characters that hold a verdict, its rule and where


def to_markdown(report: Report, *, heading: str | None = None, limit: int = LIMIT) -> str:
    """The report in at most ``limit`` characters (at least 800), ending in a line break.

    Longer ones lose the facts, then the length of their quotes, at last their end. ``heading`` stands above.
    """
    text = ""
    for number, chars in enumerate(_QUOTE_CHARS):
        text = (
            "\n\n".join(block for block in _blocks(report, heading, chars, facts=number == 0) if block) + "\n"
        )
        if len(text) <= limit:
            return text
    return _cut(text, max(limit, _LEAST))


def documents(reports: Sequence[Report], *, headings: Sequence[str] = (), limit: int = LIMIT) -> str:
    """Several reports, each under its heading, in at most ``limit`` characters together."""
    if not headings:
        return "\n".join(to_markdown(report, limit=limit // max(len(reports), 1)) for report in reports)
    share = max(limit // max(len(reports), 1) - 2, _LEAST)
    fitting = max((limit - 200) // (share + 2), 1)
    parts = [
        to_markdown(report, heading=heading, limit=share)
        for report, heading in zip(reports[:fitting], headings, strict=False)
    ]
    if len(reports) > fitting:
        parts.append(f"*and {counted(len(reports) - fitting, 'more report')}, left out here*\n")
    return "\n".join(parts)


def _cut(text: str, limit: int) -> str:
    kept = text[: limit - len(_CUT) - 200]
    kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
    fences = re.findall(r"^ {0,3}(`{3,})", kept, re.MULTILINE)
    if len(fences) % 2:
        kept += "\n" + fences[-1]
    kept += "\n" + f"\n{_CLOSING}" * (kept.count("<details>") - kept.count(_CLOSING))
    return kept + _CUT


def _blocks(report: Report, heading: str | None, chars: int, *, facts: bool) -> Iterable[str]:
    if heading is not None:
        yield f"## {code(heading)}"
    first = report.diagnoses[0] if report.diagnoses else None
    if report.outcome is Outcome.DIAGNOSED and first is not None:
        yield f"### {_mark(first)} {escape(first.title)}"
        yield _standing(report, first)
        yield from _diagnosis(first, chars)
        for title, items in words.others(report):
            yield from _others(title, items, chars)
    elif report.outcome is Outcome.NO_FAILURE:
        mark, title = words.no_failure(report, _inputs(report))
        yield f"### {mark} {title}"
        yield from _others("Also noticed", report.diagnoses, chars)
    elif report.outcome is Outcome.UNREADABLE:
        yield f"### ? Could not read {_inputs(report)}"
    else:
        yield f"### ? A failure that no rule knows, in {_inputs(report)}"
        yield escape(words.first_failure(report.first_failure))
        yield from _suspect(report, chars)
    yield _timeline(report)
    yield _listed("Incidents", words.incidents(report))
    yield _listed("Notes", report.notes)
    if facts and report.facts:
        yield _folded("Facts", fence(_fact_lines(report), 20_000))


def _listed(title: str, lines: Sequence[str]) -> str:
    return _folded(title, "\n".join(f"- {escape(line)}" for line in lines))


def _standing(report: Report, first: Diagnosis) -> str:
    where = words.which_rank(report, first)
    parts = [f"`{first.rule}`", escape(words.standing(first)), escape(where)]
    return ", ".join(part for part in parts if part)


def _timeline(report: Report) -> str:
    """Who failed when, and who only echoed, in columns."""
    if not report.timeline:
        return ""
    from torchdoctor.render import timeline

    rows, hidden = timeline.rows(report.timeline)
    if len(rows) < 2:
        return ""
    widths = [max(len(cell) for cell in column) for column in zip(*(row[:3] for row in rows), strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(min(width, 60)) for cell, width in zip(row[:3], widths, strict=True) if width]
        lines.append("  ".join([*cells, _shortened(words.without_stamp(row.text), 160)]))
    if hidden:
        lines.append(f"and {hidden} more")
    return _folded("Timeline", fence("\n".join(lines), 8_000))


def _mark(item: Diagnosis) -> str:
    return {Severity.FATAL: "✗", Severity.WARNING: "!"}.get(item.severity, "?")


def _inputs(report: Report) -> str:
    told = words.sources(report.source)
    return code(told) if (told,) == report.source else told


def _diagnosis(item: Diagnosis, chars: int) -> Iterable[str]:
    yield escape(" ".join(item.why.split()))
    yield _titled("Evidence", _quotes(words.proofs(item), chars))
    yield _titled("Against it", _quotes([one for one in item.evidence if one.against], chars))
    if item.frame is not None:
        yield _frame(item.frame, chars)
    yield _titled("What to do", "\n".join(_fixes(item)))
    if item.decide_with:
        title = "To make sure" if item.standing is Standing.CONFIRMED else "To decide"
        yield _titled(title, fence(item.decide_with, chars, "sh"))
    if item.decide_note:
        yield escape(item.decide_note)
    yield _titled("Could not be determined", "\n".join(f"- {escape(one)}" for one in item.missing))
    if item.leads_to:
        lines = [
            f"{link.title} [{link.rule}]\n    {_placed(link.evidence, link.rank, chars)}"
            for link in item.leads_to
        ]
        yield _folded(f"What followed from it ({len(lines)})", fence("\n".join(lines), 12_000))
    yield _folded("More about it", escape(" ".join((item.more or "").split())))
    yield _folded("Read more", "\n".join(f"- <{one}>" for one in item.references))


def _fixes(item: Diagnosis) -> Iterable[str]:
    for number, fix in enumerate(item.fixes, start=1):
        risk = f" *({words.RISKS.get(fix.risk, fix.risk)})*" if fix.risk != "safe" else ""
        yield f"{number}. {escape(' '.join(fix.do.split()))}{risk}"
        if fix.run:
            block = fence(fix.run, 4_000, "sh").splitlines()
            yield from ("   " + line for line in block)


def _others(title: str, items: Sequence[Diagnosis], chars: int) -> Iterable[str]:
    lines = []
    for item in items:
        lines.append(f"- {_mark(item)} {escape(item.title)} (`{item.rule}`, {item.standing.value})")
        if item.evidence:
            lines.append("  " + code(_placed(item.evidence[0], None, min(chars, 300))))
    if lines:
        yield _folded(f"{title} ({len(items)})", "\n".join(lines))


def _suspect(report: Report, chars: int) -> Iterable[str]:
    item = report.suspect
    if item is None:
        return
    kind = f"{item.type}: " if item.type and item.message else item.type or ""
    place = words.place(item.evidence, item.rank)
    yield _titled("What looks most like the cause", fence(_shortened(kind + item.message, chars), chars + 20))
    if place:
        yield code(place)
    if item.frame is not None:
        yield _frame(item.frame, chars)
    yield escape(unknown.reading(item.reading))
    if item.resembles:
        names = "\n".join(f"- {escape(one.title)} ({code(one.rule)})" for one in item.resembles)
        yield _titled(unknown.RESEMBLES, names)
    yield _titled("What to do", escape(unknown.next_step(item)))


def _frame(frame: Frame, chars: int) -> str:
    place = frame.file if frame.line is None else f"{frame.file}:{frame.line}"
    head = f"**Where**: {code(place)}" + (f" in {code(frame.function)}" if frame.function else "")
    if frame.package:
        head += f" (code of {escape(frame.package)}; none of your own is in the stack)"
    return head + ("\n\n" + fence(frame.code.strip(), chars, "python") if frame.code.strip() else "")


def _quotes(items: Sequence[Evidence], chars: int) -> str:
    return fence("\n".join(_placed(one, one.rank, chars) for one in items), 12 * chars) if items else ""


def _placed(item: Evidence, rank: int | None, chars: int) -> str:
    place = words.place(item, rank)
    return f"{place}  {_shortened(item.text, chars)}" if place else _shortened(item.text, chars)


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[:chars].rstrip() + " …"


def _fact_lines(report: Report) -> str:
    lines = []
    for fact in report.facts:
        value = fact.state.value if fact.value is None else str(fact.value)
        reason = f" ({fact.reason.value})" if fact.reason is not None else ""
        lines.append(f"{fact.name} = {_shortened(value, 300)}{reason}  {fact.source}".rstrip())
    return "\n".join(lines)


def _titled(title: str, body: str) -> str:
    return f"**{title}**\n\n{body}" if body else ""


def _folded(title: str, body: str) -> str:
    return f"<details>\n<summary>{escape(title)}</summary>\n\n{body}\n\n{_CLOSING}" if body else ""


def fence(text: str, limit: int, language: str = "text") -> str:
    """The lines in a code fence that nothing in them can close."""
    lines = "\n".join(clean(line) for line in _shortened(text.strip("\n"), limit).split("\n"))
    ticks = max([2, *(len(run) for run in re.findall(r"`+", lines))]) + 1
    return f"{'`' * ticks}{language}\n{lines}\n{'`' * ticks}"


def code(text: str) -> str:
    """The text as a code span, in ticks that do not occur in it."""
    line = clean(" ".join(text.split())) or "?"
    ticks = "`" * (max([0, *(len(run) for run in re.findall(r"`+", line))]) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def escape(text: str) -> str:
    """The text as plain words: no emphasis, link, tag, table, reference to an issue or mention of a person.

    What stands between back-ticks stays a code span, as the catalog writes it.
    """
    parts = re.split(r"(`[^`\n]+`)", clean(" ".join(text.split())))
    return "".join(part if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    text = re.sub(r"([\\`*\[\]|~$]|(?<!\w)_|_(?!\w))", r"\\\1", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # a mention or a reference would tell people and other issues of this one
    text = re.sub(r"@(?=\w)", "@<!-- -->", text)
    text = re.sub(r"#(?=\d)", "#<!-- -->", text)
    return re.sub(r"(?<!\w)(https?)://", r"\1<!-- -->://", text)
