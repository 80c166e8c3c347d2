"""Who speaks in a text: programs only, somebody whom something befell, or somebody who explains.

Every place that must know asks here, once a text. A text is looked through for signs; each sign has a name,
says what it speaks for, and is either a shape (of headings, lists, versions) or a table of words in
``tongues``. How they combine stands in ``hear``: it is all there is to it.

The signs are looked for by plain search and in sets of words, not by expressions: most inputs are logs, and
compile nothing here.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torchdoctor.intake import tongues
from torchdoctor.intake.draft import pattern
from torchdoctor.intake.lines import is_prompt
from torchdoctor.intake.tongues import Group, Rule
from torchdoctor.intake.written import is_prompt_text
from torchdoctor.model import Form, Speech

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_LINES = 400
MOST_SENTENCES = 1_000
MOST_CHARS = 600  # of a line
MANY_CHAPTERS = 9  # headings; the forms of issue trackers have fewer
_MARKS = str.maketrans(dict.fromkeys('\t.,;()[]{}"`*_#>|\u201c\u201d\u201e\u300c\u300d\u3010\u3011', " "))
_EDGES = " \t#*=-_~:：?？!！。.．、,()（）[]【】<>《》「」0123456789一二三四五六七八九十①②③④⑤✓✅🔧💡❌"
_BULLETS = "-*\u30fb\u2022\u00b7"


class Text:
    """The lines of a text, and what is said in it as sentences, each a set of words in small letters."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = [line[:MOST_CHARS] for line in lines[:MOST_LINES]]
        self.long = len(lines) > MOST_LINES
        self.low = "\n".join(self.lines)[: 100 * MOST_CHARS].lower().replace("\u2019", "'")

    @cached_property
    def title(self) -> str:
        """The first line, or what a mail is about, in small letters."""
        head = self.low.split("\n", 8)[:8]
        if head[0].strip() == "---":  # what stands before the text of a blog: title, date, tags
            return next((line[6:].strip() for line in head if line.startswith("title:")), head[0])
        if head[0].startswith(("from: ", "to: ", "von: ", "date: ")):
            return next((line[9:] for line in head if line.startswith("subject: ")), head[0])
        return head[0]

    @cached_property
    def _sentences(self) -> dict[str, frozenset[str]]:
        # what is set in or cited is shown, not said
        said = (line for line in self.low.split("\n") if not line.startswith(("    ", "\t", "> ")))
        text = "\n".join(said)
        for end in ".?!":
            text = text.replace(f"{end} ", f"{end}\n")
        for end in "\u3002\uff1f\uff01":  # of Chinese and Japanese
            text = text.replace(end, f"{end}\n")
        sentences = dict.fromkeys(text.split("\n", MOST_SENTENCES)[:MOST_SENTENCES])
        return {sentence: words_of(sentence) for sentence in sentences}

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset().union(*self._sentences.values())

    @property
    def questions(self) -> bool:
        """Does a sentence end in a question mark? Python's own "Did you mean: 'ReLU'?" is none."""
        return any(
            len(sentence) > 3
            and sentence.rstrip(" *").endswith(("?", "\uff1f"))
            and "did you mean" not in sentence.lower()
            for sentence in self._sentences
        )

    def holding(self, table: str) -> Iterator[Rule]:
        """The rules of a table that hold in some sentence."""
        for rule in tongues.rules(table):
            here = Rule(tuple(self._here(group) for group in rule.groups), rule.but)
            if all(words or inside for words, inside in here.groups) and any(
                here.holds(sentence, words) for sentence, words in self._sentences.items()
            ):
                yield rule

    def last(self, table: str) -> int:
        """The place of the last sentence in which a rule of a table holds; -1 without one."""
        some = list(self.holding(table))
        places = enumerate(self._sentences.items())
        return max((at for at, said in places if any(rule.holds(*said) for rule in some)), default=-1)

    def pasted(self) -> bool:
        """Did somebody in a chat say nothing but an exception with its message?"""
        bare = r"(?:\S.{0,60}?[:\uff1a>] ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): "
        return any("rror: " in line and pattern(bare).match(line) for line in self.lines)

    def _here(self, group: Group) -> Group:
        """What of a group stands in the text at all: nothing, in most texts."""
        inside = tuple(part for part in group.inside if part in self.low)
        return Group(group.words & self._vocabulary, inside)

    def has(self, *tables: str) -> bool:
        return any(next(self.holding(table), None) is not None for table in tables)

    def count(self, table: str) -> int:
        return sum(1 for _ in self.holding(table))


def words_of(sentence: str) -> frozenset[str]:
    """The words of a sentence, marks that end it among them; "l'erreur" is two and itself."""
    for mark, alike in (("?", ""), (":", ""), ("!", ""), ("\uff1f", "?"), ("\uff1a", ":")):
        if mark in sentence:
            sentence = sentence.replace(mark, f" {alike or mark} ")
    words = sentence.translate(_MARKS)
    return frozenset(words.split() + (words.replace("'", " ").split() if "'" in words else []))


# tables by which somebody is known to speak of what befell him
_PERSONAL = ("wonders", "puzzles", "narrates")


