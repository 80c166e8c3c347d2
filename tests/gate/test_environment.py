"""What the job's interpreter tells of its caches, locks, libraries and addresses, and how that is judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from gate_machines import ROOT, Altered
from planted_modules import loaded

from torchdoctor.gate.checks_caches import covers
from torchdoctor.gate.finding import Finding, Verdict, Weight
from torchdoctor.gate.fleet import merge
from torchdoctor.gate.outcome import GateOutcome
from torchdoctor.model import Blame

PROGRAM = ROOT / "torchdoctor" / "gate" / "child" / "environment.py"
FIT, ENV = Verdict.FIT, Verdict.ENVIRONMENT


@pytest.fixture
def child() -> ModuleType:
    return loaded(PROGRAM)


def found(outcome: GateOutcome, tag: str) -> Finding:
    (one,) = [one for one in outcome.findings if one.tag == tag]
    assert one.blame is Blame.ENVIRONMENT
    return one


def judged(**told: Any) -> GateOutcome:
    it = Altered()
    it.environment(**told)
    return it.judge()


# --- caches


@pytest.mark.parametrize(
    ("arches", "told"),
    [
        (["sm_80"], True),
        (["compute_100"], True),
        (["sm_100a"], True),
        (["sm_90"], False),
        (["compute_80", "sm_80"], False),  # PTX is compiled for newer ones
    ],
)
def test_extensions_for_other_gpus_are_told(arches: list[str], told: bool) -> None:
    outcome = judged(built=[["/home/u/.cache/torch_extensions/py312/x", arches]])
    assert outcome.verdict is FIT
    assert [one.tag for one in outcome.findings] == (["cache-architecture"] if told else [])
    if told:
        assert "sm_90" in found(outcome, "cache-architecture").expected


def test_what_ninja_was_told_is_read(tmp_path: Path, child: ModuleType) -> None:
    for name, flags in (
        ("gpu", "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80"),
        ("cpu", "-O3"),
    ):
        (tmp_path / "py312_cu130" / name).mkdir(parents=True)
        (tmp_path / "py312_cu130" / name / "build.ninja").write_text(f"cuda_cflags = {flags}\n")
    assert child.built(str(tmp_path)) == [[str(tmp_path / "py312_cu130" / "gpu"), ["compute_80", "sm_80"]]]


MOUNTED = """\
cd /mnt && mkdir closed noexec full
mount -t tmpfs -o size=1m none closed && mount -o remount,ro closed
mount -t tmpfs -o noexec,size=8m none noexec
mount -t tmpfs -o size=40k none full
export TORCH_EXTENSIONS_DIR=/mnt/closed/x TORCHINDUCTOR_CACHE_DIR=/mnt/noexec TRITON_CACHE_DIR=/mnt/full
exec "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounts file systems")
def test_real_file_systems_that_are_closed_full_or_run_nothing(tmp_path: Path) -> None:
    report = tmp_path / "report"
    (tmp_path / "torch.py").write_text("raise ImportError('not needed here')")
    script = f"mount -t tmpfs none /mnt && {MOUNTED}"
    command = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, str(PROGRAM), str(report)]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    if not report.exists():
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    told = {
        one["name"]: one["value"] for one in map(json.loads, report.read_text().splitlines()) if "name" in one
    }
    rows = {row[0]: row[1:] for row in told["env.caches"]}
    assert rows["/mnt/closed/x"][0] == "Read-only file system"
    assert rows["/mnt/noexec"][:2] == ["", False]
    assert rows["/mnt/full"][0] == "No space left on device"
    assert told["env.locking"][1].startswith("no lock can be created")
    tags = {one.tag for one in judged(caches=told["env.caches"], locking=told["env.locking"]).findings}
    assert {"cache-closed", "cache-noexec", "cache-full", "locking"} <= tags


def test_a_file_in_the_place_of_a_folder(tmp_path: Path, child: ModuleType) -> None:
    (tmp_path / "cache").write_text("")
    assert child.usable(str(tmp_path / "cache"))[0] == "it is not a folder"


