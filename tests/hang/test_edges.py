"""Processes that are no more, of others, of the kernel; no py-spy; bounds of time; the command."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from hang import programs
from hang.live import running

from torchdoctor import hang
from torchdoctor.cli.hang import command
from torchdoctor.durations import seconds
from torchdoctor.hang import flights, procfs, stacks, targets
from torchdoctor.model import Outcome

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def call(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, list(args), standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.return_value, done.output


# -- which processes


def gone() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_number_that_no_process_has() -> None:
    with pytest.raises(targets.TargetError, match="no process"):
        hang.examine([gone()])


def test_one_of_two_is_gone() -> None:
    with running(programs.IDLE) as process:
        number = gone()
        report = hang.examine([process.pid, number], 0.2)
    assert [one.rule for one in report.diagnoses] == ["hang-idle"]
    assert any(str(number) in item.id for item in report.not_checked)


def test_one_that_ends_while_it_is_looked_at() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.8)"])
    report = hang.examine([process.pid], 1.2)
    process.wait()
    assert report.outcome is Outcome.UNRECOGNISED
    assert any("ended" in item.reason for item in report.not_checked)


def test_a_zombie() -> None:
    process = subprocess.Popen(["true"])
    time.sleep(0.3)
    report = hang.examine([process.pid], 0.2)
    process.wait()
    assert any("zombie" in item.reason for item in report.not_checked)


def test_a_thread_of_the_kernel() -> None:
    kernel = next((pid for pid in procfs.pids() if _is_kernel(pid)), None)
    if kernel is None:
        pytest.skip("no threads of the kernel to be seen in here")
    report = hang.examine([kernel], 0.2)
    assert any("thread of the kernel" in item.reason for item in report.not_checked)


def _is_kernel(pid: int) -> bool:
    try:
        one = procfs.read(pid)
    except procfs.Gone:
        return False
    return not one.command and one.state != "Z"


def test_a_program_that_is_no_python() -> None:
    process = subprocess.Popen(["sleep", "60"])
    report = hang.examine([process.pid], 0.2)
    process.kill()
    process.wait()
    assert report.outcome is Outcome.UNRECOGNISED
    assert "clock_nanosleep" in report.suspect.message


def test_a_process_of_somebody_else() -> None:
    """As another user: the remedy is told, what /proc shows to all is told, nothing raises."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become somebody else")
    nobody = pwd.getpwnam("nobody").pw_uid
    root = Path(__file__).parents[2]
    readable = subprocess.run(
        ["setpriv", f"--reuid={nobody}", "--clear-groups", sys.executable, "-c", "import torchdoctor"],
        capture_output=True, cwd="/", env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    if readable.returncode:
        pytest.skip("nobody may not read this folder")
    with running(programs.SLOW) as process:
        line = [
            sys.executable,
            "-m",
            "torchdoctor",
            "hang",
            "--strict",
            "--interval",
            "0.3",
            str(process.pid),
        ]
        env = {**os.environ, "PYTHONPATH": str(root), "HOME": "/tmp"}
        done = subprocess.run(
            ["setpriv", f"--reuid={nobody}", "--clear-groups", *line],
            capture_output=True,
            text=True,
            cwd="/",
            env=env,
        )
    assert "run torchdoctor as that user, or with sudo" in " ".join(done.stdout.split())
    assert "hang-slow" in done.stdout  # its time on the processor is told to all
    assert done.returncode == 3


# -- without py-spy


@pytest.fixture
def no_spy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "program", lambda: "")


@pytest.mark.usefixtures("no_spy")
@pytest.mark.parametrize(
    ("program", "rule"),
    [(programs.STDIN, "hang-stdin"), (programs.VFORK, "hang-file-system"), (programs.SLOW, "hang-slow")],
)
def test_proc_alone_answers(program: str, rule: str) -> None:
    with running(program) as process:
        time.sleep(0.3)
        report = hang.examine([process.pid], 0.5)
    assert [one.rule for one in report.diagnoses] == [rule]
    assert any("pip install" in item.reason for item in report.not_checked)


@pytest.mark.usefixtures("no_spy")
def test_what_proc_alone_cannot_tell_is_not_guessed() -> None:
    with running(programs.LOCK_ORDER) as process:
        report = hang.examine([process.pid], 0.3)
    assert report.outcome is Outcome.UNRECOGNISED
    assert "futex" in report.suspect.message


# -- near misses


def test_threads_that_wait_for_one_that_works() -> None:
    program = """
import threading
lock = threading.Lock()

def work():
    with lock:
        time.sleep(600)

def wait():
    with lock:
        pass

threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
for _ in range(2):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
ready()
time.sleep(600)
"""
    with running(program) as process:
        report = hang.examine([process.pid], 0.5)
    assert "hang-lock-order" not in [one.rule for one in report.diagnoses]


def test_a_worker_that_is_merely_slow() -> None:
    program = """
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        total = 0
        for value in range(30_000_000):
            total += value
        return torch.ones(1)

def train():
    loader = iter(DataLoader(Slow(), batch_size=4, num_workers=1))
    ready()
    for batch in loader:
        pass

train()
"""
    with running(program) as process:
        time.sleep(1.0)
        report = hang.examine([process.pid])
    assert [one.rule for one in report.diagnoses] == ["hang-slow"]


