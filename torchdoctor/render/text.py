"""Reports for people at a terminal: the verdict, what proves it, where it is, what to do.

Text from a log or a rule is data: it goes through ``clean`` before it becomes a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from torchdoctor.model import Outcome, Severity, Standing
from torchdoctor.render import words
from torchdoctor.render.clean import clean, encodable
from torchdoctor.render.styled import Styled
from torchdoctor.typed import prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.model import Diagnosis, Evidence, Fix, Frame, Report, Suspect

# The four marks with their colours; the sign alone carries the meaning.
_WARN, _FAIL, _UNKNOWN = ("!", "yellow"), ("✗", "red"), ("?", "cyan")
_QUIET = {"✓": "green", "!": "yellow", "–": "cyan"}

_DIM = "dim"
_EVIDENCE_SHOWN = 4
_QUOTE_LINES = 4
_QUOTE_CELLS = 320  # in a narrow terminal more lines, for as much of the quote
_CONSEQUENCES_SHOWN = 3
_OTHERS_SHOWN = 3
_FIXES_SHOWN = 3
_AGAIN = "the same again"


def render(
    report: Report,
    *,
    stream: TextIO,
    width: int = 80,
    height: int = 24,
    color: bool = False,
    verbose: bool = False,
    heading: str | None = None,
) -> None:
    """Write one report to ``stream``, in the characters of its encoding.

    ``width`` and ``height`` are in cells and lines; what is higher repeats the verdict at its end.
    ``heading`` is put above the report, for one of several. Raises OSError as the stream does.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    width = max(width, 20)
    page = _Page(width, encoding, verbose, words.long_folder(report.source, width))
    if heading is not None:
        page.line(heading, "bold")
    _report(page, report)
    if len(page.lines) >= height:
        page.gap()
        page.lines.extend(page.verdict)
    stream.write("".join(f"{line.ansi() if color else line.plain}\n" for line in page.lines))
    stream.flush()


