"""Lines that are one JSON object: of loggers, Docker, Kaggle and the journal, and torchelastic's error file.

Loggers name the field of a traceback as they like: ``exc_info`` (python-json-logger), ``exception``
(structlog), ``error.stack_trace`` (Elastic Common Schema), ``error.stack`` (Datadog), ``thrown`` (log4j),
``stack_trace`` (Google Cloud), ``text`` (loguru). So it is told by what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from torchdoctor.intake.clean import clean
from torchdoctor.patterns import pattern

MAX_CHARS = 1 << 18
_DEPTH = 5
_HEADER = "Traceback (most recent call last)"
_SAYS = ("msg", "message", "event", "textPayload", "log", "text", "short_message", "@message", "body")
_LEVELS = ("level", "levelname", "severity", "lvl", "log.level", "status", "@level", "severityText")
_TIMES = ("ts", "time", "timestamp", "asctime", "@timestamp", "datetime", "instant", "@t")
_WORDS = {
    "err": "ERROR", "warn": "WARNING", "fatal": "CRITICAL", "alert": "CRITICAL", "emergency": "CRITICAL",
}  # fmt: skip
_OF_KAGGLE = ('[{"stream_name"', ',{"stream_name"')  # the log of a batch run: one list, an item a line
_RAISED = ("error", "exception", "exc", "err", "thrown", "exc_info", "cause")
# what a logger says of itself and of the code: never what was raised
_ABOUT = ("source", "code", "script", "command", "cmd", "prompt", "content", "messages", "query", "diff")
# the figures that tell how a run goes
_FIGURE = (
    r'"(?P<name>[\w./ -]{0,24}(?:[Ll]oss|ppl|perplexity|norm|epoch|step|iter|mem|scale)[\w./-]{0,16})" ?: ?"?'
    r'(?P<value>-?(?:\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?|[Nn]a[Nn]|Infinity|inf))"?(?=\s*[,}])'
)


def lines_of(text: str) -> list[str] | None:
    """The lines of a record as programs print them: time, level, message, traceback; None for all else."""
    if len(text) > MAX_CHARS:
        return None
    try:
        table = json.loads(text[1:].rstrip("]") if text.startswith(_OF_KAGGLE) else text, strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(table, dict):
        return None
    if "__REALTIME_TIMESTAMP" in table:
        return _of_journal(table)
    if (
        isinstance(table.get("data"), str) and "stream_name" in table
    ):  # Kaggle's, whose time counts from the start
        return _behind("", table["data"])
    if isinstance(table.get("log"), str) and ("stream" in table or "time" in table):  # Docker's json-file
        return _behind(_text(table.get("time")), table["log"])
    return _of_error_file(table) or _of_lambda(table) or _of_logger(table, text)


def _behind(lead: str, text: str) -> list[str]:
    """The lines of a text, each behind the same words."""
    lines = [line for part in text.rstrip("\n").split("\n") for line in clean(part)]
    return [f"{lead} {line}" for line in lines] if lead else lines


def _text(value: object) -> str:
    return clean(value)[0].strip() if isinstance(value, str) else ""


def _moment(value: object, per_second: int) -> str:
    from datetime import datetime, timezone

    try:
        seconds = int(str(value)) / per_second
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def _of_error_file(table: dict[str, Any]) -> list[str] | None:
    """The traceback of the file that ``@record`` writes, each line behind the time of the failure.

    Source: torch/distributed/elastic/multiprocessing/errors/error_handler.py, record_exception().
    """
    message = table.get("message")
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    trace = extra.get("py_callstack") if isinstance(extra, dict) else None
    return _behind(_moment(extra.get("timestamp"), 1), trace) if extra and isinstance(trace, str) else None


def _of_lambda(answer: dict[str, Any]) -> list[str] | None:
    """The exception that AWS Lambda answers with, as Python prints it.

    Source: awslambdaric/bootstrap.py, make_error() and build_fault_result().
    """
    kind, message, frames = (answer.get(name) for name in ("errorType", "errorMessage", "stackTrace"))
    if not isinstance(kind, str) or not isinstance(message, str):
        return None
    stack = "".join(map(str, frames)).rstrip("\n") if isinstance(frames, list) else ""
    trace = f"{_HEADER}:\n{stack}\n" if stack else ""
    return _behind("", f"{trace}{kind}: {message}")


def _of_journal(entry: dict[str, Any]) -> list[str]:
    """An entry of ``journalctl -o json`` as ``-o short-iso`` prints it."""
    message = entry.get("MESSAGE")
    if isinstance(message, list):  # bytes that are no text come as numbers
        message = bytes(n & 255 for n in message if isinstance(n, int)).decode("utf-8", "replace")
    when = _moment(entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry["__REALTIME_TIMESTAMP"], 1_000_000)
    host = entry.get("_HOSTNAME") or "localhost"
    name = entry.get("SYSLOG_IDENTIFIER") or entry.get("_COMM") or "unknown"
    pid = entry.get("_PID") or entry.get("SYSLOG_PID")
    who = "kernel" if entry.get("_TRANSPORT") == "kernel" else f"{name}[{pid}]" if pid else str(name)
    return _behind(_text(f"{when} {host} {who}:") if when else "", str(message or ""))


def _of_logger(table: dict[str, Any], text: str) -> list[str] | None:
    fields = [(name, value) for name, value in _texts(table, "", 0) if not name.endswith(_ABOUT)]
    level, when = _level(fields), _named(fields, _TIMES)
    if not pattern(r"\d{2,4}[\d:.,TZ/ +-]{6,36}$").match(when):
        when = ""
    rank = pattern(r'"(?:global_)?rank" ?: ?"?(\d{1,6})\b').search(text)
    traces = [value for _, value in fields if _HEADER in value]
    known = level or when or "ename" in table  # as a notebook keeps the error of a cell
    trace = _ended(max(traces, key=len), fields).rstrip() if traces and known else ""
    says = next((v for key in _SAYS for name, v in fields if _is(name, key) and v not in traces), "").rstrip()
    failed = level in ("ERROR", "CRITICAL")
    if trace:
        says = "" if says.strip() in trace else says
    elif not says or not (level or rank):
        return None
    elif failed:
        trace = next((v for key in _RAISED for name, v in fields if _is(name, key) and len(v) > 3), "")
    elif "\n" not in says:
        says += "".join(
            f" {one['name']}={one['value']}" for one in list(pattern(_FIGURE).finditer(text[:4_000]))[:12]
        )
    # a traceback that stands alone begins its line
    head = [when, level] if says or not trace.startswith("Traceback") else []
    body = " ".join(filter(None, (*head, "\n".join(filter(None, (says, trace))))))
    return _behind(f"[rank{rank[1]}]:" if rank else "", body)


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
