"""Which card bears which number: in lists of nvidia-smi and of torch, in tables, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.values import Command, Value, arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

Numbered = dict[int, tuple[str, Line]]  # index -> name of the card, and the line that says so

# a card as programs name it
_NAME = (
    r"(?:NVIDIA |Tesla |GeForce |Quadro |TITAN |RTX |GTX |GRID )[\w .+-]{1,50}?\w"
    r"|[AHLVTPB]\d{1,3}(?:-[\w-]{2,20})?"
)
# and as people do: "the 1080 Ti", "A6000", "TITAN V"
_MODEL = r"(?:[A-Z]{0,2}\d{2,4}(?: ?(?:Ti|TI|Super|SUPER|Ada))?(?!\w|\.\d)|TITAN \w{1,3}\b)"
_PLACE = (
    r"(?:[Nn]umber|[Nn]umm?er|index|Index|\u0438\u043d\u0434\u0435\u043a\u0441|[Gg][Pp][Uu]|[Dd]evice"
    r"|[Cc]ard|[Kk]arte|"
    r"[Cc]arte|[Tt]arjeta|[Pp]laca|[Ss]cheda|[Kk]art[ay]?|\u043a\u0430\u0440\u0442\u0430|id|ID|[Nn]r\.?"
    r"|[Nn]o\.?"
    r"|num\u00e9ro|n\u00famero|numero|\u043d\u043e\u043c\u0435\u0440|\u2116|cuda:|#)"
)
_IS = (
    r"(?:is|as|ist|als|est|comme|es|como|\u00e9|\u00e8|come|to|jest|\u044d\u0442\u043e|=|->|\u2192|:|at|has"
    r"|gets|hat|a|tiene|tem|ha|\u662f|\u304c|\u306f|\uac00|\uc740|\ub294)"
)
_PATTERNS = {
    "listed": r"\bGPU (?P<index>\d{1,2}): (?P<name>[^(\n]{3,60}?)\s*\(UUID",
    "row": (
        r"^\s*\|\s{1,4}(?P<index>\d{1,2})\s{1,4}(?P<name>\S[^|]{2,60}?)\s{1,40}(?:(?:On|Off|N/A|WDDM"
        r"|TCC)\s*)?\|"
        r"\s*[0-9A-F]{4,8}:"
    ),
    "csv": r"^\s*(?P<index>\d{1,2}), (?P<name>(?:NVIDIA|Tesla|GeForce|Quadro|TITAN)[^,\n]{2,60})(?:,|$)",
    "gpustat": r"^\s*\[(?P<index>\d{1,2})\] (?P<name>[^|\n]{3,60}?)\s*\|",
    "columns": r"--query-gpu[= ](?P<columns>[\w.,]{4,200})",
    "both": (
        rf"^\W{{0,4}}(?:\w{{2,6}}[ :]?)?(?P<index>\d{{1,2}})\b[^\n]{{0,12}}?\b(?:nvml|smi|nvidia-smi"
        rf"|pynvml)\b\W{{1,4}}(?P<smi>{_NAME})"
        rf"\W{{1,6}}(?:py)?(?:torch|cuda)\b[^\n:=]{{0,12}}[\s:=]{{1,4}}(?P<torch>{_NAME})(?:\s+\d[\d.]* ?[GM"
        rf"]i?B)?\W{{0,4}}$"
    ),
    # {"nvidia-smi": {"0": "Tesla K80", …}, "torch": …}, smi: ['Tesla K80', …]  torch: […]
    "mapped": (
        r"\b(?P<side>(?:nvidia[-_])?smi|nvml|pynvml|torch|pytorch|cuda)\w{0,12}[\"']?\s*[:=]\s*"
        r"(?:\{(?P<pairs>[^{}\n]{5,400})\}|\[(?P<names>[^\[\]\n]{5,400})\])"
    ),
    "pair": r"[\"']?(?:cuda:|GPU )?(?P<index>\d{1,2})[\"']?: ?[\"'](?P<name>[^\"'\n]{3,60})[\"']",
    "name-of": (
        r"get_device_(?:name|properties)\(\s*(?:torch\.device\()?(?:[\"']?cuda:)?(?P<index>\d{0,2})[\"']?\)("
        r"?:\.name)?$"
    ),
    "told-name": (
        r"get_device_(?:name|properties)\((?:[\"']?cuda:)?(?P<index>\d{0,2})[\"']?\)[`'\")]*\s*"
        rf"(?:=+>?|->|\u2192|:|is|returns|gives|says|prints|shows|gibt|ist|liefert|est|donne|es|da|\u00e8"
        rf"|\u00e9)\s*[`'\"]*(?P<name>{_NAME})(?=[`'\",.;)]|$)"
    ),
    "listing": (
        r"^\s*[\[(]\s*(?P<names>['\"][^'\"\n]{3,60}['\"](?:,\s*['\"][^'\"\n]{3,60}['\"]){1,15})\s*[\])]"
    ),
    "printed": (
        r"^\s*(?:cuda:|GPU ?|device ?|gpu ?)?(?P<index>\d{1,2})\s?[:=,)>-]{0,2}\s(?P<name>(?:NVIDIA|Tesla"
        r"|GeForce"
        r"|Quadro|TITAN|RTX|GTX)[^,(\n]{2,50})"
    ),
    "properties": r"^\s*_CudaDeviceProperties\(name=['\"](?P<name>[^'\"\n]{3,60})['\"]",
    # in words: "the 1080 is number 0", "die 3060 die GPU 0", "GPU 1 is the A6000", "1 号是 RTX 3090"
    "said": (
        rf"\b(?P<model>{_MODEL})[^.\n;,\d]{{0,40}}?\b{_IS}\s*(?:listed |shown |shows up )?(?:as )?"
        rf"(?:the |die |der |la |el |le |il |o |a )?{_PLACE}?\s*#?(?P<index>\d)\b"
        rf"|\b(?P<model3>{_MODEL})\s(?:die|der|la|le|el|il|the|on|auf|sur|en|su"
        rf"|na)?\s?{_PLACE}\s?(?P<index3>\d)\b"
        rf"|{_PLACE}\s*(?P<index2>\d) ?(?:{_IS} ?)?(?:an? |the |die |der |la |el |le |il |une? |eine? |una "
        rf"|uma )?"
        rf"(?:\w+ ){{0,3}}?(?P<model2>{_MODEL})"
        rf"|(?<!\d)(?P<index4>\d) ?(?:\u53f7|\u756a|\ubc88)\S{{0,3}}? ?(?:\u662f|\u304c|\u306f|\uc774"
        rf"|\uac00|\uc740|\ub294)? ?(?:(?:RTX|GTX|GeForce|NVIDIA|Tesla|Quadro) ){{0,3}}(?P<model4>{_MODEL})"
    ),
    "sides": r"\b(?:nvidia-)?smi\b|\bnvml\b|\bpynvml\b|gpustat|nvtop",
    "torch-side": r"torch|cuda",
    "one": r"CUDA_VISIBLE_DEVICES=[\"']?(?P<index>\d)(?![\d,])",
    # a program's own word for the one card that it sees: "device 0: Quadro P400", "Using cuda:0 (TITAN RTX)"
    "started": (
        r"\b(?i:device|gpu|cuda|running on|using|card|karte|carte|tarjeta)\b[^\w\n]{0,4}"
        r"(?:(?i:cuda|gpu|device)[^\w\n]{0,3})?(?:0[^\w\n]{1,5})?"
        rf"(?P<name>{_NAME})(?=\s*(?:[,()\[\]|;]|$))"
    ),
    # rows that somebody types below "nvidia-smi:"
    "headed": (
        rf"^\s*(?:GPU ?|#)?(?P<index>\d{{1,2}})\s?[:.)=-]{{0,2}}\s+(?P<name>{_NAME})"
        r"(?=\s{2,}|\s*[,(|]|\s+\d+(?:\.\d+)? ?G|\s*$)"
    ),
    "number": r"^\W{0,3}(?:GPU|cuda:|gpu|device)?\s?(?P<index>\d{1,2})\W{0,3}$",
}


_pattern = patterns(_PATTERNS)


def bare(name: str) -> str:
    """The name without the maker's words."""
    return re.sub(r"\b(?:nvidia|geforce|tesla|quadro)\s", "", name.lower().strip()).strip(" .")


