"""What is answered to a text: ``answers.cases`` holds texts that are no case of a rule, and their answers.

A case begins with ``=== what it shows``; behind ``---`` stands the answer: each diagnosis with its rank, its
frame, the lines of its evidence and what it leads to, or the suspect; then the runs.
"""

# ruff: noqa: E501 - a line of a log is one line

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from case_files import rewrite, table
from report_lines import shown

from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Outcome

PATH = Path(__file__).with_name("answers.cases")


def answer(lines: list[str], rules: RuleSet) -> list[str]:
    return list(shown(diagnose(read_text("\n".join(lines)), FactBook(), rules)))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in table(PATH)])
def test_answers(lines: list[str], expected: list[str], rules: RuleSet) -> None:
    assert answer(lines, rules) == expected


def test_a_run_that_is_cut_says_where(rules: RuleSet) -> None:
    steps = "".join(f"epoch 1 step {number} loss 2.{number}\n" for number in (10, 20, 30))
    cut = "No failure in what is here; the log ends at epoch 1 step 30 without an end"
    assert diagnose(read_text(steps), FactBook(), rules).notes == (cut,)
    assert diagnose(read_text(f"{steps}Training finished.\n"), FactBook(), rules).notes == ()


def test_a_run_that_only_began_says_that_nothing_tells_its_end(rules: RuleSet) -> None:
    began = "node1:4120:4377 [0] NCCL INFO comm 0x55d0 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START\n"
    (note,) = diagnose(read_text(began), FactBook(), rules).notes
    assert note.startswith("Nothing here tells how it ended")
    assert diagnose(read_text("| NVIDIA-SMI 550.54 |\n"), FactBook(), rules).notes == ()


# how shells, debuggers, schedulers and supervisors tell that a process ended badly: their whole line
DEATHS = [
    "zsh: segmentation fault  python a.py",
    "zsh: illegal hardware instruction (core dumped)  python a.py",
    "zsh: exit 1     python a.py",
    "[1]    181810 illegal hardware instruction (core dumped)  python a.py",
    "$ python a.py                 [1]    181810 bus error (core dumped)  python a.py",
    "[2]+  Exit 1                  python a.py",
    "Abort trap: 6",
    "Segmentation fault: 11",
    "Trace/BPT trap: 5",
    "Bad system call (core dumped)",
    "fish: Job 1, 'python a.py' terminated by signal SIGSEGV (Address boundary error)",
    "Command terminated by signal 9",
    "Command exited with non-zero status 1",
    "timeout: the monitored command dumped core",
    "* thread #1, queue = 'com.apple.main-thread', stop reason = EXC_BAD_ACCESS (code=1, address=0x10)",
    "Process 4711 exited with status = 139 (0x0000008b)",
    "python(4711) malloc: *** error for object 0x1: pointer being freed was not allocated",
    "The kernel appears to have died. It will restart automatically.",
    "[W 10:00:00.123 NotebookApp] KernelRestarter: restarting kernel (1/5), keep random ports",
    "The Kernel crashed while executing code in the current cell or a previous cell.",
    "##[error]Process completed with exit code 137.",
    "2024-01-01 10:00:00,123 INFO exited: train (terminated by SIGSEGV; not expected)",
    "[2024-01-01 10:00:00 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:12)",
    "[2024-01-01, 10:00:00 UTC] {local_task_job_runner.py:228} INFO - Task exited with return code Negsignal.SIGKILL",
    "App [train:0] exited with code [1] via signal [SIGINT]",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly",
    "pod/train-0   0/1     CrashLoopBackOff   5 (20s ago)   3m",
    "train-0   0/1     Error   0   2m",
    "Exit_status=271",
    "Program received signal SIGSEGV, Segmentation fault.",
    'Thread 1 "python" received signal SIGSEGV, Segmentation fault.',
    "c++: 致命错误：已杀死 signal terminated program cc1plus",
    "W1128 15:28:46.903000 27837 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "virtual memory exhausted: Cannot allocate memory",
    # CUDA's own words, in what macros print that check its calls
    "Error invalid device ordinal at line 359 in file /src/csrc/pythonInterface.c",
    "Error an illegal memory access was encountered at line 90 in file /src/csrc/ops.cu",
    "Error operation not supported at line 351 in file /src/csrc/pythonInterface.c",
    "GPUassert: invalid argument kernels/knn.cu 25",
    "CUDA Runtime Error at knn.cu:12: invalid resource handle",
    "error in deform_im2col: no kernel image is available for execution on the device",
    "CUDA: too many resources requested for launch",
    "[02/11/2023-09:12:03] [TRT] [E] 1: [reformat.cu::NCHWToNCHHW2::1049] Error Code 1: Cuda Runtime (invalid resource handle)",
    # what a tool could not do
    "python: can't open file 'train.py': [Errno 2] No such file or directory",
    "unable to execute 'gcc': No such file or directory",
    "/usr/bin/python3: No module named torch.distributed.run",
    "bash: ./run.sh: Permission denied",
    "tee: train.log: No space left on device",
    "/usr/bin/env: 'python': No such file or directory",
    "exec /usr/bin/python: exec format error",
    "srun: fatal: Unable to open job script",
    "ssh: connect to host n1 port 22: Connection refused",
    "curl: (6) Could not resolve host: huggingface.co",
    "dyld[123]: Library not loaded: @rpath/libc10.dylib",
    "E: Unable to locate package python3.12",
]


