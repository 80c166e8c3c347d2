"""What one event says of the end of a run: that it was good, that it failed, or nothing."""

from __future__ import annotations

from torchdoctor.extract.progress import is_step
from torchdoctor.intake.elements import Draft
from torchdoctor.intake.ending import rows
from torchdoctor.model import Event, EventKind
from torchdoctor.patterns import pattern

_FAILURES = (
    EventKind.EXCEPTION,
    EventKind.CRASH,
    EventKind.DEVICE_ASSERT,
    EventKind.WATCHDOG,
    EventKind.BUILD,
)

_PROSE = 10  # words
BELOW_WARNING = ("INFO", "DEBUG", "NOTICE", "TRACE")
BELOW_ERROR = ("WARNING", "WARN", *BELOW_WARNING)
_COLUMNS = 120  # characters in which a column of levels stands
_LAUNCHER_FAILED = r"exit ?code:? -?[1-9]|return code = -?[1-9]|non-zero|\breceived SIG[A-Z]+"
_WATCHED = (EventKind.LOG, EventKind.LAUNCHER, EventKind.SCHEDULER)
_REPORTS = (EventKind.NCCL, EventKind.KERNEL_LOG, EventKind.WARNING)

# an exception's class with its message, or what a program calls an error
_NAMES_ERROR = (
    r"\b[A-Z]\w*(?:Error|Exception)\b(?: ?: |\()(?!\d+\.\d)|\b(?:fatal )?error: (?!\d)\S"
    r"|\bfailed with (?:status|error|exit|return)(?: code)? (?:0x[\da-f]{1,8}|-?[1-9]\d{0,5})\b"
    r"|^\s*\"errorMessage\": \"\S"  # what AWS Lambda answers
)
# how programs and NCCL's tests say in a line of their own that something failed
_TELLS_FAILURE = (
    r"^[^a-z]{0,60}\b(?:ERROR|FATAL)\b[\] :]|\bterminate called\b|\bTest NCCL failure\b"
    r"|\bfail(?:ed|ure) with\b"
    # a name that NVIDIA's libraries have for a failed call, and how its samples end
    r"|\b(?:cudaError|CUDA_ERROR_|CU(?:BLAS|DNN|FFT|SPARSE|SOLVER|RAND)_STATUS_(?!SUCCESS))\w{3,60}"
    r"|^Result = FAIL\b|^\s*CMake Error\b"
    r"|^\s*× \S|^ {0,2}x (?:No solution found|Failed to) "  # uv and pip; in a Windows console
    r"|^g?make(?:\[\d+\])?: \*\*\* |^npm ERR! |^thread '[^']{1,80}' panicked at "
    r"|^\S{0,80}?(?:sh|sh\[\d+\]): (?:line )?(?:\d+: )?[\w./+-]{1,80}: (?:command )?not found$"  # a shell
    r"|^Unknown (?:builtin op|type name)\b"  # TorchScript's compiler
    r"|\.so[\w.]{0,20}: cannot open shared object file"  # the loader, in a line of the program that asked it
)


def names_error(text: str) -> bool:
    """Does a line name an error, be it written or printed?"""
    return pattern(_NAMES_ERROR).search(text) is not None


def tells_failure(text: str) -> bool:
    """Does a line name an error, or tell a failure in the words of a program?"""
    return (
        names_error(text)
        or rows.REPORTED.search(text) is not None
        or pattern(_TELLS_FAILURE).search(text) is not None
    )


def goodness(text: str) -> int:
    """2 for a line that says plainly that the run ended well, 1 for one that suggests it, else 0."""
    text = text[-400:]
    strong = rows.GOOD.search(text) is not None
    if not strong and rows.SOFT.search(text) is None:
        return 0
    if rows.NOT_GOOD.search(text) or (not strong and rows.BAD.search(text)):
        return 0
    return 2 if strong else 1


def is_failure(draft: Draft | Event) -> bool:
    """True for an event that ends a run, or says that one ended badly."""
    if draft.quoted or draft.recovered:
        return False
    text = draft.text() if isinstance(draft, Draft) else draft.text
    if draft.kind in _FAILURES:
        remark = text.lstrip().startswith(("In file", "ninja: no work"))
        return draft.kind is not EventKind.BUILD or not remark
    if draft.kind in _WATCHED and _is_account(draft, text[:400]):
        return True
    if draft.kind is EventKind.LAUNCHER:
        return (
            draft.level in ("ERROR", "CRITICAL")
            or "FAILED" in text
            or bool(pattern(_LAUNCHER_FAILED).search(text))
        )
    if draft.kind is EventKind.SCHEDULER:
        return "error" in text or "CANCELLED" in text or "OOM" in text or "Failed" in text
    if draft.kind in _REPORTS:
        return rows.REPORTED.search(text[:600]) is not None
    return draft.kind is EventKind.LOG and _tells_failure(draft, text[:400])


def _is_account(draft: Draft | Event, text: str) -> bool:
    """Does whoever watched a process say that it ended badly, or a tool that it could not do its work?"""
    if rows.ACCOUNTED.search(text) is not None:
        return True
    refused = rows.REFUSAL.search(text) is not None and rows.AROUND.search(text) is None
    return refused and level(draft) not in BELOW_ERROR


def _tells_failure(draft: Draft | Event, text: str) -> bool:
    """Does a plain line say that something failed, and not how the program got around it?"""
    if rows.BAD.search(text) is None or goodness(text) or is_step(text) or " is expected" in text.lower():
        return False
    if level(draft) in BELOW_ERROR or rows.AROUND.search(text):
        return False
    if pattern(r"^\s*[a-z][\w-]*: +[\w.-]+(?: +# .*)?$|^\s+\d+  +\S").match(text):
        return False  # a switch of a settings dump; how often something was counted
    if draft.level is not None:
        return True
    low = pattern(rows.NO_TROUBLE.pattern).sub(" ", text.lower())
    found = rows.TROUBLE.search(low)
    return found is not None and not _within_words(low[: found.start()])


def _within_words(before: str) -> bool:
    """Do so many words stand before it, and no mark of a program's, as in what people and models write?"""
    if pattern(r"[:=|{}<>\[\]]").search(before):
        return False
    return sum(word.strip(",.'\"()").isalpha() for word in before.split()) >= _PROSE


def level(draft: Draft | Event) -> str:
    """The level of a line, also one below ERROR in a column that is not known as one; else ""."""
    if draft.level:
        return draft.level
    raw = (draft.raw if isinstance(draft, Draft) else draft.text)[:_COLUMNS]
    if raw[:1] == "[" and (mark := pattern(r"\[([WI]) \d{4}-\d\d-\d\d ").match(raw)) is not None:
        return "WARNING" if mark[1] == "W" else "INFO"  # Optuna
    if "|" not in raw:
        return ""
    return next((word for cell in raw.split("|") if (word := cell.strip()) in BELOW_ERROR), "")
