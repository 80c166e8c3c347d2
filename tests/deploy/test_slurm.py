"""The scripts of deploy/slurm in a real Slurm on loopback: who is drained, why, and who is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm_cluster import Cluster, missing

ROOT = Path(__file__).resolve().parent.parent.parent
HEALTHY = ROOT / "tests" / "gate" / "machines" / "hgx-h100x8.json"
XID79 = "NVRM: Xid (PCI:0000:{pci}): 79, pid=4711, name=python, GPU has fallen off the bus."

pytestmark = [
    pytest.mark.skipif(
        bool(missing()), reason=f"no Slurm here: {', '.join(missing())}; .ci/debian installs it"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons need root"),
]


def broken(place: Path) -> Path:
    """The healthy recording, with a GPU that fell off the bus an hour ago."""
    data = json.loads(HEALTHY.read_text())
    addresses = next(
        line["value"] for line in data["programs"]["gate-nvml"]["lines"] if line.get("name") == "gpu.pci"
    )
    pci = addresses[3].lower().split(":", 1)[1].split(".")[0]
    for line in data["programs"]["gate-kernel-log"]["lines"]:
        if line.get("name") == "kernel.lines":
            line["value"].append([82_800.0, XID79.format(pci=pci)])
    path = place / "broken.json"
    path.write_text(json.dumps(data))
    return path


class Site:
    """A folder with the settings of the Prolog, and a torchdoctor that sees what the test wants it to see."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place / "spool-torchdoctor"
        self.folder.mkdir()
        self.program = place / "torchdoctor"
        (place / "settings").write_text(
            f"TORCHDOCTOR={self.program}\nTORCHDOCTOR_FOLDER={self.folder}\nTORCHDOCTOR_POLICY={place}/none\n"
            "TORCHDOCTOR_MOST_PERCENT=100\n"
        )
        self.prolog = place / "prolog.sh"
        self._script(self.prolog, f"TORCHDOCTOR_SETTINGS={place}/settings exec {ROOT}/deploy/slurm/prolog.sh")
        self.healthy()

    def _script(self, path: Path, text: str) -> None:
        path.write_text("#!/bin/sh\n" + textwrap.dedent(text) + "\n")
        path.chmod(0o755)

    def sees(self, recordings: dict[str, Path], default: Path = HEALTHY) -> None:
        cases = "\n".join(f"{node}) seen={path} ;;" for node, path in recordings.items())
        self._script(
            self.program,
            f"case $SLURMD_NODENAME in\n{cases}\n*) seen={default} ;;\nesac\n"
            f'cd {ROOT} && exec {sys.executable} -m torchdoctor "$@" --gpus 8 --facts "$seen"',
        )

    def healthy(self) -> None:
        self.sees({})

    def does(self, text: str) -> None:
        self._script(self.program, text)

    def log(self) -> str:
        path = self.folder / "prolog.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    place = tmp_path_factory.mktemp("slurm")
    for folder in (place, *place.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o755)
    return Site(place)


@pytest.fixture(scope="module")
def cluster(site: Site) -> Iterator[Cluster]:
    with Cluster(site.place / "cluster", nodes=3, prolog=site.prolog) as running:
        yield running


@pytest.fixture(autouse=True)
def _as_before(site: Site, cluster: Cluster) -> Iterator[None]:
    yield
    site.healthy()
    for node, state in cluster.states().items():
        if state.startswith("d"):
            cluster.resume(node)


def test_healthy_nodes_run_the_job_and_nobody_is_drained(site: Site, cluster: Cluster) -> None:
    ran = cluster.run("srun", "-N3", "-n3", "sh", "-c", "echo $SLURMD_NODENAME")
    assert sorted(ran.stdout.split()) == ["n1", "n2", "n3"]
    assert cluster.all_idle()
    verdicts = {path.stem: json.loads(path.read_text())["verdict"] for path in site.folder.glob("*.json")}
    assert verdicts == {"n1": "fit", "n2": "fit", "n3": "fit"}


