"""Reports as one HTML file: no script, no network, readable on a phone and on paper."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from torchdoctor.model import Outcome, Part, Role, Severity, Standing
from torchdoctor.render import svg, unknown, words
from torchdoctor.render.clean import clean
from torchdoctor.render.page import page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdoctor.model import Diagnosis, Evidence, Frame, Moment, Report

_QUOTE_CHARS = 6_000
_FACTS = 400
_EVIDENCE_SHOWN = 4


def to_html(reports: Sequence[Report], *, headings: Sequence[str] = ()) -> str:
    """One page with all reports, in order; ``headings`` stand above them where there are several."""
    title = _title(reports[0]) if len(reports) == 1 else f"{len(reports)} reports"
    sections = []
    for number, report in enumerate(reports):
        heading = f'<p class="dim">{_text(headings[number])}</p>' if headings else ""
        sections.append(f"<section>{heading}{''.join(_report(report))}</section>")
    return page(title, "\n".join(sections))


def fragment(report: Report, *, brief: bool = False) -> str:
    """The report for a notebook, without a style of its own; ``brief`` folds all but the answer away."""
    first = report.diagnoses[0] if report.diagnoses else None
    if not brief or first is None:
        return f"<div>{''.join(_report(report))}</div>"
    sign, _ = _mark(first)
    memory = [one for one in first.evidence if one.fact and one.fact.startswith("memory.")]
    return (
        f"<div><p><strong>{sign} {_text(first.title)}</strong> "
        f"<code>{_text(first.rule)}</code> {_text(words.standing(first))}</p>"
        + (_frame(first.frame) if first.frame is not None else "")
        + _list(_text(one.text) for one in memory)
        + _fixes(first)
        + f"{_folded('The whole report', ''.join(_report(report)))}</div>"
    )


def _title(report: Report) -> str:
    if report.outcome is Outcome.DIAGNOSED and report.diagnoses:
        return report.diagnoses[0].title
    told = words.sources(report.source)
    return {
        Outcome.NO_FAILURE: words.no_failure(report)[1],
        Outcome.UNREADABLE: f"Could not read {told}",
    }.get(report.outcome, f"A failure that no rule knows, in {told}")


def _report(report: Report) -> Iterable[str]:
    first = report.diagnoses[0] if report.outcome is Outcome.DIAGNOSED and report.diagnoses else None
    sign, name = _mark(first) if first is not None else ("?", "ask")
    if report.outcome is Outcome.NO_FAILURE:
        sign = words.no_failure(report)[0]
        name = "pass" if sign == "✓" else "ask"
    yield f'<h1><span class="mark {name}">{sign}</span>{_text(_title(report))}</h1>'
    where = (
        words.which_rank(report, first) if first is not None else words.first_failure(report.first_failure)
    )
    if first is not None:
        yield f"<p><code>{_text(first.rule)}</code> {_text(words.standing(first))}</p>"
    if where:
        yield f"<p><strong>{_text(where)}</strong></p>"
    marks, moments = _marks(report)
    if first is not None:
        yield from _diagnosis(first)
    elif report.suspect is not None:
        yield from _suspect(report)
    yield _section(
        "Timeline",
        _drawing(svg.timeline(moments), "A square is the rank's own failure, a ring an echo of another's."),
    )
    yield _section("Ranks and events", _drawing(svg.rank_map(marks), ""))
    for title, items in words.others(report) if first is not None else [("Also noticed", report.diagnoses)]:
        yield _section(title, _others(items))
    yield _section("Incidents", _list(_text(line) for line in words.incidents(report)))
    yield _section("Notes", _list(_text(note) for note in report.notes))
    if report.facts:
        yield _folded(f"Facts ({len(report.facts)})", _facts(report))


def _mark(item: Diagnosis) -> tuple[str, str]:
    return {Severity.FATAL: ("✗", "fail"), Severity.WARNING: ("!", "warn")}.get(item.severity, ("?", "ask"))


def _diagnosis(item: Diagnosis) -> Iterable[str]:
    if item.why:
        yield f"<p>{_prose(item.why)}</p>"
    yield _section("What to do", _fixes(item))
    if item.frame is not None:
        yield _section("Where", _frame(item.frame))
    yield _section("Evidence", _quotes(words.proofs(item)))
    yield _section("Against it", _quotes([one for one in item.evidence if one.against]))
    yield _section("What followed from it", _chain(item))
    if item.decide_with:
        title = "To make sure" if item.standing is Standing.CONFIRMED else "To decide"
        yield _section(title, f"<pre>{_lines(item.decide_with)}</pre>")
    if item.decide_note:
        yield f"<p>{_prose(item.decide_note)}</p>"
    if item.more:
        yield _folded("More about it", f"<p>{_prose(item.more)}</p>")
    yield _section("Could not be determined", _list(_text(one) for one in item.missing))
    if item.reasons:
        yield _folded("Why this one", _list(_text(one) for one in item.reasons))
    if item.references:
        yield _folded("Read more", _list(_link(one) for one in item.references))


def _fixes(item: Diagnosis) -> str:
    lines = []
    for fix in item.fixes:
        risk = (
            f' <span class="risk">({_text(words.RISKS.get(fix.risk, fix.risk))})</span>'
            if fix.risk != "safe"
            else ""
        )
        run = f"<pre>{_lines(fix.run)}</pre>" if fix.run else ""
        lines.append(f"<li>{_prose(fix.do)}{risk}{run}</li>")
    return f"<ol>{''.join(lines)}</ol>" if lines else ""


def _frame(frame: Frame) -> str:
    place = frame.file if frame.line is None else f"{frame.file}:{frame.line}"
    inside = f" in <code>{_text(frame.function)}</code>" if frame.function else ""
    third = (
        f'<p class="dim">Code of {_text(frame.package)}; none of your own is in the stack.</p>'
        if frame.package
        else ""
    )
    shown = f"<pre>{_lines(frame.code.strip())}</pre>" if frame.code.strip() else ""
    return f"<p><code>{_text(place)}</code>{inside}</p>{shown}{third}"


def _quotes(items: Sequence[Evidence]) -> str:
    quotes = [
        f'<span class="place">{_text(words.place(one))}</span><pre>{_lines(one.text)}</pre>' for one in items
    ]
    shown, rest = quotes[:_EVIDENCE_SHOWN], quotes[_EVIDENCE_SHOWN:]
    return "".join(shown) + _folded(f"and {len(rest)} more", "".join(rest))


def _chain(item: Diagnosis) -> str:
    if not item.leads_to:
        return ""
    lines = [f'<li class="head">{_text(item.title)}</li>']
    for link in item.leads_to:
        place = _text(words.place(link.evidence, link.rank))
        lines.append(
            f"<li>↓ {_text(link.title)} <code>{_text(link.rule)}</code>"
            f'<span class="place">{place}</span><pre>{_lines(link.evidence.text[:600])}</pre></li>'
        )
    return f'<ul class="chain">{"".join(lines)}</ul>'


def _others(items: Sequence[Diagnosis]) -> str:
    shown = []
    for item in items:
        sign, name = _mark(item)
        body = "".join([_quotes(item.evidence[:2]), _fixes(item)])
        shown.append(
            f'<details><summary><span class="mark {name}">{sign}</span>{_text(item.title)} '
            f'<span class="dim">{_text(item.rule)}, {item.standing.value}</span></summary>{body}</details>'
        )
    return "".join(shown)


def _suspect(report: Report) -> Iterable[str]:
    item = report.suspect
    if item is None:
        return
    kind = f"{item.type}: " if item.type and item.message else item.type or ""
    place = f'<span class="place">{_text(words.place(item.evidence, item.rank))}</span>'
    yield _section("What looks most like the cause", f"{place}<pre>{_lines(kind + item.message)}</pre>")
    if item.frame is not None:
        yield _section("Where", _frame(item.frame))
    yield f"<p>{_text(unknown.reading(item.reading))}</p>" if item.reading is not None else ""
    if item.resembles:
        names = "".join(f"<li>{_text(f'{one.title} ({one.rule})')}</li>" for one in item.resembles)
        yield _section(unknown.RESEMBLES, f"<ul>{names}</ul>")
    yield _section("What to do", f"<p>{_text(unknown.next_step(item))}</p>")


def _marks(report: Report) -> tuple[list[svg.Mark], list[svg.Mark]]:
    """The moments of the timeline with whatever else the ranks said beside them, and the moments alone."""
    moments = [
        svg.Mark(
            moment.rank,
            moment.host,
            moment.time,
            moment.role is not Part.ECHO,
            moment.role is Part.FIRST,
            moment.rule or (moment.kind.value if moment.kind is not None else _silent(moment, report)),
            moment.text or "printed nothing about a failure",
            f"{moment.file}:{moment.line}" if moment.file else "",
        )
        for moment in report.timeline
    ]
    marks = list(moments)
    seen = {(mark.rank, mark.kind) for mark in marks}
    for mark in [*_said(report), *_also(report)]:
        if mark.rank is not None and (mark.rank, mark.kind) not in seen:
            seen.add((mark.rank, mark.kind))
            marks.append(mark)
    return marks, moments


def _silent(moment: Moment, report: Report) -> str:
    """What the rank that printed nothing is there for: it may be the cause of all that the others print."""
    answer = report.diagnoses[0] if report.diagnoses else None
    by_it = answer is not None and answer.role is Role.CAUSE and moment.role is Part.FIRST
    return answer.rule if answer is not None and by_it else "silent"


def _also(report: Report) -> Iterable[svg.Mark]:
    causes = {item.rule for item in report.diagnoses if item.role is Role.CAUSE}
    for moment in report.timeline:
        for rule in moment.also:
            own = rule in causes and moment.role is not Part.ECHO
            yield svg.Mark(moment.rank, moment.host, None, own, False, rule, "", "")


def _said(report: Report) -> Iterable[svg.Mark]:
    parts = {moment.rank: moment.role for moment in report.timeline}
    for number, item in enumerate(report.diagnoses):
        for one in item.evidence:
            if one.fact is None and not one.against:
                rank = one.rank if one.rank is not None else item.rank
                part = parts.get(rank) if rank is not None else None
                own = item.role is Role.CAUSE and part is not Part.ECHO
                first = own and number == 0 and part is Part.FIRST
                yield svg.Mark(rank, None, None, own, first, item.rule, one.text, words.place(one))
        for link in item.leads_to:
            rank = link.rank if link.rank is not None else link.evidence.rank
            place = words.place(link.evidence)
            yield svg.Mark(rank, None, None, False, False, link.rule, link.evidence.text, place)


def _facts(report: Report) -> str:
    rows = []
    for fact in report.facts[:_FACTS]:
        value = fact.state.value if fact.value is None else str(fact.value)
        reason = f" ({fact.reason.value})" if fact.reason is not None else ""
        cells = (fact.name, value[:400] + reason, fact.source)
        rows.append("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>")
    return f'<div class="draw"><table>{"".join(rows)}</table></div>'


def _section(title: str, body: str) -> str:
    return f"<h2>{_text(title)}</h2>{body}" if body else ""


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{body}</details>" if body else ""


def _drawing(drawn: str, legend: str) -> str:
    return f'<div class="draw">{drawn}</div><p class="dim">{_text(legend)}</p>' if drawn else ""


def _list(items: Iterable[str]) -> str:
    lines = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{lines}</ul>" if lines else ""


def _link(address: str) -> str:
    shown = _text(address)
    return f'<a href="{shown}" rel="noreferrer">{shown}</a>' if address.startswith("https://") else shown


def _prose(text: str) -> str:
    """A paragraph of the catalog; what stands between back-ticks is code."""
    parts = re.split(r"`([^`\n]+)`", clean(" ".join(text.split())))
    return "".join(
        f"<code>{escape(part)}</code>" if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def _text(text: str) -> str:
    return escape(clean(" ".join(text.split())))


def _lines(text: str) -> str:
    shown = text if len(text) <= _QUOTE_CHARS else text[:_QUOTE_CHARS] + " …"
    return "\n".join(escape(clean(line)) for line in shown.strip("\n").split("\n"))
