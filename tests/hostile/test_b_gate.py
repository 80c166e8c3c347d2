"""The gate under signals, faults of Python, odd files and left-over variables: never a verdict it did not reach."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gate_signalled import WRAPPER, signalled
from hostile.command import LIMIT_S, run

PROGRAM = Path(sys.executable).with_name("torchdoctor")
PASSIVE = ("gate", "--tier", "passive", "--gpus", "0")
CODES = (0, 2, 10, 11, 12, 70)  # the contract's; never 1
UNFIT = {"npd": 1, "nagios": 2, "slurm-drain": 1}
UNKNOWN = {"native": 12, "slurm": 0, "slurm-drain": 0, "nagios": 3, "npd": 2, "k8s": 1}
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to somebody else, and makes devices")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "here"
    made.mkdir()
    return made


def gate(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    begun = time.monotonic()
    done = run([*PASSIVE, *words], folder, environment=environment)
    assert time.monotonic() - begun < LIMIT_S
    assert b"Traceback" not in done.stderr
    return done


# --- 1. what is written goes where it was asked for, and nothing else changes


@ROOT_ONLY
@pytest.mark.parametrize("option", ["-o", "--prometheus", "--save"])
def test_a_device_stays_a_device(option: str, folder: Path) -> None:
    null = folder / "null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    assert gate(folder, option, str(null)).returncode == 0
    assert stat.S_ISCHR(null.lstat().st_mode)


@ROOT_ONLY
@pytest.mark.parametrize(
    ("kind", "number"),
    [(stat.S_IFBLK, (7, 250)), (stat.S_IFCHR, (10, 250))],
    ids=["disk", "device"],
)
def test_a_disk_or_another_device_is_refused(kind: int, number: tuple[int, int], folder: Path) -> None:
    path = folder / "device"
    os.mknod(path, 0o666 | kind, os.makedev(*number))
    done = gate(folder, "-o", str(path))
    assert done.returncode == 2
    assert b"is a device" in done.stderr
    assert stat.S_IFMT(path.lstat().st_mode) == kind


@pytest.mark.parametrize("option", ["-o", "--prometheus", "--save"])
@pytest.mark.parametrize("target", ["file", "nowhere"])
def test_a_link_is_neither_followed_nor_replaced(option: str, target: str, folder: Path) -> None:
    (folder / "file").write_text("kept")
    (folder / "link").symlink_to(target)
    done = gate(folder, option, "link")
    assert done.returncode == 2
    assert b"is a link" in done.stderr
    assert (folder / "link").is_symlink()
    assert (folder / "file").read_text() == "kept"
    assert not (folder / "nowhere").exists()


@ROOT_ONLY
def test_root_follows_no_link_of_another_user_on_the_way(folder: Path) -> None:
    (folder / "theirs").mkdir()
    (folder / "way").symlink_to("theirs")
    os.lchown(folder / "way", 12345, 12345)
    done = gate(folder, "-o", "way/verdict.json")
    assert done.returncode == 2
    assert b"link of user 12345" in done.stderr
    assert not list((folder / "theirs").iterdir())


def test_a_pipe_that_nobody_reads_holds_nobody(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = gate(folder, "-o", "pipe")
    assert done.returncode == 70
    assert b"nobody reads" in done.stderr
    assert stat.S_ISFIFO((folder / "pipe").lstat().st_mode)


def test_a_pipe_that_is_read_gets_the_verdict(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=folder, stdout=subprocess.PIPE) as reader:
        assert gate(folder, "-o", "pipe").returncode == 0
        assert json.loads(reader.communicate(timeout=LIMIT_S)[0])["verdict"] == "fit"
    assert stat.S_ISFIFO((folder / "pipe").lstat().st_mode)


def test_the_output_can_be_named_as_a_file(folder: Path) -> None:
    done = gate(folder, "-o", "/dev/stdout", "--format", "reason")
    assert done.returncode == 0
    verdict, reason = done.stdout.decode().splitlines()
    assert json.loads(verdict)["reason"] == reason


@pytest.mark.held_before
def test_a_regular_file_is_replaced_whole(folder: Path) -> None:
    (folder / "verdict.json").write_text("x" * 1_000_000)
    os.link(folder / "verdict.json", folder / "before")
    assert gate(folder, "-o", "verdict.json").returncode == 0
    assert json.loads((folder / "verdict.json").read_text())["exit_code"] == 0
    assert (folder / "before").read_text() == "x" * 1_000_000
    assert sorted(one.name for one in folder.iterdir()) == ["before", "verdict.json"]


@pytest.mark.held_before
def test_a_folder_is_no_file(folder: Path) -> None:
    (folder / "verdict.json").mkdir()
    assert gate(folder, "-o", "verdict.json").returncode == 2


# --- 2. signals, and faults of Python itself


@pytest.mark.parametrize("seed", range(15))
def test_signals_at_any_time_give_a_code_of_the_contract(seed: int, folder: Path) -> None:
    """The first fifteen of the five hundred runs of benchmarks/gate_signals.py."""
    draw = random.Random(seed)
    ended = signalled(PROGRAM, folder, draw, style=("native", "npd", "nagios", "slurm-drain")[seed % 4])
    assert ended.fault == "", ended


def waiting_python(folder: Path) -> Path:
    """An interpreter for the job that never comes to an end, and ignores SIGTERM."""
    python = folder / "python3"
    python.write_text("#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n")
    python.chmod(0o755)
    return python


@pytest.mark.parametrize("first", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("second", ["SIGTERM", "SIGINT"])
def test_a_second_signal_while_the_first_is_handled_changes_nothing(
    first: str, second: str, folder: Path
) -> None:
    words = [
        PROGRAM,
        "gate",
        "--tier",
        "quick",
        "--gpus",
        "0",
        "-o",
        "v.json",
        "--python",
        waiting_python(folder),
    ]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        waited(lambda: bool(children_named(process.pid, b"python3")))
        for name in (first, second, second, first):
            process.send_signal(getattr(signal, name))
            time.sleep(0.02)
        _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 12, said
    assert b"Traceback" not in said
    verdict = json.loads((folder / "v.json").read_text())
    assert verdict["verdict"] == "inconclusive"
    assert verdict["not_checked"][-1] == {
        "check": "gate", "reason": f"stopped by {first} in the environment set", "required": True,
    }  # fmt: skip


def waited(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children_named(pid: int, name: bytes) -> list[int]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                if int(status[1]) == pid and name in Path(f"/proc/{entry}/cmdline").read_bytes():
                    yield int(entry)
            except OSError:
                continue
