"""Texts that are written for everybody: notes on a release, posts, adverts, programmes, collected sayings.

They are known by their shape, whatever messages they name: a list of changes below a version, names with
counters of likes, the headings of an advert. What such a text names befell nobody who now reads it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from torchdoctor.intake import tongues
from torchdoctor.intake.draft import pattern
from torchdoctor.intake.lines import is_prompt

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 160  # characters of a line that may be a heading, or a name with its counters
_EDGES = " \t#*=-_~:：!！.。>|【】[]()（）0123456789、"
_BULLETS = ("- ", "* ", "\u2022", "\u30fb", "\u00b7 ", "\u2013 ", "+ ")
_VERSION = r"(?<![\w.])v?\d{1,4}\.\d+(?:\.\d+)*\w*(?![\w/])"
# who posted, and when; how many liked it; words to find it by
_POSTED = (
    r"\s*(?:[^@]{0,40} )?@[\w.-]+(?:@[\w.-]+)? ?[\u00b7\u2022|] ?\w|\s*(?:.{0,40}\bposted by )?u/[\w-]+\b"
    r"(?:.{0,20}(?:[\u00b7\u2022]|\bago\b)|$)|\s*/?r/\w+ ?[\u00b7\u2022]"
    r"|(?!(?i:asked|modified|answered|posted|updated|edited|opened|closed|created|started|about|last)\b)"
    r"(?:@[\w.-]{2,24}(?= .{4,16}ago$)|[\w.-]{2,24}(?: \(\w+\))?(?= .{4,16}ago\s*[|\u00b7\u2022(\[\u2013-]))"
    r" (?:\d+|an?) (?:min(?:ute)?|hour|day|week|month|year)s? ago\b"
    r"|@\S{2,20}(?:\uff1a| .*\u6765\u81ea| \d{1,2}\u6708)"
)
_LIKED = (
    r"\s*(?:[^\w\s.,:;/|#*=+<>()\[\]{}%-]{1,3}\s*[\d.,]+ ?(?:[KkMm\u4e07]|mil|tys|Tsd|mila)?\.?\s*){2,}$"
    r"|\s*[\u2600-\U0001faff]\ufe0f? ?[\d.,]+ ?[KkMm]?$"
    r"|\s*[\d.,]+[Kk]? (?:points?|upvotes?|likes?|reposts?|boosts?|karma)\b"
    r"|.*(?:\u8f6c\u53d1|\u8bc4\u8bba|\u70b9\u8d5e|\u8d5e) ?\d+.*(?:\u8bc4\u8bba|\u8d5e|\u6536\u85cf) ?\d+"
)
_TAGS = r"\s*(?:#[^\W\d]\w*\s*){2,}$"
_SAID = (
    r"\s*(?:[-*\u2022] )?[\"\u201c\u201e\u00ab].{8,}[\"\u201c\u201d\u00bb]\W{0,4}"
    r"[\u2014\u2013~-]{1,2} ?[^\W\d]"
)
_SHOWN = ("Traceback (most recent", '  File "')


def is_notes(lines: list[str], title: str) -> bool:
    """True for a list of what changed in a version."""
    bullets = sum(line.lstrip().startswith(_BULLETS) for line in lines)
    if bullets < 2 or bullets * 3 < len(lines) or _was_run(lines):
        return False
    named = any(words in title for words in tongues.phrases("notes-titles"))
    version = any(map(pattern(_VERSION).search, (title, *_heads(lines))))
    changes = sum(_starts(line, "change-heads") for line in lines)
    return (named and (version or changes > 0)) or (version and changes > 0)


def is_posted(lines: list[str]) -> bool:
    """True for posts and the answers to them, as networks and forums show them."""
    marks = [line.strip() for line in lines if len(line) <= LONGEST]
    if any(mark[:6] in ("asked ", "Asked ") for mark in marks):
        return False  # a question, with who asked it and when
    posts = sum(pattern(_POSTED).match(mark) is not None for mark in marks)
    liked = sum(pattern(_LIKED).match(mark) is not None for mark in marks)
    tags = sum(mark[:1] == "#" and pattern(_TAGS).match(mark) is not None for mark in marks)
    return posts > 1 or (posts > 0 and liked > 0) or liked > 2 or tags > 0


def is_notice(lines: list[str]) -> bool:
    """True for an advert, the life of somebody who applies, a programme, a summary of a talk."""
    phrases = tongues.phrases("notice-heads")
    heads = {
        phrase
        for line in dict.fromkeys(lines)
        if len(line) <= LONGEST
        for phrase in _begun(line.lower(), phrases)
    }
    return len(heads) >= 2 and not _was_run(lines)


def are_sayings(lines: list[str]) -> bool:
    """True for what several people said, each between quotation marks, with their names."""
    return sum(pattern(_SAID).match(line) is not None for line in lines) >= 3


def _was_run(lines: list[str]) -> bool:
    """Does it show what was typed somewhere, or a stack?"""
    return any(line.startswith(_SHOWN) or (line[:1] in "$%>~[(" and is_prompt(line)) for line in lines)


def _heads(lines: list[str]) -> list[str]:
    """Lines that may be the heading of a release."""
    return [line for line in islice(lines, 40) if len(line) < 80 and not line.lstrip().startswith(_BULLETS)][
        :6
    ]


def _starts(line: str, table: str) -> bool:
    if len(line) > 60 or line.lstrip().startswith(_BULLETS):
        return False
    return next(_begun(line.lower(), tongues.phrases(table)), None) is not None


def _begun(line: str, phrases: tuple[str, ...]) -> Iterator[str]:
    """The phrases that begin a line; a word alone is all of it, what ends in a colon is at its edge."""
    bare = line.strip(_EDGES)
    if not bare:
        return
    edge = line.lstrip(" \t#*-").replace("\uff1a", ":")
    for phrase in phrases:
        if phrase[-1] == ":":
            if edge.startswith(phrase):
                yield phrase
        elif bare.startswith(phrase) and (" " in phrase or phrase[0] > "\u2e80" or bare == phrase):
            yield phrase
