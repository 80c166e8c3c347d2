"""What a program's frames and records tell: own files in an import, the line that raised, Dynamo's logs."""

from __future__ import annotations

import pytest

from torchdoctor.engine.textfacts import event_value
from torchdoctor.intake import read_text
from torchdoctor.intake.texts import above_user_code
from torchdoctor.model import EventKind, Transcript

_TORCH = "/home/user/venv/lib/python3.11/site-packages/torch"
_SHADOWED = f"""Traceback (most recent call last):
  File "/home/user/project/train.py", line 1, in <module>
    import torch
  File "{_TORCH}/_tensor.py", line 9, in <module>
    from copy import deepcopy
  File "/home/user/project/copy.py", line 3, in <module>
    shutil.copy("a.txt", "b.txt")
FileNotFoundError: [Errno 2] No such file or directory: 'a.txt'
"""


def _value(name: str, text: str) -> object:
    transcript = read_text(text)
    event = next(event for event in transcript.events if event.kind is EventKind.EXCEPTION)
    return event_value(name, event, transcript)


def test_own_file_that_ran_in_torchs_import() -> None:
    assert _value("event.shadowing", _SHADOWED) == "/home/user/project/copy.py"
    folder = _SHADOWED.replace("project/copy.py", "project/copy/__init__.py")
    assert _value("event.shadowing", folder) == "/home/user/project/copy/__init__.py"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("project/copy.py", "project/clone.py"),  # another name than the one that is imported
        ("from copy import deepcopy", "run(path)"),  # no import
        (f"{_TORCH}/_tensor.py", "/home/user/project/data.py"),  # the user's own import
    ],
)
def test_no_file_in_the_way(old: str, new: str) -> None:
    assert _value("event.shadowing", _SHADOWED.replace(old, new)) is None


def test_line_that_raised() -> None:
    assert _value("event.last_code", _SHADOWED) == 'shutil.copy("a.txt", "b.txt")'


def _dynamo(level: str) -> Transcript:
    head = (
        f"{level}1128 14:57:09.446000 31925 torch/_dynamo/variables/tensor.py:1759] [1/0] [__graph_breaks] "
    )
    lines = (
        "Graph break: from user code at:",
        '  File "/home/user/project/train.py", line 10, in f',
        "    return x.sum().item() + 1",
        "           ^^^^^^^^^^^^^^^^^^",
        "",
        "Failed to trace builtin operator",
    )
    return read_text("".join(f"{head}{line}\n" for line in lines) + "0 2.0\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from user code:", True),
        ("Graph break: from user code at:", True),
        ("User code traceback:", True),
        ("User Stack (most recent call last):", True),
        ("from user code: x.py", False),
        ("the following user code is wrong:", False),
    ],
)
def test_words_above_user_code(line: str, said: bool) -> None:
    assert above_user_code(line) is said


# A report that gives the message and the frames in blocks of their own
MESSAGE = "AttributeError: Can't pickle local object 'build.<locals>.collate'\n"

STACK = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 22, in fit\n    for batch in loader:\n'
    '  File "/usr/lib/python3.10/multiprocessing/reduction.py", line 60, in dump\n'
    "    ForkingPickler(file, protocol).dump(obj)\n"
)


OTHER = STACK.replace("train.py", "eval.py").replace("22", "7")
WHOLE = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 1\n'


@pytest.mark.parametrize(
    ("text", "of", "frames"),
    [
        (f"{MESSAGE}\nThe stack:\n{STACK}", "AttributeError",
         "/home/u/train.py:fit | /usr/lib/python3.10/multiprocessing/reduction.py:dump"),
        (f"{MESSAGE}ValueError: too late\n\n{STACK}", "ValueError", ""),
        (f"{MESSAGE}\n{STACK}\nand\n{OTHER}", "AttributeError", ""),
        (f"{WHOLE}\nlater\n{STACK}", "KeyError", "a.py:<module>"),
    ],
    ids=["one message and one stack", "two messages", "two stacks", "frames of its own"],
)  # fmt: skip
def test_whose_frames_a_message_without_any_gets(text: str, of: str, frames: str) -> None:
    transcript = read_text(text)
    (event,) = (one for one in transcript.events if one.kind is EventKind.EXCEPTION and one.type == of)
    assert event_value("event.frames", event, transcript) == frames
