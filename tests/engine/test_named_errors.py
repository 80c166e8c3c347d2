"""A tick is earned: a line that names an error is met with it, and what a process got over is not."""

from __future__ import annotations

import pytest

from torchdoctor import intake
from torchdoctor.catalog import load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.model import Outcome

NCCL = "node-2:411:502 [1] "


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
def test_a_line_that_names_an_error_is_the_suspect(line: str) -> None:
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
