"""How far the message of an exception, or of a native error, reaches over the following lines."""

from __future__ import annotations

from torchdoctor.extract.progress import is_progress, is_step
from torchdoctor.intake.elements import NO_MARK, Draft, Line, Mark, same_record
from torchdoctor.intake.lines import classify, is_prompt, is_rule
from torchdoctor.model import EventKind
from torchdoctor.patterns import pattern

MESSAGE_LINES = 400
CPP_FRAMES = 16
FREE_LINES = 24

# Torch ends many messages with these, some after a blank line.
_HINTS = (
    "CUDA kernel errors might", "For debugging consider", "Compile with `TORCH_USE_CUDA_DSA`",
    "Search for `cuda", "Device-side assert", "HIP kernel errors might",
    "For debugging consider passing AMD", "Set TORCH", "Set torch", "For more", "For extended logs",
    "For C++ stack trace", "If you suspect the guard",
    "You can suppress", "Check the documentation", "Exception raised from", "frame #", "Caused by:",
    "Parameters which did not", "Parameter indices which", "If you already", "In addition, you can",
    "making sure all", "Last error:", "nccl", "from user code:", "While executing", "Original traceback:",
    "Explanation:", "Hint:", "Developer debug context", "The above operation failed",
    "This error indicates", "Please ", "If you are using wheel", "Also, confirm", "If reserved",
    "See documentation", "Possible causes", "MONAI hint", "Module call stack", "(scroll up for backtrace)",
    "Foreign", "Found from", "The following operation failed", "Traceback of TorchScript", "Serialized",
    "C++ CapturedTraceback", "ERROR: Tensor-valued", "Docs:", "tensor at position", "saved metadata",
    "recomputed metadata", ". This may indicate", "[PG ", "(Triggered internally", "Tensors must",
    "Minimum and Max", "To fix this", "To work around", "Consider ", "Alternatively",
    "## Exception summary", "(Refer to the full", "<class '", "- Modify ", "- Debug ", "- Create an issue",
    "Note that", "You can find", "Suggested", "HINT:", "hint:", "Tip:",
    "Unsupported operand", "If this error occurs", "it may be because", "See https://", "workaround examples",
)  # fmt: skip
_FENCE = "```"
_NOT_MESSAGE = (
    "wandb:", "Killing subprocess", "Primary job", "Prompt executed", "Exception ignored ",
    "Exception in thread", "Process ", _FENCE, "retry", "Retry", "attempt ", "Attempt ", "Trying again",
    "[end of output]", "note: This error originates", "Set the environment variable HYDRA_FULL_ERROR",
)  # fmt: skip
# what Python itself says with these is one line; what stands below it was printed by the program
_ONE_LINE = frozenset((
    "KeyError", "NameError", "UnboundLocalError", "AttributeError", "IndexError", "ZeroDivisionError",
    "ModuleNotFoundError", "EOFError", "KeyboardInterrupt", "StopIteration", "FileNotFoundError",
    "NotADirectoryError", "IsADirectoryError", "PermissionError", "UnicodeDecodeError", "MemoryError",
    "SystemExit", "BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError",
))  # fmt: skip
# what print() makes of tensors, sizes, tuples and names, perhaps behind a word or two
_VALUE = (
    r"(?:[A-Za-z_]\w*:? ){0,2}(?:torch\.Size\(|tensor\(|\(\d(?!\S*\)\. )|\[\d|-?\d[\d.e+-]*$)"
    r"|[\w.-]+\.\w{2,4}$"
)
# ===== Settings =====; what pytest frames so begins small, or with a count, and is read where its results are
_TITLE = r"([=*#~+_-])\1{3,} ?[A-Z][^\n]*?\w\S? ?\1{4,}$"
# of an out-of-memory error, from torch 1.10 to the newest release
_LAST_WORDS = ("environment-variables)", "PYTORCH_CUDA_ALLOC_CONF")
# Rust: the fields that tracing puts behind a text of many lines, and what main() returned
_RUST = r" (?:[a-z_]\w*=\S+ ?)+$|Error: [A-Z]\w*$"
_PROCESS_ENDED = r"returned non-zero exit status \d+\.$|died with <Signals\.\w+: \d+>\.$"  # of subprocess
_PICTURES = "\U0001f000"  # no message goes on with one, and many programs begin their own lines so
_BOX = "*" * 20  # an edge of the box in which NLTK says what is missing, right below the bare class
_BOX_LINES = 60
_NOT_AFTER_BLANK = 3  # words a line needs behind a blank one to count as prose of the message


