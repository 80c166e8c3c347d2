"""The line, and the reading, that a failure without a rule is told by; a tick is earned."""

from __future__ import annotations

import pytest

from torchdoctor import intake
from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Outcome

NCCL = "n1:881:890 [0] "

GIVES_UP = f"{NCCL}NCCL INFO init.cu:568 -> 1\n"

WARNS = f"{NCCL}transport/p2p.cu:548 NCCL WARN failed to open CUDA handle : 64 peers\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("`RuntimeError: worker 83316 is gone: Unknown signal: 0.`\n", 1),  # only quoted
        ("step 1\nn1: Test NCCL failure common.cu:958 'peers'\n .. n1 pid 7: Test failure c.cu:1\n", 2),
        (WARNS + GIVES_UP, 1),
        ("[   81.55] NVRM: GPU3 _threadNodeCheck: Timeout was set to: 4000 msecs!\n", 1),
        ("loading\nERROR: the pool of frobnicators is dry\n", 2),
    ],
)  # fmt: skip
def test_a_line_that_names_an_error_is_the_suspect(text: str, line: int, rules: RuleSet) -> None:
    report = diagnose(read_text(text), FactBook(), rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert report.suspect is not None
    assert report.suspect.evidence.line == line


@pytest.mark.parametrize(
    "text",
    [
        WARNS + f"{NCCL}NCCL INFO Using network Socket\n",
        "ERROR: cannot reach the tracker\nstep 1 loss 2.0\nstep 2 loss 1.9\nstep 3 loss 1.8\n",
        "ERROR: cannot reach the tracker\nTraining finished.\n",
        "val_error: 0.12  MeanSquaredError: 0.0144\n",
    ],
)
def test_what_a_run_goes_on_after_is_no_failure(text: str, rules: RuleSet) -> None:
    assert diagnose(read_text(text), FactBook(), rules).outcome is Outcome.NO_FAILURE


# A tick is earned: a line that names an error is met with it, and what a process got over is not
NCCL_NAMED_ERRORS = "node-2:411:502 [1] "


def outcome(*lines: str) -> tuple[Outcome, str]:
    report = diagnose(intake.read_text("\n".join(lines)), FactBook(), load())
    return report.outcome, report.suspect.evidence.text if report.suspect else ""


@pytest.mark.parametrize(
    "line",
    [
        "ONNX: export failure  0.4s: the graph has a cycle",
        f"{NCCL}graph/xml.h:77 NCCL WARN Attribute zone of node hub not found",
        "node-2: Test NCCL failure common.cu:961 'the pool of frobnicators is dry'",
        "[   81.555058] NVRM: GPU3 _someRpc: ******* Heartbeat Timeout *******",
        "export stage: FancyCheckerError: no such table",
        "        FancyCheckerError: no such table",
    ],
)
def test_named_errors_a_line_that_names_an_error_is_the_suspect(line: str) -> None:
    found, shown = outcome("loading the model", line)
    assert found is Outcome.UNRECOGNISED
    assert shown
    assert shown.split() == line.split() or line.endswith(shown)


@pytest.mark.parametrize(
    "lines",
    [
        (
            f"{NCCL}misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
            f"{NCCL}NCCL INFO Using network Socket",
        ),
        ("    Remapping Failure Occurred                     : No",),
        (
            "2026-01-01 10:00:00 DEBUG Failed checking for CYGWIN: FileNotFoundError(2, 'No such file')",
            "done",
        ),
    ],
)
def test_what_a_process_got_over_is_no_failure(lines: tuple[str, ...]) -> None:
    assert outcome("loading the model", *lines) == (Outcome.NO_FAILURE, "")


def test_nccl_leaving_through_its_calls_got_over_nothing() -> None:
    left = (
        f"{NCCL}graph/xml.h:77 NCCL WARN Attribute zone not found",
        f"{NCCL}NCCL INFO graph/topo.cc:493 -> 3",
    )
    assert outcome(*left)[0] is Outcome.UNRECOGNISED


STEPS = "\n".join(f"epoch 1 step {number} loss 2.{number}" for number in range(10, 24))

OOM = "INFO - failed: CUDA out of memory. Tried to allocate 58.00 MiB. GPU 3 has a total capacity of 9 G."

PRINTED = "\n".join(f"{{'loss': 0.{number}, 'epoch': {number}}}" for number in range(10, 24))

WENT_ON = {
    "printed dicts are steps": f"""\
ValueError: bad shard
  File "a.py", line 3
    x=(
      ^
SyntaxError: '(' was never closed
{PRINTED}""",
    "a warning beside what was got over": f"""\
[W socket.cpp:464] [c10d] The server socket has failed to bind to \
[::]:30017 (errno: 98 - Address already in use).
Traceback (most recent call last):
  File "run.py", line 8, in <module>
    main()
torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address.
{STEPS}""",
    "a warning, and a loop goes on": """\
/e/torch/cuda/__init__.py:141: UserWarning: CUDA initialization: The NVIDIA \
driver on your system is too old (found version 11040).
cpu
residual tensor(1)
residual tensor(2)
residual tensor(2)
residual tensor(3)""",
    "a remark that was got over before": f"""\
2025-06-02 14:00:01,411 - qa - {OOM}
epoch 1 step 10 loss 2.1
2025-06-02 14:09:01,411 - qa - {OOM}""",
    "pip was stopped": "ERROR: Operation cancelled by user\nhave satisfied: numpy\n3 boxes",
    "a server's task at its end": """\
INFO:     Shutting down
ERROR:    Traceback (most recent call last):
  File "/e/site-packages/starlette/routing.py", line 7, in lifespan
    await receive()
asyncio.exceptions.CancelledError""",
    "debug behind a date of mail": """\
Tue, 06 Feb 2024 10:14:01  DEBUG Failed: FileNotFoundError(2, 'No such file')
Tue, 06 Feb 2024 10:14:02  INFO loss: 0.3""",
    "a word in generated text": """\
[prompt] The mayor said that nobody was hurt and no one killed,
epoch 1 step 10 loss 2.1""",
    "caught where a library is imported": """\
Could not load the native library: 'NoneType' object has no attribute 'split'
Traceback (most recent call last):
  File "/e/lib/python3.12/site-packages/bitsandbytes/a.py", line 5, in <module>
    lib = load()
  File "/e/lib/python3.12/site-packages/bitsandbytes/b.py", line 5, in load
    major, minor = map(int, torch.version.cuda.split("."))
AttributeError: 'NoneType' object has no attribute 'split'

CUDA Setup failed despite CUDA being available. Please run the following command:

Device set to use cuda:0
Setting `pad_token_id` to `eos_token_id`:128001 for open-end generation.""",
}


@pytest.mark.parametrize("text", WENT_ON.values(), ids=WENT_ON)
def test_what_the_run_went_on_after_is_no_failure(text: str) -> None:
    assert outcome(text)[0] is Outcome.NO_FAILURE


def test_a_remark_of_an_import_is_not_what_the_run_ended_of() -> None:
    text = r"""CUDA SETUP: Loading binary D:\env\bitsandbytes\libbitsandbytes_cpu.dll...
loading
loaded
Traceback (most recent call last):
  File "serve.py", line 9, in <module>
    import extra
ModuleNotFoundError: No module named 'extra'"""
    report = diagnose(intake.read_text(text), FactBook(), load())
    assert [one.rule for one in report.diagnoses] == ["own-code-error"]


RAISED = """\
Traceback (most recent call last):
  File "train.py", line 77, in forward
    z = z.view(b, -1, self.dim)
RuntimeError: shape '[8, 321, -1, 256]' is invalid for input of size 1310720"""

MANY = "\n".join(f"epoch 1 step {number} loss 2.{number}" for number in range(100, 150))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param(f"{RAISED}\n{MANY}\nKilled", "unrecognised", id="an earlier end, and many steps"),
        pytest.param(f"{RAISED}\n{STEPS}\nKilled", "view-invalid-shape", id="a few steps of a buffer"),
        pytest.param(
            f"error!! index 4 is out of bounds for dimension 0 with size 4\n{STEPS}\n{RAISED}",
            "view-invalid-shape",
            id="an error that was printed and got over",
        ),
        pytest.param(
            "terminate called without an active exception\n"
            "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f00>\n"
            'Traceback (most recent call last):\n  File "/e/torch/utils/data/_utils/signal_handling.py", '
            "line 66, in handler\n    _error_if_any_worker_fails()\nRuntimeError: DataLoader worker (pid 49) "
            "is killed by signal: Aborted. \nscores:\ntensor([0.2, 0.3])",
            "dataloader-worker-segfault",
            id="the death of a worker under an ignored exception",
        ),
        pytest.param(
            "ONNX: export failure  0.1s: Unsupported ONNX opset version: 17\n\n"
            "Process finished with exit code 0",
            "onnx-opset",
            id="a program whose last word is of a failure, and exit code 0",
        ),
    ],
)  # fmt: skip
def test_what_ended_the_run_is_the_answer(text: str, rule: str) -> None:
    report = diagnose(intake.read_text(text), FactBook(), load())
    assert (report.diagnoses[0].rule if report.diagnoses else report.outcome.value) == rule


def test_a_key_and_its_text_in_settings_are_source() -> None:
    assert (
        outcome('text  = "exit code 139 (interrupted by signal 11)"', 'risk = "safe"')[0]
        is Outcome.NO_FAILURE
    )
