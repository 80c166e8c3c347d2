"""What `import torch` does in another interpreter: each way of failing is told apart, in bounded time."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_machines import Environment

from torchdoctor.model import Reason, State
from torchdoctor.probes.source import ProbeSource
from torchdoctor.probes.torch_import import UNFINISHED

Look = Callable[..., ProbeSource]


def value(source: ProbeSource, name: str) -> object:
    fact = source.fetch(name)
    assert fact.state is State.KNOWN, fact
    return fact.value


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch in this environment")
def test_a_healthy_torch(look: Look, tmp_path: Path) -> None:
    source = look(Environment(Path(sys.executable), tmp_path, tmp_path), import_s=120)
    source.start(("torch.cuda_available",))
    assert value(source, "torch.import_ok") is True
    assert value(source, "torch.import_outcome") == "ok"
    assert source.fetch("torch.import_error").state is State.ABSENT
    assert str(value(source, "torch.imported_version")) == str(value(source, "torch.version"))
    assert value(source, "torch.grad_enabled") is True
    assert value(source, "torch.default_dtype") == "float32"
    assert value(source, "torch.numpy_ok") is True
    assert value(source, "torch.installed") is True
    assert value(source, "torch.shadowed") is False
    assert value(source, "torch.metadata_matches") is True
    assert value(source, "torch.requirements_ok") is True
    assert any("libtorch" in str(path) for path in source.fetch("torch.libraries").value or ())
    assert value(source, "library.missing") == ()
    assert value(source, "library.shadowed") is False
    assert value(source, "openmp.duplicate") is False


def test_no_torch(environment: Environment, look: Look) -> None:
    source = look(environment)
    assert value(source, "torch.installed") is False
    assert source.fetch("torch.version").state is State.ABSENT
    assert source.fetch("torch.import_ok").state is State.ABSENT
    assert source.fetch("torch.covers_gpu").state is State.ABSENT
    assert source.fetch("torch.shadowed").state is State.ABSENT
    assert source.fetch("torch.cuda_available").state is State.ABSENT


def test_a_working_folder_that_was_deleted(
    environment: Environment, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.plant("")
    source = look(environment)
    environment.work.rmdir()
    assert value(source, "torch.import_ok") is True
    assert value(source, "torch.shadowed") is False


def test_a_library_is_missing(environment: Environment, look: Look) -> None:
    message = "libcudart.so.12: cannot open shared object file: No such file or directory"
    environment.plant(f"raise OSError({message!r})")
    source = look(environment)
    assert value(source, "torch.import_ok") is False
    assert value(source, "torch.import_outcome") == "error"
    assert value(source, "torch.import_error") == f"OSError: {message}"
    assert value(source, "torch.import_error_type") == "OSError"
    assert str(value(source, "torch.import_where")).endswith("torch/__init__.py:1")
    # what the files say is known all the same
    assert value(source, "torch.version") == "2.5.1+cu124"
    assert value(source, "torch.cuda") == "12.4"
    assert source.fetch("torch.arch_list").state is State.UNKNOWN
    assert source.fetch("torch.covers_gpu").state is not State.KNOWN


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_a_crash(body: str, signal: str, environment: Environment, look: Look) -> None:
    environment.plant(f"# first line\n{body}")
    source = look(environment)
    assert value(source, "torch.import_ok") is False
    assert value(source, "torch.import_outcome") == "signal"
    assert value(source, "torch.import_signal") == signal
    if signal != "SIGKILL":  # which leaves no time for last words
        assert "torch/__init__.py:2 in <module>" in str(value(source, "torch.import_stack"))
    assert source.fetch("torch.arch_list").reason is Reason.CRASHED
    assert source.fetch("torch.import_exit_code").state is State.ABSENT


def test_the_last_words_before_a_crash(environment: Environment, look: Look) -> None:
    words = "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized."
    environment.plant(f"import os\nos.write(2, {(words + chr(10)).encode()!r})\nos.abort()")
    source = look(environment)
    assert value(source, "torch.import_signal") == "SIGABRT"
    assert value(source, "torch.import_error") == words


@pytest.mark.parametrize(
    "body",
    [
        "import time; time.sleep(600)",
        "while True: pass",
        "import ctypes; ctypes.PyDLL(None).sleep(600)",  # holds the interpreter's lock
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
    ],
)
def test_a_hang(body: str, environment: Environment, look: Look) -> None:
    environment.plant(f"# first line\n{body}")
    source = look(environment, import_s=1.0)
    begun = time.monotonic()
    fact = source.fetch("torch.import_ok")
    assert time.monotonic() - begun < 5
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.TIMED_OUT)
    assert fact.detail.startswith("not finished after 1 s, at ")
    assert "torch/__init__.py:2 in <module>" in fact.detail
    assert value(source, "torch.import_outcome") == "hang"
    for name in ("torch.grad_enabled", "torch.cuda_available"):
        assert (source.fetch(name).reason, source.fetch(name).detail) == (Reason.TIMED_OUT, UNFINISHED)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('a message')", 1),
        ("raise SystemExit", 0),
        ("import os; os._exit(7)", 7),
        ("import os; os._exit(0)", 0),
    ],
)
def test_an_exit(body: str, code: int, environment: Environment, look: Look) -> None:
    environment.plant(body)
    source = look(environment)
    assert value(source, "torch.import_ok") is False
    assert value(source, "torch.import_outcome") == "exit"
    assert value(source, "torch.import_exit_code") == code


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Odd(BaseException):\n    def __str__(self):\n        raise ValueError\nraise Odd", "Odd: ?"),
        ("raise RuntimeError('two\\nlines \\x1b[31m \\udc80')", "RuntimeError: two\nlines \x1b[31m \udc80"),
        (
            "import torch.nothing_of_the_kind",
            "ModuleNotFoundError: No module named 'torch.nothing_of_the_kind'",
        ),
        ("def f(): f()\nf()", "RecursionError: "),
        ("import", "SyntaxError: invalid syntax (__init__.py, line 1)"),
    ],
)
def test_an_exception(body: str, error: str, environment: Environment, look: Look) -> None:
    environment.plant(body)
    source = look(environment)
    assert value(source, "torch.import_outcome") == "error"
    assert str(value(source, "torch.import_error")).startswith(error)


def test_torch_that_lacks_its_own_part_is_no_missing_torch(environment: Environment, look: Look) -> None:
    environment.plant("raise ModuleNotFoundError(\"No module named 'torch'\")")
    source = look(environment)
    assert value(source, "torch.import_ok") is False
    assert value(source, "torch.installed") is True


@pytest.mark.parametrize(
    "body",
    [
        'print(\'{"name": "torch.version", "value": "6.6"}\' * 1000)',
        "import os\nos.write(1, bytes(range(256)) * 100)\nos.write(2, bytes(range(256)) * 100)",
        "import os\nfor number in range(3, 200):\n    try: os.close(number)\n    except OSError: pass",
        "import sys\nsys.stdout = sys.stderr = None",
        "import builtins, os\nbuiltins.open = None\nos.environ.clear()",
    ],
)
def test_garbage_does_no_harm(body: str, environment: Environment, look: Look) -> None:
    environment.plant(body)
    source = look(environment)
    assert value(source, "torch.import_ok") is True
    assert value(source, "torch.version") == "2.5.1+cu124"


def test_a_flood_is_stopped(environment: Environment, look: Look) -> None:
    environment.plant("while True: print('x' * 1000000)")
    source = look(environment)
    assert value(source, "torch.import_ok") is False
    assert "printed more than" in str(value(source, "torch.import_error"))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
def test_nothing_is_left_running(environment: Environment, look: Look) -> None:
    mark = environment.work / "pid"
    environment.plant(
        "import os, time\nif os.fork() == 0:\n"
        f"    open({str(mark)!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
        "time.sleep(0.3)"
    )
    source = look(environment)
    assert value(source, "torch.import_ok") is True
    pid = mark.read_text()
    deadline = time.monotonic() + 3
    while os.path.isdir(f"/proc/{pid}") and _state(pid) != "Z" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.isdir(f"/proc/{pid}") or _state(pid) == "Z"


def _state(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_file_named_torch_hides_the_real_one(environment: Environment, look: Look) -> None:
    environment.plant("")
    (environment.work / "torch.py").write_text("print('mine')")
    source = look(environment)
    assert value(source, "torch.hidden_by") == (str(environment.work / "torch.py"),)
    assert value(source, "torch.shadowed") is True
    # it is seen and not run: the real one is looked at
    assert value(source, "torch.path") == str(environment.site / "torch")
    assert value(source, "torch.import_ok") is True


def test_a_clone_of_the_sources_hides_the_real_one(environment: Environment, look: Look) -> None:
    environment.plant("")
    (environment.work / "torch").mkdir()
    (environment.work / "torch" / "__init__.py").write_text("from torch._C import *")
    source = look(environment)
    assert value(source, "torch.shadowed") is True
    assert value(source, "torch.import_ok") is True


def test_an_ordinary_folder_does_not(environment: Environment, look: Look) -> None:
    environment.plant("")
    (environment.work / "torch").mkdir()  # no package: one further down the path comes before it
    source = look(environment)
    assert value(source, "torch.shadowed") is False


def test_a_users_file_that_hides_a_standard_module(environment: Environment, look: Look) -> None:
    environment.plant("import json")
    (environment.work / "json.py").write_text("raise RuntimeError('mine')")
    source = look(environment)
    assert value(source, "torch.shadowed") is True
    assert source.fetch("torch.shadowed").detail.endswith("json.py for the json that torch imports")
    assert value(source, "torch.import_ok") is True


def test_a_module_of_the_environment_that_hides_a_standard_one(environment: Environment, look: Look) -> None:
    """The import must fail for us as it fails for the user: nothing may be imported before it."""
    environment.plant("import json")
    (environment.site / "early.pth").write_text(f"import sys; sys.path.insert(0, {str(environment.site)!r})")
    (environment.site / "json.py").write_text("raise RuntimeError('mine')")
    source = look(environment)
    assert value(source, "torch.import_error") == "RuntimeError: mine"


def test_a_relative_entry_of_the_path_hides_the_real_one(
    environment: Environment, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.plant("")
    (environment.work / "src" / "torch").mkdir(parents=True)
    (environment.work / "src" / "torch" / "__init__.py").write_text("raise RuntimeError('mine')")
    source = look(environment)
    monkeypatch.setenv("PYTHONPATH", "src")
    assert value(source, "torch.hidden_by") == (str(environment.work / "src" / "torch"),)
    assert value(source, "torch.shadowed") is True
    assert value(source, "torch.import_ok") is True


def test_a_crash_when_cuda_starts_leaves_the_import_well(environment: Environment, look: Look) -> None:
    environment.plant(
        "import os\nclass version: cuda = '12.4'; hip = None; debug = False\n"
        "class cuda:\n    is_available = staticmethod(os.abort)\n"
    )
    source = look(environment)
    source.start(("torch.cuda_available",))
    assert value(source, "torch.import_ok") is True
    assert source.fetch("torch.cuda_available").reason is Reason.CRASHED
    assert "SIGABRT" in str(value(source, "torch.cuda_error"))


def test_what_torch_says_when_cuda_does_not_start(environment: Environment, look: Look) -> None:
    words = "CUDA initialization: Unexpected error. Error 803: system has unsupported display driver"
    environment.plant(
        "import warnings\nclass version: cuda = '12.4'; hip = None; debug = False\n"
        "class cuda:\n    @staticmethod\n    def is_available():\n"
        f"        warnings.warn({words!r})\n        return False\n"
    )
    source = look(environment)
    assert value(source, "torch.cuda_available") is False
    assert value(source, "torch.cuda_error") == words
    assert value(source, "torch.device_count") == 0


def test_numbers_of_old_torches(environment: Environment, look: Look) -> None:
    """torch 1.5: NCCL as 2408, cuDNN as 7603, an arch list only through its flags."""
    environment.plant(
        "class version: cuda = '10.2'; hip = None; debug = False\n"
        "class _C:\n    _cuda_getArchFlags = staticmethod(lambda: 'sm_37 sm_75')\n"
        "    _nccl_version = staticmethod(lambda: 2408)\n"
        "class backends:\n    class cudnn:\n        version = staticmethod(lambda: 7603)\n",
        version="1.5.0",
        cuda="10.2",
    )
    source = look(environment)
    assert value(source, "torch.nccl") == "2.4.8"
    assert value(source, "torch.cudnn") == "7.6.3"
    assert value(source, "torch.arch_list") == ("sm_37", "sm_75")


@pytest.mark.parametrize(
    ("number", "nccl"),
    [("21005", "2.10.5"), ("(2, 21, 5)", "2.21.5"), ("(2 << 32) | (14 << 16) | 3", "2.14.3")],
)
def test_numbers_of_nccl(number: str, nccl: str, environment: Environment, look: Look) -> None:
    environment.plant(f"class _C:\n    _nccl_version = staticmethod(lambda: {number})\n")
    assert value(look(environment), "torch.nccl") == nccl


def test_an_empty_arch_list_is_no_answer(environment: Environment, look: Look) -> None:
    environment.plant(
        "class version: cuda = '12.4'; hip = None; debug = False\n"
        "class _C:\n    _cuda_getArchFlags = staticmethod(lambda: '')\n"
        "class cuda:\n    get_arch_list = staticmethod(lambda: [])\n"
    )
    fact = look(environment).fetch("torch.arch_list")
    assert (fact.state, fact.reason) == (State.UNKNOWN, Reason.UNPARSABLE)


def test_a_cudnn_of_another_version(environment: Environment, look: Look) -> None:
    words = "cuDNN version incompatibility: compiled against (9, 1, 0) but found runtime version (8, 9, 2)."
    environment.plant(
        "class backends:\n    class cudnn:\n        @staticmethod\n"
        f"        def version():\n            raise RuntimeError({words!r})\n"
    )
    source = look(environment)
    assert value(source, "torch.cudnn_error") == f"RuntimeError: {words}"
    assert source.fetch("torch.cudnn").state is State.UNKNOWN


def test_gradients_that_the_import_switched_off(environment: Environment, look: Look) -> None:
    environment.plant("is_grad_enabled = lambda: False")
    assert value(look(environment), "torch.grad_enabled") is False


def test_sources_that_were_not_built_are_neither_missing_nor_hiding_another(
    environment: Environment, look: Look
) -> None:
    clone = environment.work.parent / "clone"
    (clone / "torch").mkdir(parents=True)
    (clone / "torch" / "__init__.py").write_text("from torch._C import *")
    (environment.site / "__editable__.torch.pth").write_text(f"{clone}\n")
    source = look(environment)
    assert value(source, "torch.path") == str(clone / "torch")
    assert value(source, "torch.installed") is True
    assert value(source, "torch.shadowed") is False
    assert value(source, "torch.import_error") == "ModuleNotFoundError: No module named 'torch._C'"


def test_an_installation_that_lost_its_version_file_hides_nothing(
    environment: Environment, look: Look
) -> None:
    environment.plant("raise ImportError('libfoo.so.3: cannot open shared object file')")
    (environment.site / "torch" / "version.py").unlink()
    source = look(environment)
    assert value(source, "torch.installed") is True
    assert value(source, "torch.shadowed") is False


def test_metadata_alone_is_no_installation(environment: Environment, look: Look) -> None:
    environment.distribution("torch", "2.5.1")
    fact = look(environment).fetch("torch.installed")
    assert (fact.value, fact.detail) == (False, "metadata of torch 2.5.1, and no torch on sys.path")
