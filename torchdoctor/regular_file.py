"""Files that a person names or a folder holds, and that are read whole: regular ones, up to a size."""

from __future__ import annotations

import os
import stat


def read(path: str, most_bytes: int) -> bytes:
    """The bytes of a regular file of at most ``most_bytes``. Raises OSError, as ``beginning`` does."""
    data = beginning(path, most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(0, f"is larger than {most_bytes >> 10:,} KiB")
    return data


def beginning(path: str, most_bytes: int, *, tail: bool = False) -> bytes:
    """The first bytes of a regular file, or with ``tail`` the last.

    Raises OSError where it cannot be read, where it is a pipe, device or folder (which may have no end, or
    keep us waiting).
    """
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:  # a NUL in the name
        raise OSError(0, str(error)) from None
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(0, "is no regular file")
        if tail:
            file.seek(max(0, os.fstat(number).st_size - most_bytes))
        return file.read(most_bytes)


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Is it a folder, or a link to one? A link that leads to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
