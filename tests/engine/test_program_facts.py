"""What a program's frames and records tell: own files in an import, the line that raised, Dynamo's logs."""

from __future__ import annotations

import pytest

from torchdoctor.engine.textfacts import event_value
from torchdoctor.intake import read_text
from torchdoctor.intake.texts import above_user_code
from torchdoctor.model import Ending, EventKind, Transcript

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


@pytest.mark.parametrize("level", ["V", "W", "I"])
def test_graph_break_is_no_failure(level: str) -> None:
    transcript = _dynamo(level)
    assert transcript.ending is not Ending.BAD
    assert all(event.kind is not EventKind.EXCEPTION for event in transcript.events)
    assert [frame.line for event in transcript.events for frame in event.frames] == [10]


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


def test_cython_names_its_package() -> None:
    text = """Traceback (most recent call last):
  File "/home/user/project/train.py", line 2, in <module>
    from scipy.spatial.distance import cdist
  File "_ckdtree.pyx", line 1, in init scipy.spatial._ckdtree
ValueError: numpy.dtype size changed, may indicate binary incompatibility
"""
    frames = read_text(text).events[0].frames
    assert [frame.package for frame in frames] == ["", "scipy"]


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("job 2 failed once: shapes cannot be multiplied - using the fallback value", Ending.GOOD),
        ("job 2 failed: shapes cannot be multiplied - no fallback for this layer", Ending.BAD),
    ],
)
def test_way_around_a_failure(line: str, ending: Ending) -> None:
    text = f"{line}\njob 0 0.0\njob 1 1.0\nall jobs done, results written to results.csv\n"
    assert read_text(text).ending is ending
