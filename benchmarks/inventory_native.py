"""What a shared library can print: the texts of its read-only data that have the form of a refusal.

A compiler keeps the texts of one function side by side, a message with values in pieces. Pieces that begin
as the middle of a sentence does are joined to the text before them when that ends open. What else a library
holds, names, schemas, code and tables, has not the form of a sentence, and its remarks state no refusal.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator

from inventory_message import Hole, Message, Parts, of_percent

# what a library calls or holds when it speaks in this voice, the first that is there
VOICES: tuple[tuple[str, bytes], ...] = (
    ("check", rb"torchCheckFail|3c105ErrorC|2at5ErrorC|nvte_\w+"),
    ("nccl", rb"ncclDebugLog|ncclGetErrorString"),
    ("ptxas", rb"assembly aborted due to errors"),
    ("rocblas", rb"rocblas_status_to_string"),
    ("hip", rb"hipGetErrorString"),
    ("ort", rb"OnnxRuntimeException"),
    ("cuda", rb"cudaGetErrorString|cublasGetStatusString|cudnnGetErrorString"),
    ("slurm", rb"slurmstepd"),
)
_LIBRARY = re.compile(r"\.so(?:\.\d+)*$|\.dll$|\.pyd$|(?:^|/)s?bin/[\w-]+$")
_TEXT = re.compile(rb"(?<=\x00)[\t\n\x20-\x7e]{2,}(?=\x00)")
# TORCH_CHECK and what it was before, NCCL's WARN, in sources of C++
_CALLS = re.compile(
    r"\b(?:TORCH_CHECK(?:_\w+)?|AT_CHECK|AT_ASSERTM|AT_ERROR|THError|NVTE_CHECK|NVTE_ERROR|WARN)\s*\("
)
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SOURCE = (".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp")

_HEAD = re.compile(r"[A-Z][a-z]|[A-Z] |[`'\"\[(]?\w[\w.:`'\"\])]*(?:\(\))?:? |%s")
_MIDDLE = re.compile(r"[\s,;:.)\]}'\"`-]")
_OPEN = re.compile(r"(?:[\s(\[{'\"`=]|: ?)$")
_WORD = re.compile(r"(?<![\w.:/<-])[A-Za-z]?[a-z']+(?![\w/:>(<]|\.\w)")
_CODE = re.compile(
    r"::\w+::|->|[;{}]\s*$|^\s*(?:#|//|@)|[^ ]{60}|[<>]{2}|\w,\w+,\w|"
    r"\bvoid\b|\bconst\b|\w+\(\w+ \w+[,)]|=\s*\w+\(|&&|\|\|"
)
# a refusal denies something, demands something, or says that something went wrong
_REFUSES = re.compile(
    r"(?i)\b(?:must|should|shall|expect\w*|require\w*|needs?|only|not|no|cannot|can't|couldn't|don't|doesn't|"
    r"isn't|aren't|didn't|wasn't|hasn't|without|un\w+able|in(?:valid|correct|consistent|compatible)\w*|"
    r"un(?:expected|supported|known|recognized|handled|defined|initialized)|fail\w*|error\w*|missing|"
    r"mismatch\w*|too|out of|illegal|exceed\w*|already|wrong|bad|attempt\w*|tri(?:ed|es|ying))\b"
)
_UNIT = re.compile(r"(?:^|\")((?:\.\./|/)[\w./+-]+\.(?:cpp|cc|cu|h|hpp|cuh))(?=$|\")")
# what a library links in, or includes: not its own checks
_FOREIGN = re.compile(r"third_party|/llvm/|/torch/include/|^/(?:tmp|builddir|usr)/")
# a copy of another package's library, as auditwheel names it
_BUNDLED = re.compile(r"\.libs/|-[0-9a-f]{8}[.-]")
_NEAR = 80  # texts between a message and the name of its source file
_LEAST_WORDS = 3
_LONGEST = 600
_ASSERTED = re.compile(r"INTERNAL ASSERT FAILED|^Expected .{1,400} to be true, but got false")


def speaks(name: str) -> bool:
    """May a file of this name hold messages for this module?"""
    included = "/include/" in name or "third_party/" in name
    return bool(_LIBRARY.search(name)) or (name.endswith(_SOURCE) and not included)


def messages(package: str, file: str, data: bytes) -> Iterator[Message]:
    """The messages of a library, or of a source of C++."""
    if file.endswith(_SOURCE):
        yield from _of_source(package, file, data.decode("utf-8", "replace"))
        return
    if _BUNDLED.search(file):
        return
    voice = next((name for name, form in VOICES if re.search(form, data)), "")
    # who calls CUDA does not print its messages
    if not voice or (voice == "cuda" and not file.startswith("nvidia/")):
        return
    texts = [found[0].decode("ascii") for found in _TEXT.finditer(_constants(data))]
    units = _Units(texts)
    for parts, at, piece in _joined(texts):
        owner = "ptxas" if voice == "ptxas" else package
        source = units.of(at) if voice == "check" else ""
        if voice == "check" and (not source or _FOREIGN.search(source)):
            if "/gloo/" not in source:
                continue
            owner = "gloo"
        kind = "RuntimeError" if voice == "check" else ""
        yield Message(owner, f"{file}:{source}", 0, kind, parts, voice=voice, piece=piece)


class _Units:
    """From which source file a text comes: a check names its file, whose texts stand around it."""

    def __init__(self, texts: list[str]) -> None:
        found = ((number, _UNIT.search(text)) for number, text in enumerate(texts))
        self.named = [(number, match[1]) for number, match in found if match is not None]
        self.places = [number for number, _ in self.named]

    def of(self, place: int) -> str:
        """The file named next to a text, before or behind it; "" where none is near."""
        at = bisect_left(self.places, place)
        near = [one for one in self.named[max(0, at - 1) : at + 1] if abs(one[0] - place) <= _NEAR]
        return min(near, key=lambda one: abs(one[0] - place), default=(0, ""))[1]


def is_refusal(text: str) -> bool:
    """Has a text the form of a message that refuses something: a sentence, with a denial or a demand?"""
    if len(text) > _LONGEST or _CODE.search(text) or not _HEAD.match(text):
        return bool(_ASSERTED.search(text[:_LONGEST]))
    return len(_WORD.findall(text)) >= _LEAST_WORDS and bool(_REFUSES.search(text))


def _joined(texts: list[str]) -> Iterator[tuple[Parts, int, bool]]:
    """Messages with their pieces, the place of each, and whether it is a piece of a longer one."""
    held: list[str | Hole] = []
    place = 0
    for number, text in enumerate((*texts, "End.")):
        if held and isinstance(held[-1], str) and _OPEN.search(held[-1]) and _MIDDLE.match(text):
            held += [Hole(""), text]
            continue
        if held and is_refusal("".join(one if isinstance(one, str) else "x" for one in held)):
            unfinished = isinstance(held[-1], str) and bool(_OPEN.search(held[-1]))
            found = (*held, Hole("")) if unfinished else tuple(held)
            yield of_percent(found), place, unfinished or len(held) > 1
        held, place = [text], number


def _constants(data: bytes) -> bytes:
    """The section of constants of an ELF file; the whole of another."""
    if data[:4] != b"\x7fELF" or data[4] != 2:
        return data
    start, size, count, names = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<HHH", data, 58),
    )
    if not start or not count:
        return data
    sections = [struct.unpack_from("<IIQQQQ", data, start + number * size) for number in range(count)]
    table = sections[names][4]
    found = []
    for name, _, _, _, offset, length in sections:
        if (
            data[table + name : table + name + 8] == b".rodata\x00"
            or data[table + name : table + name + 8] == b".rodata."
        ):
            found.append(data[offset : offset + length])
    return b"\0".join(found) if found else data


def _of_source(package: str, file: str, source: str) -> Iterator[Message]:
    for call in _CALLS.finditer(source):
        if source[source.rfind("\n", 0, call.start()) + 1 : call.start()].lstrip().startswith("#"):
            continue
        end = _closed(source, call.end())
        literals = [one[1] for one in _LITERAL.finditer(source, call.end(), end)]
        parts: list[str | Hole] = []
        for one in literals:
            parts += [one.replace('\\"', '"').replace("\\n", "\n"), Hole("")]
        voice = "nccl" if call[0].startswith("WARN") else "check"
        text = of_percent(tuple(parts[:-1]))
        if re.search(r"[A-Za-z]{3,}", "".join(one for one in text if isinstance(one, str))):
            line = source.count("\n", 0, call.start()) + 1
            kind = "RuntimeError" if voice == "check" else ""
            yield Message(package, file, line, kind, text, voice=voice, piece=len(literals) > 1)


def _closed(source: str, at: int) -> int:
    """Where the bracket closes that was opened before this place."""
    depth, limit = 1, min(len(source), at + 3000)
    while at < limit and depth:
        if source[at] == '"':
            found = _LITERAL.match(source, at)
            at = found.end() if found else at + 1
            continue
        depth += {"(": 1, ")": -1}.get(source[at], 0)
        at += 1
    return at
