"""Prefixes that no list knows: learned from what stands behind them, or from what every line begins with."""

from __future__ import annotations

import re
from itertools import pairwise

from torchdoctor.intake.times import ANY
from torchdoctor.patterns import pattern

_LEVEL = r"\b(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL|TRACE|NOTICE)\b"
# Lines that begin so are alike without having a prefix.
_NO_TAG = (
    r"(?:epoch|step|iter(?:ation)?|train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|eval|info|warn(?:ing)?|error|debug|"
    r"file|loading|downloading|loss|batch|ep|traceback|at|in|import|from|fetch|https?|rank)\b"
)
_QUOTE_MARKS = (">", ">>", "│", "|>", ">|")
_FEW = 5
_RANKS = 4096
_RISING = 80  # lines with numbers that only rise: a count of lines, or as many ranks in their order
_NAMES = 1024


class Shape:
    """A learned prefix; prefixes that differ from it only in numbers match, too."""

    __slots__ = ("counting", "last", "lines", "names", "pattern", "rising", "small", "tag")

    def __init__(self, expression: str, tag: bool = True) -> None:
        self.pattern = re.compile(expression)
        self.tag = tag  # False: the prefix stays in the text of plain lines
        self.names: set[str] = set()
        self.lines = 0
        self.counting = False  # its numbers change from line to line: they name no process
        self.rising = self.small = True
        self.last: tuple[int, ...] = ()

    def identity(self, prefix: str) -> str:
        """The part that tells one process from another; numbers that change with every line are no names."""
        name = pattern(ANY).sub("", prefix)
        name = pattern(r"[\w./-]+\.(?:py|cc|cpp|go|rs):\d+|\d+\.\d+").sub("", name)
        name = pattern(_LEVEL).sub("", name).strip(" \t:|>[](){}<-#│")
        if not self.counting:
            self.lines += 1
            if len(self.names) < _NAMES:
                self.names.add(name)
            numbers = tuple(int(found[:9]) for found in pattern(r"\d+").findall(name))
            self.rising = self.rising and numbers > self.last
            self.small = self.small and all(number < _RANKS for number in numbers)
            self.last = numbers
            many = self.lines >= 8 and len(self.names) * 2 > self.lines
            # small numbers in any order may be ranks, of which each one speaks again
            wait = self.small and self.lines < (_RISING if self.rising else _NAMES)
            self.counting = many and not wait
        return pattern(r"\d+").sub("", name) if self.counting else name


def shape_of(prefix: str, tag: bool = True) -> Shape:
    """The shape of one prefix."""
    expression = pattern(r"\d+").sub(r"\\d+", re.escape(prefix))
    if prefix.endswith(" ") and prefix.strip():
        expression = expression.removesuffix("\\ ") + "(?: |$)"
    return Shape(expression, tag)


def common_shape(lines: list[str]) -> Shape | None:
    """The shape with which nearly all lines begin, when different things stand behind it; else None."""
    lines = [line for line in lines if line and not line.isspace()]
    few = len(lines) // 20
    if len(lines) < _FEW:
        return None
    if all(line[0] == "\t" for line in lines) and not any(_is_edge(line.strip()) for line in lines):
        return Shape("\t", tag=False)
    indents = sorted(len(line) - len(line.lstrip(" ")) for line in lines)
    margin = " " * indents[few]
    if len(margin) >= 2 and not any(_is_edge(line) for line in lines if not line.startswith(margin)):
        return Shape(margin, tag=False)
    shapes = sorted(pattern(r"\d+").sub("0", line[:90]) for line in lines)
    low, high = shapes[few], shapes[-1 - few]
    end = 0
    while end < len(low) and end < len(high) and low[end] == high[end]:
        end += 1
    if low[:end].strip() in _QUOTE_MARKS:
        if any(line.startswith("╭") for line in lines):
            return None  # the side of a box that rich drew
        return shape_of(low[:end], tag=False)
    for at in reversed(_ends_of_marks(low, min(end, 70))):
        prefix = low[:at]
        if prefix[-1] != " " and all(line[at:][:1] in ("", " ") for line in shapes):
            prefix += " "  # editors cut the space off empty lines
        if _is_tag(prefix, shapes):
            return _calibrated(prefix, lines)
    # stern: the pod, then the container
    pod = "-" in low[:end] and pattern(r"(?=\S*\d)[a-z\d][a-z\d.]*(?:-[a-z\d.]+)+ [a-z][a-z\d-]* ").match(
        low, 0, end
    )
    return _calibrated(pod[0], lines) if pod and _is_tag(pod[0], shapes) else None


