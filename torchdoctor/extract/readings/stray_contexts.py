"""GPU 0 holds something of every rank, as somebody tells: processes, or more memory than others.

That GPU 0 alone is fuller has other reasons as well (gathered outputs, layers that are spread unevenly, a
screen), so figures of memory count only beside what puts other ranks' tensors there, or a run without it in
which all are equal. Several processes on GPU 0 and one on each other GPU say it by themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.rank_figures import Series, cells, number, series
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "stray_contexts"

FACTS: dict[str, str] = {
    "stray_contexts.processes": "str: how somebody says that several processes have memory on GPU 0",
    "stray_contexts.rows": "int: processes of a table with some memory on one GPU and more on another",
    "stray_contexts.heavier": "str: by which words or figures GPU 0 is fuller than the others",
    "stray_contexts.reason": "str: what puts other ranks' memory there, or the run in which all are equal",
    "stray_contexts.ranks": "bool: the program runs a process a GPU (DDP, torchrun, accelerate)",
}

HEAVIER = 1.1
MOST = 8.0  # times: else they are of different units
STRAY_SHARE = 0.6
LIKE = 1.06  # the others agree within

_ZERO = (
    r"(?:\b(?:gpu|card|device|cuda|rank|karte|grafikkarte|carte|tarjeta|placa"
    r"|scheda)s?[ _:#-]{0,2}0(?![\d.,])|\bgpu0\b|\bGPU ?0(?![\d.,])|\bcuda:0\b|\b(?:first|1st) (?:gpu|card"
    r"|device)"
    r"|\berste[nr]? (?:GPU|Karte|Grafikkarte)|\bpremi[\u00e8e]re? (?:GPU|carte)|\bprimera (?:GPU|tarjeta)"
    r"|\bprimeira (?:GPU|placa)"
    r"|\bprima (?:GPU|scheda)|\b\u043f\u0435\u0440\u0432\u043e\u0439 (?:\u043a\u0430\u0440\u0442|GPU"
    r"|\u0432\u0438\u0434\u0435\u043e)\w*|\bGPU[ -]?\u21160"
    r"|\u043d\u0443\u043b\u0435\u0432\w+ (?:\u043a\u0430\u0440\u0442|GPU)\w*"
    r"|(?<!\d)0 ?\u53f7? ?(?:\u5361|gpu)|\u7b2c\u4e00(?:\u5f20|\u5757|\u4e2a)(?:\u5361|\u663e\u5361|GPU)"
    r"|\u5361 ?0(?!\d)|(?<!\d)0 ?\u756a|\u6700\u521d\u306eGPU|0\ubc88|\uccab \ubc88\uc9f8 GPU)"
)
_PROCESS = (
    r"(?:process(?:es)?|pids?|contexts?|python3?s?|ranks?|workers?|Prozesse?n?|Kontexte?|processus"
    r"|contextes?|procesos?|contextos?|processos?|processi"
    r"|\u043f\u0440\u043e\u0446\u0435\u0441\u0441\w*|\u8fdb\u7a0b|\u30d7\u30ed\u30bb\u30b9"
    r"|\ud504\ub85c\uc138\uc2a4|proses|s\u00fcre\u00e7)"
)
_MANY = (
    r"(?:[2-9]|1[0-6]|two|three|four|five|six|seven|eight|all|every|each|extra|additional|other|several|alle"
    r"|jeder|weitere|zus\u00e4tzliche|sieben|drei|vier|acht|tous|chaque|todos|cada|tutti|ogni"
    r"|\u0432\u0441\u0435|\u043a\u0430\u0436\u0434\w+|\u6240\u6709|\u6bcf\u4e2a|\u5168|\ubaa8\ub4e0|\ubaa8\ub450)"
)
_OTHERS = (
    r"(?:\bothers?\b|\brest\b|\bremaining\b|\beach of|\bevery other|\ball other|GPUs? [1-3]\s?(?:-|\u2013|to"
    r"|\.\.)\s?\d|\bGPU ?1\b|\b\u00fcbrigen|\banderen|\bautres?\b"
    r"|\bdem\u00e1s\b|\botr[ao]s\b|\boutr[ao]s\b|\bdemais\b|\baltr[eio]\b|\boverige|\bpozosta\u0142"
    r"|\u043e\u0441\u0442\u0430\u043b\u044c\u043d|\u0434\u0440\u0443\u0433\u0438\u0445|di\u011fer"
    r"|c\u00e1c GPU kh\u00e1c|\u5176\u4ed6|\u5176\u4f59|\u522b\u7684|\u4ed6\u306e|\u305d\u306e\u4ed6"
    r"|\ub098\uba38\uc9c0|\ub2e4\ub978)"
)
_PATTERNS = {
    "zero": _ZERO,
    # "8 processes on GPU 0", "GPU 0 has 7 extra processes", "0号卡上有8个python进程"
    "on-zero": (
        rf"{_ZERO}[^.\n\u3002]{{0,60}}?(?<!\d){_MANY}(?!\d|[.,]\d)(?: |\u4e2a|\u500b|\u3064|\uac1c"
        rf"|-)?(?:\w+ ){{0,3}}?\w{{0,10}}?{_PROCESS}(?!s? ?[a-z]*[:=]? ?0)"
        rf"|(?<![\d.]){_MANY}(?!\d|[.,]\d)(?: |\u4e2a|\u500b|\u3064|\uac1c)?(?:of the "
        rf"|the )?(?:\w+ ){{0,2}}?\w{{0,10}}?{_PROCESS}[^.\n\u3002]{{0,70}}?(?:\bon|\bin|\bat|\bauf|\bsur"
        r"|\ben|\bna|\bno|\bsulla|\bsu|\bnella|\bda|\u043d\u0430|\u5728|\u4e0a|\u306b|\uc5d0)\s?(?:the "
        rf"|der |die |la |le |el |o |a |l')?{_ZERO}"
        r"|\b(?:ranks|rangs|R\u00e4nge|processes|processus|Prozesse|procesos|processos|processi"
        r"|\u043f\u0440\u043e\u0446\u0435\u0441\u0441\u044b"
        rf"|workers)\b[^.\n]{{0,60}}?(?<![\d.])\d[\d.,]*\s?(?:Mo|Go|[MG]i?B?)\b[^.\n]{{0,40}}?{_ZERO}"
        r"|rank \w+ (?:also )?(?:shows?|has|have|hold|takes?) (?:up )?(?:memory |a process |a context "
        r"|\d+ ?M\w+ )on "
        rf"{_ZERO}"
    ),
    # "GPU 0 takes 30.2 GB and the others 21.4 GB", and the other way round
    "figures": (
        rf"{_ZERO}[^.\n\u3002]{{0,50}}?(?<![\d.,])(?P<first>\d{{1,6}}(?:[.,]\d{{1,3}})?)\s?(?:[MG]i?B?|MiB"
        r"|\u041c\u0411|\u0413\u0411|Go|Mo)\b"
        rf"[^\n\u3002]{{0,60}}?{_OTHERS}[^\n\u3002]{{0,40}}?(?<![\d.,])(?P<rest>\d{{1,6}}(?:"
        rf"[.,]\d{{1,3}})?)\s?(?:[MG]i?B?|MiB|\u041c\u0411|\u0413\u0411|Go|Mo)\b"
    ),
    "screen": (
        r"(?i)(?<!not )(?<!no )(?<!isn't )(?<!kein )(?<!not the )\b(?:Xorg|gnome-shell|Xwayland|kwin|desktop"
        r"|monitor|display|firefox|chrome|Bildschirm|\u00e9cran|pantalla)\b(?! \(headless)"
    ),
    # "GPU 0: pid 5120 (22.1 GiB), pid 5121 (0.5 GiB)"
    "listed": r"(?i)^\W*(?:GPU|card|device|cuda)[ :#]?(?P<gpu>\d{1,2})\b",
    "owner": (
        r"(?:[Pp][Ii][Dd]\W{0,2}"
        r"|/)?(?<![\d.])(?P<pid>\d{3,8})\W{1,3}(?P<size>\d{1,6}(?:\.\d{1,3})?) ?(?P<unit>[MG])i?B?\b"
    ),
    # columns of tables of processes
    "col-gpu": r"(?i)^\W*(?:gpu|gpu_bus_id|gpu_uuid|gpu_name|pci\.bus_id|bus|device|idx|index|card)\b",
    "col-pid": r"(?i)^\W*pid\b",
    "col-used": r"(?i)^\W*(?:fb|used_(?:gpu_)?memory|mem(?:ory)?\b|usage|mib\b|used)",
    "ranks": (
        r"DistributedDataParallel|\bDDP\b|torchrun|nproc[_-]per[_-]node|torch\.distributed|each rank"
        r"|every rank"
        r"|per rank|\branks?\b|local_rank|accelerate|mp\.spawn|init_process_group|\bddp_spawn\b|deepspeed"
        r"|horovod|hvd\."
    ),
    "unequal": (
        r"device_map|pipeline|nn\.DataParallel|(?<!Distributed)\bDataParallel\(|tensor[ -]parallel|\bvLLM\b"
        r"|tensorflow|\bkeras\b|\bjax\b"
        r"|balanced_low_0|Xorg (?:uses|takes|has)"
    ),
    "load": r"torch\.load\((?P<rest>[^\n]{0,160})",
    "mapped": r"map_location",
    "map-cured": (
        r"(?i)(?:with|mit|avec|con|com|\u52a0|\u52a0\u4e0a|after adding|adding|once"
        r"|\u4f7f\u7528)[^.\n]{0,40}map_location[^.\n]{0,80}"
        r"(?:gone|disappear|equal|fine|same|weg|gleich|ok|\u6b63\u5e38|\u6d88\u5931)"
        r"|map_location[^.\n]{0,60}(?:helps|cures|fixes|solves|hilft)"
    ),
    # a run in which nothing is loaded, and a card that is not chosen
    "scratch": (
        r"(?i)(?:from scratch|without (?:resum\w+|the checkpoint|loading)|random weights|fresh (?:start|run)"
        r"|no resume|--?init scratch|ohne (?:Checkpoint|resume)|neu gestartet|sans (?:reprise|checkpoint"
        r"|reprendre)"
        r"|desde cero|do zero|da zero|\u5934\u5f00\u59cb|\u4e0d\u52a0\u8f7d|\u4e0d resume|\u4ece\u5934"
        r"|\u6700\u521d\u304b\u3089|\ucc98\uc74c\ubd80\ud130|\u0441 \u043d\u0443\u043b\u044f)"
    ),
    "resumed": (
        r"(?i)(?:resum\w+|load(?:ed|ing)? (?:the |a |my )?(?:checkpoint|ckpt|weights|state)|checkpoint|ckpt"
        r"|\.pth?\b|optimi[sz]er state"
        r"|Wiederaufnahme|fortgesetzt|repris\w*|\u52a0\u8f7d|\u65ad\u70b9|\u6062\u590d|\u518d\u958b"
        r"|\u0432\u043e\u0437\u043e\u0431\u043d\u043e\u0432)"
    ),
    "unset": (
        r"(?i)(?:(?:no|not|never|without|don't|doesn't|ohne|kein\w*|nicht|nie|sans|pas de|jamais|sin|no hay"
        r"|sem|senza|n\u00e3o|\u6ca1\u6709\u5199|\u6ca1\u5199|\u6ca1\u6709|\u4e0d|\u672a|\u0431\u0435\u0437"
        r"|\u043d\u0435\u0442)"
        r"[^.\n\u3002]{0,40}set_device|set_device[^.\n]{0,30}(?:\u306a\u3057|\u306a\u3044|\u307e\u305b\u3093"
        r"|\u305b\u305a|\uc5c6|\uc54a|missing|fehlt|nicht|\u043d\u0435))"
    ),
    "default-device": (
        r"\.cuda\(\)|cuda\.(?:empty_cache|synchronize|mem_get_info|current_device|memory_allocated"
        r"|manual_seed\w*)\(|\bto\((?:\"cuda\"|'cuda')\)"
        r"|device\s?=\s?[\"']cuda[\"']|torch\.device\([\"']cuda(?::0)?[\"']\)|[\"']cuda:0[\"']"
    ),
    "context": (
        r"(?<![\d.,])(?:2[5-9]\d|[3-9]\d\d|1[0-4]\d\d)\+?\s?(?:M[Bb]|MiB|M)\b|\bhalf a (?:gig|GB)"
        r"|(?<![\d.])0[.,][3-9]\d?\s?(?:G|GB|GiB)\b"
    ),
    "more": (
        rf"(?i){_ZERO}[^.\n\u3002]{{0,80}}?(?:\bmore\b|\bfuller\b|\bextra\b|\bhigher\b|\btwice\b|\bdouble\b"
        r"|\bdoppel\w*|\bdoppelt\b|\bdobro\b|\bdoble\b|\bdoppio\b|\u0432\u0434\u0432\u043e\u0435|\u500d"
        r"|\bmehr\b|voller|\bplus\b|\bm\u00e1s\b|\bmais\b|\bpi\u00f9\b|\u0431\u043e\u043b\u044c\u0448\u0435"
        r"|\u591a|\u5dee|\u9ad8|\ub354|\ub9ce|\u591a\u304f)"
        r"|(?:\bmore\b|\bextra\b|\bmehr\b|\bplus\b|\bm\u00e1s\b|\bmais\b|\bpi\u00f9\b"
        rf"|\u0431\u043e\u043b\u044c\u0448\u0435)[^.\n]{{0,50}}(?:on|in|auf|sur|en|na|sulla"
        rf"|\u043d\u0430) (?:the |der |die |la |le )?{_ZERO}"
    ),
    "memory": (
        r"(?i)mem|alloc|used|usage|vram|\bgi?b\b|\bmi?b\b|\u663e\u5b58|\u5360\u7528|\u30e1\u30e2\u30ea"
        r"|\uba54\ubaa8\ub9ac|speicher|m\u00e9moire|m\u00e9moria|\u043f\u0430\u043c\u044f\u0442|driver|smi"
    ),
    "no-memory": r"(?i)\btime|/s\b|loss|\bacc(?:uracy)?\b|\butil|%|\btemp|\bW\b|batch|\bpid|\blot",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, only=("zero", "on-zero", "figures", "unequal", "ranks"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of what somebody tells of GPU 0; nothing where one program spreads itself over the GPUs."""
    passage = passage.spaced
    if not stall.speaks(passage) or stall.over(passage) or _pattern("unequal").search(passage.text):
        return
    ranks = passage.first(_pattern("ranks"))
    if ranks is None:
        return
    strays = _rows(passage)
    processes = _processes(passage)
    heavier = None if _pattern("screen").search(passage.text) else _by_figures(passage) or _by_words(passage)
    if processes is None and heavier is None and strays is None:
        return
    yield ranks.fact("stray_contexts.ranks", True)
    if strays is not None:
        yield strays[0].fact("stray_contexts.rows", strays[1])
    if processes is not None:
        yield processes.fact("stray_contexts.processes", processes.text.strip()[:120])
    if heavier is not None:
        line, told = heavier
        yield line.fact("stray_contexts.heavier", told)
    reason = _reason(passage, processes is not None)
    if reason is not None:
        yield reason.fact("stray_contexts.reason", reason.text.strip()[:120])


