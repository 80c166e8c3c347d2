"""A loader that hangs with workers and works without them, as people tell of it; no program says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "loader_hang"

FACTS: dict[str, str] = {
    "loader_hang.hangs": "bool: somebody says that the loop, or the loader, hangs with workers",
    "loader_hang.works_without": "bool: the same works with num_workers=0",
    "loader_hang.waits": "bool: frames or a line that somebody quotes show the loop in the loader's queue",
    "loader_hang.idle": "bool: the workers sleep, by ps, top or words",
}

_PATTERNS = {
    # "num_workers=0", "num_workers auf 0", "num_workers 改成 0", "0 workers", "without workers"
    "without": (
        r"num_workers[\"'`]?\W{0,4}(?:[^\W\d]{1,10}\W{1,3}){0,3}?(?<![\d.])0(?![\d.])"
        r"|\b(?:0|no|zero|without|ohne|sans|sin|sem|senza|zonder|bez|\u0431\u0435\u0437) (?:any |les "
        r"|los |os )?(?:workers?|\u0432\u043e\u0440\u043a\u0435\u0440\w*)\b|\bworkers? ?[=:]? ?0\b"
    ),
    "some": (
        r"num_workers[\"'`]?\W{0,4}(?:[^\W\d]{1,10}\W{1,3}){0,3}?[1-9]|\b[1-9]\d? workers\b"
        r"|num_workers ?> ?0"
    ),
    "waits": (
        r"self\._poll\.poll\(timeout\)|\b_try_get_data\b|\b_try_get_batch\b"
        r"|\b_get_data\b[^\n]{0,30}dataloader|_data_queue\.get\("
        r"|_next_data\b|_worker_result_queue|ready = selector\.select\(timeout\)"
    ),
    # rows of ps, top and htop, and what people say of them
    "idle": (
        r"^\s*\d{2,8}\s[^\n]{0,60}\b(?:futex_wait\w*|do_poll\w*|pipe_(?:read|wait)\w*|sem_wait\w*|wait_woken"
        r"|hrtimer_nanosleep|ep_poll)\b"
        r"|^\s*\d{2,8}\s[^\n]{0,80}\bSl?\+?\s[^\n]{0,30}\b0\.0\b[^\n]{0,60}(?:python|pt_data)"
        r"|(?:workers?|children|child|processes|python|kinder|prozesse|enfants|hijos|\u5b50\u8fdb\u7a0b"
        r"|\u5b50\u30d7\u30ed\u30bb\u30b9|\u0432\u043e\u0440\u043a\u0435\u0440\w*|\uc6cc\ucee4)[^\n.]{0,60}"
        r"(?:\b(?:sleep\w*|idle|S state|state S|status S|0(?:[.,]0)? ?%|at 0(?:\.0)?|schlafen|unt\u00e4tig"
        r"|dorment|duermen)|\u7761\u7720|\u7a7a\u95f2|\u30b9\u30ea\u30fc\u30d7)"
    ),
    "of figures": (
        r"\b(?:RSS|USS|PSS|RAM|memory|loss|losses|accuracy|acc|mAP|lr|swap|throughput"
        r"|utili[sz]ation)\b[^.,;\n]{0,30}$"
    ),
    "quoted": (
        r"\w*Warning:|excessive worker creation|to avoid potential slowness|current process just got forked"
        r"|avoid deadlocks"
    ),
    # "3 days without a freeze", "drei Tage ohne Hänger", "sans un seul blocage"
    "free of": (
        r"\b(?:without|ohne|sans|sin|sem|senza|zonder|bez|\u0431\u0435\u0437) "
        r"(?:(?:a|an|any|one|single|ein\w*|un|une|seul|uno|una|um|uma|solo|nessun"
        r"|\u0435\u0434\u0438\u043d\w+) )"
        r"{0,2}(?:hangs?|hanging|freez\w*|stalls?|deadlocks?|H\u00e4nger|Stillstand|blocages?|cuelgues?"
        r"|bloqueos?|travament\w*|blocc\w*|zawiesz\w*|\u0437\u0430\u0432\u0438\u0441\w*)"
    ),
    "part": (
        r"[.;!?](?:\s+|$)|,\s|[\uff0c\u3002\u3001\uff1b]"
        r"|\b(?:but|aber|mais|pero|mas|ma|ale|\u043d\u043e)\b"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a hang that depends on the workers; nothing where nobody speaks of himself, or asks."""
    if not passage.personal:
        return
    printed = (line for line in passage.of(Voice.PRINTED) if line.text.lstrip()[:1] != "|")
    told = sorted((*passage.sentences, *printed), key=lambda line: line.at)
    told = [line for line in told if not _pattern("quoted").search(line.text)]
    hangs = next((line for line in told if _hangs(line.text)), None)
    if hangs is None or not any(says("workers").search(line.text) for line in passage.lines):
        return
    yield hangs.fact("loader_hang.hangs", True)
    works = next((line for line in told if _works_without(line.text)), None)
    if works is not None:
        yield works.fact("loader_hang.works_without", True)
    for name in ("waits", "idle"):
        if (found := passage.first(_pattern(name))) is not None:
            yield found.fact(f"loader_hang.{name}", True)


def _hangs(text: str) -> bool:
    """Does a program hang? "The RSS does not move" and "the loss is stuck" speak of figures."""
    return any(
        not _pattern("of figures").search(text[max(0, found.start() - 40) : found.start()])
        for found in says("hangs").finditer(text)
    )


def _works_without(text: str) -> bool:
    """Does the part of a sentence that speaks of no workers, or the one behind it, say that it works?"""
    parts = _pattern("part").split(text)
    for part, behind in zip(parts, [*parts[1:], ""], strict=True):
        if not _pattern("without").search(part):
            continue
        if (
            says("hangs").search(part)
            and not says("works").search(part)
            and not _pattern("free of").search(part)
        ):
            continue
        if _good(part) or (_good(behind) and not _pattern("some").search(behind)):
            return True
    return False


def _good(text: str) -> bool:
    if _pattern("free of").search(text):
        return True
    found = says("works").search(text)
    if found is None:
        return False
    hangs = says("hangs").search(text)  # "never hangs" and "does not hang" are among what works
    return hangs is None or found.start() <= hangs.start() < found.end()
