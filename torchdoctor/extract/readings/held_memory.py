"""GPU memory that a process of an earlier run still holds, while somebody looks for it in his new one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract import process_table
from torchdoctor.extract.readings.figures import sizes
from torchdoctor.extract.readings.passage import Line, Passage
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "held_memory"

FACTS: dict[str, str] = {
    "held_memory.full": "str: memory in use on a GPU before anything of the new run is on it",
    "held_memory.holder": "str: the process of an earlier run that has it, or the signs of one",
    "held_memory.pid": "int: that process, where the text names it",
    "held_memory.missed": "bool: somebody says that he ended or closed it, or that nothing frees the memory",
    "held_memory.told": "bool: somebody says that memory stays in use after a program's end, by no process",
}

MUCH = 1 << 30
MUCH_OF_CARD = 0.4

_PATTERNS = {
    "pair": r"\(\s*(?P<free>\d{7,12})L?\s*,\s*(?P<total>\d{9,12})L?\s*\)",
    "gib-pair": r"mem_get_info|free[, /]{1,3}total",
    "two": r"[\[(]\s*(?P<free>\d{1,3}\.\d{1,9})\s*,\s*(?P<total>\d{1,3}\.\d{1,9})\s*[\])]",
    # "61 of 80 GB", "22301MiB / 24576MiB"
    "of": (
        r"(?P<used>\d{1,6}(?:[.,]\d{1,2})?)\s?(?P<unit>[GM]i?B?)?\s?(?:/|of|von|sur|de|di|z|\u0438\u0437"
        r"|out of)"
        r"\s?(?:my |the |meinen |mes |mis "
        r"|i miei )?(?P<total>\d{1,6}(?:[.,]\d{1,2})?)\s?(?P<unit2>[GM])i?[Bo]?\b"
    ),
    "idle": r"\b0 ?% ?(?:util\w*|GPU-util|volatile|load|usage)?|util\w*[^.\n]{0,12}\b0 ?%",
    "idle-row": r"MiB\s*/\s*\d{1,7}MiB\s*\|\s*0%",
    # "90211 1 Sl 05:41:08 python -u train.py": ps, its columns pid and ppid
    "orphan": (
        r"(?:^|[\s`"
        r"|'\"])(?P<pid>\d{2,8})\s+1\s+(?:\d+\s+)?(?:[A-Zsl<+]{1,5}\s+)?[^\n]{0,60}?\bpython[\d.]*\b"
    ),
    # a kernel that has been up for hours; ELAPSED is [[dd-]hh:]mm:ss
    "kernel": (
        r"(?P<pid>\d{2,8})[^\n]{0,40}?\s(?P<age>(?:\d{1,3}-)?\d{1,2}:\d{2}:\d{2})\s[^\n]{0,120}?"
        r"(?:ipykernel|jupyter|colab_kernel)"
    ),
    "old": (r"(?P<pid>\d{2,8})[^\n]{0,40}?\s(?P<age>\d{1,3}-\d{1,2}:\d{2}:\d{2})\s[^\n]{0,120}?\bpython"),
    # ps aux: no terminal any more, started on another day or hours ago
    "aux": (
        r"^\s*\S+\s+(?P<pid>\d{2,8})\s+[\d.]+\s+[\d.]+\s+\d+\s+\d+\s+\?\s+\S+\s+\w*:?\d{2}"
        r"\s+\d+:\d{2}\s+\S*python"
    ),
    # stopped with Ctrl-Z, and forgotten
    "stopped": r"(?P<pid>\d{2,8})\s+(?:\d+\s+)?T[lsN+<]{0,4}\s+[\d:-]{4,14}\s+\S*python",
    "taken": (
        r"occup|in use|taken|\bfull\b|belegt|voll\b|\u0437\u0430\u043d\u044f\u0442|zaj\u0119t|dolu|\u5360"
        r"|\u4f7f\u7528|\u57cb\u307e|\ucc28|ocupad|pien[ao]|b\u1ecb chi\u1ebfm"
    ),
    "ppid": (
        r"\bpp?id\s?(?:=|is|:)?\s?1\b|parent (?:is |pid |process )?(?:pid )?1\b|\borphan|reparented"
        r"|re-parented"
    ),
    "defunct": r"<defunct>|\bzombie|\bZ[sl+]?\s+\d",
    # fuser and lsof on the device
    "fuser": r"(?:^|\s)[\w.-]+\s+(?P<pid>\d{2,8})\s+F[.\w]{1,5}\s+(?P<name>python\S*)",
    "lsof": r"^\s*(?P<name>python\S*)\s+(?P<pid>\d{2,8})\s+\S+\s+.{0,80}/dev/nvidia(?:\d|-uvm)",
    "not-found": r"\[Not Found\]|N/A\s+C\s+-\s",
    "ended": (
        r"kill(?:ed|ing)?\b|pkill|ctrl-?\s?c|sigkill|\bclosed?\b|abort|interrupt|cancel|crash|died|terminat"
        r"|ended"
        r"|stopped|finished|beendet|abgebrochen|abgest\u00fcrzt|gekillt|geschlossen|tu\u00e9|ferm\u00e9"
        r"|arr\u00eat\u00e9|interromp"
        r"|mat\u00e9|cerr\u00e9|detuve|matei|fechei|encerrei|chius[oi]|terminat[oi]|zamkn|zabi\u0142"
        r"|przerwa|\u0443\u0431\u0438\u043b|\u0437\u0430\u043a\u0440\u044b"
        r"|\u043e\u0441\u0442\u0430\u043d\u043e\u0432\u0438\u043b"
        r"|\u043f\u0440\u0435\u0440\u0432\u0430\u043b|kapatt|\u00f6ld\u00fcrd|\u6740|\u5173\u6389"
        r"|\u5173\u4e86|\u5173\u95ed|\u7ed3\u675f|\u505c\u6389|\u4e2d\u65ad|\u9589\u3058|\u6b62\u3081"
        r"|\u7d42\u4e86|\u5f37\u5236|\uc885\ub8cc|\uc8fd\uc600|\ub2eb\uc558|\uaebc"
    ),
    "freeing": r"empty_cache|gc\.collect|\breboot|\brestart|flush|nvidia-smi -r|--gpu-reset",
    # an id that nvidia-smi still lists, asked of ps or kill; in a container it is one of the host
    "gone": (
        r"\bkill\b[^\n]{0,40}?\b(?P<pid>\d{2,8})\b\W{1,6}(?:failed: )?(?:[Nn]o such process"
        r"|Kein passender Prozess|Aucun processus de ce type|No existe el proceso|Nessun processo corrisponde"
        r"|\u6ca1\u6709\u90a3\u4e2a\u8fdb\u7a0b|\u305d\u306e\u3088\u3046\u306a\u30d7\u30ed\u30bb\u30b9\u306f)"
    ),
    "app": r"^\s*(?P<pid>\d{2,8})\s*,[^,\n]{0,80}?,?\s*(?P<mib>\d{4,7}) MiB\s*$",
    "container": r"docker|container|kubernetes|\bpods?\b|\u5bb9\u5668|\u30b3\u30f3\u30c6\u30ca",
    # "it still holds GPU memory", "the memory is not released"
    "kept": (
        r"\bstill (?:\w+ ){0,2}?(?:holds?|held|occup\w+|takes?|taken|keeps?|uses?|used|in use|full"
        r"|allocated)\b[^.\n]{0,40}\b(?:memory|VRAM|GPU)\b"
        r"|\b(?:memory|VRAM)\b[^.\n]{0,40}(?:\bnot |n't |\bnever |\bstill )(?:\w+ ){0,3}?(?:released?|freed"
        r"|free up|deallocated|given back|occupied|held|taken|used|in use|there)\b"
        r"|(?:\bnot |n't |\bcannot |\bnever )(?:\w+ ){0,2}?(?:release|free(?: up)?|deallocate|give back)\b"
        r"[^.\n]{0,24}\b(?:memory|VRAM)\b"
        r"|\u663e\u5b58[^\u3002\n]{0,8}(?:\u4e0d|\u6ca1)[^\u3002\n]{0,4}\u91ca\u653e"
        r"|(?:\u4e0d|\u6ca1)[^\u3002\n]{0,4}\u91ca\u653e[^\u3002\n]{0,4}\u663e\u5b58"
    ),
    # "nvidia-smi shows no process", "no such process", "it disappears from nvidia-smi"
    "unseen": (
        r"\bno (?:running |python |such |visible |other )?process(?:es)?\b"
        r"|(?:\bnot |n't |\bcannot )(?:\w+ ){0,2}?(?:show|see|find|list)\w*[^.\n]{0,30}\b(?:process(?:es)?"
        r"|pids?)\b"
        r"|\bprocess(?:es)?\b[^.\n]{0,30}(?:\bnot |n't )(?:\w+ )?(?:shown|listed|visible|there|appear|show)"
        r"|disappear\w* from (?:the )?(?:nvidia-smi|list)|\bnvidia-smi\b[^.\n]{0,24}\b(?:shows? nothing"
        r"|is empty)"
        r"|(?:\u770b\u4e0d\u5230|\u6ca1\u6709|\u627e\u4e0d\u5230|\u65e0)[^\u3002\n]{0,12}\u8fdb\u7a0b"
    ),
    "server": r"\bvllm\b|Uvicorn running|\bollama\b|triton ?server|gunicorn|systemctl status",
}


_pattern = patterns(
    _PATTERNS, re.IGNORECASE, only=("ended", "freeing", "ppid", "of", "idle", "kept", "unseen")
)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of memory that is held; nothing where nobody looks for it, or a service of his holds it."""
    if not passage.asked or _pattern("server").search(passage.text):
        return
    yield from _told(passage.spaced)
    full, holder, missed = _full(passage), _holder(passage), _missed(passage)
    if full is None or holder is None or missed is None:
        return
    yield full[0].fact("held_memory.full", full[1])
    yield holder[0].fact("held_memory.holder", holder[1])
    if (pid := holder[1].removeprefix("process ")).isdecimal():
        yield holder[0].fact("held_memory.pid", int(pid))
    yield missed.fact("held_memory.missed", True)


