"""A torch that does not see the GPU, and what a text shows of build, driver, variable and job."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import driver_shown, hidden_gpus
from torchdoctor.extract.readings.card_lists import cells
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says, source
from torchdoctor.extract.readings.values import Value, commands, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "availability"

FACTS: dict[str, str] = {
    "availability.missing": "bool: torch is shown or said not to see the GPU, or to run on the CPU",
    "availability.gpu": "str: NVIDIA GPU that the text names",
    "availability.board": "str: the Jetson board that the text names",
    "availability.cpu_build": "str: what shows that this torch was built without CUDA",
    "availability.cuda_build": "str: CUDA version that this torch was built for",
    "availability.no_driver": "bool: nvidia-smi, the device files or the kernel module are not there",
    "availability.hidden": "bool: CUDA_VISIBLE_DEVICES is empty, -1, or names a GPU that is not there",
    "availability.not_requested": "bool: the job's script or command asks Slurm for no GPU, and none is seen",
    "availability.no_instance": "bool: MIG is switched on, and there is no instance",
    "availability.driver_cuda": "str: newest CUDA version of a driver that is too old for this torch",
}

_SOLVED = (
    r"^\W*(?:update|edit|upd)?\W*(?:solved|resolved|fixed|found it|gelöst|résolu|resuelto|resolvido|risolto"
    r"|rozwiązane|решено|çözüldü|解決しました|已解决|解决了|해결)\b"
)
_PATTERNS = {
    "asked": r"\.is_available\(\)",
    "said": (
        r"is_available\(\)[`'\")\]]*\s*(?!(?:was|were|war|\u00e9tait|era)\b|should"
        r"|must)[^\n.;,()]{0,24}?[`'\"]{0,2}"
        r"(?<![A-Za-z])False\b|\b(?:cuda|gpu) is (?:still )?not available\b"
        r"|is_available\(?\)?[`'\"]* to [`'\"]*[Ff]alse\b"
        r"|is_available\(\)[^.\n]{0,60}\b[Tt]rue\b[.,;] (?:[Hh]owever|[Bb]ut)\b[^.\n]{0,20}\bnot\b"
    ),
    # "cuda available: False", "gpu_available=False", "`cuda: False`"
    "shown": (
        r"\b(?:cuda|gpus?)[ _.]?(?:is[ _])?(?:available|visible|found|enabled|support|usable"
        r"|disponib\w+|verf\u00fcgbar|dost\u0119pn\w+|\u0434\u043e\u0441\u0442\u0443\u043f\w+|\u53ef\u7528"
        r"|\u5229\u7528\u53ef\u80fd)?[`'\")(]*\s*"
        r"(?:[:=]|->|\u2192)\s*[`'\"]?False\b"
    ),
    "device": (
        r"\b(?:using |use pytorch |training |run(?:ning)? |selected |accelerator)?\s?(?:device(?:_name)?|on"
        r"|used)"
        r"\s{0,2}(?:[:=]|is|->)?\s{0,2}cpu\b(?!\s*(?:\d|count|cores?|time|usage|util|mem|load|offload))"
    ),
    "banner": r"\btorch-\d\S+ CPU \(",
    "gpu": (
        r"\b(?:(?:GeForce )?[RG]TX ?(?:A?\d{4}|\d{3,4})(?: ?Ti| ?Super)?|Tesla [A-Z]\d{1,3}|Quadro \w{2,6}"
        r"|TITAN \w{1,4}|Jetson (?:AGX |Orin|Xavier|Nano|Thor|TX\d)"
        r"|[AHLVTPB](?:[12]00|40S?|10G?|30|16|4)\b|NVIDIA-SMI \d|nvidia-smi (?:works|shows|is fine|lists)"
        # "une 4070", "my 3080": models are known by their number
        r"|(?:an?|my|the|une?|ma|mon|eine?n?|meine?|una|mia|mi|minha|uma|moja|mam) [1-5]0[5-9]0(?: ?[Tt]i"
        r"| [Ss]uper)?\b)"
    ),
    "board": r"\bJetson (?:AGX |Xavier |Orin )?(?:AGX|Orin|Xavier|Nano|NX|Thor|TX[12])\b",
    "other": (
        r"\bmps\b|\bM[1-4]\b (?:Mac|Pro|Max|chip)|MacBook|\brocm\b(?! used to build PyTorch: N/A)"
        r"|\bhip\b(?! runtime version: N/A)|AMD Radeon|only need (?:the )?cpu"
    ),
    "none": (
        r"(?:have|has|with|is) no gpu\b|\bno gpu (?:in|on|here|there)\b|without (?:an? )?gpu"
        r"|cpu[- ]only (?:machine|box|server|node|vm|host|runner)"
    ),
    "listed": (
        r"^\s*GPU \d{1,2}: |NVIDIA-SMI \d|\d [^|]{3,60}\|\s*[0-9A-F]{4,8}:|(?:3D"
        r"|VGA compatible) controller: NVIDIA"
    ),
    "cpu": (
        r"(?<![\w.])\d\.\d{1,2}(?:\.\d{1,2})?(?:\.post\d)?\+cpu\b|(?<!-)\btorch-\d[\d.]+\+cpu\b"
        r"|\bcpu_(?:py3|generic|mkl|openblas)\w*"
        r"|py3\.?\d{1,2}_cpu(?:_\w*|\b)|\bcpuonly\b|\bpytorch-(?:mutex\s+\S+\s+cpu|cpu)\b"
    ),
    "cpu-index": r"(?<!nightly/)\bwhl/cpu\b",
    "cuda": (
        r"(?<![\w.])\d\.\d{1,2}\.\d{1,2}\S{0,12}?\+cu(?P<packed>\d{2,3})\b"
        r"|py3\.\d{1,2}_cuda(?P<dotted>\d{1,2}\.\d)"
        r"|CUDA used to build PyTorch: (?P<told>\d{1,2}\.\d)|\bnvidia-cuda-runtime-cu(?P<major>1\d)\s"
        r"|\bpytorch-cuda[ =]+(?P<conda>\d{1,2}\.\d)"
    ),
    "built": r"version\.cuda\b|(?i:torch[^|\n]{0,12}\bcuda\b(?!\.is))",
    "collected": r"^\W{0,4}Is CUDA available: (?:No|False)\s*$",
    "cuda-none": (
        r"version\.cuda\b[`'\")]*\s*(?:[:=]|\S{1,6}\s)?\s*[`'\"]?None\b"
        r"|\btorch\b[^\n]{0,60}\bcuda\W{1,3}None\b|\bcuda\W{1,3}None\b[^\n]{0,20}\bcudnn\W{1,3}None"
    ),
    "column": r"(?i)\b(?:torch[._ ])?(?:cuda|gpu)[._ ]?(?:is_)?(?:available|avail|ok|visible)\b",
    "solved": _SOLVED,
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, only=("said", "other", "shown", "device", "solved", "none"))


@cache
def _smi_works() -> re.Pattern[str]:
    return re.compile(rf"nvidia-smi[^.\n]{{0,40}}?{source('works')}", re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts beside a GPU that torch does not see; nothing where it does, or where another device is meant."""
    if _meant(passage):
        return
    shown = values(passage)
    missing = _missing(passage, shown)
    if missing is None:
        return
    collected = "Collecting environment information" in passage.text or "Is CUDA available: " in passage.text
    complains = not passage.lesson and passage.told(says("on_cpu")) is not None
    if not (collected or passage.personal or passage.session or complains or any(passage.of(Voice.SHELL))):
        return
    yield missing.fact("availability.missing", True)
    yield from _named(passage)
    built = _build(passage, shown, missing)
    cpu = None if built is not None else _cpu_build(passage, shown)
    if cpu is not None:
        found = _pattern("cpu").search(cpu.text)
        yield cpu.fact("availability.cpu_build", found.group() if found else "torch.version.cuda is None")
    typed = commands(passage)
    newest = driver_shown.beside(passage, missing) or driver_shown.offered(passage, typed, missing)
    old = newest is not None and built is not None and _too_old(newest[1], built[0])
    line = hidden_gpus.hidden(passage, typed)
    if line is None and cpu is None and not old and _pattern("gpu").search(passage.text):
        line = hidden_gpus.chosen(passage)
    if line is not None:
        yield line.fact("availability.hidden", True)
    if cpu is None:
        for name, line in (
            ("no_driver", driver_shown.without_driver(passage, typed)),
            ("not_requested", hidden_gpus.not_requested(passage, shown)),
            ("no_instance", hidden_gpus.no_instance(passage)),
        ):
            if line is not None:
                yield line.fact(f"availability.{name}", True)
    if built is not None:
        yield built[1].fact("availability.cuda_build", built[0])
        if newest is not None and old:
            yield newest[0].fact("availability.driver_cuda", newest[1])


