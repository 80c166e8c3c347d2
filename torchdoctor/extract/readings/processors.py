"""How many processors a process may use: affinity masks, cpusets, quotas of containers, shares of Slurm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.columns import tables
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "processors"

FACTS: dict[str, str] = {
    "processors.usable": "int: processors that this process may use, by commands, settings or words",
    "processors.machine": "int: processors of the machine, where the text tells",
    "processors.few": "bool: no more than half of the workers spoken of, or of the machine's processors",
    "processors.throttled": "bool: cpu.stat shows that the quota held the process up in most periods",
}

MOST = 4096

_PATTERNS = {
    # a number right behind the command, whether in a sentence, after an arrow or in its own answer
    "nproc": (
        r"\bnproc\b(?! ?-)[`'\"\s]{0,3}(?:(?:says|gives|prints|shows|returns|is|sagt|liefert|dit|renvoie|dice"
        r"|da|zeigt|\u662f|\u8fd4\u56de|\u663e\u793a|\u306f|->|=>|\u2192"
        r"|[:=])[`'\"\s]{0,3}){1,2}(?P<n>\d{1,4})\b"
    ),
    "nproc-command": r"^\s*\$?\s*nproc\s*$",
    "affinity-len": (
        r"len\(\s*(?:os\.)?sched_getaffinity\([^)]*\)\s*\)[`)\s\"']{0,6}(?:->|=>|\u2192|[:=]|is|gives|says"
        r"|prints|sagt|\u662f|\u306f)?[`\s]{0,4}(?P<n>\d{1,4})\b(?!\))"
    ),
    "affinity-set": r"sched_getaffinity\([^\n]{0,60}?(?P<set>\{\s*\d{1,4}(?:\s*,\s*\d{1,4})*\s*\})",
    "set": r"^[^{}\n]{0,40}(?P<set>\{\s*\d{1,4}(?:\s*,\s*\d{1,4})*\s*\})[^{}\n]{0,8}$",
    "asks-affinity": r"sched_getaffinity\(",
    "mask": r"affinity mask: (?P<mask>[0-9a-f,]{1,300})\b",
    "list": (
        r"(?:affinity list|Cpus_allowed_list|cpuset\.cpus(?:\.effective)?|physcpubind|--cpuset-cpus"
        r"|taskset -c|taskset -pc|numactl -C|AllowedCPUs)[:=\s\"'`]{1,4}(?P<list>\d{1,4}(?:-\d{1,4})?(?:,\d{1"
        r",4}(?:-\d{1,4})?){0,40})(?![\w-])"
    ),
    "max": r"(?:^|cpu\.max\W{1,8})(?P<quota>\d{4,9}) (?P<period>\d{4,7})\b",
    "quota": r"cfs_quota_us\W{1,6}(?P<n>\d{4,9})\b",
    "limits": (
        r"(?:\blimits?\b[^\n]{0,40}\bcpus?[\"']?\s?[:=]\s?[\"']?|--cpus[= ]"
        r"|\bcpus: [\"']?)(?P<n>\d{1,3}(?:\.\d)?|\d{2,6}m)\b(?![-\d])"
    ),
    "limits-head": r"^\s*limits:\s*$",
    "limit-row": r"^\s*cpu: [\"']?(?P<n>\d{1,3}(?:\.\d)?|\d{2,6}m)[\"']?\s*$",
    "slurm": (
        r"(?:--cpus-per-task|-c|SLURM_CPUS_PER_TASK|SLURM_CPUS_ON_NODE|--ncpus|ncpus|ReqCPUS|AllocCPUS"
        r"|NumCPUs|request_cpus)\s?[= ]\s?(?P<n>\d{1,4})\b"
    ),
    "slurm-near": r"SLURM|sbatch|srun|salloc|cpus-per-task|scontrol|qsub|PBS|ncpus|request_cpus",
    "words": (
        r"\b(?:container|pod|docker|cgroup|job|process|quota|VM|notebook|colab"
        r"|kaggle)\b[^.\n]{0,60}?(?:limited to|limit of|quota of|only|just|has|gets|mit|nur|quota:?"
        r"|max|de|da|c)\s(?:a |of )?(?:CPU quota of )?(?P<n>\d{1,3}) (?:v?CPUs?|cores?|Kernen?|c\u0153urs"
        r"|n\u00facleos|\u6838)\b"
        r"|Our suggested max number of worker in current system is (?P<max>\d{1,4})"
    ),
    "one-core": (
        r"\b(?:all|alle|tous|todos|every|s\u00e4mtliche)\b[^.\n]{0,60}\b(?:on|auf|sur|en|in) (?:the same "
        r"|a single |one |only one |einem |core |CPU |Kern |demselben |c\u0153ur |cpu)[^.\n]{0,14}(?:core"
        r"|CPU|Kern|0\b)"
        r"|(?:only|just|nur|solo|seulement) (?:one|1|a single|ein|einem|un seul|un) (?:core|CPU|Kern"
        r"|c\u0153ur|n\u00facleo)[^.\n]{0,40}(?:busy|used|100|load|active|besch\u00e4ftigt|ausgelastet"
        r"|occup)"
        r"|(?:\u5168\u90e8|\u90fd)[^\u3002\n]{0,12}(?:\u540c\u4e00\u4e2a|\u4e00\u4e2a|0\u53f7)\s?(?:\u6838"
        r"|CPU)|(?:\u540c\u3058|1\u3064\u306e|\u4e00\u3064\u306e)\s?(?:\u30b3\u30a2|CPU)"
    ),
    "machine": (
        r"os\.cpu_count\(\)[`)\s\"']{0,6}(?:->|=>|\u2192|[:=]|is|gives|says"
        r"|prints)?[`\s]{0,4}(?P<count>\d{1,4})\b"
        r"|\blscpu\b[^.\d\n]{0,20}(?P<lscpu>\d{1,4})\b|(?<![\w.])(?P<some>\d{1,4}) (?:v?CPUs|cpus)\b"
        r"|^CPU\(s\):\s+(?P<cpus>\d{1,4})"
        r"|(?<![\w.])(?P<cores>\d{1,4})[ -](?:CPU |physical )?(?:cores?|threads|Kernen?|c\u0153urs"
        r"|n\u00facleos|vCPUs|\u6838|\u30b3\u30a2|\u044f\u0434\w+)(?![\w])"
    ),
    "periods": r"nr_periods\W{1,4}(?P<n>\d{1,12})",
    "throttled": r"nr_throttled\W{1,4}(?P<n>\d{1,12})",
    "variable": r"workers[= ][\"']?\$\{?(?P<name>\w{1,24})\}?",
    "workers-head": r"workers?\b|\bnw\b",
    "workers": (
        r"(?:num_workers|n_workers|workers?|\bnw)\s?(?:[=:]|is|->)?\s?(?P<after>\d{1,3})\b"
        r"|\b(?P<before>\d{1,3}) (?:pt_data_)?workers?\b|create (?P<create>\d{1,3}) worker"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=("nproc", "slurm"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the processors that a text tells of; nothing in a manual."""
    if not passage.personal:
        return
    found = min(_usable(passage), key=lambda item: item[0], default=None)
    machine = max(_machine(passage), default=0)
    if found is not None:
        usable, line = found
        yield line.fact("processors.usable", usable)
        workers = max(_workers(passage), default=0)
        if usable * 2 <= max(workers, machine if workers > usable else 0):
            yield line.fact("processors.few", True)
    if machine:
        yield passage.lines[0].fact("processors.machine", machine)
    throttled = _throttled(passage)
    if throttled is not None:
        yield throttled.fact("processors.throttled", True)


