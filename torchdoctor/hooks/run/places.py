"""Where the report and the bundle go, looked at before the command starts."""

from __future__ import annotations

import os

from torchdoctor.model import TorchdoctorError


class SaveError(TorchdoctorError):
    """A place that nothing can be written to."""


def check(file: str | None, folder: str | None) -> None:
    """Raises SaveError when the report or the bundle could not be written, before the command starts."""
    if file is not None:
        above = os.path.dirname(file) or "."
        if os.path.isdir(file) or not os.access(file if os.path.exists(file) else above, os.W_OK):
            raise SaveError(f"-o {file}: cannot be written; name a file in a folder of yours")
    if folder is not None:
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            used = bool(os.listdir(folder))
        except OSError as error:
            raise SaveError(f"--save {folder}: {error.strerror}; name a new or empty folder") from None
        if used or not os.access(folder, os.W_OK):
            raise SaveError(f"--save {folder}: not an empty folder that can be written to; name a new one")
