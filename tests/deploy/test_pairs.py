"""deploy/slurm/pairs.sh in a real Slurm: sums over gloo between nodes, one of which takes no part."""

from __future__ import annotations

import importlib.util
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
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="sums with torch"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("pairs") / "cluster", nodes=4) as running:
        yield running


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("bad", "code", "last"), [("", 0, "4 nodes work"), ("n2", 10, "--exclude=n2")])
def test_the_node_that_does_not_take_part_is_found(
    bad: str, code: int, last: str, cluster: Cluster, tmp_path: Path
) -> None:
    torchdoctor = script(tmp_path / "torchdoctor", f'cd {ROOT} && exec {sys.executable} -m torchdoctor "$@"')
    python = script(
        tmp_path / "python",
        f'[ "$SLURMD_NODENAME" = "{bad}" ] && exit 9\n'
        f'export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo\nexec {sys.executable} "$@"',
    )
    ran = cluster.run(
        "env", f"TORCHDOCTOR={torchdoctor}", f"PYTHON={python}", "TORCHDOCTOR_PAIR_LIMIT=20",
        f"TORCHDOCTOR_PAIR_PORT={20_000 + os.getpid() % 8_000}",  # two runs on one machine do not meet
        "salloc", "-N4", str(ROOT / "deploy" / "slurm" / "pairs.sh"), str(tmp_path / "results"),
        limit_s=240,
    )  # fmt: skip
    logs = "\n".join(path.read_text() for path in (tmp_path / "results").glob("*.log"))
    assert ran.returncode == code, ran.stdout + ran.stderr + logs
    assert last in ran.stdout
    together = (tmp_path / "results" / "all-4.pair.json").exists()
    assert together == (not bad)
