"""The first error of a build, in the words of several compilers, linkers and shells."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor import intake
from torchdoctor.extract import build, of_event
from torchdoctor.model import FactValue, State, Transcript

EXTENSION = (
    "[1/2] c++ -DTORCH_EXTENSION_NAME=ops -I/env/torch/include -std=c++17 -c ops.cpp -o ops.o\n"
    "FAILED: ops.o\n"
)


def facts(text: str) -> dict[str, FactValue]:
    return known(intake.read_text(text))


def known(transcript: Transcript) -> dict[str, FactValue]:
    found = list(of_event("build", transcript.events[0], transcript))
    assert {fact.name for fact in found} <= set(build.FACTS)
    assert all(fact.source.startswith("text:") for fact in found)
    return {fact.name: fact.value for fact in found if fact.state is State.KNOWN}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("a.cpp:3:18: error: 'x' was not declared in this scope", "code"),
        ("a.cpp:3:18: 错误：'AT_CHECK'在此作用域中尚未声明", "code"),
        ("a.cpp:15:10: fatal error: THC/THC.h: No such file or directory", "missing-header"),
        ("a.cpp:15:10: 致命错误：Python.h：没有那个文件或目录", "missing-header"),
        ("a.cpp:15:10: fatal error: 'omp.h' file not found", "missing-header"),
        ("a.cpp:9:3: error: no member named 'span' in namespace 'std'", "cxx-standard"),
        ('a.cu(12): error: identifier "AT_CHECK" is undefined', "code"),
        ('a.cu(12): error #20: identifier "THCState" is undefined', "code"),
        ('/usr/include/x.h(7): catastrophic error: cannot open source file "glm/glm.hpp"', "missing-header"),
        (
            "D:/py/c10/util/C++17.h(27): fatal error C1189: #error:  You need C++17 to compile PyTorch",
            "cxx-standard",
        ),
        ("ext.cpp(41): fatal error C1060: compiler is out of heap space", "out-of-memory"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_86'", "arch-unsupported"),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "out-of-memory"),
        ("ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'", "arch-unsupported"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "out-of-memory"),
        ("gcc: error: unrecognized command line option '-std=c++14'", "compiler-too-old"),
        ("cc1plus: error: unrecognized command-line option ‘-std=c++20’", "compiler-too-old"),
        ("/usr/bin/ld: cannot find -lcudart: No such file or directory", "missing-library"),
        ("ld: library not found for -lomp", "missing-library"),
        ("ld.lld: error: unable to find library -lcurand", "missing-library"),
        ("LINK : fatal error LNK1181: cannot open input file 'aio.lib'", "missing-library"),
        ("ops.o: in function `f': ops.cpp:(.text+0x1): undefined reference to `g()'", "undefined-reference"),
        ("/bin/sh: 1: :/usr/local/cuda/bin/nvcc: not found", "nvcc-missing"),
        ("/bin/sh: 1: c++: not found", "compiler-missing"),
        ("sh: line 1: /opt/cuda/bin/nvcc: No such file or directory", "nvcc-missing"),
        ("unable to execute 'x86_64-linux-gnu-gcc': No such file or directory", "compiler-missing"),
        (
            "/usr/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions "
            "later than 12 are not supported!",
            "compiler-too-new",
        ),
        (
            "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with "
            "'...':",
            "compiler-too-new",
        ),
    ],
)
def test_first_error(line: str, kind: str) -> None:
    found = facts(EXTENSION + line + "\nninja: build stopped: subcommand failed.\n")
    assert found["build.first_error_kind"] == kind
    assert found["build.consumer"] == "extension"
    assert found["build.extension"] == "ops"
    assert found["build.cxx_standard"] == 17


def test_first_of_several_decides() -> None:
    found = facts(
        EXTENSION
        + "ops.cpp:2:10: fatal error: Python.h: No such file or directory\ncompilation terminated.\n"
        + '[2/2] nvcc -c k.cu\nk.cu(9): error: identifier "q" is undefined\n'
    )
    assert found["build.header"] == "Python.h"
    assert found["build.first_error_file"] == "ops.cpp"


def test_echoes_are_no_error() -> None:
    found = facts(
        EXTENSION + "collect2: error: ld returned 1 exit status\n/usr/bin/ld: cannot find -lcublas\n"
    )
    assert found["build.library"] == "cublas"


def test_error_inside_an_exception() -> None:
    found = facts(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n    load("fast", ["fast.cpp"])\n'
        '  File "/env/site-packages/torch/utils/cpp_extension.py", line 2791, in _run_ninja_build\n'
        "    raise RuntimeError(message) from e\n"
        "RuntimeError: Error building extension 'fast': [1/2] c++ -std=c++20 -c fast.cpp -o fast.o \n"
        "FAILED: fast.o \nfast.cpp:4:5: error: expected ';' before 'return'\n"
    )
    assert found["build.first_error"] == "expected ';' before 'return'"
    assert found["build.extension"] == "fast"
    assert found["build.cxx_standard"] == 20


@pytest.mark.parametrize(
    ("text", "consumer"),
    [
        ("/tmp/tmpuq/cuda_utils.c:7:10: fatal error: Python.h: No such file or directory\n", "triton"),
        ("/tmp/torchinductor_me/ab/cab.cpp:2:10: fatal error: 'omp.h' file not found\n", "inductor"),
        ("psycopg/psycopg.h:35:10: fatal error: Python.h: No such file or directory\n", "other"),
        (EXTENSION + "ops.cpp:2:10: fatal error: Python.h: No such file or directory\n", "extension"),
    ],
)
def test_whose_build(text: str, consumer: str) -> None:
    assert facts(text)["build.consumer"] == consumer


def test_missing_std_name_is_the_flags_fault_only_under_an_older_standard() -> None:
    line = "a.h:4:8: error: 'optional' is not a member of 'std'\n"
    assert facts(EXTENSION + line)["build.first_error_kind"] == "code"
    older = EXTENSION.replace("c++17", "c++14")
    assert facts(older + line)["build.first_error_kind"] == "cxx-standard"


def test_last_standard_on_the_line_wins() -> None:
    text = EXTENSION.replace("-std=c++17", "-std=c++17 -O2 -std=c++11")
    found = facts(text + "a.h:4:8: error: 'decay_t' in namespace 'std' does not name a type\n")
    assert found["build.cxx_standard"] == 11
    assert found["build.first_error_kind"] == "cxx-standard"


@pytest.mark.parametrize(
    "text",
    [
        "epoch 1 loss 0.5\nepoch 2 loss 0.4\n",
        "ERROR: Failed building wheel for tokenizers\nerror: subprocess-exited-with-error\n",
        "train.py:12: error: lost connection to the tracker, trying again\n",
        "bash: conda: command not found\n",
        "Killed\n",
    ],
)
def test_no_build_no_facts(text: str) -> None:
    assert facts(text) == {}


def test_bare_killed_under_a_failed_command() -> None:
    found = facts(EXTENSION + "Killed\nninja: build stopped: subcommand failed.\n")
    assert found["build.first_error_kind"] == "out-of-memory"


def test_long_log_of_errors_is_quick() -> None:
    transcript = intake.read_text("".join(f"worker {n}: error rate {n / 7:.3f}\n" for n in range(20_000)))
    assert bounded(2.0, lambda: known(transcript)) == {}
