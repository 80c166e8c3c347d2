"""Targets that crash, exit, hang, ask a person, fork or want what is not there: what is said of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from planted_modules import unpacked

from torchdoctor.model import CheckResult, Report, Verdict
from torchdoctor.watch.report import report_of
from torchdoctor.watch.target import PROGRAM, Run, Target, TargetError, parse, run

SETS = "import sys\nsys.setrecursionlimit(4321)\n"


def watch(
    folder: Path, code: str, kind: str = "script", limit_s: float = 20.0, args: tuple[str, ...] = ()
) -> Run:
    path = folder / "train.py"
    path.write_text(code, encoding="utf-8")
    return run(Target(kind, str(path), args), sys.executable, limit_s)


def words(ran: Run) -> str:
    """All that the report says of how the target ended."""
    report = report_of([ran])
    bad = [
        f"{one.title}: {one.observed}; {one.action}" for one in report.checks if one.verdict is Verdict.FAIL
    ]
    return "\n".join([*bad, *(item.reason for item in report.not_checked), *report.notes])


def failure(report: Report) -> CheckResult:
    (found,) = (one for one in report.checks if one.verdict is Verdict.FAIL)
    return found


@pytest.mark.parametrize(
    ("code", "ended", "said"),
    [
        ("raise ValueError('no data')", "error", "raises ValueError: ValueError: no data at "),
        ("import sys\nsys.exit(3)", "exit", "ends itself with code 3 at "),
        ("import sys\nsys.exit('usage: train DATA')", "exit", "ends itself with code 1"),
        ("import os\nos._exit(7)", "os._exit", "ends the process without any message (code 7): "),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
            "signal",
            "crashes: SIGSEGV: SIGSEGV at ",
        ),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal", "crashes: SIGKILL"),
        ("import ctypes\nctypes.string_at(0)", "signal", "crashes: SIGSEGV: SIGSEGV at "),
        ("import os\nos.execvp('true', ['true'])", "exec", "continues as another program ("),
        ("input('name? ')", "error", "reads from standard input at "),
        ("breakpoint()\nx = 1", "error", "reads from standard input at "),
        ("import getpass\ngetpass.getpass()", "error", "reads from standard input at "),
        ("this is no python", "error", "raises SyntaxError"),
        ("import no_such_module_here", "error", "raises ModuleNotFoundError"),
        (
            "class E(Exception):\n    def __str__(self):\n        raise KeyError\nraise E()",
            "error",
            "raises E: E: ?",
        ),
        ("def f():\n    f()\nf()", "error", "raises RecursionError"),
        ("raise KeyboardInterrupt", "error", "raises KeyboardInterrupt"),
    ],
)
def test_how_a_script_ends_is_told_with_what_it_had_changed(
    tmp_path: Path, code: str, ended: str, said: str
) -> None:
    ran = watch(tmp_path, SETS + code + "\n")
    assert ran.ended == ended
    told = words(ran)
    assert said in told
    if "SyntaxError" in said:  # then nothing of it was run
        return
    assert "what it had changed until then is reported" in told
    assert "train.py:2: sys.setrecursionlimit(4321)" in told
    if said.endswith((" at ", "(code 7): ")) and "-" not in said:
        assert any(f"train.py:{line}" in told for line in (3, 4))


def test_a_module_that_cannot_be_imported_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text("x = 1\nraise ValueError('no data')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = report_of([run(Target("module", "broken_module"), sys.executable)])
    found = failure(report)
    assert (found.id, found.title) == ("target-import", "broken_module raises ValueError")
    assert [(Path(item.file).name, item.line) for item in found.evidence if item.file] == [
        ("broken_module.py", 2)
    ]


def test_a_missing_gpu_is_no_fault_of_the_target(tmp_path: Path) -> None:
    code = "raise RuntimeError('No CUDA GPUs are available')\n"
    told = words(watch(tmp_path, code, "main"))
    assert "needs a GPU that is not here (no-cuda-gpus)" in told


def test_a_target_that_hangs_is_ended_and_its_place_told(tmp_path: Path) -> None:
    begun = time.monotonic()
    ran = watch(tmp_path, SETS + "import time\ntime.sleep(600)\n", limit_s=1.5)
    assert ran.ended == "hang"
    assert time.monotonic() - begun < 10
    assert "last seen at" in words(ran)
    assert "train.py:4" in words(ran)
    assert "sys.setrecursionlimit(4321)" in words(ran)


def test_children_of_the_target_do_not_outlive_it(tmp_path: Path) -> None:
    number = tmp_path / "pid"
    code = (
        f"import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(number)!r}, 'w').write(str(child.pid))\n"
    )
    assert watch(tmp_path, code).ended == "ok"
    pid = int(number.read_text())
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        # killed, and not yet reaped by whoever adopted it
        if (Path("/proc") / str(pid) / "stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the child of the target still runs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is what is tested")
def test_what_a_forked_child_does_is_its_own_matter(tmp_path: Path) -> None:
    code = (
        "import os\npid = os.fork()\nif pid == 0:\n    import sys; sys.setrecursionlimit(4321); os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    ran = watch(tmp_path, code)
    assert (ran.ended, ran.changes) == ("ok", ())
    assert [place.line for place in ran.forked] == [2]
    assert "forks at" in words(ran)


def test_a_child_that_runs_on_after_a_fork_does_not_answer_for_the_target(tmp_path: Path) -> None:
    ran = watch(tmp_path, "import os, sys\nif os.fork() == 0:\n    sys.exit(9)\nos.wait()\n")
    assert ran.ended == "ok"


def test_multiprocessing_works_in_a_watched_program(tmp_path: Path) -> None:
    code = (
        "import multiprocessing as mp\ndef double(x):\n    return 2 * x\n"
        "if __name__ == '__main__':\n    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.map(double, [1, 2]) == [2, 4]\n    import sys; sys.setrecursionlimit(4321)\n"
    )
    ran = watch(tmp_path, code, "main", 30.0)
    assert (ran.ended, ran.message) == ("ok", "")
    assert (ran.changes[-1].setting, ran.changes[-1].stack[-1].line) == ("recursion-limit", 7)


def test_output_of_the_target_is_no_result(tmp_path: Path) -> None:
    code = (
        "import os, sys\nprint('{\"change\": \"grad-mode\"}')\nos.write(2, b'noise')\nos.closerange(0, 9)\n"
        + SETS
    )
    ran = watch(tmp_path, code)
    assert ran.ended == "ok"
    assert [change.setting for change in ran.changes] == ["recursion-limit"]


def test_a_flood_is_ended(tmp_path: Path) -> None:
    code = "import os\nblock = b'x' * (1 << 20)\nwhile True:\n    os.write(1, block)\n"
    ran = watch(tmp_path, code, "main")
    assert ran.ended == "flood"
    assert "printed more than" in words(ran)


def test_a_trace_function_of_the_target_is_told(tmp_path: Path) -> None:
    code = "import sys\ndef f():\n    sys.setrecursionlimit(4321)\nsys.settrace(lambda *a: None)\nf()\n"
    ran = watch(tmp_path, code, "main")
    assert not ran.traced
    assert "a trace function of its own" in words(ran)
    assert [change.stack[-1].line for change in ran.changes] == [5]  # not 3: what f does is not seen any more


def test_arguments_reach_the_program_and_guards_hold(tmp_path: Path) -> None:
    code = (
        "import sys\nassert sys.argv[1:] == ['--epochs', '1'], sys.argv\nassert __name__ == '__main__'\n"
        "assert sys.modules['__main__'].__file__ == __file__\n"
    )
    assert watch(tmp_path, code, "main", args=("--epochs", "1")).ended == "ok"
    assert watch(tmp_path, "assert __name__ == 'train', __name__\n").ended == "ok"


def test_many_switches_in_a_loop_are_cut_short_and_end_right(tmp_path: Path) -> None:
    code = (
        "import sys\nfor n in range(3000):\n"
        "    sys.setrecursionlimit(2000)\n    sys.setrecursionlimit(3000)\n"
        "sys.setrecursionlimit(2000)\n"
    )
    ran = watch(tmp_path, code, "main")
    assert len(ran.changes) < 100
    assert (ran.changes[-1].after, ran.changes[-1].stack[-1].line) == ("2000", 5)


def test_a_change_in_a_line_that_ran_often_is_told_with_a_doubt(tmp_path: Path) -> None:
    code = (
        "import sys\ndef f():\n    n = 0\n    while n < 5000:\n        n += 1\n"
        "        n == 4000 and sys.setrecursionlimit(4321)\n    return n\nf()\n"
    )
    (change,) = watch(tmp_path, code, "main").changes
    lines = {change.stack[-1].line, *(place.line for place in change.unsure)}
    assert 6 in lines


def test_early_changes_have_no_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import multiprocessing as m\nm.set_start_method('spawn')\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    report = report_of([watch(tmp_path, "x = 1\n")])
    (found,) = (one for one in report.checks if one.verdict is Verdict.WARN)
    assert found.id == "start-method-set"
    assert any("before the program's first line" in item.text for item in found.evidence)


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    false = shutil.which("false")
    assert false is not None
    ran = run(Target("code", "x = 1"), false)
    assert ran.ended == "start"
    assert "the interpreter does not start" in words(ran)


def test_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    python = tmp_path / "python"
    said = 'File "run_target.py", line 30\n    def sibling(name: str)\nSyntaxError: invalid syntax'
    python.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    assert "older than 3.6" in words(run(Target("code", "x = 1"), str(python)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["os"], [("module", "os", ())]),
        (["os.path", "json"], [("module", "os.path", ()), ("module", "json", ())]),
        (["accelerate"], [("module", "accelerate", ())]),
        (["python", "{file}", "--epochs", "1"], [("main", "{file}", ("--epochs", "1"))]),
        (["python3.11", "-u", "-W", "error", "-m", "pkg", "-x"], [("main-module", "pkg", ("-x",))]),
        (["/usr/bin/python3", "-c", "x = 1", "a"], [("code", "x = 1", ("a",))]),
        (["{file}"], [("script", "{file}", ())]),
    ],
)
def test_targets(tmp_path: Path, given: list[str], expected: list[tuple[str, str, tuple[str, ...]]]) -> None:
    file = tmp_path / "train.py"
    file.write_text("", encoding="utf-8")
    found = parse([word.format(file=file) for word in given])
    assert [(one.kind, one.name, one.args) for one in found] == [
        (kind, name.format(file=file), args) for kind, name, args in expected
    ]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["missing.py"], "missing.py: no such file"),
        (["python", "missing.py"], "missing.py: no such file"),
        (["python"], "names no program"),
        (["python", "-m"], "names no program"),
        (["a-b"], "neither a file nor the name of a module"),
        (["torchrun", "train.py"], "starts further processes"),
        (["accelerate", "launch", "train.py"], "starts further processes"),
        (["/"], "a folder"),
    ],
)
def test_targets_that_are_none(given: list[str], complaint: str) -> None:
    with pytest.raises(TargetError, match=complaint):
        parse(given)


OTHERS = [
    *(path for path in (shutil.which(f"python3.{minor}") for minor in range(6, 15)) if path),
    *(str(path) for path in sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))),
]


@pytest.mark.parametrize("python", OTHERS)
def test_other_interpreters(tmp_path: Path, python: str) -> None:
    if subprocess.run([python, "-c", ""], capture_output=True).returncode != 0:
        pytest.skip(f"{python} does not run")
    path = tmp_path / "train.py"
    path.write_text("def f():\n    import sys\n    sys.setrecursionlimit(4321)\nf()\n", encoding="utf-8")
    ran = run(Target("main", str(path)), python)
    assert (ran.ended, ran.output) == ("ok", "")
    assert [[place.line for place in change.stack] for change in ran.changes] == [[4, 3]]


FAKE_TORCH = """
__version__ = "0"
class autograd: pass
def get_default_dtype(): return "float32"
from torch import _C
from torch._C import is_grad_enabled
class set_grad_enabled:
    def __init__(self, mode):
        _C._set_grad_enabled(mode)
    def __enter__(self): pass
    def __exit__(self, *error): pass
