"""What kind of document an input is: log, program, prose or chat."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from torchdoctor.intake.chat import is_chat
from torchdoctor.intake.draft import pattern
from torchdoctor.intake.lines import is_code, is_progress, is_prompt, is_step
from torchdoctor.intake.written import is_catalog, is_for_machines, is_history, is_program
from torchdoctor.model import Form
from torchdoctor.sentence_words import COMMON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLE = 1_200
_CODE_STARTS = (
    "import ", "from ", "def ", "class ", "return", "raise ", "try:", "except", "finally:", "else:",
    "elif ", "with ", "for ", "while ", "if ", "@", "assert ", "yield ", "pass", "break", "continue",
    "async ", "await ", "self.", "print(", "#include", "namespace ", "template", "public:", "private:",
    "static ", "const ", "void ", "int ", "}", "{", "//", "/*", "*/", "using ", "#define", "#if", "#endif",
    "lambda ", "global ", "del ", "nonlocal ", "func ", "let ", "var ", "fn ", "struct ", "enum ",
    "torch.", "log.", "logger.", "logging.",
)  # fmt: skip
_MARKDOWN = ("# ", "## ", "### ", "#### ", "- ", "* ", "```", "~~~", "1. ", "2. ", "3. ", ".. ", "**")
_BUILT = ("FAILED: ", "ninja: ", "collect2: ", "CMake Error", "error: ", "nvcc ", "gcc ", "g++ ", "c++ ")
# sentences that programs print under their errors or in them, each on a line of its own
_PRINTED = (
    "terminate called after", "what(): ", "Exception raised from ", "frame #", "Exception in thread",
    "Caused by: ",
    "CUDA kernel errors might", "For debugging consider passing", "Compile with `TORCH_USE",
    "Search for `cuda", "!!! Exception during processing", "**!!! Exception during processing",
    "CUDA SETUP: ", "CUDA error: ", "Duplicate GPU detected", "Please make sure libcudnn",
    "ncclInternalError: ", "ncclSystemError: ", "ncclInvalidUsage: ", "ncclUnhandledCudaError: ",
    "ncclRemoteError: ", "HIP kernel errors might be asynchronously",
    "Weights only load failed. ", "(1) In PyTorch 2.6, we changed the default value of the `weights_only`",
    "(2) Alternatively, to load with `weights_only=True` please", "WeightsUnpickler error: ",
    "Check the documentation of torch.load to learn more about types",
    "Unexpected error from cudaGetDeviceCount()", "Solving environment:", "LibMambaUnsatisfiableError: ",
    "size mismatch for ", "Missing key(s) in state_dict", "Unexpected key(s) in state_dict",
    "UnsatisfiableError: ", "Could not solve for environment specs", "Collecting package metadata",
    "Channels:", "Platform: ", "The following packages are incompatible", "Could not locate cudnn",
    "CUDA Setup failed despite ", "Inspect the output of the command and see if you can locate CUDA",
    "to your LD_LIBRARY_PATH. If you suspect a bug, please take the information from",
    "Could not load library ", "Unable to load any of {", "Failed to initialize NVML: ",
)  # fmt: skip
# commands that no heading of Markdown begins with, set in small letters
_ROOT = frozenset((
    "nvidia-smi", "uname", "dmesg", "cat", "ls", "lspci", "lsmod", "modprobe", "modinfo", "systemctl",
    "python", "python3", "docker", "grep", "journalctl", "df", "ps", "pip", "apt", "conda", "nvcc",
    "torchrun", "srun",
))  # fmt: skip
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
            self.lines.append(text[:1_200])


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


def _may_be_said(line: str) -> bool:
    """False for most lines of logs: no question, no heading, no other letters than those of English."""
    return not line.isascii() or line[:1] in "#*@" or "?" in line[-3:] or " I " in line or line[:2] == "I "


class Shape(NamedTuple):
    """The form of a text, whether it is a chat, and whether any line of it reads as if somebody said it."""

    form: Form
    chat: bool = False
    spoken: bool = True


def form_of(lines: list[str]) -> Shape:
    """By majority of the lines."""
    if is_chat(lines):
        return Shape(Form.PROSE, chat=True)
    first = next((line for line in lines if line.strip()), "")
    if first.rstrip().endswith(":") and pattern(r"(?:\w+\.)*\w*(?:Error|Exception):\s*$").match(first):
        return Shape(Form.LOG)  # an exception whose message begins on the next line: nobody writes so
    code = prose = logged = sentences = inside = abroad = 0
    outer = 0  # printed lines that are not set in
    weak = 0  # lines that may be printed: some number stands in them
    framed = fenced = False
    # nvidia-smi and other programs draw tables with such borders, poetry 2 gives its reasons behind bars
    bars = ("+--", "| Unable to find installation")
    bordered = any(line.lstrip().startswith(bars) or (line[:1] == "|" and "MiB / " in line) for line in lines)
    if is_history(lines):
        return Shape(Form.PROSE)
    if any(one[:1] == "#" and pattern(r"#+ (?:[\w.-]+ )?Error Report$").match(one) for one in lines[:40]):
        return Shape(Form.LOG)  # as ComfyUI makes it of its own log, headings and all
    if any(
        one[:3] == ".. "
        and pattern(r"\.\. (?:warning|note|code-block|seealso|deprecated|versionadded)::").match(one)
        for one in lines
    ):
        return Shape(Form.PROSE)  # reStructuredText
    if _is_status(lines):
        return Shape(Form.LOG)
    if is_catalog(lines):
        return Shape(Form.SOURCE_CODE, spoken=False)
    if is_for_machines(lines):
        return Shape(Form.SOURCE_CODE)
    seen: set[str] = set()
    shapes: set[str] = set()
    logs, sources, spoken = _Asked(lambda _, text: _is_logged(text)), _Asked(_is_source), _Asked(is_prose)
    if pattern(r"^torch\.(?:\w+\.)*_\w+\.(?:\w+\.)*\w*(?:Error|Exception|Unsupported): ").match(lines[0]):
        return Shape(Form.LOG)  # nobody begins his own words with a class of torch's private modules
    # a message alone, whose further lines are set in: torch writes whole sentences there
    message = bool(pattern(r"^(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Unsupported): \S").match(lines[0]))
    within = 0  # lines of a warning's message that are still to come
    for number, line in enumerate(lines):
        text = line.strip()
        if within:
            within -= 1
            logged += 1
            outer += 1
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
            outer += 1
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
            outer += line[:4] != "    " or framed
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
            abroad += not text.isascii() and pattern(_ABROAD).search(text) is not None
            sentences += text[-1:] in ".?!:。？！：" or ". " in text or "? " in text or text[0] in "#|-*>"
        elif any(c.isdecimal() for c in text):
            # the head of a release in a list of changes
            weak += not pattern(r"^[vV\[]*\d+(?:\.\d+)+\]?(?: [-\u2013(] ?[\d./-]+\)?)?$").match(text)
    total = code + prose + logged + weak
    if total == prose == 1 and lines[0].rstrip()[-1:] == "?":
        return Shape(Form.PROSE)
    if len(lines) == 1 and lines[0][:1].isalpha() and not is_program(lines[0]) and _explains(lines[0]):
        return Shape(Form.PROSE)
    if not logged and len(lines) <= 12 and any(_names(line) and _talks(line) for line in lines):
        return Shape(Form.PROSE)
    if len(lines) <= 3 and any(_names(line) for line in lines) and all(_talks(line) for line in lines):
        return Shape(Form.PROSE)
    if (
        code >= 6
        and code * 2 > total
        and code > 2 * prose
        # a failure that shows the code it is about is none
        and not pattern(r"^(?:[A-Za-z_]\w*\.)+\w*(?:Error|Exception): \S").match(lines[0])
        and not _announced(lines)
    ):
        return Shape(Form.SOURCE_CODE)
    if (
        prose >= 2
        and prose * 2 >= total
        and prose > code - inside  # what stands between fences belongs to the text
        and sentences * 3 >= prose
        and (prose >= 4 or outer + weak == 0 or abroad >= 2)
    ):
        return Shape(Form.PROSE)
    begins = lines[0][:1].isalpha() and not _is_logged(lines[0]) and not is_step(lines[0])
    return Shape(Form.LOG, spoken=prose > 0 or begins or any(map(_may_be_said, lines)))


def _announced(lines: list[str]) -> bool:
    """Code that somebody pasted without marks, then words that end in a colon, then what it raised."""
    return any(
        above.rstrip()[-1:] in (":", "\uff1a")
        and not is_code(above.strip())
        and "rror" in above
        and pattern(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception): \S").match(line)
        for above, line in pairwise(lines)
    )


def _is_status(lines: list[str]) -> bool:
    """True for what Kubernetes and Docker tell of a container that ended: it reads like settings."""
    code = any('xitCode"' in line or "exitCode: " in line or "Exit Code: " in line for line in lines)
    return code and any(
        pattern(r"\s*(?:- )?\"?(?:terminated|lastState|containerStatuses|State|Last State)\"?:").match(line)
        for line in lines
    )


def _warned(lines: list[str]) -> int:
    """How many lines belong to the message of the Python warning that begins the lines."""
    if not pattern(r"^\S[^\n]{0,300}?\.py:\d+: \w*Warning: ").match(lines[0]):
        return 0
    # Python ends the message with the source line, two spaces in
    return next((at for at, line in enumerate(lines) if at > 1 and pattern(r"^  [a-z_]").match(line)), 0)


def _is_logged(text: str) -> bool:
    if any(word in text[:120] for word in _LOGGED) or is_progress(text):
        return True
    if text[:2] == "# " and text[2:].split(" ", 1)[0] in _ROOT:
        return True  # at the prompt of root
    if text.startswith(_PRINTED) or ("@" in text[:40] and is_prompt(text)):
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
    if text[:2] == "{'" and text[-1:] == "}" and any(c.isdecimal() for c in text):
        return True  # what transformers logs of a step, as Python shows a dictionary
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
    if not text.isascii() and pattern(_ABROAD).search(text) and not pattern(_MESSAGE).match(text):
        return True
    words = text.split()
    if len(words) < 4:
        return False
    low = [word.strip(".,:;!?()\"'`*").lower() for word in words]
    stops = sum(word in COMMON for word in low)
    digits = sum(c.isdecimal() for c in text)
    letters = sum(c.isalpha() for c in text)
    if digits * 8 > len(text) or letters * 10 < len(text) * 6 or ("=" in text and stops < 3):
        return False
    return stops >= 2 or (stops >= 1 and len(words) >= 6 and text[-1:] in ".?!,:;")


def _explains(line: str) -> bool:
    """True for a sentence about a message that it holds between quotation marks."""
    return any(
        held.count(" ") >= 2
        and pattern(
            r"\b(?:means?|meaning|whenever|prints?|says?|raises?|indicates?|refers|explains?|hei\u00dft"
            r"|bedeutet|besagt|signifie|significa)\b"
        ).search(rest)
        for held, rest in _parted(line)
    )


def _parted(line: str) -> Iterator[tuple[str, str]]:
    """What stands between quotation marks, and the rest: with the nearest mark that closes, and the last."""
    opening = pattern(r"(?<![^\W_])[\"'\u201c\u201e\u00ab\u2018`]").search(line)
    if opening is None:
        return
    closing = {"\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u00ab": "\u00bb", "\u2018": "\u2019"}
    marks = closing.get(opening[0], opening[0])
    near = [at for mark in marks if (at := line.find(mark, opening.end() + 12)) > 0]
    far = [at for mark in marks if (at := line.rfind(mark)) > opening.end() + 12]
    for at in dict.fromkeys((*near[:1], *far[-1:])):
        yield line[opening.end() : at], f"{line[: opening.start()]} {line[at + 1 :]}"


def _names(line: str) -> bool:
    """True for a line with several words between quotation marks, as messages are quoted, or an exception."""
    held = any(held.count(" ") >= 2 for held, _ in _parted(line))
    return held or pattern(_NAMED).search(line) is not None


def _talks(line: str) -> bool:
    """True for a sentence, whatever it quotes."""
    if is_program(line):
        return False
    for rest in (*(rest for _, rest in _parted(line)), line):
        bare = pattern(_HELD).sub(" ", rest).strip(" []()0123456789.-*>")
        if not bare.isascii() and pattern(_ABROAD).search(bare) and not _is_logged(bare):
            return True
        bare = pattern(_NAMED).sub(" ", bare, 1).strip()
        ends = bare[-1:] == ":" and line.rstrip()[-1:] != ":"
        if bare[:1].isalpha() and not ends and not _is_logged(bare) and is_prose(bare, bare):
            return True
    return False


_NAMED = r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Unsupported)\b.*"
# words of other scripts than torch's and its libraries' messages are written in; systems do speak them
_ABROAD = (
    r"(?:[\u3040-\u30ff\u4e00-\u9fff][^\n]*?){9}|(?:[\uac00-\ud7a3]+[^\w\n]+){2}[\uac00-\ud7a3]"
    r"|(?:[\u0400-\u04ff]{2,}[^\w\n]+){2}[\u0400-\u04ff]{2}"
)
_MESSAGE = (
    r"(?:\w+\.)*\w*(?:Error|Exception|Warning)\b|\S+:\d+(?::\d+)?: |[\[(]?\d{2,4}[-/:.]\d\d|[\w./-]+: \S"
)
_HELD = (
    r"(?<![^\W_])[`\"\u201c\u201e\u00ab]([^`\"\u201c\u201d\u00bb]+(?: [^`\"\u201c\u201d\u00bb]+){2})"
    r"[`\"\u201c\u201d\u00bb]"
)
