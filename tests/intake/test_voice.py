"""Whether people speak in a text, and whether they report, ask or explain."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.intake.voice import MANY_CHAPTERS, hear, is_form, questions_and_answers
from torchdoctor.model import Form


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


PERSON = {
    "I": "I see nan in the second epoch.",
    "my": "My loss does not go down.",
    "a question": "Is that normal?",
    "two words": "Why?",
    "a form": "### Describe the bug",
    "slower": "Training got 40 % slower after lunch.",
    "German": "Bei mir bricht es ab.",
    "French": "j'ai la meme chose",
    "Russian": "\u0423 \u043c\u0435\u043d\u044f \u043f\u0430\u0434\u0430\u0435\u0442",
    "Chinese": "\u6211\u7684\u8bad\u7ec3\u505c\u4e86",
    "Japanese": "\u3069\u3046\u3059\u308c\u3070\u3044\u3044",
}
NOBODY = {
    "a sentence": "This flag controls whether to allow TF32 on matmul.",
    "a log": "epoch 1 loss 0.3",
    "a name of a program": "for i in range(10): model(i)",
    "a day": "Date:   Mon Mar 3 10:00:00 2025 +0000",
}


@pytest.mark.parametrize("name", PERSON)
def test_somebody_speaks(name: str) -> None:
    assert hear([PERSON[name]], Form.PROSE).person


@pytest.mark.parametrize("name", NOBODY)
def test_nobody_speaks(name: str) -> None:
    assert not hear([NOBODY[name]], Form.PROSE).person


ARTICLE = """How to fix mat1 and mat2
The message occurs when two shapes differ.
## Causes and fixes
Check the layer before.
## Conclusion
"""


def test_an_article_is_a_lesson_and_a_question_below_it_is_not() -> None:
    assert hear(lines_of(ARTICLE), Form.PROSE).lesson >= 3
    asked = hear(lines_of(f"{ARTICLE}I did all that. What can I do? Thanks in advance\n"), Form.PROSE)
    assert asked.asks
    assert asked.lesson == 0


def test_a_title_that_asks_is_answered_by_the_article() -> None:
    title = "PyTorch 报错怎么办？ 解决方案汇总\n一、原因\n"
    article = f"{title}二、解决方法\n1、减小\n2、清理\n三、总结\n"
    assert hear(lines_of(article), Form.PROSE).lesson > 3


def test_a_text_of_many_headings_is_a_manual_unless_it_is_a_form() -> None:
    headings = [f"## Part {chr(65 + number)}" for number in range(MANY_CHAPTERS)]
    assert hear(["Why is my loader slow?", *headings], Form.PROSE).lesson == 3
    assert hear(["Why is my loader slow?", *headings[1:]], Form.PROSE).lesson == 0
    assert hear(["### Describe the bug", *headings], Form.PROSE).lesson == 0


def test_a_version_and_a_list_are_changes() -> None:
    assert hear(["## 1.2.0", "- Fixed a", "- Fixed b"], Form.PROSE).lesson == 2
    assert hear(["torch 2.1", "- I tried a", "What else can I try?"], Form.PROSE).lesson == 0


def test_what_is_set_in_is_not_said() -> None:
    assert hear(["I got this:", "        This means that you have forgotten to fork"], Form.PROSE).lesson == 0


@pytest.mark.parametrize(
    ("last", "now"), [("any idea?", True), ("works again, it was the cable", False), ("ok", True)]
)
def test_a_chat_is_about_what_goes_on_until_it_is_solved(last: str, now: bool) -> None:
    chat = ["<anna> my run just crashed with CUDA error", "<ben> hm", f"<anna> {last}"]
    assert hear(chat, Form.PROSE, chat=True).now is now


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("**Actual behavior**: it stops", True),
        ("- [x] I have searched the issues", True),
        ("### Versions", True),
        ("## Versions of torch and CUDA", False),
        ("# Bugfixes", False),
        ("Versions", False),
    ],
)
def test_forms_of_issue_trackers(line: str, form: bool) -> None:
    assert is_form([line]) is form


def test_questions_with_answers() -> None:
    assert questions_and_answers(["Q: a", "A: b", "Q: c"])
    assert not questions_and_answers(["A: b", "A: c", "A: d"])


@pytest.mark.parametrize("unit", ["why ", "? ", "I ", "**", "# a\n", "\u600e\u4e48", "error: ", "1. "])
def test_hostile_texts_take_no_time(unit: str) -> None:
    lines = lines_of((unit * 400)[:1_200] + "\n") * 400
    hear(["the tables are read"], Form.PROSE)
    bounded(0.1, lambda: hear(lines[:1_200], Form.PROSE))


def test_a_program_may_say_for_the_record() -> None:
    line = "WARNING caught while decoding part_003.wav, traceback for the record:"
    assert hear(["decoding 218 files", line, "part_003.wav ok"], Form.LOG).lesson == 0
    assert hear(["For the record, I fixed it by a reboot."], Form.LOG).lesson == 2


def test_a_command_is_no_title() -> None:
    lines = ["how to fix: interview notes", "Performing transcription...", "Aborted (core dumped)"]
    prompt = "ubuntu@ip-172-31-40-12:~$ whisperx interview_07.wav --language en"
    assert hear([prompt, *lines[1:]], Form.LOG).lesson == 0


def test_what_python_suggests_is_no_question() -> None:
    assert not hear(["module 'torch.nn' has no attribute 'Relu'. Did you mean: 'ReLU'?"], Form.PROSE).person
    assert hear(["Has torch.nn no attribute 'Relu'?"], Form.PROSE).person
