"""GPU memory that rises to the end of a table or a log, and code that keeps what each step made."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.eval_memory import recording
from torchdoctor.extract.readings.figures import cell_size, sizes
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.tables import Table, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "gpu_growth"

FACTS: dict[str, str] = {
    "gpu_growth.ratio": "float: GPU memory at the last step over that at the first, rising to the end",
    "gpu_growth.kept": "str: code that keeps the graph or the outputs of each step",
}

FEWEST = 4
GROWTH = 1.3
SMALLEST = 1 << 24  # bytes: "2k" are steps

_TENSORS = (
    r"(?:loss|out|output|pred|logit|y_?hat|feat|prob|score|embed|emb|hidden|state|attn|activation|recon"
    r"|latent"
    r"|mask|x_hat|z_|salida|saida|sortie|ausgabe|uscita|perdida|perte|verlust|result|res)"
)
_PATTERNS = {
    "memory": (
        r"\bm[e\u00e9]m\w*|_mem\b|\b(?:used|in use|belegt|usage|usado|utilis\w*|occup\w*"
        r"|\u0437\u0430\u043d\u044f\u0442\u043e)\b|\([GM]i?B\)|gpu_?mem|alloc\w*|reserved|\bvram\b|\bcuda\b"
        r"|\u663e\u5b58|\u5185\u5b58|\u30e1\u30e2\u30ea|\uba54\ubaa8\ub9ac|speicher|pami\u0119\w*"
        r"|\u043f\u0430\u043c\u044f\u0442\w*|m\u00e9moire|memoria"
    ),
    "not-gpu": r"\brss\b|\bram\b|\bhost\b|\bcpu\b|\buss\b|\bpss\b|\bres\b|\bswap\b",
    "gpu": (
        r"(?<![a-z])gpus?(?![a-z])|cuda|\bvram\b|gpu_?mem|\u663e\u5b58|nvidia|\b(?:RTX|GTX|A100|H100|V100"
        r"|T4|4090"
        r"|3090)\b|graphics|grafik|\u0432\u0438\u0434\u0435\u043e\w*"
    ),
    "step-head": (
        r"step|iter|epoch|update|upd|episode|hour|time|minute|zeit|stunde|schritt|request|call"
        r"|\bi\b|^n$|round|\u6b65|\u8f6e|\u30b9\u30c6\u30c3\u30d7|\u0448\u0430\u0433"
        r"|\u044d\u043f\u043e\u0445\u0430|paso|\u00e9tape|etapa|krok|ad\u0131m"
    ),
    "sizes-tried": r"batch[ _]?size|seq\w*[ _]?len|resolution|\bbs\b",
    "number": r"^~?(?P<number>\d{1,9}(?:\.\d{1,4})?)",
    "first-number": r"^\D{0,30}?(?P<step>\d{1,9})(?P<k>k?)\b(?!\.\d|\s?[GM]i?B)",
    "comma": r"(?<=\d),(?=\d{1,3}\s?(?:[GM]i?B|[GM]o)\b)",
    "kept": (
        rf"\b[\w.\[\]'\"]{{1,40}}\s*\+=\s*(?:self\.)?(?:\w*loss\w*|crit\w*\([^)\n]*\)"
        rf"|loss_fn\([^)\n]*\))\s*(?:/[^#\n]*)?(?:#|`|;|$)"
        rf"|\b(?P<sum>\w*loss\w*)\s*=\s*(?P=sum)\s*\+\s*\w*loss\w*\s*(?:#|`|;|$)"
        rf"|\b[\w.\[\]'\"]{{1,40}}\.(?:append|add|put|insert"
        rf"|extend)\(\s*[\[({{]{{0,2}}\s*(?:\d,\s*)?(?:self\.)?{_TENSORS}\w*\s*[,)\]]"
        rf"|\b[\w.]{{1,40}}\[[^\]\n]{{1,40}}\]\s*=\s*{_TENSORS}\w*\s*(?:#|`|;|$)"
        r"|retain_graph\s*=\s*True|create_graph\s*=\s*True"
        rf"|(?P<bank>(?:self\.)?\w{{2,30}})\s*=\s*torch\.(?:cat|stack)\(\s*[\[(]\s*(?P=bank)\s*,"
    ),
    # a state that goes in and comes out, and nothing cuts it off
    "carried": (
        r"(?:^|,\s*|\(\s*)(?P<state>(?:self\.)?(?:h|hx|hc|hidden\w*|state\w*|h_\w+|rnn_state|mems?|memory"
        r"|carry))\s*\)?"
        r"\s*=\s*[^\n]{2,80}?\([^\n]*?\b(?P=state)\b"
    ),
    # what the model or the loss function gave: kept, it keeps its graph
    "made": (
        r"^\s*(?P<name>\w+)\s*=\s*(?:self\.)?(?:\w*(?:model|net|network|encoder|decoder|policy|actor|critic"
        r"|generator|red|modelo|modell|modele|reseau|netz|rete"
        r"|criterion|loss_fn|loss_func|crit)\w*)\(|(?<![\w.])(?P<loss>\w+)\.backward\("
    ),
    "given": r"^\s*(?P<name>[A-Za-z_]\w*)\s*=(?!=)\s*(?P<value>[^#\n]{1,300})",
    # a hook that keeps what passes through it
    "hook": (
        r"def \w*hook\w*\([^)\n]*?(?P<seen>\w+)\s*\):[^\0]{0,200}?\w+\.append\(\s*(?P=seen)\s*\)"
        r"|register_forward_hook\(\s*lambda[^:\n]*?(?P<seen2>\w+)\s*:\s*\w+\.append\(\s*(?P=seen2)\s*\)"
    ),
    "cut": r"detach\(|\.data\b|repackage_hidden|stop_gradient|detach_\(",
    "backward": r"\.backward\(|manual_backward",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE | re.MULTILINE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of memory that rises with each step; nothing where nobody asks, or it levels out."""
    if not passage.personal or _pattern("gpu").search(passage.text) is None:
        return
    kept = _kept(passage)
    rising = _rising(passage) if kept is not None else None
    if kept is None or rising is None:
        return
    yield rising[1].fact("gpu_growth.ratio", round(rising[0], 2))
    yield kept[0].fact("gpu_growth.kept", kept[1])