@pytest.mark.parametrize(
    ("computes", "rule"), [("sum(range(10**12))", "hang-gil"), ("while True: pass", "hang-slow")]
)
@pytest.mark.parametrize("other", ["time.sleep(600)", "while True: time.sleep(0.002)"])
def test_who_computes_keeps_the_lock_only_in_native_code(computes: str, rule: str, other: str) -> None:
    program = f"""
import threading

def idle():
    {other}

def compute():
    {computes}

threading.Thread(target=idle, daemon=True).start()
time.sleep(0.2)
ready()
compute()
"""
    if "while" not in other:
        rule = "hang-slow"  # nobody asks for the lock
    with running(program) as process:
        report = hang.examine([process.pid])
    assert [one.rule for one in report.diagnoses] == [rule]


# -- bounds


def test_eight_processes_take_three_seconds() -> None:
    import contextlib

    with contextlib.ExitStack() as held:
        pids = [held.enter_context(running(programs.IDLE)).pid for _ in range(8)]
        begun = time.monotonic()
        report = hang.examine(pids)
        took = time.monotonic() - begun
    assert len(report.diagnoses) == 8
    assert took < 3 + 1.5  # the machine of the tests has two processors and other work


def test_a_process_is_not_stopped() -> None:
    """A target that counts goes on counting while it is looked at."""
    program = "ready()\nwhile True:\n    print(time.monotonic(), flush=True)\n    time.sleep(0.01)\n"
    with running(program) as process:
        hang.examine([process.pid], 0.5)
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state in "SR"
        assert process.poll() is None


# -- the command


def test_exit_codes_and_json() -> None:
    with running(programs.STDIN) as process:
        time.sleep(0.3)
        assert call(str(process.pid))[0] == 1
        assert call("--fail-on", "never", "--interval", "0.2", str(process.pid))[0] == 0
        code, printed = call("--format", "json", "--interval", "0.2s", str(process.pid))
    report = json.loads(printed)
    assert code == 1
    assert report["diagnoses"][0]["rule"] == "hang-stdin"
    assert report["diagnoses"][0]["family"] == "waiting"
    import jsonschema

    schema = Path(__file__).parents[2] / "torchdoctor/schema/report-1.json"
    jsonschema.validate(report, json.loads(schema.read_text(encoding="utf-8")))
    assert report["diagnoses"][0]["frame"]["function"] == "ask"


def test_info_is_no_finding() -> None:
    with running(programs.IDLE) as process:
        code, printed = call("--interval", "0.2", str(process.pid))
    assert code == 0
    assert "hang-idle" in printed
    assert printed.startswith("✓")


def test_what_cannot_be_judged_is_three_with_strict() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert call("--interval", "0.1", str(process.pid))[0] == 0
        assert call("--interval", "0.1", "--strict", str(process.pid))[0] == 3
    finally:
        process.kill()
        process.wait()


def test_a_job_is_found_by_its_number_and_by_its_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(programs.IDLE, env={"SLURM_JOB_ID": "4711077"}) as process:
        assert targets.of_job("4711077", os.getpid()) == [process.pid]
        monkeypatch.setenv("SLURM_JOB_ID", "4711077")
        assert targets.of_job("", os.getpid()) == [process.pid]
        assert process.pid in targets.of_job(str(process.pid), os.getpid())
    with pytest.raises(targets.TargetError, match="no process on this node"):
        targets.of_job("999999999", os.getpid())
    monkeypatch.delenv("SLURM_JOB_ID")
    with pytest.raises(targets.TargetError, match="SLURM_JOB_ID is not set"):
        targets.of_job("", os.getpid())


def test_all_processes_with_torch() -> None:
    with running("import torch\nready()\ntime.sleep(600)\n") as process:
        assert process.pid in targets.all_of_torch(os.getpid())


def test_mistakes_in_the_call() -> None:
    import click

    for args in ([], ["--all", "1"], ["--interval", "soon", "1"]):
        with pytest.raises(click.UsageError):
            call(*args)


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1.5s", 1.5), ("0.2", 0.2)]
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "-1", "1w", "1e9", "ten"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected 90, 90s, 10m or 2h"):
        seconds(text)


def test_flight_records_are_read_where_they_lie(tmp_path: Path) -> None:
    captured = Path(__file__).parents[1] / "incidents/flight"
    env = {"WORLD_SIZE": "2", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{tmp_path}/trace_"}
    with (
        running(programs.IDLE, env={**env, "RANK": "0"}) as one,
        running(programs.IDLE, env={**env, "RANK": "1"}) as other,
    ):
        time.sleep(1.1)
        for rank in (0, 1):
            (tmp_path / f"trace_{rank}").write_bytes((captured / f"rank_{rank}").read_bytes())
        report = hang.examine([one.pid, other.pid], 0.2)
    assert report.diagnoses[0].rule == "collective-rank-branch"
    assert report.outcome is Outcome.DIAGNOSED
    assert any("trace_0" in note for note in report.notes)


def test_a_record_from_before_the_process_is_not_of_it(tmp_path: Path) -> None:
    path = tmp_path / "trace_0"
    path.write_bytes(b"x")
    os.utime(path, (1, 1))
    with running(
        programs.IDLE, env={"RANK": "0", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{tmp_path}/trace_"}
    ) as process:
        from torchdoctor.hang.look import look

        seen, _ = look([process.pid], 0.1, "")
        assert flights.files(seen) == []