def test_a_planted_fault_drains_its_node_with_our_reason_and_no_other(site: Site, cluster: Cluster) -> None:
    site.sees({"n2": broken(site.place)})
    cluster.run("srun", "-w", "n2", "-N1", "-n1", "--immediate=10", "true", limit_s=30)
    cluster.until("n2", ("drain", "drained", "drng"))
    reason = cluster.reason("n2")
    assert reason.startswith("[node_problem] td:xid79 GPU3 ")
    assert len(reason) <= 160
    states = cluster.states()
    assert not {states["n1"], states["n3"]} & {"drain", "drng"}
    assert cluster.reason("n1") == ""


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("crash", "exit 1"),
        ("python error", f"{sys.executable} -c 'raise RuntimeError(1)'"),
        ("killed", "kill -9 $$"),
        ("absent", None),
        ("usage", "exit 2"),
        ("our fault", "exit 70"),
        ("inconclusive", "exit 12"),
        ("a 10 from nowhere, without a verdict file", "echo '[node_problem] td:xid79'; exit 10"),
        (
            "a 10 beside a verdict that says fit",
            'while [ "$1" != -o ]; do shift; done; echo x; '
            'printf \'{"verdict":"fit","exit_code":0,}\' > "$2"; exit 10',
        ),
    ],
)
def test_what_is_no_verdict_drains_nobody_and_stops_no_job(
    name: str, program: str | None, site: Site, cluster: Cluster
) -> None:
    if program is None:
        site.program.unlink()
    else:
        site.does(program)
    ran = cluster.run("srun", "-N1", "-n1", "-w", "n1", "echo", "ran")
    assert ran.stdout == "ran\n", ran.stderr
    assert cluster.all_idle()
    assert "nothing done" in site.log()


@contextmanager
def settings(site: Site, *more: str) -> Iterator[None]:
    """The Prolog's settings with these lines more."""
    path = site.place / "settings"
    before = path.read_text()
    path.write_text(before + "".join(f"{line}\n" for line in more))
    try:
        yield
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    "budget", ["TORCHDOCTOR_MOST_DRAINED=1", "TORCHDOCTOR_MOST_AN_HOUR=1", "TORCHDOCTOR_MOST_PERCENT=40"]
)
def test_a_bad_day_of_the_checker_drains_no_more_than_the_budget(
    budget: str, site: Site, cluster: Cluster
) -> None:
    with settings(site, budget):
        site.sees({}, default=broken(site.place))
        cluster.run("srun", "-w", "n1", "-N1", "-n1", "--immediate=10", "true", limit_s=30)
        cluster.until("n1", ("drain", "drained", "drng"))
        ran = cluster.run("srun", "-w", "n3", "-N1", "-n1", "echo", "ran")
        assert ran.stdout == "ran\n", ran.stderr
        cluster.until("n3", ("idle",))
        assert cluster.reason("n3") == ""
        assert "n3 not drained, the budget is used up. [node_problem] td:xid79" in site.log()


def test_nodes_that_are_unfit_at_one_moment_are_counted_together(site: Site, cluster: Cluster) -> None:
    with settings(site, "TORCHDOCTOR_MOST_DRAINED=1"):
        site.sees({}, default=broken(site.place))
        cluster.run("srun", "-N3", "-n3", "--immediate=15", "true", limit_s=40)
        time.sleep(3)  # each looks again after a second
        drained = [node for node, state in cluster.states().items() if state.startswith("d")]
        assert len(drained) == 1, cluster.states()


def test_a_node_drained_for_other_reasons_keeps_its_reason(site: Site, cluster: Cluster) -> None:
    cluster.run("scontrol", "update", "nodename=n1", "state=drain", "reason=disk swap, ask Kim")
    site.sees({}, default=broken(site.place))
    health_check(site, cluster, "n1")
    assert cluster.reason("n1") == "disk swap, ask Kim"
    assert "n1: it is drained already" in site.log()