def _kept(passage: Passage) -> tuple[Line, str] | None:
    learns = _pattern("backward").search(passage.code) is not None
    if not learns and recording(passage) is not None:
        return None  # a validation that records the graph keeps it without any list
    for line in passage.snippets:
        if (found := _pattern("kept").search(line.text)) is not None:
            return line, found.group().strip(" #`;")
    names = [found.group("name") or found.group("loss") for found in _pattern("made").finditer(passage.code)]
    for name in dict.fromkeys((*names, *_summands(passage))):
        keeps = re.compile(
            rf"\.(?:append|add|put|push|insert|extend)\([^\n]*(?<![\w.]){re.escape(name)}(?![\w.(\[])"
            rf"|\+=\s*{re.escape(name)}\s*(?:/[^#\n]*)?(?:#|;|$)"
            rf"|^\s*(?P<mean>\w+)\s*=[^\n]*\b(?P=mean)\b[^\n]*\+[^\n]*(?<![\w.]){re.escape(name)}\s*(?:#|;|$)"
        )
        for line in passage.snippets:
            if keeps.search(line.text) and not _pattern("cut").search(line.text):
                return line, line.text.strip()
    if (hook := _pattern("hook").search(passage.code)) is not None:
        kept = hook.group().rpartition("\n")[2].strip()
        place = next((line for line in passage.snippets if kept in line.text), None)
        if place is not None:
            return place, kept
    if not _pattern("cut").search(passage.code):
        for line in passage.snippets:
            if (found := _pattern("carried").search(line.text)) is not None:
                return line, f"{found.group('state')} carried on without detach()"
    return None


