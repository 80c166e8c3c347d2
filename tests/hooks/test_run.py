"""``torchdoctor run``: the command as without us, behind pipes and on a terminal; what is said of its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hang.programs import LOCK_ORDER, READY
from run_screen import QUIET, RUN, Screen, environment

from torchdoctor.cli.main import main
from torchdoctor.hooks.run import stops
from torchdoctor.hooks.run.watch import Watch, interpreter_of
from torchdoctor.model import Fact

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pseudo-terminals and /proc")

PROGRAM = """
import ctypes, os, signal, sys, time
how = sys.argv[1]

def die(batch):
    return batch["label"]

if how == "early":
    os._exit(9)
print("start", os.isatty(1), flush=True)
sys.stderr.write("to errors\\n")
if how == "exit":
    sys.exit(7)
if how == "raise":
    die({})
if how == "os._exit":
    os._exit(3)
if how == "segfault":
    ctypes.string_at(0)
if how == "closes":
    os.close(1), os.close(2)
    time.sleep(0.3)
    os._exit(4)
if how == "binary":
    os.write(1, bytes(range(256)) * 1000)
    sys.exit(5)
if how == "daemon":
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.6)
        print("daemon", flush=True)
        os._exit(0)
    sys.exit(6)
if how == "handles":
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: (print("got", number, flush=True), os._exit(40)))
if how == "stubborn":
    signal.signal(signal.SIGINT, lambda *_: print("no", flush=True))
print("ready", flush=True)

def train():
    while True:
        time.sleep(0.05)

train()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("run") / "train.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def piped(command: Sequence[str], **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=60, env=environment(), check=False, **options)  # type: ignore[call-overload,no-any-return]


# ------------------------------------------------------------------------------------------- through pipes


@pytest.mark.parametrize(
    "how", ["early", "exit", "raise", "os._exit", "segfault", "closes", "binary", "daemon"]
)
def test_streams_and_code_are_those_without_us(how: str, program: str) -> None:
    command = [sys.executable, program, how]
    plain, ours = piped(command), piped([*QUIET, *command])
    expected = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
    assert (ours.returncode, ours.stdout, ours.stderr) == (expected, plain.stdout, plain.stderr)


@pytest.mark.parametrize("how", ["waits", "handles"])
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL]
)
def test_signals_are_passed_on(number: signal.Signals, how: str, program: str) -> None:
    ends = []
    for before in ([], QUIET):
        process = subprocess.Popen(
            [*before, sys.executable, program, how],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), start_new_session=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None,
        )  # fmt: skip
        begun = b"".join(iter(process.stdout.readline, b"ready\n"))
        first = process.stderr.readline()
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        ends.append((code, begun + output, first, errors.splitlines()[-1:]))
    assert ends[0] == ends[1]


