"""What kind of document an input is: log, program, prose or chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.draft import pattern
from torchdoctor.intake.lines import is_code, is_progress, is_step
from torchdoctor.intake.written import is_history, is_program, is_program_text, is_settings, is_yaml
from torchdoctor.model import Form

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = 1_200
_STOPWORDS = frozenset((
    "the", "a", "an", "to", "of", "is", "are", "was", "were", "be", "in", "on", "that", "this", "it", "we",
    "you", "i", "my", "our", "your", "for", "with", "and", "or", "not", "but", "when", "if", "what", "how",
    "do", "does", "did", "can", "could", "should", "would", "will", "has", "have", "had", "there", "then",
    "so", "as", "at", "by", "from", "which", "who", "why", "they",
    "le", "la", "les", "des", "du", "et", "est", "vous", "une", "pas", "que", "pour", "dans",
    "der", "das", "und", "ist", "nicht", "ein", "eine", "mit", "auf", "el", "los", "para", "con",
))  # fmt: skip
_CODE_STARTS = (
    "import ", "from ", "def ", "class ", "return", "raise ", "try:", "except", "finally:", "else:",
    "elif ", "with ", "for ", "while ", "if ", "@", "assert ", "yield ", "pass", "break", "continue",
    "async ", "await ", "self.", "print(", "#include", "namespace ", "template", "public:", "private:",
    "static ", "const ", "void ", "int ", "}", "{", "//", "/*", "*/", "using ", "#define", "#if", "#endif",
    "lambda ", "global ", "del ", "nonlocal ", "func ", "let ", "var ", "fn ", "struct ", "enum ",
    "torch.", "log.", "logger.", "logging.",
)  # fmt: skip
_MARKDOWN = ("# ", "## ", "### ", "#### ", "- ", "* ", "```", "~~~", "1. ", "2. ", "3. ", ".. ", "**")
_PERSONAL = (
    r"\bi (?:am|'m|have|had|get|got|can'?t|cannot|don'?t|did|tried|try|use|used|ran|run|want|need|met|meet"
    r"|keep|installed|found|see|was)\b|what (?:do|should) i do"
    r"|(?:[Pp]lease|pls|plz) help|[Aa]ny (?:help|ideas?|solutions?|suggestions?|advice)\b.*[?!]"
    r"|[Hh]ow (?:to|can i|do i) (?:solve|fix|resolve) (?:this|it|the (?:problem|issue|error))\b.*\?"
    r"|[Hh]ow (?:can|do|should|could) (?:i|I|we) \w+"
    r"|[Aa]nyone (?:else|knows?|found|has|have)\b"
    r"|\b[Ii]s (?:this|it|that)(?: an?)?(?: (?:error|warning|message|behaviou?r))?"
    r" (?:ok|OK|normal|expected|bug|fine)\b.*\?"
    r"|\b(?:[Ii]s there|[Dd]oes|[Hh]as|[Hh]ave|[Dd]id|[Cc]an|[Cc]ould) any(?:one|body)\b"
    r"|(?:^|[^\w`])(?:I|I'm|I've|my|me|My|[Ww]e (?:get|got|see|saw|have)|our (?:run|job)s?"
    r"|[Ii]ch|[Mm]ein(?:e[mnrs]?)?|mir|j'ai|mon|mes|chez moi|mi|tengo|meu|minha"
    # Cyrillic: u menya, moj; then Chinese, Japanese and Korean for "my"
    r"|[\u0423\u0443] \u043c\u0435\u043d\u044f|\u043c\u043e[\u0439\u044f\u0451\u0438])(?:[^\w`]|$)"
    r"|\u6211\u7684?|\u79c1\u306e|\u50d5\u306e|\uc81c\uac00"
    # "may I ask", "hello" (twice), "asking for help" in Chinese
    r"|\u8bf7\u95ee|\u4f60\u597d|\u60a8\u597d|\u6c42\u52a9"
    # "asking the great ones, for an answer", "I ask to be taught", "what shall be done", "how to solve this"
    r"|\u6c42(?:\u5927\u795e|\u5927\u4f6c|\u89e3\u7b54|\u6559)|\u8bf7\u6559|\u600e\u4e48\u529e"
    r"|\u8be5(?:\u5982\u4f55|\u600e\u4e48)\u89e3\u51b3|\u6709\u4eba\u9047\u5230"
    # "please tell me, help" in Japanese, Korean and Russian
    r"|\u6559\u3048\u3066|\u56f0\u3063\u3066|\ub3c4\uc640\uc8fc"
    r"|\u043f\u043e\u0434\u0441\u043a\u0430\u0436\u0438\u0442\u0435"
    r"|\u043f\u043e\u043c\u043e\u0433\u0438\u0442\u0435"
)
# headings of the forms that projects have their users fill in
_TEMPLATE = (
    r"(?:#{1,6} |\*\*)[^\w\n]{0,6}(?:Describe the (?:bug|issue)|(?:To|Steps to) [Rr]eproduce"
    r"|(?:Actual|Current|Expected) [Bb]ehaviou?r|What happen(?:s|ed)|What should have happened"
    r"|Reproduc(?:tion|es the problem)|System [Ii]nfo|Your question|Bug\b|Console logs"
    r"|Environment *$|Error (?:message|traceback|logs)|Relevant log output|Versions *$|Issue [Ff]aced"
    r"|Bug [Dd]escription)"
    r"|- \[[ xX]\] (?:I |The (?:issue|bug|problem) )"
)
_BUILT = ("FAILED: ", "ninja: ", "collect2: ", "CMake Error", "error: ", "nvcc ", "gcc ", "g++ ", "c++ ")
# whole sentences of torch.load's message, and ComfyUI's before it, also in bold
_SENTENCES = (
    "Weights only load failed. ", "(1) In PyTorch 2.6, we changed the default value of the `weights_only`",
    "(2) Alternatively, to load with `weights_only=True` please", "WeightsUnpickler error: ",
    "Check the documentation of torch.load to learn more about types",
    "!!! Exception during processing", "**!!! Exception during processing",
)  # fmt: skip
_LOGGED = ("Traceback (most", 'File "', "WARNING", "ERROR", "INFO", "DEBUG")


# Words that begin code lines, but sentences, too.
_AMBIGUOUS = (
    "from ", "with ", "for ", "if ", "while ", "import ", "using ", "class ", "return", "pass", "break",
    "continue", "let ", "const ", "static ", "int ", "raise ",
)  # fmt: skip


_DIGITS = str.maketrans("123456789", "0" * 9)


class Census:
    """Keeps the first lines that are not blank; by them the form is judged."""

    __slots__ = ("lines",)

    def __init__(self) -> None:
        self.lines: list[str] = []

    def see(self, text: str) -> None:
        if len(self.lines) < SAMPLE and text and not text.isspace():
            self.lines.append(text[:400])


class _Asked:
    """Answers a question about a line once for all lines that differ in their digits only."""

    __slots__ = ("ask", "told")

    def __init__(self, ask: Callable[[str, str], bool]) -> None:
        self.ask = ask
        self.told: dict[str, bool] = {}

    def of(self, text: str, line: str = "") -> bool:
        key = text.translate(_DIGITS) if line[:1] not in (" ", "\t") else line.translate(_DIGITS)
        found = self.told.get(key)
        if found is None:
            found = self.told[key] = self.ask(line, text)
        return found


def form_of(lines: list[str]) -> tuple[Form, bool]:
    """(form, whether it is a chat) by majority of the lines."""
    if is_chat(lines):
        return Form.PROSE, True
    code = prose = logged = sentences = inside = 0
    framed = fenced = False
    # nvidia-smi and other programs draw tables with such borders, Markdown does not
    bordered = any(line.lstrip()[:3] == "+--" for line in lines)
    if is_history(lines):
        return Form.PROSE, False
    if any(one[:1] == "#" and pattern(r"#+ (?:[\w.-]+ )?Error Report$").match(one) for one in lines[:40]):
        return Form.LOG, False  # as ComfyUI makes it of its own log, headings and all
    if any(
        one[:3] == ".. "
        and pattern(r"\.\. (?:warning|note|code-block|seealso|deprecated|versionadded)::").match(one)
        for one in lines
    ):
        return Form.PROSE, False  # reStructuredText
    if is_program_text(lines) or is_settings(lines) or is_yaml(lines):
        return Form.SOURCE_CODE, False
    seen: set[str] = set()
    shapes: set[str] = set()
    logs, sources, spoken = _Asked(lambda _, text: _is_logged(text)), _Asked(_is_source), _Asked(is_prose)
    # a message alone, whose further lines are set in: torch writes whole sentences there
    message = bool(pattern(r"^(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Unsupported): \S").match(lines[0]))
    within = 0  # lines of a warning's message that are still to come
    for number, line in enumerate(lines):
        text = line.strip()
        if within:
            within -= 1
            logged += 1
            continue
        if "Warning: " in line:
            within = _warned(lines[number : number + 14])
        if text[:3] in ("```", "~~~"):
            fenced = not fenced
            prose += 1
            continue
        if text in seen and not framed:
            continue  # what stands there again and again was printed by a program
        seen.add(text)
        message = message and (line is lines[0] or line[:1] in " \t")
        if message and line is not lines[0]:
            logged += 1
            continue
        if framed and line[:1] in " \t":  # the source line of a frame
            logged += 1
            framed = 'File "' in text
            continue
        framed = text.startswith('File "') or text.startswith(("-->", "--->"))
        if not framed and text[:2] in ("- ", "* ") and ("`" in text or text[-1:] == "."):
            prose += 1
            sentences += 1
        elif framed or logs.of(text) or (bordered and text[:1] in "|+"):
            logged += 1
        elif fenced:
            quoted = text.startswith(_CODE_STARTS) or is_code(text)
            code += quoted
            inside += quoted
        elif sources.of(text, line):
            code += 1
        elif spoken.of(text, line):
            shape = pattern(r"(?<![\w.])[\w.]*(?:\d|\.\w|_\w)[\w.]*").sub("#", text).replace("#, ", "")
            if shape in shapes and "#" in shape:
                continue  # one sentence with other names and numbers in it: a program's
            shapes.add(shape)
            prose += 1
            sentences += text[-1:] in ".?!:。？！：" or ". " in text or "? " in text or text[0] in "#|-*>"
        elif any(c.isdecimal() for c in text):
            # the head of a release in a list of changes
            logged += not pattern(r"^[vV\[]*\d+(?:\.\d+)+\]?(?: [-\u2013(] ?[\d./-]+\)?)?$").match(text)
    total = code + prose + logged
    if total == prose == 1 and lines[0].rstrip()[-1:] == "?":
        return Form.PROSE, False
    if len(lines) == 1 and lines[0][:1].isalpha() and not is_program(lines[0]) and _explains(lines[0]):
        return Form.PROSE, False
    if (
        code >= 6
        and code * 2 > total
        and code > 2 * prose
        # a failure that shows the code it is about is none
        and not pattern(r"^(?:[A-Za-z_]\w*\.)+\w*(?:Error|Exception): \S").match(lines[0])
    ):
        return Form.SOURCE_CODE, False
    if (
        prose >= 2
        and prose * 2 >= total
        and prose > code - inside  # what stands between fences belongs to the text
        and sentences * 3 >= prose
        and (prose >= 4 or not logged)
    ):
        return Form.PROSE, False
    return Form.LOG, False


def _warned(lines: list[str]) -> int:
    """How many lines belong to the message of the Python warning that begins the lines."""
    if not pattern(r"^\S[^\n]{0,300}?\.py:\d+: \w*Warning: ").match(lines[0]):
        return 0
    # Python ends the message with the source line, two spaces in
    return next((at for at, line in enumerate(lines) if at > 1 and pattern(r"^  [a-z_]").match(line)), 0)


def _is_logged(text: str) -> bool:
    if any(word in text[:120] for word in _LOGGED) or is_progress(text):
        return True
    if text.startswith(("terminate called after", "what(): ", "Exception raised from ", "frame #")):
        return True
    if text.startswith(_SENTENCES):
        return True
    if pattern(r":\d+: (?:\w+Warning: |[^\n]{0,200}block: \[\d)").search(text):
        return True  # Python's warnings and the assertions of kernels name file and line
    if pattern(r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt):?$").match(text):
        return True  # a bare exception class, as poetry prints it, or one whose message stands below
    if text.endswith(" (core dumped)") or text[:2] in ("\u00d7 ", "\u2570\u2500", "\u251c\u2500"):
        return True  # a shell on a native end; the trees in which pip and uv give their reasons
    if pattern(
        r"^(?:OMP|INTEL MKL|Intel MKL|MKL|KMP): ?(?:Error|ERROR|FATAL ERROR|Warning|Hint|Info)\b"
    ).match(text):
        return True
    if is_program(text) or text.startswith(_BUILT) or ": error: " in text or ": fatal error: " in text:
        return True
    first = text[:1]
    if text[:3] == "-- ":
        return True  # CMake
    if ": " in text[:80] and pattern(r"^(?:[\w.-]{1,40}\[\d+\]|[A-Z][^:.]{1,50} {2,}): \S").match(text):
        return True  # a daemon, or a table of names and values such as that of nvidia-smi -q
    if first == "[" or (first.isdecimal() and pattern(r"\d{1,4}[-/:.]\d\d").match(text)):
        return True
    if is_step(text) and "=" in text:
        return True
    named = "Error: " in text or "Exception: " in text
    # at the line's beginning, or behind one word of a prefix
    return named and bool(
        pattern(r"^(?:[(\[<]?[\w.:@-]{1,40}[)\]>:|]{1,2} {1,3})?(?:\w+\.)*\w*(?:Error|Exception): ").match(
            text
        )
    )


def _is_source(line: str, text: str) -> bool:
    if text[:4] == "*** " or (text[:1] == "@" and text[1:20].lstrip()[:2] == "0x"):
        return False  # a native stack, as glog prints it
    if text.startswith(_CODE_STARTS):
        if text.startswith(_AMBIGUOUS):
            return (
                text.endswith((":", ")", "(", ",", ";", "{", "\\"))
                or " import " in text
                or (text.startswith(("import ", "return")) and len(text.split()) < 8)
                or text in ("pass", "break", "continue", "raise")
            )
        return True
    if text[:3] in ('"""', "'''") or text in (")", "]", "})", "),", "],", "});", "};", "}"):
        return True
    if text[-1:] in ";{" and not text[:1].isdecimal():
        return True
    if line[:1] in " \t" and text[:1] in "\"'" and text.endswith((",", '"', "'")):
        return True
    return is_code(text) and not text.endswith(".")


