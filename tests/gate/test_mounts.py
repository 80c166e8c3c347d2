"""File systems that hang: each is asked by a process of its own, and holds nobody up."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gate_machines import ROOT, Altered

from torchdoctor.gate.finding import Verdict
from torchdoctor.gate.policy import Policy
from torchdoctor.model import Blame

# the program itself, with a statvfs that hangs, fails or takes its time for some places
PROGRAM = """
import os, runpy, sys, time
real = os.statvfs
def statvfs(place):
    if place == "/hung": time.sleep(60)
    if place == "/slow": time.sleep(0.3)
    if place == "/stale": raise OSError(116, "Stale file handle")
    return real("/")
os.statvfs = statvfs
lines = [f"36 35 98:0 / {place} rw - {kind} source rw" for place, kind in (
    ("/", "ext4"), ("/hung", "nfs4"), ("/slow", "nfs4"), ("/stale", "nfs4"), ("/proc", "ext4"))]
opened = open
def fake(path, *rest, **more):
    if path == "/proc/self/mountinfo":
        import io
        return io.StringIO("\\n".join(lines))
    return opened(path, *rest, **more)
import builtins
builtins.open = fake
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def test_what_hangs_is_named_and_the_others_are_told(tmp_path: Path) -> None:
    report = tmp_path / "report"
    program = ROOT / "torchdoctor" / "probes" / "child" / "mounts.py"
    begun = time.monotonic()
    argv = [sys.executable, "-c", PROGRAM, str(program), "1.0", str(report)]
    assert subprocess.run(argv, timeout=30, check=False).returncode == 0
    assert time.monotonic() - begun < 5
    told = {one["name"]: one["value"] for one in map(json.loads, report.read_text().splitlines())}
    assert told["mounts.hung"] == [["/hung", "nfs4", "rw,rw"]]
    answers = {row[0]: row[3] for row in told["mounts.answers"]}
    assert set(answers) == {"/", "/slow", "/stale"}
    assert answers["/stale"] == "Stale file handle"
    assert isinstance(answers["/slow"], list)
    it = Altered()
    for name, value in told.items():
        it.put(name, value)
    it.put("mounts.answers", [row for row in told["mounts.answers"] if row[0] == "/slow"])
    outcome = it.judge()
    assert (outcome.verdict, outcome.exit_code()) == (Verdict.INCONCLUSIVE, 12)
    (found,) = outcome.findings
    assert (found.tag, found.blame) == ("mount-hung", Blame.FABRIC)
    assert "/hung (nfs4): no answer within 1 s" in found.observed


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "fuse.sshfs", "weka"])
def test_a_file_server_that_is_down_drains_no_node(kind: str) -> None:
    it = Altered()
    it.put("mounts.hung", [["/home", kind, "rw"]])
    assert it.judge().verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("place", "kind", "verdict", "blame"),
    [
        ("/", "ext4", Verdict.UNFIT, Blame.NODE),
        ("/var", "xfs", Verdict.UNFIT, Blame.NODE),
        ("/scratch", "xfs", Verdict.UNFIT, Blame.NODE),  # the policy names it
        ("/data", "xfs", Verdict.FIT, Blame.NODE),  # filled on purpose
        ("/home", "nfs4", Verdict.FIT, Blame.FABRIC),  # of all nodes alike
    ],
)
def test_whose_disk_is_full(place: str, kind: str, verdict: Verdict, blame: Blame) -> None:
    it = Altered()
    it.policy = Policy("site.toml", {"mounts": ["/scratch", "/home"]})
    others = [one for one in ("/scratch", "/home") if one != place]
    answers = [[one, "nfs4", "rw", [10**13, 10**12, 10**7, 10**6, False]] for one in others]
    it.put("mounts.answers", [[place, kind, "rw", [10**13, 10**8, 10**7, 10**6, False]], *answers])
    outcome = it.judge()
    assert outcome.verdict is verdict
    (found,) = [one for one in outcome.findings if one.tag == "disk-full"]
    assert found.blame is blame
