"""How a run ended, what it got over, and which lines were written and not printed."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.ending import rows
from torchdoctor.intake.ending.event import goodness, is_failure
from torchdoctor.intake.quotation import is_source, of_line
from torchdoctor.model import Quoted
from torchdoctor.patterns import Words


@pytest.mark.parametrize(
    ("text", "value"),
    [("Training finished", 2), ("exit code 0", 2), ("0 failed", 2), ("attempt 2 ok", 2), ("saved to a.pt", 1),
     ("1 failed, 2 passed in 3s", 0), ("not finished", 0), ("exit code 1", 0),
     ("error: 0", 2), ("error: 0.998", 0), ("1.0 errors", 0), ("did not run successfully", 0),
     ("finished with errors: 3", 0), ("epoch 3", 0), ("training completed", 2),
     ("[PG ID 0 Rank 3] last enqueued NCCL work: 91, last completed NCCL work: 88.", 0),
     ("utt 11 ok", 2), ("okay", 0),
     ("HTTP request sent, awaiting response... 200 OK", 0)],  # a later cell of the notebook
)  # fmt: skip
def test_goodness(text: str, value: int) -> None:
    assert goodness(text) == value


@pytest.mark.parametrize(
    ("line", "bad"),
    [("An error occurred during training: list index out of range", True),
     ("Error during training: list index out of range", True), ("Error loading model: no such key", True),
     ("\u274c Error while saving the model: disk full", True), ("An unexpected error occurred", True),
     ("Error in epoch 3: 0.331", False), ("Error handling: enabled", False), ("mean error 0.2", False),
     ("Error during validation: 2.1e-3", False), (f"Failed requests:{' ' * 25}0{' ' * 9}", False),
     (f"Failed requests:{' ' * 25}3{' ' * 9}", True),
     ("   0 tests completed and failed residual checks,", False),
     ("  12 tests completed and failed residual checks,", True),
     ("#23 4.086 [build] Failed: No packages failed.", False), ("[build] Failed: one package failed.", True),
     ("#9 10.51   [extract] own/include/own/exception.cuh", False), ("own/exception.cuh failed", True),
     ("  0%|          | 0/15 [00:00<?, ?it/s]wandb: ERROR Error while calling W&B API: no run", False)],
)  # fmt: skip
def test_what_a_program_prints_of_an_error_that_it_caught(line: str, bad: bool) -> None:
    transcript = read_text(f"Epoch 1/20 loss 0.4312\n{line}\n")
    assert any(is_failure(event) for event in transcript.events) is bad


def holds_one(parts: list[Any], words: list[str], run: str = "") -> bool:
    """Does every text that the parts of a parsed pattern match hold one of the words?"""
    for at, (kind, value) in enumerate(parts):
        name = str(kind)
        if any(word in run for word in words):
            return True
        if name == "LITERAL":
            run += chr(value).lower()
        elif name == "SUBPATTERN":
            return holds_one([*value[3], *parts[at + 1 :]], words, run)
        elif name == "BRANCH":
            return all(holds_one([*branch, *parts[at + 1 :]], words, run) for branch in value[1])
        elif name == "MAX_REPEAT" and value[0] > 0:
            return holds_one([*value[2], ("BREAK", None), *parts[at + 1 :]], words, run)
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            run = ""
    return any(word in run for word in words)


PARSER: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
TABLES = [pytest.param(table, id=name) for name, table in vars(rows).items() if isinstance(table, rows.Table)]


@pytest.mark.parametrize("table", TABLES)
def test_no_row_matches_a_text_without_one_of_its_words(table: rows.Table) -> None:
    for row in table.rows:
        parsed = PARSER.parse(row.pattern, re.IGNORECASE)
        assert all(word == word.lower() for word in row.words)
        assert holds_one(list(parsed), list(row.words)), row


def test_words_that_do_not_stand_in_every_match_are_found_out() -> None:
    assert not holds_one(list(PARSER.parse("(?:exit|return) ?code")), ["exit"])
    assert not holds_one(list(PARSER.parse("(?:saved )?model")), ["saved"])


# Which lines were written and not printed: by their form alone


STEPS = "epoch 1 step 1 loss 0.5\nepoch 1 step 2 loss 0.4\nepoch 1 step 3 loss 0.3\n"
TRACE = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)
PROGRAM = '''\
"""Retry helpers for the trainer."""
import torch

HINTS = ("out of memory", "CUDNN_STATUS_NOT_SUPPORTED. This error may appear")


def is_oom(exc: BaseException) -> bool:
    """True for RuntimeError: CUDA out of memory and its relatives."""
    # RuntimeError: CUDA out of memory
    raise RuntimeError("CUDA error: device-side assert triggered")
'''


def marks(text: str) -> list[Quoted]:
    return [event.quoted for event in read_text(text).events]


@pytest.mark.parametrize(
    "line",
    [
        '    - "CUDA out of memory"',
        "- CUDA out of memory: lower the batch size",
        "3. CUDA out of memory when two jobs share the card",
        "# CUDA out of memory here means the other job",
        "// CUDA error: device-side assert triggered",
        'src/a.py:12:    raise RuntimeError("CUDA out of memory")',
        "docs/b.md:3: if you see `CUDA out of memory` lower the batch size",
        'src/b.cpp:7:TORCH_CHECK(ok, "CUDA error: device-side assert triggered");',
        'TORCH_CHECK(n > 0, "expected at least one tensor in the list");',
        'people ask what "CUDA out of memory. Tried to allocate" means',
        "| `CUDA out of memory` | the batch does not fit | smaller batch |",
    ],
)
def test_forms_of_what_was_written(line: str) -> None:
    assert of_line(line) is Quoted.WRITTEN
    assert marks(f"{STEPS}{line}\n{STEPS}").count(Quoted.WRITTEN) == 1


@pytest.mark.parametrize(
    "line",
    [
        '$ grep -rn "out of memory" src',
        ">>> x.cuda()",
        "PS C:\\> python a.py",
        "  --on-oom {skip,raise}  what to do on CUDA out of memory",
        '    message = "CUDA error: device-side assert triggered"',
    ],
)
def test_what_was_typed_is_no_output(line: str) -> None:
    assert of_line(line) is Quoted.SOURCE


@pytest.mark.parametrize(
    "line",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "Segmentation fault (core dumped)",
        "- RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "`RuntimeError: CUDA out of memory` in the second epoch",
        "foo.cu:12:5: error: no matching function for call to `at::data_ptr'",
        "train.py:12: UserWarning: lr_scheduler.step() before optimizer.step()",
        "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file",
        'RuntimeError: Given input size: (64x1x1). Calculated output size: "too small for the kernel"',
    ],
)
def test_where_form_cannot_tell_it_is_a_log(line: str) -> None:
    assert of_line(line) is Quoted.NO


def test_python_source_that_parses_is_source() -> None:
    assert is_source(PROGRAM)
    assert set(marks(PROGRAM)) == {Quoted.SOURCE}
    assert not is_source(TRACE)
    assert not is_source("RuntimeError: boom\nepoch: 1\n")  # parses, and says nothing


@pytest.mark.parametrize("text", ["import os\n" + "(" * 5_000, "import os\nx = '\x00'", "import \ud800"])
def test_source_that_breaks_the_parser_is_no_source(text: str) -> None:
    assert not is_source(text)


CAUGHT = """Traceback (most recent call last):
  File "/srv/own/backends.py", line 7, in start
    self.engine = Fast(config)
