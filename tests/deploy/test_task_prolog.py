"""deploy/slurm/task_prolog.sh in a real Slurm: what a job's output says, when its tasks do not start."""

from __future__ import annotations

import os
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
    assert set(cluster.states().values()) == {"idle"}


@pytest.mark.parametrize("code", [1, 12, 70, 127])
def test_what_could_not_be_told_is_said_and_the_job_runs(code: int, cluster: Cluster, program: Path) -> None:
    returned, out = srun(cluster, program, f"echo because; exit {code}")
    assert returned == 0
    assert out.count("ran\n") == 2
    assert f"torchdoctor: not told (code {code}) because" in out


def test_a_fit_node_adds_nothing_to_the_output_and_only_its_first_task_looks(
    cluster: Cluster, program: Path
) -> None:
    returned, out = srun(cluster, program, "echo td:fit; exit 0")
    assert (returned, out) == (0, "ran\nran\n")
    (call,) = Path(f"{program}.calls").read_text().splitlines()
    assert call.startswith("0 gate --tier quick --format reason --verdict-file ")
    assert "--python /" in call


def test_a_job_may_say_no(cluster: Cluster, program: Path) -> None:
    returned, out = srun(cluster, program, "exit 11", TORCHDOCTOR_GATE="off")
    assert (returned, out) == (0, "ran\nran\n")
    assert not Path(f"{program}.calls").exists()
