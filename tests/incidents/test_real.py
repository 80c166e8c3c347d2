"""Incidents that benchmarks/real_incidents.py made on two H200 with NCCL and torch 2.11, in three runs.

``real.tar.gz`` holds what they left, a folder each; ``real.json`` says what is right.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from torchdoctor.catalog import load
from torchdoctor.engine import FactBook
from torchdoctor.engine.incident import explain
from torchdoctor.render.json import to_json

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
import real_incidents  # noqa: E402
from real_failures import Case, faults, read_programs  # noqa: E402
from real_incidents import KEYS, PROGRAMS, judged, label_of  # noqa: E402

LABELS = json.loads((HERE / "real.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("incidents") / "real"
    with tarfile.open(HERE / "real.tar.gz") as archive:
        for item in archive:
            path = folder / item.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.extractfile(item).read())  # type: ignore[union-attr]
    return folder


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label["case"])
def test_real_incident(label: dict[str, object], real: Path) -> None:
    report = explain([str(real / str(label["case"]))], FactBook(), load()).report
    found = judged(label, json.loads(to_json(report)))
    assert found["rank_right"], (found["told"], found["decided_by"])
    assert found["cause_right"], found["rule"]


def test_a_rank_that_went_on_after_its_first_send_does_not_wait_in_one(real: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(real / "third/reply-never-sent", tmp_path / "went-on"))
    log = (folder / "launcher.log").read_text(encoding="utf-8")
    at = log.index("[default1]:[rank1]:[E")
    log = f"{log[:at]}[default0]:rank 0: step 8 value 0.0000\n{log[at:]}"
    (folder / "launcher.log").write_text(log, encoding="utf-8")
    report = explain([str(folder)], FactBook(), load()).report
    assert report.diagnoses[0].rule == "dist-timeout-long-rank0-work"


def test_the_records_are_kept(real: Path) -> None:
    records = [path for path in real.rglob("nccl_trace_rank_*") if os.path.getsize(path)]
    assert len(records) >= 8


def test_the_programs_are_sound() -> None:
    cases = read_programs(PROGRAMS, KEYS)
    assert faults(cases) == []
    assert all(sum(case.group == name for case in cases) >= 20 for name in ("first", "second"))
    assert [label_of(case, 4)["ranks"] for case in cases if case.name == "loss-guard"] == [[[3]]]
    assert {len(label_of(case, 2)["ranks"]) for case in cases} == {1, 2}


LINGERS = """
import socket, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(NUMBER)"], start_new_session=True)
print(f"step 20 on {socket.gethostname()}", flush=True)
sys.stdin.read()
"""


def test_an_incident_ends_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_incidents, "ORPHANS_S", 0.0)
    line = f"time.sleep(60.{os.getpid():07})"  # of no other run of this test
    values = {
        "rule": "interrupted",
        "rank": "none",
        "run": "python a.py",
        "send": "SIGINT group when step 20",
    }
    case = Case(
        "lingers",
        1,
        {**values, "says": "KeyboardInterrupt"},
        {"a.py": LINGERS.replace("time.sleep(NUMBER)", line)},
    )
    label = real_incidents.made(case, tmp_path, 2)
    assert label["unplanned"] == ""
    assert label["ranks"] == [[]]
    (log,) = (tmp_path / "lingers").iterdir()
    assert 'File "/workspace/run/a.py"' in log.read_text()
    assert line.encode() not in b"".join(path.read_bytes() for path in Path("/proc").glob("[1-9]*/cmdline"))
    assert judged(label, real_incidents.ask("explain", "--offline", str(log.parent)))["cause_right"]
