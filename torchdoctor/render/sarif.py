"""Findings as SARIF 2.1.0, for code scanning.

The format is that of https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
"""

from __future__ import annotations

import json
import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from torchdoctor.model import Severity

if TYPE_CHECKING:
    from torchdoctor.model import Diagnosis, Frame, Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.FATAL: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def to_sarif(report: Report, version: str) -> str:
    """The report as one run of SARIF, in ASCII. ``version`` is that of torchdoctor."""
    rules: dict[str, Diagnosis] = {}
    for item in report.diagnoses:
        rules.setdefault(item.rule, item)
    numbers = {id_: number for number, id_ in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "torchdoctor",
                "semanticVersion": version,
                "rules": [_rule(item) for item in rules.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.faults,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": _text(note)}} for note in report.notes
                ],
            }
        ],
        "results": [_result(item, numbers[item.rule]) for item in report.diagnoses],
    }
    whole = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(whole, ensure_ascii=True, allow_nan=False, indent=1)


def _rule(item: Diagnosis) -> dict[str, Any]:
    help_ = " ".join(fix.do for fix in item.fixes)
    return {
        "id": item.rule,
        "shortDescription": {"text": _text(item.title)},
        "fullDescription": {"text": _text(item.why or item.title)},
        "help": {"text": _text(help_ or item.title)},
        "defaultConfiguration": {"level": _LEVELS[item.severity]},
        "properties": {"tags": [item.family]},
    }


def _result(item: Diagnosis, number: int) -> dict[str, Any]:
    says = "; ".join(one.text for one in item.evidence) or item.title
    found: dict[str, Any] = {
        "ruleId": item.rule,
        "ruleIndex": number,
        "level": _LEVELS[item.severity],
        "message": {"text": _text(f"{item.title}: {says}")},
    }
    if item.frame is not None:
        found["locations"] = [{"physicalLocation": _location(item.frame)}]
    return found


def _location(frame: Frame) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": frame.line or 1}
    if frame.column:
        region["startColumn"] = frame.column
    if frame.end_line and frame.end_column:
        region["endLine"], region["endColumn"] = frame.end_line, frame.end_column
    if frame.code:
        region["snippet"] = {"text": _text(frame.code)}
    return {"artifactLocation": {"uri": _uri(frame.file)}, "region": region}


def _uri(path: str) -> str:
    """A path as a relative reference, or as a file URI where it is absolute."""
    if os.path.isabs(path):
        return PurePath(_text(path)).as_uri()
    plain = os.path.normpath(_text(path)).replace(os.sep, "/")
    return quote(plain) if plain != "-" else "stdin"


def _text(value: str) -> str:
    """Without lone surrogates, which many readers of JSON refuse."""
    return value.encode("utf-8", "replace").decode("utf-8")
