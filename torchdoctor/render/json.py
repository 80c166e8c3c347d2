"""Reports as JSON: one object a report, every key always there, null where nothing is known.

The contract is ``schema/report-1.json``. The output is ASCII: no control character, escape sequence or
bidirectional override of a log survives, whatever the terminal or the encoding of the stream.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from torchdoctor.model import Evidence, Frame, Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdoctor.model import (
        CheckResult,
        Diagnosis,
        Fact,
        FactValue,
        FirstFailure,
        Incident,
        Link,
        Moment,
        Reading,
        Run,
        Suspect,
    )

# ISO 8601 with the parts that logs write differently: "/" in dates, a blank for "T", "," before the fraction.
_TIME = (
    r"\s*(\d{4})[-/.](\d{2})[-/.](\d{2})"
    r"(?:[T ,_]+(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?\s*"
)


def to_json(report: Report) -> str:
    """One line of JSON, without the line break; the same report always gives the same text."""
    return _dump(to_dict(report))


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def to_dict(report: Report) -> dict[str, Any]:
    """The object itself: dictionaries, lists, texts, numbers, None."""
    return {
        "schema": report.schema,
        "outcome": report.outcome.value,
        "source": _texts(report.source),
        "diagnoses": [_diagnosis(item) for item in report.diagnoses],
        "suspect": _suspect(report.suspect),
        "first_failure": _first_failure(report.first_failure),
        "timeline": [_moment(item) for item in report.timeline],
        "checks": [_check(item) for item in report.checks],
        "not_checked": [{"id": item.id, "reason": _text(item.reason)} for item in report.not_checked],
        "notes": _texts(report.notes),
        "facts": [_fact(item) for item in report.facts],
        "runs": [_run(item) for item in report.runs],
        "incidents": [_incident(item) for item in report.incidents],
    }


def _run(item: Run) -> dict[str, Any]:
    return {
        "number": item.number,
        "file": _text(item.file),
        "line": item.line,
        "end_line": item.end_line,
        "started": _iso8601(item.started),
        "outcome": item.outcome.value,
        "rule": item.rule,
    }


def _incident(item: Incident) -> dict[str, Any]:
    return {
        "source": _texts(item.source),
        "outcome": item.outcome.value,
        "diagnoses": [_diagnosis(one) for one in item.diagnoses],
        "first_failure": _first_failure(item.first_failure),
        "suspect": _suspect(item.suspect),
    }


def _diagnosis(item: Diagnosis) -> dict[str, Any]:
    return {
        "rule": item.rule,
        "family": item.family,
        "title": _text(item.title),
        "severity": item.severity.value,
        "role": item.role.value,
        "standing": item.standing.value,
        "why": _text_or_null(item.why),
        "more": _text_or_null(item.more),
        "rank": item.rank,
        "frame": _frame(item.frame),
        "evidence": [_evidence(one) for one in item.evidence],
        "missing": _texts(item.missing),
        "leads_to": [_link(one) for one in item.leads_to],
        "fixes": [
            {"do": _text(fix.do), "run": _text_or_null(fix.run), "risk": fix.risk} for fix in item.fixes
        ],
        "decide_with": _text_or_null(item.decide_with),
        "decide_note": _text_or_null(item.decide_note),
        "references": _texts(item.references),
        "reasons": _texts(item.reasons),
    }


def _link(item: Link) -> dict[str, Any]:
    # ``evidence`` is a list here as well, so that the key has one shape wherever it stands.
    rank = item.rank if item.rank is not None else item.evidence.rank
    return {
        "rule": item.rule,
        "title": _text(item.title),
        "evidence": [_evidence(item.evidence)],
        "rank": rank,
    }


def _evidence(item: Evidence) -> dict[str, Any]:
    return {
        "text": _text(item.text),
        "file": _text_or_null(item.file),
        "line": item.line,
        "rank": item.rank,
        "fact": item.fact,
        "against": item.against,
    }


def _frame(item: Frame | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {
        "file": _text(item.file),
        "line": item.line,
        "function": _text_or_null(item.function),
        "code": _text_or_null(item.code),
    }


def _suspect(item: Suspect | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {
        "type": _text_or_null(item.type),
        "message": _text(item.message),
        "rank": item.rank,
        "frame": _frame(item.frame),
        "evidence": [_evidence(item.evidence)],
        "resembles": [{"rule": _text(one.rule), "title": _text(one.title)} for one in item.resembles],
        "reading": _reading(item.reading),
    }


def _reading(item: Reading | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {
        "kind": item.kind.value,
        "owner": _text_or_null(item.owner),
        "function": _text_or_null(item.function),
        "wants": _text_or_null(item.wants),
        "got": _text_or_null(item.got),
        "problem": _text_or_null(item.problem),
        "name": _text_or_null(item.name),
        "place": _text_or_null(item.place),
    }


def _first_failure(item: FirstFailure | None) -> dict[str, Any]:
    if item is None:
        return {"rank": None, "host": None, "time": None, "decided_by": None, "tie": []}
    return {
        "rank": item.rank,
        "host": _text_or_null(item.host),
        "time": _iso8601(item.time),
        "decided_by": _text_or_null(item.decided_by),
        "tie": list(item.tie),
    }


def _moment(item: Moment) -> dict[str, Any]:
    return {
        "rank": item.rank,
        "host": _text_or_null(item.host),
        "time": _iso8601(item.time),
        "role": item.role.value,
        "text": _text(item.text),
        "rule": item.rule,
        "kind": item.kind.value if item.kind is not None else None,
        "file": _text_or_null(item.file),
        "line": item.line,
    }


def _check(item: CheckResult) -> dict[str, Any]:
    return {
        "id": item.id,
        "verdict": item.verdict.value,
        "title": _text(item.title),
        "blame": item.blame.value if item.blame is not None else None,
        "observed": _text_or_null(item.observed),
        "expected": _text_or_null(item.expected),
        "threshold_source": _text_or_null(item.threshold_source),
        "evidence": [_evidence(one) for one in item.evidence],
        "action": _text_or_null(item.action),
        "reason": _text_or_null(item.reason),
        "group": _text_or_null(item.group),
    }


def _fact(item: Fact) -> dict[str, Any]:
    return {
        "name": item.name,
        "state": item.state.value,
        "value": _value(item.value),
        "reason": item.reason.value if item.reason is not None else None,
        "source": _text_or_null(item.source),
        "detail": _text_or_null(item.detail),
    }


def _value(value: FactValue) -> Any:
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no spelling for them
    return value


def _texts(values: Iterable[str]) -> list[str]:
    return [_text(value) for value in values]


def _text_or_null(value: str | None) -> str | None:
    return _text(value) if value else None


def _text(value: str) -> str:
    """The string without lone surrogates (undecodable bytes of a path), which many JSON readers refuse."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return value


def _iso8601(value: str | None) -> str | None:
    """The time in ISO 8601; null when the text is no date that can be written so without guessing."""
    if not value:
        return None
    match = re.fullmatch(_TIME, value)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    text = f"{year}-{month}-{day}"
    if hour is None:
        return text
    text += f"T{hour}:{minute}:{second or '00'}"
    if fraction:
        text += f".{fraction}"
    if zone in ("Z", "UTC", "GMT"):
        return text + "Z"
    if zone:
        return text + (zone if ":" in zone else f"{zone[:3]}:{zone[3:]}")
    return text