def is_hint(text: str) -> bool:
    """True for a line with which messages of torch, CUDA and NCCL go on."""
    return text.startswith(_HINTS)


def is_heading(body: str) -> bool:
    """True for a heading in Markdown, as forms of trackers put above each answer."""
    return body[:2] == "##" and pattern(r"#{2,6} [A-Z]").match(body) is not None


def breaks(line: Line, within: Mark = NO_MARK) -> bool:
    """True when the line is plainly no part of a message: a record, a prompt, progress, another kind.

    ``within`` is the mark of the record that holds the message.
    """
    body = line.body
    if (line.mark.record and not same_record(line.mark, within)) or body.lstrip().startswith(_NOT_MESSAGE):
        return True
    if is_progress(body) or is_prompt(body) or is_rule(body) or body[:1] >= _PICTURES:
        return True
    if body[:1] not in " \t" and (is_step(body) or pattern(r"\[[A-Za-z][\w.-]*\] [A-Za-z]").match(body)):
        return True
    found = classify(line)
    return found is not None and found[0] is not EventKind.BUILD


class Message:
    """Collects the lines of one message into a draft."""

    __slots__ = ("alike", "base", "blank", "boxed", "cpp", "draft", "free", "last", "lines", "mark")

    def __init__(self, draft: Draft, line: Line, base: int) -> None:
        self.draft = draft
        self.mark = line.mark
        self.base = base
        self.blank = 0
        self.boxed = False
        self.lines = 0
        self.cpp = 0
        self.free = 0  # lines that neither indentation nor a known phrase ties to the message
        self.last = ""
        self.alike = 0

    def wants(self, line: Line) -> bool:
        """True when the line continues the message; it is then taken."""
        body = line.body
        stripped = body.strip()
        if line.joined:
            self.draft.add(body, line.number, joined=True)
            return True
        if not stripped:
            self.blank += 1
            return self.blank <= 3
        if self.lines >= MESSAGE_LINES or self._foreign(line):
            return False
        if (self.boxed or self.draft.type == "LookupError") and self._boxed(line, stripped):
            return True
        if stripped.startswith("frame #"):
            self.cpp += 1
            self.blank = 0
            if self.cpp <= CPP_FRAMES:
                self._add(line)
            return True
        if self.draft.headed and not ends_open(self.draft) and pattern(_RUST).match(body) is not None:
            return False  # a Rust launcher quoted it
        if stripped.startswith('File "') and ", in " not in stripped and not self.quotes_code():
            return False  # where Python could not read a file: the head of another exception
        indent = len(body) - len(body.lstrip())
        if is_hint(stripped) or self._fences(stripped, indent):
            self._add(line)
            return True
        if breaks(line, self.mark if self.draft.headed or ends_open(self.draft) else NO_MARK):
            return False
        if self.blank and (is_heading(body) or not self._after_blank(stripped, indent)):
            return False
        if indent <= self.base and (self._complete() or not self._free(stripped)):
            return False
        self._add(line)
        return True

    def quotes_code(self) -> bool:
        """Does the message quote source code, as TorchScript's do, or announce to?"""
        return ends_open(self.draft) or any('File "' in part or _FENCE in part for part in self.draft.parts)

    def _fences(self, stripped: str, indent: int) -> bool:
        """Is it a fence around code that the message itself gives? One at the left edge is a report's."""
        return indent > self.base and stripped.startswith(_FENCE) and self.quotes_code()

    def _boxed(self, line: Line, stripped: str) -> bool:
        """Is it in a box of asterisks? Its edges are no words of the message; prompts in it are advice."""
        if stripped.startswith(_BOX) and not stripped.strip("*") and (self.boxed or not self.draft.size):
            self.boxed = not self.boxed
            self.blank += 1
            return True
        if not self.boxed or self.lines >= _BOX_LINES:
            return False
        self._add(line)
        return True

    def _complete(self) -> bool:
        """Is the last sentence of a message there? A program's own lines come next."""
        last = self.draft.parts[-1] if self.draft.parts else ""
        return last.endswith(_LAST_WORDS) or (
            last.endswith(".") and pattern(_PROCESS_ENDED).search(last[-80:]) is not None
        )

    def _free(self, stripped: str) -> bool:
        """A few lines at the left edge may belong; a run of alike ones is a program that prints on."""
        if self.draft.headed and not ends_open(self.draft) and self._printed(stripped):
            return False
        self.free += 1
        shape = pattern(r"\d+").sub("0", stripped[:80])
        self.alike = self.alike + 1 if shape == self.last else 0
        self.last = shape
        return self.free <= FREE_LINES and self.alike < 2

    def _printed(self, stripped: str) -> bool:
        """Did the program print this line below its traceback, as far as class and form tell?"""
        if stripped[:4] == stripped[0] * 4 and pattern(_TITLE).match(stripped):
            return True
        name = (self.draft.type or "").rpartition(".")[2]
        if name in _ONE_LINE or (name == "AssertionError" and not self.draft.size):
            return True
        return len(self.draft.parts) == 1 and pattern(_VALUE).match(stripped) is not None

    def _foreign(self, line: Line) -> bool:
        mark = line.mark
        if mark is self.mark or not (mark.record or mark.time):
            return False
        if self.mark.record:
            return mark.logger != self.mark.logger or mark.level != self.mark.level
        return mark.record or (mark.time is not None and self.mark.time is None)

    def _after_blank(self, stripped: str, indent: int) -> bool:
        if indent > self.base or not self.draft.size:
            return True
        if "registered at" in stripped:  # the list of backends of a missing kernel
            return True
        return (
            self.blank == 1
            and len(self.draft.parts) > 2
            and stripped[:1] in "-*(<"
            and stripped.count(" ") > _NOT_AFTER_BLANK
        )

    def _add(self, line: Line) -> None:
        if self.draft.size:
            for _ in range(self.blank):  # so that lines of the text can be counted in the input
                self.draft.add("", line.number)
        self.blank = 0
        self.lines += 1
        body = line.body
        cut = self.base if body[: self.base].isspace() else 0
        self.draft.add(body[cut:].rstrip(), line.number)


def ends_open(draft: Draft) -> bool:
    """True when the message so far announces something: its last line ends in a colon."""
    for part in reversed(draft.parts):
        if part.strip():
            return part.rstrip().endswith(":")
    return False


def announces_process(draft: Draft) -> bool:
    """True behind ``-- Process 5 terminated with the following error:`` (torch.multiprocessing.spawn)."""
    return any(
        pattern(r"^-- Process \d+ terminated with the following error").match(part)
        for part in draft.parts[-2:]
    )


def take_raised(draft: Draft) -> None:
    """A traceback that was cut behind ``raise ValueError("…")``: the statement holds class and message."""
    found = pattern(r"raise ((?:\w+\.)*[A-Z]\w*(?:Error|Exception))\([rbf]?([\"'])(.{12,}?)\2\)?$").match(
        draft.frames[-1].code.rstrip()
    )
    if found is not None:
        draft.type = found[1]
        draft.add(found[3], draft.frames[-1].at)
