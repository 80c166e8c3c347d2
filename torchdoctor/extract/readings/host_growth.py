"""Memory of the host that fills while workers of a loader run: their own pages, what is used, what is left.

A forked worker shares the parent's pages until it writes to them, and counting references writes: objects of
Python that are only read become each worker's own. https://github.com/pytorch/pytorch/issues/13246
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.amounts import amounts, number, value
from torchdoctor.extract.readings.columns import Table, tables
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "host_growth"

FACTS: dict[str, str] = {
    "host_growth.rises": "float: host memory in use at the end over that at the start, rising all the time",
    "host_growth.private": "bool: the workers' own pages grow (USS, PSS, Private_Dirty), or shared ones fall",
    "host_growth.told": "bool: somebody says that host memory grows",
    "host_growth.workers": "bool: the loader has workers",
    "host_growth.flat_without": "bool: without workers host memory does not grow, by figures or words",
    "host_growth.objects": "bool: the dataset holds a list or dict of Python objects, and fills no cache",
}

FEWEST = 4
FEWEST_OWN = 3  # of figures that only this cause moves
GROWTH = 1.3
LARGEST_BATCH = 4096

_NUMBER = r"\d{1,12}(?:[.,]\d{1,6})?"

_PATTERNS = {
    "own": r"\bUSS\b|\bPSS\b|Private|priv(?:ate)?\b|\bunique\b",
    "shared": r"\bShared|\bSHR\b|\bshared\b",
    "used": (
        r"\bused\b|\bRSS\b|\bRES\b|\bRAM\b|\bmem(?:ory)?\b|\bhost\b|Speicher|belegt|genutzt|m\u00e9moire"
        r"|memoria|\u5185\u5b58|\u8a18\u61b6\u9ad4|\u30e1\u30e2\u30ea|\u4f7f\u7528"
        r"|\u043f\u0430\u043c\u044f\u0442|\uba54\ubaa8\ub9ac|\bpercent\b"
    ),
    "left": (
        r"\bavail(?:able)?\b|MemAvailable|verf\u00fcgbar|disponible|dispon[i\u00ed]vel|\u53ef\u7528"
        r"|\u7a7a\u304d|\u0434\u043e\u0441\u0442\u0443\u043f\u043d"
    ),
    "not-host": r"gpu|cuda|vram|alloc|reserved|buff|cache|swap|total|\bfree\b|\u663e\u5b58|lim|max|peak|shm",
    "pair": (
        rf"(?P<key>[^\W\d][\w./ ()%-]{{1,28}}?)(?:\s?[:=]\s{{0,12}}"
        rf"|\s{{1,12}})(?P<value>{_NUMBER})\s?(?P<unit>[KMGTk](?:i?B|i|o)?\b|%)?(?![\w:])"
    ),
    # before the pairs: a time, a step, "t=1h", an epoch
    "label": (
        r"^\s*(?:\[?\d{1,2}:\d{2}(?::\d{2})?\]?|t\s?=\s?\S+|(?:after|nach|apr\u00e8s)?\s?\d{1,6}\s?(?:min|h"
        r"|s)\b|(?:step|iter|it|batch|epoch|hour|day|Schritt|Stunde|Tag|heure|hora|ora)\s?[:=#]?\s?\d+"
        r"|\d{1,7}(?!\s?(?:workers?|gpus?|batch|proc\w*|threads?|\u4e2a|\u500b)))"
    ),
    "none": (
        r"(?:num_)?workers[\"'`]?\W{0,4}(?:auf |to |at |\u4e3a |\u6539\u6210 |\u3092 )?0(?![\d.])|\bwith 0\b"
        r"|\bmit 0\b|\b0 workers?\b|\bworkers?\b[^.\n]{0,12}\b0\b(?![\d.%])"
        r"|\b(?:without|no|ohne|sans|sin|sem|senza|\u0431\u0435\u0437) (?:any )?(?:workers?"
        r"|\u0432\u043e\u0440\u043a\u0435\u0440\w*)"
        r"|main process only|single process"
    ),
    "flat": (
        r"constant|stable|\bflat\b|konstant|stabil|gleich|w\u00e4chst (?:er |es |das |der )?(?:\w+ )?nicht"
        r"|steigt (?:\w+ ){0,2}nicht|bleibt|reste|ne (?:bouge|monte|cro\u00eet|grimpe) pas|stable"
        r"|no (?:crece|sube|aumenta)"
        r"|n\u00e3o (?:cresce|sobe|aumenta)|non (?:cresce|sale|aumenta)"
        r"|\u043d\u0435 (?:\u0440\u0430\u0441\u0442|\u0443\u0432\u0435\u043b)\w*"
        r"|\u0441\u0442\u0430\u0431\u0438\u043b\w*|\u5897\u3048\u307e\u305b\u3093|\u5897\u3048\u306a\u3044"
        r"|\u307e\u307e|\u4e00\u5b9a"
        r"|\u4e0d\u52a8|\u4e0d\u6da8|\u4e0d\u589e|\u4e0d\u4f1a\u6da8|\u4e0d\u4f1a\u589e|\u6ca1\u6709\u6da8|\u6b63\u5e38"
        r"|\u7a33\u5b9a|\u4e0d\u53d8|\ub298\uc9c0 \uc54a|\uadf8\ub300\ub85c|\uc77c\uc815|(?:does|do|did|is"
        r"|was)(?:n['\u2019]t| not) (?:grow|increase|happen|leak|climb|rise|go up|growing|leaking)"
        r"|never (?:grows|leaks|increases)|no (?:growth|leak|increase)|\bnothing (?:grows|leaks|accumulates)"
        r"|\bstays\b|\bfine\b|\bnormal\b"
        r"|\bnot grow|\bdoesn't\b|\bnone of (?:it|this)\b|\bgone\b"
    ),
    "some": (
        r"(?:num_)?workers[\"'`]?\s?(?:[=:>]|auf|von|\u3092)?\s?[1-9]\d?\b"
        r"|\b[1-9]\d{0,2} (?:\w+ )?(?:workers?\b|\u0432\u043e\u0440\u043a\u0435\u0440)|num_workers\s?>\s?0"
        r"|\bpt_data_worker\b|args\.\w*workers"
        r"|[1-9]\d?\s?(?:\u4e2a|\u500b\u306e|\uac1c\uc758)\s?(?:workers?|\u30ef\u30fc\u30ab\u30fc"
        r"|\uc6cc\ucee4)|(?:one|a|each|every|eine[ms]?|jede[rms]?|un|chaque|cada|ogni|een)"
        r" workers?\b|per worker|of a worker|pro Worker|par worker"
        r"|por worker"
    ),
    "objects": (
        r"(?:list|dict|tuple)s? (?:of|with|holding|containing)\b|\b(?:python|huge|big|large|giant) (?:list"
        r"|dict|objects?)\b|python[- ]?\u30ea\u30b9\u30c8|python\s?(?:\u5217\u8868|\u5b57\u5178"
        r"|\ub9ac\uc2a4\ud2b8)|\u30ea\u30b9\u30c8\uff08|\u5217\u8868|\u5b57\u5178\u7684"
        r"|self\.\w+\s*=\s*(?:list\(|\[|\{|json\.load|pickle\.load|sorted\(|glob|\w+\.(?:to_dict|tolist"
        r"|readlines|splitlines|read\(\)\.split)|os\.listdir|dict\(|\[?\w+ for )"
        r"|\b\d[\d.,]* ?(?:M|k|Mio\.?|million|millions|Millionen|Tsd\.?|\u4e07|\ubc31\ub9cc"
        r"|\u043c\u043b\u043d)\s?(?:\u6761|\u500b|\u4ef6)?\s?(?:\u306e)?\s?(?:dicts?|tuples?|str(?:ings?)?"
        r"|paths?|Pfade|Strings|objects|\u5b57\u7b26\u4e32|\u8def\u5f84|entries|Eintr\u00e4ge)"
        r"|[Ll]iste (?:von|mit|de|di)\b|lista (?:de|di)\b|dictionnaires?\b|diccionarios?\b"
        r"|\u0441\u043f\u0438\u0441\u043e\u043a\b|\u0441\u043f\u0438\u0441\u043a\w*"
        r"|\u0441\u043b\u043e\u0432\u0430\u0440\w*|lijst (?:van|met)"
    ),
    "caches": (
        r"self\.\w*(?:cache|memo|buffer)\w*\s*\[|lru_cache|functools\.cache|self\.\w+\.append\("
        r"|self\.\w*cache\w*\.(?:setdefault|update)\(|@cache\b"
    ),
    "settings": r"worker|batch[ _-]?size|gpus|threads|prefetch|size|setting|config",
    "ps": r"\bps\b[^\n]{0,40}-\w*o\s?(?P<columns>pid,(?:\w+,){0,4}?rss\b[\w,]*)",
    "part": (
        r"[,;:]\s|\b(?:and|und|et|y|e|i|\u0430|en) (?=(?:with|mit|avec|con|com|for|at|\u0441|met)\b)"
        r"|[\uff0c\u3001\uff1b]|\b(?:but|aber|mais|pero|mas|ma|\u043d\u043e)\b"
    ),
    "gpu": r"gpu|cuda|vram|\u663e\u5b58",
    # "Private_Dirty:   402116 kB", again and again
    "bare": (
        r"^\s*(?:Private_\w+|Shared_\w+|Pss\w*|Rss|Uss|VmRSS|RssAnon|MemAvailable|RSS|USS"
        r"|PSS)\W{1,3}\s*[\d.,]+ ?[kKMG]i?B?\s*$"
    ),
    "from-to": (
        r"(?:from|von|de|da|\u4ece|\u0441|\u043e\u0442)\b[^.\n]{0,30}?\d[^\n]{0,60}?(?:to|auf|bis|\u00e0|a"
        r"|hasta|at\u00e9|\u5230|\u0434\u043e)\b|->|\u2192|\u304b\u3089|\u5230|after|later|nach|apr\u00e8s"
        r"|despu\u00e9s|\u5f8c|\u540e|\u304c"
    ),
    "host": (
        r"\b(?:RSS|USS|PSS|RAM|ram|RES|host mem\w*|system mem\w*|main mem\w*|CPU mem\w*|MemAvailable"
        r"|Private_\w+)\b|Arbeitsspeicher|Hauptspeicher|m\u00e9moire vive|\u5185\u5b58|\u4e3b\u5b58"
        r"|\u30e1\u30a4\u30f3\u30e1\u30e2\u30ea|\u30db\u30b9\u30c8"
        r"|\u043e\u043f\u0435\u0440\u0430\u0442\u0438\u0432\u043d|\ubc94\uc6a9 \uba54\ubaa8\ub9ac"
        r"|\ud638\uc2a4\ud2b8 \uba54\ubaa8\ub9ac|\bpod\b|\bOOMKilled\b"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("host",))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of host memory beside workers; nothing where nobody speaks of himself or nothing grows."""
    if not passage.personal:
        return
    rises, own = _rises(passage), _own(passage) or _processes(passage)
    told = _told(passage)
    if rises is None and own is None and told is None:
        return
    if rises is not None:
        yield rises[1].fact("host_growth.rises", round(rises[0], 2))
    if own is not None:
        yield own.fact("host_growth.private", True)
    if told is not None:
        yield told.fact("host_growth.told", True)
    if (some := passage.first(_pattern("some"))) is not None:
        yield some.fact("host_growth.workers", True)
    if (flat := _flat(passage)) is not None:
        yield flat.fact("host_growth.flat_without", True)
    objects = passage.first(_pattern("objects"))
    if objects is not None and passage.first(_pattern("caches"), Voice.CODE, Voice.TYPED) is None:
        yield objects.fact("host_growth.objects", True)


