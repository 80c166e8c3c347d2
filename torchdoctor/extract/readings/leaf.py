"""The gradient of a tensor that is no leaf: what makes it one, and what somebody finds in .grad.

``torch.rand(3, requires_grad=True).cuda()`` names the copy on the GPU; ``feats = model(x)`` a result. Their
``.grad`` stays None unless retain_grad() is called before backward().
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.shown import Shown, shown
from torchdoctor.extract.readings.snippets import snippets
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "leaf"

FACTS: dict[str, str] = {
    "leaf.warned": "bool: torch warned that .grad of a tensor that is no leaf is read",
    "leaf.not_leaf": "str: code or value that shows a tensor to be the result of an operation",
    "leaf.no_grad": "bool: its gradient is None, or what is to be learned from it does not change",
}

_PATTERNS = {
    "warned": r"\.grad attribute of a Tensor that is not a leaf Tensor is being accessed",
    "retained": r"retain_grad\(\s*\)|register_hook\(|register_post_accumulate",
    "backward": r"backward\b",
    # made with requires_grad and moved or changed at once
    "changed": (
        r"(?P<name>[A-Za-z_][\w.]*)\s*=\s*[^#\n]{0,160}?(?:requires_grad\s*=\s*True[^#\n]{0,60}?\)"
        r"|requires_grad_\((?:True)?\)|nn\.Parameter\([^#\n]{1,100}\))"
        r"\s*(?:\.(?:cuda|to|half|float|double|bfloat16|type|cpu|view|reshape|t|T|clone|contiguous"
        r"|squeeze|unsqueeze"
        r"|expand|repeat|permute|transpose|mul|div|add|sub|sigmoid|tanh|exp|softmax|clamp|abs|sqrt|pow)\b"
        r"|[*/+@-]\s*[\w(])"
    ),
    "factor": (
        r"(?P<name>[A-Za-z_][\w.]*)\s*=\s*[\w.() *+/-]{1,40}[*+/-]\s*[^#\n]{0,100}requires_grad\s*=\s*True"
    ),
    "made": r"^\s*(?P<name>[A-Za-z_][\w.]*)\s*=\s*[^#\n]{0,160}(?:requires_grad\s*=\s*True|nn\.Parameter\()",
    "again": (
        r"^\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P=name)\s*(?:\.(?:cuda|to|half|float|double|view|reshape"
        r"|clone)\(|[*/+-])"
    ),
    # computed, not made
    "result": (
        r"(?:^|;)\s*(?P<name>[A-Za-z_]\w*)(?:,\s*\w+)*\s*=\s*(?P<call>(?!torch\.(?:tensor|rand|randn"
        r"|zeros|ones|empty|full|load"
        r"|arange|linspace|from_numpy|as_tensor|eye)\b|nn\.Parameter|Variable"
        r"|next\()[A-Za-z_][\w.]*(?:\(\))?\()"
    ),
    "given": r"(?:^|;)\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<rest>[^=#\n][^#\n]{0,200})",
    "own": r"requires_grad|Parameter\(|detach\(|\.data\b|\.grad\b",
    "network": (
        r"(?i)model|net\b|net\(|enc|dec|backbone|layer|conv|linear|forward|embed|features|self\.|^F\."
        r"|relu|generator|critic"
    ),
    "asked": r"^(?P<name>[A-Za-z_][\w.]*(?:\[\w+\])?)\.grad(?:$| is None$|\.)",
    "of-leaf": r"^(?P<name>[A-Za-z_][\w.]*(?:\[\w+\])?)\.(?:is_leaf|grad_fn)$",
    "read": r"(?<![\w.])(?P<name>[A-Za-z_][\w.]*)\.grad\b(?!_)",
    "told": (
        r"\.grad\b|\bgrad(?:ient|iente|ienten|ients|ientes)?\b|\u68af\u5ea6|\u52fe\u914d"
        r"|\uadf8\ub798\ub514\uc5b8\ud2b8"
        r"|\u0433\u0440\u0430\u0434\u0438\u0435\u043d\u0442"
    ),
    "none": (
        r"\bNone\b|\bzeros?\b|\b0(?:\.0+)?\b|\bmissing\b|isn't there|\bnot there\b|\bempty\b|\bNull\b"
        r"|\bnul\b"
    ),
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a gradient that somebody misses; nothing where it is kept, or nobody runs backward()."""
    code = snippets(passage)
    if not passage.asked or cured(passage) or any(_pattern("retained").search(one.text) for one in code):
        return
    warned = passage.first(_pattern("warned"))
    values = list(shown(passage))
    missing = _missing(passage, values)
    if warned is not None:
        yield warned.fact("leaf.warned", True)
        if (told := missing or _told(passage)) is not None:
            yield told.fact("leaf.no_grad", True)
        return
    if not _pattern("backward").search(passage.text):
        return
    made = _made(code, values)
    told = missing or _told(passage)
    if made is not None and told is not None:
        yield made.fact("leaf.not_leaf", made.text.strip()[:120])
        yield told.fact("leaf.no_grad", True)


