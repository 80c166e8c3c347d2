"""Who made which line of a text that people wrote: typed, shell, code, printed, said.

Questions in forums, issues and chats mix code, commands at a prompt, output and sentences. What is read out
of them depends on which is which.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.model import Fact, FactValue
from torchdoctor.sentence_words import COMMON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Transcript

LINE_CHARS = 1_200
REMARK = 4  # words
WRAPPED = 55  # characters: a shorter line ends where its writer wanted

_PATTERNS = {
    "prompt": (
        r"^\s{0,8}(?:>>> ?|\.\.\.:? |In ?\[\d{0,4}\]: ?|\[\d{1,4}\]: (?=\S)|\[\d{1,4}\] ?>>> ?)(?P<typed>.*)$"
    ),
    "cell": r"^\s{0,8}(?:In ?\[[\d ]{0,4}\]:|\[\d{1,4}\]: )\s*(?P<typed>.*)$",
    # "$", "user@host:~$", "[user@host dir]$", "host:~$", "host$"; root's "#" behind a host; "C:\\dir>"
    "shell": (
        r"^\s{0,8}(?:\([\w.+-]{1,40}\) ?)?(?:"
        r"(?:[\w.-]{1,40}@[\w.-]{1,60}[: ]\S{0,80}? ?|\[[\w.-]{1,40}@[\w.-]{1,60} [^\]\n]{1,60}\]"
        r"|[\w.-]{1,40}:[~/]\S{0,60}? ?|[a-z][\w-]{0,30}(?=\$))?[$%\u276f] "
        r"|root@[\w.-]{1,60}:\S{0,80}?# ?|\[root@[\w.-]{1,60} [^\]\n]{1,60}\]# ?"
        r"|(?:PS )?[A-Z]:\\[^>\n]{0,100}> ?)(?P<typed>\S.*)$"
    ),
    "magic": r"^\s{0,8}%(?P<typed>env \S.*)$",
    # a listing with numbers: " 12  x = net(y)", "12: x = net(y)", "12 | x = net(y)"
    "numbered": r"^\s{0,4}(?P<number>\d{1,4})(?:[:.|]| \|)?[ \t](?P<rest>\s{0,40}\S.*)$",
    "answer": r"^\s{0,8}Out ?\[\d{0,4}\]: ?(?P<rest>.*)$",
    "one-liner": r"\bpython[\d.]{0,6}(?: -[A-Zbu]\S*(?: ignore)?){0,3} -c ([\"'])(?P<code>.{3,500})\1\s*$",
    "code": (
        r"^\s*(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:]|@\w[\w.]*(?:\(.*)?$"
        r"|return\b|yield\b|print\("
        r"|assert\b"
        r"|(?:if|elif|for|while|with|except)\b.*:\s*(?:#.*)?$|(?:else|try|finally):|(?:pass|break|continue)$"
        r"|(?:if|for|while|with)\s[^\n]{1,160}:\s+[A-Za-z_][\w.]*\(.*\)\s*$"
        r"|#\s?\w"
        r"|[A-Za-z_][\w.]*(?:\[[^\]]{1,80}\])?(?:, ?[A-Za-z_][\w.]*){0,6} ?[-+*/|]?= ?(?!=)(?P<value>\S.*)$"
        r"|\([^\n]{1,160}\)(?:\.\w+\([^\n]{0,80}\)){1,6}\s*$"
        r"|[A-Za-z_][\w.]*(?:\[[^\]\n]{1,60}\](?:\.\w+)+)?\(.*\)(?:\.\w+(?:\(.*\))?)*\s*(?:#.*)?;?$)"
    ),
    "surely-code": (
        r"^\s*for\s+[\w, ()]{1,60}\s+in\s+\S+:\s*$|^(?:import|from|def|class|async|print)\b|[\w\]]\("
        r"|\]\s*[:=]"
    ),
    # "22      out = net(img)": a listing with numbers before its lines
    "listing": (
        r"^\s{0,8}\d{1,5}(?:[:|] ?|\t| {1,2})(?P<code>\s*(?:(?:import|from|def|class|with|for|if|return"
        r"|async def|@)\b.*"
        r"|[A-Za-z_][\w.\[\], ]{0,60} ?[-+*/]?= ?[A-Za-z_\[(\"'][^=]*|[A-Za-z_][\w.]{0,60}\(.*\)\s*))$"
    ),
    "sentence-end": r"(?:(?<!\bvs)(?<!e\.g)(?<!i\.e)[.!?](?=\s+[^a-z\s])|[;\u3002\uff01\uff1f])\s*",
    # an item, a heading, a row of a table, a reply
    "begins": r"\s*(?:[-*+#>|\u2022] ?|\d{1,2}[.)]\s|\w{1,20}:\s)",
    # what Python shows of an object
    "value": r"\s*(?:tensor|array|device|torch\.Size|OrderedDict|Parameter|dict_keys|namespace)\(",
    "card": r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|[RG]TX)\b",
    "number": (
        r"[\s\"']*-?\d[\d.,e+-]*(?:\s*[A-Za-z%/]{1,12})?(?:\s+[\w.%/|:-]{1,24}){0,8}[\s\"']*$"
        # "epoch=0 rank=0 ids=[3, 4]": values that a program shows, not an assignment
        r"|-?\d[\d.,e+-]*\s+[A-Za-z_]\w*\s?[=:]"
        # "G=1: adv tensor([nan])": what it is for that value
        r"|-?\d[\d.]*:(?:\s|$)|-?\d[\d.]*\s?[\u2e80-\ud7ff]"
    ),
}


pattern = patterns(_PATTERNS)


class Voice(str, Enum):
    """Who made a line."""

    TYPED = "typed"  # at a prompt of Python
    SHELL = "shell"  # at a prompt of a shell
    CODE = "code"
    PRINTED = "printed"
    SAID = "said"


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``text`` is without prompt; ``place`` is the source of facts that are read out of it."""

    at: int  # number within the passage
    place: str
    text: str
    voice: Voice
    indent: int
    rank: int | None = None  # that the line's prefix names: "[rank3]: …"

    def fact(self, name: str, value: FactValue) -> Fact:
        """A fact that was read out of this line."""
        return Fact.known(name, value, self.place, self.text.strip()[:200])


