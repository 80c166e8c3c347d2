"""float32 products that run without TF32 where somebody expects the speed of tensor cores.

torch 1.12 switched TF32 off for matrix products, and left it on for convolutions: the same Linear layer takes
three to seven times as long on an A100 as with torch 1.7 to 1.11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.cured import cured
from torchdoctor.extract.readings.passage import Line, Passage
from torchdoctor.extract.readings.pasted_tables import Table, number, tables
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.tensor_float import card_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "tensor_speed"

FACTS: dict[str, str] = {
    "tensor_speed.product": "bool: products of float32 matrices are what is timed",
    "tensor_speed.slower": "bool: figures or words show them slower than before torch 1.12 or elsewhere",
    "tensor_speed.plain": "bool: a rate, a setting or the name of a kernel shows that TF32 is off",
    "tensor_speed.missed": "bool: somebody says that it is slow, or that he expects more",
    "tensor_speed.card": "str: GPU of the text that has TF32 (Ampere or later)",
}

SLOWER = 2.2
# float32 without tensor cores in TFLOP/s, of the data sheets
RATES = {
    "A100": 19.5, "A800": 19.5, "A10": 31.2, "A30": 10.3, "A40": 37.4, "H100": 67.0, "H200": 67.0,
    "H800": 67.0, "L40S": 91.6, "L4": 30.3, "B200": 80.0,
}  # fmt: skip
NEAR = (0.6, 1.02)  # of that, what a product of large matrices reaches
TF32_SINCE, OFF_SINCE = (1, 7), (1, 12)

_PATTERNS = {
    "float": r"(?i)float ?32|\bfp32\b|single precision|\bf32\b|einfacher Genauigkeit|simple pr\u00e9cision",
    "product": (
        r"(?i)mat ?mul|\bgemm|sgemm|\bbmm\b|einsum|\bLinear\b|\bmm\(|\s@\s|nn\.Linear|MLP|attention"
        r"|transformer|matrix"
        r"|matrices|Matri[xz]|\u77e9\u9635|\u884c\u5217|\ud589\ub82c"
        r"|\u043c\u0430\u0442\u0440\u0438\u0446|produit|producto"
    ),
    "version": r"(?<![\d.])(?P<major>[12])\.(?P<minor>\d{1,2})(?:\.\d{1,2})?(?:\+\w+|\.post\d)?(?![\d.]*\w)",
    "rate": r"(?<![\d.])(?P<value>\d{1,4}(?:[.,]\d{1,3})?)\s?(?:TFLOPS?|TFLOP/s|Tflop/?s|TF/s|TFlops?)\b",
    "time": (
        r"(?i)\b(?:ms|time|s|sec|seconds|latency|us|\u00b5s|s/it|Zeit|temps|tiempo|tempo|\u8017\u65f6"
        r"|\u65f6\u95f4|\u6642\u9593|\uc2dc\uac04)\b"
    ),
    "flops": r"(?i)t?flop",
    "speed": r"(?i)t?flop|it/s|/s\b|throughput|per sec",
    "times": (
        r"(?i)(?P<value>\d{1,2}(?:[.,]\d)?)\s?(?:x|\u00d7|times|-?fach|fois|veces|vezes|volte|\u500d"
        r"|\ubc30|\u0440\u0430\u0437\u0430?)(?!\w)"
    ),
    "off": (
        r"float32_matmul_precision\(?\)?\W{0,12}highest|matmul\.allow_tf32\W{1,6}(?:is )?False"
        r"|fp32_precision\W{0,8}(?:ieee|none)"
        r"|NVIDIA_TF32_OVERRIDE\W{0,3}0\b"
    ),
    "kernel": (
        r"\b(?:ampere|volta|turing|cutlass_80_simt|sm80_xmma|maxwell)_?\w{0,12}sgemm\w*|simt_sgemm\w*"
        r"|\bsgemm_\d+x\d+"
    ),
    "measure": r"(?i)flop|speed|faster|fast\b|times|\bx\b|schnell|rapide|r\u00e1pid|velo",
    "hoped": (
        r"(?i)\bexpect\w*|\bshould (?:be|reach|give|do)\b|data ?sheet|\bspecs?\b|\bpeak\b|erwart"
        r"|Datenblatt|attend|esper"
    ),
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a comparison of speeds that somebody made; nothing where no card with TF32 is named."""
    if not passage.asked or cured(passage):
        return
    card = card_of(passage)
    product = passage.first(_pattern("product"))
    if card is None or product is None or not _pattern("float").search(passage.text):
        return
    line, name = card
    yield line.fact("tensor_speed.card", name)
    yield product.fact("tensor_speed.product", True)
    slower = _by_version(passage) or _told(passage)
    if slower is not None:
        yield slower.fact("tensor_speed.slower", True)
    rate = _plain_rate(passage, name)
    missed = next(
        (
            one
            for one in passage.sentences
            if says("slow").search(one.text)
            or (_pattern("hoped").search(one.text) and (rate or _pattern("measure").search(one.text)))
        ),
        None,
    )
    if missed is not None:
        yield missed.fact("tensor_speed.missed", True)
    plain = passage.first(_pattern("off")) or rate or passage.first(_pattern("kernel"))
    if plain is not None:
        yield plain.fact("tensor_speed.plain", True)


