"""The verdicts of many nodes as one: nobody is left out in silence, nobody excluded for another's fault."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from gate_machines import Altered
from printed import Printed

from torchdoctor.cli.main import main
from torchdoctor.gate.fleet import merge, table
from torchdoctor.gate.fleet_page import to_html
from torchdoctor.gate.hostlist import HostListError, fold, hosts_of
from torchdoctor.gate.launch import looks_elsewhere, node_name, refuses
from torchdoctor.gate.outcome import to_json

CODES = {"fit": 0, "unfit": 10, "environment": 11, "inconclusive": 12}


def write(folder: Path, name: str, verdict: str = "fit", **more: Any) -> None:
    data = {
        "schema": "torchdoctor.gate/1", "verdict": verdict, "exit_code": CODES[verdict], "host": name,
        "reason": f"td:{verdict}", "tier": "quick", "seconds": {"total": 9.5}, "time_s": 1000.0,
        "fingerprint": {"driver": "580.159.04", "nccl": "2.28.9"}, **more,
    }  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("verdicts", "code", "exclude"),
    [
        (["fit", "fit"], 0, ()),
        (["fit", "unfit", "inconclusive"], 10, ("n2",)),
        (["environment", "fit"], 11, ()),
        (["inconclusive", "fit"], 12, ()),
        (["unfit", "environment", "unfit"], 10, ("n1", "n3")),
    ],
)
def test_the_worst_node_decides_and_only_the_blamed_are_excluded(
    verdicts: list[str], code: int, exclude: tuple[str, ...], tmp_path: Path
) -> None:
    for number, verdict in enumerate(verdicts, start=1):
        write(tmp_path, f"n{number}", verdict)
    fleet = merge(str(tmp_path))
    assert (fleet.exit_code, fleet.exclude) == (code, exclude)


def test_a_node_that_said_nothing_makes_it_inconclusive(tmp_path: Path) -> None:
    write(tmp_path, "n1")
    fleet = merge(str(tmp_path), ("n1", "n2"))
    assert fleet.exit_code == 12
    assert (fleet.nodes[0].name, fleet.nodes[0].verdict, fleet.nodes[0].reason) == ("n2", None, "no verdict")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is broken"),
        ("{", "is broken"),
        ("[1]", "is not a verdict of schema torchdoctor.gate/1"),
        ('{"schema":"torchdoctor.gate/2"}', "is not a verdict of schema torchdoctor.gate/1"),
        ('{"schema":"torchdoctor.gate/1"}', "is broken"),
        ('{"schema":"torchdoctor.gate/1","verdict":"good","exit_code":0}', "is broken"),
        ('{"schema":"torchdoctor.gate/1","verdict":"fit","exit_code":10}', "contradicts itself"),
        ("[" * 100_000, "is broken"),
        ("x" * (5 << 20), "is larger than a verdict can be"),
    ],
)
def test_a_file_that_is_no_verdict_counts_as_not_told(text: str, why: str, tmp_path: Path) -> None:
    write(tmp_path, "n1")
    (tmp_path / "n2.json").write_text(text)
    fleet = merge(str(tmp_path))
    assert fleet.exit_code == 12
    assert fleet.nodes[0].name == "n2"
    assert fleet.nodes[0].reason.startswith(why)


def test_verdicts_of_an_earlier_job_are_not_used(tmp_path: Path) -> None:
    write(tmp_path, "n1", "unfit", time_s=500.0)
    write(tmp_path, "n2", time_s=1500.0)
    fleet = merge(str(tmp_path), ("n1", "n2"), newer_than_s=1000.0)
    assert (fleet.exit_code, fleet.exclude) == (12, ())
    assert fleet.notes == ("n1.json: from an earlier run, ignored",)


def test_the_odd_version_is_named_and_of_two_nobody_is_odd(tmp_path: Path) -> None:
    for number in range(1, 4):
        write(tmp_path, f"n{number}")
    write(tmp_path, "n4", fingerprint={"driver": "570.86.15", "nccl": "2.28.9"})
    (odd,) = merge(str(tmp_path)).odd
    assert (odd.what, odd.usual, odd.nodes) == ("driver", "580.159.04", (("n4", "570.86.15"),))
    for number in (1, 2):
        (tmp_path / f"n{number}.json").unlink()
    assert merge(str(tmp_path)).odd == ()


def test_drift_names_a_setting_that_few_have_and_no_silence(tmp_path: Path) -> None:
    usual = {"torch": "2.11.0", "limits": {"nofile": [1024, 1024]}, "variables": {}, "image": None}
    for number in range(1, 5):
        write(tmp_path, f"n{number}", fingerprint=usual)
    low = {"torch": None, "limits": {"nofile": [256, 256]}, "variables": {"OMP_NUM_THREADS": "1"}}
    write(tmp_path, "n5", fingerprint=low)
    odd = {one.what: (one.usual, one.nodes) for one in merge(str(tmp_path)).odd}
    assert odd == {
        "limits.nofile": ("[1024, 1024]", (("n5", "[256, 256]"),)),
        "variables.OMP_NUM_THREADS": ("not set", (("n5", "1"),)),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("gpu[003-005,9],login1", ("gpu003", "gpu004", "gpu005", "gpu9", "login1")),
        ("r[1-2]n[08-09]", ("r1n08", "r1n09", "r2n08", "r2n09")),
        ("a,a,b", ("a", "b")),
    ],
)
def test_lists_as_slurm_writes_them(text: str, expected: tuple[str, ...]) -> None:
    assert hosts_of(text) == expected
    assert set(hosts_of(fold(expected))) == set(expected)


def test_a_list_is_folded() -> None:
    names = [f"gpu{number:03d}" for number in (3, 5, 4, 9)]
    assert (
        fold([*names, "login", "gpu9", "r1n08-ib", "r1n09-ib"]) == "login,gpu9,gpu[003-005,009],r1n[08-09]-ib"
    )


@pytest.mark.parametrize("text", ["gpu[1-", "gpu[a-b]", "gpu[5-1]", "gpu[1-999999999]", "gpu]1["])
def test_lists_that_are_none(text: str) -> None:
    with pytest.raises(HostListError, match=r"not a list of nodes|not a range"):
        hosts_of(text)


def test_the_table_sorts_numbers_as_numbers_and_ends_with_the_option(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        write(tmp_path, f"n{number}", "unfit" if number != 2 else "fit")
    lines = table(merge(str(tmp_path)))
    assert [line.split()[0] for line in lines[1:4]] == ["n9", "n10", "n2"]
    assert lines[-1] == "--exclude=n9,n10"


def test_a_hostile_verdict_reaches_no_terminal_raw(tmp_path: Path, printed: Printed) -> None:
    write(tmp_path, "n1", "unfit", reason="\x1b]0;x\x07\x1b[31mred\nsecond")
    out = printed(["gate", "merge", str(tmp_path)], 10)
    assert "\x1b" not in out
    assert "red second" in out


@pytest.mark.parametrize("form", ["text", "json", "exclude"])
def test_the_command(form: str, tmp_path: Path, printed: Printed) -> None:
    write(tmp_path, "n1", "unfit")
    write(tmp_path, "n2")
    out = printed(["gate", "merge", str(tmp_path), "--format", form], 10)
    if form == "exclude":
        assert out == "n1\n"
    elif form == "json":
        assert json.loads(out)["exclude"] == ["n1"]
    else:
        assert "2 nodes: 1 fit, 1 unfit" in out


def test_a_folder_without_verdicts_is_a_mistake(tmp_path: Path, printed: Printed) -> None:
    assert "holds no verdict" in printed.errors(["gate", "merge", str(tmp_path)], 2)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"LOCAL_RANK": "0"},
        {"LOCAL_RANK": "x"},
        {"LOCAL_RANK": "²"},
        {"SLURM_LOCALID": "9" * 5000},
        {"SLURM_LOCALID": "3"},  # left in a shell
        {"SLURM_LOCALID": "3", "SLURM_TASK_PID": "1"},  # of a task that is none of ours
        {"SLURM_LOCALID": "3", "SLURM_TASK_PID": str(os.getpid()), "SLURM_SCRIPT_CONTEXT": "prolog_slurmd"},
        {"OMPI_COMM_WORLD_LOCAL_RANK": "1"},
    ],
)
def test_without_a_launcher_that_runs_here_this_process_looks(environ: dict[str, str]) -> None:
    assert looks_elsewhere(environ) == ""


@pytest.mark.parametrize("context", ["", "prolog_task"])
def test_another_task_than_the_first_of_slurm_leaves_it_to_that(context: str) -> None:
    environ = {"SLURM_LOCALID": "3", "SLURM_TASK_PID": str(os.getppid()), "SLURM_SCRIPT_CONTEXT": context}
    assert looks_elsewhere(environ).startswith("SLURM_LOCALID=3: local rank 0")


@pytest.mark.parametrize(
    ("environ", "host", "expected"),
    [
        ({"SLURMD_NODENAME": "n7"}, "vm", "n7"),
        ({}, "gpu17.example.org", "gpu17.example.org"),
        ({}, "", "node"),
        ({"NODE_NAME": "../../etc/x"}, "vm", "_.._etc_x"),
    ],
)
def test_the_name_of_a_node_is_fit_for_a_file(environ: dict[str, str], host: str, expected: str) -> None:
    assert node_name(environ, host) == expected


@pytest.mark.parametrize(
    ("context", "uid", "owner", "refused"),
    [
        ("prolog_slurmd", 0, 1000, True),
        ("epilog_slurmd", 0, 1000, True),
        ("prolog_slurmd", 0, 0, False),  # the system's own
        ("prolog_task", 1000, 1000, False),  # as the user
        ("", 0, 1000, False),  # a container
    ],
)
def test_a_users_python_is_never_run_as_root_in_a_prolog(
    context: str, uid: int, owner: int, refused: bool
) -> None:
    assert bool(refuses({"SLURM_SCRIPT_CONTEXT": context}, uid, owner)) is refused


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to somebody else")
def test_the_command_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    python.chmod(0o755)
    os.chown(python, 1000, 1000)
    monkeypatch.setenv("SLURM_SCRIPT_CONTEXT", "prolog_slurmd")
    assert "user 1000" in printed.errors(["gate", "--python", str(python), "--gpus", "0"], 2)
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("name", ["LOCAL_RANK", "SLURM_LOCALID"])
def test_a_rank_that_was_left_in_the_environment_keeps_nobody_from_looking(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SLURMD_NODENAME", "n5")
    main(["gate", "--tier", "passive", "--gpus", "0", "-o", f"{tmp_path}/"])
    assert (tmp_path / "n5.json").exists()


def test_the_page_has_a_row_for_what_is_said_and_a_column_for_what_was_found(
    tmp_path: Path, printed: Printed
) -> None:
    xid = {"check": "xid", "weight": "fail", "suppressed": None}
    late = {"check": "clock-sync", "weight": "warn", "suppressed": None}
    for number in range(300):
        write(
            tmp_path,
            f"gpu{number:03d}",
            not_checked=[{"check": "kernel-log", "reason": "no", "required": False}],
        )
    write(tmp_path, "gpu300", "unfit", findings=[xid, late], reason="<b>td:xid79")
    page = printed(["gate", "merge", str(tmp_path), "--format", "html"], 10)
    assert page.count("<tr>") == 1 + 2 + 1  # the head, two rows, a reason
    assert [name for name in ("xid", "clock-sync", "kernel-log") if f'"check">{name}<' in page]
    assert '<td>gpu[000-299]</td><td class="number">300</td>' in page
    assert '<td class="cell fail" title="xid: fails">✗</td>' in page
    assert "&lt;b&gt;td:xid79" in page
    assert "<b>" not in page


def test_a_thousand_verdicts(tmp_path: Path) -> None:
    """In the time and memory that are promised, each a small part: the machine may be busy."""
    import time
    import tracemalloc

    verdict = to_json(Altered().judge())
    for number in range(1000):
        (tmp_path / f"n{number}.json").write_text(verdict.replace("host-1", f"n{number}"), encoding="utf-8")
    begun = time.process_time()
    tracemalloc.start()
    page = to_html(merge(str(tmp_path)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(page) < 100_000
    assert peak < 50 << 20
    assert time.process_time() - begun < 10.0
