"""Tracebacks of CPython: frames, messages, chains, doubled and cut ones."""

from __future__ import annotations

import pytest

from torchdoctor.intake import read_text
from torchdoctor.intake.traceback import parse_frame
from torchdoctor.model import Event, EventKind, Frame, RelationKind

TRACE = """\
epoch 1
Traceback (most recent call last):
  File "/home/u/train.py", line 62, in <module>
    main()
    ~~~~^^
  File "/opt/venv/lib/python3.13/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 2x3)
"""


def exceptions(text: str) -> list[Event]:
    return [event for event in read_text(text).events if event.kind is EventKind.EXCEPTION]


def test_a_plain_traceback() -> None:
    log, event = read_text(TRACE).events
    assert (log.kind, log.text, log.line) == (EventKind.LOG, "epoch 1", 1)
    assert (event.kind, event.type) == (EventKind.EXCEPTION, "RuntimeError")
    assert event.text == "mat1 and mat2 shapes cannot be multiplied (4x5 and 2x3)"
    assert (event.line, event.end_line, event.message_line) == (2, 9, 9)
    assert event.headed
    assert event.frames == (
        Frame("/home/u/train.py", 62, "<module>", "main()", "", 3),
        Frame(
            "/opt/venv/lib/python3.13/site-packages/torch/nn/modules/linear.py", 134, "forward",
            "return F.linear(input, self.weight, self.bias)", "torch", 6,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('  File "a.py", line 3, in f', Frame("a.py", 3, "f", at=9)),
        ('  File "<string>", line 1, in <module>', Frame("<string>", 1, "<module>", at=9)),
        ('  File "C:\\x y\\a.py", line 3, in A.f', Frame("C:\\x y\\a.py", 3, "A.f", at=9)),
        ('  File "a.py", line 3 in f', Frame("a.py", 3, "f", at=9)),
        ('  File "a.py", line 3', Frame("a.py", 3, "", at=9)),
        (
            '  File "cupy/core/core.pyx",'
            ' line 1, in init cupy.core', Frame("cupy/core/core.pyx", 1, "init cupy.core", "", "cupy", 9)),
        ('  File "a.py", line x, in f', None),
        ('  File "a.py", in f', None),
        ('  File "a.py", line 3 f', None),
        ("  File a.py, line 3, in f", None),
        ('  File "a.py", line 12345678901234567890, in f', Frame("a.py", None, "f", at=9)),
        ('  File "a.py", line 12², in f', None),
    ],
)  # fmt: skip
def test_parse_frame(line: str, frame: Frame | None) -> None:
    assert parse_frame(line, 9) == frame


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory.", "torch.OutOfMemoryError", "CUDA out of memory."),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("_queue.Empty", "_queue.Empty", ""),
        ("socket.error: [Errno 111]", "socket.error", "[Errno 111]"),
        ("triton.runtime.errors.OutOfResources: out", "triton.runtime.errors.OutOfResources", "out"),
        ("AssertionError", "AssertionError", ""),
        ("urllib.error.URLError: <urlopen error>", "urllib.error.URLError", "<urlopen error>"),
        ("_LinAlgError: not positive", "_LinAlgError", "not positive"),
    ],
)
def test_the_last_line_of_a_traceback(line: str, name: str, text: str) -> None:
    (event,) = exceptions(
        f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n{line}\n'
    )
    assert (event.type, event.text) == (name, text)


@pytest.mark.parametrize(
    "line",
    ["RuntimeError: x", "ValueError: y: z",
        "torch._dynamo.exc.Unsupported: b", "Exception: c", "OSError: [Errno 12] x",
     "2024-01-01 00:00:00 ERROR KeyError: 'a'", "   IndexError: Target 4 is out of bounds."],
)  # fmt: skip
def test_bare_exceptions(line: str) -> None:
    (event,) = exceptions(line)
    assert not event.headed
    assert event.type is not None
    assert event.type in line


@pytest.mark.parametrize(
    "line",
    ["MeanSquaredError: 0.01", "val_error: 0.12", "Error: x",
        "java.lang.IllegalStateException: order", "Epoch: [0] x",
     "WordError: 3",
         "Iteration:   0%|          | 0/26 [00:00<?, ?it/s]", "ncclInternalError: x", "error: y", "Note: z",
     "https://x.y/SomeError: 1", "ERROR: could not", "Failed with ImportError('libcudart.so: cannot open')",
     "RuntimeError:nospace"],
)  # fmt: skip
def test_what_is_no_exception(line: str) -> None:
    assert exceptions(line) == []