def health_check(site: Site, cluster: Cluster, node: str) -> int:
    """Run it as slurmd does: as root, with the node's name and hardly anything else."""
    script = ROOT / "deploy" / "slurm" / "health_check.sh"
    ran = cluster.run(
        "env", "-i", f"SLURM_CONF={cluster.environ['SLURM_CONF']}", f"SLURMD_NODENAME={node}",
        f"TORCHDOCTOR_SETTINGS={site.place}/settings", f"TORCHDOCTOR_PROLOG={ROOT}/deploy/slurm/prolog.sh",
        str(script),
    )  # fmt: skip
    return ran.returncode


def test_the_health_check_drains_beside_running_jobs_and_always_ends_with_0(
    site: Site, cluster: Cluster
) -> None:
    assert health_check(site, cluster, "n2") == 0
    assert cluster.all_idle()
    begun, free = site.place / "begun", site.place / "free"
    works = f"touch {begun}; until [ -e {free} ]; do sleep 0.2; done"
    with subprocess.Popen(["srun", "-w", "n2", "sh", "-c", works], env=cluster.environ) as job:
        end = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < end:
            time.sleep(0.1)  # until its Prolog is done
        site.sees({"n2": broken(site.place)})
        assert health_check(site, cluster, "n2") == 0
        assert cluster.states()["n2"] == "drng"
        assert cluster.reason("n2").startswith("[node_problem] td:xid79 GPU3 ")
        free.touch()
        assert job.wait(30) == 0  # it goes on to its end
    for crash in ("exit 1", "exit 70", "kill -9 $$", "sleep 0; exit 12"):
        site.does(crash)
        assert health_check(site, cluster, "n3") == 0
    assert cluster.states()["n3"] == "idle"


def test_a_node_drained_by_a_person_stays_drained(site: Site, cluster: Cluster) -> None:
    cluster.run("scontrol", "update", "nodename=n3", "state=drain", "reason=disk swap, ask Kim")
    cluster.run("srun", "-w", "n1", "-N1", "-n1", "true")
    assert cluster.reason("n3") == "disk swap, ask Kim"


def test_srun_starts_the_gate_on_every_node_and_the_verdicts_are_merged(
    site: Site, cluster: Cluster, tmp_path: Path
) -> None:
    folder = site.place / "verdicts"
    folder.mkdir(exist_ok=True)
    site.sees({"n2": broken(site.place)})
    # the Prolog is not to drain n2 before the job's own gate is there
    with settings(site, "TORCHDOCTOR_MOST_DRAINED=0"):
        gate = ("gate", "--tier", "passive", "--observe", "-o", f"{folder}/")
        cluster.run("srun", "-N3", "-n3", str(site.program), *gate)
    merged = cluster.run(
        sys.executable,
        "-m",
        "torchdoctor",
        "gate",
        "merge",
        str(folder),
        "--nodes",
        "n[1-3]",
        "--format",
        "json",
    )
    assert merged.returncode == 10
    data = json.loads(merged.stdout)
    assert data["exclude"] == ["n2"]
    assert {node["node"]: node["verdict"] for node in data["nodes"]} == {
        "n1": "fit",
        "n2": "unfit",
        "n3": "fit",
    }


def test_run_around_srun_names_the_task_that_failed_first(
    site: Site, cluster: Cluster, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import os, time\n"
        "rank = int(os.environ['SLURM_PROCID'])\n"
        "for step in range(9):\n"
        "    print(f'step {step} loss {1 / (step + 1):.4f}', flush=True)\n"
        "if rank == 2:\n"
        "    {'x': 1}['label']\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    report = tmp_path / "report.json"
    run = (sys.executable, "-m", "torchdoctor", "run", "--offline", "--format", "json", "-o", str(report))
    kept = ("-o", f"{tmp_path}/task-%t.log", "-K")
    ended = cluster.run(*run, "--", "srun", "-N3", "-n3", *kept, sys.executable, str(program), limit_s=60)
    assert ended.returncode == 143  # srun -K tells the highest code, that of the tasks that it ended
    told = json.loads(report.read_text(encoding="utf-8"))
    (cause,) = [one for one in told["diagnoses"] if one["role"] == "cause"]
    assert (cause["rule"], cause["frame"]["file"], cause["frame"]["line"]) == (
        "own-code-error",
        str(program),
        6,
    )
    assert told["first_failure"]["rank"] == 2
