"""Code that sets CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER when torch has counted or used the GPUs already.

Three things must be there: the assignment, what touched the GPUs before it in the same code, and that it had
no effect: a count that is too high, a process on another GPU than the one asked for, or somebody's words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.process_table import rows
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.values import values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "late_env"

FACTS: dict[str, str] = {
    "late_env.variable": "str: variable that code sets after something touched the GPUs",
    "late_env.touched_by": "str: code that touched the GPUs, or may have, before the variable was set",
    "late_env.told": "bool: somebody says that the assignment in the program did nothing",
    "late_env.early_works": "bool: set in the shell, or before the imports, the variable works",
    "late_env.no_effect": "bool: output, or words of the one who asks, show that the assignment did nothing",
}

ASSIGNMENTS = 8  # each is held against all that stands before and behind it

_PATTERNS = {
    "set": (
        r"(?:os\.)?(?:(?:environ|(?<!\w)os)(?:\[\s*|\.setdefault\(\s*|\.update\(\s*\{?\s*)"
        r"|putenv\(\s*)['\"]?(?P<name>CUDA_(?:VISIBLE_DEVICES"
        r"|DEVICE_ORDER))['\"]?\s*(?:\]\s*=|,|:|=)\s*(?P<value>['\"][^'\"\n]{0,80}['\"]|[^\s,)}]{1,80})"
    ),
    "magic": r"^%?env (?P<name>CUDA_(?:VISIBLE_DEVICES|DEVICE_ORDER))[= ](?P<value>\S{0,80})",
    # what initialises CUDA or makes torch count; a seed or is_available() does not set the number for good
    "touch": (
        r"_cuda_getDeviceCount\(|"
        r"(?:torch\.)?cuda\.(?:device_count|current_device|get_device_(?:name|properties|capability)|init\b"
        r"|set_device"
        r"|mem_get_info|memory_\w+|synchronize|empty_cache|is_available|is_initialized|Stream|Event"
        r"|device\()\w*"
        r"|\.cuda\(|\.to\(\s*(?:device\s*=\s*)?[\"'](?:cuda|gpu)|device\s*=\s*[\"']cuda"
        r"|\.to\(\s*(?:self\.)?device\b|device\s*=\s*(?:dev|device|DEVICE|DEV)\b"
    ),
    "import": (
        r"^\s*(?:import|from)\s+(?!os\b|sys\b|re\b|json\b|time\b|argparse\b|math\b|random\b|__future__"
        r"|typing\b)\w"
    ),
    "only-torch": r"\s*(?:import|from)\s+(?:os, ?)?torch\b",
    "import-torch": r"^\s*(?:import|from)\s+[^#\n]{0,80}\btorch\b",
    "told-result": (
        r"#\s*(?:result|output|prints?|shows?|still|[^\x00-\x7f]{1,8}|->|=>|>+)?\s*:?\s*"
        r"(?P<number>\d{1,2})\s*$"
    ),
    "named": (
        r"^\s*(?:cuda|GPU|device)[ :]{1,2}(?P<index>\d{1,2})[:,]?\s+(?:NVIDIA|Tesla|GeForce|Quadro|TITAN"
        r"|AMD)"
    ),
    "early": (
        r"(?:(?:bash|shell|terminal|command(?: |-)?line|\bexport\b|before (?:I )?(?:import|call|start|run)"
        r"|CUDA_VISIBLE_DEVICES=\S{1,12} python|beginning"
        r"|first lines?|top of|revers|swap|mov\w+ (?:it|the|this|up))[^.\n]{0,120}?\b(?:works?|worked|fine"
        r"|solve[sd]?|use[sd]? (?:cuda:|gpu |only)|correct|ok\b|respected|as expected"
        r"|right (?:card|gpu|device|one)))"
        r"|\b(?:works?|worked|fine|solve[sd]?)\b[^.\n]{0,60}(?:bash|shell|terminal|command(?: |-)?line"
        r"|\bexport\b|before import|at the (?:top|beginning))"
    ),
    # the variable where it works: before Python starts
    "shell": (
        r"CUDA_VISIBLE_DEVICES=\S{1,24} (?:python|torchrun|accelerate|\./|bash|sh )|\bshell\b"
        r"|\bterminale?\b|\bexport\w*"
        r"|\bbash\b|command(?: |-)?line|kommandozeile|ligne de commande|l\u00ednea de comandos"
        r"|linha de comando"
        r"|riga di comando|wiersz\w* polece\w*"
        r"|\u043a\u043e\u043c\u0430\u043d\u0434\u043d\w+ \u0441\u0442\u0440\u043e\u043a"
        r"|\u0442\u0435\u0440\u043c\u0438\u043d\u0430\u043b"
        r"|komut sat|\u547d\u4ee4\u884c|\u7ec8\u7aef|\u30b3\u30de\u30f3\u30c9\u30e9\u30a4\u30f3"
        r"|\u30b7\u30a7\u30eb|\ud130\ubbf8\ub110|\uba85\ub839"
    ),
    # "it does nothing, however in the shell it works": what is said of the one way and of the other
    "but": r"[,;.]?\s(?:but|however|while|whereas|yet|though|aber|jedoch|mais|pero|mas|ma)\b[,:]?",
    "started": r"CUDA_VISIBLE_DEVICES=\S{1,24} (?:python|torchrun|accelerate|\./)",
    # to readers: "set it before you import torch, otherwise it has no effect"
    "advice": r"\botherwise\b|\bbefore you\b|\bmake sure\b|\bmust be set\b",
    "member": r"(?:\w+\.(?P<option>\w+)|\[[\"'](?P<key>\w+)[\"']\]?)",
    "all": (
        r"(?:always|still|all|every|wrong|only|run|use)[^.\n]{0,60}(?:cuda:0|gpu ?0|first (?:gpu|card"
        r"|device)|(?:all|every|other)[^.\n]{0,12}gpus?|default gpu|index 0)"
    ),
    "count": (
        r"(?:count|gpus|devices|after|sees?|visible|now)\b\D{0,24}?(?<![\w.])(?<!cuda:)(?P<number>\d{1,2})(?![\w.:/%"
        r"])"
    ),
    "counting": r"device_count|DeviceCount\(",
    # the words before a number that a program prints or logs
    "label": r"\b(?:print|info|debug|warn\w*|log|write)\(\s*[fr]?[\"'](?P<label>[^\"'%{\n]{3,60})",
    "bare": r"^\s*[(\[]?\s*(?:\d{1,2}[\s,]+){0,5}(?P<number>\d{1,2})\s*(?:,?\s*cuda(?::\d)?)?[)\]]?\s*$",
    "complaint": (
        r"\bno (?:visible )?effect|n[o']t (?:have|has|take|show|see) (?:any |an )?effect|does(?:n't"
        r"| not) (?:do anything|work|change|help|restrict|limit|matter)"
        r"|did(?:n't| not) (?:do anything|change|work|help)|do(?:es)? nothing|\bignor(?:ed?s?|ing)\b"
        r"|\b(?:still|always|keeps?)\s+(?:\w+ ){0,2}?(?:see|show|report|print|use|us|run|go|land|return"
        r"|return|say|allocat|occup|count|pick|select|on |all |get|landing|0)"
        r"|\bunchanged\b|immer noch|trotzdem|keine Wirkung|ignoriert|sigue usando|utilise toujours"
        # Chinese: does not work, no effect, always runs on; Japanese: has no effect; Korean: is not applied
        r"|\u4e0d\u8d77\u4f5c\u7528|\u6ca1\u6709?\u6548\u679c|\u4e0d\u751f\u6548|\u603b\u662f\u8dd1"
        r"|\u65e0\u6548"
        r"|\u52b9\u304b\u306a\u3044|\u53cd\u6620\u3055\u308c\u306a\u3044|\uc801\uc6a9\ub418\uc9c0"
    ),
}


_BY_CASE = ("set", "magic", "touch", "import", "only-torch", "import-torch", "counting", "label", "bare")


_pattern = patterns(_PATTERNS, re.IGNORECASE, but=_BY_CASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the first assignment that came too late and did nothing; nothing without one."""
    code = list(passage.of(Voice.CODE, Voice.TYPED))
    scopes = _scopes(code)
    early: set[str] = set()
    seen = 0
    for number, line in enumerate(code):
        found = _assignment(line.text)
        if found is None:
            continue
        seen += 1
        if seen > ASSIGNMENTS:
            return
        name, value = found
        before = [
            other
            for other, scope in zip(code[:number], scopes, strict=False)
            if scope in ("", scopes[number])
        ]
        touch = next((one for one in before if _touches(one.text)), None)
        if touch is None and name not in early:
            early.add(name)
            library = next((one for one in before if _pattern("import-torch").match(one.text)), None)
            if library is None:
                continue
            effect = _measured(passage, line, value, name)
            counted = effect is not None and "|" not in effect.text  # torch 1.12.0 counts when it is imported
            touch = library if counted or _imports_more(before) else None
            if effect is None and touch is not None and _early(passage) is not None:
                effect = _complaint(passage)
        elif name in early:
            effect = _measured(passage, line, value, name) if touch is not None else None
        else:
            effect = _measured(passage, line, value, name)
            if effect is None and not _worked(passage, line, value, name):
                effect = _complaint(passage)
        if touch is not None and effect is not None:
            yield touch.fact("late_env.touched_by", touch.text.strip()[:120])
            yield line.fact("late_env.variable", name)
            yield effect.fact("late_env.no_effect", True)
            return
    yield from _told(passage)