class _Page:
    """Lines of a given width, made of cleaned text; indents are in cells."""

    def __init__(self, width: int, encoding: str, verbose: bool, folder: str) -> None:
        self.width = width
        self.verbose = verbose
        self.lines: list[Styled] = []
        self.verdict: list[Styled] = []
        self._encoding = encoding
        self._folder = folder
        self.ellipsis = encodable("…", encoding)

    def text(self, value: str, style: str = "") -> Styled:
        """The value as one printable line in characters that the stream has."""
        return Styled(encodable(clean(value), self._encoding), style)

    def room(self, used: int) -> int:
        return max(self.width - used, 8)

    def quote_lines(self) -> int:
        return max(_QUOTE_LINES, _QUOTE_CELLS // self.width)

    def limit(self, lines: int) -> int | None:
        return None if self.verbose else lines

    def gap(self) -> None:
        if self.lines and self.lines[-1].plain:
            self.lines.append(Styled())

    def head(self, title: str) -> None:
        self.gap()
        self.wrap(Styled(title, "bold"), indent=2)

    def line(self, value: str, style: str = "", *, indent: int = 0) -> None:
        """One line, cut at the width."""
        self.wrap(self.text(value, style), indent=indent, limit=1)

    def wrap(
        self, text: Styled, *, indent: int = 0, lead: Styled | None = None, limit: int | None = None
    ) -> None:
        """A paragraph of at most ``limit`` lines, the last of them cut with an ellipsis.

        ``lead`` (a mark, a number, a place) stands before it; its further lines hang under its first word.
        """
        first = Styled(" " * indent) + (lead or Styled())
        hang = first.cells
        room = self.room(hang)
        parts = text.wrapped(room) if limit != 1 else [text]
        for number, part in enumerate(parts[:limit], start=1):
            part = part.rstrip()
            if part.cells > room or (number == limit and number < len(parts)):
                part = part.cut(room, self.ellipsis)
            self.lines.append((first if number == 1 else Styled(" " * hang)) + part)

    def command(self, value: str, *, indent: int) -> None:
        """A command to copy: never cut, whatever the width."""
        for number, part in enumerate(value.strip().splitlines()):
            mark = prompt(value) if number == 0 else "  "
            self.lines.append(Styled(" " * indent) + Styled(mark, _DIM) + self.text(part, "cyan"))

    def place(self, item: Evidence, rank: int | None = None) -> str:
        """Where a piece of evidence stands, without the folder that all inputs lie in."""
        return words.place(item, rank, self._folder)

    def paragraphs(self, title: str, texts: Sequence[str]) -> None:
        if texts:
            self.head(title)
            for text in texts:
                self.wrap(self.text(" ".join(text.split())), indent=4)

    def more(self, hidden: int) -> None:
        if hidden > 0:
            self.line(f"and {hidden} more (--verbose shows all)", _DIM, indent=4)


def _report(page: _Page, report: Report) -> None:
    if report.outcome is Outcome.DIAGNOSED and report.diagnoses:
        _diagnosed(page, report, report.diagnoses[0])
    elif report.outcome is Outcome.NO_FAILURE:
        mark, title = words.no_failure(report)
        _verdict(page, (mark, _QUIET[mark]), title)
        _others(page, "Also noticed", report.diagnoses)
    elif report.outcome is Outcome.UNREADABLE:
        _verdict(page, _UNKNOWN, f"Could not read {words.sources(report.source)}")
    else:
        _unrecognised(page, report)
    page.paragraphs("Incidents", words.incidents(report))
    page.paragraphs("Notes", report.notes)
    if page.verbose and report.facts:
        page.head("Facts")
        for fact in report.facts:
            page.line(words.fact(fact), indent=4)


def _verdict(page: _Page, mark: tuple[str, str], title: str, *details: str) -> None:
    start = len(page.lines)
    page.wrap(page.text(title, "bold"), lead=page.text(mark[0] + " ", f"bold {mark[1]}"))
    for detail in details:
        if detail:
            page.wrap(page.text(detail), indent=2)
    page.verdict = page.lines[start:]


def _diagnosed(page: _Page, report: Report, first: Diagnosis) -> None:
    where = words.which_rank(report, first)
    _verdict(page, _mark(first), first.title, f"{first.rule}, {words.standing(first)}", where)
    _diagnosis(page, first)
    _timeline(page, report)
    for title, items in words.others(report):
        _others(page, title, items)


def _mark(item: Diagnosis) -> tuple[str, str]:
    if item.severity is Severity.FATAL:
        return _FAIL
    return _WARN if item.severity is Severity.WARNING else _UNKNOWN


def _diagnosis(page: _Page, item: Diagnosis) -> None:
    """Cause, place, proof and first action come within twelve lines; what explains them follows."""
    if item.frame is not None:
        _frame(page, item.frame)
    proof = words.proofs(item, whole=page.verbose)
    for one in proof[:1]:
        _proof(page, one)
    _fixes(page, item.fixes)
    if item.why:
        page.paragraphs("Why", [item.why, *([item.more] if item.more and page.verbose else [])])
    title = "To make sure" if item.standing is Standing.CONFIRMED else "To decide"
    page.paragraphs(title, [item.decide_note] if item.decide_note else [])
    if item.decide_with:
        if not item.decide_note:
            page.head(title)
        page.command(item.decide_with, indent=4)
    _evidence(page, "More evidence", proof[1:], told=proof[:1])
    _evidence(page, "Against it", [one for one in item.evidence if one.against])
    _consequences(page, item)
    if page.verbose:
        page.paragraphs("Could not be determined", item.missing)
        page.paragraphs("Why this one", item.reasons)
        page.paragraphs("Read more", item.references)
    page.gap()
    page.wrap(page.text(words.page(item), _DIM), indent=2)


def _proof(page: _Page, item: Evidence) -> None:
    """The line that decides, as high as it must be and no higher."""
    page.gap()
    place, text = page.place(item), item.text if page.verbose else words.evidence(item)
    quote = page.text(place, _DIM) + ("  " if place else "") + page.text(text)
    page.wrap(quote, indent=4, limit=page.limit(page.quote_lines()))


def _evidence(page: _Page, title: str, items: Sequence[Evidence], told: Sequence[Evidence] = ()) -> None:
    if not items:
        return
    page.head(title)
    shown = items if page.verbose else items[:_EVIDENCE_SHOWN]
    texts = [one.text if page.verbose else words.evidence(one) for one in (*told, *shown)]
    again = [text if texts.index(text) == number else _AGAIN for number, text in enumerate(texts)][
        len(told) :
    ]
    places = [page.place(one) for one in shown]
    _quotes(page, list(zip(places, again, strict=True)), indent=4, limit=page.quote_lines())
    page.more(len(items) - len(shown))


def _consequences(page: _Page, item: Diagnosis) -> None:
    if not item.leads_to:
        return
    page.head("What followed from it")
    shown = item.leads_to if page.verbose else item.leads_to[:_CONSEQUENCES_SHOWN]
    for link in shown:
        page.wrap(page.text(link.title) + "  " + page.text(link.rule, _DIM), indent=4)
        _quotes(page, [(page.place(link.evidence, link.rank), link.evidence.text)], indent=6, limit=1)
    page.more(len(item.leads_to) - len(shown))


def _timeline(page: _Page, report: Report) -> None:
    """Who failed when, and who only echoed."""
    if not report.timeline:
        return
    from torchdoctor.render import timeline

    rows, hidden = timeline.rows(report.timeline, all_of_them=page.verbose)
    if len(rows) < 2:
        return
    page.head("Timeline")
    for row, told in zip(rows, timeline.heads(rows), strict=True):
        lead = page.text(told, "bold" if row.strong else "")
        text = page.text(words.without_stamp(row.text))
        wide = lead.cells + 28 <= page.width
        if not wide:
            page.wrap(page.text(" ".join(told.split()), "bold" if row.strong else ""), indent=4)
        page.wrap(text, indent=4 if wide else 6, lead=lead if wide else None, limit=page.limit(1))
    page.more(hidden)


def _quotes(page: _Page, quotes: Sequence[tuple[str, str]], *, indent: int, limit: int) -> None:
    """Quoted text with its place: beside it where there is room for both, else under it.

    The first takes at most ``limit`` lines of the page, each further one half, unless all is asked for.
    """
    places = [page.text(place, _DIM) for place, _ in quotes]
    column = max(place.cells for place in places)
    beside = column <= (page.width - indent) // 3
    for number, (place, (_, text)) in enumerate(zip(places, quotes, strict=True)):
        lines = limit if number == 0 else max(limit // 2, 1)
        if beside:
            lead = place + " " * (column - place.cells + (2 if column else 0))
        elif place.cells + 2 + len(text) <= page.room(indent):
            lead = place + "  "
        else:
            _place_alone(page, place, indent=indent)
            lead = Styled("  ")
        _quote(page, text, indent=indent, lead=lead, limit=page.limit(lines))


def _quote(page: _Page, text: str, *, indent: int, lead: Styled, limit: int | None) -> None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        before = len(page.lines)
        shown = line + " …" if limit == 1 and number + 1 < len(lines) else line
        if limit == 1 and len(shown) > page.room(indent + lead.cells):
            shown = words.without_stamp(shown)
        page.wrap(page.text(shown), indent=indent, lead=lead, limit=limit)
        lead = Styled(" " * lead.cells)
        if limit is not None:
            limit -= len(page.lines) - before
            if limit <= 0:
                return


def _place_alone(page: _Page, place: Styled, *, indent: int, lead: Styled | None = None) -> None:
    """A path that is too long loses its beginning: its end says more."""
    lead = lead or Styled()
    surplus = place.cells - page.room(indent + lead.cells)
    if surplus > 0:
        mark = page.text("…", _DIM)
        place = mark + place[surplus + mark.cells :]
    page.lines.append(Styled(" " * indent) + lead + place)


def _frame(page: _Page, frame: Frame) -> None:
    """The arrow points at code of the reader's own; that of others is only named."""
    if frame.package:
        return page.wrap(page.text(words.foreign(frame), _DIM), indent=2)
    arrow = Styled("--> ", "bold blue")
    place = page.text(frame.file if frame.line is None else f"{frame.file}:{frame.line}", "bold")
    inside = page.text(f", in {frame.function}" if frame.function else "")
    if 2 + arrow.cells + place.cells + inside.cells > page.width:
        _place_alone(page, place, indent=2, lead=arrow)
        page.wrap(inside[2:], indent=6)
    else:
        page.wrap(place + inside, indent=2, lead=arrow)
    if frame.code:
        code = page.text(_from_marked(frame, page.room(6), page.ellipsis))
        page.wrap(code, indent=6, limit=1)


def _from_marked(frame: Frame, room: int, ellipsis: str) -> str:
    """The line; one that is too long begins so late that the part which Python marks is in view."""
    begin, end = frame.marks
    if len(frame.code) <= room or end < room:
        return frame.code.strip()
    late = max(0, min(begin, len(frame.code) - room + len(ellipsis)))
    return f"{ellipsis}{frame.code[late:].strip()}" if late else frame.code


def _fixes(page: _Page, fixes: Sequence[Fix]) -> None:
    if not fixes:
        return
    page.head("What to do")
    shown = fixes[: page.limit(_FIXES_SHOWN)]
    for number, fix in enumerate(shown, start=1):
        text = page.text(" ".join(fix.do.split()))
        if fix.risk != "safe":
            text += page.text(f" ({words.RISKS.get(fix.risk, fix.risk)})", "yellow")
        lead = Styled(f"{number}. " if len(shown) > 1 else "")
        page.wrap(text, indent=4, lead=lead)
        if fix.run:
            page.command(fix.run, indent=4 + lead.cells)
    page.more(len(fixes) - len(shown))


def _others(page: _Page, title: str, items: Sequence[Diagnosis]) -> None:
    if not items:
        return
    page.head(title)
    shown = items[: page.limit(_OTHERS_SHOWN)]
    for item in shown:
        certain = item.standing is Standing.CONFIRMED
        mark, style = _mark(item) if certain else _UNKNOWN
        rule = item.rule if certain else f"{item.rule}, {item.standing.value}"
        text = page.text(item.title) + "  " + page.text(rule, _DIM)
        page.wrap(text, indent=4, lead=page.text(mark + " ", style))
        _quotes(
            page, [(page.place(one), one.text) for one in item.evidence[:1]] or [("", "")], indent=6, limit=1
        )
    page.more(len(items) - len(shown))


def _unrecognised(page: _Page, report: Report) -> None:
    from torchdoctor.render import unknown, unknown_search  # most reports have a rule

    title = f"A failure that no rule knows, in {words.sources(report.source)}"
    _verdict(page, _UNKNOWN, title, words.first_failure(report.first_failure))
    if report.suspect is not None:
        _suspect(page, report.suspect)
    _timeline(page, report)
    if report.suspect is not None:
        page.paragraphs("What to do", [unknown.next_step(report.suspect)])
        line = unknown_search.search_line(report.suspect)
        page.paragraphs("To search for", [line] if line else [])
    if page.verbose:
        page.paragraphs("To teach it", [words.NEW_RULE])


def _suspect(page: _Page, item: Suspect) -> None:
    from torchdoctor.render import unknown

    page.head("What looks most like the cause")
    text = ": ".join(part for part in (item.type, item.message) if part)
    _quote(page, text or item.evidence.text, indent=4, lead=Styled(), limit=page.limit(6))
    if place := page.place(item.evidence, item.rank):
        _place_alone(page, page.text(place, _DIM), indent=4)
    if item.frame is not None:
        page.gap()
        _frame(page, item.frame)
    if item.reading is not None:
        page.gap()
        page.wrap(page.text(unknown.reading(item.reading)), indent=2)
    page.paragraphs(unknown.RESEMBLES, [f"{one.title} ({one.rule})" for one in item.resembles])