def _rows(passage: Passage) -> tuple[Line, int] | None:
    """Rows of pmon and of --query-compute-apps: processes with some memory on one GPU and more on another."""
    heads: dict[str, int] = {}
    used: dict[str, dict[str, tuple[float, Line]]] = {}
    for line in passage.lines:
        if (listed := _pattern("listed").match(line.text)) is not None:
            for owner in _pattern("owner").finditer(line.text, listed.end()):
                size = float(owner.group("size")) * (1024 if owner.group("unit") == "G" else 1)
                used.setdefault(owner.group("pid"), {})[listed.group("gpu")] = size, line
            continue
        row = [cell for cell in cells(line.text.lstrip("# ")) if cell]
        columns = {
            name: next((at for at, cell in enumerate(row) if _pattern(f"col-{name}").match(cell)), -1)
            for name in ("gpu", "pid", "used")
        }
        if min(columns.values()) >= 0:
            heads = columns
            continue
        if not heads or len(row) <= max(heads.values()):
            continue
        pid, amount = row[heads["pid"]], re.match(r"\d+", row[heads["used"]])
        if pid.isdecimal() and amount is not None:
            used.setdefault(pid, {})[row[heads["gpu"]]] = float(amount.group()), line
    shared = [by_gpu for by_gpu in used.values() if len(by_gpu) == 2]
    smaller = [min(by_gpu.items(), key=lambda item: item[1][0]) for by_gpu in shared]
    first = smaller[0][0] if smaller else ""
    strays = [
        line
        for (gpu, (amount, line)), by_gpu in zip(smaller, shared, strict=True)
        if gpu == first and amount <= STRAY_SHARE * max(other for other, _ in by_gpu.values())
    ]
    return (strays[0], len(strays)) if strays else None


