"""Inputs that are data instead of lines: flight records of torch, and dumps of py-spy in JSON."""

from __future__ import annotations

from io import BufferedReader, BytesIO
from typing import BinaryIO

from torchdoctor.intake.source import Resumed, Tally, piece, start
from torchdoctor.model import Transcript

HEAD = 4096


def _peek(file: BinaryIO) -> bytes:
    try:
        return file.peek(HEAD)[:HEAD] if isinstance(file, BufferedReader) else b""
    except OSError:  # its reader says so
        return b""


def is_notebook(file: BinaryIO) -> bool:
    """Does it begin as Jupyter writes notebooks, whatever its name?"""
    head = _peek(file)
    return head[:1] == b"{" and head[1:].lstrip().startswith(b'"cells"') and b'"cell_type"' in head


def structured(file: BinaryIO, name: str, tally: Tally) -> Transcript | BinaryIO:
    """The events of a structured input, else a file with the same bytes for the reader of lines.

    Raises IntakeError for a pickle that is no flight record or holds more than plain data.
    """
    head = _peek(file)
    if not head and not hasattr(file, "fileno"):  # out of an archive
        head = piece(file, HEAD, tally)
        if not head:
            return BytesIO()
        file = Resumed(head, file)  # type: ignore[assignment]
    # most logs that begin with a bracket begin with a rank: what reads the rest is not even imported for them
    if head[:1] not in (b"\x80", b"{") and not (head[:1] == b"[" and b'"frames"' in head):
        return file
    from torchdoctor.intake import flight, spy_json

    if head[:1] == b"[":
        if not spy_json.is_spy(head):
            return file
        data = start(file, flight.MAX_BYTES + 1, tally)
        found = spy_json.threads_of(data, name)
    elif flight.is_record(head):
        data = start(file, flight.MAX_BYTES + 1, tally)
        found = flight.read_record(data, name)
    else:
        return file
    return found if found is not None else Resumed(data, file)  # type: ignore[return-value]