def same(one: str, two: str) -> bool:
    """Do two names mean one model? nvidia-smi cuts long ones off, and people say the number alone."""
    if one.rstrip().endswith("...") or two.rstrip().endswith("..."):
        cut, full = sorted((bare(one.rstrip(" .")), bare(two.rstrip(" ."))), key=len)
        return full.startswith(cut)
    mine, its = sorted((bare(one), bare(two)), key=len)
    return mine == its or re.search(rf"(?<![\w]){re.escape(mine)}(?![\w]| ?ti\b| ?super\b)", its) is not None


def by_smi(passage: Passage, commands: tuple[Command, ...]) -> Numbered:
    """What nvidia-smi or NVML calls each number."""
    found: Numbered = {}
    for command in commands:
        asked = _pattern("columns").search(command.text)
        if asked is not None:
            for index, name, line in _of_columns(asked.group("columns").split(","), command.answers):
                found.setdefault(index, (name, line))
    for line in passage.lines:
        if (both := _pattern("both").match(line.text)) is not None:
            found.setdefault(int(both.group("index")), (both.group("smi").strip(), line))
        for name in ("listed", "row", "csv", "gpustat"):
            for hit in _pattern(name).finditer(line.text):
                found.setdefault(int(hit.group("index")), (hit.group("name").strip(), line))
    for index, name, line in (*_mapped(passage, torch=False), *_headed(passage)):
        found.setdefault(index, (name, line))
    for index, smi, _, line in _table(passage):
        found.setdefault(index, (smi, line))
    return found


