"""A traced or exported model that goes another way than the model itself for other inputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import small_numbers
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.pasted_tables import number, tables
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "traced"

FACTS: dict[str, str] = {
    "traced.call": "str: code that traces or exports the model",
    "traced.branch": "str: branch or loop of the model that depends on the values or the size of a tensor",
    "traced.differs": "bool: output or words show that the traced model gives other results",
}

PLAIN = 1e-2  # of a difference: more than float32 brings about
APART = 0.03  # of the greater one, between two columns

_PATTERNS = {
    "call": r"jit\.trace(?:_module)?\(|onnx\.export\(",
    # in words, where the warning is shown
    "traced-by": (
        r"\b(?:I|we) (?:have )?(?:traced|exported|converted)\b|\b(?:traced|exported|scripted) model\b"
    ),
    "exports": r"jit\.trace|onnx\.export|torch\.export|TorchScript|torchscript",
    "agrees": (
        r"\b(?:agrees?|identical|match(?:es)?|same as|within|equal|correct|right|gleich|stimmt"
        r"|identique|igual)\b"
    ),
    "output": (
        r"onnx|traced|exported|\bts\b|\.pt\b|libtorch|C\+\+|output|boxes|steps?\b|model|logits?\b"
        r"|predict|scores?\b"
        r"|transl|labels?\b|mask|text\b"
    ),
    # of what is put in, not of what comes out
    "inputs": (
        r"different (?:\w+ )?(?:sizes?|lengths?|inputs?|images?|shapes?|batch(?: size)?s?|resolutions?)"
        r"|(?:verschieden|unterschiedlich)\w* (?:\w+ )?(?:Gr\u00f6\u00dfen|L\u00e4ngen|Eingaben|Bilder)"
        r"|(?:tailles?|longueurs?|entr\u00e9es?|images?) diff\u00e9rent\w*|(?:tama\u00f1os?|entradas?"
        r"|im\u00e1genes) diferentes"
    ),
    # values that come out of a tensor, and what then depends on them
    "taken": (
        r"^\s*(?P<name>[A-Za-z_]\w*)(?:,\s*\w+)*\s*=\s*[^#\n]{0,160}?(?:\.shape\b|\.size\(|\blen\("
        r"|\.item\(|\.numel\("
        r"|\.(?:sum|mean|max|min|any|all|norm|argmax|softmax|sigmoid|std|var|count_nonzero)\(|torch\.\w+\()"
    ),
    "decides": (
        r"^\s*(?:if|elif|while"
        r"|for\s+[\w, ]+\s+in\s+(?:reversed\()?range\()(?P<on>[^#\n]{1,160}):\s*(?:#.*)?$"
    ),
    "script": r"dynamo\s*=\s*True|jit\.script\(|@torch\.jit\.script",
    "branch": (
        r"^\s*(?:if|elif|while)\b[^#\n]{0,120}?(?:[\w\])]\.(?:sum|mean|max|min|any|all|item|norm|abs|numel"
        r"|size|dim)\(|\.shape\b|\bx\s*[<>]"
        r"|\blen\(x)[^#\n]{0,120}:"
        r"|^\s*for\s+[\w, ]+\s+in\s+(?:range\(|reversed\(range\()[^#\n]{0,80}?(?:\.size\(|\.shape\[|\blen\("
        r"|\.item\(|\bint\()"
    ),
    "differs": (
        r"\bdiffers?\b(?! in size)|\bdifferent (?:results?|outputs?|values?|answers?|numbers?|predictions?"
        r"|boxes)"
        r"|\bwrong (?:results?|outputs?|values?|answers?|branch|for|predictions?)"
        r"|(?:results?|outputs?)\b[^.\n]{0,60}\b(?:wrong|differ)"
        r"|only (?:works|correct|right|valid) (?:for|with|at)|always (?:takes|returns) the"
        r"|\b(?:outputs?|results?)\b[^.\n]{0,40}(?:doe?s(?:n't| not) match|mismatch|not equal)"
    ),
    "warned": (
        r"TracerWarning: (?:Converting a tensor to a Python|Iterating over a tensor"
        r"|torch\.(?:tensor|from_numpy"
        r"|as_tensor) results are registered|Using len to get tensor shape)"
    ),
    "worse": (
        r"\b(?:gives?|gave|returns?|produces?|has|shows?|get|gets|see|with) (?:quite |very |totally )?other"
        r" (?:results?|outputs?|values?|boxes|numbers?|predictions?)"
        r"|\b(?:accuracy|wer|map|bleu|mae|quality)\b[^.\n]{0,60}\b(?:drops?|falls?|worse|lower|collapses?)\b"
        r"|\b(?:for|with|on|at) (?:an?other|other|longer|shorter|larger|smaller|bigger|long|different|new)"
        r" (?:\w+ ){0,2}(?:inputs?|sizes?|lengths?|sequences?|sentences?|images?|batch(?:es)?|shapes?)\b"
        r"[^.\n]{0,80}\b(?:wrong|differs?|garbage|nonsense|off|cut|truncated|same result|mismatch)"
    ),
    "two": (
        r"^\s*(?P<one>tensor\([^()]{1,200}(?:\([^()]{0,80}\))?[^()]{0,80}\))\s+(?P<two>tensor\(.{1,300}\))\s"
        r"*$"
    ),
    "own-column": r"(?i)eager|python|pytorch|original|\bmodel\b|\bnet\b|\btorch\b",
    "trace-column": (
        r"(?i)traced?\b|\bts\b|torchscript|\bjit\b|onnx|\bort\b|libtorch|c\+\+|exported|\w\.(?:pt|ts|pth)\b"
    ),
    "difference": r"(?i)\b(?:max|abs)\w*[ _.]?(?:abs|diff)",
    "diff": r"diff|\berr(?:or)?\b",
}


_pattern = patterns(_PATTERNS, re.IGNORECASE, only=("differs", "diff", "worse", "output", "agrees", "inputs"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a model whose trace somebody compares; nothing where the code holds no branch."""
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    call = next((line for line in code if _pattern("call").search(line.text)), None)
    warned = _warned(passage)
    if call is None and warned is not None:
        call = next(
            (line for name in ("call", "traced-by", "exports") if (line := passage.first(_pattern(name)))),
            None,
        )
    elif call is None and code:
        call = passage.first(_pattern("exports"))
    if call is None or any(_pattern("script").search(line.text) for line in code):
        return
    branch = next((line for line in code if _pattern("branch").search(line.text)), None)
    branch = branch or _decided(code) or warned
    if branch is None:
        return
    yield call.fact("traced.call", call.text.strip()[:120])
    yield branch.fact("traced.branch", branch.text.strip()[:120])
    differs = _printed(passage) or _told(passage)
    if differs is not None:
        yield differs.fact("traced.differs", True)


