"""What is said of a failure that no rule knows: its reading, its next step, and what to search for."""

from __future__ import annotations

import re

import pytest
import sample_reports

from torchdoctor.model import Evidence, Frame, Reading, ReadingKind, Suspect
from torchdoctor.render.html import to_html
from torchdoctor.render.markdown import to_markdown
from torchdoctor.render.unknown import next_step, reading
from torchdoctor.render.unknown_search import search_line

MISSING = ReadingKind.LIBRARY_MISSING
BUILD, INSTALL = ReadingKind.BUILD_FAILED, ReadingKind.INSTALL_FAILED
REPORTED = ReadingKind.LIBRARY_REPORTED


def _build(
    problem: str, name: str | None = None, wants: str | None = None, place: str | None = None
) -> Reading:
    return Reading(BUILD, "widgets", wants=wants, problem=problem, name=name, place=place)


@pytest.mark.parametrize(
    ("item", "sentence", "step"),
    [
        (
            _build("missing-header", "knob.h", None, "turn.cpp:7"),
            "does not find the header knob.h, which turn.cpp:7 includes, code of widgets.",
            "`apt-file search knob.h`",
        ),
        (
            _build("missing-header", "immintrin.h", "compilers for x86 processors alone"),
            "it comes with compilers for x86 processors alone.",
            "no package can bring immintrin.h",
        ),
        (_build("missing-header", "map", "the C++ standard library"), "the header map;", "c++ -E -x c++ -v"),
        (Reading(REPORTED, "NCCL", place="net.cc:7"), "NCCL reported it, in net.cc:7.", "NCCL_DEBUG"),
        (Reading(REPORTED, "ptxas"), "ptxas, the assembler of CUDA, reported it.", "`ptxas --version`"),
        (_build("missing-library", "aio"), "the library aio.", "find / -name 'libaio.*'"),
        (_build("missing-tool", "nvcc"), "calls nvcc, which is not there", "Install nvcc"),
        (_build("missing-package", "Eigen3"), "CMake does not find Eigen3", "CMAKE_PREFIX_PATH"),
        (_build("cmake-too-new", "3.5"), "before 3.5", "CMAKE_POLICY_VERSION_MINIMUM=3.5"),
        (_build("cmake-too-old", "3.26"), "needs CMake 3.26 or later", "pip install -U cmake"),
        (_build("compiler-too-old", "CXX14"), "no flag for CXX14", "CC and CXX"),
        (_build("out-of-memory"), "ran out of memory", "MAX_JOBS=1"),
        (_build("cmake", place="CMakeLists.txt:3"), "CMake stopped in CMakeLists.txt:3", "ConfigureLog.yaml"),
        (_build("code", place="turn.cu:9"), "stopped at turn.cu:9, code of widgets", "from this error on"),
        (Reading(INSTALL, problem="no-version", name="knobs==9"), "release of knobs==9", "index versions"),
        (Reading(INSTALL, problem="conflict", name="a and b"), "exclude each other", "Leave out the version"),
        (Reading(INSTALL, problem="build", name="knobs"), "Building knobs failed", "pip install -v knobs`"),
        (
            Reading(ReadingKind.MODULE_MISSING, "widgets", name="knobs.low"),
            "widgets imports knobs.low, which is not installed",
            "`python -c 'import knobs'`",
        ),
        (Reading(ReadingKind.NAME_MISSING, "knobs", name="Turn"), "installed has no Turn", "pip show knobs"),
        (
            Reading(ReadingKind.LIBRARY_MISSING, "widgets", name="libknob.so.3"),
            "the shared library libknob.so.3, which widgets needs",
            "find / -name 'libknob.so*'",
        ),
        (
            Reading(MISSING, "libknob.so", wants="CUDA 12", problem="cuda", name="libcudart.so.12"),
            "the shared library libcudart.so.12, which libknob.so needs",
            "Install libknob.so in its build for the CUDA that is here, not for CUDA 12;",
        ),
        (
            Reading(MISSING, "libonnxruntime_p.so", None, "CUDA 11", None, "cuda", "libcublas.so.11"),
            "which libonnxruntime_p.so needs",
            "`pip install --upgrade onnxruntime-gpu`, if CUDA 12 is here",
        ),
        (Reading(ReadingKind.LIBRARY_MISSING, name="knob64_3.dll"), "knob64_3.dll", "`where knob64_3.dll`"),
        (Reading(ReadingKind.NATIVE_CRASH, name="SIGSEGV"), "crashed in native code", "PYTHONFAULTHANDLER=1"),
        (Reading(ReadingKind.NATIVE_CRASH, name="SIGBUS"), "crashed in native code", "df -h /dev/shm"),
        (Reading(ReadingKind.ENDED_OUTSIDE, "Slurm"), "ended from outside, by Slurm", "sacct -j"),
        (Reading(ReadingKind.ENDED_OUTSIDE, "Kubernetes"), "by Kubernetes", "kubectl describe pod"),
        (Reading(ReadingKind.ENDED_OUTSIDE), "ended from outside;", "dmesg"),
        (Reading(ReadingKind.ENDED_OUTSIDE, name="SIGKILL"), "with SIGKILL;", "dmesg"),
        (Reading(ReadingKind.ENDED_OUTSIDE, name="SIGTERM"), "with SIGTERM;", "last -x"),
        (Reading(ReadingKind.ENDED_OUTSIDE, "Slurm", name="SIGTERM"), "by Slurm, with", "sacct -j"),
        (_build("missing-file", "libknob.so"), "make needs the file libknob.so", "CMAKE_PREFIX_PATH"),
        (_build("unsaid"), "what it said is not in this text", "keep the whole output"),
        (Reading(INSTALL, problem="other-python", name=">3.9"), "another Python: >3.9", "python --version"),
        (Reading(INSTALL, "conda", problem="no-version", name="knobs"), "release of knobs", "conda search"),
        (Reading(ReadingKind.PROGRAM_MISSING, "widgets", name="kn"), "widgets starts kn", "`which kn`"),
        (Reading(ReadingKind.NATIVE_CRASH, name="SIGILL"), "crashed in native code", "lscpu"),
        (
            Reading(ReadingKind.LIBRARY_MISSING, "knob", problem="dll"),
            "Windows found knob, and not a DLL that it needs.",
            "Visual C++ Redistributable",
        ),
        (Reading(INSTALL, problem="none-offered", name="kn"), "no release of kn at all", "index versions kn"),
        (
            Reading(INSTALL, problem="other-index", name="kn", place="https://i.org/cu"),
            "asked, https://i.org/cu, has no kn",
            "--extra-index-url",
        ),
        (Reading(INSTALL, problem="no-index", name="kn"), "told to ask no index", "--find-links"),
        (
            Reading(INSTALL, "--no-index -e python", problem="no-index-build", name="kn>=40"),
            "may ask no index for kn>=40",
            "`pip install --no-build-isolation --no-index -e python`",
        ),
        (Reading(INSTALL, problem="managed"), "belongs to the system", "python3 -m venv"),
        (Reading(INSTALL, problem="permission"), "may not write", "python3 -m venv"),
        (Reading(INSTALL, problem="space"), "disk is full", "pip cache purge"),
        (Reading(INSTALL, problem="setup", name="kn"), "The setup script of kn raised it", "another release"),
        (Reading(INSTALL, "kn", problem="setup-module", name="dial"), "the module dial", "--no-build-iso"),
        (Reading(ReadingKind.EXITED), "ended by itself", "the output of that process"),
        (Reading(ReadingKind.QUOTED), "the text quotes it", "the log of the program itself"),
    ],
)  # fmt: skip
def test_each_kind_has_its_sentence_and_its_step(item: Reading, sentence: str, step: str) -> None:
    assert sentence in reading(item)
    suspect = Suspect(None, "it broke", None, None, Evidence("it broke", line=3), reading=item)
    assert step in next_step(suspect)