def hear(lines: list[str], form: Form, chat: bool = False) -> Speech:
    """How a text speaks; ``lines`` are those that are not blank.

    ``lesson`` counts the signs of a text that explains: from 2 on what it quotes is no failure, from 3 on not
    even with its stack. Where somebody asks for help, or filled in a form, the text is his, and it is 0.
    """
    listed = questions_and_answers(lines)
    text = Text(lines)
    asked = Text([line for line in lines if not is_entry(line)]) if listed else text
    filled_in = is_form(text.lines)
    asks = filled_in or asked.has("asks")
    person = asks or speaks_of_self(asked.lines) or asked.has(*_PERSONAL)
    over = (chat or asks) and text.has("over") and not (chat and text.last("now") > text.last("over"))
    now = chat and not over and (text.has("now") or (not listed and text.pasted()))
    lesson = 0 if chat else _lesson(text, form, 3 * listed, asks, filled_in)
    return Speech(person or asked.questions, asks, now, over, lesson)


def speaks_of_self(lines: Iterable[str]) -> bool:
    """Does somebody say "I", "my", "ich", …?"""
    for line in lines:
        words = line.replace("\u2019", "'").translate(_MARKS).split()
        if not tongues.words("person-as-written").isdisjoint(words) or not tongues.words("person").isdisjoint(
            word.lower() for word in words
        ):
            return True
        if not line.isascii() and any(word in line for word in tongues.phrases("person-inside")):
            return True
    return False


def is_form(lines: list[str]) -> bool:
    """True for the form of an issue tracker, filled in by somebody who met a failure."""
    for line in lines:
        if line[:1] not in "#*-[":
            continue
        bare = line.lstrip("#*- ")
        if bare[:4] in ("[x] ", "[X] ", "[ ] "):
            if bare[4:].startswith(("I ", "The issue ", "The bug ", "The problem ")):
                return True
        elif line[:1] == "#" or line[:2] == "**":
            head = bare.partition("**")[0].strip(_EDGES).lower()
            if (
                head in tongues.words("form-heads")
                or head.startswith(tongues.phrases("form-starts"))
                or head == "bug"
            ):
                return True
    return False


def _lesson(text: Text, form: Form, marks: int, asks: bool, filled_in: bool) -> int:
    """How many signs there are that a text explains failures to its readers."""
    lines = text.lines
    if not filled_in and sum(_is_chapter(line) for line in lines) >= MANY_CHAPTERS:
        return 3  # a manual
    if not filled_in and _is_published(text, asks):
        return 2
    if text.long:
        return 0
    if text.title.strip(_EDGES).startswith(tongues.phrases("list-titles")):
        return 2
    if any(words in text.title for words in tongues.phrases("solved")) and not text.has("still"):
        return 2  # "Re: [solved] …": what is asked below is another thing
    if text.count("assistant") >= 2 or is_prompt_text(lines):
        return 3
    closed = any(words in text.low for words in tongues.phrases("closed"))
    if closed and not any(line[:2] in ("$ ", "% ") for line in lines):
        return 2  # unless it is followed by a run of something
    if filled_in:
        return 0
    # "traceback for the record" is said by a program, too
    settled = 0 if form is Form.LOG and not speaks_of_self(lines) else _solved(text)
    marks = marks or settled + sum(shape(text) for shape in _SHAPES) + sum(map(text.count, _SAYS))
    if form is Form.PROSE or (_titled(text) and not asks):
        marks += text.has("to-reader")  # programs speak to readers, too
    if asks and not (marks > 3 and _titled(text) and not Text(lines[1:]).has("asks")):
        return 0  # but a title that asks may be answered below it
    return marks if marks >= 2 else 0


def _is_published(text: Text, asks: bool) -> bool:
    """A text for everybody, in which nobody asks for himself: who thanks his readers asks nothing."""
    from torchdoctor.intake import published  # most inputs are logs, in which nobody speaks

    if asks and text.questions:
        return False
    lines = text.lines
    if published.is_notes(lines, text.title) or published.is_notice(lines) or published.are_sayings(lines):
        return True
    return not asks and not text.has("own", "narrates") and published.is_posted(lines)


def _is_chapter(line: str) -> bool:
    return line[:2] == "##" and bool(pattern(r"#{2,5} +[^\W_]").match(line))


def _titled(text: Text) -> int:
    title = text.title
    if not text.lines or is_prompt(text.lines[0]):
        return 0  # a command is no title, whatever the file is called
    if pattern(r"[\w.]*(?:error|exception): ").match(title) or speaks_of_self(text.lines[:1]):
        return 0
    unnamed = r"how (?:to|can i|do i|should i) (?:fix|solve|resolve) (?:this|it|the)(?: [a-z]+)?\W*$"
    if pattern(unnamed).match(title):
        return 0  # an article names what it solves
    words = f" {title.translate(_MARKS)}"
    return any(one in title if one[0] > "\u2e80" else f" {one}" in words for one in tongues.phrases("titles"))