def by_torch(passage: Passage, values: tuple[Value, ...], chosen: bool = False) -> Numbered:
    """What torch calls each number, but for programs that see one card only.

    ``chosen``: the text sets CUDA_VISIBLE_DEVICES, so that names that are merely told may be of one card.
    """
    found: Numbered = {}
    alone = {value.line.at for _, value in visible(passage, values)}
    for value in values:
        asked = _pattern("name-of").search(value.expression)
        if asked is not None and value.line.at not in alone and " for " not in value.expression:
            found.setdefault(int(asked.group("index") or 0), (_properties(value.text), value.line))
    listing = False
    for line in passage.lines:
        for told in () if chosen else _pattern("told-name").finditer(line.text):
            found.setdefault(int(told.group("index") or 0), (told.group("name"), line))
        if (both := _pattern("both").match(line.text)) is not None:
            found.setdefault(int(both.group("index")), (both.group("torch").strip(), line))
        if _pattern("sides").search(line.text) and (line.voice is Voice.SHELL or _heads(line)):
            listing = False
        elif line.voice in (Voice.TYPED, Voice.CODE) or (
            "print(" in line.text and "get_device_" in line.text
        ):
            listing = listing or "get_device_" in line.text
        elif line.voice is Voice.SAID and _heads(line) and _pattern("torch-side").search(line.text):
            listing = True
        elif listing and (names := _pattern("listing").match(line.text)) is not None:
            for index, name in enumerate(names.group("names").split(",")):
                found.setdefault(index, (name.strip(" '\""), line))
        elif (
            listing
            and line.voice is Voice.PRINTED
            and line.at not in alone
            and not _pattern("listed").search(line.text)
            and (hit := _pattern("printed").match(line.text)) is not None
        ):
            found.setdefault(int(hit.group("index")), (hit.group("name").strip(), line))
    for index, name, line in _mapped(passage, torch=True):
        found.setdefault(index, (name, line))
    for index, _, torch, line in _table(passage):
        found.setdefault(index, (torch, line))
    return found


def in_words(passage: Passage, torch: bool) -> Numbered:
    """What people say of the numbers: of torch's where ``torch``, else of nvidia-smi's."""
    found: Numbered = {}
    for line in (*passage.sentences, *passage.of(Voice.PRINTED)):
        smi = _pattern("sides").search(line.text) is not None
        for hit in _pattern("said").finditer(line.text):
            index = hit.group("index") or hit.group("index2") or hit.group("index3") or hit.group("index4")
            model = hit.group("model") or hit.group("model2") or hit.group("model3") or hit.group("model4")
            named = not smi and _pattern("torch-side").search(line.text) is not None
            told = named or "cuda:" in hit.group()
            if told == torch:
                found.setdefault(int(index), (model, line))
    return found


