"""What pytest and unittest say of tests that did not fail, and what their summaries repeat."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.model import EventKind

# pytest -rA, -rx: what these sections show happened in tests that passed or were to fail
_HARMLESS = ("XFAILURES", "XPASSES", "PASSES")
_SECTION = r"^=+ ([A-Za-z][\w ]{0,60}?) =+$"
_NO_FAILURE = (
    r"^(?:XFAIL|XPASS|SKIPPED|PASSED|RERUN|SUBPASS|SUBSKIP)\b.*(?:::|\.py\b|\[\d+\])"
    r"|^\S+::\S+ (?:XFAIL|XPASS|SKIPPED|PASSED|RERUN)\b"
    r"|^\w+ \([\w.]+\)(?: \[[^\]]{0,80}\])? ?\.{3} (?:ok|skipped|expected failure|unexpected success)\b"
)
_SUMMARY = r"^(?:FAILED|ERROR) \S*\.py\S*(?: \[[^\]]{0,80}\])?(?:::\S+)? - (?P<text>.+)$"


def mark_reports(drafts: list[Draft]) -> None:
    """Set ``quoted`` on what stands in harmless sections, on outcomes, and on repeats of a traceback."""
    section = ""
    told: list[str] = []  # the exceptions that were shown with their tracebacks
    for draft in drafts:
        raw = draft.raw.strip()
        if raw[:1] == "=":
            head = pattern(_SECTION).match(raw)
            section = head[1] if head else section
        if section in _HARMLESS:
            draft.quoted = True
        elif draft.kind is EventKind.EXCEPTION:
            if draft.headed and draft.type:
                told.append(f"{draft.type.rpartition('.')[2]}: {draft.text()}".partition("\n")[0])
        elif draft.kind is EventKind.LOG and raw[:1].isascii():
            found = pattern(_SUMMARY).match(raw) if raw[:1] in "FE" else None
            if found:
                text = found["text"].removesuffix("...").rstrip()
                text = pattern(r"^(?:\w+\.)+(?=\w+:)").sub("", text)
                draft.quoted = any(other.startswith(text) for other in told)
            elif pattern(_NO_FAILURE).match(raw):
                draft.quoted = True
