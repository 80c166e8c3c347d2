"""Reports for people at a terminal: the verdict, what proves it, where it is, what to do.

Text from a log or a rule is data: it goes through ``clean`` and into ``Text`` objects, never through markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from torchdoctor.model import Outcome, Severity, Standing
from torchdoctor.render import words
from torchdoctor.render.clean import clean, encodable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.model import Diagnosis, Evidence, Fix, Frame, Report, Suspect

# The four marks with their colours; the sign alone carries the meaning.
_PASS, _WARN, _FAIL, _UNKNOWN = ("✓", "green"), ("!", "yellow"), ("✗", "red"), ("?", "cyan")

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
    console = _Console(
        file=stream,
        width=max(width, 20),
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},  # Rich would make a number of whatever COLUMNS and LINES hold
    )
    encoding = getattr(stream, "encoding", None) or "utf-8"
    page = _Page(console, encoding, verbose, words.long_folder(report.source, console.width))
    if heading is not None:
        page.line(heading, "bold")
    _report(page, report)
    if len(page.lines) >= height:
        page.gap()
        page.lines.extend(page.verdict)
    # Every line is cut or wrapped by now; Rich must not do it again.
    console.print(Text("\n").join(page.lines), soft_wrap=True)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the caller that the reader has gone: Rich would end the program with 1."""
        raise BrokenPipeError


