"""Does a program go on while a stack of it shows a wait? Then the wait is a moment of it, and no hang."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Event, Transcript

MOST_EVENTS = 500  # a question; what a long log shows below a stack is of other ranks and other days

_PATTERNS = {
    # "3100/5004 [", "Epoch 4", "[ 310/5004]", "step 100", "iter: 2000"
    "count": (
        r"(?<![\d./])(?P<at>\d{1,9})/(?P<of>\d{1,9})(?![\d/])|\b(?:step|iter(?:ation)?|it"
        r"|batch)\s?[=:#]?\s?(?P<step>\d{1,9})\b"
    ),
    "epoch": r"\bepoch\w*\s?[=:#\[]{0,2}\s?(?P<epoch>\d{1,5})",
    # dumps of a program that runs: most of many show the same place
    "sampled": (
        r"\b(?:(?:nearly|almost) (?:always|every)|always (?:in|at|shows|here)|most(?:ly| of the time"
        r"| of the samples| samples| dumps)?"
        r"|usually|(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine) (?:of|out of) (?:\d{1,3}|ten"
        r"|twenty|hundred)"
        r"|\d{1,3} ?% of (?:the )?(?:samples|time|dumps)|top of the profile|fast immer|meistens"
        r"|presque toujours|la plupart|casi siempre"
        r"|quase sempre|quasi sempre|\u043f\u043e\u0447\u0442\u0438 \u0432\u0441\u0435\u0433\u0434\u0430)\b"
        r"|\u51e0\u4e4e\u603b\u662f|\u5927\u90e8\u5206|\u307b\u3068\u3093\u3069|\u5927\u4f53"
        r"|\ub300\ubd80\ubd84|\uac70\uc758 \ud56d\uc0c1"
    ),
    "dump": (
        r"py-?spy|dump|stack|profil|sample|gdb|backtrace|Stapel|pile|\u5806\u6808|\u8c03\u7528\u6808"
        r"|\u30b9\u30bf\u30c3\u30af|\uc2a4\ud0dd"
    ),
    "no-hang": (
        r"\b(?:not|n't|no|never|kein\w*|nicht|pas|sin|sem|non|nie|\u043d\u0435)\b[^.\n]{0,24}(?:hang|stuck"
        r"|frozen|freeze|deadlock|H\u00e4nger|bloqu|blocage|colgad|travad|bloccat|\u0432\u0438\u0441)"
        r"|\u6ca1\u6709?\u5361|\u4e0d\u662f\u5361|\u56fa\u307e\u3063\u3066(?:\u306f\u3044)?\u306a\u3044"
        r"|\uba48\ucd98 \uac74? ?\uc544\ub2c8"
    ),
    # a warning that is quoted says "freeze" of any program
    "quoted": r"\w*Warning:|excessive worker creation|to avoid potential slowness",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def moves_on(event: Event, transcript: Transcript) -> bool:
    """Does somebody who shows this stack tell, by a bar or in words, that the program goes on?

    False where nobody speaks, and where somebody says that it hangs.
    """
    if not transcript.speech.person or len(transcript.events) > MOST_EVENTS:
        return False
    from torchdoctor.extract.readings.passage import Passage
    from torchdoctor.extract.readings.spoken import says

    told = [line.text for line in Passage(transcript).sentences if not _pattern("quoted").search(line.text)]
    if any(says("moves on").search(text) for text in told):
        return True
    if any(says("hangs").search(text) and not _pattern("no-hang").search(text) for text in told):
        return False
    if _advances(event, transcript):
        return True
    sampled = any(_pattern("sampled").search(text) and _pattern("dump").search(text) for text in told)
    return sampled or any(says("slow").search(text) for text in told)


def _advances(event: Event, transcript: Transcript) -> bool:
    """Do counts below the stack rise, of steps or of epochs?"""
    last: dict[str, int] = {}
    rises = 0
    for line in _below(event, transcript):
        epoch = _pattern("epoch").search(line)
        count = _pattern("count").search(line)
        marks = {
            "epoch": epoch and epoch.group("epoch"),
            "count": count and (count.group("at") or count.group("step")),
        }
        rises += any(digits and int(digits) > last.get(name, 1 << 40) for name, digits in marks.items())
        last.update({name: int(digits) for name, digits in marks.items() if digits})
    return rises >= 2


def _below(event: Event, transcript: Transcript) -> Iterator[str]:
    for other in transcript.events:
        if other.source == event.source and other.line > event.end_line:
            yield from other.text.split("\n")
