"""What people say, whatever their language; the same words about other things do not count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchdoctor.extract.readings import spoken
from torchdoctor.extract.readings.spoken import says


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ("hangs", "it HANGS after the first batch"),
        ("hangs", "the loop never\nreturns"),
        ("hangs", "Der Lauf bleibt nach zwei Minuten einfach stehen"),
        ("hangs", "le processus ne répond plus"),
        ("hangs", "se queda completamente parado"),
        ("hangs", "o treino trava no fim da época"),
        ("hangs", "programma si blocca sempre"),
        ("hangs", "процесс зависает"),
        ("hangs", "训练卡住了"),
        ("hangs", "途中で固まります"),
        ("hangs", "학습이 멈춰 버립니다"),
        ("works", "with one worker everything is fine"),
        ("works", "doesn\u2019t hang with spawn"),
        ("works", "com num_workers=0 funciona"),
        ("slow", "ist viel langsamer"),
        ("slow", "210 img/s"),
        ("grows", "显存一直在增加"),
        ("grows", "память растёт"),
        ("memory", "la mémoire du GPU"),
        ("unchanged", "всё равно берёт нулевую карту"),
        ("same order", "die Reihenfolge ist in jeder Epoche gleich"),
        ("uneven", "rank 3 has one batch less"),
        ("stays", "la perte ne baisse pas"),
    ],
)
def test_a_thing_in_many_languages(thing: str, text: str) -> None:
    assert says(thing).search(text) is not None


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ("hangs", "exchange rates changed"),
        ("works", "num_workers and networks, rerun"),
        ("slow", "slowfast_r50"),
        ("memory", "member, remember, ramp"),
        ("same order", "the order of the layers. The same batch size"),
        ("stays", "stays-in-sync"),
    ],
)
def test_parts_of_words_and_other_sentences_do_not_count(thing: str, text: str) -> None:
    assert says(thing).search(text) is None


def test_every_table_is_a_pattern_without_groups() -> None:
    assert len(spoken._tables()) >= 12
    for thing in spoken._tables():
        assert re.compile(spoken.source(thing)).groups == 0
        assert says(thing).search("") is None


def test_a_table_that_stands_there_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spoken.txt"
    file.write_text("[hangs]\nhangs\n\n[hangs]\nstuck\n", encoding="utf-8")
    monkeypatch.setattr(spoken, "_FILE", str(file))
    with pytest.raises(ValueError, match=r"\[hangs\] stands there twice"):
        spoken._tables.__wrapped__()