def test_a_stopped_command_goes_on(program: str) -> None:
    with subprocess.Popen(
        [*QUIET, sys.executable, program, "handles"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(), start_new_session=True,
    ) as process:  # fmt: skip
        begun = b"".join(iter(process.stdout.readline, b"ready\n"))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        state = lambda: Path(f"/proc/{children[0]}/stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
        os.kill(int(children[0]), signal.SIGSTOP)
        wait_for(lambda: state() == "T")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: state() != "T")
        process.send_signal(signal.SIGTERM)
        assert (begun, process.stdout.read(), process.wait(30)) == (b"start False\n", b"got 15\n", 40)


def wait_for(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (["no-such-command"], 127, b"no-such-command: not found on PATH"),
        (["./train.py"], 126, b"run it with its interpreter: python ./train.py"),
        (["train.py"], 127, b"for the file in this folder: torchdoctor run -- python train.py"),
        (["."], 126, b"a folder"),
        (["./shebang"], 126, b"the interpreter in its first line is not there"),
        (["./empty"], 126, b"Exec format error"),
    ],
)
def test_what_cannot_be_started(command: list[str], code: int, told: bytes, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    for name, text in (("shebang", "#!/no/such\n"), ("empty", "\x7f\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    ended = piped([*RUN, "--", *command], cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (code, b"")
    assert told in ended.stderr
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--kill-on-stall", "--", "true"], "--kill-on-stall needs --stall TIME"),
        (["--stall", "soon", "--", "true"], "expected 90, 90s, 10m or 2h"),
        (["--what", "true"], "No such option"),
        ([], "Missing argument"),
        (["-o", "nowhere/report", "--", "true"], "-o nowhere/report: cannot be written"),
        (["--save", "used", "--", "true"], "--save used: not an empty folder"),
        (["--save", "used/file", "--", "true"], "--save used/file: File exists"),
    ],
)
def test_mistakes_end_before_the_start(
    options: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("")
    assert main(["run", *options]) == 125
    assert told in capfd.readouterr().err


def test_the_report_comes_behind_the_output(program: str, tmp_path: Path) -> None:
    file, folder = tmp_path / "report.json", tmp_path / "bundle"
    options = ["--format", "json", "-o", str(file), "--save", str(folder), "--offline"]
    ended = piped([*RUN, *options, "--", sys.executable, program, "raise"], cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, b"start False\n")
    head, _, tail = ended.stderr.partition(b"\n\n")
    assert head.endswith(b"KeyError: 'label'")
    report = json.loads(tail.splitlines()[0])
    assert json.loads(file.read_text()) == report
    assert report["source"] == ["<output>"]
    assert report["diagnoses"][0]["frame"]["file"] == program
    assert {path.name for path in folder.iterdir()} == {
        "output.log",
        "report.json",
        "report.md",
        "report.txt",
    }
    log = (folder / "output.log").read_text().splitlines()
    assert (log[0], log[-1]) == ("start False", "Process finished with exit code 1")
    assert (
        b"own-code-error"
        in piped([sys.executable, "-m", "torchdoctor", "explain", str(folder / "output.log")]).stdout
    )


def test_an_exit_code_alone_is_like_nothing_that_is_known() -> None:
    text = piped([*RUN, "--offline", "--", sys.executable, "-c", "raise SystemExit(3)"]).stderr.decode()
    assert "exits with 3." in text
    assert "Resembles" not in text


@pytest.mark.parametrize(
    ("code", "ends"), [("while True: print('x' * 1000)", 1), ("import os; os.write(1, b'x')", 0)]
)
def test_an_output_that_cannot_be_written_is_told(program: str, code: str, ends: int) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*RUN, "--offline", "--", sys.executable, "-c", code],
            stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False,
        )  # fmt: skip
    assert ended.returncode == ends
    assert b"the output cannot be written: No space left on device" in ended.stderr
    assert b"internal error" not in ended.stderr