def _processes(passage: Passage) -> Line | None:
    return next((line for line in passage.sentences if _pattern("on-zero").search(line.text)), None) or next(
        (line for line in passage.of(Voice.PRINTED) if _pattern("on-zero").search(line.text[:200])), None
    )


def _by_words(passage: Passage) -> tuple[Line, str] | None:
    for line in passage.sentences:
        found = _pattern("more").search(line.text)
        if found is not None and (_pattern("memory").search(line.text) or says("memory").search(line.text)):
            return line, found.group()[:100]
    return None


def _by_figures(passage: Passage) -> tuple[Line, str] | None:
    for line in passage.sentences:
        for found in _pattern("figures").finditer(line.text):
            first, rest = number(found.group("first")), number(found.group("rest"))
            if rest * HEAVIER <= first <= rest * MOST:
                return line, found.group()[:100]
    for one in series(passage):
        if _is_heavier(one):
            told = ", ".join(f"{gpu}: {value:g}" for gpu, value in sorted(one.values.items())[:8])
            return one.line, told
    return None


def _is_heavier(one: Series) -> bool:
    others = [value for gpu, value in one.values.items() if gpu != 0]
    if 0 not in one.values or len(others) < 1 or min(others) <= 0 or max(others) > LIKE * min(others):
        return False
    named = _pattern("memory").search(one.label) and not _pattern("no-memory").search(one.label)
    return bool(named) and one.values[0] >= HEAVIER * max(others)


def _reason(passage: Passage, processes: bool) -> Line | None:
    """What stands behind it: a checkpoint that goes where it was saved, a device that is never chosen."""
    for line in passage.lines:
        load = _pattern("load").search(line.text)
        if load is not None and not _pattern("mapped").search(load.group("rest")):
            return line
    resumed = _pattern("resumed").search(passage.text)
    if resumed and (scratch := passage.first(_pattern("scratch"))) is not None:
        return scratch
    for name in ("map-cured", "unset", "context") if processes else ("map-cured", "unset"):
        if (told := passage.first(_pattern(name))) is not None:
            return told
    if processes and "set_device" not in passage.text:
        return next((line for line in passage.lines if _pattern("default-device").search(line.text)), None)
    return None
