"""``torch.cuda.is_available()`` that is False, and what a text shows of build, driver and variable."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "availability"

FACTS: dict[str, str] = {
    "availability.missing": "bool: torch.cuda.is_available() is shown or said to be False",
    "availability.gpu": "str: NVIDIA GPU that the text names",
    "availability.board": "str: the Jetson board that the text names",
    "availability.cpu_build": "str: what shows that this torch was built without CUDA",
    "availability.cuda_build": "str: CUDA version that this torch was built for",
    "availability.no_smi": "bool: nvidia-smi is not there either",
    "availability.hidden": "bool: CUDA_VISIBLE_DEVICES is shown to be empty or -1",
    "availability.driver_cuda": "str: newest CUDA version of a driver that is too old for this torch",
}

# The first driver of each CUDA version, up to which an older driver was no good for a newer run-time; later
# ones run within their major version.
_FIRST_DRIVERS = (
    (384.81, "9.0"), (390.46, "9.1"), (396.26, "9.2"), (410.48, "10.0"), (418.39, "10.1"), (440.33, "10.2"),
    (450.36, "11.0"), (525.60, "12.0"), (580.65, "13.0"),
)  # fmt: skip

_PATTERNS = {
    "asked": r"cuda\.is_available\(\)",
    "said": (
        r"is_available\(?\)?[`'\"]*\s*(?:(?:always |still |just |only )?(?:is|to|returns?|gives?|says?"
        r"|prints?"
        r"|shows?|=+>?|->|:)\s*)+[`'\"]*"
        r"(?:False|false)\b|is_available\(\)[^.\n]{0,60}\b[Tt]rue\b[.,;] (?:[Hh]owever|[Bb]ut)\b"
        r"[^.\n]{0,20}\bnot\b|\b(?:cuda|gpu) is (?:still )?not available\b"
    ),
    "gpu": (
        r"\b(?:(?:GeForce )?[RG]TX ?(?:A?\d{4}|\d{3,4})(?: ?Ti| ?Super)?|Tesla [A-Z]\d{1,3}|Quadro \w{2,6}"
        r"|TITAN \w{1,4}|Jetson (?:AGX |Orin|Xavier|Nano|Thor|TX\d)"
        r"|[AHLVTP](?:100|200|40S?|10G?|30|4)\b|NVIDIA-SMI \d|nvidia-smi (?:works|shows|is fine|lists))"
    ),
    "board": r"\bJetson (?:AGX |Xavier |Orin )?(?:AGX|Orin|Xavier|Nano|NX|Thor|TX[12])\b",
    "other": (
        r"\bmps\b|\bM[1-4]\b (?:Mac|Pro|Max|chip)|MacBook|\brocm\b(?! used to build PyTorch: N/A)"
        r"|\bhip\b(?! runtime version: N/A)|AMD Radeon|only need (?:the )?cpu"
        r"|no gpu\b|without (?:a )?gpu"
    ),
    "cpu": (
        r"(?<![\w.])\d\.\d{1,2}(?:\.\d{1,2})?(?:\.post\d)?\+cpu\b|\bcpu_py3\w*|py3\.\d{1,2}_cpu_\w*"
        r"|\bcpuonly\b"
    ),
    "cuda": (
        r"(?<![\w.])\d\.\d{1,2}\.\d{1,2}\+cu(?P<packed>\d{2,3})\b|py3\.\d{1,2}_cuda(?P<dotted>\d{1,2}\.\d)"
        r"|CUDA used to build PyTorch: (?P<told>\d{1,2}\.\d)"
    ),
    "collected": r"^\W{0,4}Is CUDA available: (?:No|False)\s*$",
    "cuda-none": r"version\.cuda\)?\s*[:=]?\s*None\b",
    "asked-cuda": r"version\.cuda\b",
    "hidden": r"CUDA_VISIBLE_DEVICES['\"\]\)]{0,3}\s*[=:]\s*(?:''|\"\"|-1\b|'-1'|\"-1\"|$)",
    "no-smi": (
        r"nvidia-smi['`]?: (?:command )?not found|command not found: nvidia-smi"
        r"|nvidia-smi['`]? (?:is not|isn't) (?:supported|found|available|installed|there|working)"
        r"|nvidia-smi['`]? (?:does not|doesn't|did not|didn't) (?:work|exist|run)"
        r"|'nvidia-smi' is not recognized|executable file not found in \$PATH.{0,40}nvidia-smi"
        r"|\"nvidia-smi\": executable file not found"
    ),
    "driver": r"CUDA Version: (?P<version>\d{1,2}\.\d)|Nvidia driver version: (?P<number>\d{3}\.\d{1,3})",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE if name in ("said", "other") else 0)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts beside a GPU that torch does not see; nothing where it does, or where another device is meant."""
    missing = _missing(passage)
    if missing is None or _pattern("other").search(passage.text):
        return
    collected = "Collecting environment information" in passage.text or "Is CUDA available: " in passage.text
    if not (collected or passage.personal or passage.session or any(passage.of(Voice.SHELL))):
        return
    yield missing.fact("availability.missing", True)
    gpu = passage.first(_pattern("gpu"))
    if gpu is not None and (named := _pattern("gpu").search(gpu.text)) is not None:
        yield gpu.fact("availability.gpu", named.group())
    board = passage.first(_pattern("board"))
    if board is not None and (named := _pattern("board").search(board.text)) is not None:
        yield board.fact("availability.board", named.group())
    built = passage.first(_pattern("cuda"))
    cpu = passage.first(_pattern("cpu")) or passage.first(_pattern("cuda-none")) or _answered_none(passage)
    if built is None and cpu is not None:
        found = _pattern("cpu").search(cpu.text)
        yield cpu.fact("availability.cpu_build", found.group() if found else "torch.version.cuda is None")
    hidden = passage.first(_pattern("hidden")) or _shown_empty(passage)
    if hidden is not None:
        yield hidden.fact("availability.hidden", True)
    without = passage.first(_pattern("no-smi"))
    if without is not None and cpu is None:
        yield without.fact("availability.no_smi", True)
    if built is not None:
        yield from _built_for(passage, built)


