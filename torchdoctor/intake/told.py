"""Messages that a person tells of in his own words: ``I get this error: …``, or below a heading."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.learning import names_writer
from torchdoctor.intake.lines import is_code, is_prompt
from torchdoctor.intake.sentence import LONGEST, shows
from torchdoctor.intake.voice import is_entry
from torchdoctor.model import EventKind

_HEADING = (
    r"(?:#{1,6} |\*\*).{0,30}\b(?:[Ee]rrors?|[Ll]ogs?|[Oo]utput|[Tt]raceback|[Ww]hat happened|[Bb]ug"
    r"|[Dd]escri\w+|[Bb]ehaviou?r|[Ii]ssue|[Pp]roblem)\b"
    r"|(?:#{1,6} |\*\*).{0,30}(?:报错|错误|日志|输出|問題|问题|エラー|ログ|에러|오류|로그)"
)

_CLOSING = {"\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb", "`": "`", '"': '"', "'": "'"}
_MOST_BELOW = 4  # lines over which a message that somebody tells was broken


class Teller:
    """Goes along the events of a report and says which of them are what its author was shown."""

    __slots__ = ("_announced", "_heading", "_last", "_personal")

    def __init__(self, personal: bool = True) -> None:
        self._personal = personal  # somebody speaks of himself
        self._announced = False  # the line before announced what follows
        self._heading = False
        self._last = -1

    def shown(self, draft: Draft) -> bool:
        """True for an event that its author announced as the failure, in this line or the one before."""
        raw = draft.raw
        text = raw.strip()[:LONGEST]
        near = draft.line - self._last
        self._last = draft.end_line
        held = text.lstrip(">*_`\"'\u201c\u201e ").rstrip("*_`\"'\u201d ")
        shown = None if is_entry(text) else shows(text, self._personal)
        supposed, announced = shown is None, shown is True
        before = self._announced and near <= 3 and (near <= 1 or text[:1] not in "#")
        if text[:1] == "#" or (text[:2] == "**" and text[-2:] in ("**", ":*")):
            self._heading = self._announced = pattern(_HEADING).match(text) is not None
            return False
        if before and text in ("```", "~~~"):
            return False  # what is announced stands between the fences
        follows = before and not is_prompt(raw) and not is_code(held) and text[:3] not in ("```", "~~~", "$ ")
        if follows and not (supposed and draft.kind is EventKind.LOG):
            self._announced = near <= 1 or not announced
            return True
        self._announced = announced and len(text) < 400
        return announced


class Fences:
    """Follows the fences of Markdown from line to line."""

    __slots__ = ("_mark", "language", "seen")

    def __init__(self) -> None:
        self.seen = False  # there was one
        self._mark = ""  # of the fence that is open
        self.language = ""

    @property
    def open(self) -> bool:
        return bool(self._mark)

    def see(self, raw: str) -> None:
        """Take the next line; a fence may also open or close at the end of a line of words."""
        text = raw.strip()[:2_000]
        mark = pattern(r"(?:`{3,}|~{3,})").match(text)
        if self._mark:
            closes = mark is not None and mark[0] == text and text.startswith(self._mark)
            behind = mark is None and self._mark == "```" and text.endswith("```") and text[:1] not in "+-"
            if closes or behind:
                self._mark = self.language = ""
        elif mark is not None and "```" not in text[mark.end() :]:
            self._mark, self.seen = mark[0], True
            self.language = text[mark.end() :].strip().lower()
        elif mark is None and text.count("```") % 2:
            self._mark = "```"


def retype(draft: Draft) -> None:
    """A line in which somebody tells an exception: class and message, without his own words."""
    raw = draft.raw
    named = list(pattern(r"(?<![\w.])((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (?=\S)").finditer(raw))
    if not named or (len(named) > 1 and raw[named[1].start() - 1] in '`"\u201c\u201e\u00ab'):
        return
    found = named[0]
    message = raw[found.end() :].rstrip()
    mark = raw[found.start() - 1 : found.start()]
    closing = _CLOSING.get(mark, "")
    if closing and closing in message:
        message = message[: message.rfind(closing)]
    draft.kind, draft.type = EventKind.EXCEPTION, found[1]
    draft.told = draft.told or found.start() > 0  # his own words are gone: that somebody tells it stays
    draft.parts[:] = [message]


def rejoin(drafts: list[Draft]) -> None:
    """A message between quotation marks goes on in the lines below it, up to the mark that closes it."""
    for at, draft in enumerate(drafts):
        if draft.kind is not EventKind.EXCEPTION or not draft.told or not draft.type:
            continue
        mark = draft.raw.partition(draft.type)[0].rstrip()[-1:]
        closing = _CLOSING.get(mark, "")
        if not closing or closing in draft.text():
            continue
        parts: list[str] = []
        line = draft.end_line
        for below in drafts[at + 1 : at + 1 + _MOST_BELOW]:
            if below.kind is not EventKind.LOG or below.line != line + 1:
                break
            line = below.end_line
            head, closed, _ = below.raw.partition(closing)
            parts.append(head)
            if closed:
                draft.parts.extend(parts)
                break


def mark_cited(drafts: list[Draft]) -> None:
    """Set ``quoted`` on what a reply cites of somebody whom it names: "> On Monday Lena wrote:"."""
    wrote = False
    for draft in drafts:
        text = draft.raw.strip()
        if text[:1] != ">":
            wrote = names_writer(text)
        elif wrote := wrote or names_writer(text):
            draft.quoted, draft.told = True, False