def _told(passage: Passage) -> Iterator[Fact]:
    """Without code: the assignment in words, what it did not do, and how it does."""
    said = list(passage.of(Voice.SAID))
    named = passage.first(_pattern("set"))
    if named is None or not passage.personal:
        return
    told = _complaint(passage) or _first(said, "all")
    early = _early(passage)
    if told is not None and early is not None and not _pattern("advice").search(told.text):
        yield told.fact("late_env.told", True)
        yield early.fact("late_env.early_works", True)


def _early(passage: Passage) -> Line | None:
    """Words that say that the variable does what it should where it is set before Python starts."""
    # a sentence may go on in the line below it; "<name> CUDA_VISIBLE_DEVICES=3 python run.py works" passes
    # for output
    for sentence in (*passage.sentences, *passage.of(Voice.PRINTED)):
        for part in _pattern("but").split(sentence.text):
            if says("unchanged").search(part):
                continue
            if sentence.voice is Voice.SAID and _pattern("early").search(part):
                return sentence
            started = sentence.voice is Voice.SAID and _pattern("started").search(part)
            if _pattern("shell").search(part) and (says("works").search(part) or started):
                return sentence
    return None


def _first(lines: list[Line], name: str) -> Line | None:
    return next((line for line in lines if _pattern(name).search(line.text)), None)


