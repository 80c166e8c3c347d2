"""A pause before every epoch: the workers of a loader are ended and started anew each time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.figures import seconds
from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "worker_restart"

FACTS: dict[str, str] = {
    "worker_restart.seconds": "float: seconds that the first batch of every epoch takes, with workers",
    "worker_restart.told": "float: seconds of a pause before every epoch that somebody tells of",
    "worker_restart.not_kept": "bool: the loader has workers and does not keep them over epochs",
    "worker_restart.contrast": "bool: without workers, or with workers that are kept, there is no pause",
}

PAUSE_S = 3.0

_PATTERNS = {
    "some": (
        r"(?:num_workers|workers)[\"'`]?\s?[=:]?\s?(?:[1-9]\d?)\b|\b[1-9]\d? workers|args\.workers"
        r"|cfg\.\w*workers"
    ),
    "first": (
        r"(?:\b(?:first|1st)(?: (?:training|train))? (?:batch|iter(?:ation)?|step|it)\b"
        r"|\berste[rs]?n? (?:Batch|Schritt|Iteration)"
        r"|\bpremier (?:batch|lot|pas)|\bprimer (?:batch|lote|paso)|\bprimeiro (?:batch|lote|passo)"
        r"|\bprimo (?:batch|passo)|\bperv\w+ batch|\u043f\u0435\u0440\u0432\w+ (?:\u0431\u0430\u0442\u0447"
        r"|\u0448\u0430\u0433)\w*"
        r"|\u7b2c\u4e00\u4e2a\s?batch|\u9996\u4e2a\s?batch|\u7b2c\u4e00\u6279"
        r"|\u6700\u521d\u306e\u30d0\u30c3\u30c1|\uccab \ubc30\uce58"
        r"|time to (?:first|batch 0)|\bbatch 0\b|\bit(?:er)? 0\b|\bstep 0\b)[^\d\n]{0,24}"
    ),
    # the ImageNet example of torch: "Epoch: [1][0/196]  Time 17.003 (17.003)  Data 12.637 (12.637)"
    "meter": (
        r"Epoch:? ?\[(?P<epoch>\d{1,4})\]\s?\[\s*(?P<step>\d{1,7})/\s*\d{1,7}\]\s+(?:Time\s+(?P<time>\d{1,6}"
        r"\.\d{1,6})[^\n]{0,24}?)?\bData\s+(?P<data>\d{1,6}\.\d{1,6})"
    ),
    "epoch": (
        r"\b(?:epoch|epoche|\u00e9poque|\u00e9poca|epoca|\u044d\u043f\u043e\u0445\u0430)\s?[=:#]?\s?(?P<epoch"
        r">\d{1,4})\b|\u7b2c\s?(?P<cjk>\d{1,4})\s?\u4e2a?\s?(?:epoch|\u8f6e)"
    ),
    "figure": (
        r"(?<![\w.])(?P<number>\d{1,4}(?:[.,]\d{1,3})?)\s?(?:s|sec|secs|seconds?|Sek(?:unden)?|secondes?"
        r"|segundos?|secondi|\u0441\u0435\u043a\w*|\u79d2|\ucd08)(?![\w/])"
    ),
    "pause": (
        r"\b(?:pauses?|freezes?|frozen|hangs?|waits?|idles?|idle|gap|delay|stalls?|takes|Pause|wartet|warten|Leerlauf|attend"
        r"|attente|pausa|espera"
        r"|espera|attesa|\u043f\u0430\u0443\u0437\w*|\u0436\u0434\u0451\u0442|\u0436\u0434\u0435\u0442"
        r"|before the first (?:batch|step))\b|\u505c|\u7b49\u5f85|\u7a7a\u767d|\u5f85\u3061|\u5f85\u305f"
        r"|\u6b62\u307e|\uba48|\ub300\uae30"
    ),
    "each": (
        r"\b(?:each|every|between|start of|beginning of|jede[rs]?n?|zwischen|chaque|entre|cada|ogni|tra"
        r"|mellan|varje"
        r"|\u043a\u0430\u0436\u0434\w+|\u043c\u0435\u0436\u0434\u0443)\b|\u6bcf|\u6bce|\u5404|\ub9e4"
        r"|\u9593\u306b|\u4e4b\u95f4"
    ),
    "kept": r"persistent_workers[\"'`]?\s?[=:]?\s?[\"'`]?True|persistent_workers (?:on|an|is on)",
    "none": (
        r"num_workers[\"'`]?\s?(?:[=:]|auf|to|is|\u4e3a|\u6539\u6210)?\s?0\b|\b(?:without|no|ohne|sans|sin"
        r"|sem|senza|\u0431\u0435\u0437) (?:any )?(?:workers?|\u0432\u043e\u0440\u043a\u0435\u0440\w*)"
    ),
    "gone": (
        r"\b(?:no (?:pause|gap|delay|wait)|without (?:a |the )?(?:pause|gap|delay)|nicht|keine (?:Pause"
        r"|L\u00fccke)|pas de pause"
        r"|pas d'attente|sin pausa|no hay|sem pausa|nessuna pausa"
        r"|\u043d\u0435\u0442 \u043f\u0430\u0443\u0437\w*|gone|disappears?|vanish\w*|verschwindet|weg"
        r"|at once|immediately|instantly|sofort)\b"
        r"|\u6ca1\u6709|\u6ca1\u8fd9|\u4e0d\u7528\u7b49|\u3042\u308a\u307e\u305b\u3093|\u306a\u3044"
        r"|\u6d88\u3048|\uc5c6"
    ),
}


_pattern = patterns(_PATTERNS, re.IGNORECASE)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a pause at the start of epochs; nothing where nobody speaks of himself, or has no workers."""
    if not passage.personal:
        return
    some = passage.first(_pattern("some"))
    if some is None:
        return
    pause = _restart(passage)
    told = _told(passage)
    if pause is None and told is None:
        return
    if pause is not None:
        yield pause[1].fact("worker_restart.seconds", round(pause[0], 1))
    if told is not None:
        yield told[1].fact("worker_restart.told", round(told[0], 1))
    kept = [line for line in passage.lines if _pattern("kept").search(line.text)]
    code_keeps = any(line.voice in (Voice.CODE, Voice.TYPED) for line in kept)
    contrast = next((line for line in passage.sentences if _without_pause(line.text)), None)
    if contrast is not None:
        yield contrast.fact("worker_restart.contrast", True)
    if not kept or (contrast is not None and not code_keeps):
        yield some.fact("worker_restart.not_kept", True)


