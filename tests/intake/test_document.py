"""Form, ending, quoted and recovered: they decide about false alarms."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.document import goodness
from torchdoctor.intake.form import is_chat
from torchdoctor.model import Ending, Event, EventKind, Form, Transcript

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


PROGRAM = '''\
"""Retry helpers for the trainer."""
import gc

import torch

HINTS = (
    "out of memory",
    "CUDNN_STATUS_NOT_SUPPORTED. This error may appear",
)


def is_oom(exc: BaseException) -> bool:
    """True for RuntimeError: CUDA out of memory and its relatives."""
    if isinstance(exc, torch.cuda.OutOfMemoryError):
        return True
    # RuntimeError: CUDA out of memory
    raise RuntimeError("CUDA error: device-side assert triggered")
'''
KERNEL = """\
__global__ void kernel(int* t, int n) {
  int i = threadIdx.x;
  assert(t[i] >= 0 && t[i] < n);
}
int main() {
  kernel<<<1, 32>>>(p, 3);
  printf("CUDA error: out of memory");
  return 0;
}
"""
README = """\
# tinytrain

A small trainer for image models.

| what you see | what to do |
| --- | --- |
| `CUDA out of memory. Tried to allocate ...` | make the batch smaller |
| `DataLoader worker (pid 1) is killed by signal: Killed` | use fewer workers |

None of these should occur with the default settings on one card. The console of a
wrong program would show something like

```
RuntimeError: CUDA error: device-side assert triggered
```

and the nightly run is green.
"""
GUIDE = """\
Debugging guide, chapter 4: asynchronous errors

