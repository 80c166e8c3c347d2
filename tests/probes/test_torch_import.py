"""What `import torch` does in another interpreter: each way of failing is told apart, in bounded time."""

from __future__ import annotations

import importlib.util
import os
import re
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


def test_a_working_folder_that_was_deleted(
    environment: Environment, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.plant("")
    source = look(environment)
    environment.work.rmdir()
    assert value(source, "torch.import_ok") is True
    assert value(source, "torch.shadowed") is False


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
    assert re.match(r"not finished after [1-4] s, at ", fact.detail)  # a busy machine looks later
    assert "torch/__init__.py:2 in <module>" in fact.detail
    assert value(source, "torch.import_outcome") == "hang"
    for name in ("torch.grad_enabled", "torch.cuda_available"):
        assert (source.fetch(name).reason, source.fetch(name).detail) == (Reason.TIMED_OUT, UNFINISHED)


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