def test_a_share_is_the_same_wherever_it_is_mounted(
    tmp_path: Path, child: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("home", "mnt"):
        folder = tmp_path / place / "u"
        folder.mkdir(parents=True)
        mounted = (str(tmp_path / place), "nfs4", "filer:/export/home", "/")
        monkeypatch.setattr(child, "mount_of", lambda real, mounted=mounted: mounted)
        share = child.share_of(str(folder / ".cache" / "torch_extensions"))
        assert share == "filer:/export/home:u/.cache/torch_extensions"
    monkeypatch.setattr(child, "mount_of", lambda real: ("/", "ext4", "/dev/sda1", "/"))
    assert child.share_of(str(tmp_path)) == ""


def test_the_mount_of_this_folder_is_found(tmp_path: Path, child: ModuleType) -> None:
    place, kind, _, _ = child.mount_of(os.path.realpath(tmp_path))
    assert str(tmp_path).startswith(place)
    assert kind


def test_nodes_with_different_gpus_that_share_a_cache_are_named(tmp_path: Path) -> None:
    share = {"extensions": "filer:/home:u/.cache/torch_extensions", "temporary": "filer:/tmp:."}
    for name, arch in (("a1", "8.0"), ("h1", "9.0"), ("h2", "9.0")):
        data = {
            "schema": "torchdoctor.gate/1", "verdict": "fit", "exit_code": 0, "host": name, "time_s": 1.0,
            "reason": "td:fit", "fingerprint": {"architectures": [arch], "shared_caches": share},
        }  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    (note,) = merge(str(tmp_path)).notes
    assert note == (
        "the cache of extensions (filer:/home:u/.cache/torch_extensions) is shared by different GPUs: "
        "sm_80 on a1; sm_90 on h1, h2"
    )
    (tmp_path / "a1.json").unlink()
    assert merge(str(tmp_path)).notes == ()


# --- locks


def test_locks_that_work_are_no_finding(tmp_path: Path, child: ModuleType) -> None:
    assert child.locking(str(tmp_path / "not-there-yet"))[0] == ""
    assert list(tmp_path.iterdir()) == []


def test_locks_that_hold_nobody_off_are_found(
    tmp_path: Path, child: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child.fcntl, "flock", lambda handle, how: None)
    assert child.locking(str(tmp_path))[0] == "two processes can hold the same lock (flock)"


# --- libraries


def test_a_library_from_elsewhere_than_the_wheel_is_told(tmp_path: Path, child: ModuleType) -> None:
    own = tmp_path / "site" / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    own.parent.mkdir(parents=True)
    own.touch()
    torch_file = str(tmp_path / "site" / "torch" / "__init__.py")
    strange = "/usr/lib/x86_64-linux-gnu/libnccl.so.2.18.1"
    assert child.shadowed([["libnccl", strange]], torch_file) == [["libnccl", strange, str(own)]]
    assert (
        child.shadowed([["libnccl", os.path.realpath(own)], ["libcuda", "/usr/lib/libcuda.so"]], torch_file)
        == []
    )
    outcome = judged(shadowed=[["libnccl", strange, str(own)]])
    assert (outcome.verdict, found(outcome, "library-shadowed").weight) == (FIT, Weight.WARN)


# --- addresses


def test_reaching_is_tried(child: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        assert child.reached("127.0.0.1", port) == "yes"  # refused: the host is there
        listening.listen()
        assert child.reached("127.0.0.1", port) == "yes"

    def fails(error: OSError) -> Any:
        def connect(*given: object) -> None:
            raise error

        return connect

    monkeypatch.setattr(
        child.socket, "create_connection", fails(OSError(errno.EHOSTUNREACH, "No route to host"))
    )
    assert child.reached("n1", 1) == "No route to host"
    monkeypatch.setattr(child.socket, "create_connection", fails(TimeoutError("timed out")))
    assert child.reached("n1", 1) == "no answer within 1.5 s"


def test_variables_of_nccl_are_compared_and_those_of_torch_told(child: ModuleType) -> None:
    assert child.leaks("TORCH_NCCL_DUMP_ON_TIMEOUT")
    assert child.leaks("NCCL_P2P_DISABLE")
    assert not child.leaks("NCCL_SOCKET_IFNAME")
    outcome = judged(nccl_variables={"NCCL_SOCKET_IFNAME": "eth0"}, image="train.sif")
    assert outcome.fingerprint["nccl_variables"] == {"NCCL_SOCKET_IFNAME": "eth0"}
    assert outcome.fingerprint["image"] == "train.sif"
    assert outcome.fingerprint["architectures"] == ["9.0"]


@pytest.mark.parametrize(("seen", "verdict"), [(8, FIT), (5, ENV)])
def test_a_job_that_sees_fewer_gpus_than_it_was_given(seen: int, verdict: Verdict) -> None:
    it = Altered()
    it.variables(SLURM_PROCID="0", SLURM_GPUS_ON_NODE="8")
    it.environment(device_count=seen)
    outcome = it.judge()
    assert outcome.verdict is verdict
    if verdict is ENV:
        assert found(outcome, "allocation").observed == "torch sees 5"


@pytest.mark.parametrize(
    ("arches", "capability", "fits"),
    [
        (["sm_80", "sm_90"], "9.0", True),
        (["sm_80"], "8.6", True),  # of the same major version, and older
        (["sm_86"], "8.0", False),
        (["sm_90"], "10.0", False),
        (["sm_90", "compute_90"], "10.0", True),  # PTX
        (["sm_90a"], "9.0", True),
        (["sm_90a", "compute_80"], "8.9", True),
        (["sm_100", "compute_100"], "9.0", False),
        (["gfx942"], "9.4", True),  # no numbers to compare: the first kernel decides
        ([], "9.0", True),
    ],
)
def test_which_code_runs_on_which_gpu(arches: list[str], capability: str, fits: bool) -> None:
    assert covers(arches, capability) is fits


def test_what_python_and_torch_are_is_in_the_verdict() -> None:
    outcome = judged()
    for key in ("python", "torch", "cuda", "nccl", "cudnn", "driver", "kernel"):
        assert outcome.fingerprint[key], key