def _ends_of_marks(text: str, end: int) -> list[int]:
    """Where a prefix may end: behind a mark that closes one, and a space."""
    marked = (at + 1 for at in range(end) if text[at] in "]>|):│")
    return [at + (at < end and text[at] == " ") for at in marked]


def quotation_shape(lines: list[str]) -> Shape | None:
    """The mark > before half of the lines or more."""
    lines = [line for line in lines if line and not line.isspace()]
    quoted = [line for line in lines if line[0] == ">" and line[1:2] in ("", " ")]
    return Shape("> ?") if len(quoted) >= _FEW and len(quoted) * 2 >= len(lines) else None


def service_shape(lines: list[str]) -> Shape | None:
    """The shape of docker compose, ``trainer-1  | ``, when most lines begin so, whatever their number."""
    tag = r"[A-Za-z][\w.-]{0,60}[-_]\d{1,6} {0,40}\|(?: |$)"
    lines = [line for line in lines if line and not line.isspace()]
    tagged = sum("|" in line and pattern(tag).match(line) is not None for line in lines)
    return Shape(tag) if tagged >= 2 and tagged * 10 >= len(lines) * 6 else None


def label_column(lines: list[str]) -> int:
    """Where the colon behind the numbers stands that ``srun -l`` pads with spaces; 0 without such labels.

    Numbers that only rise count lines.
    """
    lines = [line for line in lines if line and not line.isspace()]
    labelled = [line for line in lines if ":" in line[:12]]
    found = [one[0] for line in labelled if (one := pattern(r" {0,5}\d{1,6}(?=: |:$)").match(line))]
    column = max(map(len, found), default=0)
    labels = [int(label) for label in found if len(label) == column]
    rising = all(before < label for before, label in pairwise(labels))
    if len(labels) < _FEW or rising or len(labels) * 10 < len(lines) * 6:
        return 0
    return column if any(label[0] == " " for label in found) else 0


# A shell says no more than the word; py-spy and faulthandler begin each thread so.
_MARKER = (
    r"(?<=\s)(?:(?:Killed|Aborted|Terminated|Segmentation fault|Bus error|Floating point exception"
    r"|Illegal instruction)(?: \(core dumped\))?$"
    r"|(?:Current t|T)hread (?:0x[0-9a-fA-F]+|\d+)(?: \[[^\]]{0,80}\])? \((?:most recent|idle|active))"
)
_ENDS = ("Killed", "Aborted", "Terminated", "fault", "Bus error", "exception", "instruction", "core dumped)")


def marker(text: str) -> int:
    """Where in a line the bare word of a crash or the head of a thread stands; 0 without one."""
    if "hread " not in text and not text.endswith(_ENDS):
        return 0
    found = pattern(_MARKER).search(text, 0, 300)
    return found.start() if found else 0


def stands_alone(head: str) -> bool:
    """True for a prefix that is known as one without other lines: a name in brackets or before a bar."""
    return bool(pattern(r"(?:[\w.@/-]{1,60} *\||\[[A-Za-z][\w.@/ -]{0,60}\]|<[\w .-]{1,40}>) *$").match(head))


def _is_edge(line: str) -> bool:
    """True for a line that shows where the left edge is: what is indented below it is no indented paste."""
    return (
        pattern(
            r" *(?:Traceback \(most|[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Warning)\b"
            r"|(?:Current t|T)hread (?:0x|\d)|Process \d+: )"
        ).match(line)
        is not None
    )


def _is_tag(prefix: str, shapes: list[str]) -> bool:
    """True when different things stand behind the prefix, and it is no word that logs repeat anyway."""
    bare = prefix.strip()
    if not any(c.isalpha() for c in bare) or pattern(_NO_TAG).match(bare.lstrip("[(<").lower()):
        return False
    firsts = {shape[len(prefix) :].strip()[:6] for shape in shapes}
    return len(firsts) >= 3 and len(firsts) * 4 >= min(len(shapes), 24)


def _calibrated(prefix: str, lines: list[str]) -> Shape:
    expression = re.escape(prefix).replace("0", r"\d+")
    if prefix.endswith(" "):
        expression = expression.removesuffix("\\ ") + "(?: |$)"
    shape = Shape(expression, tag=" " not in prefix.strip(" |>:"))
    for line in lines:
        head = shape.pattern.match(line)
        if head:
            shape.identity(head[0])
    if shape.rising and shape.lines >= 8:
        shape.counting = True
    return shape