Kernels are queued, so an error shows up at a later, innocent line. The console of the
imaginary program in this chapter would show something like

   /p/Loss.cu:250: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0` failed.
   RuntimeError: CUDA error: device-side assert triggered

What to learn from it: the first line names the check, the second only says that some
check failed. Explain why a restart of the process is needed after that.
"""
CHAT = """\
[10:02] mira: morning, has anybody seen "CUDA out of memory" lately?
[10:04] tobi: not since we made the batch smaller in spring
[10:06] mira: what do we write for "NCCL timeout"? new people search for it
[10:09] mira: "Killed", "exit code -9", "Bus error" are all the same page
[10:11] tobi: the current nightly is fine, 48 of 48 jobs finished
"""
SLACK = """\
anna  10:02 AM
did you see the CUDA out of memory in the last run?
tom  10:03 AM
yes, "CUDA out of memory. Tried to allocate 2 GiB", I restarted it
anna  10:05 AM
ok great, it works now
"""
CHANGES = """\
## 1.4.0 (2024-03-02)

- Fix "RuntimeError: CUDA error: device-side assert triggered" when labels are missing
- Retry on `NCCL error: unhandled system error`
- DataLoader worker is killed by signal: Killed is now reported with a hint
- Update torch to 2.2
"""
MAIL = """\
Hi Anna,

thanks for the report. The job you mean was killed because the node ran out of memory.
> RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed.
I have raised the limit, so it should not happen again. The run finished tonight.
"""


@pytest.mark.parametrize(
    ("text", "form"),
    [(PROGRAM, Form.SOURCE_CODE), (KERNEL, Form.SOURCE_CODE), (README, Form.PROSE), (GUIDE, Form.PROSE),
     (CHAT, Form.PROSE), (SLACK, Form.PROSE), (CHANGES, Form.PROSE), (MAIL, Form.PROSE),
     ('What does "CUDA out of memory" mean for a batch size of 4?', Form.PROSE)],
)  # fmt: skip
def test_texts_about_failures_hold_none(text: str, form: Form) -> None:
    transcript = read_text(text)
    assert transcript.form is form
    assert failures(transcript) == []
    assert transcript.ending is Ending.UNKNOWN


@pytest.mark.parametrize(
    "text",
    [TRACE, STEPS + TRACE, "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", "Killed\n",
     "WARNING [x.py:229] Failed to import: ImportError('NCCL: cannot open shared object file')\n",
     "[Rank 3] NCCL watchdog thread terminated\n", "the device-side assert of step 3 was triggered\n"],
)  # fmt: skip
def test_logs_are_logs(text: str) -> None:
    transcript = read_text(text)
    assert transcript.form is Form.LOG
    assert len(failures(transcript)) == 1


def test_a_traceback_in_an_issue_is_real() -> None:
    issue = (
        f"### Bug\n\nI tried to train my model and it crashed.\n\n```\n{TRACE}```\n\nWhat should I do? I am "
        f"on Ubuntu.\n"
    )
    (event,) = failures(read_text(issue))
    assert (event.type, event.headed, event.frames[0].line) == ("RuntimeError", True, 3)
    assert event.text == "CUDA out of memory. Tried to allocate 2.00 GiB"


def test_an_error_line_in_somebodys_question_is_real() -> None:
    text = (
        "Hi, I am trying to run the example but I always get this error after a few epochs:\n\n"
        "RuntimeError: CUDA error: device-side assert triggered\n\n"
        "What should I do? I have a 3090 and use the latest version of the code. Thanks in advance.\n"
    )
    assert [event.kind for event in failures(read_text(text))] == [EventKind.EXCEPTION]


def test_a_traceback_in_a_chat_is_real() -> None:
    lines = TRACE.splitlines()
    chat = (
        "anna: hi, my run crashed again\n"
        + "".join(f"anna: {line}\n" for line in lines)
        + "tom: lower the batch size\n" * 2
    )
    (event,) = failures(read_text(chat))
    assert (event.type, event.frames[0].file) == ("RuntimeError", "train.py")


def test_a_program_and_its_real_traceback() -> None:
    transcript = read_text(
        "import torch\n\nnet = torch.nn.Linear(2, 3)\nx = torch.randn(4, 5)\ny = "
        "net(x)\nprint(y)\n" * 3 + TRACE
    )
    (event,) = failures(transcript)
    assert (event.type, event.headed) == ("RuntimeError", True)


@pytest.mark.parametrize(
    "line",
    [
        "  --on-oom {skip,raise}  what to do on CUDA out of memory",
        "on_error ....................... CUDA out of memory",
        "Namespace(batch_size=4, on_error='CUDA out of memory', lr=0.1)",
        'retry_on: ["CUDA out of memory", "NCCL error"]',
        '    - "CUDA out of memory"',
        "tests/test_oom.py::test_device-side_assert PASSED                        [ 50%]",
        "test_out of memory (test_x.TestX) ... ok",
        '$ grep -rn "out of memory" src',
        'src/a.py:12:    raise RuntimeError("CUDA out of memory")',
        "docs/b.md:3: if you see `CUDA out of memory` lower the batch size",
        '>       raise RuntimeError("CUDA error: out of memory")',
        '-    raise RuntimeError("CUDA out of memory")',
        '    message = "CUDA error: device-side assert triggered"',
    ],
)
def test_lines_of_a_log_that_only_quote(line: str) -> None:
    assert failures(read_text(f"{STEPS}{line}\n{STEPS}")) == []


def test_the_help_of_a_program() -> None:
    text = (
        "usage: train.py [-h] [--on-oom {skip,raise}]\n\noptions:\n  -h, --help            show this help\n"
        "  --on-oom {skip,raise}\n                        what to do on CUDA out of memory\n\n"
        "train.py: error: unrecognized arguments: --local-rank=0\n"
    )
    events = read_text(text).events
    assert [event.quoted for event in events] == [True, True, True, True, True, False]
    assert events[-1].text == "train.py: error: unrecognized arguments: --local-rank=0"


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
     "===== 12 passed in 3.1s =====", "训练完成", "job 3 completed successfully"],
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
    [("Training finished", 2), ("exit code 0", 2), ("0 failed", 2), ("attempt 2 ok", 2), ("saved", 1),
     ("1 failed, 2 passed in 3s", 0), ("not finished", 0), ("exit code 1", 0),
     ("did not run successfully", 0), ("finished with errors: 3", 0), ("epoch 3", 0)],
)  # fmt: skip
def test_goodness(text: str, value: int) -> None:
    assert goodness(text) == value


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


def test_chats() -> None:
    assert is_chat(CHAT.splitlines())
    assert is_chat(["<anna> is it broken?", "<tom> it is not", "<anna> then why?", "<tom> ask him"])
    assert not is_chat(
        ["[12:41:07] Hostname: worker-0", "[12:41:08] Hostname: worker-1", "[12:41:09] step: 3 is done"]
    )
    assert not is_chat(TRACE.splitlines())
    assert not is_chat([])


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


def test_that_it_is_ok_with_other_settings_is_no_ending() -> None:
    assert goodness("num_workers = 0 and batch_size = 1, it is ok") == 0
    assert goodness("utt 11 ok") == 2


def test_what_a_chat_shows_of_something_that_is_over_is_quoted() -> None:
    shown = (
        '    Traceback (most recent call last):\n      File "your_script.py", line 1, in <module>\n'
        "        loss.backward()\n    RuntimeError: element 0 of tensors does not require grad\n"
    )
    chat = (
        "priya  10:14\npreparing slides: which errors did we have last year?\n\nmarek  10:17\n"
        "the one that I fixed last spring, none since. I show it like\n\n{}\npriya  10:23\nperfect, thanks\n"
    )
    assert all(event.quoted for event in read_text(chat.format(shown)).events)
