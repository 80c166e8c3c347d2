"""The many ways in which it is said how a process ended."""

from __future__ import annotations

import pytest
from extracted import facts

from torchdoctor.intake import read_text
from torchdoctor.model import Event, EventKind, Fact, FactValue, State


def extract(text: str, kind: EventKind = EventKind.LOG) -> dict[str, Fact]:
    return facts("exit", Event(0, kind, text, "job.log", 7, 7))


@pytest.mark.parametrize(
    ("text", "code", "signal"),
    [
        ("failed (exitcode: -9) local_rank: 0 (pid: 1795) of binary: /env/bin/python3", -9, "SIGKILL"),
        ("failed (exitcode: 1) local_rank: 3 (pid: 12) of binary: C:\\Python\\python.exe", 1, None),
        ("failed (exitcode: 3221225477) local_rank: 0 (pid: 12) of binary: p.exe", 3221225477, "SIGSEGV"),
        ("failed (exitcode: -1073741819) local_rank: 0 (pid: 12) of binary: p.exe", -1073741819, "SIGSEGV"),
        ("  exitcode  : -11 (pid: 44)", -11, "SIGSEGV"),
        ("[launch.py:321:sigkill_handler] ['python', 'a.py'] exits with return code = -7", -7, "SIGBUS"),
        ("Command '['python', '-u', 'a.py']' died with <Signals.SIGSEGV: 11>.", None, "SIGSEGV"),
        ("Command '['python', '-u', 'a.py']' returned non-zero exit status 2.", 2, None),
        ("process 1 terminated with signal SIGABRT", None, "SIGABRT"),
        ("process 1 terminated with exit code 1", 1, None),
        ("DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that", None, "SIGBUS"),
        ("DataLoader worker (pid(s) 71) exited unexpectedly with exit code 1.", 1, None),
        ("process rank 1 with PID 0 on node a exited on signal 9 (Killed).", None, "SIGKILL"),
        ("srun: error: node12: tasks 0-3: Exited with exit code 137", 137, "SIGKILL"),
        ("srun: error: node12: task 3: Segmentation fault (core dumped)", None, "SIGSEGV"),
        ("      Exit Code:    139", 139, "SIGSEGV"),
        ("trainer-1 exited with code 143", 143, "SIGTERM"),
        ("##[error]Process completed with exit code 134.", 134, "SIGABRT"),
        ("Process 4021 got signal: 15", None, "SIGTERM"),
        ("Received 15 death signal, shutting down workers", None, "SIGTERM"),
        ("*** SIGSEGV received at time=1755 on cpu 3 ***", None, "SIGSEGV"),
        ("    Reason:       OOMKilled", None, "SIGKILL"),
        ("Command terminated by signal 9", None, "SIGKILL"),
        ("Killed", None, "SIGKILL"),
        ("./run.sh: line 12: 4711 Bus error               (core dumped) python train.py", None, "SIGBUS"),
        ("Segmentation fault: 11", None, "SIGSEGV"),
    ],
)
def test_forms(text: str, code: int | None, signal: str | None) -> None:
    found = extract(text)
    value: FactValue = found["code"].value if "code" in found else None
    assert value == code
    if signal is None:
        assert found["signal"].state is State.ABSENT
    else:
        assert found["signal"].value == signal


def test_box_names_the_root_cause_first() -> None:
    box = """
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-27_23:45:04
  host      : localhost
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 684)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 684
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-27_23:45:03
  host      : localhost
  rank      : 4 (local_rank: 0)
  exitcode  : -6 (pid: 683)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 683
"""
    values = {name: fact.value for name, fact in extract(box, EventKind.EXCEPTION).items()}
    assert values == {"code": -6, "signal": "SIGABRT", "pid": 683, "local_rank": 0}


def test_box_without_its_root_part() -> None:
    found = extract("  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 9)\n  error_file: <N/A>")
    assert found["local_rank"].value == 3


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 3 loss 0.2",
        "Killed Kenny is the name of this run",
        "The signal-to-noise ratio is 12",
        "SIGIR 2024 papers",
        "task 3 finished",
    ],
)
def test_other_lines_say_nothing(text: str) -> None:
    found = extract(text, EventKind.EXCEPTION)
    assert not found


def test_source_names_the_line() -> None:
    assert extract("Killed")["signal"].source == "text:job.log:7"


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ("./run.sh: Zeile 3: 4711 Speicherzugriffsfehler  (Speicherabzug geschrieben) python", "SIGSEGV"),
        ("总线错误 (核心已转储)", "SIGBUS"),
        ("Segmentation fault (コアダンプ)", "SIGSEGV"),
        ("Erreur du bus", "SIGBUS"),
        ("Getötet", "SIGKILL"),
        ("Terminado (killed)", "SIGKILL"),
        ("強制終了", "SIGKILL"),
        ("./run.sh : ligne 3 :  4711 Processus arrêté        python train.py", "SIGKILL"),
        ("[1]+  Unicestwiony            python train.py", "SIGKILL"),
    ],
)
def test_a_shell_that_speaks_another_language(line: str, signal: str) -> None:
    (event,) = read_text(f"{line}\n").events
    assert event.kind is EventKind.CRASH
    assert extract(event.text, event.kind)["signal"].value == signal
