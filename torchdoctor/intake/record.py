"""Log records that are one JSON object a line, with a traceback in one of their fields.

Loggers name the field as they like: ``exc_info`` (python-json-logger), ``exception`` (structlog),
``error.stack_trace`` (Elastic Common Schema), ``error.stack`` (Datadog), ``thrown`` (log4j), ``stack_trace``
(Google Cloud), ``text`` (loguru). So it is told by what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_CHARS = 1 << 18
_DEPTH = 5
_HEADER = "Traceback (most recent call last)"
_SAYS = ("msg", "message", "event", "textPayload", "log", "text", "short_message", "@message", "body")
_LEVELS = ("level", "levelname", "severity", "lvl", "log.level", "status", "@level", "severityText")
_TIMES = ("ts", "time", "timestamp", "asctime", "@timestamp", "datetime", "instant", "@t")
_WORDS = {
    "err": "ERROR", "warn": "WARNING", "fatal": "CRITICAL", "alert": "CRITICAL", "emergency": "CRITICAL",
}  # fmt: skip
_RAISED = ("error", "exception", "exc", "err", "thrown", "exc_info")
# what a logger says of itself and of the code: never what was raised
_ABOUT = ("source", "code", "script", "command", "cmd", "prompt", "content", "messages", "query", "diff")


def traced(text: str) -> tuple[str, str, str, str] | None:
    """(time, level, message, traceback) of a record that holds a traceback; None for all else."""
    if len(text) > MAX_CHARS or _HEADER not in text:
        return None
    table = _table(text)
    if table is None:
        return None
    fields = [(name, value) for name, value in _texts(table, "", 0) if not name.endswith(_ABOUT)]
    traces = [value for _, value in fields if _HEADER in value]
    level = _level(fields)
    if not traces or not (level or _named(fields, _TIMES)):
        return None
    trace = max(traces, key=len)
    says = next((value for key in _SAYS for name, value in fields if _is(name, key) and value != trace), "")
    if says and says.strip() in trace:
        says = ""
    when = _named(fields, _TIMES)
    return when if when[:4].isdecimal() else "", level, says, _ended(trace, fields)


def _table(text: str) -> dict[str, Any] | None:
    import json

    try:
        table = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _cut_short(text)
    return table if isinstance(table, dict) else None


def _cut_short(text: str) -> dict[str, Any] | None:
    """A record whose end was cut off inside of its last text."""
    import json

    for end in ('"}', '"}}', '"}}}'):
        try:
            table = json.loads(text.rstrip().rstrip("\\.\u2026") + end, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(table, dict):
            return table
    return None


def _texts(value: object, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict) and depth < _DEPTH:
        for key, inner in value.items():
            yield from _texts(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        yield name, "".join(part if part.endswith("\n") else f"{part}\n" for part in value)
    elif isinstance(value, list) and depth < _DEPTH:
        for inner in value[:8]:
            yield from _texts(inner, name, depth + 1)


def _is(name: str, key: str) -> bool:
    return name == key or name.rpartition(".")[2] == key


def _named(fields: list[tuple[str, str]], keys: tuple[str, ...]) -> str:
    return next((value for key in keys for name, value in fields if _is(name, key)), "")


def _level(fields: list[tuple[str, str]]) -> str:
    found = _named(fields, _LEVELS) or next(
        (value for name, value in fields if name.endswith(("level.name", "level.label"))), ""
    )
    word = found.strip().lower()
    return _WORDS.get(word, word.upper()) if 3 <= len(word) <= 9 and word.isalpha() else ""


def _ended(trace: str, fields: list[tuple[str, str]]) -> str:
    """The traceback; the exception from fields of its own where the traceback ends with a frame."""
    last = trace.rstrip().rpartition("\n")[2]
    if last[:1] not in (" ", "\t"):
        return trace
    kind = next((v for k in ("type", "name", "class", "kind") for n, v in fields if _error(n, k)), "")
    said = next((v for k in ("message", "msg", "value") for n, v in fields if _error(n, k)), "")
    if not kind.replace(".", "_").isidentifier():
        return trace
    return f"{trace.rstrip()}\n{kind}: {said}" if said else f"{trace.rstrip()}\n{kind}"


def _error(name: str, key: str) -> bool:
    parent, _, last = name.rpartition(".")
    return last == key and parent.rpartition(".")[2] in _RAISED
