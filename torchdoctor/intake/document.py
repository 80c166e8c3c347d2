"""How an input ended, and which failures were recovered from."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.form import Census, form_of
from torchdoctor.intake.lines import is_progress, is_step
from torchdoctor.intake.passing import mark_passed, mark_provoked
from torchdoctor.intake.quoting import mark_quoted
from torchdoctor.intake.testreports import mark_reports
from torchdoctor.intake.told import mark_cited
from torchdoctor.intake.voice import hear
from torchdoctor.model import Ending, EventKind, Form, Speech


def judge(drafts: list[Draft], census: Census) -> tuple[Form, Ending, Speech]:
    """Form, ending and speech of the input; marks the drafts that are quoted or recovered."""
    if not census.lines:  # blanks alone at the beginning of an endless line
        census.lines.append(drafts[0].raw.strip() or "?")
    form, chat, spoken = form_of(census.lines)
    if sum(draft.headed and draft.kind is EventKind.EXCEPTION for draft in drafts) > 1:
        from torchdoctor.intake.announced import link_announced

        link_announced(drafts)
    speech = hear(census.lines, form, chat) if spoken else Speech()
    shown = speech.asks or (speech.person and any(draft.headed and draft.frames for draft in drafts))
    if (speech.lesson and form is not Form.SOURCE_CODE) or (shown and form is Form.SOURCE_CODE):
        form = Form.PROSE  # somebody shows his program, and what it raised; nobody asks for help in one
    mark_quoted(drafts, form, chat, speech, census.lines)
    if spoken and (not speech.asks or speech.over):
        mark_cited(drafts)
    if speech.lesson and form is not Form.SOURCE_CODE:
        for draft in drafts:
            draft.quoted = draft.quoted or speech.lesson > 2 or not draft.frames
            draft.told = False
    if chat and speech.over:
        for draft in drafts:
            draft.quoted, draft.told = True, False
    mark_reports(drafts)
    mark_passed(drafts)
    mark_provoked(drafts)
    if form is not Form.LOG and not any(d.headed and not d.quoted for d in drafts):
        return form, Ending.UNKNOWN, speech
    if not speech.asks and any(word in one for one in census.lines for word in _SEARCHED):
        from torchdoctor.intake.sweep import mark_trials

        mark_trials(drafts)
    ending, good = ending_of(drafts, speech.asks)
    if speech.asks and good >= 0:
        from torchdoctor.intake.served import answers

        if answers(drafts[good].raw):
            ending = Ending.UNKNOWN  # one request was answered, and somebody asks about another
    mark_recovered(drafts, ending, good)
    return form, ending, speech


# without one of these there is no search over trials whose result is told
_SEARCHED = (
    "best", "Best", "BEST", "recommend", " TERMINATED", "eilleur", "ejor", "elhor", "iglior", "ajlepsz",
    "\u0443\u0447\u0448", "\u6700\u4f73", "\u6700\u4f18", "\u30d9\u30b9\u30c8", "\u6700\u826f",
)  # fmt: skip
_STRONG = (
    "finished", "completed", "successfully", "succeeded", "all done", "done training", "training done",
    "done.", "done!", "done in", "` reached", "exit code 0", "exit code: 0", "exitcode 0", "exitcode: 0",
    "code 0:0", "0 failed", "errors: 0", "0 errors", "failures 0", "failures: 0", "check ok",
    "exit status 0", ", exit 0",
    "training complete", "job complete", "run complete", "evaluation complete", " ok, ",
    " ok (", " ok after ", " passed, ",
    "expected failure", "failed as expected", "returned 0",
    "return code 0", "no errors", "'train_runtime': ", "failed: 0",
    "training ended",
    "erfolgreich", "rückgabewert 0", "avec succès", "con éxito", "com sucesso", "con successo", "успешно",
    "训练完成", "完成", "終了しました", "完了しました", "完了。", "완료",
)  # fmt: skip
_WEAK = (
    "saved",
    "written to",
    "training time",
    "total time",
    "best acc",
    "prompt executed",
    "exported",
    "done",
    "best model",
    "best checkpoint",
    "uploaded",
    "bye",
)
# What finishes before the run itself begins.
_EARLY = (
    "match",
    "load",
    "import",
    "install",
    "download",
    "init",
    "connect",
    "compil",
    "build",
    "resum",
    "pars",
    "cach",
    "tokeniz",
    "setting",
    "starting",
)
_NEGATED = (
    # somebody tells of another time: "I was able to run it successfully before, but now …"
    r"\b(?:i|we) (?:was|were|am|could|can|have|had|did|used to|ran|installed) .{0,80}\bbut\b"
    r"|\bbut\b.{0,60}(?:n't work|not work|no longer work|still fails?)|"
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\b(?:failed|failures?|errors?)[=:] ?[1-9]|exit ?code:? "
    r"?-?[1-9]|\b(?:not|n't)\b.{0,16}(?:finish|complet|succe|done)|\bun(?:finish|success)|\bfail(?:ed|ure)? "
    r"to\b|\b(?:nicht|ohne) erfolg|\bне успешно|exit status [1-9]|interrupted|\blast completed\b|"
    r"\b(?:finished|completed|ended|done) with (?:an? |some )?(?:errors?|failures?|exceptions?|non-?zero)\b|"
    r"detected by watchdog"
    # torch's words for what autograd keeps
    r"|\bsaved (?:metadata|intermediate|tensor|variable|for backward)"
)
_ENDED_BADLY = r"\bfinished with (?:an? |some )?(?:errors?|failures?|exceptions?|non-?zero)\b"
_BAD = (
    "failed", "fatal", "aborted", "killed", "core dumped", "exit code", "error:", "exception", "traceback",
    "cancelled", "out of memory",
)  # fmt: skip
_FAILURES = (
    EventKind.EXCEPTION,
    EventKind.CRASH,
    EventKind.DEVICE_ASSERT,
    EventKind.WATCHDOG,
    EventKind.BUILD,
)
_TROUBLE = r"(?:^|[^\w])(?:fatal|\w*error|failed|killed|aborted|out of memory|\w*exception)\b"
# A count of nothing, a switch or a number under such a name: a table of results or settings.
_COUNTED = (
    r"[\w/.'\"-]*(?:error|failed|killed|aborted|out of memory|exception)[\w/'\" -]{0,24}[:=\s] ?"
    r"(?:(?:0(?:\.\d+)?|none|true|false|null)\b|\[\]|\{\})"
)
# "No exception", "without any error": somebody says that nothing failed
_DENIED = (
    r"\b(?:no|without(?: any| an?)?|kein(?:en?|erlei)?|ohne|sans|sin|aucune?|ning\u00fan) (?:\w+ )?"
    r"(?:errors?|exceptions?|failures?|traceback|fehler(?:meldung)?|erreurs?)\b"
)
# dpkg, apt, make and other programs that name themselves
_SPOKEN = (
    r"^e: \w|^[a-z][\w.+-]{1,30}(?:\[\d+\])?: (?:fatal |internal )?error\b(?!.*broken pipe)"
    r"|returned an error code \([1-9]"
)
# "failed: …, using the fallback": the program says itself how it went on
_AROUND = (
    r"(?<!no )(?<!without )\b(?:falling back|fallback|fell back|skipp(?:ing|ed)|retrying|will retry"
    r"|trying again|\u00fcbersprungen|ignor\u00e9e?s?|omitid[oa]s?)\b"
    r"|\u30b9\u30ad\u30c3\u30d7|\u8df3\u8fc7|\uac74\ub108|\u043f\u0440\u043e\u043f\u0443\u0449\u0435\u043d"
)
# a row of sacct: the job or a step of it, and how it ended; its .extern step completes whatever happened
_ACCOUNTED = r"^\s*\d+(?:_\d+)?(?:\.[\w+]+)?\+?\s(?:.*\s)?"
_LOST = _ACCOUNTED + r"(?:FAILED|CANCELLED\+?|TIMEOUT|NODE_FAIL|OUT_OF_ME\w*\+?|PREEMPTED)(?:\s|$)"
_EXTERN = r"^\s*\d+(?:_\d+)?\.ext"
_EXPORT = (
    r"\bexport fail(?:ed|ure)\b|\bfail(?:ed|ure)\b.{0,20}\bexport(?:ing)? (?:the operator|of operator)\b"
)
_LAST = 8


def goodness(text: str) -> int:
    """2 for a line that says plainly that the run ended well, 1 for one that suggests it, else 0."""
    low = text[-400:].lower()
    if pattern(r"^\s*(?:finished|started): *(?:\w{3}[ ,]|\d{4}-|n/?a|none|$)").match(low):
        return 0  # a field of a description, whatever the state
    if low.lstrip()[:1].isdigit() and pattern(_EXTERN).match(low):
        return 0
    strong = any(word in low for word in _STRONG) or low.rstrip().endswith((" ok", " succeeded"))
    # "num_workers = 0, and it is ok": somebody tells of another run
    strong = strong and not low.rstrip().endswith((" it is ok", " it was ok", " it's ok", " is all ok"))
    strong = strong or (" passed" in low and bool(pattern(r"\b\d+ passed\b.{0,80} in \d").search(low)))
    if not strong and not any(word in low for word in _WEAK):
        return 0
    if pattern(_NEGATED).search(low) or (
        any(word in low for word in _EARLY) and "train" not in low and "saved" not in low
    ):
        return 0
    if not strong and any(word in low for word in _BAD):
        return 0
    return 2 if strong else 1


def is_failure(draft: Draft) -> bool:
    """True for an event that ends a run, or says that one ended badly."""
    if draft.quoted or draft.recovered:
        return False
    if draft.kind in _FAILURES:
        return not (
            draft.kind is EventKind.BUILD and draft.text().lstrip().startswith(("In file", "ninja: no work"))
        )
    text = draft.text()
    if draft.kind is EventKind.LAUNCHER:
        return (
            draft.level in ("ERROR", "CRITICAL")
            or "FAILED" in text
            or bool(pattern(r"exit ?code:? -?[1-9]|return code = -?[1-9]|non-zero").search(text))
        )
    if draft.kind is EventKind.SCHEDULER:
        return "error" in text or "CANCELLED" in text or "OOM" in text or "Failed" in text
    if draft.kind is EventKind.LOG:
        low = text[:400].lower()
        if low.lstrip()[:1].isdigit() and pattern(_LOST).match(text[:400]):
            return True
        if "finished with" in low and pattern(_ENDED_BADLY).search(low):
            return True
        if not (any(word in low for word in _BAD) or pattern(_SPOKEN).search(low)):
            return False
        if goodness(text) or is_step(text):
            return False
        if "failed trials: " in low or " is expected" in low:
            return False  # a study that counts what it was told to catch
        if _level(draft) in ("INFO", "DEBU", "WARN") or pattern(_AROUND).search(low):
            return False
        if pattern(r"^\s*[a-z][\w-]*: +[\w.-]+(?: +# .*)?$|^\s+\d+  +\S").match(low):
            return False  # a switch of a settings dump; how often something was counted
        low = pattern(_DENIED).sub(" ", pattern(_COUNTED).sub(" ", low))
        return draft.level is not None or bool(pattern(_TROUBLE).search(low))
    return False


def ending_of(drafts: list[Draft], told: bool = False) -> tuple[Ending, int]:
    """(ending, index of the line that says it ended well or -1), by the last failure and what follows it.

    ``told``: somebody asks for help; what he tried then is no word of the program.
    """
    failure = good = -1
    steps = strength = 0
    for index in range(len(drafts) - 1, max(-1, len(drafts) - 400), -1):
        draft = drafts[index]
        if is_failure(draft) and not _came_later(drafts, index) and not _of_numpy(drafts, index):
            failure = index
            break
        if draft.kind in (EventKind.LOG, EventKind.LAUNCHER, EventKind.SCHEDULER) and not draft.quoted:
            text = draft.text()
            if good < 0 and len(drafts) - index <= _LAST and "systemd[" not in draft.stream:
                strength = goodness(text)
                if strength:
                    good = index
            steps += is_step(text)
    if good >= 0 and failure >= 0 and "prompt executed" in drafts[good].text().lower():
        good = -1  # ComfyUI says so after a failed prompt, too
    if good >= 0 and _export_failed(drafts):
        good = -1
    if failure < 0:
        return (Ending.GOOD, good) if good >= 0 else (Ending.UNKNOWN, -1)
    if good > failure and (strength == 2 or steps >= 2):
        from torchdoctor.intake.served import of_another

        if of_another(drafts, failure, good) and not _tried_between(drafts, failure, good):
            return Ending.UNKNOWN, -1
        return Ending.GOOD, good
    if not told and failure < len(drafts) - 2:
        from torchdoctor.intake.retrying import tried_again

        if tried_again(drafts, failure):
            return Ending.GOOD, len(drafts) - 1
    return (Ending.BAD, -1) if steps < 3 else (Ending.UNKNOWN, -1)


# what a program says of a failure that it has a way around
_WENT_ON = (
    "falling back", "falls back", "fall back", "skipping", "batch skipped", "step skipped", ", skipped",
    "will retry", "retrying", "continuing", "going on", "instead", "not available, using", "ignoring",
)  # fmt: skip


# what a program says right after a warning about something that it can do without
_ANOTHER = r"(?i)\b(?:using|continuing|falling back|resumed|resuming|loaded|trying)\b"
_AGAIN = r"(?i)\b(?:retry(?:ing)?|trying (?:again|to resume)|(?:re)?attempt|resuming)\b"


def _tried_between(drafts: list[Draft], failure: int, good: int) -> bool:
    """Does a line from right above a failure on to the good end speak of another attempt?"""
    around = [draft.text()[:400] for draft in drafts[max(0, failure - 1) : good + 1]]
    del around[min(failure, 1)]  # the failure itself
    return any(pattern(_AGAIN).search(text) or any(w in text.lower() for w in _WENT_ON) for text in around)


def _of_numpy(drafts: list[Draft], index: int) -> bool:
    """The stack of an import that NumPy 2 prints below its message on modules of 1.x; nothing was raised."""
    draft = drafts[index]
    if draft.kind is not EventKind.EXCEPTION or draft.type or not draft.frames:
        return False
    return any(
        "modules will need time to support NumPy 2" in one.raw or "compiled using NumPy 1.x cannot" in one.raw
        for one in drafts[max(0, index - 9) : index]
    )


def _came_later(drafts: list[Draft], index: int) -> bool:
    """A line about something that failed, was tried again at once, and went through to its end."""
    if drafts[index].kind is not EventKind.LOG:
        return False
    if not any(pattern(_AGAIN).search(draft.text()[:400]) for draft in drafts[index : index + 3]):
        return False
    return any("100%" in draft.raw[:400] for draft in drafts[index + 1 : index + 40])


def _found_another_way(drafts: list[Draft], index: int) -> bool:
    """A warning, and right below it, or below more of them, the same program on what it took instead."""
    for draft in drafts[index + 1 : index + 12]:
        level = _level(draft)
        if level != "WARN":
            return level == "INFO" and bool(pattern(_ANOTHER).search(draft.text()[:200]))
    return False


def _level(draft: Draft) -> str:
    """WARN or INFO, also where the level stands in a column that is not known as one; else empty."""
    if draft.level:
        return draft.level[:4]
    if draft.raw[:1] == "[" and (mark := pattern(r"\[([WI]) \d{4}-\d\d-\d\d ").match(draft.raw)) is not None:
        return "WARN" if mark[1] == "W" else "INFO"  # Optuna
    if "| INFO" not in draft.raw[:80] and "| WARN" not in draft.raw[:80]:
        return ""
    return "INFO" if "| INFO" in draft.raw[:80] else "WARN"


def _export_failed(drafts: list[Draft]) -> bool:
    """A format could not be exported; Ultralytics says "Export complete" all the same, for the others."""
    for draft in drafts[-400:]:
        low = draft.raw[:400].lower() if draft.kind is EventKind.LOG else ""
        if "export" in low and "fail" in low and pattern(_EXPORT).search(low):
            return True
    return False


def mark_recovered(drafts: list[Draft], ending: Ending, good: int) -> None:
    """Mark failures after which the same stream plainly went on; none when the last event is a failure."""
    if ending is Ending.BAD:
        return
    steps: dict[str, int] = {}
    retried = False
    for index in range(len(drafts) - 1, -1, -1):
        draft = drafts[index]
        if draft.recovered:
            continue  # of a trial whose search went on
        if draft.kind is EventKind.LOG and steps.get(draft.stream, 0) >= 2:
            low = draft.raw[:600].lower()
            draft.recovered = any(words in low for words in _WENT_ON)
        elif draft.kind is EventKind.LOG and _level(draft) == "WARN":
            draft.recovered = _found_another_way(drafts, index)
        if is_failure(draft) and _came_later(drafts, index):
            draft.recovered = True
        elif is_failure(draft):
            went_on = steps.get(draft.stream, 0)
            if ending is Ending.GOOD and index < good and (drafts[good].stream in ("", draft.stream)):
                draft.recovered = went_on >= 1 or retried or goodness(drafts[good].text()) == 2
                from torchdoctor.intake.retrying import announced, tried_again

                draft.recovered = draft.recovered or tried_again(drafts, index) or announced(drafts, index)
            elif draft.kind in (EventKind.EXCEPTION, EventKind.CRASH) and went_on >= 10:
                draft.recovered = True
            if not draft.recovered:
                return
        elif draft.kind is EventKind.LOG:
            text = draft.text()
            if is_step(text) or is_progress(text):
                steps[draft.stream] = steps.get(draft.stream, 0) + 1
            low = text.lower()
            if (
                ending is Ending.GOOD and index < good and not is_step(text) and pattern(_TROUBLE).search(low)
            ) or (("error" in low or "failed" in low) and _came_later(drafts, index)):
                draft.recovered = True
            retried = retried or "retry" in low or "attempt" in low or "resum" in low or "restart" in low
