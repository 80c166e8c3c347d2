"""A vGPU, a MIG instance or a shared card where somebody expects the memory or the speed of the whole one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import rates
from torchdoctor.extract.readings.passage import Line, Passage
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "gpu_slice"

FACTS: dict[str, str] = {
    "gpu_slice.name": "str: name of a vGPU or MIG instance, or what shows that the card is shared out",
    "gpu_slice.missed": "bool: somebody misses memory or speed that the whole card would have",
}

_PATTERNS = {
    "slice": (
        # GRID T4-4Q, NVIDIA A16-8C, NVIDIA A100-1-5C, NVIDIA RTX6000-Ada-12Q, NVIDIA A40-12Q
        r"(?:NVIDIA |GRID )(?:RTX ?)?[A-Z]{0,3}\d{1,4}[A-Z]{0,4}(?:-Ada|-4)?(?:-[1-7])?-\d{1,2}[QCBA]\b"
        r"|[^\s'\"|`(,][^'\"|\n`]{2,40} MIG \d{1,2}[cg]\.(?:\d{1,2}g\.)?\d{1,3}gb(?:\+me)?"
    ),
    "instance": r"\bMIG \d{1,2}g\.\d{1,3}gb(?:\+me)?\b|\bMIG-(?:GPU-)?[0-9a-f]{8}-[0-9a-f]{2,4}",
    "profile": (
        r"\b(?:profile|profil|perfil|profilo|vGPU|GRID|\u30d7\u30ed\u30d5\u30a1\u30a4\u30eb"
        r"|\u914d\u7f6e)\b[^.\n]{0,30}?"
        r"\b(?P<name>(?:RTX ?)?[A-Z]{0,3}\d{1,4}[A-Z]{0,2}-\d{1,2}[QCBA])\b"
    ),
    # shared out by the cluster: time slices, MPS, HAMi, cGPU
    "shared": (
        r"nvidia\.com/gpu\.shared|gpu\.replicas\s?[:=]\s?[\"']?(?:[2-9]|\d\d)|-SHARED\b"
        r"|nvidia\.com/gpu(?:mem|cores)\b"
        r"|HAMI-core|4pdvGPU|libvgpu\.so|CUDA_DEVICE_(?:MEMORY|SM)_LIMIT|aliyun\.com/gpu-mem|\bcGPU\b"
        r"|qgpu-(?:core|memory)"
        r"|CUDA_MPS_ACTIVE_THREAD_PERCENTAGE|CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
    ),
    # what torch says of the card: some multiprocessors only
    "processors": (
        r"multi_?processor_?count\W{1,4}(?P<count>\d{1,3})\b|\b(?P<count2>\d{1,3}) (?:SMs"
        r"|multiprocessors)\b"
    ),
    "memory": r"total_memory\W{1,4}(?P<mib>\d{4,6}) ?MB",
    "named-memory": r"\b(?P<gb>16|24|32|40|48|64|80|94|141)GB\b",
    "mode": r"Virtualization Mode\s*:\s*VGPU|MIG M(?:ode|\.)?\s*(?:Current\s*)?:\s*Enabled",
    "amount": r"\b\d{1,3}(?:[.,]\d{1,2})? ?(?:GB|GiB|Go|\u0413\u0411)\b",
    "question": r"\?|\uff1f",
    "whole": (
        r"\bas expected\b|\b(?:everything|all of it|it all) (?:trains?|works?|runs?) (?:well|fine)\b"
        r"|works (?:great|fine|as)|wie erwartet|works as designed|on purpose|absichtlich"
        r"|each (?:user|student)"
        r" gets"
    ),
}

# multiprocessors of whole cards, by a word of their names
# (docs.nvidia.com/datacenter/tesla/mig-user-guide and the cards' data sheets)
_PROCESSORS = {
    "A100": 108, "A800": 108, "A30": 56, "H100": 114, "H800": 114, "H200": 132, "GH200": 132,
    "A40": 84, "A10": 72,
    "L40S": 142, "L40": 142, "L4": 58, "T4": 40, "V100": 80, "B200": 148,
}  # fmt: skip
_PART = 0.8
TITLE = 90  # characters


_pattern = patterns(_PATTERNS, re.IGNORECASE, only=("processors", "mode", "whole"))


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a card that is only a part of one; nothing where nobody misses anything."""
    if not passage.personal or passage.told(_pattern("whole")) is not None:
        return
    found = _part(passage)
    missed = _missed(passage) if found is not None else None
    if found is not None and missed is not None:
        yield found[0].fact("gpu_slice.name", found[1])
        yield missed.fact("gpu_slice.missed", True)


def _part(passage: Passage) -> tuple[Line, str] | None:
    for name in ("slice", "profile", "instance", "shared", "mode"):
        for line in passage.lines:
            if (found := _pattern(name).search(line.text)) is not None:
                return line, (found.group("name") if name == "profile" else found.group()).strip()
    for line in passage.lines:
        card = _card(line.text)
        if card is None:
            continue
        near = [line, *passage.lines[line.at + 1 : line.at + 7]]
        for one in near:
            if (count := _pattern("processors").search(one.text)) is not None:
                number = int(count.group("count") or count.group("count2"))
                if 0 < number <= _PART * _PROCESSORS[card]:
                    return one, f"{card} with {number} of {_PROCESSORS[card]} multiprocessors"
        promised, mib = _pattern("named-memory").search(line.text), _pattern("memory").search(line.text)
        if promised and mib and int(mib.group("mib")) <= 1024 * _PART * int(promised.group("gb")):
            return line, f"{card} with {mib.group('mib')} MB of {promised.group()}"
    return None


def _card(text: str) -> str | None:
    if "NVIDIA" not in text and "Tesla" not in text and "GRID" not in text:
        return None
    words = re.split(r"[\s\-'\"(),]+", text)
    return next((word for word in words if word in _PROCESSORS), None)


def _missed(passage: Passage) -> Line | None:
    """Too slow, too small, less than the name says; or a size and the question why."""
    title = [line for line in passage.lines[:1] if len(line.text) <= TITLE]
    for line in (*passage.sentences, *title):
        if says("falls short").search(line.text):
            return line
    for line in passage.sentences:
        rate = [figure.value for figure in rates(line.text)]
        if len(rate) >= 2 and max(rate) >= 2 * min(rate) > 0:
            return line
    for line in (*passage.sentences, *title):
        if _pattern("question").search(line.text) and (
            _pattern("amount").search(line.text) or says("slow").search(line.text)
        ):
            return line
    return None