def _meant(passage: Passage) -> bool:
    """Is another device meant, or none, or is it over?"""
    if _pattern("other").search(passage.text):
        return True
    if passage.told(says("on_purpose")) is not None:
        return True
    if any(_pattern("solved").search(one.text) for one in passage.sentences):
        return True
    return _pattern("none").search(passage.text) is not None and passage.first(_pattern("listed")) is None


def _named(passage: Passage) -> Iterator[Fact]:
    gpu = passage.first(_pattern("gpu"))
    if gpu is not None and (named := _pattern("gpu").search(gpu.text)) is not None:
        yield gpu.fact("availability.gpu", named.group())
    elif (gpu := passage.told(_smi_works())) is not None:
        yield gpu.fact("availability.gpu", "nvidia-smi")
    board = passage.first(_pattern("board"))
    if board is not None and (named := _pattern("board").search(board.text)) is not None:
        yield board.fact("availability.board", named.group())


def _missing(passage: Passage, shown: tuple[Value, ...]) -> Line | None:
    """The line with the False of is_available(): an answer, an output of a command, or words."""
    asked = [one for one in shown if _pattern("asked").search(one.expression)]
    refused = next((one.line for one in asked if one.text in ("False", "cpu")), None)
    if refused is not None:
        return refused
    for line in passage.lines:
        if _pattern("said").search(line.text):
            return line
        told = _pattern("shown").search(line.text) or _pattern("banner").search(line.text)
        if told is not None and line.voice is not Voice.CODE:
            return line
    if (below := _below(passage) or _in_table(passage)) is not None:
        return below
    if any(one.text in ("True", "cuda") for one in asked):
        return None
    built = _build(passage, shown, None)
    newest = driver_shown.offered(passage, ()) if built is not None else None
    if built is not None and newest is not None and _too_old(newest[1], built[0]):
        collected = passage.first(_pattern("collected"))
        if collected is not None:
            return collected
    if not passage.personal:  # it is said of a session at least
        typed = next(passage.of(Voice.SHELL), None)
        return passage.first(_pattern("device"), Voice.SAID) if typed is not None else None
    device = passage.first(_pattern("device"), Voice.PRINTED, Voice.SAID)
    return device or passage.told(says("on_cpu"))