def is_prose(line: str, text: str) -> bool:
    if (
        text.startswith(_MARKDOWN)
        or (text[:2] == "> " and text[2:3].isalpha())
        or (text[:1] == "|" and text[-1:] == "|" and text.count("|") > 2)
    ):
        return True
    # Chinese and Japanese put no blanks between words; the marks are often the narrow ones of the keyboard
    cjk = sum(1 for c in text if "\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3")
    if cjk > 12 and cjk * 3 > len(text) and pattern(r"[。，？！]|[\u3040-\u9fff][,?!]").search(text):
        return True
    words = text.split()
    if len(words) < 4:
        return False
    low = [word.strip(".,:;!?()\"'`*").lower() for word in words]
    stops = sum(word in _STOPWORDS for word in low)
    digits = sum(c.isdecimal() for c in text)
    letters = sum(c.isalpha() for c in text)
    if digits * 8 > len(text) or letters * 10 < len(text) * 6 or ("=" in text and stops < 3):
        return False
    return stops >= 2 or (stops >= 1 and len(words) >= 6 and text[-1:] in ".?!,:;")


def _explains(line: str) -> bool:
    """True for a sentence about a message that it holds between quotation marks."""
    held = pattern(
        r"[\"'\u201c\u201e\u00ab\u2018`]([^\"\u201c\u201d\u00bb`]{12,})[\"'\u201c\u201d\u00bb\u2019`]"
    ).search(line)
    if held is None or held[1].count(" ") < 2:
        return False
    rest = f"{line[: held.start()]} {line[held.end() :]}"
    return bool(
        pattern(
            r"\b(?:means?|meaning|whenever|prints?|says?|raises?|indicates?|refers|explains?|hei\u00dft|bedeutet"
            r"|besagt|signifie|significa)\b"
        ).search(rest)
    )