def _decided(code: list[Line]) -> Line | None:
    """A branch or a loop on a name to which something of a tensor was given above it."""
    names: set[str] = set()
    for line in code:
        decides = _pattern("decides").match(line.text)
        if decides is not None and names.intersection(re.findall(r"[A-Za-z_]\w*", decides["on"])):
            return line
        taken = _pattern("taken").match(line.text)
        if taken is not None:
            names.add(taken["name"])
    return None


def _warned(passage: Passage) -> Line | None:
    """The line of the model under a warning of the tracer, else the warning itself."""
    for line, below in zip(passage.lines, [*passage.lines[1:], None], strict=False):
        if _pattern("warned").search(line.text):
            shown = below is not None and below.indent >= 2 and not _pattern("warned").search(below.text)
            return below if shown else line
    return None


def _printed(passage: Passage) -> Line | None:
    apart = _columns(passage)
    if apart is not None:
        return apart
    compared = any("allclose" in line.text or "equal(" in line.text for line in passage.lines)
    for line in passage.of(Voice.PRINTED):
        two = _pattern("two").match(line.text)
        if two is not None and two.group("one") != two.group("two"):
            return line
        if compared and line.text.strip() == "False":
            return line
        if _pattern("diff").search(line.text):
            last = list(small_numbers(line.text))
            number = last[-1].value if last else _plain(line.text)
            if number is not None and number >= PLAIN:
                return line
    return None


def _columns(passage: Passage) -> Line | None:
    """The first row in which the column of the trace is not that of the model."""
    for table in tables(passage):
        traced = any(_pattern("trace-column").search(head) for head in table.heads)
        for row in table.rows:
            own = [number(cell) for head, cell in row.cells if _pattern("own-column").search(head)]
            apart = [number(cell) for head, cell in row.cells if _pattern("difference").search(head)]
            if traced and any(value is not None and value >= PLAIN for value in apart):
                return row.line
            other = [number(cell) for head, cell in row.cells if _pattern("trace-column").search(head)]
            for one, two in zip(own, other, strict=False):
                if one is not None and two is not None and abs(one - two) > APART * max(abs(one), abs(two)):
                    return row.line
    return None


def _plain(text: str) -> float | None:
    found = re.search(r"(?<![\w.])(\d{1,9}\.\d{1,9})\s*$", text)
    return float(found.group(1)) if found else None


def _told(passage: Passage) -> Line | None:
    if not passage.asked:
        return None
    said = [line for line in passage.of(Voice.SAID) if not _pattern("warned").search(line.text)]
    found = next((line for line in said if _pattern("differs").search(line.text)), None)
    found = found or next((line for line in said if _pattern("worse").search(line.text)), None)
    return found or next((line for line in passage.sentences if _differs(line.text)), None)


def _differs(text: str) -> bool:
    text = _pattern("inputs").sub("", text)
    about = says("results").search(text) or _pattern("output").search(text)
    if about is None or _pattern("agrees").search(text):
        return False
    return any(says(thing).search(text) for thing in ("differs", "strange", "always"))
