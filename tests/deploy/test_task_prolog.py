"""deploy/slurm/task_prolog.sh in a real Slurm: what a job's output says, when its tasks do not start."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import Cluster, missing

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [
    pytest.mark.skipif(
        bool(missing()), reason=f"no Slurm here: {', '.join(missing())}; .ci/debian installs it"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("task") / "torchdoctor"


@pytest.fixture(scope="module")
def cluster(program: Path) -> Iterator[Cluster]:
    with Cluster(
        program.parent / "cluster", nodes=1, task_prolog=ROOT / "deploy" / "slurm" / "task_prolog.sh", cpus=2
    ) as running:
        yield running


def srun(cluster: Cluster, program: Path, answer: str, **more: str) -> tuple[int, str]:
    """Run two tasks with a torchdoctor that writes down how it was called and answers so."""
    program.write_text(f'#!/bin/sh\necho "$SLURM_LOCALID $*" >> {program}.calls\n{answer}\n')
    program.chmod(0o755)
    Path(f"{program}.calls").unlink(missing_ok=True)
    environ = {"TORCHDOCTOR": str(program), "TORCHDOCTOR_FOLDER": str(program.parent), **more}
    ran = cluster.run(
        "env", *(f"{name}={value}" for name, value in environ.items()), "srun", "-n2", "echo", "ran"
    )
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("code", [10, 11])
def test_a_node_or_environment_at_fault_ends_the_job_and_says_why(
    code: int, cluster: Cluster, program: Path
) -> None:
    returned, out = srun(cluster, program, f"echo 'td:shm-small (64 MiB)'; exit {code}")
    assert returned != 0
    assert "torchdoctor: td:shm-small (64 MiB) (verdict in " in out
    assert cluster.all_idle()


@pytest.mark.parametrize("code", [1, 12, 70, 127])
def test_what_could_not_be_told_is_said_and_the_job_runs(code: int, cluster: Cluster, program: Path) -> None:
    returned, out = srun(cluster, program, f"echo because; exit {code}")
    assert returned == 0
    assert out.count("ran\n") == 2
    assert f"torchdoctor: undetermined (code {code}) because" in out


def test_a_fit_node_adds_nothing_to_the_output_and_only_its_first_task_looks(
    cluster: Cluster, program: Path
) -> None:
    returned, out = srun(cluster, program, "echo td:fit; exit 0")
    assert (returned, out) == (0, "ran\nran\n")
    (call,) = Path(f"{program}.calls").read_text().splitlines()
    assert call.startswith("0 gate --tier quick --format reason -o ")
    assert "--python /" in call


def test_a_job_may_say_no(cluster: Cluster, program: Path) -> None:
    returned, out = srun(cluster, program, "exit 11", TORCHDOCTOR_GATE="off")
    assert (returned, out) == (0, "ran\nran\n")
    assert not Path(f"{program}.calls").exists()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="looks at a torch")
@pytest.mark.parametrize(("bound", "ends"), [(0, False), (10**18, True)])
def test_the_gate_itself_before_a_task(
    bound: int, ends: bool, cluster: Cluster, program: Path, tmp_path: Path
) -> None:
    """No stand-in: a node of processors, whose shared memory is enough for the policy or too small for it."""
    policy = tmp_path / "site.toml"
    policy.write_text(f"[expect]\ngpus = 0\n[thresholds]\nshm_fail_bytes = {bound}\nshm_warn_bytes = 0\n")
    real = f'cd {ROOT} && exec {sys.executable} -m torchdoctor "$@"'
    more = {"TORCHDOCTOR_POLICY": str(policy), "TORCH_EXTENSIONS_DIR": str(tmp_path / "extensions")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    returned, out = srun(cluster, program, real, PATH=path, **more)
    verdict = json.loads(next(program.parent.glob("n1.json")).read_text())
    if ends:
        assert returned != 0
        assert "torchdoctor: td:shm change-job" in out, out
        assert verdict["exit_code"] == 11
    else:
        assert (returned, out.count("ran\n")) == (0, 2), out
        assert verdict["verdict"] == "fit", verdict
    assert verdict["fingerprint"]["torch"]
    assert cluster.all_idle()
