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
    r"|\b(?:dies|died|dying|crash(?:es|ed|ing)|fail(?:s|ed|ing)|abort(?:s|ed)|end(?:s|ed)|stop(?:s|ped)"
    r"|exit(?:s|ed)"
    r"|br(?:eaks|oke)|bricht|stirbt|endet|scheitert)\b[^.?!\n]{0,60}\b(?:with|mit|on"
    r"|due to)\b ?[:\uff1a`\"\u201c\u201e]"
    r"|\b(?:says|complains|gives|dies|died|crashe[sd]|fails|failed|gave|greets me|wirft|meldet"
    r"|sagt)\b[^.?!\n]{0,30}?"
    r"\b(?:\w+\.)*\w+(?:Error|Exception): "
    r"|\b(?:it|this|that|python|torch|pytorch|code|script|program) (?:gives?|gave|says?|said|shows?|prints?"
    r"|returns?|throws?|raises?)(?: me)?:$"
    r"|\b(?:the|this|an?|following|same) (?:\w+ )?(?:error|exception|warning|message):? ?[`\"\u201c]"
    r"|\b(?:[Jj]obs?|[Rr]uns?|[Tt]raining|[Pp]rocess|[Ss]cript|[Pp]rogram|[Ww]orkers?"
    r"|[Rr]ank)\b[^.?!\n]{0,40}"
    r"\b(?:failed|died|crashed|stopped|ended|aborted)\b[^.?!\n]{0,60}[:\uff1a]"
    r"|\b[Ss]till (?:happens|fails|failing|crashes|occurs|get|getting|see|seeing|broken)\b|\b[Ss]ame here\b"
    # "error" in Chinese, Japanese, Korean, German, French, Spanish, Russian, behind words of telling
    r"|\u62a5\u9519|\u62a5\u4e86"
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
    r"|refers? to|stems from|hei\u00dft|bedeutet|besagt|signifie|significa|(?:is|are|was) (?:caused|due)"
    r"|for example|for instance|e\.g\.|such as"
    r"|(?:is|are|gets?) (?:raised|thrown|printed|reported) (?:if|when|by|for|as)|difference between"
    r"|I(?: still)? (?:remember|recall)"
    r"|avoid(?:s|ed|ing)?|prevents?|instead of|would|might|may|like this one|harmless"
    r"|ignored?|[Ww]enn|[Ff]alls|absichtlich|on purpose|deliberately|expected to|[Ss]e compare"
    r"|[Ss]i aparece)\b"
    r"|\u5982\u679c|\u306e\u5834\u5408|\u3068\u304d\u306f|\u0435\u0441\u043b\u0438|\u0415\u0441\u043b\u0438"
    r"|\ub9cc\uc57d"
)

