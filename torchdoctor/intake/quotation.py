"""Which lines were written and not printed, by their own form. Nothing else says so.

A line counts as printed unless its form shows otherwise: a search hit in a program, a comment, an item of a
list, a string inside source code, a message between quotation marks behind words, a command at a prompt, what
stands beside the code blocks of a pasted issue. An anchor overrules the form: frames, a time, a level, a
rank, an exception's class at the head of the line. In which language or by whom something was said is never
asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from torchdoctor.extract.progress import moves
from torchdoctor.intake.elements import Draft, is_anchored
from torchdoctor.intake.lines import is_prompt
from torchdoctor.intake.prefix import SINCE_BOOT
from torchdoctor.model import Event, EventKind, Quoted
from torchdoctor.patterns import pattern
from torchdoctor.signal_words import OF_ZSH

SAMPLE_LINES = 4_000
SAMPLE_CHARS = 1 << 18
_ONLY_AST = 0x400  # PyCF_ONLY_AST: parsed, never run
_MESSAGE = 4  # events
_LONGEST = 600  # characters of a line that are looked at
# every other kind of event has a form of its own, so that only what stands before it says that it was written
_WRITABLE = (EventKind.LOG, EventKind.KERNEL_LOG, EventKind.SCHEDULER, EventKind.LAUNCHER)

# a record of AMD's runtime (AMD_LOG_LEVEL): level, file, line, microseconds
_OF_HIP = r":\d:[\w.]{1,60} *: ?\d{1,6} *: +\d{1,16} us:"
# what has a form that only programs give it
_PRINTED = (
    EventKind.STACK,
    EventKind.LAUNCHER,
    EventKind.NCCL,
    EventKind.WATCHDOG,
    EventKind.BUILD,
    EventKind.WARNING,
)

# grep, git grep, rg over programs and documents: behind file and line comes a line of code, as far set in as
# it is there, or one that holds a text; what programs say of a place of theirs comes after one blank
_HIT = (
    r"(?:[\w.^~@/-]{1,60}:(?=[\w./-]))?(?:[A-Za-z]:)?[\w./\\~+-]+\.(?:pyi?|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|go|rs"
    r"|js|jsx|tsx?|java|kt|swift|cs|rb|lua|sh|ya?ml|toml|html|md|rst)[:-]\d{1,6}[:-](?:\d{1,4}[:-])?"
    r"(?P<code>(?: {2,}|\t)\S.*|(?!\(\.)[^\s:\d].*)$"
)
# a call, an assignment, an item, a statement of some language that holds a text
_HOLDS = (
    r"(?:[\w.:<>\[\]!&*]+ ?\(|[\w.\[\]: ]+ ?(?::?=|<<) ?|[frbu]{0,2}[\"'`]|[#/*<{}()\[\]-]"
    r"|[a-z]+\b.*[=(\"'`])"
)
# a directive of reStructuredText
_DIRECTIVE = r"\.\. [a-z][\w-]*::"
# a row of a table in Markdown that holds a code span
_ROW = r"\|[^`]*`[^`]+`.*\|$"
# but a step of BuildKit, and a command of a CI's log
_COMMENT = r"(?:#(?!\d+[ :]|#\[)|//|/\*|\*/|<!--|--\[\[|;;) ?\S"
# but the thread that a debugger stopped in
_ITEM = r"(?:(?!\* thread #)[-*+\u2022\u2023\u25aa\u25cf\u2013] |\(?\d{1,2}[.)] )\s*"
# a key and its text in TOML, Python or YAML-like settings
_ASSIGNED = r"[A-Za-z_][\w.-]* += +([\"']).{8,}\1,?$"
_OPTION = r"-{1,2}[A-Za-z][\w-]*(?:[ =,<\[].*)?$"
# a string in an expression, as in any language of braces: TORCH_CHECK(x, "…"), msg = '…', ["…", …
_STRING = r"(?:[\w>)\]]\(|[(\[{,] ?|[^=]=\s?)[frbu]{0,2}([\"'`])(?P<text>(?:(?!\1).){8,})\1"
# GNU's programs write `name': a back quote opens there what a quote closes
_QUOTE = (
    r"(?<![^\W_])(?:`(?P<code>[^`']{12,})`|\"(?P<near>[^\"]{12,})\""
    r"|[\u201c\u201e\u00ab\u300c](?P<far>[^\u201d\u00bb\u300d]{12,}))"
)
_BOUNDS = frozenset("()[]{}<>:|=-\u2013\u2014,;.!")
_BULLETS = "-*+\u2022\u2023\u25aa\u25cf\u2013"
_MARKS = "#\"'`\u201c\u201e\u00ab\u300c"
_HEADS = (
    ("#/*<-;", _COMMENT),
    ("|", _ROW),
    # an item of a list in a program; hip prints what it asserts between the quotation marks of its own source
    ("\"'", r"(?!\"hipError\w+: )[\"'].{8,}[\"'],?$"),
    ("\"'", r"([\"'])\S+ \S+ (?:(?!\1).)+\1 [a-z]+ [a-z]"),  # a message, and words on it
)
_TILDES = r" {0,3}~{3,} ?[\w.+-]*\s*$"  # a fence of Markdown; compilers and Python underline with them, too
_HEAD = r"[`*_\"]{0,3}(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Unsupported)\b"


class Sample:
    """The first lines of an input as they stand there, as long as they are all of it."""

    __slots__ = ("chars", "fenced", "lines")

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.chars = 0
        self.fenced = False

    def see(self, number: int, text: str) -> None:
        if self.chars <= SAMPLE_CHARS and len(self.lines) <= SAMPLE_LINES:
            self.lines.append((number, text))
            self.chars += len(text) + 1
            self.fenced = (
                self.fenced or "```" in text or ("~~~" in text and pattern(_TILDES).match(text) is not None)
            )

    @property
    def whole(self) -> bool:
        """Are these all lines of the input?"""
        return self.chars <= SAMPLE_CHARS and len(self.lines) <= SAMPLE_LINES


def mark_quoted(drafts: list[Draft], sample: Sample) -> None:
    """Set ``quoted`` on what was written, in an input whose beginning is ``sample``."""
    if sample.whole and is_source("\n".join(text for _, text in sample.lines)):
        for draft in drafts:
            draft.quoted = Quoted.SOURCE
        return
    blocks = _blocks(sample.lines) if sample.fenced and sample.whole else None
    hunk = False
    document = any(text[:3] == ".. " and pattern(_DIRECTIVE).match(text) for _, text in sample.lines)
    for draft in drafts:
        hunk = draft.raw[:4] == "@@ -" or (hunk and draft.raw[:1] in "+- ")
        if (document or hunk) and not draft.headed:
            draft.quoted = Quoted.WRITTEN
        if draft.quoted or is_anchored(draft) or draft.type is not None:
            continue
        if draft.kind not in _WRITABLE:
            draft.quoted = _by_head(draft.raw)
            continue
        if blocks is not None:
            draft.quoted = blocks.get(draft.line, Quoted.WRITTEN)
        draft.quoted = draft.quoted or of_line(draft.raw)


def of_line(raw: str) -> Quoted:
    """What the form of one plain line says of it."""
    head = _by_head(raw)
    text = raw.strip()[:_LONGEST]
    if head or not any(mark in text for mark in _MARKS) or pattern(_HEAD).match(text):
        return head
    if _is_statement(text):
        return Quoted.SOURCE
    return Quoted.WRITTEN if _holds_string(text) or _behind_words(text) else Quoted.NO


def _by_head(raw: str) -> Quoted:
    """What a line begins with: a prompt, a comment, an item of a list, a string, a place in a program."""
    text = raw.strip()[:_LONGEST]
    if not text:
        return Quoted.NO
    if is_prompt(raw):
        return Quoted.NO if "    [" in raw and pattern(OF_ZSH).search(raw) else Quoted.SOURCE
    first = text[0]
    if first in _BULLETS or first == "(" or first.isdecimal():
        item = pattern(_ITEM).match(text)
        if item is not None:
            return Quoted.NO if pattern(_HEAD).match(text, item.end()) else Quoted.WRITTEN
    if first == "-" and pattern(_OPTION).match(text):
        return Quoted.SOURCE
    if "=" in text and pattern(_ASSIGNED).match(text):
        return Quoted.SOURCE
    for heads, form in _HEADS:
        if first in heads and pattern(form).match(text):
            return Quoted.WRITTEN
    return Quoted.WRITTEN if ":" in text and _is_hit(text) else Quoted.NO


def is_source(text: str) -> bool:
    """Is this Python source: does it parse, and define or import something?"""
    if not any(word in text for word in ("import ", "def ", "class ")):
        return False
    return not _DECLARES.isdisjoint(_parsed(text))


_DECLARES = frozenset(("Import", "ImportFrom", "FunctionDef", "AsyncFunctionDef", "ClassDef"))
_STATES = frozenset(("Return", "Raise", "Assert", "Assign", "AugAssign", *_DECLARES))


def _is_statement(text: str) -> bool:
    """Is the line a statement of Python, with a comment or a string in it?"""
    return not _STATES.isdisjoint(_parsed(f"{text} pass" if text[-1:] == ":" else text))


def _parsed(text: str) -> list[str]:
    """The kinds of the statements that a text consists of; empty where it does not parse."""
    if "\x00" in text:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the source, about itself
            tree = compile(text, "<input>", "exec", _ONLY_AST)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return []
    return [type(node).__name__ for node in tree.body]


def in_sentence(event: Event, text: str, start: int, events: Sequence[Event]) -> bool:
    """Does a message at ``start`` of an event's text stand within written words, as far as form tells?

    Behind the words of a longer sentence: what a program puts before a message ends in a mark of its own, a
    colon, a bracket, a bar. Or right above or below a whole sentence, without an anchor of its own.
    """
    if is_anchored(event):
        return False
    if event.kind is EventKind.LOG:
        before = text[:start].rstrip().rpartition("\n")[2]
        if before[-1:] not in _BOUNDS and sum(word.isalpha() for word in before.split()) >= 2:
            return True
    elif event.kind is not EventKind.EXCEPTION:
        return False
    beside = (*events[max(0, event.id - 1) : event.id], *events[event.id + 1 : event.id + 2])
    return any(_is_sentence(one) for one in beside)


def shows_output(events: Sequence[Event]) -> bool:
    """Does any form in the text show that a program printed it? A few lines alone are taken for a message."""
    return len(events) <= _MESSAGE or any(
        is_anchored(event)
        or event.quoted is Quoted.SOURCE
        or event.kind in _PRINTED
        or (event.kind is EventKind.KERNEL_LOG and pattern(SINCE_BOOT).match(event.text) is not None)
        or (event.kind is EventKind.LOG and moves(event.text))
        or (event.text[:1] == ":" and pattern(_OF_HIP).match(event.text) is not None)
        for event in events
    )


def _is_sentence(event: Event) -> bool:
    """A plain line of words that ends in a mark, as nobody's message does that stands alone."""
    if event.kind is not EventKind.LOG or event.time or event.level or event.rank is not None:
        return False
    line = event.text.strip()
    if line[-1:] not in ".?!:\u2026\u3002\uff01\uff1f\uff1a" or not line[:1].isalpha():
        return False
    words = line.split()
    spoken = sum(word.strip(".,:;!?()\"'").isalpha() for word in words)
    return (len(words) >= 5 and spoken * 10 >= len(words) * 8) or sum(
        "\u3040" <= c <= "\ud7a3" for c in line
    ) >= 10


