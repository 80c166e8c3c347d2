"""A report that gives the message and the frames in blocks of their own."""

from __future__ import annotations

from torchdoctor.engine.textfacts import event_value
from torchdoctor.intake import read_text
from torchdoctor.model import EventKind, Transcript

MESSAGE = "AttributeError: Can't pickle local object 'build.<locals>.collate'\n"
STACK = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 22, in fit\n    for batch in loader:\n'
    '  File "/usr/lib/python3.10/multiprocessing/reduction.py", line 60, in dump\n'
    "    ForkingPickler(file, protocol).dump(obj)\n"
)


def frames(transcript: Transcript, of: str) -> object:
    (event,) = (one for one in transcript.events if one.kind is EventKind.EXCEPTION and one.type == of)
    return event_value("event.frames", event, transcript)


def test_the_only_message_has_the_only_stack() -> None:
    told = frames(read_text(f"{MESSAGE}\nThe stack:\n{STACK}"), "AttributeError")
    assert told == "/home/u/train.py:fit | /usr/lib/python3.10/multiprocessing/reduction.py:dump"


def test_of_two_messages_nobody_knows_whose_it_is() -> None:
    assert frames(read_text(f"{MESSAGE}ValueError: too late\n\n{STACK}"), "ValueError") == ""


def test_of_two_stacks_neither_is_taken() -> None:
    other = STACK.replace("train.py", "eval.py").replace("22", "7")
    assert frames(read_text(f"{MESSAGE}\n{STACK}\nand\n{other}"), "AttributeError") == ""


def test_a_message_with_frames_keeps_its_own() -> None:
    whole = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 1\n'
    assert frames(read_text(f"{whole}\nlater\n{STACK}"), "KeyError") == "a.py:<module>"