def _missing(passage: Passage) -> Line | None:
    """The line with the False of is_available(): an answer, an output of a command, or words."""
    for line in passage.lines:
        if _pattern("said").search(line.text):
            return line
        if line.voice not in (Voice.TYPED, Voice.CODE) or not _pattern("asked").search(line.text):
            continue
        for below in passage.lines[line.at + 1 : line.at + 6]:
            if below.voice is Voice.PRINTED and (words := re.findall(r"\b(?:True|False)\b", below.text)):
                if words[0] == "False":
                    return below
                break
    built = passage.first(_pattern("cuda"))
    if built is not None and any(
        fact.name == "availability.driver_cuda" for fact in _built_for(passage, built)
    ):
        return passage.first(_pattern("collected"))
    return None


def _answered_none(passage: Passage) -> Line | None:
    for line in passage.of(Voice.TYPED):
        if _pattern("asked-cuda").search(line.text):
            answer = next(passage.answers(line, 1), None)
            if answer is not None and answer.text.strip() in ("None", "(None,)"):
                return answer
    return None


def _shown_empty(passage: Passage) -> Line | None:
    """The answer to a question for the variable, or to echo, where it hides all GPUs."""
    for line in passage.of(Voice.TYPED, Voice.SHELL):
        _, variable, rest = line.text.partition("CUDA_VISIBLE_DEVICES")
        if variable and "=" not in rest:
            for below in passage.lines[line.at + 1 : line.at + 2]:
                if below.voice is Voice.PRINTED and below.text.strip(" '\"") in ("", "-1"):
                    return below
    return None


def _built_for(passage: Passage, line: Line) -> Iterator[Fact]:
    found = _pattern("cuda").search(line.text)
    if found is None:
        return
    packed = found.group("packed")
    version = f"{packed[:-1]}.{packed[-1]}" if packed else found.group("dotted") or found.group("told")
    yield line.fact("availability.cuda_build", version)
    driver = passage.first(_pattern("driver"))
    newest = _offered(driver) if driver is not None else None
    # within one major version, 11 and later, an older driver is enough (CUDA minor version compatibility)
    if driver is not None and newest is not None:
        mine, its = float(newest), float(version)
        if int(mine) < int(its) or (mine < its and int(its) < 11):
            yield driver.fact("availability.driver_cuda", newest)


def _offered(driver: Line) -> str | None:
    """The newest CUDA version of the driver that the line names, by nvidia-smi or by its own version."""
    told = _pattern("driver").search(driver.text)
    if told is None or told.group("version"):
        return told.group("version") if told else None
    number = float(told.group("number"))
    return next((cuda for first, cuda in reversed(_FIRST_DRIVERS) if first <= number), None)