def _assignment(text: str) -> tuple[str, str] | None:
    if text.lstrip()[:1] == "#":
        return None
    found = _pattern("set").search(text) or _pattern("magic").match(text)
    return (found.group("name"), found.group("value").strip("'\"")) if found else None


def _touches(text: str) -> bool:
    code, _, remark = text.partition("#")
    if _pattern("import").match(code) and _pattern("touch").search(remark):
        return True  # "from nets import build  # at its top: DEV = torch.zeros(1).cuda()"
    return _pattern("touch").search(code) is not None and not code.lstrip().startswith(("def ", "class "))


def _imports_more(before: list[Line]) -> bool:
    """Something besides torch and the standard library was imported, which may use the GPUs at import."""
    return any(
        _pattern("import").match(one.text) and not _pattern("only-torch").match(one.text) for one in before
    )


def _scopes(code: list[Line]) -> list[str]:
    """For each line the function it stands in, as the line of its ``def``; "" at module level."""
    found: list[str] = []
    opened: list[tuple[int, str]] = []
    for line in code:
        while opened and line.indent <= opened[-1][0]:
            opened.pop()
        found.append(opened[-1][1] if opened else "")
        if line.voice is Voice.CODE and line.text.lstrip().startswith(("def ", "async def ")):
            opened.append((line.indent, line.place))
    return found


def _asked_for(value: str) -> list[int] | None:
    """The GPUs that the value names; None when it is not written out."""
    parts = [part.strip() for part in value.split(",")]
    if value.strip() in ("", "-1"):
        return []
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else None


