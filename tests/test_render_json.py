"""The JSON of a report: the contract of schema/report-1.json."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from typing import Any

import jsonschema
import pytest
import sample_reports

from torchdoctor.model import Evidence, Fact, FirstFailure, Frame, Outcome, Report
from torchdoctor.render.json import to_json

SCHEMA = json.loads(resources.files("torchdoctor").joinpath("schema/report-1.json").read_text("utf-8"))


def strict(schema: Any) -> Any:
    """The schema with every object closed, so that a key that it does not name is found."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if closed.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


@pytest.mark.parametrize("name", sample_reports.ALL)
def test_report_keeps_the_schema(name: str) -> None:
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(json.loads(to_json(sample_reports.ALL[name])))


def test_schema_is_valid_and_every_property_is_required() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for node in (SCHEMA, *SCHEMA["$defs"].values()):
        if node.get("type") == "object":
            assert node["required"] == list(node["properties"])


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "fine"},
        {"schema": "torchdoctor.report/2"},
        {"notes": None},
        {"first_failure": {"rank": 0}},
    ],
)
def test_schema_refuses(change: dict[str, object]) -> None:
    data = json.loads(to_json(sample_reports.DIAGNOSED)) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)


def test_the_fields_that_others_rely_on() -> None:
    data = json.loads(to_json(sample_reports.DIAGNOSED))
    assert data["source"] == ["train.log"]
    assert data["outcome"] == "diagnosed"
    first = data["diagnoses"][0]
    assert first["rule"] == "cuda-assert-label-range"
    assert (first["severity"], first["role"], first["standing"]) == ("fatal", "cause", "confirmed")
    assert first["rank"] == 3
    assert first["frame"] == {
        "file": "/home/me/project/train.py",
        "line": 22,
        "function": "training_step",
        "code": "    loss = F.cross_entropy(logits, labels)",
    }
    assert first["evidence"][0] == {
        "text": sample_reports.ASSERT_LINE,
        "file": "train.log",
        "line": 812,
        "rank": 3,
        "fact": None,
        "against": False,
    }
    assert [item["rule"] for item in first["leads_to"]] == ["cuda-assert-other", "nccl-timeout"]
    assert first["leads_to"][1]["rank"] == 0
    assert first["leads_to"][1]["evidence"][0]["line"] == 1990
    assert first["fixes"][0]["run"] is None
    assert first["decide_with"] == "CUDA_LAUNCH_BLOCKING=1 python train.py"
    assert (first["more"], first["decide_note"]) == (None, None)
    assert data["first_failure"] == {
        "rank": 3,
        "host": "node12",
        "time": "2026-05-01T12:00:01.250+02:00",
        "decided_by": "time stamps",
        "tie": [],
    }


def test_unknown_is_null_and_the_key_stays() -> None:
    data = json.loads(to_json(Report(Outcome.NO_FAILURE)))
    assert data["suspect"] is None
    assert data["first_failure"] == {"rank": None, "host": None, "time": None, "decided_by": None, "tie": []}
    assert data["diagnoses"] == data["checks"] == data["notes"] == data["source"] == []


def test_one_line_of_ascii_whatever_stands_in_the_log() -> None:
    text = "\x1b[31mred\x1b[0m\nline\u2028two \u202egnirts 没有 \x9b2J \udce9 \U0001f600"
    report = Report(Outcome.UNREADABLE, ("bad\udce9.log",), notes=(text,))
    line = to_json(report)
    assert line.isascii()
    assert line.isprintable()
    data = json.loads(line)
    assert data["notes"] == [text.replace("\udce9", "\ufffd")]
    assert data["source"] == ["bad\ufffd.log"]


def test_the_same_report_gives_the_same_text() -> None:
    assert to_json(sample_reports.DIAGNOSED) == to_json(replace(sample_reports.DIAGNOSED))


def test_numbers_that_json_lacks() -> None:
    facts = (Fact.known("a", float("inf")), Fact.known("b", (1, float("nan"))))
    values = [fact["value"] for fact in json.loads(to_json(Report(Outcome.NO_FAILURE, facts=facts)))["facts"]]
    assert values == ["inf", [1, "nan"]]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-05-01T12:00:01", "2026-05-01T12:00:01"),
        ("2026-05-01 12:00:01,123", "2026-05-01T12:00:01.123"),
        ("2026/05/01 12:00", "2026-05-01T12:00:00"),
        ("2026-05-01T12:00:01.5Z", "2026-05-01T12:00:01.5Z"),
        ("2026-05-01T12:00:01 UTC", "2026-05-01T12:00:01Z"),
        ("2026-05-01 12:00:01 +0200", "2026-05-01T12:00:01+02:00"),
        ("2026-05-01", "2026-05-01"),
        ("yesterday", None),
        ("--11-27T23:47:16.6449", None),
        ("12:00:01", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_iso_8601(written: str | None, expected: str | None) -> None:
    report = Report(Outcome.UNRECOGNISED, first_failure=FirstFailure(0, None, written, "time stamps"))
    data = json.loads(to_json(report))
    assert data["first_failure"]["time"] == expected
    jsonschema.validate(data, SCHEMA)


def test_a_frame_without_line_or_code() -> None:
    diagnosis = replace(sample_reports.LABEL_RANGE, frame=Frame("a.py", None, ""), evidence=(Evidence("x"),))
    (first,) = json.loads(to_json(Report(Outcome.DIAGNOSED, (), (diagnosis,))))["diagnoses"]
    assert first["frame"] == {"file": "a.py", "line": None, "function": None, "code": None}
    assert first["evidence"][0]["file"] is None