def _blocks(lines: list[tuple[int, str]]) -> dict[int, Quoted]:
    """The lines that stand in code blocks of Markdown, by number: source code, or what was printed."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("zero", {"maxNesting": 20}).enable(["fence", "code", "list", "blockquote"])
    texts = [text for _, text in lines]
    found: dict[int, Quoted] = {}
    for token in parser.parse("\n".join(texts)):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        begin, end = token.map
        inside = Quoted.SOURCE if is_source(token.content) else Quoted.NO
        found.update((number, inside) for number, _ in lines[begin:end])
    return found


def _is_hit(text: str) -> bool:
    found = pattern(_HIT).match(text)
    if found is None:
        return False
    code = found["code"]
    return code[0] in " \t#" or (
        any(mark in code for mark in "\"'`") and pattern(_HOLDS).match(code) is not None
    )


def _holds_string(text: str) -> bool:
    """Is it code, in any language, that holds a text of several words?"""
    found = pattern(_STRING).search(text)
    return found is not None and found["text"].count(" ") >= 2


def _behind_words(text: str) -> bool:
    """Does a message stand between quotation marks behind words, or words behind it?

    Tools quote names behind the label with which they end: error: Distribution `torch==2.6.0 @ registry` …
    """
    if text.startswith(("error: ", "fatal: ")):
        return False
    for found in pattern(_QUOTE).finditer(text):
        held = found["code"] or found["near"] or found["far"]
        if held.count(" ") >= 2 and any(word.isalpha() for word in text[: found.start()].split()):
            return True
    return False
