"""What a program's frames, records and last words tell."""

from __future__ import annotations

import pytest
from gate_machines import ROOT
from planted_modules import loaded

from torchdoctor import catalog
from torchdoctor.engine import last_words
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


_OWN = """Traceback (most recent call last):
  File "{first}", line 1, in <module>
    {code}
  File "/srv/{inner}", line 3, in <module>
    x = start()
{raised}
"""


@pytest.mark.parametrize(
    ("first", "code", "inner", "raised", "certain", "asked"),
    [
        # a file that imports itself, whatever it fails at
        ("onnx.py", "import onnx", "onnx.py", "NameError: name 'start' is not defined", True, False),
        (
            "/srv/run.py", "import random", "random.py",
            "AttributeError: module 'random' has no attribute 'randint' (consider renaming "
            "'/srv/random.py' since it has the same name as the standard library module named 'random' and "
            "prevents importing that standard library module)",
            True, True,
        ),
        # the reader may mean his own
        (
            "/srv/run.py", "import net", "datasets.py",
            "ImportError: cannot import name 'load' from 'datasets' (/srv/datasets.py)", False, True,
        ),
        # two files of his that import each other; a package that fails while it is imported
        (
            "/srv/net.py", "from heads import Head", "heads.py",
            "ImportError: cannot import name 'Net' from partially initialized module 'net' (most likely due "
            "to a circular import) (/srv/net.py)", False, False,
        ),
        (
            "/srv/run.py", "import datasets", "v/lib/python3.9/site-packages/datasets/load.py",
            "AttributeError: partially initialized module 'datasets' has no attribute 'utils' (most likely "
            "due to a circular import)", False, False,
        ),
    ],
)  # fmt: skip
def test_own_file_with_the_name_of_a_module(
    first: str, code: str, inner: str, raised: str, certain: bool, asked: bool
) -> None:
    text = _OWN.format(first=first, code=code, inner=inner, raised=raised)
    assert _value("event.shadowing", text) == (f"/srv/{inner}" if certain else None)
    assert _value("event.namesake", text) == (f"/srv/{inner}" if asked else None)


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


# Which setting a dying torch speaks of, and whether the environment is to blame


GIVEN = {
    "CUDA_VISIBLE_DEVICES": "0,1",
    "NCCL_DEBUG": "INFO",
    "PYTORCH_ALLOC_CONF": "expandable_segments:True,bogus:1",
    "OMP_NUM_THREADS": "four",
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("libgomp: Invalid value for environment variable OMP_NUM_THREADS", ("OMP_NUM_THREADS",)),
        ("Unrecognized key 'bogus' in Accelerator allocator config.", ("PYTORCH_ALLOC_CONF",)),
        ("expected an INFO or a True", ()),  # words of half of all settings
        ("cannot open shared object file", ()),
    ],
)
def test_the_variable_is_the_one_that_is_named_or_whose_value_is_quoted(
    text: str, names: tuple[str, ...]
) -> None:
    assert last_words.quoted(text, GIVEN) == names


@pytest.mark.parametrize(
    "words",
    [
        "terminate called after throwing an instance of 'c10::ValueError'\n"
        "  what():  Unrecognized key 'bogus' in Accelerator allocator config.\n",
        "ValueError: Unrecognized key 'bogus' in CUDA allocator config.\n",
    ],
)
def test_what_a_rule_knows_gets_its_title_and_the_variable_that_is_set(words: str) -> None:
    found = last_words.cause(words, GIVEN)
    assert found.rule == "allocator-option-invalid"
    assert found.variables == ("PYTORCH_ALLOC_CONF",)
    assert "bogus" in found.line
    assert found.of_environment


def test_a_fault_of_the_gpu_is_not_the_environments() -> None:
    found = last_words.cause("RuntimeError: CUDA error: uncorrectable ECC error encountered\n", GIVEN)
    assert found.rule == "ecc-uncorrectable"
    assert not found.of_environment


@pytest.mark.parametrize("words", ["", "\n", "a warning that nobody minds\n"])
def test_words_that_no_rule_knows_have_no_cause(words: str) -> None:
    assert last_words.cause(words, GIVEN) is None


def test_the_causes_that_lie_in_packages_are_rules() -> None:
    assert set(catalog.load().ids()) >= last_words._PACKAGES


def test_the_jobs_interpreter_tells_the_same_settings() -> None:
    path = ROOT / "torchdoctor" / "gate" / "child" / "environment.py"
    child = loaded(path)
    assert child.SETTINGS == last_words._SETTINGS
    assert child.SHOWN == last_words._SHOWN
    assert last_words.settings({"PYTORCH_ALLOC_CONF": "x" * 9999, "HOME": "/home/u"}) == {
        "PYTORCH_ALLOC_CONF": "x" * child.SHOWN
    }
