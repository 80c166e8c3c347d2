"""Code that forks processes after torch has computed in the parent, and hangs unless threads are left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "fork_hang"

FACTS: dict[str, str] = {
    "fork_hang.starts": "str: code that starts processes, by fork as far as the text tells",
    "fork_hang.hangs": "bool: somebody says that it hangs",
    "fork_hang.works_otherwise": "bool: it works with spawn, with one thread, or without work in the parent",
}

_PATTERNS = {
    "starts": r"(?<!psutil\.)\b(?:Process|Pool)\(|ProcessPoolExecutor\(|os\.fork\(",
    # servers that load the model once and fork their workers after it
    "preforks": (
        r"preload_app\s*[=:]\s*True|\bgunicorn\b[^\n]{0,120}--preload\b|\b--preload\b|\bpre-?fork(?:ed|ing"
        r"|s)?\b|\bos\.fork\b|lazy-apps\b|\buwsgi\b[^\n]{0,200}\bmaster\b"
    ),
    "ended": r"WORKER TIMEOUT|HARAKIRI|\bworker timeout\b|timed out waiting for worker",
    "spawn": (
        r"set_start_method\(\s*['\"](?:spawn|forkserver)|get_context\(\s*['\"](?:spawn|forkserver)"
        r"|mp\.spawn\("
    ),
    # libgomp's barrier and LLVM's, in a stack of gdb, py-spy --native or eu-stack
    "waits": (
        r"\b(?:gomp_(?:team_(?:start|barrier_wait\w*|end)|barrier_wait\w*|thread_start)"
        r"|do_wait \(|GOMP_parallel"
        r"|__kmp_(?:fork_call|join_call|barrier|hyper_barrier\w*|suspend\w*|fork_barrier|wait\w*)"
        r"|at::internal::_?parallel_\w+|omp_get_num_procs)\b"
    ),
    "named": (
        r"(?<!psutil\.)\b(?:mp|multiprocessing)\.(?:Pool|Process)\b|\b(?:Process)?Pool(?:Executor)?\("
        r"|\b(?:pre-?)?fork(?:s|ed|ing)?\b"
        r"|os\.fork|multiprocessing|gunicorn\b.*preload|uwsgi"
    ),
    "spawned": (
        r"start method (?:is )?[\"'`]?(?:spawn|forkserver)|start_method\(\s*['\"](?:spawn"
        r"|forkserver)|(?:with|uses?|using|via) (?:the )?spawn\b"
    ),
    "otherwise": (
        r"(?:do(?:es)?(?:n't| not) hang|works?|fine)\b[^\n]{0,40}\b(?:without|unless|if I (?:remove"
        r"|comment))|(?:hangs? )?unless this[^\n]{0,30}(?:commented|removed)|"
        r"(?:spawn|forkserver|num_threads\(1\)|NUM_THREADS\s?=\s?1\b)[^\n]{0,80}(?:work|finish|fine|\bok\b"
        r"|helps?|solve|no hang|not hang|gone|fix|run)"
        r"|(?:works?|finish\w*|fine|ok|helps?|no hang|does(?:n't| not) hang)\b[^\n]{0,60}(?:spawn|forkserver"
        r"|num_threads\(1\)|NUM_THREADS\s?=\s?1\b)"
        r"|(?:remov|without|comment|delet|skip|leav)\w*[^\n]{0,80}\b(?:works?|finish\w*|fine|runs?|no hang"
        r"|not hang)\b"
    ),
    # what may keep the threads from being waited for, whatever the language
    "remedy": (
        r"\bspawn\b|forkserver|num_threads\(1\)|NUM_THREADS\W{0,3}1\b|setNumThreads\(0\)"
        r"|TOKENIZERS_PARALLELISM\W{0,3}false|\bwarm-?up\b|Aufw\u00e4rm\w*|pr\u00e9chauff\w*|\u9884\u70ed"
        r"|\u30a6\u30a9\u30fc\u30e0\u30a2\u30c3\u30d7"
        r"|(?:without|no|ohne|sans|sin|sem|senza|\u0431\u0435\u0437) (?:the )?(?:--)?preload"
        r"|preload\w*[^.\n]{0,16}(?:False|\boff\b|\baus\b|\u3084\u3081|\u306a\u3057|\u5916|\u5173"
        r"|\u53bb\u6389)|post_fork|lazy-apps"
        r"|(?:remov|without|comment|delet|skip|drop)\w*[^.\n]{0,40}(?:forward|sanity|prediction|inference"
        r"|preview|first call)"
    ),
    "maybe": (
        r"\b(?:may|might|can|could|kann|k\u00f6nnte|peut|pourrait|puede|podr\u00eda|pode|pu\u00f2"
        r"|\u043c\u043e\u0436\u0435\u0442)\s(?:\w+\s){0,2}?(?:hang|deadlock|freeze|block|stall|h\u00e4ngen"
        r"|blockieren|bloquer|bloquear|colgarse|travar|\u0437\u0430\u0432\u0438\u0441)"
        r"|never (?:saw|seen|had|happened|hung|hangs)|avoid deadlocks"
    ),
    "helps": r"circumvent|work-?around|avoid|\bworks?\b|\bfix|\bhelps?\b|solve|no (?:hang|deadlock)|not hang",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("starts",))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of forked processes that hang; nothing where the code asks for another start method."""
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    spawn = [line for line in code if _pattern("spawn").search(line.text)]
    if any(not _offered(passage, line) for line in spawn):
        return
    starts = next((line for line in code if _pattern("starts").search(line.text)), None)
    starts = starts or passage.first(_pattern("preforks"))
    waits = _waits(passage)
    if starts is None and waits is not None and not _pattern("spawned").search(passage.text):
        starts = passage.first(_pattern("named"))
    if starts is None:
        return
    hangs = _hangs(passage) or passage.first(_pattern("ended"))
    if hangs is None or not (passage.personal or waits is not None):
        return
    yield starts.fact("fork_hang.starts", starts.text.strip()[:120])
    yield hangs.fact("fork_hang.hangs", True)
    otherwise = spawn[0] if spawn else _said(passage, _pattern("otherwise")) or _remedy(passage) or waits
    if otherwise is not None:
        yield otherwise.fact("fork_hang.works_otherwise", True)