_SPEAKER = (
    r"^(\w[\w .-]{0,24}?)[ ,]+(?:\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?|\d{1,2}/\d{1,2}/\d{2,4},? \d{1,2}:\d\d(?: "
    r"?[AP]M)?)$"
)


def is_chat(lines: list[str]) -> bool:
    """True when most lines are ``[10:02] name: words``, ``name: words`` or ``<name> words``."""
    spoken = sum(": " in line[:40] or line[:1] == "<" for line in lines[:400])
    timed = sum(":" in line[-9:] and len(line) < 60 for line in lines[:400])
    if spoken * 10 < len(lines[:400]) * 7 and timed < 3:
        return False
    names: dict[str, int] = {}
    prose = 0
    for line in lines[:400]:
        found = pattern(
            r"^(?:\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]? )?(?:<(?P<a>[\w .-]{1,24})>"
            r"|@?(?P<b>[A-Za-z][\w.-]{0,20}(?: [A-Z]\w{0,14})?)(?: \[\d{1,2}:\d\d\])?:) (?P<rest>\S.*)$"
        ).match(line.strip())
        if found and not is_program(line.strip()):
            name = (found["a"] or found["b"]).lower()
            names[name] = names.get(name, 0) + 1
            low = [word.strip(".,:;!?()\"'`").lower() for word in found["rest"].split()]
            prose += any(word in _STOPWORDS for word in low) or len(low) < 4
    heads = [m[1] for line in lines[:400] if (m := pattern(_SPEAKER).match(line))]
    if len(heads) >= 3 and len(set(heads)) >= 2 and len(heads) * 4 >= len(lines[:400]):
        return True
    people = sorted(names.values(), reverse=True)
    spoken = sum(people[:8])
    return len(people) >= 2 and people[1] >= 2 and spoken * 10 >= len(lines) * 7 and prose * 10 >= spoken * 7


def is_personal(lines: list[str]) -> bool:
    """True when somebody reports what happened to him: then an example in the text is the failure itself."""
    return any(
        pattern(_PERSONAL).search(line)
        or (line[:2] in ("##", "# ", "**", "[x", "- ") and pattern(_TEMPLATE).match(line))
        for line in lines
    )
