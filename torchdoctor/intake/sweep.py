"""A search over many trials that caught what some of them raised, and came to its result.

Optuna's ``catch``, Ray Tune's ``max_failures``, scikit-learn's ``error_score``, and loops of people's own:
what such a trial raised stands in the log with its traceback, and is one more figure of the search.
"""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.model import EventKind

NEAR = 3  # events between a failure and the line that says whose it was
MOST = 4_000
_CHARS = 600
_UNIT = (
    r"(?:trial|candidate|config(?:uration)?|combination|point|fits?|run|experiment|sample|evaluation|job|task"
    r"|bs|batch[ _]size|seed|setting|arm|suggestion|hyperparameters?|params|fold|member|individual"
    r"|lauf|versuch|durchlauf|essai|intento|prueba"
    r"|tentativa|prova|pr\u00f3ba|\u043f\u0440\u043e\u0431\u0430|\u8bd5\u9a8c|\u5b9e\u9a8c|\u5b9f\u9a13"
    r"|\u30c8\u30e9\u30a4\u30a2\u30eb|\u8bd5\u884c|#)"
)
_FAIL = (
    r"(?:failed|fail|raised|crashed|errored|died|skipped|rejected|did not fit|oom|out of memory|infeasible"
    r"|fehlgeschlagen|gescheitert|abgebrochen|\u00e9chou\u00e9e?|fall\u00f3|falhou|fallit[oa]|nieudan[ay]"
    r"|\u043d\u0435 \u0443\u0434\u0430\u043b\w+|\u5931\u8d25|\u5931\u6557)"
)
# one of many failed, and by which name or number it goes
_ONE_FAILED = (
    rf"(?i)\b(?:{_UNIT})s?[ #_-]{{0,3}}[\w./-]{{0,60}}\s?(?:task )?(?:has |was |is )?"
    r"(?:failed|raised|crashed|errored|died|skipped|rejected|did not fit|marked as failed)\b"
    rf"|\b{_UNIT}s?[ #_=:-]{{0,3}}\d[\w./-]{{0,20}}[^\n]{{0,200}}?(?:[:=>-]\W{{0,4}}|\s){_FAIL}(?!\w)"
    r"|#\d+ (?:failed|raised|crashed)\b|\btask failed for trial \S+"
    r"|\b\d+ fits? failed (?:out of|with)\b"
    r"|\b(?:marked|recorded|counted|reported|scored?|score set|told|set|loss|value|objective)\b"
    r"[^.]{0,24}\b(?:as|to|=)? ?"
    r"(?:failed|\+?inf|nan|failure|penalty)\b"
    r"|\battempting (?:to )?restore\b|\brestarting trial \S+"
    r"|\b(?:failed|invalid|infeasible) (?:trial|candidate|config(?:uration)?|point|arm)\b"
)
_FIGURE = r"(?:\w{1,20}[ _:=]{1,3}){0,3}-?\d+\.\d+\b"
# another one came to its end
_ONE_DONE = (
    rf"(?i)\b(?:{_UNIT})[ #_-]{{0,3}}[\w./-]{{0,60}}\s?(?:has |was |is )?"
    r"(?:finished|completed?|done|succeeded|terminated|ok)\b"
    rf"|\b(?:completed|finished|evaluated) {_UNIT}\b|#\d+ (?:done|finished|completed|ok)\b"
    rf"|\b{_UNIT}[ #_=:-]{{0,3}}\d[\w./-]{{0,20}}(?:[^\n]{{0,200}}?[:=>-]\W{{0,4}}| {{2,}}){_FIGURE}"
    r"|\brestored (?:on|from)\b|\bTERMINATED\b|\bscore=|\bCOMPLETE\b"
    r"|\[ ?\d+/\d+\].{0,40}\b(?:loss|score|acc|value|val\w*|auc|f1)\b ?[:=] ?-?\d"
    r"|\b\d+ (?:trials? )?(?:completed|succeeded|finished|terminated)\b"
)
# what the search has found
_RESULT = (
    r"(?i)(?:^|[\s\]:-])best[ _-]?(?:trials?|params?|parameters?|hyper-?parameters?|value|config\w*|score"
    r"|result|candidate|point|individual|estimator|loss|objective|run|model|val\w*|acc\w*|arm)?\W{0,3}"
    r"(?:[:=(]|is\b|was\b|\d|\{|#|[\w-]+ (?:value|score|loss|with|using|val\w*)\b)"
    r"|(?:^|[\s\]:-])(?:beste[rs]?|meilleure?s?|mejor(?:es)?|melhor(?:es)?|miglior[ei]?|najlepsz\w+"
    r"|\u043b\u0443\u0447\u0448\w+) ?(?:[^\W\d]+\W?){0,2}[:=]"
    r"|(?:\u6700\u4f73|\u6700\u4f18|\u30d9\u30b9\u30c8|\u6700\u826f)[^:\uff1a=]{0,8}[:\uff1a=]"
    r"|\brecommend(?:ation|ed)\b ?(?:\w+ )?[:=]|\bNumber of trials: (\d+)/\1 \(\1 TERMINATED\)"
    r"|\bTrial status: \d+ TERMINATED\s*$|\bbest\b.{0,40}\bwritten to\b"
)
# a study's line on each trial names the best one, too; and a search without any result may print its name
_NO_RESULT = (
    r"(?i)\bbest is (?:trial|candidate)\b|\bbest so far\b"
    r"|\bbest\w*(?:[ _]\w+)?\W{0,3}(?:[:=]|is|was)\W{0,3}(?:none|nan|inf|null|n/a|-inf|\{\})(?![\w.])"
    r"|\bbest=\S*\s*$"
)
_LOST = (
    r"(?i)\ball (?:of )?(?:the )?\d* ?(?:fits|trials|candidates|configurations|runs|jobs|evaluations)"
    r"(?: have)? (?:failed|errored)\b|\bno trials are completed\b|\bno (?:successful|completed) \w+\b"
    r"|\btrials? did not complete\b|\b(?:number of errored trials|failed trials?)\b[^\d]{0,4}(\d+)\b"
    r"(?=.{0,8}\ball\b)|\b\d+ ERROR\b|\|\s*ERROR\s*\||\u2502.{1,60}\sERROR\s|\bTuneError\b"
    r"|\btoo many failures\b"
    r"|\bdetected \d+ failed runs\b|\b0 (?:completed|succeeded|finished)\b"
)
# how many of them failed
_COUNTED = rf"(?i)\b\d+ (?:of \d+ )?(?:{_UNIT}s? )?{_FAIL}\b|{_FAIL}(?: {_UNIT}s?)?\W{{1,8}}\d+\b"
_FAILURES = (EventKind.EXCEPTION, EventKind.CRASH)