def _below(passage: Passage) -> Line | None:
    """A line with True or False below one of code that asks; other programs may print in between."""
    for line in passage.lines:
        if line.voice not in (Voice.TYPED, Voice.CODE) or not _pattern("asked").search(line.text):
            continue
        for below in passage.lines[line.at + 1 : line.at + 6]:
            if below.voice is Voice.PRINTED and (words := re.findall(r"\b(?:True|False)\b", below.text)):
                if words[0] == "False":
                    return below
                break
    return None


def _in_table(passage: Passage) -> Line | None:
    """A row with False in the column of a table that tells whether CUDA is available."""
    head: list[str] = []
    for line in passage.lines:
        row = cells(line.text)
        if head and len(row) == len(head):
            named = zip(head, row, strict=True)
            if any(_pattern("column").search(name) and value == "False" for name, value in named):
                return line
        elif row and _pattern("column").search(line.text):
            head = row
    return None


def _cpu_build(passage: Passage, shown: tuple[Value, ...]) -> Line | None:
    none = next((one.line for one in _versions(shown) if one.text == "None"), None)
    return (
        passage.first(_pattern("cpu"))
        or passage.first(_pattern("cuda-none"))
        or none
        or passage.first(_pattern("cpu-index"))
    )


def _build(passage: Passage, shown: tuple[Value, ...], missing: Line | None) -> tuple[str, Line] | None:
    """The CUDA version of the torch that sees no GPU: on its own line, else the newest that is named."""
    told: list[tuple[str, Line]] = []
    for line in passage.lines:
        for found in _pattern("cuda").finditer(line.text):
            packed = found.group("packed")
            dotted = found.group("dotted") or found.group("told") or found.group("conda")
            whole = f"{packed[:-1]}.{packed[-1]}" if packed else f"{found.group('major')}.0"
            told.append((dotted or whole, line))
    told += [(one.text, one.line) for one in _versions(shown) if one.text[:1].isdigit()]
    told += _told_in_column(passage, missing) if missing is not None and not told else []
    mine = [one for one in told if missing is not None and one[1].at == missing.at]
    return max(mine or told, key=lambda one: _version(one[0]), default=None)


def _told_in_column(passage: Passage, missing: Line) -> list[tuple[str, Line]]:
    """The version of the machine without the GPU, where several stand side by side."""
    found = driver_shown.in_column(passage, missing, _pattern("built"))
    return [(found[1], found[0])] if found is not None and re.fullmatch(r"\d{1,2}\.\d", found[1]) else []


def _versions(shown: tuple[Value, ...]) -> Iterator[Value]:
    return (one for one in shown if one.expression.endswith("version.cuda"))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _too_old(offered: str, built: str) -> bool:
    """Within one major version, from 11 on, an older driver is enough (CUDA minor version compatibility)."""
    its, mine = _version(offered), _version(built)
    return its[0] < mine[0] or (its < mine and mine[0] < 11)