# somebody's own words before a message between quotation marks
_QUOTES = (
    rf"\b{_VERB}[^.?!\n]{{0,60}}?[`\"\u201c\u201e](?:\w+\.)*\w*(?:Error|Exception|Unsupported|CUDA|NCCL)\b"
)
# somebody's own words, a colon, and the exception; or what he gets, between quotation marks
_COLON = (
    r"\u51fa\u73b0|\u9519\u8bef|\u63d0\u793a|\u30a8\u30e9\u30fc|\uc5d0\ub7ec|\u043e\u0448\u0438\u0431\u043a"
    r"|\b(?:Fehler(?:meldung)?|[Ee]rreur|[Ee]rro|errores?)\b|"
    r"[:\uff1a] ?[`\"\u201c\u201e\u00ab]? ?(?:\w+\.)*\w+(?:Error|Exception): "
    r"|\b(?:gets?|got|getting|see|seeing|saw)\b[^.?!\n]{0,20}[`\"\u201c\u201e]"
    r"|\b(?:me (?:sale|aparece|da)|obtengo|recibo|j'(?:obtiens|ai)|re\u00e7ois|erhalte|bekomme"
    r"|kommt|[\u0412\u0432]\u044b\u043b\u0435\u0442\u0430\u0435\u0442|\u043f\u0430\u0434\u0430\u0435\u0442"
    r"|\u043f\u043e\u043b\u0443\u0447\u0430\u044e"
    r"|\u0432\u044b\u0434\u0430[\u0451\u0435]\u0442)\b[^.?!\n]{0,60}(?:Error|NCCL|CUDA)\b"
    r"|\b(?:with|by|this) ?:? ?[`\"\u201c\u201e\u00ab](?:\w+\.)*\w*(?:Error|Exception)\b"
    r"|\b(?:log|output|console|terminal)\b[^.?!\n]{0,20}\b(?:is|was|are"
    r"|reads)\b[^.?!\n]{0,10}[`\"\u201c\u201e\u00ab]"
    r"|\b(?:log|output|console|terminal|it|which|(?:py)?torch)\b[^.?!\n]{0,30}\b(?:says?|prints?|shows?"
    r"|tells?|warns?)\b"
    r"[^.?!\n]{0,30}[`\"\u201c\u201e\u00ab]"
)
_COLON += rf"|\b{_VERB}[^.?!\n]{{0,20}}?\b(?:\w+\.)*\w+(?:Error|Exception): "
# the subject of a commit
_COMMITS = r"\W*(?:[Ff]ix|chore|docs|refactor|test|feat|perf|build|ci)\b(?:\(|:|!| )"
# stories of other times
_STORY = (
    r"(?i)\blast (?:summer|spring|autumn|fall|winter|year)\b|\b(?:back then|turned out|once we knew"
    r"|in hindsight|(?:exercise|lesson|lecture|chapter)s?|learn (?:how|to)"
    r"|looking back|long story|we would do differently|lessons? learned|years ago|months ago)\b"
)
_EXPLAINS = (
    r"\b(?:difference between|(?:is|are) (?:raised|thrown) (?:if|when|by)|means|indicates|usually|typically"
    r"|stems from|is caused|fixed|solved|went away|no longer)\b"
)


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
        text = raw.strip()[:2_000]
        near = draft.line - self._last
        self._last = draft.end_line
        held = text.lstrip(">*_`\"'\u201c\u201e ").rstrip("*_`\"'\u201d ")
        supposes = pattern(_SUPPOSES).search(_own_words(text)) is not None
        supposes = supposes or pattern(_QUESTION).match(text) is not None
        supposes = supposes or (len(text) > 120 and pattern(_STORY).search(text) is not None)
        supposes = supposes or pattern(_COMMITS).match(text) is not None
        announces = not supposes and (
            self._announcing(text)
            or (self._personal and bool(pattern(_QUOTES).search(text) or pattern(_COLON).search(text)))
        )
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

    def _announcing(self, text: str) -> bool:
        """Own words that announce a failure; a message may hold the marks that it stands between."""
        near, far = _unheld(text)
        found = pattern(_ANNOUNCES).search
        if self._personal:
            return bool(found(near) or found(far))
        return bool(found(near) and found(far))


_LIVE = (
    r"(?i)\b(?:just|again|now|keeps?|still|today|currently|this morning|tonight)\b[^.?!\n]{0,24}"
    r"\b(?:crash|die[sd]?\b|dying|fail|stop|abort|got|get|hang|down\b|broke)"
    r"|\b(?:crash\w*|died|dies|failed|fails|stopped|aborted|hangs)\b[^.?!\n]{0,30}\b(?:again|now|today"
    r"|help)\b"
    r"|\bi(?:'m| am)? (?:get|getting|got|see|seeing|have|hit)\b[^.\n]{0,60}(?::|\?|\berror\b|\bexception\b)"
    r"|\bany(?:one|body)?\b[^.!\n]{0,40}\b(?:ideas?|help|knows?|hints?)\b[^\n]{0,40}\?|\bwhat does (?:this"
    r"|that) mean"
    r"|\u62a5\u9519\u4e86|\u53c8\u6302\u4e86|\u5d29\u4e86|\u6302\u4e86|\u843d\u3061\u305f|\u8ab0\u304b"
    r"|\uc8fd\uc5c8"
)
_OVER = (
    r"(?i)\b(?:fixed|solved|swapped|replaced|never came back|last (?:week|month|year|spring|summer|autumn"
    r"|winter|time)"
    r"|(?:do|does|did) (?:you|anyone|anybody) remember|back then|turned out|went away|since then|(?:works?"
    r"|working) (?:now|again)"
    r"|(?:is|was|all|now) (?:green|fine|good|ok(?:ay)?|clean|gone)|runbook|(?:years?|months?|long"
    r"|a while) ago|did the trick|that was it"
    r"|that (?:worked|helped|did it)|used to)\b"
    r"|\u89e3\u51b3\u4e86|\u597d\u4e86|\u89e3\u6c7a\u3057|\u76f4\u3063\u305f|\u76f4\u308a\u307e|\uD574\uACB0"
)


