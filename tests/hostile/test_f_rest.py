"""Names that attack a terminal, what a kill leaves behind, daemons, and input without an end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostile.command import LIMIT_S, run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="made of processes of Linux")

# an escape sequence that names the window, C1 controls, a bidirectional override, a line end, no text
NASTY = b"a\x1b]0;x\x07\xe2\x80\xae\xc2\x9b31m\r\x08\nb\xe2\x80\x8b\xff"


@pytest.fixture
def work(tmp_path: Path, warm: Path) -> Path:
    shutil.copytree(warm, tmp_path / "cache")
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def harmless(done: subprocess.CompletedProcess[bytes]) -> bool:
    text = (done.stdout + done.stderr).decode("utf-8")
    return all(char.isprintable() for char in text.replace("\n", ""))


# ----------------------------------------------------------------------------------------------------- names

MISTAKES: dict[str, list[bytes]] = {
    "command": [NASTY],
    "command of rules": [b"rules", NASTY],
    "option": [b"explain", b"--" + NASTY],
    "choice": [b"explain", b"--format", NASTY],
    "number": [b"check", b"--time-limit", NASTY],
    "log": [b"explain", NASTY],
    "logs": [b"explain", b"--each", NASTY, b"b" + NASTY],
    "facts of explain": [b"explain", b"x.log", b"--facts", NASTY],
    "rules of explain": [b"explain", b"x.log", b"--rules", NASTY],
    "python of explain": [b"explain", b"x.log", b"--python", NASTY],
    "python of check": [b"check", b"--python", b"./" + NASTY],
    "facts of check": [b"check", b"--facts", NASTY],
    "target": [b"check", b"--target", NASTY + b".py"],
    "facts diff": [b"facts", b"diff", NASTY, NASTY],
    "facts": [b"facts", b"--facts", NASTY],
    "globals": [b"globals", NASTY + b".py"],
    "ddp": [b"ddp", NASTY],
    "selftest": [b"selftest", b"--only", NASTY],
    "selftest show": [b"selftest", b"--show", NASTY],
    "rule": [b"rules", b"show", NASTY],
    "rules lint": [b"rules", b"lint", b"--rules", NASTY],
    "rules eval": [b"rules", b"eval", NASTY],
    "gate verdict": [b"gate", b"--tier", b"passive", b"-o", NASTY + b"/x"],
    "gate policy": [b"gate", b"--tier", b"passive", b"--policy", NASTY],
    "gate replay": [b"gate", b"--facts", NASTY],
    "gate policy check": [b"gate", b"policy", b"check", NASTY],
    "gate merge": [b"gate", b"merge", NASTY],
}


# click's own mistakes and those of files were cleaned before; what these two show was not
_RAW = ("rules lint", "gate verdict")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, id=name, marks=[] if name in _RAW else [pytest.mark.held_before])
        for name, words in MISTAKES.items()
    ],
)
def test_a_name_in_a_mistake_is_data(work: Path, words: list[bytes]) -> None:
    (work / "x.log").write_text("nothing\n")
    done = run(words, work, limit_s=LIMIT_S)
    assert done.returncode not in (0, 70), done.stderr
    assert harmless(done)


def test_a_file_that_is_taken_for_a_command_is_shown_as_data(work: Path) -> None:
    (work / os.fsdecode(NASTY)).write_text("nothing\n")
    done = run([NASTY], work)
    assert b"To explain the file" in done.stderr
    assert harmless(done)


@pytest.mark.held_before
def test_a_log_that_can_be_read_is_shown_as_data(work: Path) -> None:
    (work / os.fsdecode(NASTY)).write_text("RuntimeError: CUDA error: invalid device ordinal\n")
    done = run(["explain", NASTY, "--verbose"], work)
    assert done.returncode == 0
    assert harmless(done)


def test_a_name_begins_no_line_of_its_own(work: Path) -> None:
    done = run(["explain", "gone\ntorchdoctor: all is well.log"], work)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["lint", pytest.param("list", marks=pytest.mark.held_before)])
def test_a_rule_file_with_such_a_name_is_told_as_data(work: Path, command: str) -> None:
    folder = work / "own" / "python"
    folder.mkdir(parents=True)
    (folder / (os.fsdecode(NASTY) + ".toml")).write_text('id = "\\u001b]0;x\\u0007\\u202e"\ntitle = 5\n')
    done = run(["rules", command, "--rules", "own"], work)
    assert done.returncode in (1, 2)
    assert harmless(done)


def test_titles_of_rules_are_data(work: Path) -> None:
    folder = work / "own" / "python"
    folder.mkdir(parents=True)
    (folder / "own-rule.toml").write_text(
        'id = "own-rule"\nfamily = "python"\nseverity = "fatal"\nrole = "cause"\n'
        'title = "A \\u001b]0;x\\u0007title\\u202e"\nwhy = "Because \\u009b31m."\n'
        '[[match]]\ntext = "the reactor overheated"\n'
    )
    for words in (["list"], ["show", "own-rule"]):
        done = run(["rules", *words, "--rules", "own"], work)
        assert done.returncode == 0, done.stderr
        assert b"title" in done.stdout
        assert harmless(done)


# --------------------------------------------------------------------------------------- what a kill leaves


class Examined:
    """An environment whose torch does what a test says, and a temporary folder of its own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "env", with_pip=False, symlinks=True)
        self.python = folder / "env" / "bin" / "python"
        (self.site,) = (folder / "env").glob("lib/python3*/site-packages")
        (self.site / "torch").mkdir()
        (self.site / "torch" / "version.py").write_text('__version__ = "2.5.1"\ncuda = None\nhip = None\n')

    def imports(self, body: str) -> None:
        # byte code is known by second and size, which two bodies may share
        shutil.rmtree(self.site / "torch" / "__pycache__", ignore_errors=True)
        (self.site / "torch" / "__init__.py").write_text(body)


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Examined:
    return Examined(tmp_path_factory.mktemp("examined"))