def _versions(text: str) -> list[tuple[int, int]]:
    found = _pattern("version").finditer(text)
    return [(int(one["major"]), int(one["minor"])) for one in found]


def _off(version: tuple[int, int]) -> bool:
    return version >= OFF_SINCE


def _on(version: tuple[int, int]) -> bool:
    return TF32_SINCE <= version < OFF_SINCE


def _by_version(passage: Passage) -> Line | None:
    """The row of a table, or the line, in which a later torch takes far longer than one before 1.12."""
    for table in tables(passage):
        found = _rows(table)
        if found is not None:
            return found
    before: tuple[float, bool] | None = None
    after: tuple[float, bool, Line] | None = None
    for line in passage.lines:
        versions = _versions(line.text)
        figure = _figure(line.text)
        if len(versions) != 1 or figure is None:
            continue
        if _on(versions[0]):
            before = before or figure
        elif _off(versions[0]):
            after = after or (*figure, line)
    if before is None or after is None or before[1] != after[1]:
        return None
    one, two = (after[0], before[0]) if before[1] else (before[0], after[0])
    return after[2] if two >= SLOWER * one > 0 else None


def _figure(text: str) -> tuple[float, bool] | None:
    """The rate (True) or the time (False) that a line holds."""
    rate = _pattern("rate").search(text)
    if rate is not None:
        return float(rate["value"].replace(",", ".")), True
    time = re.search(r"(?<![\w.])(\d{1,6}(?:[.,]\d{1,4})?)\s?(?:ms|s|sec|us|\u00b5s)\b", text)
    return (float(time.group(1).replace(",", ".")), False) if time is not None else None


def _rows(table: Table) -> Line | None:
    for index, head in enumerate(table.heads):
        quick = bool(_pattern("speed").search(head))
        if not quick and not _pattern("time").search(head):
            continue
        before: list[float] = []
        after: list[tuple[float, Line]] = []
        for row in table.rows:
            cells = row.cells[-len(table.heads) :]
            value = number(cells[index][1]) if index < len(cells) else None
            versions = _versions(row.label) or _versions(cells[0][1])
            if value is None or not versions:
                continue
            if _on(versions[0]):
                before.append(value)
            elif _off(versions[0]):
                after.append((value, row.line))
        for value, line in after:
            if any((old >= SLOWER * value) if quick else (value >= SLOWER * old) for old in before):
                return line
    return None


def _told(passage: Passage) -> Line | None:
    """Words for it: "5x slower since 1.12", beside an older version, another framework or a known figure."""
    versions = _versions(passage.text)
    since = any(map(_on, versions)) and any(map(_off, versions))
    for line in passage.sentences:
        if not says("slow").search(line.text):
            continue
        times = [float(one["value"].replace(",", ".")) for one in _pattern("times").finditer(line.text)]
        if since and any(SLOWER <= value <= 12 for value in times):
            return line
        if re.search(
            r"(?i)tensorflow|\bjax\b|keras|cublas|cupy|\bexpect|\bTFLOP|data ?sheet|tensor core", line.text
        ):
            return line
    return None


def _plain_rate(passage: Passage, card: str) -> Line | None:
    """A rate that is the card's without tensor cores."""
    peak = RATES.get(card)
    if peak is None:
        return None
    for line in passage.lines:
        for found in _pattern("rate").finditer(line.text):
            value = float(found["value"].replace(",", "."))
            if NEAR[0] * peak <= value <= NEAR[1] * peak and "16" not in line.text:
                return line
    for table in tables(passage):
        for row in table.rows:
            for head, cell in row.cells:
                rate = number(cell) if _pattern("flops").search(head) else None
                if rate is not None and NEAR[0] * peak <= rate <= NEAR[1] * peak:
                    return row.line
    return None