def _told(passage: Passage) -> Iterator[Fact]:
    """In words alone: the program is gone, its memory is not, and no list of processes has an owner of it."""
    kept = passage.told(_pattern("kept"))
    if kept is not None and passage.told(_pattern("unseen")) and passage.told(_pattern("ended")):
        yield kept.fact("held_memory.told", True)


def _full(passage: Passage) -> tuple[Line, str] | None:
    asked = _pattern("gib-pair").search(passage.text) is not None
    for line in passage.lines:
        for name in ("pair", *(("two",) if asked else ())):
            if (found := _pattern(name).search(line.text)) is not None:
                free, total = float(found.group("free")), float(found.group("total"))
                if total > 0 and 0 <= free <= (1 - MUCH_OF_CARD) * total:
                    return line, found.group()
        if any(row.used_bytes >= MUCH for row in process_table.rows(line.text)):
            return line, line.text.strip("| ")[:80]
        if (app := _pattern("app").match(line.text)) is not None and int(app.group("mib")) << 20 >= MUCH:
            return line, line.text.strip()[:80]
        for found in _pattern("of").finditer(line.text):
            used, total = (float(found.group(key).replace(",", ".")) for key in ("used", "total"))
            scale = 1024.0 if found.group("unit2").upper() == "M" else 1.0
            card = 4 <= total / scale <= 300
            if card and MUCH_OF_CARD * total <= used <= total and _so(line):
                return line, found.group()
        if _pattern("idle").search(line.text) and any(size.value >= MUCH for size in sizes(line.text)):
            return line, line.text.strip()[:80]
    return None


