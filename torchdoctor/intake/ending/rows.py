"""What programs print about how they ended and what they got over: a table, each row with who prints it.

A row is a pattern that is searched in the line without regard to capitals, who prints such a line, and the
case of ``fixtures`` that shows it. Words of success count as a clause of their own, never as a part of one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import re

# where a clause begins and ends
_CLAUSE = r"(?:^|[\]\):|>,;\u2713\u2714\u2705\u2500-] ?|\d\.? |\b(?:and|is|are|was|has|have|been|all|now) )"
_END = r"(?=$|[.!,;:)\u2713\u2714\u2705]|\s(?:in|after|at|with(?!out)|on|for|\(|\[|-|\u2014|=|[a-z]+=))"
_WORK = r"(?:(?:all )?(?:training|run|jobs?|evaluation|inference|export|experiment|epoch|everything|ranks))?"
_WRONG = r"(?:an? |some )?(?:errors?|failures?|exceptions?|non-?zero)"


class Row(NamedTuple):
    """A pattern, who prints it, and the case that shows it."""

    pattern: str
    by: str
    case: str = ""


class Table(NamedTuple):
    """Rows that say the same."""

    rows: tuple[Row, ...]

    @property
    def pattern(self) -> str:
        return "|".join(f"(?:{row.pattern})" for row in self.rows)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text; compiled at the first call."""
        return _compiled(self.pattern).search(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    import re

    return re.compile(pattern, re.IGNORECASE)


# the run ended well, said plainly
GOOD = Table((
    Row(r"`?Trainer\.fit`? stopped: `?max_\w+=", "Lightning", "cpu-lit-fit"),
    Row(r"'train_runtime': |\bTraining completed\. Do not forget to share", "transformers", "cpu-hf-trainer"),
    Row(r"\b\d+ passed\b(?!.{0,80}\d (?:failed|errors?)).{0,80} in \d", "pytest", "cpu-pytest-raises"),
    Row(r"\b(?:exit|return)(?:ed)?(?: with)?(?: exit)?[ _]?(?:code|status)?:? ?[:=]? ?0(?![.\d])", "all"),
    Row(r"\bexit ?code:? 0\b|\bcode 0:0|, exit 0\b|\breturned 0\b", "schedulers, IDEs"),
    Row(r"\b(?:0|no) (?:errors?|failures?|failed)\b", "scripts", "compile-graph-breaks"),
    Row(r"\b(?:errors?|failures?|failed):? ?[:=] ?0\b", "scripts", "unseen5-087"),
    Row(r"\bsuccessfully (?:installed|built|saved|trained|finished|completed|exported)\b", "pip"),
    Row(
        f"{_CLAUSE}{_WORK}" r"(?: \d+(?:/\d+)?)? ?(?:is |was |has |have )?(?:finished|completed?|succeeded"
        r"|all done|done(?=[.!])|ended(?! with))(?: successfully)?" f"{_END}",
        "scripts", "cpu-worker-warn",
    ),
    Row(r"\b(?:done|finished|completed?)(?: \w+){0,2} in [\d.]+ ?(?:s|sec|min|h|ms)", "scripts"),
    Row(r"\b\d+ epochs? completed?\b|\bfinished (?:epoch|training|all)\b", "ultralytics, scripts"),
    Row(r"[ \u2713\u2714\u2705](?:ok|succeeded)(?=$|, | after )", "scripts", "h200-063-ok-autotune-configs"),
))  # fmt: skip

# the line suggests it: something was written that is written last
SOFT = Table((
    Row(r"\b(?:saved?|written|uploaded|exported)\b.{0,80}\b(?:to|as|in)\b", "scripts", "cpu-mp-errors"),
    Row(r"\b(?:model|checkpoint|results?) saved\b|\bmodel uploaded\b", "scripts", "cpu-batch-search"),
    Row(r"\bsaved (?!metadata|intermediate|tensor|variable|for backward)[\w./-]+$", "scripts"),
    Row(r"^\W*(?:all )?saved\W*$", "scripts"),
    Row(r"\b(?:training|total) time\b|\bfinal \w+ \d", "scripts", "h200-061-ok-nan-batch-skipped"),
    Row(r"\bbest (?:model|checkpoint|acc\w*|val\w*|score|result|config\w*)\b", "scripts"),
    Row(f"{_CLAUSE}" r"(?:\w+ )?done" f"{_END}", "scripts", "h200-070-ok-compiled-with-breaks"),
    Row(r"\bprompt executed in\b|^bye\b", "ComfyUI"),
))  # fmt: skip

# words of a good end that are none: another time, a count of failures, what comes before the run itself
NOT_GOOD = Table((
    Row(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\b(?:failed|failures?|errors?)[=:] ?[1-9]", "summaries"),
    Row(r"(?:exit ?(?:code|status)|return code):? ?=? ?-?[1-9]", "launchers"),
    Row(r"\b(?:not|n't|never|un)\b.{0,16}(?:finish|complet|succe|done)|\bun(?:finish|success)", "scripts"),
    Row(r"\bfail(?:ed|ure)? to\b|\binterrupted\b|\blast completed\b|\bdetected by watchdog\b", "NCCL"),
    Row(r"\b(?:finished|completed|ended|done) with " f"{_WRONG}", "scripts"),
    Row(r"\bsaved (?:metadata|intermediate|tensor|variable|for backward)", "torch, of autograd"),
    Row(r"^\s*(?:finished|started): *(?:\w{3}[ ,]|\d{4}-|n/?a|none|$)", "Kubernetes, a field"),
    Row(r"^\s*\d+(?:_\d+)?\.ext", "sacct: the .extern step completes whatever happened"),
    Row(
        r"\b(?:match|load|import|install|download|init|connect|compil|build|resum|pars|cach|tokeniz|setting"
        r"|starting)(?!.*(?:train|saved))",
        "scripts, of what comes before the run",
    ),
))  # fmt: skip

# the run ended badly, said by whoever watched it
BAD = Table((
    Row(r"\b(?:failed|fatal|aborted|killed|core dumped|cancelled|out of memory|traceback)\b", "all"),
    Row(r"\bexception\b|error:|(?:exit ?(?:code|status)|return code):? ?=? ?-?[1-9]", "launchers"),
    Row(r"^e: \w|^[a-z][\w.+-]{1,30}(?:\[\d+\])?: (?:fatal |internal )?error\b(?!.*broken pipe)", "apt"),
    Row(r"returned an error code \([1-9]|\bfinished with " f"{_WRONG}", "dpkg, scripts"),
))  # fmt: skip
# a row of sacct: the job or a step of it, and how it ended
ACCOUNTED = Table((
    Row(
        r"^\s*\d+(?:_\d+)?(?:\.[\w+]+)?\+?\s(?:.*\s)?"
        r"(?:FAILED|CANCELLED\+?|TIMEOUT|NODE_FAIL|OUT_OF_ME\w*\+?|PREEMPTED)(?:\s|$)",
        "sacct",
    ),
))  # fmt: skip
TROUBLE = Table((
    Row(r"(?:^|[^\w])(?:fatal|\w*error|failed|killed|aborted|out of memory|\w*exception)\b", "programs"),
))  # fmt: skip
# words of trouble that are none: a count of nothing, a switch under such a name
NO_TROUBLE = Table((
    Row(
        r"[\w/.'\"-]*(?:error|failed|killed|aborted|out of memory|exception)[\w/'\" -]{0,24}[:=\s] ?"
        r"(?:(?:0(?:\.\d+)?|none|true|false|null)\b|\[\]|\{\})",
        "tables of results, settings",
    ),
    Row(r"\b(?:no|without(?: any| an?)?) (?:\w+ )?(?:errors?|exceptions?|failures?|traceback)\b", "scripts"),
))  # fmt: skip

# a program says in the same line, or right below, how it goes on
AROUND = Table((
    Row(
        r"(?<!no )(?<!without )\b(?:falling back|falls? back|fell back|fallback|skipp(?:ing|ed)|retrying"
        r"|will retry|trying again|continuing|going on|instead|not available, using|ignoring)\b",
        "libraries, scripts",
    ),
))  # fmt: skip
ANOTHER = Table((
    Row(r"\b(?:using|continuing|falling back|resumed|resuming|loaded|trying)\b", "libraries"),
))  # fmt: skip
AGAIN = Table((
    Row(
        r"\b(?:retry(?:ing)?|trying (?:again|to resume)|(?:re)?attempt(?: \d+)?|resum(?:ing|ed)"
        r"|restart(?:ing)?)\b",
        "launchers, scripts", "cpu-retry-oom",
    ),
))  # fmt: skip
CAUGHT = Table((
    Row(
        r"\b(?:caught|will (?:retry|try|use|go on|skip)|ignor(?:ed|ing)|skipp(?:ed|ing)|pruned|requeued?"
        r"|re-?queuing|rescheduled|handled|recover(?:able|ed)|non-?fatal|traceback (?:follows|below)"
        r"|attempt \d+|trial \d+ failed)\b",
        "schedulers of trials, scripts",
    ),
    Row(
        r"\b(?:batch|bs|tile|size|resolution|length)\b[^.]{0,24}\b(?:too (?:big|large|long|much)"
        r"|(?:did|does) not fit|(?:did|does)n't fit|oom)\b",
        "searches of batch sizes", "cpu-batch-search",
    ),
))  # fmt: skip
INSTEAD = Table((
    Row(
        r"\b(?:again|retry(?:ing)?|tr(?:y|ying) (?:\#?\d|with|without|on)|attempt \#?\d|next attempt"
        r"|fall(?:s|ing)? ?back|fell back|instead|skipp(?:ed|ing)|requeued?|moved to|will use"
        r"|switch(?:ed|ing) to|reduc(?:ed|ing)|decreas(?:ed|ing)|halv(?:ed|ing)|lower(?:ed|ing)"
        r"|shrink(?:ing)?|resum(?:ed|ing)|continu(?:ed|ing)|emptied cache|fits(?!\.)"
        r"|using (?:batch|bs|device|cpu|tile|size|\w+=))\b|\d ?(?:->|\u2192) ?\d",
        "scripts", "h200-055-ok-oom-halves-batch",
    ),
))  # fmt: skip
GAVE_UP = Table((
    Row(r"\bgiv(?:e|es|ing) up\b|\bgave up\b|\b(?:all|every|last) (?:\w+ ){0,2}(?:attempts?|retries)\b", ""),
    Row(r"\bno (?:more )?(?:attempts?|retries)\b|\btoo many (?:attempts?|retries|failures)\b", "scripts"),
    Row(r"\babort(?:ed|ing)?\b|\b[1-9]\d* (?:errors?|failed|failures)\b", "summaries"),
    Row(r"\bexit(?:ed|ing)? (?:with )?(?:code |status )?[1-9]|\b(?:job|run|training|build) failed\b", "all"),
))  # fmt: skip

# lines that name an error and tell of none of the run's
HARMLESS = Table((
    Row(r"pip's dependency resolver does not currently take into account", "pip, a remark"),
    Row(r"^\S+ \S+ requires \S+.*, (?:but you have|which is not installed)", "pip, the remark's list"),
    Row(r"\bUnable to locate a modulefile\b", "environment modules"),
    Row(r"couldn't chdir to .*: going to \S+ instead", "slurmstepd"),
    Row(r"^(?:wandb|swanlab|comet_ml|mlflow)\b.*\b(?:error|warning)\b", "trackers, of themselves"),
))  # fmt: skip

# a message that its program was made to provoke, and says so
ASKED_FOR = Table((
    Row(
        r"\b(?:caught|raise[sd]?|got|trapped|handled|fail(?:ed|s|ing)|rejected|refused|threw|throws|error"
        r"|exception)\b[^:]{0,40}(?<!not )\b(?:as (?:it should|expected|intended)|on purpose|deliberately)\b",
        "tests",
    ),
    Row(
        r"^\W*(?:(?:ok|pass(?:ed)?|info|debug)\b\W*)?(?<!not )(?:expected|intended) (?:\w+ )?"
        r"(?:error|exception|failure)\b|^\W*as (?:expected|intended|it should)\b",
        "tests", "h200-056-ok-expected-assert-in-child",
    ),
))  # fmt: skip