def waited(for_it: Callable[[], bool], limit_s: float = 8.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not for_it():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def temporary(work: Path) -> Path:
    folder = work.parent / "tmp"
    folder.mkdir()
    return folder


def check(work: Path, temporary: Path, examined: Examined) -> None:
    examined.imports('__version__ = "2.5.1"\n')
    done = run(["check", "--python", str(examined.python)], work, environment={"TMPDIR": str(temporary)})
    assert done.returncode in (0, 1), done.stderr


def running(work: Path, temporary: Path, examined: Examined) -> subprocess.Popen[bytes]:
    """A check in the midst of an import that takes long."""
    examined.imports("import time\ntime.sleep(30)\n")
    env = {**os.environ, "XDG_CACHE_HOME": str(work.parent / "cache"), "TMPDIR": str(temporary)}
    program = os.path.join(os.path.dirname(sys.executable), "torchdoctor")
    found = subprocess.Popen(
        [program, "check", "--python", str(examined.python)], cwd=work, env=env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert waited(lambda: in_use(temporary) is not None)
    return found


def in_use(temporary: Path) -> Path | None:
    """The folder of the program that imports torch now."""
    for facts in temporary.glob("torchdoctor-*/facts"):
        if '"import", "state": "begin"' in facts.read_text():
            return facts.parent
    return None


def test_what_a_killed_command_left_goes_at_the_next_start(
    work: Path, temporary: Path, examined: Examined
) -> None:
    killed = running(work, temporary, examined)
    killed.kill()
    killed.wait()
    assert list(temporary.iterdir())
    check(work, temporary, examined)
    assert not list(temporary.iterdir())


@pytest.mark.held_before
def test_what_a_running_command_uses_stays(work: Path, temporary: Path, examined: Examined) -> None:
    other = running(work, temporary, examined)
    other.send_signal(signal.SIGSTOP)  # it is still there when the check ends, however busy the machine
    try:
        used = in_use(temporary)
        check(work, temporary, examined)
        assert used is not None
        assert (used / "facts").exists()
    finally:
        other.send_signal(signal.SIGTERM)
        other.send_signal(signal.SIGCONT)
        other.wait()


@pytest.mark.held_before
@pytest.mark.parametrize("ended", ["well", "SIGTERM", "SIGINT"])
def test_nothing_is_left_where_it_can_be_helped(
    work: Path, temporary: Path, examined: Examined, ended: str
) -> None:
    if ended == "well":
        check(work, temporary, examined)
    else:
        one = running(work, temporary, examined)
        one.send_signal(signal.Signals[ended])
        one.wait()
    assert not list(temporary.iterdir())


def aged(path: Path) -> None:
    days_ago = time.time() - 3 * 24 * 3600
    os.utime(path, (days_ago, days_ago))


def test_an_old_folder_of_an_earlier_version_goes(work: Path, temporary: Path, examined: Examined) -> None:
    old = temporary / "torchdoctor-abcd1234"
    old.mkdir()
    (old / "out").write_text("x")
    aged(old)
    check(work, temporary, examined)
    assert not old.exists()


@pytest.mark.held_before
@pytest.mark.parametrize("what", ["young", "of another", "link", "file", "of another program"])
def test_what_may_be_somebody_elses_stays(work: Path, temporary: Path, examined: Examined, what: str) -> None:
    elsewhere = work / "mine"
    elsewhere.mkdir()
    (elsewhere / "thesis").write_text("x")
    path = temporary / ("torchdoctor-abcd1234" if what != "of another program" else "torch-abcd1234")
    if what == "link":
        path.symlink_to(elsewhere)
    elif what == "file":
        path.write_text("x")
        aged(path)
    else:
        path.mkdir()
        if what == "of another":
            if os.geteuid() != 0:
                pytest.skip("only root can give a folder away")
            (path / "lock").write_text("")
            os.chown(path, 12345, 12345)
        if what != "young":
            aged(path)
    check(work, temporary, examined)
    assert path.exists()
    assert (elsewhere / "thesis").exists()


# --------------------------------------------------------------------------------------------------- daemons

DAEMON = """
import os, time
__version__ = "2.5.1"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        with open({mark!r}, "w") as mark:
            mark.write(str(os.getpid()))
        time.sleep(120)
    os._exit(0)
while not os.path.exists({mark!r}) or not os.path.getsize({mark!r}):
    time.sleep(0.01)
"""


@pytest.fixture
def daemon(examined: Examined, tmp_path: Path) -> Iterator[Callable[[], bool]]:
    """Does the daemon that the import left behind still run? It does not after the test."""
    mark = tmp_path / "pid"
    examined.imports(DAEMON.format(mark=str(mark)))

    def lives() -> bool:
        try:
            state = Path(f"/proc/{mark.read_text()}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            assert mark.exists(), "it was never there"
            return False
        return state != "Z"

    yield lives
    if lives():
        os.kill(int(mark.read_text()), signal.SIGKILL)


LOG = """Traceback (most recent call last):
  File "/home/me/train.py", line 3, in main
    loss.backward(x)
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


@pytest.mark.parametrize("command", ["check", "facts", "explain", "selftest", "globals"])
def test_a_daemon_that_an_import_leaves_behind_is_ended(
    work: Path, examined: Examined, daemon: Callable[[], bool], command: str
) -> None:
    (work / "x.log").write_text(LOG)
    (work / "train.py").write_text("import torch\n")
    words = {
        "check": ["check"],
        "facts": ["facts"],
        "explain": ["explain", "x.log"],
        "selftest": ["selftest", "--device", "cpu", "--only", "gemm-exact"],
        "globals": ["globals"],
    }[command]
    target = ["train.py"] if command == "globals" else []
    done = run([*words, "--python", str(examined.python), *target], work)
    assert done.returncode in (0, 1), done.stderr
    assert waited(lambda: not daemon(), 3.0)


@pytest.mark.held_before
def test_what_the_caller_runs_is_left_alone(work: Path, examined: Examined) -> None:
    """A shell that becomes the command by exec is the parent of what it has in the background."""
    examined.imports('__version__ = "2.5.1"\n')
    program = os.path.join(os.path.dirname(sys.executable), "torchdoctor")
    script = f"sleep 60 & echo $! > pid; exec {program} check --python {examined.python}"
    env = {**os.environ, "XDG_CACHE_HOME": str(work.parent / "cache")}
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=work, env=env, stdout=subprocess.DEVNULL, check=False, timeout=60
    )
    assert done.returncode in (0, 1)
    pid = int((work / "pid").read_text())
    os.kill(pid, signal.SIGKILL)  # raises when it has gone


# ------------------------------------------------------------------------------------- input without an end


def test_input_without_an_end_is_told(work: Path) -> None:
    program = os.path.join(os.path.dirname(sys.executable), "torchdoctor")
    env = {**os.environ, "XDG_CACHE_HOME": str(work.parent / "cache")}
    reading = subprocess.Popen(
        [program, "explain"], cwd=work, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert reading.stdin is not None
        assert reading.stderr is not None
        reading.stdin.write(b"RuntimeError: CUDA error: invalid device ordinal\n")
        reading.stdin.flush()
        begun = time.monotonic()
        assert b"still reading standard input" in reading.stderr.readline()
        assert 9 < time.monotonic() - begun < 15
        out, more = reading.communicate(timeout=LIMIT_S)
    finally:
        reading.kill()
    assert reading.returncode == 0
    assert b"invalid device ordinal" in out
    assert more == b""


@pytest.mark.held_before
def test_input_that_ends_is_read_in_silence(work: Path) -> None:
    done = run(["explain"], work, stdin=b"RuntimeError: CUDA error: invalid device ordinal\n")
    assert done.returncode == 0
    assert done.stderr == b""


# ------------------------------------------------------------------------------------------------ its caller


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "--", sys.executable, "-c", "import sys; sys.exit(3)"], 3),
        (["facts", "--format", "json"], 0),
    ],
    ids=["run", "facts"],
)
def test_a_caller_that_ignores_the_ends_of_its_children_hides_none(
    work: Path, arguments: list[str], code: int
) -> None:
    done = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "torchdoctor"), *arguments],
        cwd=work,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert done.returncode == code, done.stderr.decode()