def _waits(passage: Passage) -> Line | None:
    """The frame of a stack in which a child waits for threads of OpenMP that only its parent had."""
    stack = (line for line in passage.lines if "%" not in line.text)  # a profile shows such names, too
    return next((line for line in stack if _pattern("waits").search(line.text)), None)


def _hangs(passage: Passage) -> Line | None:
    """Somebody says that it hangs, or a comment of the code; not that it may, or never did."""
    for line in passage.sentences:
        if says("hangs").search(line.text) and not _pattern("maybe").search(line.text):
            return line
    return next((line for line in passage.lines if _in_remark(line, says("hangs"))), None)


def _in_remark(line: Line, wanted: re.Pattern[str]) -> bool:
    if line.voice is Voice.SAID:
        return False
    return (
        wanted.search(line.text if line.voice is Voice.PRINTED else line.text.partition("#")[2]) is not None
    )


def _said(passage: Passage, wanted: re.Pattern[str]) -> Line | None:
    """The first line that says so, in words or in a comment of the code."""
    if (told := passage.told(wanted)) is not None:
        return told
    return next((line for line in passage.lines if _in_remark(line, wanted)), None)


def _remedy(passage: Passage) -> Line | None:
    """A sentence in which something that helps against it is said to work."""
    for line in passage.sentences:
        if _pattern("remedy").search(line.text) and (works := says("works").search(line.text)) is not None:
            hangs = says("hangs").search(line.text)
            if hangs is None or works.start() <= hangs.start() < works.end():
                return line
    return None


def _offered(passage: Passage, line: Line) -> bool:
    """Code with another start method that the lines above it name as what helps."""
    above = passage.lines[max(0, line.at - 3) : line.at]
    return any(one.voice is not Voice.CODE and _pattern("helps").search(one.text) for one in above)