def tells_now(lines: list[str]) -> bool:
    """True for a chat about something that just failed, and that nobody has solved in it."""
    return any(pattern(_LIVE).search(line) for line in lines) and not any(
        pattern(_OVER).search(line) for line in lines
    )


def questions_and_answers(lines: list[str]) -> bool:
    """True for a list of questions with their answers: whoever asks there is nobody in particular."""
    heads = [line.strip(" >*_#-\t") for line in lines]
    heads = [head for head in heads if head[:1] in "QAF"]
    if len(heads) < 3:
        return False
    marks = [head[:1] for head in heads if pattern(_QUESTION).match(head)]
    return len(marks) >= 3 and "Q" in marks


def _own_words(text: str) -> str:
    """The sentence without what stands between quotation marks or behind the colon."""
    bare = pattern(r"`[^`]+`?|\"[^\"]+\"?|[\u201c\u201e][^\u201c\u201d]+[\u201c\u201d]?|```.*").sub(" ", text)
    return pattern(r"[:\uff1a] .*").sub("", bare, 1)


def addresses(line: str) -> bool:
    """True for words to a reader: what befell him is not shown, but supposed."""
    return bool(
        pattern(r"(?i)\b(?:you|your|you're|du|dein\w*|sie|ihr\w*|vous|votre)\b|[\u4f60\u60a8]").search(line)
    )


def _unheld(text: str) -> tuple[str, str]:
    """The line without what stands in quotation marks, to the nearest mark that closes and to the last."""
    near = r"([`\"\u201c\u201e\u00ab])[^`\"\u201c\u201d\u00bb]{2,}(?:[`\"\u201c\u201d\u00bb]|$)"
    far = r"([`\"\u201c\u201e\u00ab]).{2,}[`\"\u201c\u201d\u00bb]"
    return pattern(near).sub(r"\1", text), pattern(far).sub(r"\1", text)


def copied(raw: str) -> bool:
    """Can the line be a program's message? In a list or a table it is named only."""
    text = raw.strip()[:2_000]
    if not text or text[0] in "|-+" or text.startswith("* "):
        return False
    # torch itself says so of a reduction that was not finished
    return pattern(_EXPLAINS).search(text.replace("This error indicates", "")) is None


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


def leads(raw: str) -> bool:
    """Does the line begin with an exception, but for the marks of Markdown?"""
    named = r"[#>*_`\"' ]*(?:\[[\w -]{1,20}\]:? ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): "
    return pattern(named).match(raw) is not None


def retype(draft: Draft) -> None:
    """A line in which somebody tells an exception: class and message, without his own words."""
    raw = draft.raw
    named = list(pattern(r"(?<![\w.])((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (?=\S)").finditer(raw))
    if not named or (len(named) > 1 and raw[named[1].start() - 1] in '`"\u201c\u201e\u00ab'):
        return
    found = named[0]
    message = raw[found.end() :].rstrip()
    mark = raw[found.start() - 1 : found.start()]
    closing = {"\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb", "`": "`", '"': '"', "'": "'"}.get(
        mark, ""
    )
    if closing and closing in message:
        message = message[: message.rfind(closing)]
    draft.kind, draft.type = EventKind.EXCEPTION, found[1]
    draft.told = draft.told or found.start() > 0  # his own words are gone: that somebody tells it stays
    draft.parts[:] = [message]
