"""One OpenMP thread, and work on the CPU that takes far longer than it does with more of them.

Known forms: torchrun's banner, ``torch.get_num_threads()``, OMP_NUM_THREADS=1; then times or rates of the
same work with and without the launcher, or with one thread and with several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.figures import rates, seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.rank_figures import cells
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "threads"

FACTS: dict[str, str] = {
    "threads.one": "bool: the process has one OpenMP thread, by a banner, a setting or what torch says",
    "threads.slower": "float: how many times longer the work takes with one thread than with several",
    "threads.one_core": "bool: somebody finds slow work on the CPU that keeps one core of each process busy",
}

LEAST = 2.0
MOST = 200.0
ALIKE = 1.5  # times: figures of one run, step by step
LABEL = 40
NAMED = 10  # letters that two labels have in common at their end
BESIDE = 40  # characters between two figures that are set against each other

_PATTERNS = {
    "one": (
        r"environment variable for each process to be 1 in default"
        r"|get_num_threads\(\)\W{0,12}(?:\w{1,12}\W{1,4}){0,2}?1\b(?![.\d])"
        r"|OMP_NUM_THREADS['\"\]`]*\s(?:(?:is|was|gets?|being) )?(?:set )?to 1\b(?![.\d])"
        r"|OMP_NUM_THREADS['\"\]]*\s?[=:]\s?['\"]?1\b(?![.\d])"
        r"|(?:num_threads|omp_get_max_threads\(\)|threads)\s*[=:]\s*1\b(?![.\d])|num[ _]threads 1\b(?![.\d])"
        r"|\b(?:one|1|a single) (?:OpenMP |CPU |intra-op )?thread\b"
    ),
    # in words: "four times slower", "is 3x slower"
    "factor": (
        r"(?<![\w.])(?P<factor>two|three|four|five|six|eight|ten|zwei|drei|vier|f\u00fcnf|sechs|acht|zehn"
        r"|\d{1,2}(?:[.,]\d)?)"
        r"(?: times|x|-?fold| ?\u00d7|[ -]?mal| fois| veces| vezes| volte| \u0440\u0430\u0437\w?| keer| kat"
        r"| ?\u500d| ?\ubc30)"
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
        r"|one process|directly|standalone|(?:no|instead of) (?:the )?(?:launcher|torchrun|accelerate)"
        r"|OMP_NUM_THREADS\s?[=:]\s?(?:[2-9]|\d\d)"
        r"|set_num_threads\((?:[2-9]|\d\d)"
        r"|(?:num_threads|threads)\s*[=:]?\s*(?:[2-9]|\d\d)\b|\b(?:[2-9]|\d\d) threads|by hand|laptop"
        r"|(?:ohne|sans|sin|sem|senza|zonder|bez|\u0431\u0435\u0437) (?:den |le |el |o |il |de )?(?:torchrun"
        r"|launcher|lanceur|lanzador|accelerate|ddp)"
        r"|\u4e0d\u7528 ?(?:torchrun|ddp|accelerate)|\u76f4\u63a5 ?(?:\u7528 ?|\u8dd1 ?)?python"
        r"|\u5355\u8fdb\u7a0b|torchrun ?(?:\u306a\u3057|\uc5c6\uc774)|\u5358\u4f53"
        r"|von hand|direkt|directement|directamente|diretamente|direttamente"
        r"|\u043d\u0430\u043f\u0440\u044f\u043c\u0443\u044e"
        r"|workstation|desktop|\bmy (?:pc|mac|machine)\b|locally|login node|other (?:machine|node|server)"
    ),
    "tied": (
        r"torchrun|accelerate|torch\.distributed|launch|deepspeed|mpirun|srun"
        r"|OMP_NUM_THREADS\s?[=:]\s?1\b(?!\d)"
        r"|set_num_threads\(1\)|num_threads\W{1,4}1\b(?!\d)|\b1 thread|one thread|\bDDP\b"
    ),
    # work that OpenMP's threads do
    "cpu": (
        r"(?<![a-z])cpus?(?![a-z])|preprocess|augment|tokeni[sz]|spectrogram|\bmel\b|\bsvd\b|numpy|pandas|kornia|offload"
        r"|resiz"
        r"|feature extraction|data ?load|parsing"
    ),
    "several": (
        r"(?:OMP_NUM_THREADS|num_threads|threads)\W{1,3}(?:[2-9]|\d\d)\b|\b(?:[2-9]|\d\d) (?:cpu "
        r"|openmp )?threads"
        r"|set_num_threads\((?:[2-9]|\d\d)"
    ),
    # what a line says of the threads of the run that it begins
    "threads-now": (
        r"(?:get_num_threads\(\)|OMP_NUM_THREADS|omp_get_max_threads\(\)|\bnum_threads|\bthreads)"
        r"\W{1,4}(?P<number>\d{1,3})\b(?!\.\d)"
    ),
    "column": r"OMP_NUM_THREADS|num_threads|^\W*(?:omp )?threads\W*$",
    "left-out": (
        r"unset|not set|default|none|auto|nicht gesetzt|non d\u00e9fini|sin definir|^[-\u2013\u2014]$"
        r"|\u672a\u8bbe|\u672a\u8a2d"
    ),
    # htop and top, in words
    "one-core": (
        r"\b(?:only|just|exactly) (?:one|1|a single) (?:cpu |physical )?(?:core|thread|cpu)\b"
        r"|\b(?:one|1|a single) (?:cpu )?core (?:each|per|is|busy|at|of)|\bsingle core\b"
        r"|(?<!\d)(?:100|99) ?% (?:cpu )?(?:each|per (?:process|rank)|pro Prozess|je Prozess|chacun|cada"
        r"|ciascuno)"
        r"|(?:each|every|per) (?:process|rank|worker)[^.\n]{0,30}(?<!\d)(?:100|99) ?%|all idle (?:except|but)"
        r"|\u6bcf\u4e2a? ?(?:\u8fdb\u7a0b|rank)[^\n]{0,8}100 ?%"
        r"|\u5404\u30d7\u30ed\u30bb\u30b9[^\n]{0,8}100 ?%"
        r"|\b(?:nur|genau) (?:ein(?:em|en)?|1) (?:Kern|Core|CPU)|un seul c(?:\u0153|oe)ur"
        r"|un solo n[u\u00fa]cleo"
        r"|um s[o\u00f3] n[u\u00fa]cleo|um [u\u00fa]nico n[u\u00fa]cleo|un solo core"
        r"|\u043e\u0434\u043d\u043e \u044f\u0434\u0440\u043e|\u53ea(?:\u7528|\u6709|\u5360)[^\n]{0,6}(?:1"
        r"|\u4e00)\u4e2a?(?:\u6838|cpu|\u7ebf\u7a0b)"
        r"|\u5355\u6838|1\u30b3\u30a2(?:\u3057\u304b|\u3060\u3051|\u306e\u307f)"
        r"|\ucf54\uc5b4 ?(?:\ud558\ub098|1\uac1c)\ub9cc"
    ),
    "against": r"\b(?:vs\.?|versus|against|but|gegen|statt|contre|frente a|contro|mot)(?!\w)|->|\u2192",
    "before": (
        r"\b(?:before|previously|formerly|earlier|vorher|fr\u00fcher|davor|avant|antes|prima|eerst"
        r"|wcze\u015bniej|\u0440\u0430\u043d\u044c\u0448\u0435"
        r"|\u0434\u043e \u044d\u0442\u043e\u0433\u043e)\W{1,3}(?:\w{1,6}\W{1,2}){0,2}$|(?:\u4e4b\u524d"
        r"|\u4ee5\u524d|\u539f\u6765|\u4ee5\u524d\u306f)\W{0,3}\w{0,6}\W{0,2}$"
    ),
    "without": (
        r"\b(?:without|ohne|sans|sin|sem|senza|zonder|bez|\u0431\u0435\u0437)\b|\u4e0d\u7528|\u306a\u3057"
        r"|\uc5c6\uc774"
    ),
    # what divides the figures of two runs that stand in one line
    "parts": (
        r"(?<!\w)\(|\)(?! ?\d)|[,;\u2192\uff0c\u3002\uff1b\u3001]"
        r"|\s(?:vs\.?|but|while|whereas|against|instead of(?! (?:the )?(?:torchrun|launcher|accelerate))"
        r"|compared (?:to|with)|and|to|->)\s"
        r"|(?<!\.)\. (?=[A-Z])"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a run with one thread that somebody finds slow; nothing where only a setting is printed."""
    passage = passage.spaced
    one = _one(passage)
    if one is None:
        return
    spoken = stall.speaks(passage) or passage.session or passage.asked
    if not spoken and not _pattern("free").search(passage.text):
        return
    yield one.fact("threads.one", True)
    if not _pattern("cpu").search(passage.text):
        return  # a step of a GPU is slower for other reasons
    if passage.told(says("slow")) is None and not _pattern("launched").search(passage.text):
        return
    slower = _by_table(passage) or _slower(passage, spoken) or _beside(passage) or _told(passage)
    if slower is not None:
        factor, line = slower
        yield line.fact("threads.slower", round(factor, 1))
    core = passage.first(_pattern("one-core"), Voice.SAID, Voice.PRINTED)
    slow = passage.told(says("slow"))
    if core is not None and slow is not None and not stall.over(passage):
        yield core.fact("threads.one_core", True)