def _resolved(passage: Passage, line: Line, value: str) -> list[int] | None:
    """The GPUs that the value names: written out, printed later on, or given as an option of the program."""
    asked = _asked_for(value)
    if asked is not None:
        return asked
    for shown in values(passage):
        if shown.line.at > line.at and re.search(r"environ.{0,8}CUDA_VISIBLE_DEVICES", shown.expression):
            return _asked_for(shown.text)
    member = _pattern("member").search(value)
    if member is None:
        return None
    name = re.escape(member.group("option") or member.group("key"))
    given = re.search(rf"(?:--{name}[= ]|\b{name}: ?)[\"']?(?P<value>\d[\d,]{{0,20}})", passage.text)
    return _asked_for(given.group("value").strip(",")) if given is not None else None


def _counts(passage: Passage, after: Line) -> Iterator[tuple[int, Line]]:
    """Numbers of GPUs that were printed after the assignment."""
    for value in values(passage):
        counted = value.expression.endswith("device_count()") and value.text.isdecimal()
        if counted and value.line.at > after.at:
            yield int(value.text), value.line
    printing = False
    for line in passage.lines[after.at + 1 :]:
        if line.voice in (Voice.TYPED, Voice.CODE):
            printing = printing or _pattern("counting").search(line.text) is not None
            found = _pattern("told-result").search(line.text) if printing and passage.personal else None
            if found is not None:
                yield int(found.group("number")), line
            if line.voice is Voice.TYPED and "device_count" in line.text:
                for answer in passage.answers(line, 1):
                    if found := _pattern("bare").match(answer.text):
                        yield int(found.group("number")), answer
        elif line.voice is Voice.PRINTED and printing and "|" not in line.text:
            found = _pattern("bare").match(line.text)
            every = list(_pattern("count").finditer(line.text))
            if found is None and every:
                later = (one for one in every if one.group().lower().startswith(("after", "now")))
                found = next(later, every[0])
            if found is not None:
                yield int(found.group("number")), line


def _labelled(passage: Passage, after: Line) -> Iterator[tuple[int, Line]]:
    """Numbers of GPUs in the output of a program whose source is shown, above or below it, by their label."""
    for line in passage.of(Voice.CODE):
        label = _pattern("label").search(line.text) if "device_count" in line.text else None
        if label is None or line.at <= after.at:
            continue
        shown = re.compile(re.escape(label.group("label").strip()) + r"\s{0,4}(?P<number>\d{1,2})\s*$")
        for other in passage.of(Voice.PRINTED):
            if found := shown.search(other.text):
                yield int(found.group("number")), other


def _measured(passage: Passage, line: Line, value: str, name: str) -> Line | None:
    """The output that shows GPUs which the value leaves out; None when none does."""
    asked = _resolved(passage, line, value)
    if name != "CUDA_VISIBLE_DEVICES" or asked is None:
        return None
    counts = list(_counts(passage, line)) or list(_labelled(passage, line))
    listed = [
        (int(found.group("index")) + 1, one)
        for one in passage.lines[line.at :]
        if one.voice is Voice.PRINTED and (found := _pattern("named").match(one.text)) is not None
    ]
    if not counts and listed and _pattern("counting").search(passage.code):
        counts = [max(listed, key=lambda item: item[0])]
    if counts:
        number, where = counts[0]
        return where if number > len(asked) else None
    used = [(row.gpu, one) for one in passage.lines[line.at :] for row in rows(one.text)]
    ours = [(gpu, one) for gpu, one in used if "python" in one.text]
    if ours and asked and passage.personal and not any(gpu in asked for gpu, _ in ours):
        return ours[0][1]
    return None


def _worked(passage: Passage, line: Line, value: str, name: str) -> bool:
    """Does a count that was printed say that the assignment took effect?"""
    asked = _resolved(passage, line, value)
    if name != "CUDA_VISIBLE_DEVICES" or asked is None:
        return False
    return any(number <= len(asked) for number, _ in _counts(passage, line))


def _complaint(passage: Passage) -> Line | None:
    if not passage.personal:
        return None
    return passage.told(_pattern("complaint")) or passage.told(says("unchanged"))
