"""The hooks of a process: what was there is called first, nothing is left behind, nothing gets worse."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import torchdoctor
from torchdoctor.hooks import explain as explaining

FAILS = "\ndef f():\n    return {'a': 1}['b']\n"


def run(tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "train.py"
    program.write_text(code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(program)],
        capture_output=True, text=True, timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


def test_importing_and_installing_load_next_to_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport torchdoctor\ntorchdoctor.install()\n"
        "print(sorted(set(sys.modules) - before))"
    )
    loaded = set(re.findall(r"'([^']+)'", run(tmp_path, code).stdout))
    ours = {"torchdoctor", "torchdoctor.hooks", "torchdoctor.hooks.install"}
    small = {"importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings", "__future__"}
    assert ours <= loaded <= ours | small


def test_ten_thousand_installations_leave_no_trace() -> None:
    before = (sys.excepthook, threading.excepthook, list(sys.meta_path))

    def again(times: int) -> int:
        for _ in range(times):
            torchdoctor.install()
            torchdoctor.install()
            torchdoctor.uninstall()
        gc.collect()
        return len(gc.get_objects())

    objects = again(10)
    assert again(10_000) <= objects + 50
    assert (sys.excepthook, threading.excepthook, list(sys.meta_path)) == before


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("torchdoctor.install()" + FAILS + "f()", "train.py:4, in f"),
        *(
            (f"{order}{FAILS}t = threading.Thread(target=f)\nt.start()\nt.join()", "in f")
            for order in (
                "torchdoctor.install()\nimport threading\nassert 'doctor' not in repr(threading.__spec__)",
                "import threading\ntorchdoctor.install()",
            )
        ),
        (
            "torchdoctor.install()\nimport asyncio" + FAILS + "async def g():\n"
            "    asyncio.get_running_loop().call_soon(f)\n    await asyncio.sleep(0.01)\nasyncio.run(g())",
            "train.py:5, in f",
        ),
        (
            "import asyncio\ntorchdoctor.install()" + FAILS + "async def g(): f()\n"
            "async def h():\n    t = asyncio.ensure_future(g())\n    await asyncio.sleep(0.01)\n    del t\n"
            "    await asyncio.sleep(0)\nasyncio.run(h())",
            "train.py:5, in f",
        ),
        *(
            (f"{order}{FAILS}c = multiprocessing.get_context('fork').Process(target=f)\nc.start()\nc.join()",
             "train.py:5, in f")
            for order in (
                "torchdoctor.install()\nimport multiprocessing",
                "import multiprocessing, multiprocessing.process\ntorchdoctor.install()",
            )
        ),
    ],
    ids=["main", "thread", "thread, imported before", "callback", "task", "child", "child, imported before"],
)  # fmt: skip
def test_the_note_stands_behind_the_traceback(tmp_path: Path, code: str, place: str) -> None:
    ended = run(tmp_path, "import torchdoctor\n" + code)
    traceback, _, note = ended.stderr.partition("✗ torchdoctor: ")
    assert "KeyError: 'b'" in traceback
    assert "own-code-error" in note
    assert place in note
    assert "torchdoctor" not in note  # once


@pytest.mark.parametrize("program", ["def f():\n    {'a': 1}['b']\nf()", "import sys\nsys.exit('no')"])
@pytest.mark.parametrize(
    "before",
    [
        "import torchdoctor\ntorchdoctor.install()\nimport os\nos.close(2)",
        "import torchdoctor, sys\ntorchdoctor.install()\nsys.stderr = None",
        "import torchdoctor, sys\ntorchdoctor.install()\nsys.modules['torchdoctor.hooks.telling'] = None",
        "import torchdoctor\ntorchdoctor.install()\ntorchdoctor.uninstall()",
    ],
    ids=["closed stderr", "no stderr", "broken doctor", "uninstalled"],
)
def test_where_it_cannot_speak_all_is_as_without_it(tmp_path: Path, before: str, program: str) -> None:
    ended = run(tmp_path, f"{before}\n{program}")
    assert ended.returncode == 1
    assert "torchdoctor:" not in ended.stderr


def test_the_variable_switches_it_off(tmp_path: Path) -> None:
    code = "import torchdoctor, sys\ntorchdoctor.install()\nprint(sys.excepthook is sys.__excepthook__)"
    assert run(tmp_path, code, TORCHDOCTOR_HOOK="0").stdout == "True\n"
    assert run(tmp_path, code, TORCHDOCTOR_HOOK="1").stdout == "False\n"


def test_other_hooks_are_called_and_stay(tmp_path: Path) -> None:
    """Ours between two others: all speak, and after uninstall ours, still called by the third, is silent."""
    code = (
        "import sys, torchdoctor\n"
        "def first(*a): print('first', file=sys.stderr)\n"
        "sys.excepthook = first\ntorchdoctor.install()\nours = sys.excepthook\n"
        "def third(*a): ours(*a); print('third', file=sys.stderr)\n"
        "sys.excepthook = third\n"
        "try: {}['b']\nexcept KeyError as e: error = e\n"
        "sys.excepthook(KeyError, error, error.__traceback__)\ntorchdoctor.uninstall()\n"
        "assert sys.excepthook is third\n"
        "sys.excepthook(KeyError, error, error.__traceback__)"
    )
    lines = run(tmp_path, code).stderr.splitlines()
    assert [line for line in lines if line in ("first", "third")] == ["first", "third"] * 2
    assert sum("torchdoctor:" in line for line in lines) == 1


def test_nothing_of_the_users_is_called_and_no_torch_imported(tmp_path: Path) -> None:
    code = (
        "import sys, torchdoctor\ntorchdoctor.install()\n"
        "class Evil:\n"
        "    def called(self, *a): print('called', file=sys.stderr); raise SystemExit\n"
        "    __repr__ = __str__ = __getattribute__ = __eq__ = __bool__ = __len__ = __iter__ = called\n"
        "    __class__ = property(called)\n"
        "class Broken(Exception):\n"
        "    def __str__(self): raise ValueError\n"
        "evil = Evil()\nimport atexit\natexit.register(lambda: print('torch' in sys.modules))\n"
        "def f(x): raise Broken(evil, x.a.b)  if x is None else Broken()\n"
        "f(evil)"
    )
    ended = run(tmp_path, code)
    assert "exception str() failed" in ended.stderr
    assert "called" not in ended.stderr
    assert (ended.returncode, ended.stdout) == (1, "False\n")


def test_at_shutdown_it_is_quiet_or_right(tmp_path: Path) -> None:
    code = (
        "import sys, atexit, torchdoctor\ntorchdoctor.install()\n"
        "class Late:\n"
        "    def __del__(self, sys=sys):\n"
        "        try: {}['b']\n"
        "        except KeyError as e: sys.excepthook(KeyError, e, e.__traceback__)\n"
        "late = Late()\n"
        "def f(): {}['c']\natexit.register(f)\n"
    )
    ended = run(tmp_path, code)
    assert ended.returncode == 0
    assert "KeyError: 'b'" in ended.stderr
    assert "KeyError: 'c'" in ended.stderr


def test_a_fault_of_ours_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(error: BaseException) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(explaining, "of_error", broken)
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    torchdoctor.install()
    try:
        sys.excepthook(KeyError, KeyError("x"), None)
    finally:
        torchdoctor.uninstall()
    assert capsys.readouterr() == ("", "")