def adjoins(above: Line, place: str, text: str) -> bool:
    """Does a line stand right below, and begin no item of a list, no head and no row?"""
    file, _, number = above.place.rpartition(":")
    return place == f"{file}:{int(number) + 1}" and pattern("begins").match(text) is None


def lines_of(transcript: Transcript) -> Iterator[Line]:
    """The lines of a transcript that are not blank, in order, each with who made it."""
    at = 0
    language: str | None = None  # of the fenced block that is open
    answering = False  # the line right before was typed at a prompt, or is part of the answer to it
    above: Line | None = None  # a sentence right above
    before = 0
    number = 0  # of the line above, in a listing with numbers
    cell = False  # within the code of a notebook's cell: only its first line has a prompt
    for event in transcript.events:
        answering = answering and event.line <= before + 1
        before = event.end_line
        for offset, raw in enumerate(event.text.split("\n")):
            text = raw[:LINE_CHARS]
            if event.stream.isdecimal() and (text[:1].isdecimal() or pattern("card").match(text)):
                # "50: 2.60 GB", "0: GeForce GTX 1060" were taken for lines of a rank
                text = f"{event.stream}: {text}"
            stripped = text.strip()
            if stripped[:3] in ("```", "~~~"):
                language = stripped[3:].strip().lower() if language is None else None
                continue
            if not stripped:
                continue
            if (command := pattern("one-liner").search(stripped)) is not None:
                if "=" in (before_it := stripped[: command.start()]):  # VARIABLE=value python -c "…"
                    yield Line(at, f"text:{event.source}:{event.line}", before_it.strip("$ "), Voice.SHELL, 0)
                    at += 1
                for statement in command.group("code").split(";"):
                    yield Line(at, f"text:{event.source}:{event.line}", statement.strip(), Voice.CODE, 0)
                    at += 1
                continue
            if stripped[:2] == "> " and not _spoken(stripped):
                text = stripped[2:]
            place = f"text:{event.source}:{min(event.line + offset, max(event.line, event.end_line))}"
            number, text = _without_number(text, number)
            cell = pattern("cell").match(text) is not None or cell
            voice, shown = _voice(text, language, answering)
            if cell and voice in (Voice.CODE, Voice.PRINTED) and _in_cell(text):
                voice, shown = (Voice.SHELL, stripped[1:]) if stripped[0] == "!" else (Voice.TYPED, text)
            cell = cell and voice in (Voice.TYPED, Voice.SHELL)
            if above is not None and voice in (Voice.CODE, Voice.PRINTED) and _goes_on(above, place, text):
                voice = Voice.SAID
            answering = voice is Voice.TYPED or (answering and voice is Voice.PRINTED)
            if not shown.strip() and voice is Voice.PRINTED:
                continue  # "Out[3]:", with what it shows below
            line = Line(at, place, shown, voice, len(text) - len(text.lstrip()), event.rank)
            above = line if voice is Voice.SAID and language is None else None
            yield line
            at += 1


