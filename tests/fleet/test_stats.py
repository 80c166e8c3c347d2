"""Statistics over many reports: what is counted, what is new, which node stands out, what is no report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import case_text
from printed import Printed

from torchdoctor.cli.main import main
from torchdoctor.fleet import stats

UUID = "GPU-1f3b9c2e-0a1b-2c3d-4e5f-60718293a4b5"
BASE = {"schema": "torchdoctor.report/1", "timeline": [], "runs": [], "incidents": []}


def report(
    rule: str, time: str | None, host: str | None = None, evidence: str = "", **more: Any
) -> dict[str, Any]:
    diagnosis = {
        "rule": rule, "title": f"Title of {rule}", "rank": 3, "evidence": [{"text": evidence}],
        "frame": {"file": "/home/me/train.py", "line": 7, "function": "step", "code": "x"},
    }  # fmt: skip
    first = {"rank": None, "host": host, "time": time}
    return {
        **BASE,
        "outcome": "diagnosed",
        "diagnoses": [diagnosis],
        "suspect": None,
        "first_failure": first,
        **more,
    }


def written(folder: Path, *lines: object) -> str:
    path = folder / "reports.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return str(path)


def told(folder: Path, *lines: object, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["stats", "--format", "json", written(folder, *lines)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_explain_writes_is_counted(
    tmp_path: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_text(case_text("cuda-assert-label-range/h200x2-label-rank0"))
    (logs / "b.log").write_text("Traceback (most recent call last):\nwidgets.BrokenWidgetError: it broke\n")
    (logs / "c.log").write_text("epoch 1\nTraining finished.\n")
    assert main(["explain", "--offline", "--each", "--format", "jsonl", str(logs)]) == 0
    path = tmp_path / "reports.jsonl"
    path.write_text(capsys.readouterr().out)
    found = json.loads(printed(["stats", "--format", "json", str(path)]))
    assert found["outcomes"] == {"diagnosed": 1, "unrecognised": 1, "no-failure": 1}
    assert [(row["name"], row["count"]) for row in found["causes"]] == [
        ("cuda-assert-label-range", 1), ("unrecognised: widgets.BrokenWidgetError", 1),
    ]  # fmt: skip
    assert found["ranks"][0]["name"] == "0"
    assert found["frames"]


def test_weeks_and_what_is_new(tmp_path: Path, printed: Printed, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        report("old", "2026-11-16T10:00:00"), report("old", "2026-11-22T23:59:59"),
        report("old", "2026-11-23"),
        report("fresh", "2026-11-29T10:00:00"), report("undated", None),
        report("undated", "--11-29T10:00:00"),
        {**report("by-timeline", None), "timeline": [{"time": "2026-11-17T00:00:00"}]},
    ]  # fmt: skip
    found = told(tmp_path, *lines, capsys=capsys)
    assert found["weeks"] == {"2026-11-16": 3, "2026-11-23": 2}
    assert (found["failures"], found["undated"]) == (7, 2)
    rows = {row["name"]: row for row in found["causes"]}
    assert rows["old"]["weeks"] == {"2026-11-16": 2, "2026-11-23": 1}
    assert [name for name, row in rows.items() if row["new"]] == ["fresh"]
    text = printed(["stats", str(tmp_path / "reports.jsonl")])
    assert "New in the week of 2026-11-23: fresh (1)" in text
    assert "weeks of 2026-11-16 to 2026-11-23; 2 without a date" in text


def test_a_node_that_eats_jobs(tmp_path: Path, printed: Printed, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [report("xid", None, f"node{number}") for number in range(20) for _ in range(2)]
    assert not any(row["odd"] for row in told(tmp_path, *lines, capsys=capsys)["nodes"])
    found = told(tmp_path, *lines, *[report("xid", None, "node7")] * 12, capsys=capsys)
    odd = [(row["name"], row["count"], row["expected"]) for row in found["nodes"] if row["odd"]]
    assert odd == [("node7", 14, 2.6)]
    assert "! node7 failed first 14 times, where 2.6 would be expected" in printed(
        ["stats", str(tmp_path / "reports.jsonl")]
    )


def test_gpus_by_uuid_else_by_bus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        report("xid", None, "node1", f"NVRM: Xid (PCI:0000:3B:00): 79, {UUID}"),
        report("xid", None, "node1", "NVRM: Xid (PCI:0000:3B:00): 79"),
        report("xid", None, None, f"{UUID} {UUID}"),
    ]  # fmt: skip
    found = told(tmp_path, *lines, capsys=capsys)
    assert {row["name"] for row in found["gpus"]} == {f"node1 {UUID}", "node1 0000:3b:00", UUID}


def test_each_incident_of_a_report_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = report("one", None), report("two", "2026-11-16")
    found = told(tmp_path, {**one, "incidents": [one, two]}, capsys=capsys)
    assert [(row["name"], row["count"]) for row in found["causes"]] == [("one", 1), ("two", 1)]


def test_lines_that_are_no_reports_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = [
        "",
        "no json",
        "[1]",
        '{"schema": "other/1"}',
        "[" * 100_000,
        '{"schema": "torchdoctor.report/1"}',
        "9" * 5000,
    ]
    hostile = {"schema": "torchdoctor.report/1", "outcome": "diagnosed", "diagnoses": []}
    found = told(tmp_path, report("good", None), *bad, hostile, capsys=capsys)
    assert found["failures"] == 1
    (note,) = found["notes"]
    assert "line 3: Expecting value" in note
    assert "and 6 more lines" in note


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "empty; expected the output of"), ("hello\n", "line 1: Expecting value"), (None, "no such file")],
)
def test_files_without_reports(text: str | None, said: str, tmp_path: Path, printed: Printed) -> None:
    path = tmp_path / "reports.jsonl"
    if text is not None:
        path.write_text(text)
    assert said in printed.errors(["stats", str(path)], 2)


def test_names_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stats, "NAMES", 3)
    found = told(tmp_path, *(report(f"rule{n}", None) for n in range(5)), capsys=capsys)
    assert len(found["causes"]) == 3
    assert "further causes, beyond the first 3, are not listed: 2 failures" in found["notes"]


def test_the_page_and_the_text_show_hostile_names_as_data(tmp_path: Path, printed: Printed) -> None:
    name = "<script>alert(1)</script>\x1b[31m\u202e"
    lines = [report(name, f"2026-11-{day}", name, **{}) for day in (16, 23, 24)]
    path = written(tmp_path, *lines)
    for form in ("text", "html"):
        out = printed(["stats", "--format", form, path])
        assert "\x1b" not in out
        assert "\u202e" not in out
    assert "<script" not in out
    assert out.count("<svg") >= 5
    assert "default-src 'none'" in out
    assert "week of 2026-11-23: 2" in out