def _told(passage: Passage) -> Line | None:
    """A sentence that says of host memory that it grows; or of memory, and it names workers."""
    for line in passage.sentences:
        host = _pattern("host").search(line.text) is not None
        if not host and not (says("memory").search(line.text) and says("workers").search(line.text)):
            continue
        for part in _pattern("part").split(line.text):
            flat = _pattern("none").search(part) is not None and _pattern("flat").search(part) is not None
            if says("grows").search(part) and not flat and (host or not _pattern("gpu").search(part)):
                return line
    return None


def _series(passage: Passage) -> Iterator[tuple[str, list[tuple[float, Line]]]]:
    """Figures one below the other under one name: columns of tables, and pairs of a name and a figure."""
    for table in tables(passage):
        if _pattern("settings").search(table.head.cells[0]) or _sizes_of_batches(table):
            continue  # one row for each number of workers, not one below the other in time
        for at, head in enumerate(table.head.cells):
            sized = [amounts(row.cells[at])[:1] for row in table.rows]
            plain = [number(row.cells[at]) for row in table.rows]
            found = [size[0] for size in sized if size] if all(sized) else plain
            yield (
                head,
                [
                    (amount, row.line)
                    for amount, row in zip(found, table.rows, strict=True)
                    if amount is not None
                ],
            )
    runs: dict[str, list[tuple[float, Line]]] = {}
    last, announced = -9, False
    for line in passage.lines:
        if line.voice is Voice.SAID:  # "memory.current of the cgroup, by the hour:"
            announced = _announces(line.text)
        label = _pattern("label").match(line.text)
        bare = _pattern("bare").match(line.text) is not None
        pairs = (
            _pairs(line.text[label.end() if label is not None else 0 :]) if label is not None or bare else {}
        )
        if not pairs and announced and label is not None and (alone := amounts(line.text[label.end() :])):
            pairs = {"memory": alone[0]}
        if not pairs:
            continue
        if line.at - last > 3:
            yield from runs.items()
            runs = {}
        last = line.at
        for key, amount in pairs.items():
            runs.setdefault(key, []).append((amount, line))
    yield from runs.items()