def _without_pause(text: str) -> bool:
    """Does a sentence say that there is no pause without workers, or with ones that are kept?"""
    if not (_pattern("none").search(text) or _pattern("kept").search(text)):
        return False
    return _pattern("gone").search(text) is not None or says("works").search(text) is not None


def _restart(passage: Passage) -> tuple[float, Line] | None:
    """The first batch of several epochs, where each takes long."""
    pauses: dict[int, tuple[float, Line]] = {}
    apart: list[tuple[float, Line]] = []  # lines of first batches that do not name their epoch
    epochs = 0
    for line in passage.of(Voice.PRINTED, Voice.SAID):
        meter = _pattern("meter").search(line.text) if line.voice is Voice.PRINTED else None
        if meter is not None:
            if int(meter.group("step")) == 0:
                pauses[int(meter.group("epoch"))] = (float(meter.group("data")), line)
            continue
        epoch, first = _pattern("epoch").search(line.text), _pattern("first").search(line.text)
        epochs += epoch is not None
        if first is None:
            continue
        figure = next((item for item in seconds(line.text) if item.start >= first.end() - 1), None)
        if figure is None:
            continue
        if epoch is not None:
            number = epoch.group("epoch") or epoch.group("cjk")
            pauses[int(number)] = (figure.value, line)
        elif line.voice is Voice.PRINTED:
            apart.append((figure.value, line))
    if len(pauses) < 2 <= min(len(apart), epochs):
        pauses = dict(enumerate(apart))
    later = [item for number, item in sorted(pauses.items()) if number > min(pauses)]
    if len(pauses) < 2 or not later or any(value < PAUSE_S for value, _ in pauses.values()):
        return None
    return later[0]


def _told(passage: Passage) -> tuple[float, Line] | None:
    """A sentence on a pause of some seconds at each epoch."""
    for line in passage.sentences:
        text = line.text
        if not (
            _pattern("pause").search(text) and _pattern("each").search(text) and says("epochs").search(text)
        ):
            continue
        found = _pattern("figure").search(text)
        length = float(found.group("number").replace(",", ".")) if found is not None else 0.0
        if length >= PAUSE_S:
            return length, line
    return None
