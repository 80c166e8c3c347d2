"""How a run ended, and what it got over."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.ending import rows
from torchdoctor.intake.ending.event import goodness
from torchdoctor.model import Ending, Event, EventKind, Transcript

TRACE = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)
STEPS = "epoch 1 step 1 loss 0.5\nepoch 1 step 2 loss 0.4\nepoch 1 step 3 loss 0.3\n"


def failures(transcript: Transcript) -> list[Event]:
    """Events that speak of a failure and are not set aside."""
    words = ("out of memory", "device-side", "NCCL", "Killed", "synchronize")
    return [
        event
        for event in transcript.events
        if any(word in event.text for word in words) and not event.quoted and not event.recovered
    ]


@pytest.mark.parametrize(
    "text",
    [TRACE, STEPS + TRACE, "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", "Killed\n",
     "WARNING [x.py:229] Failed to import: ImportError('NCCL: cannot open shared object file')\n",
     "[Rank 3] NCCL watchdog thread terminated\n", "the device-side assert of step 3 was triggered\n"],
)  # fmt: skip
def test_logs_are_logs(text: str) -> None:
    assert len(failures(read_text(text))) == 1


# -------------------------------------------------------------------- endings


@pytest.mark.parametrize(
    "last",
    ["| done training in 3061.4 seconds", "Training finished, model saved, 0 errors",
        "`Trainer.fit` stopped: `max_epochs=3` reached.",
     "slurm job 418822 finished, exit code 0:0",
         "best acc 0.812, 0 failed batches, model kept in outputs/best.pt",
     "Training time 0:07:41", "model written to export/1", "[rank0] all_reduce check ok, 2 ranks, 12.4 GB/s",
     "Prompt executed in 22.87 seconds",
         "2021-12-03 06:31:52 [INFO] done. Errors: 0", "Process finished with exit code 0",
     "===== 12 passed in 3.1s =====", "job 3 completed successfully"],
)  # fmt: skip
def test_good_endings(last: str) -> None:
    assert read_text(f"{STEPS}{last}\n").ending is Ending.GOOD


@pytest.mark.parametrize(
    "last",
    [TRACE, "Killed", "Process finished with exit code 1", "FAILED (errors=1)",
        "srun: error: node12: task 0: Exited with exit code 1",
     "ERROR: training failed", "===== 1 failed, 12 passed in 3.1s =====", "Aborted (core dumped)",
     "E1127 23:48:32.909000 933 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: "
     "1) local_rank: 0"],
)  # fmt: skip
def test_bad_endings(last: str) -> None:
    assert read_text(f"{STEPS}{last}\n").ending is Ending.BAD


@pytest.mark.parametrize(
    "last",
    ["",
        "INFO Loaded AE: <All keys matched "
        "successfully>", "Downloading weights ... done", "loading checkpoint ... done",
     "saving failed for 3 files, not finished"],
)  # fmt: skip
def test_endings_that_say_nothing_good(last: str) -> None:
    assert read_text(f"{STEPS}{last}\n").ending is not Ending.GOOD


@pytest.mark.parametrize(
    ("text", "value"),
    [("Training finished", 2), ("exit code 0", 2), ("0 failed", 2), ("attempt 2 ok", 2), ("saved to a.pt", 1),
     ("1 failed, 2 passed in 3s", 0), ("not finished", 0), ("exit code 1", 0),
     ("error: 0", 2), ("error: 0.998", 0), ("1.0 errors", 0), ("did not run successfully", 0),
     ("finished with errors: 3", 0), ("epoch 3", 0)],
)  # fmt: skip
def test_goodness(text: str, value: int) -> None:
    assert goodness(text) == value


def test_a_word_of_trouble_deep_in_a_sentence_tells_of_none() -> None:
    said = "This resembles the expected number of successes before the first {} in a sequence of trials.\n"
    assert read_text(STEPS + said.format("failure")).ending is not Ending.BAD
    assert read_text(f"{STEPS}The loader failed before the first batch was there.\n").ending is Ending.BAD


def test_a_launcher_that_was_told_to_end_says_so() -> None:
    line = (
        "[2025-02-20 20:27:14,902] [INFO] [launch.py:328:sigkill_handler] Main process received {}, exiting"
    )
    assert read_text(f"{STEPS}{line.format('SIGTERM')}\n").ending is Ending.BAD


def test_comfyui_says_executed_after_a_failure_too() -> None:
    failed = f"got prompt\n!!! Exception during processing !!! x\n{TRACE}\nPrompt executed in 8.09 seconds\n"
    transcript = read_text(failed)
    assert transcript.ending is Ending.BAD
    assert [event.recovered for event in transcript.events if event.type] == [False]
    later = read_text(failed + "got prompt\n100% done\nPrompt executed in 9.1 seconds\n")
    assert later.ending is not Ending.GOOD
    assert [event.recovered for event in later.events if event.type] == [False]


# ------------------------------------------------------------------- recovery


def recovered(text: str) -> list[bool]:
    return [event.recovered for event in read_text(text).events if event.kind is EventKind.EXCEPTION]


def test_a_retry_that_succeeds() -> None:
    assert recovered(f"attempt 1\n{TRACE}retrying with batch size 8\n{STEPS}attempt 2 ok\n") == [True]
    assert recovered(f"{STEPS}{TRACE}{STEPS}`Trainer.fit` stopped: `max_epochs=3` reached.\n") == [True]


def test_a_line_that_tells_of_a_caught_error() -> None:
    text = (
        "2024-01-01 10:00:00 WARNING caught RuntimeError: CUDA out of memory. Tried to allocate 2 GiB, "
        "skipping batch\n"
        "2024-01-01 10:00:01 INFO step 10 loss 0.3\n2024-01-01 10:00:03 INFO training finished, 0 errors\n"
    )
    assert failures(read_text(text)) == []


def test_a_later_failure_undoes_every_recovery() -> None:
    text = (
        f"{TRACE}retrying\n{STEPS}attempt 2 ok\ntraining finished\nterminate called after throwing an "
        f"instance of 'c10::Error'\n"
    )
    assert recovered(text) == [False]


def test_the_last_event_is_never_recovered() -> None:
    assert recovered(STEPS * 20 + TRACE) == [False]


def test_many_steps_after_an_exception_are_a_recovery() -> None:
    assert recovered(TRACE + STEPS * 4) == [True]
    assert recovered(TRACE + STEPS) == [False]


def test_another_rank_that_goes_on_is_no_recovery() -> None:
    trace = "".join(f"[rank3]: {line}\n" for line in TRACE.splitlines())
    steps = "".join(f"[rank0]: {line}\n" for line in (STEPS * 4).splitlines())
    assert recovered(trace + steps + "[rank0]: training finished\n") == [False]


def test_the_last_completed_collective_is_no_good_end() -> None:
    told = "[PG ID 0 Rank 3] last enqueued NCCL work: 91, last completed NCCL work: 88."
    assert goodness(told) == 0
    assert goodness("training completed") == 2


def test_a_caught_failure_below_which_a_whole_training_ran() -> None:
    text = (
        "WARNING - attempt 1: batch 128 failed\nTraceback (most recent call last):\n"
        '  File "t.py", line 83, in attempt\n    loss = model(batch)\n'
        "torch.OutOfMemoryError: CUDA out of memory.\nINFO - decreasing batch size to 64\n"
        "{'loss': 0.4127, 'grad_norm': 1.9, 'epoch': 0.5}\n{'loss': 0.2986, 'grad_norm': 1.4, 'epoch': 1.0}\n"
        "INFO - saved to out/v3\nINFO - done\n"
    )
    read = read_text(text)
    assert read.ending is Ending.GOOD
    assert all(event.recovered for event in read.events if event.kind is EventKind.EXCEPTION)


def test_what_systemd_finished_is_not_the_end_of_the_run() -> None:
    run = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nRuntimeError: x\n'
    journal = "Apr 13 06:14:40 gpu-04 systemd[1]: Finished Daily apt upgrade and clean activities.\n"
    assert read_text(run + journal).ending is Ending.BAD


def test_ok_is_a_good_end_behind_a_thing_only() -> None:
    assert goodness("utt 11 ok") == 2
    assert goodness("okay") == 0


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
        assert row.words == row.words.lower()
        assert holds_one(list(parsed), row.words.split()), row


def test_words_that_do_not_stand_in_every_match_are_found_out() -> None:
    assert not holds_one(list(PARSER.parse("(?:exit|return) ?code")), ["exit"])
    assert not holds_one(list(PARSER.parse("(?:saved )?model")), ["saved"])