def _sizes_of_batches(table: Table) -> bool:
    """Is "batch" above the first column the size of one? Numbers of batches start at 0 or 1, or go far."""
    if "batch" not in table.head.cells[0].lower():
        return False
    counted = [number(row.cells[0]) or 0.0 for row in table.rows]
    return counted[0] > 1 and max(counted) <= LARGEST_BATCH


def _announces(text: str) -> bool:
    named = _pattern("used").search(text) or _pattern("own").search(text)
    return text.rstrip()[-1:] in (":", "\uff1a") and named is not None and not _pattern("gpu").search(text)


def _pairs(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in _pattern("pair").finditer(text):
        amount = value(one.group("value"))
        if amount is not None:
            sized = amounts(one.group("value") + (one.group("unit") or ""))
            found.setdefault(one.group("key").strip(), sized[0] if sized else amount)
    return found


def _rises(passage: Passage) -> tuple[float, Line] | None:
    best: tuple[float, Line] | None = None
    for name, run in _series(passage):
        if _pattern("not-host").search(name) or _pattern("shared").search(name):
            continue
        left = _pattern("left").search(name) is not None
        if not left and not _pattern("used").search(name) and not _pattern("own").search(name):
            continue
        amounts_of = [amount for amount, _ in run]
        length = _length(amounts_of, falls=left)
        growth = _growth(amounts_of[:length], falls=left, fewest=FEWEST)
        if growth is not None and (best is None or growth > best[0]):
            best = growth, run[length - 1][1]
        elif left and len(run) >= FEWEST and min(amounts_of) * 1.1 >= max(amounts_of):
            return None  # what is available stays, whatever "used" or "free" say: the kernel's cache
    return best


def _length(values: list[float], falls: bool) -> int:
    """How many figures from the first on go one way; behind them the epoch ended, or somebody stopped it."""
    for at, (before, after) in enumerate(pairwise(values)):
        if (after > before * 1.02) if falls else (after < before * 0.98):
            return at + 1
    return len(values)


def _growth(values: list[float], falls: bool, fewest: int) -> float | None:
    if len(values) < fewest or min(values) < 0:
        return None
    first, last, half = values[0], values[-1], values[len(values) // 2]
    grown = first / max(last, 1e-9) if falls else last / max(first, 1e-9)
    steady = abs(last - half) >= 0.25 * abs(last - first)  # what levels out is a cache
    return min(grown, 1000.0) if grown >= GROWTH and steady else None


def _processes(passage: Passage) -> Line | None:
    """The row of a process whose resident memory is far above that of its row in an earlier table of ps."""
    seen: dict[str, float] = {}
    where: int | None = None
    for line in passage.of(Voice.SHELL, Voice.PRINTED):
        if line.voice is Voice.SHELL:
            asked = _pattern("ps").search(line.text)
            where = None if asked is None else asked.group("columns").split(",").index("rss")
            continue
        cells = line.text.split()
        if where is None or len(cells) <= where or not cells[0].isdecimal() or not cells[where].isdecimal():
            continue
        if float(cells[where]) >= 2 * seen.setdefault(cells[0], float(cells[where])):
            return line
    return None


def _own(passage: Passage) -> Line | None:
    """Figures of the workers' own pages that rise, or of shared ones that fall; or a sentence with both."""
    for name, run in _series(passage):
        values = [amount for amount, _ in run]
        for kind, falls in (("own", False), ("shared", True)):
            if not _pattern(kind).search(name):
                continue
            length = _length(values, falls)
            if _growth(values[:length], falls, FEWEST_OWN) is not None:
                return run[length - 1][1]
    for line in passage.sentences:
        sizes = amounts(line.text)
        if (
            len(sizes) >= 2
            and _pattern("own").search(line.text)
            and (_pattern("from-to").search(line.text) or says("grows").search(line.text))
            and sizes[1] >= 2 * sizes[0]
        ):
            return line
    return None


def _flat(passage: Passage) -> Line | None:
    """No workers, and words that it is flat there, or figures below that hardly move."""
    for line in (*passage.sentences, *passage.of(Voice.PRINTED)):
        found = _pattern("none").search(line.text)
        if found is None:
            continue
        if _pattern("flat").search(line.text[found.end() : found.end() + 160]) or _pattern("flat").search(
            line.text[max(0, found.start() - 60) : found.start()]
        ):
            return line
        if line.text.rstrip()[-1:] in (":", "\uff1a") and _level(passage.lines[line.at + 1 : line.at + 4]):
            return line
    return None


def _level(below: tuple[Line, ...]) -> bool:
    """Two lines of figures or more, the last figure of each nearly the same."""
    rows = [
        [value(one) for one in re.findall(_NUMBER, line.text)]
        for line in below
        if line.voice is not Voice.SAID
    ]
    rows = [row for row in rows if len(row) >= 2]
    if len(rows) < 2:
        return False
    lasts = [row[1] or 0.0 for row in rows]
    return max(lasts) <= 1.1 * min(lasts)