def _missing(passage: Passage, values: list[Shown]) -> Line | None:
    """Where the gradient of something is shown to be None."""
    for one in values:
        value = one.value.strip("`., ")
        if _pattern("asked").match(one.expression) and (
            value == "None" or (value == "True" and one.expression.endswith("is None"))
        ):
            return one.line
    for line in passage.of(Voice.TYPED):
        bare = line.text.strip()
        if (
            _pattern("asked").fullmatch(bare)
            and not list(passage.answers(line, 1))
            and line.at + 1 < len(passage.lines)
        ):
            return line  # Python shows nothing where the value is None
    return None


def _made(code: tuple[Line, ...], values: list[Shown]) -> Line | None:
    """The line that makes a result of what was to be a leaf, or shows that it is one, where .grad is read."""
    read_names = {found["name"] for line in code for found in _pattern("read").finditer(line.text)}
    read_names |= {found["name"] for one in values if (found := _pattern("asked").match(one.expression))}
    tracked = {
        one.expression.rpartition(".")[0]
        for one in values
        if one.expression.endswith(".requires_grad") and one.value.strip(".") == "True"
    }
    leaves: set[str] = set()
    for line in code:
        for name in ("changed", "factor"):
            found = _pattern(name).search(line.text)
            if found is not None and (not read_names or found["name"] in read_names):
                return line
        result = _pattern("result").search(line.text)
        computed = result is not None and (
            result["name"] in tracked or _pattern("network").search(result["call"])
        )
        if result is not None and computed and result["name"] in read_names:
            return line
        given = _pattern("given").search(line.text)
        if given is not None and given["name"] in read_names:
            used = leaves.intersection(re.findall(r"[A-Za-z_]\w*", given["rest"]))
            if used and not _pattern("own").search(given["rest"]):
                return line
        again = _pattern("again").match(line.text)
        if again is not None and again["name"] in leaves & read_names:
            return line
        made = _pattern("made").match(line.text)
        if made is not None:
            leaves.add(made["name"])
    for one in values:
        found = _pattern("of-leaf").match(one.expression)
        if found is None or found["name"] not in read_names:
            continue
        if one.value.startswith("<") and "AccumulateGrad" not in one.value:
            return one.line
        if one.expression.endswith("is_leaf") and one.value.strip(".") == "False":
            return one.line
    return None


def _told(passage: Passage) -> Line | None:
    for line in passage.sentences:
        if _pattern("warned").search(line.text):
            continue
        if _pattern("told").search(line.text) and (
            _pattern("none").search(line.text) or says("stays").search(line.text)
        ):
            return line
        if says("learning").search(line.text) and says("stays").search(line.text):
            return line
    return None
