"""Tests that asked for a failure, lists that name some, and what was tried again: none of them is one."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text

MM = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x10 and 12x5)"
HEAD = "======= test session starts =======\nplatform linux -- Python 3.11.9, pytest-8.2.0, pluggy-1.5.0\n"
CASES = "tests/test_errors.py::test_matmul PASSED [ 50%]\ntests/test_errors.py::test_oom PASSED [100%]\n"
SHOWN = f"------- Captured stderr call -------\n{MM}\n"
TRACE = f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    a @ b\n{MM}\n'


def said(text: str) -> list[str]:
    """The events with that message that count."""
    events = read_text(text).events
    return [
        event.text
        for event in events
        if "mat1 and mat2" in event.text and not event.recovered and not event.quoted
    ]


PASSED = {
    "pytest": f"{HEAD}{CASES}{SHOWN}======= 2 passed in 1.83s =======\n",
    "with a stack": f"{HEAD}{CASES}{TRACE}======= 2 passed, 3 warnings in 61.83s (0:01:01) =======\n",
    "quiet": f"tests/test_errors.py .....  [100%]\n{SHOWN}40 passed, 1 skipped in 12.83s\n",
    "head cut off": f"{CASES}{SHOWN}======= 2 passed in 1.83s =======\n",
    "its command": f"python -m pytest -q tests -s\n{MM}\n..\n2 passed in 11.42s\nrunning build\n",
    "unittest": f"test_mm (tests.test_errors.Shapes) ... {MM}\nok\n{MM}\n\nRan 3 tests in 0.012s\n\nOK\n",
}


@pytest.mark.parametrize("name", PASSED)
def test_what_tests_show_that_passed_was_asked_for(name: str) -> None:
    assert said(PASSED[name]) == []


FAILED = {
    "another command": f"$ pytest -q tests\n$ python train.py\n{MM}\n2 passed in 11.42s\n",
    "a test failed": f"{HEAD}{CASES}{TRACE}======= 1 failed, 2 passed in 1.83s =======\n",
    "an error": f"{HEAD}{CASES}{TRACE}======= 2 passed, 1 error in 1.83s =======\n",
    "before the tests": f"{TRACE}{HEAD}{CASES}======= 2 passed in 1.83s =======\n",
    "after the tests": f"{HEAD}{CASES}======= 2 passed in 1.83s =======\n{TRACE}",
    "killed before the end": f"{HEAD}{CASES}{TRACE}",
    "unittest": f"test_mm (tests.t.Shapes) ... ERROR\n{TRACE}\nRan 3 tests in 0.012s\n\nFAILED (errors=1)\n",
}


@pytest.mark.parametrize("name", FAILED)
def test_a_failure_of_tests_or_beside_them_stays(name: str) -> None:
    assert said(FAILED[name])


LISTED = {
    "slides": f"Lecture 9\nThree classes of errors:\n   • {MM}\n   • RuntimeError: expected scalar type Long "
    "but found Float\nExercise: find the bug in train_buggy.py\n",
    "headings": "# Debugging\n\nYou will see each of these.\n\n"
    f"### 1. `{MM}`\n\nPrint the shapes.\n\n### 2. `CUDA error: device-side assert triggered`\n\nA label.\n\n"
    "### 3. `Expected all tensors to be on the same device`\n\nWhich one did I forget?\n",
    "a linter": f'src/errors.py:3:89: E501 Line too long (131 > 88): "{MM}"\nFound 1 error.\n',
    "a linter in CI": f'2025-03-30T10:01:13.6621Z src/e.py:3:89: E501 Line too long: "{MM}"\n',
    "commits": f'4f2c91a (HEAD -> main) fix: empty boxes\nb7d0e11 train: guard against "{MM}"\n',
    "asked for": f"In [3]: f()\nas expected: {MM}\n\nIn [4]: 1 + 1\nOut[4]: 2\n",
    "caught": f"caught as expected: {MM}\n",
    "expected": f"expected: {MM}\nall good\n",
    "a question about words": f'What exactly is the difference between "{MM}" and "size mismatch"?\n',
    "between back quotes": f"What exactly is the difference between `{MM}` and `CUDA error: "
    "an illegal memory access was encountered`? As I understand the first comes from cuBLAS.\n",
    "an answer": f"Great question! A `{MM}` can have several reasons:\n\n1. **Shape** - see the layer.\n\n"
    "If you share your full traceback, I can help you further. Would you like a snippet?\n",
    "a FAQ": f"# Help\n\n**Q: I get `RuntimeError: CUDA out of memory`.**\nA: Lower the batch size.\n\n"
    f"**Q: `{MM}`?**\nA: See the shapes.\n\n**Q: Where are the results?**\nA: In `runs/`.\n\n"
    f"## Example of a report\n\n```\n{TRACE}```\n",
}


TOLD = {
    "two bullets of a report": f"My training fails, and I get two errors:\n\n- {MM}\n- ValueError: bad\n\n"
    "What can I do?\n",
    "below a commit": "commit 7f3a21c0d1e2\n\n    Fix it\n\n    Signed-off-by: A Person <a@example.org>\n"
    f"$ python train.py\n{MM}\n",
    "beside a FAQ": f'I read the FAQ, but my job ends with "{MM}". What can I try?\n',
    "a message about what was expected": "RuntimeError: Expected 3D (unbatched) or 4D (batched) input to "
    f"conv2d, but got input of size: [3, 4]\n{MM}\n",
}


TIMED_OUT = "Error while downloading from https://host/model.safetensors: Read timed out. mat1 and mat2\n"


@pytest.mark.parametrize(
    ("after", "counts"),
    [
        ("Trying to resume download...\nDownloading shards: 100%|####| 4/4 [11:02<00:00]\n>>> ready\n", 0),
        ("Retrying in 1s [Retry 1/5].\nmodel.safetensors: 100%|####| 4.9G/4.9G [02:11<00:00]\nready\n", 0),
        ("Trying to resume download...\nDownloading shards:  25%|#   | 1/4 [11:02<00:00]\n", 1),
        ("Downloading shards: 100%|####| 4/4 [11:02<00:00]\n", 1),
    ],
)
def test_what_was_tried_again_and_came_is_no_failure(after: str, counts: int) -> None:
    assert len(said(f"Downloading shards:  0%|    | 0/4 [00:00<?]\n{TIMED_OUT}{after}")) == counts