def _usable(passage: Passage) -> Iterator[tuple[int, Line]]:
    slurm = _pattern("slurm-near").search(passage.text) is not None
    above: Line | None = None
    limits = -9
    for line in passage.lines:
        for count in _of_line(line, above, slurm):
            if 1 <= count <= MOST:
                yield count, line
        if _pattern("limits-head").match(line.text):
            limits = line.at
        row = _pattern("limit-row").match(line.text)
        if row is not None and 0 < line.at - limits <= 4:
            yield _cores(row.group("n")), line
        if line.voice in (Voice.SAID, Voice.PRINTED, Voice.CODE) and _pattern("one-core").search(line.text):
            yield 1, line
        above = line


def _of_line(line: Line, above: Line | None, slurm: bool) -> Iterator[int]:
    text = line.text
    for name in ("nproc", "affinity-len", "limits", "words", *(("slurm",) if slurm else ())):
        for found in _pattern(name).finditer(text):
            groups = found.groupdict()
            digits = groups["n"] or groups.get("max") or "0"
            yield _cores(digits)
    for found in _pattern("affinity-set").finditer(text):
        yield found.group("set").count(",") + 1
    for found in _pattern("mask").finditer(text):
        yield bin(int(found.group("mask").replace(",", ""), 16)).count("1")
    for found in _pattern("list").finditer(text):
        yield _listed(found.group("list"))
    for found in _pattern("max").finditer(text):
        yield max(1, int(found.group("quota")) // max(1, int(found.group("period"))))
    for found in _pattern("quota").finditer(text):
        yield max(1, int(found.group("n")) // 100_000)
    if above is None:
        return
    if _pattern("nproc-command").match(above.text) and text.strip().isdecimal():
        yield int(text.strip())
    if _pattern("asks-affinity").search(above.text) and line.voice is not Voice.CODE:
        shown = _pattern("set").match(text)
        if shown is not None:
            yield shown.group("set").count(",") + 1
        elif "len(" in above.text and text.strip().isdecimal():
            yield int(text.strip())


def _cores(text: str) -> int:
    """ "2", "1.5" and "1500m" processors, a part of one counts as one."""
    cores = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    return max(1, int(cores)) if cores else 0


def _listed(text: str) -> int:
    """The length of "0-3,8"."""
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        count += max(0, int(last or first) - int(first)) + 1
    return count


def _machine(passage: Passage) -> Iterator[int]:
    for line in passage.lines:
        for found in _pattern("machine").finditer(line.text):
            yield int(next(digits for digits in found.groups() if digits))


def _workers(passage: Passage) -> Iterator[int]:
    for line in passage.lines:
        for found in _pattern("workers").finditer(line.text):
            yield int(found.group("after") or found.group("before") or found.group("create"))
    # "--workers $W" in the script, and "W=16" in what it printed
    if (named := _pattern("variable").search(passage.text)) is not None:
        for found in re.finditer(rf"(?<!\w){named.group('name')}\s?=\s?(\d{{1,3}})\b", passage.text):
            yield int(found.group(1))
    for table in tables(passage):
        own = table.column(_pattern("workers-head"))
        for row in table.rows if own is not None else ():
            if row.cells[own or 0].isdecimal():
                yield int(row.cells[own or 0])


def _throttled(passage: Passage) -> Line | None:
    """The line of cpu.stat after which most periods were throttled."""
    periods = passage.first(_pattern("periods"))
    throttled = passage.first(_pattern("throttled"))
    if periods is None or throttled is None:
        return None
    whole, held = _pattern("periods").search(periods.text), _pattern("throttled").search(throttled.text)
    if whole is None or held is None or int(held.group("n")) * 3 < int(whole.group("n")):
        return None
    return throttled