def mark_trials(drafts: list[Draft]) -> None:
    """Set ``recovered`` on what failed trials left behind, where their search went on and came to a result.

    Nothing is set where something else failed behind them: then the search did not catch it.
    """
    if len(drafts) > MOST:
        return
    result = _result(drafts)
    if result < 0:
        return
    end = result + (drafts[result].kind in _FAILURES)  # its message took in what comes behind it
    failed = [index for index in range(end) if _said(drafts[index], _ONE_FAILED)]
    if not failed or any(_said(draft, _LOST) for draft in drafts[failed[0] :]):
        return
    if not any(_said(draft, _ONE_DONE) for draft in (*drafts[: failed[0]], *drafts[failed[-1] :])):
        return
    theirs = {
        index
        for at in failed
        for index in range(max(0, at - NEAR), min(end, at + NEAR + 1))
        if _is_failure(drafts[index]) or index == at or _complains(drafts[index])
    }
    theirs.update(
        index
        for index in range(failed[0], len(drafts))
        if drafts[index].kind is EventKind.LOG and pattern(_COUNTED).search(drafts[index].raw[:_CHARS])
    )
    if any(_is_failure(draft) and index not in theirs for index, draft in enumerate(drafts)):
        return
    for index in theirs:
        drafts[index].recovered = True


def _result(drafts: list[Draft]) -> int:
    """The last event that says what was found; -1 without one."""
    for index in range(len(drafts) - 1, max(-1, len(drafts) - 60), -1):
        for line in _lines(drafts[index]):
            if pattern(_RESULT).search(line) and not pattern(_NO_RESULT).search(line):
                return index
    return -1


def _said(draft: Draft, expression: str) -> bool:
    return any(pattern(expression).search(line) for line in _lines(draft))


def _lines(draft: Draft) -> list[str]:
    """What a program logged: an event's own line, or those that were taken for the end of a message."""
    if draft.quoted:
        return []
    if draft.kind in _FAILURES:
        return [part[:_CHARS] for part in draft.parts[1:][-8:]]
    if draft.kind not in (EventKind.LOG, EventKind.LAUNCHER):
        return []
    return [part[:_CHARS] for part in dict.fromkeys((draft.raw, *draft.parts[-8:]))]


def _is_failure(draft: Draft) -> bool:
    return draft.kind in _FAILURES and not draft.quoted


def _complains(draft: Draft) -> bool:
    low = draft.raw[:_CHARS].lower()
    return draft.kind is EventKind.LOG and any(
        word in low for word in ("killed", "error", "failed", "out of memory", "nan")
    )
