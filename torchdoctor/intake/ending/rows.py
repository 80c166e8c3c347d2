"""What programs print about how they ended and what they got over: a table, each row with who prints it.

A row is the parts of words of which one stands in each of its lines, a pattern that is searched in the line
without regard to capitals, who prints such a line, and the case of ``fixtures`` that shows it. Words of
success count as a clause of their own, never as a part of one.
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
    """Parts of words, of which a match holds one; a pattern, who prints it, and the case that shows it."""

    words: str
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
        """A match of the first row that has one; a row is compiled when one of its words is in a text."""
        low = text.lower()
        for row in self.rows:
            for word in row.words.split():
                if word in low:
                    if (found := _compiled(row.pattern).search(text)) is not None:
                        return found
                    break
        return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    import re

    return re.compile(pattern, re.IGNORECASE)


# the run ended well, said plainly
GOOD = Table((
    Row("trainer.fit", r"`?Trainer\.fit`? stopped: `?max_\w+=", "Lightning", "cpu-lit-fit"),
    Row("train_runtime share",
        r"'train_runtime': |\bTraining completed\. Do not forget to share", "transformers", "cpu-hf-trainer"),
    Row("passed",
        r"\b\d+ passed\b(?!.{0,80}\d (?:failed|errors?)).{0,80} in \d", "pytest", "cpu-pytest-raises"),
    Row("exit return",
        r"\b(?:exit|return)(?:ed)?(?: with)?(?: exit)?[ _]?(?:code|status)?:? ?[:=]? ?0(?![.\d])", "all"),
    Row("code exit returned", r"\bexit ?code:? 0\b|\bcode 0:0|, exit 0\b|\breturned 0\b", "schedulers, IDEs"),
    Row("error fail", r"(?<![\d.])\b(?:0|no) (?:errors?|failures?|failed)\b", "scripts",
        "compile-graph-breaks"),
    Row("error fail", r"\b(?:errors?|failures?|failed):? ?[:=] ?0(?![.\w])", "scripts", "unseen5-087"),
    Row("successfully",
        r"\bsuccessfully (?:installed|built|saved|trained|finished|completed|exported)\b", "pip"),
    Row(
        "finished complete succeeded done ended",
        f"{_CLAUSE}{_WORK}" r"(?: \d+(?:/\d+)?)? ?(?:is |was |has |have )?(?:finished|completed?|succeeded"
        r"|all done|done(?=[.!])|ended(?! with))(?: successfully)?" f"{_END}",
        "scripts", "cpu-worker-warn",
    ),
    Row("done finished complete",
        r"\b(?:done|finished|completed?)(?: \w+){0,2} in [\d.]+ ?(?:s|sec|min|h|ms)", "scripts"),
    Row("complete finished",
        r"\b\d+ epochs? completed?\b|\bfinished (?:epoch|training|all)\b", "ultralytics, scripts"),
    Row("ok succeeded",
        r"[ \u2713\u2714\u2705](?:ok|succeeded)(?=$|, | after )", "scripts", "h200-063-ok-autotune-configs"),
))  # fmt: skip

# the line suggests it: something was written that is written last
SOFT = Table((
    Row("save written uploaded exported",
        r"\b(?:saved?|written|uploaded|exported)\b.{0,80}\b(?:to|as|in)\b", "scripts", "cpu-mp-errors"),
    Row("saved uploaded",
        r"\b(?:model|checkpoint|results?) saved\b|\bmodel uploaded\b", "scripts", "cpu-batch-search"),
    Row("saved", r"\bsaved (?!metadata|intermediate|tensor|variable|for backward)[\w./-]+$", "scripts"),
    Row("saved", r"^\W*(?:all )?saved\W*$", "scripts"),
    Row("time final",
        r"\b(?:training|total) time\b|\bfinal \w+ \d", "scripts", "h200-061-ok-nan-batch-skipped"),
    Row("best", r"\bbest (?:model|checkpoint|acc\w*|val\w*|score|result|config\w*)\b", "scripts"),
    Row("done", f"{_CLAUSE}" r"(?:\w+ )?done" f"{_END}", "scripts", "h200-070-ok-compiled-with-breaks"),
    Row("executed bye", r"\bprompt executed in\b|^bye\b", "ComfyUI"),
))  # fmt: skip

# words of a good end that are none: another time, a count of failures, what comes before the run itself
NOT_GOOD = Table((
    Row("fail error",
        r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\b(?:failed|failures?|errors?)[=:] ?[1-9]", "summaries"),
    Row("exit return", r"(?:exit ?(?:code|status)|return code):? ?=? ?-?[1-9]", "launchers"),
    Row("finish complet succe done",
        r"\b(?:not|n't|never|un)\b.{0,16}(?:finish|complet|succe|done)|\bun(?:finish|success)", "scripts"),
    Row("fail interrupted completed watchdog",
        r"\bfail(?:ed|ure)? to\b|\binterrupted\b|\blast completed\b|\bdetected by watchdog\b", "NCCL"),
    Row("with", r"\b(?:finished|completed|ended|done) with " f"{_WRONG}", "scripts"),
    Row("saved", r"\bsaved (?:metadata|intermediate|tensor|variable|for backward)", "torch, of autograd"),
    Row("finished started",
        r"^\s*(?:finished|started): *(?:\w{3}[ ,]|\d{4}-|n/?a|none|$)", "Kubernetes, a field"),
    Row(".ext", r"^\s*\d+(?:_\d+)?\.ext", "sacct: the .extern step completes whatever happened"),
    Row(
        "match load import install init connect compil build resum pars cach tokeniz setting starting",
        r"\b(?:match|load|import|install|download|init|connect|compil|build|resum|pars|cach|tokeniz|setting"
        r"|starting)(?!.*(?:train|saved))",
        "scripts, of what comes before the run",
    ),
))  # fmt: skip

# whoever started a program says how it exited
STATUS = Table((
    Row("finished exited", r"\b(?:finished|exited) with (?:exit )?(?:code|status) 0\b", "IDEs, launchers"),
))  # fmt: skip

# the run ended badly, said by whoever watched it
BAD = Table((
    Row("fail fatal aborted killed dumped cancelled memory traceback",
        r"\b(?:failed|fatal|aborted|killed|core dumped|cancelled|out of memory|traceback)\b", "all"),
    Row("failure", r"(?<!\d )\bfailure\b(?!s| ?[=:] ?(?:0|none|false)\b)", "programs"),
    Row("exception error: exit return",
        r"\bexception\b|error:|(?:exit ?(?:code|status)|return code):? ?=? ?-?[1-9]", "launchers"),
    Row("e: error",
        r"^e: \w|^[a-z][\w.+-]{1,30}(?:\[\d+\])?: (?:fatal |internal )?error\b(?!.*broken pipe)", "apt"),
    Row("error with", r"returned an error code \([1-9]|\bfinished with " f"{_WRONG}", "dpkg, scripts"),
))  # fmt: skip
# a row of sacct: the job or a step of it, and how it ended
ACCOUNTED = Table((
    Row(
        "failed cancelled timeout node_fail out_of_me preempted",
        r"^\s*\d+(?:_\d+)?(?:\.[\w+]+)?\+?\s(?:.*\s)?"
        r"(?:FAILED|CANCELLED\+?|TIMEOUT|NODE_FAIL|OUT_OF_ME\w*\+?|PREEMPTED)(?:\s|$)",
        "sacct",
    ),
))  # fmt: skip
TROUBLE = Table((
    Row("fatal error fail memory exception",
        r"(?:^|[^\w])(?:fatal|\w*error|failed|failure|out of memory|\w*exception)\b", "programs"),
    Row("killed aborted",
        r"=killed\b|(?:^|\W)(?:killed|aborted)(?=$|[.:)!\]]|\s(?:by|due|because|after|with|at|on|in|\())",
        "programs"),
    Row("exit", r"\bexit(?:ed|s)?(?: with)?(?: exit)? (?:code|status):? ?=? ?-?[1-9]", "shells, schedulers"),
))  # fmt: skip
# words of trouble that are none: a count of nothing, a switch under such a name
NO_TROUBLE = Table((
    Row(
        "error failed failure killed aborted memory exception",
        r"[\w/.'\"-]*(?:error|failed|failure|killed|aborted|out of memory|exception)[\w/'\" -]{0,40}[:=\s] ?"
        r"(?:0(?:\.\d+)?(?![\w.])|(?:none|true|false|null)\b|no\s*$|\[\]|\{\})",
        "tables of results, settings, nvidia-smi -q",
    ),
    Row("error exception failure traceback",
        r"\b(?:no|without(?: any| an?)?) (?:\w+ )?(?:errors?|exceptions?|failures?|traceback)\b", "scripts"),
))  # fmt: skip
# the death of another process is told, wherever it is raised: torch's handler of SIGCHLD
DIED = Table((
    Row("worker", r"DataLoader worker \(pid.{1,40}\) (?:is killed by signal|exited unexpectedly)", "torch"),
))  # fmt: skip
# NCCL, the kernel and torch's C++ write at the level of a warning what ended a call of theirs
REPORTED = Table((
    Row("nccl", r"\bNCCL WARN ", "NCCL"),
    Row("nvrm", r"NVRM: .{0,120}\b(?:timeout|timed out|failed|error)\b", "the driver"),
    Row("encountered", r"\bencountered error\b", "torch, the agents of RPC"),
))  # fmt: skip

# a program says in the same line, or right below, how it goes on
AROUND = Table((
    Row(
        "fall fell skipp retry again continuing going instead not ignoring",
        r"(?<!no )(?<!without )\b(?:falling back|falls? back|fell back|fallback|skipp(?:ing|ed)|retrying"
        r"|will retry|trying again|continuing|going on|instead|not available, using|ignoring)\b",
        "libraries, scripts",
    ),
))  # fmt: skip
ANOTHER = Table((
    Row("using continuing falling resum loaded trying",
        r"\b(?:using|continuing|falling back|resumed|resuming|loaded|trying)\b", "libraries"),
))  # fmt: skip
AGAIN = Table((
    Row(
        "retry trying attempt resum restart",
        r"\b(?:retry(?:ing)?|trying (?:again|to resume)|(?:re)?attempt(?: \d+)?|resum(?:ing|ed)"
        r"|restart(?:ing)?)\b",
        "launchers, scripts", "cpu-retry-oom",
    ),
))  # fmt: skip
CAUGHT = Table((
    Row(
        "caught will ignor skipp pruned que rescheduled handled recover fatal traceback attempt trial",
        r"\b(?:caught|will (?:retry|try|use|go on|skip)|ignor(?:ed|ing)|skipp(?:ed|ing)|pruned|requeued?"
        r"|re-?queuing|rescheduled|handled|recover(?:able|ed)|non-?fatal|traceback (?:follows|below)"
        r"|attempt \d+|trial \d+ failed)\b",
        "schedulers of trials, scripts",
    ),
    Row(
        "too fit oom",
        r"\b(?:batch|bs|tile|size|resolution|length)\b[^.]{0,24}\b(?:too (?:big|large|long|much)"
        r"|(?:did|does) not fit|(?:did|does)n't fit|oom)\b",
        "searches of batch sizes", "cpu-batch-search",
    ),
))  # fmt: skip
INSTEAD = Table((
    Row(
        "again retry try attempt fall fell instead skipp requeue moved use switch reduc decreas halv lower"
        " shrink resum continu emptied fits using -> \u2192",
        r"\b(?:again|retry(?:ing)?|tr(?:y|ying) (?:\#?\d|with|without|on)|attempt \#?\d|next attempt"
        r"|fall(?:s|ing)? ?back|fell back|instead|skipp(?:ed|ing)|requeued?|moved to|will use"
        r"|switch(?:ed|ing) to|reduc(?:ed|ing)|decreas(?:ed|ing)|halv(?:ed|ing)|lower(?:ed|ing)"
        r"|shrink(?:ing)?|resum(?:ed|ing)|continu(?:ed|ing)|emptied cache|fits(?!\.)"
        r"|using (?:batch|bs|device|cpu|tile|size|\w+=))\b|\d ?(?:->|\u2192) ?\d",
        "scripts", "h200-055-ok-oom-halves-batch",
    ),
))  # fmt: skip
GAVE_UP = Table((
    Row("give giving gave attempt retries",
        r"\bgiv(?:e|es|ing) up\b|\bgave up\b|\b(?:all|every|last) (?:\w+ ){0,2}(?:attempts?|retries)\b", ""),
    Row("attempt retries failures",
        r"\bno (?:more )?(?:attempts?|retries)\b|\btoo many (?:attempts?|retries|failures)\b", "scripts"),
    Row("abort error fail", r"\babort(?:ed|ing)?\b|\b[1-9]\d* (?:errors?|failed|failures)\b", "summaries"),
    Row("exit failed",
        r"\bexit(?:ed|ing)? (?:with )?(?:code |status )?[1-9]|\b(?:job|run|training|build) failed\b", "all"),
))  # fmt: skip

# lines that name an error and tell of none of the run's
HARMLESS = Table((
    Row("pip's", r"pip's dependency resolver does not currently take into account", "pip, a remark"),
    Row("requires",
        r"^\S+ \S+ requires \S+.*, (?:but you have|which is not installed)", "pip, the remark's list"),
    Row("cancelled", r"^ERROR: Operation cancelled by user", "pip"),
    Row("locate", r"\bUnable to locate a modulefile\b", "environment modules"),
    Row("lmod", r"\bLmod has detected the following error: The following module\(s\) are unknown", "Lmod"),
    Row("chdir", r"couldn't chdir to .*: going to \S+ instead", "slurmstepd"),
    Row("wandb swanlab comet_ml mlflow",
        r"^(?:wandb|swanlab|comet_ml|mlflow)\b.*\b(?:error|warning)\b", "trackers, of themselves"),
))  # fmt: skip

# a message that its program was made to provoke, and says so
ASKED_FOR = Table((
    Row(
        "should expected intended purpose deliberately",
        r"\b(?:caught|raise[sd]?|got|trapped|handled|fail(?:ed|s|ing)|rejected|refused|threw|throws|error"
        r"|exception)\b[^:]{0,40}(?<!not )\b(?:as (?:it should|expected|intended)|on purpose|deliberately)\b",
        "tests",
    ),
    Row(
        "expected intended should",
        r"^\W*(?:(?:ok|pass(?:ed)?|info|debug)\b\W*)?(?<!not )(?:expected|intended) (?:\w+ )?"
        r"(?:error|exception|failure)\b|^\W*as (?:expected|intended|it should)\b",
        "tests", "h200-056-ok-expected-assert-in-child",
    ),
))  # fmt: skip
