"""Logs inside of another format: a JSON string, torchelastic's error file, the journal of systemd.

Each becomes plain lines before anything else looks at it; line numbers then count these lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

# A document that must be parsed whole; a bigger one is read as it stands.
DOCUMENT_BYTES = 16 << 20
_ENTRY_BYTES = 1 << 20  # of one journal entry


class Form(NamedTuple):
    """How to get the lines out of the bytes, and what the format is called."""

    name: str
    lines: Callable[[Iterator[bytes]], Iterator[bytes]]


def form_of(head: bytes, whole: bool) -> Form | None:
    """The format of an input by its beginning; ``whole``: there is no more of it than this."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b'"' and whole and b"\\n" in head:
        text = _parsed(head)
        if isinstance(text, str):
            return Form("a JSON string", lambda _: iter([text.encode("utf-8", "replace")]))
    if start == b"{":
        if b'"py_callstack"' in head and whole:
            report = _error_file(_parsed(head))
            if report is not None:
                return Form("an error file of torchelastic", lambda _: iter([report]))
        first = head.lstrip().partition(b"\n")[0]
        if b'"__REALTIME_TIMESTAMP"' in first:
            return Form("a journal in JSON", _from_json)
        if first.strip() == b"{" and b'"__REALTIME_TIMESTAMP"' in head:  # journalctl -o json-pretty
            return Form("a journal in JSON", lambda read: _from_json(_one_a_line(read)))
    if head.startswith((b"__CURSOR=", b"__REALTIME_TIMESTAMP=")):
        return Form("a journal export", _from_export)
    return None


def _parsed(data: bytes) -> Any:
    import json

    if len(data) > DOCUMENT_BYTES:
        return None
    try:
        return json.loads(data.decode("utf-8-sig", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _error_file(table: Any) -> bytes | None:
    """The traceback of the file that ``@record`` writes, each line behind the time of the failure.

    Source: torch/distributed/elastic/multiprocessing/errors/error_handler.py, record_exception().
    """
    message = table.get("message") if isinstance(table, dict) else None
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    trace = extra.get("py_callstack") if isinstance(extra, dict) else None
    if not isinstance(trace, str) or not isinstance(extra, dict):
        return None
    when = _time(extra.get("timestamp"), 1)
    lines = trace.rstrip("\n").split("\n")
    return "".join(f"{when} {line}\n" if when else f"{line}\n" for line in lines).encode("utf-8", "replace")


def _time(value: object, per_second: int) -> str:
    from datetime import datetime, timezone

    try:
        seconds = int(str(value)) / per_second
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def _physical(read: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream, without their ends; what is longer than an entry may be is cut."""
    rest = b""
    for data in read:
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        yield from lines
        if len(rest) > 2 * _ENTRY_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest


def _one_a_line(read: Iterable[bytes]) -> Iterator[bytes]:
    """Entries that stand over several lines, each brought onto one."""
    entry: list[bytes] = []
    size = 0
    for line in _physical(read):
        entry.append(line.strip())
        size += len(line)
        if line.rstrip() == b"}" or size > _ENTRY_BYTES:
            yield b" ".join(entry) + b"\n"
            entry, size = [], 0
    if entry:
        yield b" ".join(entry) + b"\n"


def _from_json(read: Iterator[bytes]) -> Iterator[bytes]:
    import json

    for line in _physical(read):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        yield _rendered(entry) if isinstance(entry, dict) else line + b"\n"


def _rendered(entry: dict[str, Any]) -> bytes:
    """An entry as ``journalctl -o short-iso`` prints it."""
    message = entry.get("MESSAGE")
    if isinstance(message, list):  # bytes that are no text come as numbers
        message = bytes(n & 255 for n in message if isinstance(n, int)).decode("utf-8", "replace")
    when = _time(entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry.get("__REALTIME_TIMESTAMP"), 1_000_000)
    host = entry.get("_HOSTNAME") or "localhost"
    name = entry.get("SYSLOG_IDENTIFIER") or entry.get("_COMM") or "unknown"
    pid = entry.get("_PID") or entry.get("SYSLOG_PID")
    who = "kernel" if entry.get("_TRANSPORT") == "kernel" else f"{name}[{pid}]" if pid else str(name)
    lead = f"{when} {host} {who}: " if when else ""
    lines = str(message or "").rstrip("\n").split("\n")
    return "".join(f"{lead}{line}\n" for line in lines).encode("utf-8", "replace")


def _from_export(read: Iterator[bytes]) -> Iterator[bytes]:
    """Source: systemd.io/JOURNAL_EXPORT_FORMATS: NAME=text, or NAME, a length of 8 bytes, then the data."""
    entry: dict[str, Any] = {}
    size = 0
    buffer = _Buffer(read)
    while True:
        line = buffer.line()
        if line is None or not line:
            if entry:
                yield _rendered(entry)
            if line is None:
                return
            entry, size = {}, 0
            continue
        name, equals, value = line.partition(b"=")
        if not equals:
            length = int.from_bytes(buffer.take(8), "little")
            if length > 64 * _ENTRY_BYTES:
                yield b"a field of the journal is damaged; what follows it cannot be read\n"
                return
            value = buffer.take(length)
            buffer.take(1)
        size += len(value)
        if size <= _ENTRY_BYTES:
            entry[name.decode("ascii", "replace")] = value.decode("utf-8", "replace")


class _Buffer:
    """Bytes taken by line or by number from a stream of chunks."""

    def __init__(self, read: Iterator[bytes]) -> None:
        self.read = read
        self.data = b""
        self.at = 0

    def _more(self) -> bool:
        more = next(self.read, b"")
        self.data = self.data[self.at :] + more
        self.at = 0
        return bool(more)

    def line(self) -> bytes | None:
        """The next line without its end; None behind the last one."""
        while True:
            end = self.data.find(b"\n", self.at)
            if end >= 0:
                line, self.at = self.data[self.at : end], end + 1
                return line
            if len(self.data) - self.at > 2 * _ENTRY_BYTES or not self._more():
                line, self.at = self.data[self.at :], len(self.data)
                return line or None

    def take(self, count: int) -> bytes:
        while len(self.data) - self.at < count and self._more():
            pass
        data = self.data[self.at : self.at + count]
        self.at += len(data)
        return data


class Lines:
    """The lines of a wrapped log in the form of a file."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.lines = lines
        self.rest = b""

    def read(self, size: int = -1) -> bytes:
        if self.rest:
            data, self.rest = self.rest[:size], self.rest[size:]
            return data
        parts: list[bytes] = []
        left = size
        while left > 0:
            line = next(self.lines, b"")
            if not line:
                break
            parts.append(line)
            left -= len(line)
        data = b"".join(parts)
        data, self.rest = data[:size], data[size:]
        return data
