"""Kinds of events that are no Python exceptions."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.intake import read_text
from torchdoctor.intake.interleave import Interleaved
from torchdoctor.model import Event, EventKind


def first(text: str) -> Event:
    return read_text(text).events[0]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("worker-0:26110:26187 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]", EventKind.NCCL),
        ("worker-0:4106:4743 [7] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed", EventKind.NCCL),
        ("NCCL version 2.21.5+cuda12.4", EventKind.NCCL),
        ("[rank1]:[E1127 23:47:16.6 ProcessGroupNCCL.cpp:689] [Rank 1] Watchdog caught", EventKind.WATCHDOG),
        ("[E socket.cpp:435] [c10d] The server socket has failed to listen", EventKind.WATCHDOG),
        ("[F ProcessGroupNCCL.cpp:1224] [Rank 0] HeartbeatMonitor stuck", EventKind.WATCHDOG),
        ("[W socket.cpp:401] [c10d] The server socket has failed", EventKind.WARNING),
        (
            "[W1127 23:48:32.2 ProcessGroupNCCL.cpp:1575] Warning: WARNING: "
            "destroy_process_group()", EventKind.WARNING),
        (
            "W1023 14:02:33.101000 90412 "
            "site-packages/torch/_dynamo/convert_frame.py:1358] [3/8] x", EventKind.WARNING),
        ("[2023-02-12 18:22:41,377] torch._inductor.utils: [WARNING] make_fallback", EventKind.WARNING),
        (
            "E1127 23:48:32.909000 933 torch/distributed/elastic/multiprocessing/api.py:986] failed "
            "(exitcode: 1)",
         EventKind.LAUNCHER),
        (
            "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 2) "
            "local_rank: 0", EventKind.LAUNCHER),
        (
            "[2023-04-05 14:01:33,151] [INFO] [launch.py:428:sigkill_handler] Killing "
            "subprocess 20911", EventKind.LAUNCHER),
        ("Primary job  terminated normally, but 1 process returned", EventKind.LAUNCHER),
        ("Process finished with exit code 1", EventKind.LAUNCHER),
        ("[ 53498.248663] NVRM: Xid (PCI:0000:9b:00): 94, pid=1", EventKind.KERNEL_LOG),
        ("[Sun Apr 16 11:31:08 2023] NVRM: Xid (PCI:0000:01:00): 119", EventKind.KERNEL_LOG),
        ("[四 3月 20 21:01:25 2025] Out of memory: Killed process 93311 (python)", EventKind.KERNEL_LOG),
        (
            "Oct  4 15:02:41 gpu7 kernel: python[1]: segfault at 0 ip 00 sp 00 "
            "error 4 in libtorch.so", EventKind.KERNEL_LOG),
        ("pcieport 0000:00:03.0: AER: Corrected error received", EventKind.KERNEL_LOG),
        ("Killed", EventKind.CRASH),
        ("Aborted (core dumped)", EventKind.CRASH),
        ("Segmentation fault", EventKind.CRASH),
        ("bash: line 1: 20117 Aborted                 ./ringtest", EventKind.CRASH),
        ("./run.sh: line 3: 12345 Segmentation fault (core dumped) python a.py", EventKind.CRASH),
        ("free(): invalid pointer", EventKind.CRASH),
        ("double free or corruption (out)", EventKind.CRASH),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by", EventKind.CRASH),
        ("ringtest: ring.cpp:4: int Ring::at(size_t): Assertion `i < n' failed.", EventKind.CRASH),
        ("[codegen-host:00094] Signal: Aborted (6)", EventKind.CRASH),
        ("Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)", EventKind.CRASH),
        ("/c/a.h:143:2: error: #error -- unsupported GNU version!", EventKind.BUILD),
        ("D:/c10/util/C++17.h(27): fatal error C1189: #error:  You need C++17", EventKind.BUILD),
        ("LINK : fatal error LNK1181: cannot open input file 'cudart.lib'", EventKind.BUILD),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_86'", EventKind.BUILD),
        ("ninja: build stopped: subcommand failed.", EventKind.BUILD),
        ("/usr/bin/ld: cannot find -lcudart", EventKind.BUILD),
        ("/bin/sh: 1: :/usr/local/cuda/bin/nvcc: not found", EventKind.BUILD),
        ("error: command 'x86_64-linux-gnu-gcc' failed with exit status 1", EventKind.BUILD),
        ("ERROR: No matching distribution found for torch==2.1.2", EventKind.BUILD),
        ("#10 2.604 ERROR: Could not find a version that satisfies the requirement torch", EventKind.BUILD),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=123.batch.", EventKind.SCHEDULER),
        ("srun: error: node12: tasks 2-3: Aborted (core dumped)", EventKind.SCHEDULER),
        (
            "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE "
            "TO TIME LIMIT ***", EventKind.SCHEDULER),
        ("    Reason:       OOMKilled", EventKind.SCHEDULER),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", EventKind.SCHEDULER),
        ("Epoch: [1]  [200/201]  loss: 6.1031", EventKind.LOG),
        ("error in ms_deformable_im2col_cuda: no kernel image is available", EventKind.LOG),
        (
            "THCudaCheck FAIL file=roi_pool_kernel.cu line=155 error=77 : an illegal "
            "memory access", EventKind.LOG),
        ("user Killed the game", EventKind.LOG),
        ("top1_err: 49.2, Aborted: 0", EventKind.LOG),
        ("done. Errors: 0", EventKind.LOG),
    ],
)  # fmt: skip
def test_kinds(line: str, kind: EventKind) -> None:
    assert first(line).kind is kind


@pytest.mark.parametrize(
    "line",
    [
        "/p/Loss.cu:245: nll_loss_forward_reduce: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < "
        "n_classes` failed.",
        "/p/THCUNN/BCECriterion.cu:42: Acctype bce<D>::operator()(T) [with T = f(a)]: block: [0,0,0], "
        "thread: [1,0,0] Assertion `input >= 0. && input <= 1.` failed.",
        "C:\\w\\pytorch\\aten\\src\\ATen\\native\\cuda\\Loss.cu:257: block: [0,0,0], thread: [3,0,0] "
        "Assertion `t >= 0` failed.",
        "/r/aten/src/ATen/native/hip/Loss.hip:250: nll_loss: Device-side assertion `t >= 0' failed.",
    ],
)
def test_device_assertions_count_as_one(line: str) -> None:
    others = [
        line.replace("thread: [3", f"thread: [{n}").replace("thread: [1", f"thread: [{n}") for n in range(40)
    ]
    (event,) = read_text("\n".join(others)).events
    assert (event.kind, event.count, event.line, event.end_line) == (EventKind.DEVICE_ASSERT, 40, 1, 40)
    assert event.text == others[0]


def test_assertions_glued_to_a_bar_and_to_each_other() -> None:
    assertion = "/p/Loss.cu:{}: f: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0` failed."
    text = f" 3%|#3  | 13/412 [00:04<01:58,  3.36it/s]{assertion.format(1)}{assertion.format(2)}\n"
    bar, one, two = read_text(text).events
    assert bar.text.endswith("3.36it/s]")
    assert (one.text, two.text) == (assertion.format(1), assertion.format(2))


def test_a_word_of_the_shell_glued_to_a_slow_bar() -> None:
    bar, end = read_text("Loading checkpoint shards:  33%|###  | 1/3 [00:20<00:41, 20.7s/it]Killed\n").events
    assert bar.text.endswith("20.7s/it]")
    assert (end.kind, end.text) == (EventKind.CRASH, "Killed")


def test_a_python_warning_ends_with_its_source_line() -> None:
    text = (
        "/x/site-packages/torch/cuda/__init__.py:209: UserWarning:\nNVIDIA RTX 5090 with sm_120 is not "
        "compatible.\n"
        "    \n  warnings.warn(\nUsing device: cpu\n"
    )
    warning, log = read_text(text).events
    assert (warning.kind, warning.type) == (EventKind.WARNING, "UserWarning")
    assert warning.text.split("\n")[1] == "NVIDIA RTX 5090 with sm_120 is not compatible."
    assert (warning.frames[0].line, warning.frames[0].code, warning.frames[0].package) == (
        209,
        "warnings.warn(",
        "torch",
    )
    assert (warning.line, warning.end_line, log.text) == (1, 4, "Using device: cpu")


def test_a_warning_without_source_line_gives_the_rest_back() -> None:
    texts = [
        event.text for event in read_text("a.py:3: FutureWarning: old\nnext line\nRuntimeError: x\n").events
    ]
    assert texts == ["a.py:3: FutureWarning: old", "next line", "x"]


def test_the_warning_of_anomaly_mode_has_frames() -> None:
    text = (
        "/x/torch/autograd/__init__.py:173: UserWarning: Error detected in PowBackward0. Traceback of "
        "forward call that "
        'caused the error:\n  File "fit.py", line 431, in <module>\n    main()\n  File "fit.py", line 15, '
        "in f\n    y = x ** 2\n"
        " (Triggered internally at ../torch/csrc/autograd/python_anomaly_mode.cpp:104.)\n  "
        "Variable.run_backward(\n"
        'Traceback (most recent call last):\n  File "fit.py", line 5, in <module>\nRuntimeError: Function x\n'
    )
    warning, error = read_text(text).events
    assert [(f.line, f.code) for f in warning.frames] == [(431, "main()"), (15, "y = x ** 2")]
    assert (error.type, len(error.frames)) == ("RuntimeError", 1)


def test_a_native_error_and_what_it_says() -> None:
    text = (
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: misaligned "
        "address\n"
        "Exception raised from insert_events at /w/CUDACachingAllocator.cpp:764 (most recent call first):\n"
        + "".join(f"frame #{n}: <unknown function> + 0x1 (0x7f in /x/libc10.so)\n" for n in range(40))
        + "\nAborted (core dumped)\n"
    )
    crash, aborted = read_text(text).events
    assert crash.text.split("\n")[1] == "  what():  CUDA error: misaligned address"
    assert crash.text.count("frame #") == 16
    assert (aborted.kind, aborted.text) == (EventKind.CRASH, "Aborted (core dumped)")


def test_a_watchdog_record_goes_on_without_tag() -> None:
    text = (
        "[rank1]:[E1107 08:22:10.6 ProcessGroupNCCL.cpp:1595] [PG ID 0 Rank 1] Process group watchdog thread "
        "terminated with exception: CUDA error: device-side assert triggered\nCUDA kernel errors might be "
        "asynchronously reported\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\nworker-0:1:2 [1] NCCL WARN "
        "Cuda failure 710\n"
    )
    watchdog, nccl = read_text(text).events
    assert (watchdog.kind, watchdog.rank, watchdog.line, watchdog.end_line) == (EventKind.WATCHDOG, 1, 1, 3)
    assert watchdog.text.endswith("device-side assertions.")
    assert (nccl.kind, nccl.level, nccl.host) == (EventKind.NCCL, "WARNING", "worker-0")


def test_the_stack_of_a_failed_collective() -> None:
    text = (
        "[rank1]:[E1127 23:47:22.1 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: \n"
        "#0 all_gather from /x/site-packages/torch/distributed/distributed_c10d.py:4079\n#1 <module> from "
        "/w/train.py:17\n"
    )
    (event,) = read_text(text).events
    assert [(f.function, f.line, f.package) for f in event.frames] == [
        ("<module>", 17, ""),
        ("all_gather", 4079, "torch"),
    ]


def test_an_error_record_of_nccl_takes_its_details_along() -> None:
    text = (
        "2025-03-21 17:08:31,569 - finetune - ERROR - Error: NCCL error in: /p/NCCLUtils.hpp:268, unhandled "
        "cuda error\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 999 'unknown "
        "error'\nnext\n"
    )
    record, following = read_text(text).events
    assert record.text.endswith("Last error:\nCuda failure 999 'unknown error'")
    assert (record.level, following.text) == ("ERROR", "next")


def test_compiler_messages_keep_their_context_and_commands_their_own() -> None:
    text = (
        "FAILED: build/a.o \n/usr/bin/nvcc -DX -c a.cu -o build/a.o\n/c/a.cu:6:10: fatal error: x.h: No "
        "such file or directory\n"
        " #include <x.h>\n          ^~~~~\ncompilation terminated.\nninja: build stopped: subcommand "
        "failed.\n"
    )
    command, _, error, stopped = read_text(text).events
    assert command.text == "FAILED: build/a.o"
    assert error.text.split("\n")[0] == "/c/a.cu:6:10: fatal error: x.h: No such file or directory"
    assert error.text.endswith("compilation terminated.")
    assert stopped.text == "ninja: build stopped: subcommand failed."


def test_a_kernel_message_of_several_lines() -> None:
    text = (
        "[3641178.330951] NVRM: API mismatch: the client has the version 515.48.07, but\n"
        "                 NVRM: this kernel module has the version 510.73.05.  Please\n"
        "[3641201.550013] docker0: port 1 entered disabled state\n"
    )
    mismatch, other = read_text(text).events
    assert "this kernel module has the version 510.73.05" in mismatch.text
    assert (other.kind, other.line) == (EventKind.KERNEL_LOG, 3)


def test_the_frames_behind_a_message_of_comfyui() -> None:
    text = (
        "!!! Exception during processing !!! Dynamo failed to run FX node\n\nfrom user code:\n"
        '   File "/w/model.py", line 1098, in f\n    q = g(q)\n\nPrompt executed in 12.55 seconds\n'
    )
    log, executed = read_text(text).events
    assert (log.kind, log.frames[0].line, log.frames[0].code) == (EventKind.LOG, 1098, "q = g(q)")
    assert executed.text == "Prompt executed in 12.55 seconds"


@pytest.mark.parametrize(
    ("line", "crash"),
    [
        ("......Fatal Python error: Segmentation fault", True),
        ("tests/test_a.py::test_b ...Fatal Python error: Aborted", True),
        ("tests/test_a.py::test_b[1-x] Fatal Python error: Bus error", True),
        ("with 4 workers I get Fatal Python error: Segmentation fault", False),
        ('assert "Fatal Python error: Segmentation fault" in out', False),
    ],
)
def test_a_crash_ends_a_line_that_a_program_had_begun(line: str, crash: bool) -> None:
    assert (first(line).kind is EventKind.CRASH) is crash


def test_a_class_whose_first_letter_was_not_copied() -> None:
    event = first("ypeError: new() received an invalid combination of arguments\n")
    assert (event.kind, event.type) == (EventKind.EXCEPTION, "TypeError")
    assert first("untimeError was raised\n").kind is EventKind.LOG


# Lines that two ranks wrote at once
def told(lines: list[str]) -> list[str]:
    reader = Interleaved()
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        apart = reader.take(number, line)
        found += [line] if apart is None else [text for _, text in apart]
    return found + [text for _, text in reader.rest()]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["[rank0]: Trace[rank1]: other", "back (most"], ["[rank1]: other", "[rank0]: Traceback (most"]),
        (
            ["[rank0]: whole[rank1]: other", "", "[rank0]: x"],
            ["[rank1]: other", "[rank0]: whole", "", "[rank0]: x"],
        ),
        (["[rank0]: a[rank1]: b[rank2]: c"], ["[rank1]: b", "[rank2]: c", "[rank0]: a"]),
        (["[default0]:[rank0]: a", "[default1]:b"], ["[default0]:[rank0]: a", "[default1]:b"]),
        (["[default0]:[rank0]: a[default1]:[rank1]: b"], ["[default1]:[rank1]: b", "[default0]:[rank0]: a"]),
        (["[1,0]<stderr>:a[1,3]<stderr>:b"], ["[1,3]<stderr>:b", "[1,0]<stderr>:a"]),
        (["[rank0]: see [rank1]: it said", "x"], ["[rank0]: see [rank1]: it said", "x"]),
        (["[2026-01-01] a [2026-01-01] b"], ["[2026-01-01] a [2026-01-01] b"]),
        (["plain [rank0]: x", "y"], ["plain [rank0]: x", "y"]),
    ],
)
def test_pieces_go_to_their_ranks(lines: list[str], wanted: list[str]) -> None:
    assert told(lines) == wanted


def test_two_tracebacks_that_cut_each_other_are_both_read() -> None:
    text = (
        "[rank0]: Traceback (most recent call la[rank1]: Traceback (most recent call last):\n"
        "st):\n"
        '[rank0]:   File "/w/a.py", line 1, in f\n'
        '[rank1]:   File "/w/b.py", line 2, in g\n'
        "[rank1]: KeyError: 'x'[rank0]: ValueError: y\n"
        "\n"
    )
    found = {e.rank: e for e in read_text(text).events if e.kind is EventKind.EXCEPTION}
    assert {rank: (e.type, e.text, e.frames[0].file) for rank, e in found.items()} == {
        0: ("ValueError", "y", "/w/a.py"),
        1: ("KeyError", "'x'", "/w/b.py"),
    }


def test_a_traceback_that_two_processes_wrote_at_once() -> None:
    text = (
        "Traceback (most recent call last):\nTraceback (most recent call last):\n"
        '  File "train.py", line 9, in <module>\n  File "train.py", line 9, in <module>\n'
        "    fetch()    fetch()\n\n"
        "urllib.errorurllib.error..URLErrorURLError: : <urlopen error timed out><urlopen error timed out>\n\n"
    )
    (event,) = [event for event in read_text(text).events if event.type is not None]
    assert (event.type, event.text) == ("urllib.error.URLError", "<urlopen error timed out>")
    assert event.frames[-1].code == "fetch()"


@pytest.mark.parametrize(
    "line",
    [
        "    a    b",
        "    x",
        "ValueError: : odd",
        "KeyErrorKeyError: : 'a''b'",
        "    " * 4,
        "Error: : twice: : twice",
    ],
)
def test_lines_that_only_look_doubled_stay(line: str) -> None:
    assert Interleaved().take(1, line) is None


def test_hostile_doubled_lines_take_no_time() -> None:
    for line in ("AAa" * 2_000 + ": : ", "AbcAbc: : " + "a" * 4_001, "a.a." * 1_000 + "A: : b"):
        bounded(0.05, lambda line=line: Interleaved().take(1, line))  # type: ignore[misc]