@pytest.mark.parametrize("line", DEATHS)
def test_a_death_that_somebody_tells_is_no_good_end(line: str, rules: RuleSet) -> None:
    for text in (f"torch 2.5.1 starting\n{line}\n", f"{line}\n"):
        assert diagnose(read_text(text), FactBook(), rules).outcome is not Outcome.NO_FAILURE


def test_a_traceback_without_its_head_may_have_ended_the_program(rules: RuleSet) -> None:
    frame = '  File "/env/lib/python3.8/site-packages/pytorch3d/ops/ball_query.py", line 11, in <module>\n'
    text = f"{frame}    from pytorch3d import _C\nImportError: libtorch_cuda_cu.so: cannot open shared object file\n"
    listed = "(avatar) user@rig:~$ pip list | grep torch\npytorch3d   0.7.2\ntorch   2.1.2\n"
    assert diagnose(read_text(text + listed), FactBook(), rules).diagnoses[0].rule == "extension-abi-mismatch"


def test_a_script_that_goes_on_behind_a_tool_has_not_failed(rules: RuleSet) -> None:
    steps = "".join(f"epoch 1 step {number} loss 2.{number}\n" for number in (10, 20, 30))
    text = f"cat: /opt/site/motd: No such file or directory\n{steps}"
    assert diagnose(read_text(text), FactBook(), rules).outcome is Outcome.NO_FAILURE


def test_an_interrupt_above_a_whole_other_start_is_of_an_earlier_one(rules: RuleSet) -> None:
    stopped = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n    import torch\nKeyboardInterrupt\n'
    later = "".join(f"loaded part {number}\n" for number in range(45))
    assert diagnose(read_text(stopped + later), FactBook(), rules).outcome is Outcome.NO_FAILURE
    assert diagnose(read_text(stopped + later[:60]), FactBook(), rules).diagnoses[0].rule == "interrupted"


def test_what_parts_the_lines_of_a_run_begins_no_other(rules: RuleSet) -> None:
    """A program tells each line of its child twice, the first with a mark below it."""
    child = (
        '  File "D:\\lora\\.venv\\Lib\\site-packages\\torch\\distributed\\rendezvous.py", line 68, in next_rendezvous',
        "    self._store = TCPStore(",
        "torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support",
        "[ERROR] the command failed, return code: 1",
    )
    text = "".join(
        f"log message: {line}\n EndOf\n2025-09-05 11:59:08 [INFO] Tuner: {line}\n\n" for line in child
    )
    report = diagnose(read_text(f"{text} EndOf\n"), FactBook(), rules)
    assert [item.rule for item in report.diagnoses][:1] == ["dist-libuv-missing"]
    assert len(report.runs) <= 1


def test_two_tracebacks_that_were_written_at_once_are_of_one_run(rules: RuleSet) -> None:
    """Ranks without tags: the second stack begins before the first has its last line."""
    head = 'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    main()\n'
    body = '  File "t.py", line 4, in main\n    rows = read()\n'
    ends = "ValueError: 3 columns were expected\n", "    raise OSError(\nOSError: Cannot find data file.\n"
    at_once = head + head + body + body + "".join(ends)
    assert len(diagnose(read_text(at_once), FactBook(), rules).runs) <= 1
    apart = "".join(head + body + end for end in ends)
    assert len(diagnose(read_text(apart), FactBook(), rules).runs) == 2


def test_each_run_is_judged_once(rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nKeyError: 'lr'\n"
    transcript = read_text(f"$ python t.py\n{failed}" * 3)
    module = import_module("torchdoctor.engine.diagnose")
    judge, judged = module._judged, []
    monkeypatch.setattr(module, "_judged", lambda *given: judged.append(given) or judge(*given))
    assert len(diagnose(transcript, FactBook(), rules).runs) == len(judged) == 3


if __name__ == "__main__":  # records the answers as they are now, to be reviewed as a diff
    rewrite(PATH, lambda _, lines: answer(lines, load()))