def test_a_message_goes_on_until_the_next_structure() -> None:
    text = (
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
        "Killing subprocess 31867\n"
    )
    error, launcher = read_text(text).events
    assert error.text.endswith(
        "BLOCKING=1.\n\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
    )
    assert error.text.startswith("CUDA error: device-side assert triggered\nCUDA kernel errors")
    assert (launcher.kind, launcher.text) == (EventKind.LAUNCHER, "Killing subprocess 31867")


@pytest.mark.parametrize(
    "line",
    ["epoch 3 loss 0.5",
        " 10%|#  | 1/10 [00:01<00:09, 10.2it/s]", "$ nvidia-smi", ">>> ", "user@box:~/x$ ls", "wandb: x",
     "2024-01-01 00:00:00 INFO x",
         "[rank1]: Traceback (most recent call last):", "=====================", "Killed",
     "srun: error: node12: tasks 0-1: Exited with "
     "exit code 1", "ValueError: other", "```", "retrying with batch 4",
     "PS C:\\x> dir", "worker-0:1:2 [0] NCCL INFO x", "[W socket.cpp:1] x"],
)  # fmt: skip
def test_what_ends_a_message(line: str) -> None:
    first = exceptions(f"RuntimeError: x\n{line}\n")[0]
    assert first.text == "x"


def test_key_lists_are_part_of_the_message() -> None:
    text = (
        TRACE.rpartition("RuntimeError")[0]
        + "RuntimeError: Error(s) in loading state_dict for Net:\n"
        + '\tMissing key(s) in state_dict: "a.weight". \n'
        + '\tUnexpected key(s) in state_dict: "b.weight". \n'
    )
    (event,) = exceptions(text)
    assert event.text.split("\n") == [
        "Error(s) in loading state_dict for Net:", '\tMissing key(s) in state_dict: "a.weight".',
        '\tUnexpected key(s) in state_dict: "b.weight".',
    ]  # fmt: skip


def test_a_message_of_one_huge_line_is_joined_and_bounded() -> None:
    keys = ", ".join(f'"layer.{n}.weight"' for n in range(4_000))
    (event,) = exceptions(TRACE.rpartition("RuntimeError")[0] + f"RuntimeError: Missing key(s): {keys}\n")
    assert "\n" not in event.text
    assert event.text.startswith('Missing key(s): "layer.0.weight", "layer.1.weight"')
    assert 30_000 < len(event.text) <= 32_768


def test_chains_are_linked() -> None:
    first, second, third = exceptions(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 2, in g\nValueError: 2\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in h\nOSError: 3\n'
    )
    assert first.relations == ()
    assert [(r.kind, r.event) for r in second.relations] == [(RelationKind.CAUSE, first.id)]
    assert [(r.kind, r.event) for r in third.relations] == [(RelationKind.CONTEXT, second.id)]


def test_repeated_lines_and_recursion_are_bounded() -> None:
    frames = '  File "a.py", line 1, in f\n    f()\n' * 3_000
    text = (
        f"Traceback (most recent call last):\n{frames}  [Previous line repeated 995 more "
        f"times]\nRecursionError: deep\n"
    )
    (event,) = exceptions(text)
    assert (event.type, len(event.frames)) == ("RecursionError", 400)


def test_a_traceback_that_breaks_off() -> None:
    (event,) = exceptions('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n')
    assert (event.type, event.text, event.headed, len(event.frames)) == (None, "", True, 1)


def test_a_traceback_whose_head_is_cut_off() -> None:
    (event,) = exceptions('  File "a.py", line 1, in f\n    g()\nValueError: x\n')
    assert (event.type, event.text, event.headed, event.frames[0].code) == ("ValueError", "x", True, "g()")


def test_lines_of_others_between_the_frames() -> None:
    text = TRACE.replace('  File "/opt', ' 10%|#  | 1/10 [00:01<00:09, 10.2it/s]\n  File "/opt')
    (event,) = exceptions(text)
    assert (event.text[:4], len(event.frames)) == ("mat1", 2)


def test_two_processes_without_tags_that_print_at_once() -> None:
    text = (
        "Traceback (most recent call last):\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in <module>\n  File "a.py", line 1, in <module>\n    main()main()\n\n'
        '  File "a.py", line 9, in main\n  File "a.py", line 9, in main\n    x.cuda()\n    x.cuda()\n'
        "RuntimeError: first\nRuntimeError: second\n"
    )
    first, second = exceptions(text)
    assert (first.text, second.text) == ("first", "second")
    assert {frame.line for frame in first.frames} == {1, 9}
    assert second.frames == first.frames
    assert second.headed


