"""Saved notebooks: the outputs of their cells, as the lines of a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO, cast

from torchdoctor import json_text
from torchdoctor.intake.source import Resumed, Tally, start

# A notebook must be parsed whole; one beyond this, pictures not counted, is read as plain text instead.
NOTEBOOK_BYTES = 24 << 20
# pictures in base64; what is before the run may be an escape that ends in its first characters
_PICTURE = re.compile(rb"(?<![A-Za-z0-9+/=])([A-Za-z0-9+/=]{8})[A-Za-z0-9+/=]{4096,}")
_SOURCE_CHARS = 4_000  # of one cell
_SOURCES_CHARS = 200_000  # of all


def cell_outputs(file: BinaryIO, tally: Tally) -> BinaryIO:
    """All text outputs and tracebacks in the order of the cells, as a file of lines.

    A file that is no notebook, or one of too many values, comes back with the same text, pictures left out.
    """
    raw = start(file, NOTEBOOK_BYTES + 1, tally, _without_pictures)
    try:
        book = json_text.parse(raw) if len(raw) <= NOTEBOOK_BYTES else None
    except json_text.JsonTooLarge as error:
        tally.notes.append(f"looks like a notebook, but {error}: read as plain text")
        book = None
    except json_text.JsonRefused:
        book = None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        return cast("BinaryIO", Resumed(raw, file))
    tally.notes.append("read as a notebook: line numbers count the lines of its outputs")
    del raw, book
    return BytesIO(b"".join(_texts(cells)))


def _without_pictures(data: bytes) -> bytes:
    return _PICTURE.sub(rb"\1", data)


def _texts(cells: list[object]) -> Iterator[bytes]:
    caught = _caught(cells)
    for at, cell in enumerate(cells):
        for text in _cell_texts(cell, at in caught):
            yield f"{text}\n".encode("utf-8", "replace")


def _outputs(cell: object) -> list[object]:
    outputs = cell.get("outputs") if isinstance(cell, dict) else None
    return outputs if isinstance(outputs, list) else []


def _caught(cells: list[object]) -> frozenset[int]:
    """Cells that print an exception which they catch, where no cell failed and others ran on."""
    ran = [at for at, cell in enumerate(cells) if _outputs(cell)]
    for at in ran:
        if any(isinstance(one, dict) and one.get("output_type") == "error" for one in _outputs(cells[at])):
            return frozenset()
    from torchdoctor.patterns import pattern

    handler = pattern(
        r"except\b[^\n:]{0,120}\bas (\w{1,40})\s*:[^\n]{0,80}(?:\n[ \t][^\n]{0,200}){0,3}?"
        r"\bprint\([^\n]{0,160}\b\1\b"
    )
    found: set[int] = set()
    left = _SOURCES_CHARS
    for at in ran[:-1]:
        cell = cells[at]
        source = _joined(cell.get("source"))[:_SOURCE_CHARS] if isinstance(cell, dict) else ""
        left -= len(source)
        if left > 0 and handler.search(source):
            found.add(at)
    return frozenset(found)


def _cell_texts(cell: object, caught: bool) -> Iterator[str]:
    for output in _outputs(cell):
        if not isinstance(output, dict):
            continue
        trace = output.get("traceback")
        if output.get("output_type") == "error" and isinstance(trace, list):
            text = "\n".join(part for part in trace if isinstance(part, str))
        elif "text" in output:
            text = _joined(output["text"])
        else:
            data = output.get("data")
            text = _joined(data.get("text/plain")) if isinstance(data, dict) else ""
        text = text.rstrip("\n")
        if caught and output.get("output_type") == "stream" and "Traceback (most" not in text:
            text = ">>> # " + text.replace("\n", "\n>>> # ")  # as what was typed: the run continued after it
        yield text


def _joined(text: object) -> str:
    """A text of a notebook, which may be kept as a list of its lines; "" for what is none."""
    if isinstance(text, list):
        return "".join(part for part in text if isinstance(part, str))
    return text if isinstance(text, str) else ""
