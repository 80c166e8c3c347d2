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
        caught = _caught(cells)
        for at, cell in enumerate(cells):
            lines.extend(_cell_lines(cell, at in caught))
    for number, line in enumerate(lines, 1):
        for start in range(0, max(1, len(line)), 4096):
            yield number, line[start : start + 4096], start > 0
    tally.lines += len(lines)


def _caught(cells: list[object]) -> frozenset[int]:
    """Cells that print an exception which they catch, where no cell failed and others ran on."""
    ran = [at for at, cell in enumerate(cells) if isinstance(cell, dict) and cell.get("outputs")]
    for at in ran:
        outputs = cells[at]["outputs"]  # type: ignore[index]
        if any(isinstance(one, dict) and one.get("output_type") == "error" for one in outputs):
            return frozenset()
    from torchdoctor.intake.draft import pattern

    handler = pattern(
        r"except\b[^\n:]{0,120}\bas (\w{1,40})\s*:[^\n]{0,80}(?:\n[ \t][^\n]{0,200}){0,3}?"
        r"\bprint\([^\n]{0,160}\b\1\b"
    )
    return frozenset(at for at in ran[:-1] if handler.search(_joined(cells[at].get("source", ""))))  # type: ignore[attr-defined]


def _cell_lines(cell: object, caught: bool) -> Iterator[str]:
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
        shown = text.rstrip("\n").split("\n")
        if caught and output.get("output_type") == "stream" and "Traceback (most" not in text:
            shown = [f">>> # {line}" for line in shown]  # as what was typed: the run went on after it
        yield from shown


def _joined(text: object) -> str:
    return "".join(str(part) for part in text) if isinstance(text, list) else str(text)