def _one(passage: Passage) -> Line | None:
    for row in _rows(passage):
        if row.threads == 1:
            return row.line
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


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of runs; None: the number of threads was left to the program."""

    threads: int | None
    times: tuple[float, ...]
    line: Line


def _rows(passage: Passage) -> Iterator[Row]:
    """Rows of a table with a column of threads: in seconds, and per second as their inverse."""
    column = width = -1
    for line in passage.of(Voice.PRINTED, Voice.SAID, Voice.CODE):
        row = cells(line.text)
        head = next((at for at, cell in enumerate(row) if _pattern("column").search(cell)), None)
        if head is not None and len(row) >= 3 and not any(cell.isdecimal() for cell in row):
            column, width = head, len(row)
        elif column >= 0 and len(row) == width and (told := row[column].strip("`* ")):
            threads = int(told) if told.isdecimal() else None
            rest = " ; ".join(cell for at, cell in enumerate(row) if at != column)
            times = [item.value for item in seconds(rest)] or [
                1 / item.value for item in rates(rest) if item.value
            ]
            if times and (threads is not None or _pattern("left-out").search(told)):
                yield Row(threads, tuple(times), line)


def _by_table(passage: Passage) -> tuple[float, Line] | None:
    rows = list(_rows(passage))
    tied = [row for row in rows if row.threads == 1]
    free = [row for row in rows if row.threads != 1]
    if len(tied) != 1 or len(free) != 1 or len(tied[0].times) != len(free[0].times):
        return None  # more of them are a benchmark of their number
    factor = max(slow / quick for slow, quick in zip(tied[0].times, free[0].times, strict=True) if quick)
    return (factor, tied[0].line) if LEAST <= factor <= MOST else None


@dataclass(frozen=True, slots=True)
class Taken:
    """What some work took, as seconds or their inverse; ``label`` says which work, in small letters."""

    label: str
    value: float
    line: Line


def _beside(passage: Passage) -> tuple[float, Line] | None:
    """Two times set against each other: ``310 ms alone vs 1.61 s under the launcher``."""
    for line in (*passage.sentences, *passage.of(Voice.PRINTED)):
        figures = list(seconds(line.text))
        for one, two in pairwise(figures):
            between, behind = line.text[one.end : two.start], line.text[two.end : two.end + BESIDE]
            if len(between) > BESIDE or not _pattern("against").search(between):
                continue
            for quick, slow, free, tied in ((one, two, between, behind), (two, one, behind, between)):
                if _pattern("free").search(free) and _pattern("tied").search(tied) and quick.value > 0:
                    factor = slow.value / quick.value
                    if LEAST <= factor <= MOST and not _pattern("tied").search(free):
                        return factor, line
    return None


def _slower(passage: Passage, spoken: bool) -> tuple[float, Line] | None:
    """The figures of the tied and of the free run, as a factor, with the line of the slow one.

    In a log in which nobody speaks they must be of the same work by name, or of all there is.
    """
    for measure, inverse in ((seconds, False), (rates, True)):
        tied: list[Taken] = []
        free: list[Taken] = []
        command = ""
        run: bool | None = None  # whether the lines below are of a free run, by a head above them
        for line in passage.lines:
            if line.voice is Voice.SHELL:
                command, run = line.text, None
            run = _begins(line.text, run)
            first = line.text.lstrip()[:1]
            if (line.voice in (Voice.CODE, Voice.TYPED, Voice.SHELL) and first != "#") or first == "|":
                continue
            here = (
                run  # "without torchrun, plain python, 640 samples/s": the words stand in a part of their own
            )
            for part in _pattern("parts").split(line.text):
                end = 0
                here = _begins(part, here)
                for figure in measure(part):
                    value = 1 / figure.value if inverse and figure.value else figure.value
                    label = re.sub(r"[\W\d_]+", " ", part[end : figure.start]).strip().lower()[-LABEL:]
                    end = figure.end
                    is_free = _is_free(part, figure.start, command, here)
                    (free if is_free else tied).append(Taken(label, value, line))
        best = _contrast(tied, free, spoken)
        if best is not None:
            return best
    return None


def _begins(text: str, run: bool | None) -> bool | None:
    """Does a line say of which run those below it are? A number of threads does, or a head."""
    if (now := _pattern("threads-now").search(text)) is not None:
        return int(now.group("number")) > 1
    if next(seconds(text), None) is not None or next(rates(text), None) is not None:
        return run
    free, tied = _pattern("free").search(text), _pattern("tied").search(text)
    names = _pattern("without").search(text)
    if free is not None and (tied is None or names):
        return True
    return False if tied is not None and free is None else run


_WORDS = {
    "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "eight": 8.0, "ten": 10.0,
    "zwei": 2.0, "drei": 3.0, "vier": 4.0, "f\u00fcnf": 5.0, "sechs": 6.0, "acht": 8.0, "zehn": 10.0,
}  # fmt: skip


def _told(passage: Passage) -> tuple[float, Line] | None:
    """A factor in words, of work that is compared with that of a run without the launcher."""
    if not (_pattern("launched").search(passage.text) and _pattern("free").search(passage.text)):
        return None
    for line in passage.sentences:
        found = _pattern("factor").search(line.text)
        if found is not None and says("slow").search(line.text):
            word = found.group("factor").lower().replace(",", ".")
            factor = _WORDS.get(word) or float(word)
            return (factor, line) if factor >= LEAST else None
    return None


def _is_free(around: str, at: int, command: str, run: bool | None) -> bool:
    """Which run a figure is of: a number of threads decides, then the nearest words, a head, the command."""
    if _pattern("several").search(around):
        return True
    if _pattern("before").search(around[:at]):
        return True
    nearest: tuple[int, bool] | None = None
    for name, is_free in (("free", True), ("tied", False)):
        for found in _pattern(name).finditer(around):
            distance = at - found.end() if found.end() <= at else found.start() - at
            if nearest is None or distance < nearest[0]:
                nearest = (distance, is_free)
    if nearest is not None:
        return nearest[1]
    if run is not None:
        return run
    return bool(command) and not _pattern("tied").search(command) and bool(_pattern("free").search(command))


def _alike(one: str, two: str) -> bool:
    """The same work, whatever each line says before it names it."""
    if one == two:
        return one != ""
    common: list[str] = []
    for mine, other in zip(reversed(one.split()), reversed(two.split()), strict=False):
        if mine != other:
            break
        common.append(mine)
    return len(common) >= 2 and len(" ".join(common)) >= NAMED


def _contrast(tied: list[Taken], free: list[Taken], spoken: bool) -> tuple[float, Line] | None:
    best: tuple[float, Line] | None = None
    for slow in tied:
        quick = [one.value for one in free if _alike(one.label, slow.label) and one.value > 0]
        if not quick or max(quick) > ALIKE * min(quick):
            continue  # unlike figures with more threads are a benchmark of their number
        factor = slow.value / min(quick)
        if LEAST <= factor <= MOST and (best is None or factor > best[0]):
            best = factor, slow.line
    one_work = spoken or len({taken.label for taken in tied}) == 1
    if best is not None or not one_work or len(free) != 1 or not tied or free[0].value <= 0:
        return best
    most = max(tied, key=lambda item: item.value)
    factor = most.value / free[0].value
    return (factor, most.line) if LEAST <= factor <= MOST else None
