"""Annotations and step summaries of GitHub Actions: escaping, places, the limit of ten."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from sample_reports import ALL, CHECKED, DIAGNOSED, LABEL_RANGE

from torchdoctor.cli.main import main
from torchdoctor.model import Evidence, Report, Severity
from torchdoctor.render.github import step_summary, to_github
from torchdoctor.render.markdown import LIMIT

ROOT = Path(__file__).parents[1]
LOG = """Traceback (most recent call last):
  File "/home/ann/work/p/train.py", line 4, in f
    y = x @ z
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x16 and 20x5)
"""


def annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What a runner makes of it, as its documentation says: (level, properties, message)."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
        if match is None:
            continue
        properties = dict(pair.split("=", 1) for pair in match[2].split(","))
        for name, value in properties.items():
            properties[name] = value.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
        found.append((match[1], properties, match[3].replace("%0A", "\n").replace("%25", "%")))
    return found


def of(**changes: object) -> Report:
    return dataclasses.replace(DIAGNOSED, diagnoses=(dataclasses.replace(LABEL_RANGE, **changes),))


@pytest.mark.parametrize(
    "hostile", ["100%0A", "a::set-output name=x::y", "a\r\n::error::x", "\x1b]0;t\x07,:"]
)
def test_what_a_text_holds_stays_text(hostile: str) -> None:
    frame = dataclasses.replace(LABEL_RANGE.frame, file=hostile)  # type: ignore[type-var]
    text = to_github(of(title=hostile, frame=frame, evidence=(Evidence(hostile),)))
    ((level, properties, message),) = annotations(text)
    assert text.count("\n") == 1
    assert level == "error"
    assert set(properties) == {"file", "line", "title"}
    visible = hostile.replace("\x1b]0;t\x07", "").split()
    assert "".join(properties["file"].split()) == "".join(visible)
    assert all(word in message for word in visible)


def test_ten_of_a_level_are_shown_and_the_rest_counted() -> None:
    many = tuple(
        dataclasses.replace(LABEL_RANGE, severity=severity)
        for severity, number in ((Severity.FATAL, 13), (Severity.WARNING, 11), (Severity.INFO, 10))
        for _ in range(number)
    )
    text = to_github(dataclasses.replace(DIAGNOSED, diagnoses=many))
    levels = [level for level, _, _ in annotations(text)]
    assert [levels.count(level) for level in ("error", "warning", "notice")] == [10, 10, 10]
    assert text.splitlines()[-1] == "and 4 more, beyond the 10 of a level that GitHub shows"


@pytest.mark.parametrize("name", ALL)
def test_any_report_has_a_summary(name: str) -> None:
    report = ALL[name]
    assert 0 < len(step_summary(report)) <= LIMIT
    bad = [one for one in report.checks if one.verdict.value in ("fail", "warn")]
    assert len(annotations(to_github(report))) == len(report.diagnoses) + len(bad) + (
        report.outcome.value == "unrecognised"
    )
    assert all(one.id in step_summary(report) for one in (*bad, *report.not_checked))


def test_a_long_summary_ends_at_a_line() -> None:
    many = dataclasses.replace(CHECKED, not_checked=CHECKED.not_checked * 5_000)
    assert len(step_summary(many)) <= LIMIT
    assert step_summary(many).endswith("\n")


def test_explain_names_files_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, summary = tmp_path / "train.log", tmp_path / "summary.md"
    log.write_text(LOG, encoding="utf-8")
    monkeypatch.setenv("GITHUB_WORKSPACE", "/home/ann/work/p")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["explain", "--format", "github", str(log)]) == 0
    ((_, properties, message),) = annotations(capsys.readouterr().out)
    assert properties == {"file": "train.py", "line": "4", "title": "torchdoctor matmul-shape"}
    assert message.startswith("Matrix sizes do not fit: ")
    assert "train.py:4" in summary.read_text(encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "file"))
    assert main(["explain", "--format", "github", str(log)]) == 0
    assert "GITHUB_STEP_SUMMARY" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (["check", "--facts", "{facts}"], 1),
        (["gate", "--replay", "tests/gate/recorded/h100.json"], 12),
    ],
)
def test_checks(
    call: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    facts = tmp_path / "facts.json"
    facts.write_text(
        '{"torch.installed": true, "shm.size_bytes": 67108864, "torch.import_ok": false}', "utf-8"
    )
    call = [word.format(facts=facts) for word in call]
    assert main([*call, "--format", "github"]) == code
    found = annotations(capsys.readouterr().out)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert found
    for _, properties, _ in found:
        assert properties["title"].removeprefix("torchdoctor ") in summary
