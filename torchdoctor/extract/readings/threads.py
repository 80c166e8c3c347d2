"""One OpenMP thread, and work on the CPU that takes far longer than it does with more of them.

Known forms: torchrun's banner, ``torch.get_num_threads()``, OMP_NUM_THREADS=1; then times or rates of the
same work with and without the launcher, or with one thread and with several.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import rates, seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "threads"

FACTS: dict[str, str] = {
    "threads.one": "bool: the process has one OpenMP thread, by a banner, a setting or what torch says",
    "threads.slower": "float: how many times longer the work takes with one thread than with several",
}

LEAST = 2.0

_PATTERNS = {
    "one": (
        r"environment variable for each process to be 1 in default"
        r"|get_num_threads\(\)\W{0,12}(?:(?:prints?|is|returns?|gives?|says?)\W{1,4})?1\b(?![.\d])"
        r"|OMP_NUM_THREADS['\"\]`]*\s(?:(?:is|was|gets?|being) )?(?:set )?to 1\b(?![.\d])"
        r"|OMP_NUM_THREADS['\"\]]*\s?[=:]\s?['\"]?1\b(?![.\d])"
        r"|(?:num_threads|omp_get_max_threads\(\)|threads)\s*[=:]\s*1\b(?![.\d])|num[ _]threads 1\b(?![.\d])"
        r"|\b(?:one|1|a single) (?:OpenMP |CPU |intra-op )?thread\b"
    ),
    # in words: "four times slower", "is 3x slower"
    "factor": (
        r"\b(?P<factor>two|three|four|five|six|eight|ten|\d{1,2}(?:\.\d)?)(?: times|x| ?\u00d7) (?:as )?"
        r"(?:slow|long)"
    ),
    "query": r"get_num_threads\(\)|environ.{0,8}OMP_NUM_THREADS",
    "launched": (
        r"torchrun|torch\.distributed|accelerate launch|deepspeed|mpirun|mpiexec|srun|sbatch|\blaunched?\b"
        r"|\blauncher|\bDDP\b|docker|kubernetes|slurm"
    ),
    # words beside the figure of the run with more threads
    "free": (
        r"\balone\b|plain python|python (?:alone|train|main|run)|\bpython\b|without (?:torchrun|the launcher"
        r"|accelerate"
        r"|deepspeed|mpirun|srun|slurm|launch|ddp|distributed)|single[ -]process"
        r"|one process|directly|standalone|no launcher|OMP_NUM_THREADS\s?[=:]\s?(?:[2-9]|\d\d)"
        r"|set_num_threads\((?:[2-9]|\d\d)"
        r"|(?:num_threads|threads)\s*[=:]?\s*(?:[2-9]|\d\d)\b|\b(?:[2-9]|\d\d) threads|by hand|laptop"
        r"|workstation|desktop|\bmy (?:pc|mac|machine)\b|locally|login node|other (?:machine|node|server)"
    ),
    "tied": (
        r"torchrun|accelerate|torch\.distributed|launch|deepspeed|mpirun|srun"
        r"|OMP_NUM_THREADS\s?[=:]\s?1\b(?!\d)"
        r"|set_num_threads\(1\)|num_threads\W{1,4}1\b(?!\d)|\b1 thread|one thread|\bDDP\b"
    ),
    # work that OpenMP's threads do
    "cpu": (
        r"\bcpus?\b|preprocess|augment|tokeni[sz]|spectrogram|\bmel\b|\bsvd\b|numpy|pandas|kornia|offload"
        r"|resiz"
        r"|feature extraction|data ?load|parsing"
    ),
    "several": (
        r"(?:OMP_NUM_THREADS|num_threads|threads)\W{1,3}(?:[2-9]|\d\d)\b|\b(?:[2-9]|\d\d) (?:cpu "
        r"|openmp )?threads"
        r"|set_num_threads\((?:[2-9]|\d\d)"
    ),
    # what divides the figures of two runs that stand in one line
    "parts": (
        r"[,;()\u2192]|\s(?:vs\.?|but|while|whereas|against|instead of|compared (?:to|with)|and|to|->)\s"
        r"|(?<!\.)\. (?=[A-Z])"
    ),
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a run with one thread that somebody finds slow; nothing where only a setting is printed."""
    one = _one(passage)
    if one is None or not (passage.personal or passage.session):
        return
    yield one.fact("threads.one", True)
    if not _pattern("cpu").search(passage.text):
        return  # a step of a GPU is slower for other reasons
    if passage.told(says("slow")) is None and not _pattern("launched").search(passage.text):
        return
    slower = _slower(passage) or _told(passage)
    if slower is not None:
        factor, line = slower
        yield line.fact("threads.slower", round(factor, 1))


def _one(passage: Passage) -> Line | None:
    for line in passage.lines:
        if line.text.lstrip()[:1] == "|":
            continue
        if line.voice is Voice.TYPED and _pattern("query").search(line.text):
            answer = next(passage.answers(line, 1), None)
            if answer is not None and answer.text.strip().strip("'\"") == "1":
                return answer
        elif _pattern("one").search(line.text):
            return line
    return None


def _slower(passage: Passage) -> tuple[float, Line] | None:
    """The figures of the tied and of the free run, as a factor, with the line of the slow one."""
    for measure, inverse in ((seconds, False), (rates, True)):
        tied: list[tuple[float, Line]] = []
        free: list[float] = []
        command = ""
        for line in passage.lines:
            if line.voice is Voice.SHELL:
                command = line.text
            if line.voice in (Voice.CODE, Voice.TYPED, Voice.SHELL) or line.text.lstrip()[:1] == "|":
                continue
            for part in _pattern("parts").split(line.text):
                for figure in measure(part):
                    value = 1 / figure.value if inverse and figure.value else figure.value
                    if _is_free(part, figure.start, command):
                        free.append(value)
                    else:
                        tied.append((value, line))
        best = _contrast(tied, free)
        if best is not None:
            return best
    return None


_WORDS = {"two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "eight": 8.0, "ten": 10.0}


def _told(passage: Passage) -> tuple[float, Line] | None:
    """A factor in words, of work that is compared with that of a run without the launcher."""
    if not (_pattern("launched").search(passage.text) and _pattern("free").search(passage.text)):
        return None
    for line in passage.of(Voice.SAID):
        found = _pattern("factor").search(line.text)
        if found is not None:
            word = found.group("factor").lower()
            factor = _WORDS.get(word) or float(word)
            return (factor, line) if factor >= LEAST else None
    return None


def _is_free(around: str, at: int, command: str) -> bool:
    """Which run a figure is of: a number of threads decides, then the nearest words, then the command."""
    if _pattern("several").search(around):
        return True
    nearest: tuple[int, bool] | None = None
    for name, is_free in (("free", True), ("tied", False)):
        for found in _pattern(name).finditer(around):
            distance = at - found.end() if found.end() <= at else found.start() - at
            if nearest is None or distance < nearest[0]:
                nearest = (distance, is_free)
    if nearest is not None:
        return nearest[1]
    return bool(command) and not _pattern("tied").search(command) and bool(_pattern("free").search(command))


def _contrast(tied: list[tuple[float, Line]], free: list[float]) -> tuple[float, Line] | None:
    if len(free) != 1 or not tied or free[0] <= 0:
        return None  # several figures with more threads are a benchmark of their number
    value, line = max(tied, key=lambda item: item[0])
    factor = value / free[0]
    return (factor, line) if LEAST <= factor <= 200 else None
