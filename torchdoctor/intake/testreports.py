"""What pytest and unittest say of tests that did not fail, and what their summaries repeat."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.model import EventKind

# pytest -rA, -rx: what these sections show happened in tests that passed or were to fail
_HARMLESS = ("XFAILURES", "XPASSES", "PASSES")
_SECTION = r"^=+ ([A-Za-z][\w ]{0,60}?) =+$"
_NO_FAILURE = (
    r"^(?:XFAIL|XPASS|SKIPPED|PASSED|RERUN|SUBPASS|SUBSKIP)\b.*(?:::|\.py\b|\[\d+\])"
    r"|^ok \d+\b|^ok - |^[\u2713\u2714\u221a] "
    r"|^\S+::\S.{0,300} (?:XFAIL|XPASS|SKIPPED|PASSED|RERUN)\b"
    r"|^\w+ \([\w.]+\)(?: \[[^\]]{0,80}\])? ?\.{3} (?:ok|skipped|expected failure|unexpected success)\b"
)
_LONG = 400  # characters of a line that are looked at


def mark_reports(drafts: list[Draft]) -> None:
    """Set ``quoted`` on what stands in harmless sections, on outcomes, and on repeats of a traceback."""
    section = ""
    going = False  # go test -v shows what its tests say, and whether any failed
    if any(draft.raw.lstrip().startswith("--- PASS: ") for draft in drafts):
        going = not any(draft.raw.lstrip().startswith("--- FAIL: ") for draft in drafts)
    began = -1  # a test of gtest
    told: list[str] = []  # the exceptions that were shown with their tracebacks
    for at, draft in enumerate(drafts):
        raw = draft.raw.strip() if draft.raw[:1] in " \t" else draft.raw
        if raw[:5] == "[ RUN":
            began = at
        elif (
            raw[:1] == "[" and began >= 0 and pattern(r"\[ +(?:OK|FAILED|SKIPPED) +\] ").match(raw, 0, _LONG)
        ):
            for inner in drafts[began : at + 1] if "OK" in raw[:14] else ():
                inner.quoted = True
            began = -1
        if raw[:2] == "==":
            head = pattern(_SECTION).match(raw.rstrip(), 0, _LONG)
            section = head[1] if head else section
        if section in _HARMLESS or (going and "_test.go:" in raw):
            draft.quoted = True
        elif draft.kind is EventKind.EXCEPTION:
            if draft.headed and draft.type:
                told.append(f"{draft.type.rpartition('.')[2]}: {draft.text()}".partition("\n")[0])
        elif raw.startswith(("FAILED ", "ERROR ")):
            draft.quoted = draft.quoted or _repeats(raw[:_LONG], told)
        elif "<testcase " in raw and "<failure" not in raw and "<error" not in raw:
            draft.quoted = draft.quoted or "</testcase>" in raw
        elif "<skipped" in raw and "<failure" not in raw and "<error" not in raw:
            draft.quoted = True  # JUnit
        elif ("::" in raw or raw[:1] in "XSPRto\u2713\u2714\u221a") and pattern(_NO_FAILURE).match(
            raw, 0, _LONG
        ):
            draft.quoted = True


def _repeats(line: str, told: list[str]) -> bool:
    """``FAILED tests/x.py::test - RuntimeError: mat1 and…``, when that exception was shown before."""
    test, dash, text = line.partition(" - ")
    if not dash or ".py" not in test:
        return False
    name, _, message = text.partition(":")
    text = f"{name.rpartition('.')[2]}:{message}".rstrip().removesuffix("...").rstrip()
    return any(other.startswith(text) for other in told)