def _summands(passage: Passage) -> list[str]:
    """The names that are added up to the loss: each has the graph of its own part."""
    losses = {found.group("loss") for found in _pattern("made").finditer(passage.code)} - {None}
    found: list[str] = []
    for line in passage.of(Voice.CODE, Voice.TYPED):
        made = _pattern("given").match(line.text)
        if made is not None and made["name"] in losses and "+" in made["value"]:
            found += re.findall(r"(?<![\w.])[A-Za-z_]\w*(?![\w.(\[])", made["value"])
    given = {one["name"] for one in _pattern("given").finditer(passage.code) if "(" in one["value"]}
    return [name for name in found if name in given]


def _rising(passage: Passage) -> tuple[float, Line] | None:
    for run in (*_columns(passage), *_lines(passage)):
        values = [value for value, _ in run]
        if len(values) < FEWEST or values[0] <= 0:
            continue
        falls = sum(after < before * 0.995 for before, after in pairwise(values))
        half = values[-1] - values[len(values) // 2]
        if not falls and values[-1] >= GROWTH * values[0] and half >= 0.3 * (values[-1] - values[0]):
            return values[-1] / values[0], run[-1][1]
    return _told(passage)


def _columns(passage: Passage) -> Iterator[list[tuple[float, Line]]]:
    """Columns of tables whose heads name memory of the GPU."""
    for table in tables(passage.lines):
        first = table.head[0]
        counts = (
            _pattern("step-head").search(first)
            or says("epochs").search(first)
            or says("batches").search(first)
        )
        if not counts or _pattern("sizes-tried").search(first):
            continue
        for at, name in enumerate(table.head):
            if at == 0 or _pattern("not-gpu").search(name):
                continue
            if not _pattern("memory").search(name) and not all(
                any(sizes(row.cells[at])) for row in table.rows
            ):
                continue
            yield from _runs(table, at)


def _runs(table: Table, at: int) -> Iterator[list[tuple[float, Line]]]:
    """The figures of a column, parted where the steps begin anew."""
    run: list[tuple[float, Line]] = []
    last = -1.0
    for row in table.rows:
        step, value = _value(row.cells[0]), _value(row.cells[at])
        if step is not None and step <= last:
            yield run
            run = []
        last = step if step is not None else last
        if value is not None:
            run.append((value, row.line))
    yield run


def _value(cell: str) -> float | None:
    if (size := cell_size(cell)) is not None:
        return size
    found = _pattern("number").match(cell)
    return float(found.group("number")) if found is not None else None


def _lines(passage: Passage) -> Iterator[list[tuple[float, Line]]]:
    """Lines of a log that begin with a step and show one amount of GPU memory, evenly apart."""
    run: list[tuple[float, Line]] = []
    steps: list[int] = []
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        text = _pattern("comma").sub(".", line.text.strip())
        step = _pattern("first-number").match(text)
        amounts = list(sizes(text))
        if step is None or not amounts or _pattern("not-gpu").search(text) or len(text) > 160:
            continue
        if _pattern("sizes-tried").search(text):
            continue
        number = int(step.group("step"))
        if steps and number <= steps[-1]:
            if _even(steps):
                yield run
            run, steps = [], []
        run.append((amounts[0].value, line))
        steps.append(number)
    if _even(steps):
        yield run


def _even(steps: list[int]) -> bool:
    gaps = [after - before for before, after in pairwise(steps)]
    return bool(gaps) and max(gaps) <= 1.5 * min(gaps)


def _told(passage: Passage) -> tuple[float, Line] | None:
    """A sentence that memory grows with each step, until the card is full; with a figure or two sizes."""
    for line in passage.sentences:
        listed = [figure.value for figure in sizes(line.text) if figure.value >= SMALLEST]
        rises = all(after > before for before, after in pairwise(listed))
        if len(listed) >= FEWEST and rises and listed[-1] >= GROWTH * listed[0]:
            return listed[-1] / listed[0], line
        if not (says("memory").search(line.text) and says("grows").search(line.text)):
            continue
        amounts = [figure.value for figure in sizes(line.text) if figure.value >= SMALLEST]
        if (
            len(amounts) >= 2
            and amounts[-1] >= GROWTH * amounts[0] > 0
            and says("each step").search(line.text)
        ):
            return amounts[-1] / amounts[0], line
    return None
