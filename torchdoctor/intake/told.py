"""Messages that a person tells of in his own words: ``I get this error: …``, or below a heading."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.lines import is_code, is_prompt
from torchdoctor.model import EventKind

_NOUN = (
    r"(?:errors?|exceptions?|warnings?|problems?|issues?|faults?|messages?|bugs?|traceback|stack ?trace"
    r"|following|below|this|as follows|output)\b"
)
_VERB = (
    r"(?:get|got|gets|getting|gives?|gave|giving|receiv(?:es?|ed|ing)|encounter(?:s|ed|ing)?|seeing|saw|see"
    r"|met|meet|hit|hitting|fac(?:ed?|ing)|ran into|run into|running into|throw(?:s|n|ing)?|threw"
    r"|rais(?:es?|ed|ing)|show(?:s|ed|n|ing)?|says?|tells|told|prints?|printed|reports?|reported"
    r"|fail(?:s|ed|ing)?|crash(?:es|ed|ing)?|dies|died|results?|resulted|returns?|returned|appear(?:s|ed)?"
    r"|occur(?:s|red|ed)?|pop(?:s|ped)? ?up|happen(?:s|ed)?|ha(?:ve|d|ving)|came|comes"
    r"|there (?:is|was))\b"
)
_ANNOUNCES = (
    rf"\b{_VERB}[^.?!\n]{{0,60}}?\b{_NOUN}"
    rf"|\b(?:errors?|exceptions?|warnings?|problems?|issues?|messages?)\b[^.?!\n]{{0,40}}?\b{_VERB}"
    r"|\b(?:results? in|resulting in|fail(?:s|ed|ing)? with|crash(?:es|ed)? with|prints?|outputs?"
    r"|(?:error|log|exception|traceback|message|output)s?(?: (?:is|was|are))?) ?[:\uff1a]"
    r"|\b(?:returns?|returned|gives?|gave|raises?|raised|throws?|threw|shows?|reports?|reported|complains?)"
    r" ?[:\uff1a] ?[`\"]{0,3}(?:\w+\.)*\w+(?:Error|Exception): "
    r"|\b(?:get|got|getting)(?: an?)? \w*[Ee]rror\b"
    r"|\b(?:it|this|that|python|torch|pytorch|code|script|program) (?:gives?|gave|says?|said|shows?|prints?"
    r"|returns?|throws?|raises?)(?: me)?:$"
    r"|\b(?:the|this|an?|following|same) (?:\w+ )?(?:error|exception|warning|message):? ?[`\"\u201c]"
    # "error" in Chinese, Japanese, Korean, German, French, Spanish, Russian, behind words of telling
    r"|\u62a5\u9519|\u51fa\u73b0|\u9519\u8bef|\u62a5\u4e86|\u63d0\u793a|\u30a8\u30e9\u30fc|\uc5d0\ub7ec"
    r"|\b(?:Fehler(?:meldung)?|[Ee]rreur|[Ee]rro|errores?)\b|\u043e\u0448\u0438\u0431\u043a"
)
_HEADING = (
    r"(?:#{1,6} |\*\*).{0,30}\b(?:[Ee]rrors?|[Ll]ogs?|[Oo]utput|[Tt]raceback|[Ww]hat happened|[Bb]ug"
    r"|[Dd]escri\w+|[Bb]ehaviou?r|[Ii]ssue|[Pp]roblem)\b"
)
# a list of questions and answers
_QUESTION = r"\W*(?:Q|A|Question|Answer|F|FAQ) ?\d* ?[:.)]"
# what somebody says of other people, of other times, or of the way out
_SUPPOSES = (
    r"\b(?:[Ii]f|[Ww]hen(?:ever)?|[Ii]n case|[Ss]hould) (?:you|we|one|users?|people|someone|they)\b"
    r"|(?<![Dd]o )(?<![Dd]id )(?<![Cc]an )(?<![Cc]ould )"
    r"\b(?:[Yy]ou(?:'re|\u2019re)?|users?|people|they|someone|somebody|others)\b[^.?!\n]{0,24}"
    r"\b(?:will|may|might|can|could|would|should|get|getting|see|seeing|saw|have|had|met)\b"
    r"|\b(?:fix(?:ed|es)|solv(?:ed|es)|resolv(?:ed|es)|used to|no longer|went away|gone|workaround"
    r"|last (?:year|month|week)|years? ago|sometimes means|usually|typically|means?|meaning|indicates?"
    r"|refers? to|stems from|(?:is|are|was) (?:caused|due)|for example|for instance|e\.g\.|such as"
    r"|avoid(?:s|ed|ing)?|prevents?|instead of|would|might|may|like this one|harmless"
    r"|ignored?)\b"
)

_EXPLAINS = r"\b(?:means|indicates|usually|typically|stems from|is caused|fixed|solved|went away|no longer)\b"


class Teller:
    """Goes along the events of a report and says which of them are what its author was shown."""

    __slots__ = ("_announced", "_heading", "_last")

    def __init__(self) -> None:
        self._announced = False  # the line before announced what follows
        self._heading = False
        self._last = -1

    def shown(self, draft: Draft) -> bool:
        """True for an event that its author announced as the failure, in this line or the one before."""
        raw = draft.raw
        text = raw.strip()[:2_000]
        near = draft.line - self._last
        self._last = draft.end_line
        held = text.lstrip(">*_`\"'\u201c\u201e ").rstrip("*_`\"'\u201d ")
        supposes = pattern(_SUPPOSES).search(_own_words(text)) is not None
        supposes = supposes or pattern(_QUESTION).match(text) is not None
        announces = not supposes and pattern(_ANNOUNCES).search(text) is not None
        before = self._announced and near <= 3 and (near <= 1 or text[:1] not in "#")
        if text[:1] == "#" or (text[:2] == "**" and text[-2:] in ("**", ":*")):
            self._heading = self._announced = pattern(_HEADING).match(text) is not None
            return False
        follows = before and not is_prompt(raw) and not is_code(held) and text[:3] not in ("```", "~~~", "$ ")
        if follows and not (supposes and draft.kind is EventKind.LOG):
            self._announced = near <= 1 or not announces
            return True
        self._announced = announces and (len(text) < 400)
        return announces


def questions_and_answers(lines: list[str]) -> bool:
    """True for a list of questions with their answers: whoever asks there is nobody in particular."""
    marks = [line.strip(" >*_#")[:1].upper() for line in lines if pattern(_QUESTION).match(line)]
    return len(marks) >= 3 and "Q" in marks


def _own_words(text: str) -> str:
    """The sentence without what stands between quotation marks or behind the colon."""
    bare = pattern(r"`[^`]+`?|\"[^\"]+\"?|\u201c[^\u201d]+\u201d?|```.*").sub(" ", text)
    return pattern(r"[:\uff1a] .*").sub("", bare, 1)


def copied(raw: str) -> bool:
    """Can the line be a program's message? In a list or a table it is named only."""
    text = raw.strip()[:2_000]
    if not text or text[0] in "|-+" or text.startswith("* "):
        return False
    return pattern(_EXPLAINS).search(text) is None


class Fences:
    """Follows the fences of Markdown from line to line."""

    __slots__ = ("_mark", "language")

    def __init__(self) -> None:
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
            self._mark = mark[0]
            self.language = text[mark.end() :].strip().lower()
        elif mark is None and text.count("```") % 2:
            self._mark = "```"
