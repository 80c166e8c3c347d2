"""JUnit XML of check, selftest and gate, read by junitparser and held against a schema."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from printed import Printed
from sample_reports import CHECKED

from torchdoctor.model import CheckResult, Outcome, Report, Verdict
from torchdoctor.render.junit import to_junit

junitparser = pytest.importorskip("junitparser")
xmlschema = pytest.importorskip("xmlschema")

ROOT = Path(__file__).parents[2]
SCHEMA = xmlschema.XMLSchema(str(ROOT / "tests" / "junit.xsd"))


@pytest.mark.parametrize(
    ("call", "code", "some"),
    [
        (["check", "--facts", "fixtures/machines/laptop-cpu.json"], 0, ("torch-import", "")),
        (["selftest", "--device", "cpu", "--only", "gemm-exact"], 0, ("gemm-exact@cpu", "")),
        (["gate", "--replay", "tests/gate/recorded/h100.json"], 12, ("verdict", "skipped")),
    ],
)
def test_commands(
    call: list[str], code: int, some: tuple[str, str], printed: Printed,
    monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    text = printed([*call, "--format", "junit"], code)
    SCHEMA.validate(text)
    (suite,) = junitparser.JUnitXml.fromstring(text.encode())
    assert suite.name == f"torchdoctor.{call[0]}"
    results = {case.name: [type(one).__name__.lower() for one in case.result] for case in suite}
    assert len(results) == suite.tests
    assert "".join(results[some[0]]) == some[1]


def test_every_kind_of_result_with_hostile_texts() -> None:
    fault = "Trace\n<b>&\x1b[31m\x00\ufffe]]>"
    checks = tuple(CheckResult(f"{one.value}]]>", one, "a & b", action="<do>") for one in Verdict)
    report = Report(Outcome.DIAGNOSED, checks=checks, not_checked=CHECKED.not_checked, faults=(fault,))
    text = to_junit(report, 'a"<suite>')
    SCHEMA.validate(text)
    (suite,) = junitparser.JUnitXml.fromfile(io.BytesIO(text.encode()))
    assert suite.name == 'a"<suite>'
    kinds = {case.name: [type(one).__name__ for one in case.result] for case in suite}
    assert kinds == {
        "pass]]>": [],
        "warn]]>": [],
        "fail]]>": ["Failure"],
        "unknown]]>": ["Skipped"],
        "skip]]>": ["Skipped"],
        "torchdoctor": ["Error"],
        **{one.id: ["Skipped"] for one in CHECKED.not_checked},
    }
    assert (suite.failures, suite.errors, suite.skipped) == (1, 1, 2 + len(CHECKED.not_checked))
    outputs = {case.name: case.system_out for case in suite}
    assert outputs["warn]]>"] == "warning: a & b\nDo: <do>"
