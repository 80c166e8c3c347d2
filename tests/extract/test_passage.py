"""Who made which line of a text that people wrote: typed, shell, code, printed, said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchdoctor.extract.readings.passage import Passage, Voice
from torchdoctor.extract.readings.voices import LINE_CHARS
from torchdoctor.intake import read
from torchdoctor.model import Event, EventKind, Speech, Transcript


def passage(*lines: str) -> Passage:
    events = tuple(
        Event(number, EventKind.LOG, line, "question.txt", number + 1, number + 1)
        for number, line in enumerate(lines)
    )
    return Passage(Transcript(("question.txt",), events))


@pytest.mark.parametrize(
    ("line", "voice"),
    [
        (">>> torch.get_num_threads()", Voice.TYPED),
        ("In [12]: x.shape", Voice.TYPED),
        ("... y = 2", Voice.TYPED),
        ("%env CUDA_VISIBLE_DEVICES=1", Voice.TYPED),
        ("$ free -g", Voice.SHELL),
        ("(base) me@box:~/run$ nvidia-smi -L", Voice.SHELL),
        ("Out[3]: 8", Voice.PRINTED),
        ("import os, torch", Voice.CODE),
        ("    pred = model(img.cuda())", Voice.CODE),
        ("for name, value in the_items:", Voice.CODE),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"', Voice.CODE),
        ("(w ** 2).sum().backward()", Voice.CODE),
        ("# the order that we want", Voice.CODE),
        ("num_workers=8  161.0 s", Voice.PRINTED),
        ("torch.get_num_threads() = 1", Voice.PRINTED),
        ("tensor(0.0306)", Voice.PRINTED),
        ("Mem:   1007  983  5  861  18  9", Voice.PRINTED),
        ("| 30%  36C  P8  22W / 450W | 4MiB / 24564MiB |", Voice.PRINTED),
        ("What is wrong with my loader?", Voice.SAID),
        ("With num_workers=0 it is constant at 3.4 GB.", Voice.SAID),
    ],
)
def test_the_voice_of_a_line(line: str, voice: Voice) -> None:
    assert [one.voice for one in passage(line).lines] == [voice]


def test_a_value_below_a_typed_line_is_its_answer() -> None:
    found = passage(">>> a", "tensor(1.5e-05)", ">>> b", "[1, 2]", "Why is that?")
    typed = list(found.of(Voice.TYPED))
    assert [[one.text for one in found.answers(line)] for line in typed] == [["tensor(1.5e-05)"], ["[1, 2]"]]
    assert found.session


def test_a_fence_of_python_is_code_whatever_stands_in_it() -> None:
    found = passage("```python", "x", "```", "x 1")
    assert [one.voice for one in found.lines] == [Voice.CODE, Voice.PRINTED]


def test_a_command_of_python_is_taken_apart() -> None:
    found = passage('CUDA_VISIBLE_DEVICES=1 python3 -c "import torch; print(torch.cuda.device_count())"')
    assert [(one.voice, one.text) for one in found.lines] == [
        (Voice.SHELL, "CUDA_VISIBLE_DEVICES=1"),
        (Voice.CODE, "import torch"),
        (Voice.CODE, "print(torch.cuda.device_count())"),
    ]


@pytest.mark.parametrize(
    ("person", "lesson", "personal"), [(True, 0, True), (True, 2, False), (False, 0, False)]
)
def test_whether_somebody_speaks_is_what_intake_heard(person: bool, lesson: int, personal: bool) -> None:
    speech = Speech(person=person, lesson=lesson)
    assert Passage(Transcript(("question.txt",), (), speech=speech)).personal is personal


def test_facts_name_the_line_they_were_read_from(tmp_path: Path) -> None:
    file = tmp_path / "question.txt"
    file.write_text("Why?\n\n>>> torch.get_num_threads()\n1\n", encoding="utf-8")
    lines = Passage(read([str(file)])).lines
    assert lines[-1].fact("threads.one", True).source == f"text:{file}:4"


def test_long_lines_are_cut() -> None:
    assert len(passage("x" * 10_000).lines[0].text) == LINE_CHARS


WRAPPED = (
    "My loader stops after a few hundred batches, always at another one, and I have found that with",
    "num_workers=0 it runs through. Nothing is printed!",
    "Is that known?",
    "",
    "- one more thing: the pin_memory thread is still there",
)


def test_a_sentence_goes_on_in_the_next_line() -> None:
    found = passage(*WRAPPED)
    assert [line.voice for line in found.lines[:3]] == [Voice.SAID] * 3
    assert [(line.at, line.text) for line in found.sentences[:3]] == [
        (0, f"{WRAPPED[0]} num_workers=0 it runs through."),
        (1, "Nothing is printed!"),
        (2, "Is that known?"),
    ]
    assert found.sentences[-1].text == WRAPPED[-1]


def test_words_that_begin_in_one_line_and_end_in_the_next_are_told_at_the_first() -> None:
    told = passage(*WRAPPED).told(re.compile(r"with num_workers=0 it runs"))
    assert told is not None
    assert told.place == "text:question.txt:1"
    assert passage(*WRAPPED).told(re.compile("known\\? - one")) is None


def test_a_short_line_and_one_that_ends_are_followed_by_what_they_show() -> None:
    for line in (
        "It prints this on each of the ranks",
        "It prints what follows here on each of the eight ranks:",
    ):
        assert passage(line, "pin_memory=True and workers=4").lines[1].voice is Voice.CODE


@pytest.mark.parametrize(
    "line",
    [
        "Il programma si ferma dopo la prima epoca.",
        "El entrenamiento se queda parado con dos tarjetas.",
        "Trening zatrzymuje się po kilku krokach.",
        "Eğitim birkaç adımdan sonra duruyor ve bir hata yok.",
    ],
)
def test_sentences_of_many_languages_are_said(line: str) -> None:
    assert [one.voice for one in passage(line).lines] == [Voice.SAID]
