"""Saved notebooks: the outputs of their cells, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.intake.source import Tally

# A notebook must be parsed whole; one beyond this is read as plain text instead.
NOTEBOOK_BYTES = 64 << 20


def cell_outputs(file: BinaryIO, tally: Tally) -> Iterator[tuple[int, str, bool]]:
    """Lines of all text outputs and tracebacks, in the order of the cells, as (number, text, joined).

    Numbers count the lines of the outputs, not of the JSON. A file that is no notebook is read as text.
    """
    import json

    raw = file.read(NOTEBOOK_BYTES + 1)
    tally.bytes += len(raw)
    try:
        book = json.loads(raw) if len(raw) <= NOTEBOOK_BYTES else None
    except (ValueError, RecursionError):
        book = None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        lines = raw.decode("utf-8", "replace").split("\n")
    else:
        tally.notes.append("read as a notebook: line numbers count the lines of its outputs")
        lines = []
        for cell in cells:
            lines.extend(_cell_lines(cell))
    for number, line in enumerate(lines, 1):
        for start in range(0, max(1, len(line)), 4096):
            yield number, line[start : start + 4096], start > 0
    tally.lines += len(lines)


def _cell_lines(cell: object) -> Iterator[str]:
    outputs = cell.get("outputs") if isinstance(cell, dict) else None
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        if output.get("output_type") == "error" and isinstance(output.get("traceback"), list):
            text = "\n".join(str(part) for part in output["traceback"])
        elif "text" in output:
            text = _joined(output["text"])
        else:
            data = output.get("data")
            text = _joined(data.get("text/plain", "")) if isinstance(data, dict) else ""
        yield from text.rstrip("\n").split("\n")


def _joined(text: object) -> str:
    return "".join(str(part) for part in text) if isinstance(text, list) else str(text)