@pytest.mark.parametrize("code", ["raise SystemExit(5)", "import os; os.kill(os.getpid(), 15)"])
def test_a_reader_that_does_not_read_holds_nobody_up(code: str) -> None:
    noisy = f"print('x' * 100_000, flush=True); {code}"  # more than one pipe holds, less than two
    with subprocess.Popen(
        [*QUIET, sys.executable, "-c", noisy], stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert os.read(process.stdout.fileno(), 10) == b"x" * 10
        wait_for(lambda: not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == (5 if "Exit" in code else 143)


def test_a_fault_of_ours_keeps_the_code(program: str) -> None:
    code = (
        "import sys; from torchdoctor.hooks.run import answer, run, wish\n"
        "answer.of_run = None\n"
        "sys.exit(run.run(wish.Wish(tuple(sys.argv[1:]))))"
    )
    ended = piped([sys.executable, "-c", code, sys.executable, program, "exit"])
    assert (ended.returncode, ended.stdout) == (7, b"start False\n")
    assert b"internal error, the command's exit code is kept" in ended.stderr


def test_plain_pipes_of_windows(program: str) -> None:
    code = (
        "import sys; from torchdoctor.hooks.run import plain, run, wish\n"
        "run._session = plain.Plain\n"
        "sys.exit(run.run(wish.Wish(tuple(sys.argv[1:]), offline=True)))"
    )
    ended = piped([sys.executable, "-c", code, sys.executable, program, "raise"])
    assert (ended.returncode, ended.stdout) == (1, b"start False\n")
    assert ended.stderr.startswith(b"torchdoctor: on Windows the command runs behind plain pipes")
    assert b"own-code-error" in ended.stderr


# ------------------------------------------------------------------------------------------ on a terminal

BAR = """
import os, shutil, sys, time
print("columns", shutil.get_terminal_size().columns, os.isatty(0), os.isatty(1), os.isatty(2))
for done in range(40):
    sys.stderr.write(f"\\r\\x1b[32m{done:3}%\\x1b[0m |{'#' * done}")
    sys.stderr.flush()
    time.sleep(0.005)
print("\\nhello", input("name? "))
"""


def test_a_bar_and_a_prompt_are_those_without_us() -> None:
    shown = []
    for before in ([], QUIET):
        with Screen([*before, sys.executable, "-c", BAR]) as screen:
            screen.until(b"name? ")
            screen.type(b"Bo\x7fob\n")
            shown.append((screen.until(), screen.code))
    assert shown[0] == shown[1]
    assert b"hello Bob" in shown[0][0]
    assert b"columns 90 True True True" in shown[0][0]


def test_ctrl_c_takes_the_stacks_first(program: str) -> None:
    with Screen([*RUN, "--offline", "--", sys.executable, program, "waits"]) as screen:
        screen.until(b"ready")
        screen.type(b"\x03")
        text = screen.until()
    assert screen.code == 130
    assert b"KeyboardInterrupt\r\n" in text
    assert b"interrupted, confirmed" in text
    told = b" ".join(text.split())
    assert b"when Ctrl-C came: process" in told
    assert b"state S, in clock_nanosleep" in told


def test_a_further_ctrl_c_ends_everything(program: str) -> None:
    with Screen([*RUN, "--offline", "--", sys.executable, program, "stubborn"]) as screen:
        screen.until(b"ready")
        screen.type(b"\x03")
        screen.until(b"no\r\n")
        screen.type(b"\x03")
        screen.until()
    assert screen.code == 137


def test_at_a_prompt_ctrl_c_is_only_a_key() -> None:
    with Screen([*QUIET, sys.executable, "-q", "-i", "-c", "import sys; sys.ps1 = '% '"]) as screen:
        screen.until(b"% ")
        for _ in range(3):  # between its prompt and its wait for a key, Python itself leaves one unanswered
            screen.press(b"\x03", b"KeyboardInterrupt")
            screen.until(b"% ")
        screen.type(b"\x04")
        screen.until()
    assert screen.code == 0


def test_ctrl_z_stops_the_job_and_fg_goes_on(program: str) -> None:
    with Screen(["bash", "--norc", "-i"]) as screen:
        screen.until(b"$ ")
        screen.type(" ".join([*QUIET, sys.executable, program, "handles", "\n"]).encode())
        screen.until(b"ready\r\n")
        screen.type(b"\x1a")
        screen.until(b"Stopped")
        screen.type(b"fg\n")
        screen.until(b"fg\r\n")
        screen.until(b"handles")
        screen.press(b"\x1a", b"Stopped")
        screen.type(b"bg; kill %1; wait %1; echo ended $?; exit\n")
        assert b"ended 40" in screen.until()


def test_the_terminal_is_given_back(program: str) -> None:
    changes = (
        "import termios; m = termios.tcgetattr(0); m[3] = 0; termios.tcsetattr(0, 0, m); raise SystemExit(4)"
    )
    with Screen(
        ["bash", "-c", f'stty -a; {" ".join(QUIET)} {sys.executable} -c "{changes}"; echo $?; stty -a']
    ) as screen:
        before, _, after = screen.until().partition(b"4\r\n")
    assert before == after != b""


# ------------------------------------------------------------------------------------- stalls and looks

LOCKED = (
    "import threading\nlock = threading.Lock()\nlock.acquire()\nprint('on', flush=True)\nlock.acquire()\n"
)
BUSY = "import time\nprint('on', flush=True)\nbegun = time.time()\nwhile time.time() < begun + 4: pass\n"


def test_a_stall_is_told_and_ended() -> None:
    options = ["--offline", "--format", "json", "--stall", "1s", "--kill-on-stall"]
    ended = piped([*RUN, *options, "--", sys.executable, "-c", LOCKED])
    assert (ended.returncode, ended.stdout) == (137, b"on\n")
    report = json.loads(ended.stderr)
    assert report["outcome"] == "unrecognised"
    assert "futex" in report["suspect"]["message"]
    assert "s without output: process" in report["notes"][0]


def test_markdown_of_a_stall_names_nobody(tmp_path: Path) -> None:
    script = tmp_path / "home" / "marlene" / "wait.py"
    script.parent.mkdir(parents=True)
    script.write_text(LOCKED.replace("acquire()\n", "acquire(timeout=6)\n"))
    options = ["--offline", "--format", "markdown", "--stall", "1s"]
    ended = piped([*RUN, *options, "--", sys.executable, str(script)])
    assert ended.returncode == 0
    assert b"without output" in ended.stderr
    assert b"wait.py" in ended.stderr
    assert b"marlene" not in ended.stderr


def test_the_engine_is_loaded_only_for_a_report() -> None:
    code = "import sys, torchdoctor.hooks.run.session; print([m for m in sys.modules if '.engine' in m])"
    assert piped([sys.executable, "-c", code]).stdout == b"[]\n"


def test_ctrl_c_on_a_hang_says_what_hangs(tmp_path: Path) -> None:
    (tmp_path / "locks.py").write_text(READY + LOCK_ORDER)
    with Screen([*RUN, "--offline", "--", sys.executable, str(tmp_path / "locks.py")]) as screen:
        screen.until(b"ready")
        time.sleep(0.3)
        screen.type(b"\x03")
        screen.until(b"KeyboardInterrupt")
        screen.type(b"\x03")
        text = screen.until()
    assert screen.code == 137
    assert b"hang-lock-order" in text.partition(b"What to do")[0]


def test_what_works_in_silence_is_no_stall() -> None:
    ended = piped([*RUN, "--offline", "--stall", "1s", "--kill-on-stall", "--", sys.executable, "-c", BUSY])
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("files", "shares", "works"),
    [
        (["/dev/nvidia1", "/dev/nvidiactl"], (99, 0), False),
        (["/dev/nvidia1"], (0, 7), True),
        (["/dev/nvidia6"], (0, 7), True),  # a container of the host's GPUs
        (["/dev/nvidia0"], (None, 7), False),
        (["/dev/null"], (99, 99), False),
        (["/dev/nvidia0"], None, False),
    ],
)
def test_a_gpu_at_work_is_no_stall(
    files: list[str], shares: object, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Source:
        def fetch(self, name: str) -> Fact:
            return Fact.known(name, shares)  # type: ignore[arg-type]

        def close(self) -> None: ...

    monkeypatch.setattr(stops.procfs, "open_files", lambda pid: dict(enumerate(files)))
    monkeypatch.setattr("torchdoctor.probes.opening.open_for_log", lambda *_: Source())
    assert stops.gpus_work([os.getpid()]) is works


# ------------------------------------------------------------------------------ interpreters and ranks


def test_the_interpreter_is_that_of_the_command(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for name, text in (
        ("python3", ""),
        ("torchrun", f"#!{folder}/python3\n"),
        ("accelerate", "#!/usr/bin/env -S python3 -u\n"),
        ("script", "#!/bin/sh\nexec python3\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name in ("python3", "torchrun", "accelerate"):
        assert interpreter_of([name, "train.py"], folder) == f"{folder}/python3"
    assert interpreter_of([f"{folder}/torchrun"], "/bin") == f"{folder}/python3"
    for name in ("script", "nothing"):
        assert interpreter_of([name], folder) == ""


def test_the_interpreter_behind_a_script_is_seen_while_it_runs(program: str, tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    command = ["sh", "-c", f"{sys.executable} {program} waits > {log} 2>&1; true"]
    with subprocess.Popen(command, start_new_session=True) as process:
        wait_for(lambda: log.exists() and "ready" in log.read_text())
        watch = Watch(command)
        watch.look(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
    assert (watch.python, watch.logs()) == (sys.executable, [str(log)])


def test_a_process_that_is_new_is_looked_at_again_soon(program: str) -> None:
    """It may not have become its program yet, and a rank that fails at once ends within seconds."""
    watch = Watch([])
    watch._pause = 5.0
    with subprocess.Popen([sys.executable, program, "waits"], stdout=subprocess.PIPE) as process:
        watch.look(process.pid)
        assert watch.due() <= 0.5
        watch._pause = 5.0
        watch.look(process.pid)
        assert watch.due() > 2
        process.kill()


def test_slurm_output_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    watch = Watch(["srun", "-n2", "--output=out-%t.log", "-e", "err-%3t.log", "--", "python", "-o", "x"])
    for name in ("out-0.log", "out-1.log", "err-000.log", "x"):
        (tmp_path / name).write_text("text")
    os.utime(tmp_path / "out-1.log", (1, 1))  # of an earlier run
    assert watch.logs() == [str(tmp_path / "out-0.log"), str(tmp_path / "err-000.log")]


RANKS = """
import torch, torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

def step(batch):
    return batch["label"]

@record
def main():
    dist.init_process_group("gloo")
    values = torch.zeros(3)
    dist.all_reduce(values)
    if dist.get_rank() == 1:
        step({"image": 1})
    dist.all_reduce(values)

main()
"""


def test_logs_of_torchrun_ranks_are_read(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "ranks.py").write_text(RANKS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    redirected = ["--redirects", "3", "--log-dir", str(tmp_path / "logs"), "ranks.py"]
    ended = piped([*RUN, "--offline", "--format", "json", "--", *launcher, *redirected], cwd=tmp_path)
    assert ended.returncode == 1
    report = json.loads(ended.stderr.splitlines()[-1])
    assert report["first_failure"]["rank"] == 1
    assert report["diagnoses"][0]["frame"]["code"] == 'return batch["label"]'
    read = {source.rpartition("/attempt_0/")[2] for source in report["source"]}
    assert {"<output>", "1/stderr.log", "1/error.json"} <= read
