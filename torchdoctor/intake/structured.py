"""Inputs that are data instead of lines: flight records of torch, and dumps of py-spy in JSON."""

from __future__ import annotations

from collections.abc import Callable
from io import BufferedReader
from typing import BinaryIO

from torchdoctor.intake.source import Resumed, Tally
from torchdoctor.model import Transcript

HEAD = 4096
_PIECE = 1 << 20


def is_notebook(file: BinaryIO) -> bool:
    """Does it begin as Jupyter writes notebooks, whatever its name?"""
    try:
        head = file.peek(HEAD)[:HEAD] if isinstance(file, BufferedReader) else b""
    except OSError:  # its reader says so
        return False
    return head[:1] == b"{" and head[1:].lstrip().startswith(b'"cells"') and b'"cell_type"' in head


class Damaged:
    """A stream that cannot be read, which its reader shall say."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def read(self, size: int) -> bytes:
        raise self._error


def gathered(
    file: BinaryIO, most_bytes: int, tally: Tally, change: Callable[[bytes], bytes] = bytes
) -> bytes:
    """The bytes of a file that must be parsed whole, each piece changed, up to a little more than a limit.

    Where it cannot be read on, a note says so.
    """
    parts: list[bytes] = []
    size = 0
    while size <= most_bytes:
        try:
            data = file.read(_PIECE)
        except (OSError, ValueError) as error:
            tally.notes.append(f"reading stopped: {getattr(error, 'strerror', None) or error}")
            break
        if not data:
            break
        parts.append(change(data))
        size += len(parts[-1])
    return b"".join(parts)


def structured(file: BinaryIO, name: str, tally: Tally) -> Transcript | BinaryIO:
    """The events of a structured input, else a file with the same bytes for the reader of lines.

    Raises IntakeError for a pickle that is no flight record or holds more than plain data.
    """
    try:
        head = (file.peek(HEAD) or b"")[:HEAD] if isinstance(file, BufferedReader) else b""
    except OSError as error:
        return Damaged(error)  # type: ignore[return-value]
    if not head and not hasattr(file, "fileno"):  # out of an archive
        try:
            head = file.read(HEAD)
        except OSError as error:
            return Damaged(error)  # type: ignore[return-value]
        file = Resumed(head, file)  # type: ignore[assignment]
    # most logs that begin with a bracket begin with a rank: what reads the rest is not even imported for them
    if head[:1] not in (b"\x80", b"{") and not (head[:1] == b"[" and b'"frames"' in head):
        return file
    from torchdoctor.intake import flight, spy_json

    if head[:1] == b"[":
        if not spy_json.is_spy(head):
            return file
        data = gathered(file, flight.MAX_BYTES, tally)
        found = spy_json.threads_of(data, name)
    elif flight.is_record(head):
        data = gathered(file, flight.MAX_BYTES, tally)
        found = flight.read_record(data, name)
    else:
        return file
    return found if found is not None else Resumed(data, file)  # type: ignore[return-value]