@pytest.mark.parametrize(
    ("kind", "message", "step"),
    [
        ("json.decoder.JSONDecodeError", "Expecting value: line 3 column 1 (char 9)", "line 3 column 1"),
        (
            "subprocess.CalledProcessError",
            "Command 'x' returned 3",
            "Run the command of the message by itself",
        ),
        (
            "subprocess.CalledProcessError",
            "Command '['cc', '/tmp/tmpk2_d81xq/a.c']' returned 1",
            "cannot be run again",
        ),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'a/b.csv'", "`ls -ld 'a/b.csv'`"),
        (
            "RuntimeError",
            "set 'a/d.yaml' images not found, missing path '/a/val'",
            "user of the program: `ls -ld '/a/val'`",
        ),
        ("FileNotFoundError", "rtsp0 ! sink does not exist", "what you mean by `rtsp0 ! sink`"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'a\\b.csv'", "`dir 'a\\b.csv'`"),
        ("TypeError", "Net.forward() got an unexpected keyword argument 'use_cache'", "Leave use_cache out"),
        ("TypeError", "Rows.pad() takes 1 positional argument but 2 were given", "2 came, and it takes 1"),
        ("pyarrow.lib.ArrowInvalid", "cannot mix struct and non-struct, non-null values", "of one type"),
        ("pyarrow.lib.ArrowInvalid", "Not an Arrow file", "python -m pdb"),
        ("ValueError", "no turn", "python -m pdb"),
        (None, "", "cut off before the last line of the traceback"),
        (None, "knob: ERROR: no turn", "printed around this line"),
    ],
)
def test_an_exception_gets_the_step_of_its_class(kind: str | None, message: str, step: str) -> None:
    frame = Frame("/w/turn.py", 3, "turn") if kind else None
    assert step in next_step(Suspect(kind, message, None, frame, Evidence(message, line=3)))


@pytest.mark.parametrize(
    ("system", "item", "step"),
    [
        (
            "macos",
            Reading(
                MISSING, "torch", name="libknob.dylib", place="/opt/homebrew/opt/knobs/lib/libknob.dylib"
            ),
            "`brew install knobs`",
        ),
        (None, Reading(MISSING, "torch", name="libknob.dylib", place="@rpath/libknob.dylib"), "`otool -L`"),
        ("macos", _build("missing-header", "knob.h"), "with Homebrew"),
        ("macos", _build("missing-library", "knob"), "mdfind -name libknob.dylib"),
        ("macos", _build("missing-header", "map", "the C++ standard library"), "c++ -E -x c++ -v"),
        ("windows", _build("missing-header", "knob.h"), "in INCLUDE"),
        ("windows", _build("missing-library", "knob"), "`where.exe /r C:\\ knob.lib`"),
        ("windows", Reading(ReadingKind.PROGRAM_MISSING, name="ninja"), "`where.exe ninja`"),
        ("windows", Reading(ReadingKind.PROGRAM_MISSING, name="ffprobe"), "`winget install Gyan.FFmpeg`"),
        ("macos", Reading(ReadingKind.PROGRAM_MISSING, name="ffmpeg"), "`brew install ffmpeg`"),
        ("linux", Reading(ReadingKind.PROGRAM_MISSING, name="ffmpeg"), "`apt-get install ffmpeg`"),
        ("windows", Reading(INSTALL, problem="permission"), ".venv\\Scripts\\python -m pip"),
        ("windows", Reading(ReadingKind.ENDED_OUTSIDE), "Task Manager"),
        ("macos", Reading(ReadingKind.ENDED_OUTSIDE), "Activity Monitor"),
        ("macos", Reading(ReadingKind.ENDED_OUTSIDE, name="SIGTERM"), "who asked it to end"),
        ("macos", Reading(ReadingKind.ENDED_OUTSIDE, "Slurm"), "sacct -j JOB"),
        ("linux", _build("missing-header", "knob.h"), "apt-file search knob.h"),
        (
            "dockerfile",
            Reading(INSTALL, problem="setup-module-here", name="wheel"),
            "`RUN pip install wheel`",
        ),
    ],
)
def test_the_step_is_one_of_the_system(system: str | None, item: Reading, step: str) -> None:
    told = next_step(Suspect("RuntimeError", "x", None, None, Evidence("x"), reading=item, system=system))
    assert step in told
    assert system == "linux" or not re.search(r"apt-file|find / |dmesg|LD_LIBRARY_PATH", told)


def test_no_debugger_for_one_rank_of_many() -> None:
    frame = Frame("C:\\w\\turn.py", 3, "turn")
    step = next_step(Suspect("ValueError", "no turn", 2, frame, Evidence("no turn", line=3)))
    assert step == "Print the variables that turn.py:3 uses, just before it, on rank 2."


def test_where_a_debugger_of_the_command_does_not_stop_it_is_not_named() -> None:
    """What a function caught and printed, or a child process raised, ends no command."""
    frame = Frame("/w/turn.py", 3, "turn")
    step = next_step(Suspect("ValueError", "no turn", None, frame, Evidence("no turn", line=3), caught=True))
    assert step == "Print the variables that turn.py:3 uses, just before it."


def test_a_weight_that_a_checkpoint_lacks_is_no_fault_of_the_class_in_its_config() -> None:
    made = Reading(ReadingKind.RAISED_INSIDE, "knobs", "get_weight", problem="checkpoint", place="gqa.py:651")
    frame = Frame("/env/lib/python3.12/site-packages/knobs/gqa.py", 651, "get_weight", package="knobs")
    weight = "'layers.5.v_proj.weight'"
    step = next_step(Suspect("KeyError", weight, None, frame, Evidence(weight, line=9), reading=made))
    assert step.startswith("Take a model that knobs supports")
    assert "layers.5.v_proj.weight, which this checkpoint does not hold" in step


def test_at_a_prompt_the_debugger_looks_back() -> None:
    item = Suspect(
        "RuntimeError", "refused", None, Frame("<stdin>", 1, "<module>"), Evidence("refused", line=3)
    )
    assert "`import pdb; pdb.pm()`" in next_step(item)


_INSIDE = Reading(ReadingKind.RAISED_INSIDE, "knobs", "load_weights", place="turn.py:3")
_ROWS = Reading(ReadingKind.LIBRARY_REFUSED, "knobs", "turn", "of type `str`", problem="data", place="w.py:2")


@pytest.mark.parametrize(
    ("kind", "message", "read", "step"),
    [
        ("KeyError", "'blocks.0.attn.qkv.weight'", _INSIDE, "Compare `architectures` in the config.json"),
        ("KeyError", "'blocks'", _INSIDE, "Update knobs to its newest release: code"),
        (
            "ValueError",
            "must be of type `str`",
            _ROWS,
            "Look at the rows of the data set, which w.py:2 hands",
        ),
        (
            "ValueError",
            "no such knob in the model",
            _INSIDE,
            "Compare what the message names with what you give",
        ),
        ("NotImplementedError", "", _INSIDE, "Choose, in the settings, what"),
        ("ImportError", "'turn' needs 'wheels'", _INSIDE, "Install or update what the message names, with"),
        (None, "ERROR turn: Currently not implemented for knob", None, "Update the program that printed it"),
        (None, "ERROR turn: Operation not supported", None, "Read what the same program printed"),
    ],
)
def test_what_a_reader_can_change_of_a_failure_in_a_package(
    kind: str | None, message: str, read: Reading | None, step: str
) -> None:
    frame = Frame("/e/site-packages/knobs/turn.py", 3, "turn", package="knobs")
    item = Suspect(kind, message, None, frame, Evidence(message, line=3), reading=read)
    assert next_step(item).startswith(step)


@pytest.mark.parametrize(
    ("setting", "own", "step"),
    [
        ("--max-turn", False, "Set or change --max-turn where knobs is started"),
        ("max_turn", False, "Set or change max_turn where knobs is called or configured"),
        ("max_turn", True, "Change max_turn, which w.py:2 gives to knobs, as the message says."),
    ],
)
def test_the_setting_that_a_message_is_about_is_named(setting: str, own: bool, step: str) -> None:
    package = Frame("/e/site-packages/knobs/turn.py", 3, "turn", package="knobs")
    frame = Frame("/srv/w.py", 2, "main") if own else package
    read = Reading(ReadingKind.LIBRARY_REFUSED if own else ReadingKind.RAISED_INSIDE, "knobs", "turn")
    item = Suspect("ValueError", "no", None, frame, Evidence("no", line=3), reading=read, setting=setting)
    assert next_step(item).startswith(step)


@pytest.mark.parametrize("own", [False, True])
def test_the_values_that_a_setting_may_have_are_listed(own: bool) -> None:
    package = Frame("/e/site-packages/knobs/turn.py", 3, "turn", package="knobs")
    frame = Frame("/srv/w.py", 2, "main") if own else package
    read = Reading(ReadingKind.LIBRARY_REFUSED if own else ReadingKind.RAISED_INSIDE, "knobs", "turn")
    item = Suspect(
        "ValueError", "no", None, frame, Evidence("no", line=3),
        reading=read, setting="max_turn", choices=("left", "right", "half"),
    )  # fmt: skip
    where = "w.py:2 gives it to knobs" if own else "knobs is called or configured"
    assert next_step(item).startswith(f"Set max_turn to left, right or half where {where}: it takes no other")


@pytest.mark.parametrize(
    ("asks", "system", "step"),
    [
        (
            "please set KNOBS_TURN=1",
            None,
            "Set what the message asks for, `export KNOBS_TURN=1`, in the shell",
        ),
        (
            "please set KNOBS_TURN='all'",
            "windows",
            "Set what the message asks for, `$env:KNOBS_TURN = 'all'`, in",
        ),
        (
            "Set `KNOBS_TURN=0.5`.",
            "dockerfile",
            "Set what the message asks for in the Dockerfile, above that",
        ),
        # no one command
        ("Set KNOBS_TURN=1 or KNOBS_HOLD=1", None, "Do what the message itself asks for"),
        ("Set KNOBS_TURN=0/1", None, "Do what the message itself asks for"),
        ("Set KNOBS_DIR=/path/to/knobs", None, "Do what the message itself asks for"),
    ],
)
def test_a_variable_that_a_message_asks_for_is_a_command(asks: str, system: str | None, step: str) -> None:
    read = Reading(ReadingKind.RAISED_INSIDE, "knobs", "turn")
    item = Suspect("ValueError", asks, None, None, Evidence(asks), reading=read, asks=asks, system=system)
    assert next_step(item).startswith(step)


def test_what_a_package_asks_for_where_nobody_called_it_is_an_option() -> None:
    def step(kind: ReadingKind, asks: str = "Please set a dp-size > 1") -> str:
        read = Reading(kind, "knobs", "turn")
        return next_step(Suspect("ValueError", asks, None, None, Evidence(asks), reading=read, asks=asks))

    assert "where knobs gets its options:" in step(ReadingKind.RAISED_INSIDE)
    assert "where turn is called:" in step(ReadingKind.LIBRARY_REFUSED)


def test_what_a_package_got_is_looked_for_in_the_line_that_called_it() -> None:
    frame = Frame("/srv/w.py", 2, "main")

    def step(**said: str) -> str:
        read = Reading(ReadingKind.LIBRARY_REFUSED, "knobs", "turn", **said)
        return next_step(Suspect("ValueError", "no", None, frame, Evidence("no", line=3), reading=read))

    assert step(problem="none", name="knob").startswith("Look what w.py:2 hands to knobs, print(knob) just")
    assert step(problem="none").startswith("Look what w.py:2 hands to knobs, print them just before it")
    assert step(got="mps:0").startswith("Do this on the CPU: move its tensors there, .cpu(), before w.py:2")
    assert step(problem="empty").startswith("Look where what w.py:2 hands to knobs is made or filtered")
    assert step(got="3").startswith("Change what w.py:2 hands to knobs")


def test_a_division_by_zero_in_a_package_names_the_divisor() -> None:
    frame = Frame("/srv/knobs/knobs/turn.py", 3, "turn", package="knobs")
    item = Suspect("ZeroDivisionError", "no", None, frame, Evidence("no", line=3), setting="self.turns")
    assert next_step(item).startswith("Look what makes self.turns 0 in knobs: fewer samples than one batch")


def test_a_package_in_a_folder_of_its_own_is_not_updated_with_pip() -> None:
    frame = Frame("/srv/knobs/knobs/turn.py", 3, "turn", package="knobs")
    step = next_step(Suspect("RuntimeError", "no", None, frame, Evidence("no", line=3)))
    assert step.startswith("Compare your options and data with an example of knobs that works, or update its")


def test_a_command_of_pip_in_a_message_is_what_to_do() -> None:
    item = Suspect("ImportError", "no", None, None, Evidence("no", line=3), asks="Use `pip install knobs`")
    assert next_step(item).startswith("Install what the message asks for, in the interpreter that ran this:")


def test_a_module_that_a_package_takes_for_installed_is_no_reason_to_install_it() -> None:
    item = Reading(ReadingKind.MODULE_MISSING, "knobs", name="turn.low", problem="lazy")
    step = next_step(Suspect("RuntimeError", "no turn", None, None, Evidence("x", line=3), reading=item))
    assert step.startswith("Update knobs, `pip install --upgrade knobs`, unless you use turn yourself")


def test_a_package_that_fails_at_its_import_is_updated() -> None:
    frame = Frame("/w/turn.py", 1, "<module>", "import knobs as k")
    assert next_step(Suspect("AttributeError", "no turn", None, frame, Evidence("x", line=3))).startswith(
        "Update knobs with pip, and what it imports"
    )


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("No module named 'knobs.low'", "No module named 'knobs.low'"),
        ("lib/turn.cpp:9:10: fatal error: 'map' file not found", "fatal error: 'map' file not found"),
        ("/a/v.h:19:3: error: type 'int2' conflicts", "error: type 'int2' conflicts"),
        ("no namespace 'at::native<float>' in \"knob\"", "no namespace 'at::native<float>' in \"knob\""),
        ("ERROR 03-27 03:12:01 run.py:400] int() of 'tcp://10.0.1.2:80'", "ERROR run.py:] int() of 'tcp://'"),
        ("libknob.so.3: cannot open shared object file", "libknob.so.3: cannot open shared object file"),
        ("Can't load './a/b' for 'C:\\a b'", "Can't load for"),
        ("pool(host='db.example.org', port=443): refused", "pool(host= port=): refused"),
        ("server at \"db\" (10.0.0.3) failed for user \"anna\"", "server at failed for user"),
        ("[Errno 98] in use at https://example.org/a", "[Errno 98] in use at"),
        ("expected [3, 4] at 0x7ff1, rev 8f1c2d6a0b41", "expected at rev"),
        ("CMake Error at a/CMakeLists.txt:4 (find):\n  No\n  knob.", "CMake Error at (find): No knob."),
        ("```knob broke```", "knob broke"),
        ("no op 'knobs::turn.out/2', error code 304", "no op 'knobs::turn.out/2', error code 304"),
        ("/opt/k/libknob.so.2: bad 'D:\\k\\turn.dll' b'\\x00'", "libknob.so.2: bad 'turn.dll'"),
        ("Unsupported: 'call_knob on a.turn [Tensor(), int 3]'", "Unsupported: call_knob a.turn"),
        ("knobStatus=9 [No such knob] for 3 turns", "knobStatus=9 [No such knob] for turns"),
        ("secret=12345, interpret 3", "secret= interpret"),
        ("option '--turn-by' of 'my knob/a' unknown", "option '--turn-by' of unknown"),
        ("Error in void k::turn() at /k.cpp:5: Error: 'n > 0' failed: no turn 3", "n failed: no turn"),
        ("[10:01:02] /b/k.cc:7: Check failed: n.ok (0 vs. 1) : no turn", "n.ok failed: no turn"),
    ],
)  # fmt: skip
def test_names_stay_in_what_is_searched_for(message: str, line: str) -> None:
    assert search_line(Suspect(None, message, None, None, Evidence(message))) == line


def test_documents_say_the_next_step() -> None:
    assert "Change what widget.py:3 hands to widgets" in to_markdown(sample_reports.UNRECOGNISED)
    assert "Change what widget.py:3 hands to widgets" in to_html([sample_reports.UNRECOGNISED])