def _in_cell(text: str) -> bool:
    """Code, or a command, below the prompt of a notebook's cell; else it is what the cell printed."""
    return not (pattern("value").match(text) or pattern("answer").match(text)) and (
        text.lstrip()[:1] in "!#@" or pattern("surely-code").search(text.strip()) is not None
    )


def _without_number(text: str, above: int) -> tuple[int, str]:
    """The number of a line in a listing of code, and the line without it; 0 outside of one."""
    found = pattern("numbered").match(text)
    if found is None:
        return 0, text
    number, rest = int(found.group("number")), found.group("rest")
    if not (above and number == above + 1) and pattern("surely-code").search(rest.strip()) is None:
        return 0, text
    return number, rest


def _goes_on(above: Line, place: str, text: str) -> bool:
    """Does a line end the sentence that the one above began, as in a mail of 80 columns?

    A line of settings or figures passes for code or output, wherever its sentence was broken.
    """
    said = above.text.rstrip()
    return (
        len(said) >= WRAPPED
        and said[-1:] not in ".:?!\u2026"
        and adjoins(above, place, text)
        and not pattern("surely-code").search(text)
        and (text.rstrip()[-1:] in ".!?," or any(word.strip(".,") in COMMON for word in text.lower().split()))
    )


def _voice(text: str, language: str | None, answering: bool) -> tuple[Voice, str]:
    for name, voice in (("prompt", Voice.TYPED), ("magic", Voice.TYPED), ("shell", Voice.SHELL)):
        found = pattern(name).match(text)
        if found is not None:
            typed = found.group("typed")
            if voice is Voice.SHELL and typed[0] == "#" and len(typed) > 1 and _remark(typed.lstrip("# ")):
                return Voice.SAID, typed.lstrip("# ")
            return voice, typed
    if (found := pattern("answer").match(text)) is not None:
        return Voice.PRINTED, found.group("rest")
    if not answering and (found := pattern("listing").match(text)) is not None and not _spoken(text):
        return Voice.CODE, found.group("code")
    spoken = _spoken(text)
    if answering and (not spoken or pattern("value").match(text)):
        return Voice.PRINTED, text
    if language in ("python", "py", "python3", "ipython"):
        return Voice.CODE, text
    code = None if pattern("value").match(text) else pattern("code").match(text)
    if code is not None and (not spoken or text[:1] in " \t#@" or pattern("surely-code").search(text)):
        value = code.group("value")
        if value is None or "]" in text[: code.start("value")] or not pattern("number").match(value):
            return Voice.CODE, text
    return (Voice.SAID if spoken else Voice.PRINTED), text


def _remark(text: str) -> bool:
    """Words behind "#" at a prompt of a shell: who pastes a session writes there what he thinks of it."""
    return _spoken(text) or len(text.split()) >= REMARK


def _spoken(text: str) -> bool:
    """A sentence: several words, some of which only people use."""
    stripped = text.strip()
    words = [word.strip(".,:;!?()\"'`*>-").lower() for word in stripped.split()]
    words = [word for word in words if word]
    if stripped[:1] in "|+" or not words:
        return False
    if not stripped.isascii():
        strange = sum(c > "\u0400" and c.isalpha() for c in stripped)
        if strange >= 4 and strange * 3 >= sum(c.isalpha() for c in stripped):
            return True
    if len(words) < 3:
        return stripped[-1:] == "?" and stripped[:1].isalpha()
    letters = sum(char.isalpha() for char in stripped)
    if letters * 2 < len(stripped):
        return False
    stops = sum(word in COMMON for word in words)
    return stops >= 2 or (stops >= 1 and stripped[-1:] in ".?!:,")
