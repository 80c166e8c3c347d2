"""Which lines were written and not printed: by their form alone."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.quotation import is_source, of_line
from torchdoctor.model import Event, Quoted

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


def failing(text: str) -> list[Event]:
    return [event for event in read_text(text).events if event.type and not event.quoted]


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


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01 10:00:00 ERROR - CUDA out of memory",
        '2024-05-01 10:00:00 ERROR train: step failed with "CUDA out of memory. Tried to allocate"',
        "[rank3]: - CUDA out of memory",
    ],
)
def test_an_anchor_overrules_the_form(line: str) -> None:
    assert Quoted.WRITTEN not in marks(f"{STEPS}{line}\n")


def test_python_source_that_parses_is_source() -> None:
    assert is_source(PROGRAM)
    assert set(marks(PROGRAM)) == {Quoted.SOURCE}
    assert not is_source(TRACE)
    assert not is_source("RuntimeError: boom\nepoch: 1\n")  # parses, and says nothing


@pytest.mark.parametrize("text", ["import os\n" + "(" * 5_000, "import os\nx = '\x00'", "import \ud800"])
def test_source_that_breaks_the_parser_is_no_source(text: str) -> None:
    assert not is_source(text)


def test_a_program_and_its_real_traceback() -> None:
    (event,) = failing(f"{PROGRAM}{TRACE}")
    assert (event.type, event.headed, event.quoted) == ("RuntimeError", True, Quoted.NO)


def test_a_pasted_issue_is_its_blocks_and_its_tracebacks() -> None:
    issue = (
        "### Bug\n\nIt says CUDA error: unknown error now and then.\n\n"
        "```\nCUDA error: invalid device ordinal\n```\n\n"
        f"```python\n{PROGRAM}```\n\n{TRACE}"
    )
    events = read_text(issue).events
    by_text = {event.text: event.quoted for event in events}
    assert by_text["It says CUDA error: unknown error now and then."] is Quoted.WRITTEN
    assert by_text["CUDA error: invalid device ordinal"] is Quoted.NO
    assert by_text["import torch"] is Quoted.SOURCE
    assert [event.quoted for event in events if event.headed] == [Quoted.NO]
