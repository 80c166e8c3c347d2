"""What the title of a report tells, where its body has lost the message."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.sentence import addresses, copied
from torchdoctor.intake.voice import words_of
from torchdoctor.model import EventKind


def entitle(drafts: list[Draft], personal: bool) -> None:
    """The title of a report whose body is mostly output: it tells the message where the body has lost it."""
    if not drafts or drafts[0].kind is not EventKind.LOG or not drafts[0].raw.startswith("# "):
        return
    title = drafts[0]
    rest = [draft for draft in drafts[1:] if not draft.quoted and not pattern(_PICTURE).match(draft.raw)]
    said = [draft.text().strip() for draft in rest if draft.kind in _MESSAGES]
    if any(text and text[-1] != ":" for text in said):
        return  # the failure itself is there
    cut = any(draft.headed and draft.kind is EventKind.EXCEPTION for draft in rest)
    typed = pattern(_TYPED).match(title.raw)
    shown = any(draft.time or draft.level or pattern(_OUTPUT).match(draft.raw) for draft in rest)
    few = not any(draft.frames or draft.quoted for draft in drafts[1:]) and len(rest) <= 2
    told = typed is not None or (rest and all(complains(draft.raw) for draft in rest))
    recorded = (told and (shown or few)) or not rest
    if cut or recorded or personal:
        title.quoted, title.told = True, copied(title.raw)
        if typed is not None:
            title.kind, title.type = EventKind.EXCEPTION, typed[1]
            title.parts[:] = [title.raw[typed.end() - 1 :].rstrip()]
        elif not rest and (bare := pattern(_BARE).match(title.raw)):
            title.kind, title.type, title.parts[:] = EventKind.EXCEPTION, bare[1], [""]


def headline(drafts: list[Draft]) -> None:
    """The same where the title bears no mark, as a page shows it: above a traceback cut short."""
    title, rest = drafts[0], drafts[1:]
    if title.line != 1 or title.kind is not EventKind.LOG:
        return
    if title.time or title.level or title.rank is not None or not 3 <= title.raw.count(" ") <= 40:
        return
    cut = [draft for draft in rest if draft.headed and draft.kind is EventKind.EXCEPTION]
    if cut and not any(draft.text().strip() for draft in rest if draft.kind in _MESSAGES):
        title.told = copied(title.raw)


def complains(raw: str) -> bool:
    """A few words below a title that say when it fails, and to nobody what to do about it."""
    words = words_of(raw.lower())
    return (
        len(words) <= 12
        and not words.isdisjoint(("failing", "fails", "failed", "crashes", "crashing", "happens", "occurs"))
        and not addresses(raw)
    )


# a title that is an exception: behind a mark in brackets, or behind a few words and a colon
_TYPED = (
    r"# (?:\[[\w -]{1,20}\]:? ?|[^:\uff1a\n]{1,24}[:\uff1a] ?|\u4e00\u76f4\u62a5\u9519 ?)?"
    r"((?:\w+\.)*[A-Za-z]\w*(?:Error|Exception)): \S"
)
_BARE = r"# ((?:\w+\.)*[A-Z]\w*(?:Error|Exception))\W*$"
_PICTURE = r"\s*(?:!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>)\s*$"
# the line of a notebook's traceback that failed; a bar of tqdm
_OUTPUT = r"-{2,}> ?\d+ |[^|\n]{0,80}?\b\d{1,3}%\|"
_MESSAGES = (EventKind.EXCEPTION, EventKind.CRASH, EventKind.DEVICE_ASSERT, EventKind.WATCHDOG)