RuntimeError: no kernel for this engine
"""
ENDED = """Traceback (most recent call last):
  File "/srv/own/serve.py", line 9, in <module>
    main()
ValueError: the page is not reached
"""
INSTEAD = "WARNING: Falling back to the plain backend\n"
GOES_ON = "plain backend is there\npage is built\nlistening on 7860\n"


@pytest.mark.parametrize(
    ("text", "caught"),
    [
        (CAUGHT + INSTEAD + GOES_ON + ENDED, True),
        (CAUGHT + GOES_ON + ENDED, False),  # nothing says that it was caught
        (CAUGHT + INSTEAD + ENDED, False),  # what it took instead failed at once
        (CAUGHT + INSTEAD + GOES_ON + CAUGHT, False),  # the same again: it was not got over
        (CAUGHT + INSTEAD + GOES_ON, False),  # nothing else ended it
        (CAUGHT.replace("in start", "in <module>") + INSTEAD + GOES_ON + ENDED, False),  # another program
        (CAUGHT + "Attempt 2: " + INSTEAD + GOES_ON + ENDED, False),
    ],
)
def test_what_a_program_fell_back_from_is_not_what_ended_it(text: str, caught: bool) -> None:
    transcript = read_text(text)
    events = [event for run in (*transcript.earlier, transcript) for event in run.events]
    raised = [event for event in events if event.text.startswith("no kernel")]
    assert raised[0].recovered is caught


def test_words_are_found_whatever_numbers_stand_in_texts_of_the_same_form() -> None:
    holds = Words(("failed", "c10d"))
    assert [holds(text) for text in ("step 1 of 20", "step 2 of 31", "step 3 failed", "step 4 c10d")] == [
        False, False, True, True
    ]  # fmt: skip
    assert not holds("fai1led")
    assert holds(f"{'x' * 1_000} failed")