class no_grad:
    def __enter__(self):
        _C._set_grad_enabled(False)
    def __exit__(self, *error):
        _C._set_grad_enabled(True)
class Tensor: pass
autograd.set_grad_enabled = set_grad_enabled
"""
FAKE_CORE = """
STATE = [True]
def is_grad_enabled(): return STATE[0]
def _set_grad_enabled(mode): STATE[0] = bool(mode)
"""


@pytest.mark.parametrize("python", OTHERS)
def test_other_interpreters_find_the_same_statements(tmp_path: Path, python: str) -> None:
    """Interpreters differ in when they call a trace function; torch is not to be had for all of them."""
    if subprocess.run([python, "-c", ""], capture_output=True).returncode != 0:
        pytest.skip(f"{python} does not run")
    planted = unpacked()
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH, encoding="utf-8")
    (tmp_path / "torch" / "_C.py").write_text(FAKE_CORE, encoding="utf-8")
    files = sorted(planted.glob("grad_*.py"))
    code = [f"import sys\nsys.path.append({str(planted.parent)!r})", "import torch"]
    for path in files:
        code += [f"import planted.{path.stem}", "torch.set_grad_enabled(True)"]
    script = tmp_path / "everything.py"
    script.write_text("\n".join(code), encoding="utf-8")
    ran = run(Target("main", str(script)), python)
    assert (ran.ended, ran.message) == ("ok", "")
    off = {change.stack[-1].words for change in ran.changes if change.after == "False"}
    expected = {
        f"{path}:{number}"
        for path in [*files, planted / "deep" / "switch.py"]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "# <- grad-mode" in line
    }
    assert len(expected) == len(files)
    assert off == expected


def test_the_program_is_of_the_standard_library_alone() -> None:
    folder = Path(PROGRAM).parent
    for path in folder.glob("*.py"):
        assert "import torch\n" not in path.read_text(encoding="utf-8"), path


def test_a_fault_of_ours_is_none_of_the_target(tmp_path: Path) -> None:
    """Here a torch that raises where nobody would expect it."""
    (tmp_path / "torch.py").write_text(
        "__version__ = '0'\n__file__ = None\ndef get_default_dtype(): return 1\nclass Tensor: pass\n",
        encoding="utf-8",
    )
    ran = watch(tmp_path, "import torch\nx = 1\n", "main")
    assert (ran.ended, ran.message) == ("ok", "")
    assert len(ran.faults) == 1
    report = report_of([ran])
    assert "TypeError" in report.faults[0]


@pytest.mark.parametrize(
    ("argv", "lacking"),
    [
        (["nope_nope"], "nope_nope"),
        (["json.nope"], "json.nope"),
        (["nope_nope.inner"], "nope_nope"),
        (["json.decoder.nope"], "json.decoder.nope"),
        (["python", "-m", "nope_nope"], "nope_nope"),
    ],
)
def test_a_module_that_is_not_there_is_a_mistake_in_the_call(argv: list[str], lacking: str) -> None:
    (target,) = parse(argv)
    with pytest.raises(TargetError, match=f"no module named '{lacking}' for .*, looked for in .* too"):
        run(target, sys.executable)


def test_a_module_that_lacks_another_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("import mine.gone\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (target,) = parse(["mine"])
    assert failure(report_of([run(target, sys.executable)])).title == "mine raises ModuleNotFoundError"


def test_what_torch_keeps_for_itself_is_not_laid_at_the_line_that_called_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = (
        "import os, torch\nos.environ['TORCH_HOME'] = '/x'\n"
        "from torch._inductor.runtime.cache_dir_utils import cache_dir\ncache_dir()\n"
    )
    ran = watch(tmp_path, code)
    assert [change.setting for change in ran.changes] == ["env.TORCH_HOME"]