def visible(passage: Passage, values: tuple[Value, ...]) -> Iterator[tuple[int, Value]]:
    """The number that CUDA_VISIBLE_DEVICES names, and torch's name of the one card that is left."""
    asked: int | None = None
    set_for = -1
    names = {value.line.at: value for value in values if _first_card(value.expression)}
    for line in passage.lines:
        ones = {found.group("index") for found in _pattern("one").finditer(line.text)}
        started = _started(line) if asked is not None and not ones else None
        if ones:
            asked, set_for = (int(min(ones)) if len(ones) == 1 else None), line.at
        elif line.voice is Voice.SAID and passage.lines[set_for].voice is Voice.SAID:
            asked = None
        elif (
            line.voice is Voice.SHELL and not started and "get_device_" not in line.text and asked is not None
        ):
            exported = "export" in passage.lines[set_for].text
            asked = asked if exported else None
        if asked is not None and line.at in names:
            yield asked, names[line.at]
        elif asked is not None and started is not None:
            yield asked, Value("cuda:0", started, line)


def _started(line: Line) -> str | None:
    """What a program says at its start of the card that it uses."""
    if line.voice in (Voice.SAID, Voice.CODE) or _pattern("listed").search(line.text):
        return None
    found = _pattern("started").search(line.text)
    return found.group("name") if found is not None else None


def _heads(line: Line) -> bool:
    return line.text.rstrip()[-1:] in (":", "\uff1a")


def _headed(passage: Passage) -> Iterator[tuple[int, str, Line]]:
    """Rows of numbers and names right below words that end in "nvidia-smi:"."""
    below = False
    for line in passage.lines:
        if (row := _pattern("headed").match(line.text)) is not None and below:
            yield int(row.group("index")), row.group("name"), line
        else:
            # what is said of torch as well may be of either
            below = (
                _heads(line)
                and _pattern("sides").search(line.text) is not None
                and _pattern("torch-side").search(line.text) is None
            )


def _first_card(expression: str) -> bool:
    found = _pattern("name-of").search(expression)
    return found is not None and found.group("index") in ("", "0")


def _properties(text: str) -> str:
    found = _pattern("properties").match(text)
    return found.group("name") if found is not None else text


def _of_columns(columns: list[str], answers: tuple[Line, ...]) -> Iterator[tuple[int, str, Line]]:
    named = next((at for at, one in enumerate(columns) if one in ("name", "gpu_name")), None)
    if named is None or "index" not in columns:
        return
    numbered = columns.index("index")
    for answer in answers:
        cells = [one.strip() for one in answer.text.split(",")]
        if len(cells) == len(columns) and cells[numbered].isdecimal():
            yield int(cells[numbered]), cells[named], answer


def _mapped(passage: Passage, torch: bool) -> Iterator[tuple[int, str, Line]]:
    for line in passage.lines:
        for found in _pattern("mapped").finditer(line.text):
            if (found.group("side") in ("torch", "pytorch", "cuda")) != torch:
                continue
            for pair in _pattern("pair").finditer(found.group("pairs") or ""):
                yield int(pair.group("index")), pair.group("name"), line
            for index, name in enumerate(arguments(found.group("names") or "")):
                yield index, name.strip("'\""), line


def _table(passage: Passage) -> Iterator[tuple[int, str, str, Line]]:
    """Rows of a table whose head names nvidia-smi and torch: number, the one's name, the other's."""
    head: tuple[int, int] | None = None
    width = 0
    for line in passage.lines:
        row = cells(line.text)
        if head is not None and len(row) == width:
            number = _pattern("number").match(row[0])
            smi, torch = row[head[0]], row[head[1]]
            if number is not None and not smi.isdecimal() and not torch.isdecimal():
                yield int(number.group("index")), smi.strip("`'\" "), torch.strip("`'\" "), line
                continue
        if len(row) >= 3:
            sides = [at for at, one in enumerate(row) if _pattern("sides").search(one.lower())]
            torches = [at for at, one in enumerate(row) if _pattern("torch-side").search(one.lower())]
            if len(sides) == 1 and len(torches) == 1 and sides != torches and 0 not in (*sides, *torches):
                head, width = (sides[0], torches[0]), len(row)


def cells(text: str) -> list[str]:
    """The cells of a row of a table: by bars, tabs, two blanks or more, or commas; [] of other lines."""
    stripped = text.strip()
    if "|" in stripped:
        return [one.strip() for one in stripped.strip("|").split("|")]
    if "\t" in stripped:
        return [one.strip() for one in stripped.split("\t")]
    blanks = re.split(r" {2,}", stripped)
    return blanks if len(blanks) >= 3 else arguments(stripped) if stripped.count(",") >= 2 else []
