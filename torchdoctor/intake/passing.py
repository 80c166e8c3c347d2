"""Runs of tests in which nothing failed: whatever messages they show, the tests asked for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, takewhile

from torchdoctor.intake.draft import Draft, pattern

_LONG = 400
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


def mark_passed(drafts: list[Draft]) -> None:
    """Set ``quoted`` on all between the head of a run of tests and its summary, where that has no failure."""
    begin = -1
    ran = False
    for index, draft in enumerate(drafts):
        if begin >= 0 and draft.raw[:2] == "$ ":
            begin = -1  # the next command is another run
        for line in _lines(draft):
            if "test session starts" in line:
                begin = index if line in draft.raw else index + 1  # below the message of another failure
            elif " in " in line and (well := ended(line)) is not None:
                if well and begin >= 0:
                    _quote(drafts[begin : index + 1])
                begin = -1
            elif line.startswith("Ran ") and pattern(_UNITTEST).match(line):
                ran = True
            elif "pytest" in line[:240] and pattern(_COMMAND).match(line):
                begin = index
            elif ran and line.strip():
                if line.startswith("OK"):
                    _quote(drafts[begin if begin >= 0 else index : index + 1])
                    _quote(list(takewhile(_trails, drafts[index + 1 :])))
                begin, ran = -1, False
            elif begin < 0 and (
                line[:4] == "test" or "PASSED" in line or line[:3] == "---" or ".py " in line
            ):
                begin = index if pattern(_TESTS).match(line) else -1


def ended(line: str) -> bool | None:
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


def _trails(draft: Draft) -> bool:
    """What tests printed may be written behind their summary; a stack, a command or a record is another's."""
    plain = not (draft.frames or draft.headed or draft.time or draft.level or draft.rank is not None)
    return plain and draft.raw[:1] not in ("$", "+", "#", "%", "=", ">", "[")


def _quote(drafts: list[Draft]) -> None:
    for draft in drafts:
        draft.quoted, draft.told = True, False


_MEANT = ("xpected", "ntended", "it should", "on purpose", "eliberate", "nticipated", "promised")
# "caught as expected: …", "[ok] raised as it should: …", "expected error: …"; the last word is a test's
_FORESEEN = (
    r"^(?:[\w\[\]().,:/|*>-]{1,40} ){0,8}?\W?(?:caught|raise[sd]?|got|trapped|handled|failed|fails|failing"
    r"|rejected|refused|threw|throws|error|exception)\b[^:]{0,40}(?<!not )\b(?:as (?:it should|expected"
    r"|intended|anticipated|promised)|expected(?:ly)?|intended|deliberate(?:ly)?|on purpose)\b[^:]{0,30}:"
    r"|^(?:[\w\[\]().,:/|*>-]{1,40} ){0,8}?\W?(?<!not )(?<!not an )(?:expected|intended|deliberate"
    r"|anticipated) (?:\w+ )?(?:error|exception|failure)(?: \([^)]{0,40}\))?: "
    r"|^\W*as (?:expected|intended|it should)(?: be)?\W*[:,]"
    r"|^\W*(?:(?:ok|pass(?:ed)?|info|debug|note|good|demo)\b\W*)?(?:expected|intended|anticipated)"
    r"(?: \w+(?:Error|Exception))?(?: \([^)]{0,40}\))?: [^:]{0,60}(?:Error|Exception|error)\b"
    r"|(?<!not )\b(?:raised|caught|failed|fails|rejected|refused|thrown|threw) (?:as (?:it should|expected"
    r"|intended|promised)|on purpose|deliberately)\W*$"
    r"|\((?:this is |that is |all )?(?:as )?(?:expected|intended|deliberate|on purpose)(?: here| error)?\)"
    r"\W*$"
)


# what a test says below a message that it provoked, and nothing else
_VERDICT = (
    r"^\W*(?:(?:ok|pass(?:ed)?|good)\W+)?(?:\w+ )?(?:(?:expected|intended|anticipated) (?:failure|error"
    r"|exception)|(?:failed|raised|refused) as (?:expected|it should|intended)|as expected)"
    r"(?:\W+(?:ok|pass(?:ed)?|good))?\W*$"
)


def mark_provoked(drafts: list[Draft]) -> None:
    """Set ``quoted`` on a message without a stack right above a line that says that it was asked for."""
    for before, draft in pairwise(drafts):
        if draft.line - before.end_line <= 2 and not before.frames and _is_verdict(draft.raw):
            before.quoted, before.told = True, False
    for draft in drafts:  # the verdict may have been taken for the end of the message
        if len(draft.parts) > 1 and not draft.frames and _is_verdict(draft.parts[-1]):
            draft.quoted, draft.told = True, False


def _is_verdict(line: str) -> bool:
    if len(line) > 80 or not any(word in line for word in _MEANT) or "not " in line or "nexpected" in line:
        return False
    return bool(pattern(f"(?i){_VERDICT}").match(line))


def foreseen(raw: str) -> bool:
    """A message that its program was made to provoke, and says so: tests, lessons, checks of inputs."""
    return any(word in raw for word in _MEANT) and bool(pattern(f"(?i){_FORESEEN}").search(raw[:2_000]))
