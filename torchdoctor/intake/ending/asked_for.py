"""Failures that tests asked for: pytest, unittest, gtest and JUnit on tests that did not fail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from torchdoctor.intake.elements import Draft
from torchdoctor.intake.ending import rows
from torchdoctor.intake.frames import PLUGIN
from torchdoctor.model import EventKind
from torchdoctor.patterns import pattern, search

# the functions of ComfyUI and of AUTOMATIC1111's web UI that import plug-ins, one by one
_LOADERS = (("load_custom_node", "/nodes.py"), ("load_scripts", "/modules/scripts.py"))
# how a server ends, or a client of it, whatever was printed before
_BY_HAND = ("KeyboardInterrupt", "SystemExit", "CancelledError", "ConnectionResetError", "BrokenPipeError")
_LONG = 400  # characters of a line that are looked at
# "== 40 passed, 1 xfailed in 12.83s ==", or without the marks where pytest is quiet
_SUMMARY = r"^=* ?\d+ \w+(?:, \d+ (?:subtests )?\w+)* in [\d.:]+ ?s(?:econds)?\b"
_UNITTEST = r"^Ran \d+ tests? in [\d.]+s$"
_OUTCOMES = ("passed", "failed", "error", "skipped", "deselected")
# where a run of tests begins whose head is cut off
_TESTS = (
    r"^\S+\.py(?:::\S+)? (?:PASSED|SKIPPED|XFAIL|[.sxX]{2,})|^-{3,} Captured \w+|^\S+::\S+ PASSED"
    r"|^test\w* \([\w.]+\)(?: \.\.\. |$)"
)
# where only its command is seen: pytest -q prints no head
_COMMAND = r"^(?:[$>%#+] ?)?(?:\S{0,200}/)?(?:python\S{0,8} -m )?pytest(?: |$)"
_TUNING = " error during autotuning:"
_RECORD = 20  # events of a record of several lines
# pytest -rA, -rx: what these sections show happened in tests that passed or were to fail
_HARMLESS = ("XFAILURES", "XPASSES", "PASSES")
_SECTION = r"^=+ ([A-Za-z][\w ]{0,60}?) =+$"
_NO_FAILURE = (
    r"^(?:XFAIL|XPASS|SKIPPED|PASSED|RERUN|SUBPASS|SUBSKIP)\b.*(?:::|\.py\b|\[\d+\])"
    r"|^ok \d+\b|^ok - |^[\u2713\u2714\u221a] "
    r"|^\S+::\S.{0,300} (?:XFAIL|XPASS|SKIPPED|PASSED|RERUN)\b"
    r"|^\w+ \([\w.]+\)(?: \[[^\]]{0,80}\])? ?\.{3} (?:ok|skipped|expected failure|unexpected success)\b"
)


def mark_asked_for(drafts: list[Draft]) -> None:
    """Set ``recovered`` on the failures that tests, or programs by their own word, asked for."""
    _mark_passed_runs(drafts)
    _mark_reports(drafts)
    _mark_left_out(drafts)
    _mark_not_loaded(drafts)
    _mark_plugins(drafts)
    for before, draft in pairwise(drafts):  # a message without a stack right above the word on it
        if draft.line - before.end_line <= 2 and not before.frames and _is_verdict(draft.raw):
            before.recovered = True
    for draft in drafts:
        ignored = draft.ignored and not rows.DIED.search(draft.text()[:_LONG])
        over = draft.recovered or ignored or _cancelled(draft)
        draft.recovered = over or rows.HARMLESS.search(draft.raw[:_LONG]) is not None
        # the word of the test may have been taken for the end of the message
        last = len(draft.parts) > 1 and _is_verdict(draft.parts[-1])
        if not draft.frames and (last or rows.ASKED_FOR.search(draft.raw[:_LONG])):
            draft.recovered = True


def _cancelled(draft: Draft) -> bool:
    """Was a task of asyncio cancelled while it waited, as a server does with its own when it shuts down?"""
    return (draft.type or "").endswith(".CancelledError") and all(frame.package for frame in draft.frames)


def _is_verdict(line: str) -> bool:
    return len(line) <= 80 and rows.ASKED_FOR.search(line) is not None


def _mark_passed_runs(drafts: list[Draft]) -> None:
    """All between the head of a run of tests and its summary, where that has no failure."""
    begin = -1
    ran = False
    for index, draft in enumerate(drafts):
        if begin >= 0 and draft.raw[:2] == "$ ":
            begin = -1  # the next command is another run
        for line in _lines(draft):
            if "test session starts" in line:
                begin = index if line in draft.raw else index + 1  # below the message of another failure
            elif " in " in line and (well := summary(line)) is not None:
                if well and begin >= 0:
                    _recover(drafts[begin : index + 1])
                begin = -1
            elif line.startswith("Ran ") and pattern(_UNITTEST).match(line):
                ran = True
            elif "pytest" in line[:240] and pattern(_COMMAND).match(line):
                begin = index
            elif ran and line.strip():
                if line.startswith("OK"):
                    _recover(drafts[begin if begin >= 0 else index : index + 1])
                begin, ran = -1, False
            elif begin < 0 and (
                line[:4] == "test" or "PASSED" in line or line[:3] == "---" or ".py " in line
            ):
                begin = index if pattern(_TESTS).match(line) else -1


def summary(line: str) -> bool | None:
    """For a summary of pytest, whether all went well; None for another line."""
    if not any(word in line for word in _OUTCOMES) or not pattern(_SUMMARY).match(line):
        return None
    return "passed" in line and not pattern(r"\d (?:failed|errors?)\b").search(line)


def _lines(draft: Draft) -> Iterator[str]:
    """The lines of an event that are short enough; a summary may have been taken for the end of a message."""
    yield draft.raw[:_LONG]
    for part in draft.parts:
        if part is not draft.raw:
            yield part[:_LONG]


def _recover(drafts: list[Draft]) -> None:
    for draft in drafts:
        draft.recovered = True


def _mark_left_out(drafts: list[Draft]) -> None:
    """What torch tells of a kernel that it tried while it tuned, from the head to its last words."""
    for at, draft in enumerate(drafts):
        if rows.LEFT_OUT.search((draft.parts[-1] if draft.parts else draft.raw)[-_LONG:]) is None:
            continue
        for first in range(at, max(-1, at - _RECORD), -1):
            if _TUNING in drafts[first].raw and drafts[first].stream == draft.stream:
                _recover([one for one in drafts[first : at + 1] if one.stream == draft.stream])
                break


def _mark_not_loaded(drafts: list[Draft]) -> None:
    """Modules that could not be loaded, where anything else was printed below: the script went on without."""
    went_on = False
    for draft in reversed(drafts):
        if rows.NOT_LOADED.search(draft.raw[:_LONG]) is not None:
            draft.recovered = draft.recovered or went_on
        elif not went_on and rows.LMODS.search(draft.raw[:_LONG]) is None:
            went_on = True


def _mark_plugins(drafts: list[Draft]) -> None:
    """Plug-ins that a program could not import and did without, where another exception stands below."""
    failed = False
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        if draft.kind is EventKind.EXCEPTION and not draft.recovered and draft.frames:
            if not _of_plugin(draft):
                failed = failed or (draft.headed and (draft.type or "").rpartition(".")[2] not in _BY_HAND)
            elif failed:
                beside = [
                    one
                    for one in drafts[max(0, at - 1) : at + 2]
                    if rows.NOT_IMPORTED.search(one.raw[:_LONG])
                ]
                _recover([draft, *beside])


def _of_plugin(draft: Draft) -> bool:
    """Does the stack begin where a plug-in is loaded, or in its own file as that is imported?

    A traceback shows the frames from the one on that caught it.
    """
    first = draft.frames[0]
    file = first.file.replace("\\", "/")
    if first.function == "<module>":
        return search(PLUGIN, file, "custom_nodes", "extensions") is not None
    return any(first.function == name and file.endswith(end) for name, end in _LOADERS)


def _mark_reports(drafts: list[Draft]) -> None:
    """What stands in harmless sections, on outcomes, and on repeats of a traceback."""
    section = ""
    began = -1  # a test of gtest
    told: list[str] = []  # the exceptions that were shown with their tracebacks
    for at, draft in enumerate(drafts):
        raw = draft.raw.strip() if draft.raw[:1] in " \t" else draft.raw
        if raw[:5] == "[ RUN":
            began = at
        elif raw[:1] == "[" and began >= 0 and pattern(r"\[ +(?:OK|FAILED|SKIPPED) +\] ").match(raw):
            _recover(drafts[began : at + 1] if "OK" in raw[:14] else [])
            began = -1
        if raw[:2] == "==":
            head = pattern(_SECTION).match(raw.rstrip(), 0, _LONG)
            section = head[1] if head else section
        if section in _HARMLESS or _harmless(raw[:_LONG], told):
            draft.recovered = True
        elif draft.kind is EventKind.EXCEPTION and draft.headed and draft.type:
            told.append(f"{draft.type.rpartition('.')[2]}: {draft.text()}".partition("\n")[0])


def _harmless(raw: str, told: list[str]) -> bool:
    """An outcome that is no failure, a failure that was shown before, or a JUnit element without one."""
    if raw.startswith(("FAILED ", "ERROR ")):
        return _repeats(raw, told)
    if "<testcase " in raw or "<skipped" in raw:
        failed = "<failure" in raw or "<error" in raw
        return not failed and ("</testcase>" in raw or "<skipped" in raw)
    return ("::" in raw or raw[:1] in "XSPRto\u2713\u2714\u221a") and bool(pattern(_NO_FAILURE).match(raw))


def _repeats(line: str, told: list[str]) -> bool:
    """``FAILED tests/x.py::test - RuntimeError: mat1 and…``, when that exception was shown before."""
    test, dash, text = line.partition(" - ")
    if not dash or ".py" not in test:
        return False
    name, _, message = text.partition(":")
    text = f"{name.rpartition('.')[2]}:{message}".rstrip().removesuffix("...").rstrip()
    return any(other.startswith(text) for other in told)