def _so(line: Line) -> bool:
    """Is a part of a size said of memory that is in use?"""
    return bool(_idle(line) or says("memory").search(line.text) or _pattern("taken").search(line.text))


def _idle(line: Line) -> bool:
    return (
        _pattern("idle").search(line.text) is not None or _pattern("idle-row").search(line.text) is not None
    )


def _holder(passage: Passage) -> tuple[Line, str] | None:
    """A process without its parent, an old kernel, one that has the device open and is in no list."""
    in_table = {row.pid for line in passage.lines for row in process_table.rows(line.text)}
    for line in passage.lines:
        for name in ("orphan", "kernel", "old", "aux", "stopped"):
            if (found := _pattern(name).search(line.text)) is not None:
                return line, f"process {found.group('pid')}"
        for name in ("fuser", "lsof"):
            found = _pattern(name).search(line.text)
            if found is not None and int(found.group("pid")) not in in_table:
                return line, f"process {found.group('pid')}"
    for name in ("ppid", "defunct", "not-found"):
        if (line_found := passage.first(_pattern(name))) is not None:
            return line_found, line_found.text.strip()[:80]
    return _gone(passage) or _notebook(passage)


def _gone(passage: Passage) -> tuple[Line, str] | None:
    """A process that nvidia-smi lists with its memory, and of which kill says that there is none."""
    if _pattern("container").search(passage.text):
        return None
    apps = {app.group("pid") for line in passage.lines if (app := _pattern("app").match(line.text))}
    apps |= {str(row.pid) for line in passage.lines for row in process_table.rows(line.text)}
    for line in passage.lines:
        found = _pattern("gone").search(line.text)
        if found is not None and found.group("pid") in apps:
            return line, f"none any more, {found.group('pid')} is gone"
    return None


def _notebook(passage: Passage) -> tuple[Line, str] | None:
    """Another notebook, in which there was a model, while the new one has nothing on the card."""
    for line in passage.sentences:
        if says("other notebook").search(line.text) and "?" not in line.text:
            return line, line.text.strip()[:80]
    return None


def _missed(passage: Passage) -> Line | None:
    ended = passage.told(_pattern("ended"))
    if ended is not None:
        return ended
    freeing = passage.first(_pattern("freeing"))
    if freeing is not None:
        return freeing
    return None