def _headed(text: Text) -> int:
    """Headings that are made of words for causes, remedies and conclusions, each once."""
    found: set[str] = set()
    for line in text.lines:
        label, mark, _ = line.partition(":")  # "Remedy: …", "**Symptom:** …"
        if mark and len(label) < 30 and _is_head(label.strip(_EDGES).lower()):
            found.add(label.strip(_EDGES).lower())
            continue
        head = line.strip(_EDGES).lower()
        if head and len(head) <= 50 and _is_head(head):
            found.add(head)
    return len(found)


def _is_head(head: str) -> bool:
    if head.startswith(tongues.phrases("head-phrases")):
        return True
    if not head.isascii() and any(
        head.startswith(part) or head == part for part in tongues.phrases("head-inside")
    ):
        return True
    words = head.translate(_MARKS).replace("&", " ").split()
    rest = [word for word in words if word not in tongues.words("head-words")]
    return len(rest) < len(words) and all(word in tongues.words("head-fillers") for word in rest)


def _solved(text: Text) -> int:
    # "it did not help" holds "it helped" in Russian
    said = text.low.replace("\u043d\u0435 \u043f\u043e\u043c\u043e\u0433\u043b\u043e", "")
    return 2 * any(words in said for words in tongues.phrases("solved"))


def _numbered(text: Text) -> int:
    """Remedies in a numbered list."""
    marks = (line.lstrip()[:2] for line in text.lines)
    return (
        sum((mark[:1].isdecimal() and mark[1:] in (*".、)）",)) or mark in ("a)", "b)") for mark in marks)
        >= 2
    )


def _pointed(text: Text) -> int:
    """What is to be read, tried or answered, behind an arrow; or "A:" in languages with other letters."""
    marks = ("\u2192", " -> ", " => ") if _titled(text) else ("\u2192",)  # programs print the others, too
    arrow = r"\W{0,3}\S.*(?:\u2192|[-=]>) ?[^\W\d]"
    arrows = sum(
        bool(pattern(arrow).match(line)) for line in text.lines if any(mark in line for mark in marks)
    )
    return 2 * (arrows >= 3 or any(map(_answers, text.lines)))


def _answers(line: str) -> bool:
    mark = r"\W*(?:答|回答|回复|答え|답|답변|О|Ответ) ?\d{0,3} ?[:：]"
    return not line.isascii() and bool(pattern(mark).match(line))


def _offered(text: Text) -> int:
    """Answers to choose from, as in a quiz."""
    return 2 * any(line.count("( )") >= 2 for line in text.lines)


def _projected(text: Text) -> int:
    """Headings that number the slides of a talk."""
    slide = (
        r"(?:#{1,5} +|\*\*)\W{0,3}(?:slide|folie|diapositiv[ae]|diapo|slajd|\u0441\u043b\u0430\u0439\u0434"
        r"|\u30b9\u30e9\u30a4\u30c9|\u5e7b\u706f\u7247) ?#?\d"
    )
    heads = (line.lower() for line in text.lines if line[:1] in "#*")
    return 2 * (sum(bool(pattern(slide).match(head)) for head in heads) >= 2)


def _reviewed(text: Text) -> int:
    """Lines of a patch, quoted to be talked about."""
    return 2 * (sum(line.startswith(("> +", "> -", ">+", ">-")) for line in text.lines) >= 2)


def _changes(text: Text) -> int:
    """A version, and a list: what changed in it."""
    lines = text.lines
    if len(lines) <= 2 or lines[1].lstrip()[:1] not in _BULLETS:
        return 0
    bullets = sum(line.lstrip()[:1] in _BULLETS for line in lines)
    version = r"[^:=|]{0,30}(?<![\w.])v?\d+\.\d+(?:\.\d+)*\b[^:=|]{0,30}$"
    if bullets < 2 or bullets * 3 < 2 * (len(lines) - 1):
        return 0
    return 2 * bool(pattern(version).match(lines[0].strip(" #[=*")))


# what a text that explains is known by: by its shape, and by what it says
_SHAPES = (_titled, _headed, _numbered, _pointed, _offered, _projected, _reviewed, _changes)
_SAYS = ("of-itself", "explains", "remedies", "past")


# a list of questions and answers
_QUESTION = r"\W*(?:Q|A|Question|Answer|F|FAQ) ?\d* ?[:.)]"


def is_entry(line: str) -> bool:
    """``Q: …``, ``A: …``, or a question that is a heading."""
    return pattern(_QUESTION).match(line.strip(" >*_#-\t")) is not None or _asks_in_head(line)


def _asks_in_head(line: str) -> bool:
    head = line.strip()
    return head.rstrip("*").endswith(("?", "\uff1f")) and (
        head[:2] == "##" or (head[:2] == "**" and head[-2:] == "**")
    )


def questions_and_answers(lines: list[str]) -> bool:
    """True for a list of questions with their answers: whoever asks there is nobody in particular."""
    if sum(map(_asks_in_head, lines)) >= 2:
        return True
    heads = [line.strip(" >*_#-\t") for line in lines]
    heads = [head for head in heads if head[:1] in "QAF"]
    if len(heads) < 3:
        return False
    marks = [head[:1] for head in heads if pattern(_QUESTION).match(head)]
    return len(marks) >= 3 and "Q" in marks