class _Page:
    """Lines of a given width, made of cleaned text; indents are in cells."""

    def __init__(self, console: Console, encoding: str, verbose: bool, folder: str) -> None:
        self.width = console.width
        self.verbose = verbose
        self.lines: list[Text] = []
        self.verdict: list[Text] = []
        self._console = console
        self._encoding = encoding
        self._folder = folder
        self._ellipsis = self.text("…")

    def text(self, value: str, style: str = "") -> Text:
        """The value as one printable line in characters that the stream has."""
        return Text(encodable(clean(value), self._encoding), style)

    def room(self, used: int) -> int:
        return max(self.width - used, 8)

    def quote_lines(self) -> int:
        return max(_QUOTE_LINES, _QUOTE_CELLS // self.width)

    def limit(self, lines: int) -> int | None:
        return None if self.verbose else lines

    def gap(self) -> None:
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def head(self, title: str) -> None:
        self.gap()
        self.wrap(Text(title, "bold"), indent=2)

    def line(self, value: str, style: str = "", *, indent: int = 0) -> None:
        """One line, cut at the width."""
        self.wrap(self.text(value, style), indent=indent, limit=1)

    def wrap(
        self, text: Text, *, indent: int = 0, lead: Text | None = None, limit: int | None = None
    ) -> None:
        """A paragraph of at most ``limit`` lines, the last of them cut with an ellipsis.

        ``lead`` (a mark, a number, a place) stands before it; its further lines hang under its first word.
        """
        first = Text(" " * indent)
        if lead is not None:
            first.append_text(lead)
        hang = first.cell_len
        room = self.room(hang)
        parts = list(text.wrap(self._console, room)) if limit != 1 else [text.copy()]
        for number, part in enumerate(parts[:limit], start=1):
            part.rstrip()
            cut = part.cell_len > room or (number == limit and number < len(parts))
            if cut:
                part.truncate(min(room - self._ellipsis.cell_len, part.cell_len))
                part.append_text(self._ellipsis)
            self.lines.append((first if number == 1 else Text(" " * hang)).append_text(part))

    def command(self, value: str, *, indent: int) -> None:
        """A command to copy: never cut, whatever the width."""
        for number, part in enumerate(value.strip().splitlines()):
            mark = words.prompt(value) if number == 0 else "  "
            self.lines.append(Text.assemble(" " * indent, (mark, _DIM), self.text(part, "cyan")))

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
        _verdict(page, _PASS, f"No failure found in {words.sources(report.source)}")
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
    where = words.first_failure(report.first_failure)
    if not where and first.rank is not None:
        where = f"on rank {first.rank}"
    _verdict(page, _mark(first), first.title, f"{first.rule}, {words.standing(first)}", where)
    _diagnosis(page, first)
    _timeline(page, report)
    certain = [item for item in report.diagnoses[1:] if item.standing is Standing.CONFIRMED]
    _others(page, "Also found", certain)
    _others(page, "Other possible causes", [item for item in report.diagnoses[1:] if item not in certain])


def _mark(item: Diagnosis) -> tuple[str, str]:
    if item.severity is Severity.FATAL:
        return _FAIL
    return _WARN if item.severity is Severity.WARNING else _UNKNOWN


def _diagnosis(page: _Page, item: Diagnosis) -> None:
    """Cause, place, proof and first action come within twelve lines; what explains them follows."""
    if item.frame is not None:
        _frame(page, item.frame)
    proof = [one for one in item.evidence if not one.against]
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


def _proof(page: _Page, item: Evidence) -> None:
    """The line that decides, as high as it must be and no higher."""
    page.gap()
    place, text = page.place(item), item.text if page.verbose else words.evidence(item)
    quote = Text.assemble(page.text(place, _DIM), "  " if place else "", page.text(text))
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
        page.wrap(Text.assemble(page.text(link.title), "  ", page.text(link.rule, _DIM)), indent=4)
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
        wide = lead.cell_len + 28 <= page.width
        if not wide:
            page.wrap(page.text(" ".join(told.split()), "bold" if row.strong else ""), indent=4)
        page.wrap(text, indent=4 if wide else 6, lead=lead if wide else None, limit=page.limit(1))
    page.more(hidden)


def _quotes(page: _Page, quotes: Sequence[tuple[str, str]], *, indent: int, limit: int) -> None:
    """Quoted text with its place: beside it where there is room for both, else under it.

    The first takes at most ``limit`` lines of the page, each further one half, unless all is asked for.
    """
    places = [page.text(place, _DIM) for place, _ in quotes]
    column = max(place.cell_len for place in places)
    beside = column <= (page.width - indent) // 3
    for number, (place, (_, text)) in enumerate(zip(places, quotes, strict=True)):
        lines = limit if number == 0 else max(limit // 2, 1)
        if beside:
            lead = Text.assemble(place, " " * (column - place.cell_len + (2 if column else 0)))
        elif place.cell_len + 2 + len(text) <= page.room(indent):
            lead = Text.assemble(place, "  ")
        else:
            _place_alone(page, place, indent=indent)
            lead = Text("  ")
        _quote(page, text, indent=indent, lead=lead, limit=page.limit(lines))


def _quote(page: _Page, text: str, *, indent: int, lead: Text, limit: int | None) -> None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        before = len(page.lines)
        shown = line + " …" if limit == 1 and number + 1 < len(lines) else line
        if limit == 1 and len(shown) > page.room(indent + lead.cell_len):
            shown = words.without_stamp(shown)
        page.wrap(page.text(shown), indent=indent, lead=lead, limit=limit)
        lead = Text(" " * lead.cell_len)
        if limit is not None:
            limit -= len(page.lines) - before
            if limit <= 0:
                return


def _place_alone(page: _Page, place: Text, *, indent: int, lead: Text | None = None) -> None:
    """A path that is too long loses its beginning: its end says more."""
    lead = lead or Text()
    surplus = place.cell_len - page.room(indent + lead.cell_len)
    if surplus > 0:
        mark = page.text("…", _DIM)
        place = mark.append_text(place[surplus + mark.cell_len :])
    page.lines.append(Text.assemble(" " * indent, lead, place))


def _frame(page: _Page, frame: Frame) -> None:
    """The arrow points at code of the reader's own; that of others is only named."""
    if frame.package:
        return page.wrap(page.text(words.foreign(frame), _DIM), indent=2)
    arrow = Text("--> ", "bold blue")
    place = page.text(frame.file if frame.line is None else f"{frame.file}:{frame.line}", "bold")
    inside = page.text(f", in {frame.function}" if frame.function else "")
    if 2 + arrow.cell_len + place.cell_len + inside.cell_len > page.width:
        _place_alone(page, place, indent=2, lead=arrow)
        page.wrap(inside[2:], indent=6)
    else:
        page.wrap(Text.assemble(place, inside), indent=2, lead=arrow)
    if frame.code:
        page.wrap(page.text(frame.code.strip()), indent=6, limit=1)


def _fixes(page: _Page, fixes: Sequence[Fix]) -> None:
    if not fixes:
        return
    page.head("What to do")
    shown = fixes[: page.limit(_FIXES_SHOWN)]
    for number, fix in enumerate(shown, start=1):
        text = page.text(" ".join(fix.do.split()))
        if fix.risk != "safe":
            text.append_text(page.text(f" ({words.RISKS.get(fix.risk, fix.risk)})", "yellow"))
        lead = Text(f"{number}. " if len(shown) > 1 else "")
        page.wrap(text, indent=4, lead=lead)
        if fix.run:
            page.command(fix.run, indent=4 + lead.cell_len)
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
        text = Text.assemble(page.text(item.title), "  ", page.text(rule, _DIM))
        page.wrap(text, indent=4, lead=page.text(mark + " ", style))
        _quotes(
            page, [(page.place(one), one.text) for one in item.evidence[:1]] or [("", "")], indent=6, limit=1
        )
    page.more(len(items) - len(shown))


def _unrecognised(page: _Page, report: Report) -> None:
    title = f"A failure that no rule knows, in {words.sources(report.source)}"
    _verdict(page, _UNKNOWN, title, words.first_failure(report.first_failure))
    if report.suspect is not None:
        _suspect(page, report.suspect)
    _timeline(page, report)
    if report.suspect is not None:
        page.paragraphs("What to do", [words.next_step(report.suspect)])
        page.paragraphs("To search for", [words.search_line(report.suspect)])
    if page.verbose:
        page.paragraphs("To teach it", [words.NEW_RULE])


def _suspect(page: _Page, item: Suspect) -> None:
    page.head("What looks most like the cause")
    text = ": ".join(part for part in (item.type, item.message) if part)
    _quote(page, text, indent=4, lead=Text(), limit=page.limit(6))
    if place := page.place(item.evidence, item.rank):
        _place_alone(page, page.text(place, _DIM), indent=4)
    if item.frame is not None:
        page.gap()
        _frame(page, item.frame)
    page.paragraphs(words.RESEMBLES, [f"{one.title} ({one.rule})" for one in item.resembles])
