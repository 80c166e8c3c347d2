"""Services that go on: a request failed, and the good line that the log ends with is about another one."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.model import EventKind

# what a service says of the next request that it answered: nothing of the one that failed
_ANSWERED = (
    r"\bpredict(?:ion|ed|s)?\b|\binfer(?:ence|red)\b|\brequests?\b|\bresponses?\b|\bserved\b|\bmessages?\b"
    r"|\bclassif(?:y|ied|ication)\b|\bembedd(?:ed|ing)\b|\btranscri(?:bed|ption)\b|\bitems?\b"
    r"|\bprocessed \S+\.\w|\b(?:GET|POST|PUT) /|\bstatus(?:_code)?[\"' ]*[=:][\"' ]*20\d"
    r"|HTTP/\d(?:\.\d)?\"? 20\d"
)
# a web server's line on a request says nothing of any other
_ACCESS_ANY = r"\"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \S{1,300} HTTP/\d(?:\.\d)?\" [2-5]\d\d\b"
_ACCESS = _ACCESS_ANY.replace("[2-5]", "2")
# what it says of the one that failed, and a short answer to the next
_ASKED_OF = r"\brequests?\b|\bpredict(?:ion)?\b|\binfer(?:ence)?\b|\bhandl(?:er|ing)\b"
_OK = r"(?i)^[\d\s:.,TZ+/-]{0,40}\W*(?:(?:INFO|DEBUG)\W+)?(?:HTTP/\d\S* )?(?:20\d )?ok\W*$"
_ALL = r"\b(?:all|total|summary)\b|\b\d+ (?:requests?|items?|messages?|predictions?)\b|\b\d+/\d+\b"


def answers(text: str) -> bool:
    """Is it a web server's line on a request that went well?"""
    return pattern(_ACCESS).search(text[:400]) is not None


def of_another(drafts: list[Draft], failure: int, good: int) -> bool:
    """A failure that a service logged as an error with its traceback, and a line on another request."""
    failed = drafts[failure]
    said = drafts[failure - 1] if failure else failed
    graded = failed if failed.level else said
    if failed.kind is not EventKind.EXCEPTION or not failed.frames:
        return False
    answer = drafts[good].text()[:400]
    if not (answers(answer) and _serves(drafts[:failure], failed)):
        if graded.line < failed.line - 1 or graded.level not in ("ERROR", "CRITICAL", "FATAL"):
            return False
        one_of_many = graded is not failed and pattern(f"(?i){_ASKED_OF}").search(graded.text()[:400])
        if not pattern(f"(?i){_ANSWERED}").search(answer) and not (
            one_of_many and pattern(_OK).search(answer)
        ):
            return False
    return not pattern(f"(?i){_ALL}").search(answer)


_WEB = frozenset({
    "uvicorn", "starlette", "fastapi", "flask", "werkzeug", "django", "tornado", "aiohttp", "gradio",
    "gunicorn", "sanic", "bottle", "litestar", "quart",
})  # fmt: skip


def _serves(before: list[Draft], failed: Draft) -> bool:
    """Did a web server answer requests already, or run what failed? While it starts, one may be caught."""
    if any(frame.package in _WEB for frame in failed.frames):
        return True
    return any(pattern(_ACCESS_ANY).search(draft.raw[:400]) for draft in before[-200:])
