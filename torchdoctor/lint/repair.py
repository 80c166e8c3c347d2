"""Safe repairs: the edits of findings, put into the text."""

from __future__ import annotations

import codecs
import difflib
import os
import tempfile
from typing import TYPE_CHECKING

from torchdoctor.lint.examine import Result, examine
from torchdoctor.lint.sources import Broken, Source, parse
from torchdoctor.model import TorchdoctorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.lint.finding import Edit, Finding

_PASSES = 8  # one repair may make room for another


class UnwritableSource(TorchdoctorError):
    """A file whose repair cannot be written."""


def repaired(source: Source, ids: frozenset[str]) -> tuple[Source, Result]:
    """The source with every safe repair made, and what remains to be found in it."""
    result = examine(source, ids)
    if source.notebook:
        return source, result
    for _ in range(_PASSES):
        changed = _pass(source, result.findings)
        if changed is None:
            break
        source = changed
        result = examine(source, ids)
    return source, result


def _pass(source: Source, findings: Sequence[Finding]) -> Source | None:
    """The source after one round of edits that do not touch each other; None where nothing changes."""
    taken: list[Edit] = []
    for finding in findings:
        if finding.edits and not any(_touch(one, other) for one in finding.edits for other in taken):
            taken += finding.edits
    if not taken:
        return None
    changed = Source(source.path, apply(source, taken))
    if changed.text == source.text or isinstance(parse(changed), Broken):
        return None  # better no repair than a broken file
    return changed


def _touch(a: Edit, b: Edit) -> bool:
    return (a.line, a.column) <= (b.end_line, b.end_column) and (b.line, b.column) <= (
        a.end_line,
        a.end_column,
    )


def apply(source: Source, edits: Sequence[Edit]) -> str:
    """The text with the edits made; all else stays as it is, byte for byte."""
    starts = _line_starts(source.text)
    raw = source.text.encode("utf-8", "surrogatepass")
    ordered = sorted(edits, key=lambda one: (one.line, one.column), reverse=True)
    for one in ordered:
        begin = starts[one.line - 1] + one.column
        end = starts[one.end_line - 1] + one.end_column
        raw = raw[:begin] + one.text.encode("utf-8") + raw[end:]
    return raw.decode("utf-8", "surrogatepass")


def _line_starts(text: str) -> list[int]:
    """Where each line begins, in bytes of UTF-8."""
    raw = text.encode("utf-8", "surrogatepass")
    starts = [0]
    at = 0
    while at < len(raw):
        if raw[at] == 0x0D and raw[at + 1 : at + 2] == b"\n":
            at += 1
        if raw[at] in (0x0A, 0x0D):
            starts.append(at + 1)
        at += 1
    return starts


def difference(before: Source, after: Source) -> str:
    """The change as a unified diff."""
    lines = difflib.unified_diff(
        before.text.splitlines(True), after.text.splitlines(True), before.path, before.path
    )
    return "".join(one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n" for one in lines)


def write(path: str, before: bytes, after: Source) -> None:
    """Put the repaired text in the place of the file, whole or not at all, in the encoding that it had.

    Raises UnwritableSource.
    """
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
    text = after.text.encode("utf-8-sig" if before.startswith(codecs.BOM_UTF8) else encoding)
    target = os.path.realpath(path)
    try:
        number, made = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".torchdoctor-")
    except OSError as error:
        raise UnwritableSource(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with os.fdopen(number, "wb") as file:
            file.write(text)
        os.chmod(made, os.stat(target).st_mode & 0o7777)
        os.replace(made, target)
    except OSError as error:
        raise UnwritableSource(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if os.path.exists(made):
            os.unlink(made)
