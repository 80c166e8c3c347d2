"""What somebody tells of in his own words, and the fences around what he pastes."""

from __future__ import annotations

import pytest

from torchdoctor.intake.sentence import copied
from torchdoctor.intake.told import Fences
from torchdoctor.intake.transcript import read_text

MESSAGE = "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."


def quoted(text: str) -> list[bool]:
    return [event.quoted for event in read_text(text).events if "MPS Tensor" in event.text]


@pytest.mark.parametrize(
    "text",
    [
        f"I moved the model over and I am getting this error: `{MESSAGE}` Is there a way?",
        f'Inference on my laptop gives the following error.\n\n"{MESSAGE}"\n\nI changed the device only.',
        f"I start it as the page says. It prints:\n\n> {MESSAGE}\n\nWhat is it?",
        f"my run stops, 报错：\n{MESSAGE}\n",
    ],
)
def test_a_message_that_is_announced_is_no_quotation(text: str) -> None:
    assert quoted(text) == [False]


@pytest.mark.parametrize(
    "text",
    [
        f"If you get `{MESSAGE}`, I would convert before moving.\n\nThat is all there is to it.",
        f"I think users may see `{MESSAGE}` on old releases.\n\nIt is harmless, and goes away later.",
        f"The error `{MESSAGE}` means that the type does not exist there. I hope that helps you.",
    ],
)
def test_an_explanation_stays_one(text: str) -> None:
    assert quoted(text) == [True]


def test_a_line_of_a_list_is_named_and_not_copied() -> None:
    assert copied(MESSAGE)
    assert copied(f"# {MESSAGE}")
    assert not copied(f"- {MESSAGE}")
    assert not copied(f"| {MESSAGE} | convert |")
    assert not copied(f"{MESSAGE} usually comes from numpy")


def test_fences_close_with_their_own_length_only() -> None:
    fences = Fences()
    seen = []
    for line in (
        "````diff",
        "+```",
        "+text",
        "````",
        "```one line```",
        "words: ```open",
        "end```",
        "~~~",
        "~~~",
    ):
        fences.see(line)
        seen.append((fences.open, fences.language))
    assert seen == [
        (True, "diff"), (True, "diff"), (True, "diff"), (False, ""), (False, ""), (True, ""), (False, ""),
        (True, ""), (False, ""),
    ]  # fmt: skip


def test_a_message_between_quotation_marks_goes_on_below() -> None:
    text = (
        'I run the first cell and it stops with the message: " RuntimeError: DataLoader worker (pid 47) is '
        'killed by signal: Bus\nerror. It is possible that workers are out of shared\nmemory.". Any help?\n'
        "I have one GPU."
    )
    told = next(event for event in read_text(text).events if event.type == "RuntimeError")
    assert " ".join(told.text.split()).endswith(
        "signal: Bus error. It is possible that workers are out of shared memory."
    )


def test_a_quotation_mark_that_is_never_closed_takes_nothing_in() -> None:
    text = 'I get this error: "RuntimeError: it broke\nand I do not know why.\nCan somebody help me?'
    told = next(event for event in read_text(text).events if event.type == "RuntimeError")
    assert told.text == "it broke"
