"""A failure that a program caught: it says so above or below it, tries another way, and gets on.

What was caught has its traceback in the log like any other. That the same program goes on proves nothing by
itself: the last words of other ranks, of loggers and of the shell come below a traceback, too.
"""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.form import is_prose
from torchdoctor.intake.lines import is_progress, is_prompt, is_step
from torchdoctor.model import EventKind

NEAR = 3  # lines in which a program says what it does instead
MOST = 400

# said above a traceback, it tells by itself that somebody caught it
_CAUGHT = (
    r"(?i)\b(?:caught|will (?:retry|try|use|go on|skip)|for the record|ignor(?:ed|ing)|skipp(?:ed|ing)|pruned"
    r"|requeued?|re-?queuing|rescheduled|auto[- ]?batch|raised as|as expected|may happen|handled|recoverable"
    r"|recovered|non-?fatal|traceback (?:follows|below)|details below|see below)\b"
    r"|\b(?:batch|bs|tile|size|resolution|length)\b[^.]{0,24}\b(?:too (?:big|large|long|much)|(?:did"
    r"|does) not fit"
    r"|didn't fit|doesn't fit|oom)\b"
)
# said above it, it tells of an attempt, which may have been the last
_TRIED = r"(?i)\b(?:attempts?|try(?:ing)?|tries|trial|prob(?:e|ing)|retry|failed|too big|too large|oom)\b"
# said below it: another attempt, or what is done instead
_INSTEAD = (
    r"(?i)\b(?:again|retry(?:ing)?|tr(?:y|ying) (?:\#?\d|again|with|without|on)|attempt \#?\d|next attempt"
    r"|fall(?:s|ing)? ?back|fell back|instead|skipp(?:ed|ing)|requeued?|moved to|will use|switch(?:ed|ing) to"
    r"|reduc(?:ed|ing)|decreas(?:ed|ing)|halv(?:ed|ing)|lower(?:ed|ing)|shrink(?:ing)?|resum(?:ed|ing)"
    r"|continu(?:ed|ing)|emptied cache|fits(?!\.)|using (?:batch|bs|device|cpu|tile|size|\w+=))\b"
    r"|\d ?(?:->|\u2192) ?\d"
)
_GAVE_UP = (
    r"(?i)\bgiv(?:e|es|ing) up\b|\bgave up\b|\b(?:all|every|last) (?:\w+ ){0,2}(?:attempts?|tries|retries)\b"
    r"|\b(?:no (?:more )?(?:attempts?|retries)|too many (?:attempts?|retries|failures))\b"
    r"|\babort(?:ed|ing)?\b"
    r"|\b[1-9]\d* (?:errors?|failed|failures)\b"
    r"|\bexit(?:ed|ing)? (?:with )?(?:code |status )?[1-9]|\b(?:job|run|training|build) failed\b"
)
_GETS_ON = (
    r"(?i)(?<![\d.])\d+ ?/ ?\d+(?![\d.])|\d%|\b(?:ok|fits(?!\.)|done|saved|wrote|written|uploaded"
    r"|exported|evaluated"
    r"|finished|completed|passed|best|result|score|acc(?:uracy)?|mAP|auc|f1|wer|psnr|bleu|loss|ppl|value)\b"
)
# programs that speak when another one has ended
_OTHERS = (
    "wandb:", "srun:", "slurmstepd:", "swanlab:", "comet", "mlflow", "clearml", "closing", "make:", "make[",
    "exception ignored", "error:", "process ", "shutting down", "cleaning up", "sys:1:", "uploading logs",
)  # fmt: skip


def tried_again(drafts: list[Draft], index: int) -> bool:
    """Did the program say that it caught this exception, or what it does instead, and get on then?"""
    failed = drafts[index]
    if failed.kind is not EventKind.EXCEPTION or not failed.frames:
        return False
    behind = [draft.text()[:400] for draft in drafts[index + 1 : index + 1 + MOST] if _goes_on(draft, failed)]
    if len(behind) < 2 or any(pattern(_GAVE_UP).search(text) for text in behind):
        return False
    above = drafts[index - 1] if index else failed
    near = above.kind is EventKind.LOG and not above.quoted and above.end_line >= failed.line - 2
    said = above.text()[:400] if near else ""
    instead = any(pattern(_INSTEAD).search(text) for text in behind[:NEAR])
    if not pattern(_CAUGHT).search(said):
        tried = pattern(_TRIED).search(said) is not None
        if not (instead or (tried and any(_like(said, text) for text in behind[:NEAR]))):
            return False
    return _gets_on(behind)


def announced(drafts: list[Draft], index: int) -> bool:
    """Does this line stand right above the traceback of a failure that was recovered from?"""
    below = drafts[index + 1] if index + 1 < len(drafts) else None
    return (
        below is not None
        and below.recovered
        and below.kind is EventKind.EXCEPTION
        and drafts[index].kind is EventKind.LOG
        and below.line <= drafts[index].end_line + 2
    )


def _goes_on(draft: Draft, failed: Draft) -> bool:
    return (
        draft.kind is EventKind.LOG
        and not draft.quoted
        and draft.stream == failed.stream
        and not draft.raw.lower().lstrip().startswith(_OTHERS)
        and "registered at " not in draft.raw  # torch's list of what an operator has kernels for
        and not is_prompt(draft.raw)
        and not is_prose(draft.raw, draft.raw.strip())
    )


# what a logger puts before a message: {file.py:93}, [worker], INFO, key=
_DRESS = r"^(?:\{[^}]{0,80}\}|\[[^\]]{0,80}\]|[A-Z]{4,8}\b|\w{1,20}=(?:\"|\S*\s)?|[-:|\s])+"


def _like(one: str, two: str) -> bool:
    """The same words with another number: "== try 1 ==", "== try 2, with checkpoints =="."""
    short, other = (_letters(text)[:8] for text in (one, two))
    return len(short) >= 3 and other.startswith(short[:6]) and one != two


def _letters(text: str) -> str:
    return pattern(r"[\W\d_]+").sub("", pattern(_DRESS).sub("", text).lower())


def _gets_on(behind: list[str]) -> bool:
    moves = [
        is_step(text) or is_progress(text) or pattern(_GETS_ON).search(text) is not None for text in behind
    ]
    return sum(moves) >= 2 or any(moves[-2:])