def test_a_doubled_type() -> None:
    (event,) = exceptions("RuntimeErrorRuntimeError: : CUDA error: out of memory\n")
    assert (event.type, event.text) == ("RuntimeError", "CUDA error: out of memory")


def test_scrambled_lines_keep_every_message() -> None:
    text = (
        '  File "a.py", line 1, in f\n    g()\nValueError: size (79)\n    return h()\n'
        'ValueError\n  File "a.py", line 2, in h\n    k()\n: size (103)\n  File "b.py", line 3, in k\n    '
        "m()\nValueError: size (511)\n"
    )
    assert [(event.type, event.text) for event in exceptions(text)] == [
        ("ValueError", "size (79)"), ("ValueError", "size (103)"), ("ValueError", "size (511)"),
    ]  # fmt: skip


def test_the_debugger_of_vs_code() -> None:
    text = (
        "Exception has occurred: RuntimeError\nCUDA out of memory. Tried to allocate 20.00 MiB\n"
        '  File "/w/layers.py", line 248, in forward\n    s = a ** 2\n  File "/w/train.py", line 18, in '
        "<module>\n    run()\n"
    )
    (event,) = exceptions(text)
    assert (event.type, event.text) == ("RuntimeError", "CUDA out of memory. Tried to allocate 20.00 MiB")
    assert [(frame.line, frame.code) for frame in event.frames] == [(18, "run()"), (248, "s = a ** 2")]


def test_the_debugger_prints_a_chain_from_the_inside() -> None:
    text = (
        "Exception has occurred: RuntimeError       (note: full exception trace is shown but execution is "
        "paused at: _run_module_as_main)\nError building extension 'op'\nsubprocess.CalledProcessError: "
        "Command '['ninja', '-v']' returned non-zero exit status 1.\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        '  File "/w/op.py", line 10, in <module>\n    op = load(\n  File "/w/demo.py", line 9, in <module>\n'
        '    import op\n  File "/usr/lib/python3.9/runpy.py", line 197, in _run_module_as_main (Current'
        " frame)\n    return _run_code(code, main_globals)\nRuntimeError: Error building extension 'op'\n"
    )
    assert [frame.line for frame in exceptions(text)[-1].frames] == [197, 9, 10]


def test_frames_that_dynamo_names_belong_to_the_exception() -> None:
    text = (
        TRACE.rpartition("RuntimeError")[0]
        + "torch._dynamo.exc.Unsupported: Data-dependent branching\n\nfrom user code:\n"
        + '   File "/w/model.py", line 4, in f\n    if x.sum() > 0:\n\nSet TORCHDYNAMO_VERBOSE=1 for more\n'
    )
    (event,) = exceptions(text)
    assert (event.frames[-1].file, event.frames[-1].line, event.frames[-1].code) == (
        "/w/model.py",
        4,
        "if x.sum() > 0:",
    )
    assert event.text.startswith("Data-dependent branching\n\nfrom user code:")
    assert event.text.endswith("Set TORCHDYNAMO_VERBOSE=1 for more")


def test_an_ignored_exception_is_recovered() -> None:
    text = (
        "Exception ignored in: <function tqdm.__del__ at 0x7f>\nTraceback (most recent call last):\n"
        '  File "/x/tqdm/std.py", line 10, in __del__\nTypeError: x\n'
    )
    (event,) = exceptions(text)
    assert event.recovered


def test_loguru_and_its_marks() -> None:
    text = (
        'Traceback (most recent call last):\n\n  File "a.py", line 12, in <module>\n    main()\n    └ '
        "<function main>\n\n"
        '> File "a.py", line 8, in main\n    x = y / z\n        │   └ 0\n        └ 1\n\nZeroDivisionError: '
        "division by zero\n"
    )
    (event,) = exceptions(text)
    assert (event.type, [(frame.line, frame.code) for frame in event.frames]) == (
        "ZeroDivisionError", [(12, "main()"), (8, "x = y / z")],
    )  # fmt: skip


def test_an_indented_chain_of_pip() -> None:
    text = (
        '    Traceback (most recent call last):\n      File "/x/cpp_extension.py", line 2104, in _run\n     '
        "   run(\n"
        "    subprocess.CalledProcessError: Command '['ninja']' returned\n\n"
        "    The above exception was the direct cause of the following exception:\n\n"
        "    RuntimeError: Error compiling objects for extension\n    [end of output]\n"
    )
    first, second = exceptions(text)
    assert (first.type, second.text) == (
        "subprocess.CalledProcessError",
        "Error compiling objects for extension",
    )
    assert [r.kind for r in second.relations] == [RelationKind.CAUSE]
