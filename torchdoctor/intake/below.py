"""The files below a folder, of which each is to be read by itself."""

from __future__ import annotations

import os

from torchdoctor.intake.inputs import SKIPPED_FOLDERS
from torchdoctor.intake.log_names import is_dump, may_be_dump, may_be_log


def files_below(folder: str) -> list[str]:
    """The files below a folder that by name or first bytes may be logs or dumps, by path.

    Hidden ones and links are left out; a folder that cannot be listed stands for itself. Empty for a file.
    """
    found: list[str] = []
    for place, folders, names in os.walk(folder, onerror=lambda error: found.append(str(error.filename))):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(".") and not os.path.islink(path) and (may_be_log(name) or _dumped(path)):
                found.append(path)
    return sorted(found) if os.path.isdir(folder) else []


def _dumped(path: str) -> bool:
    if not may_be_dump(path):
        return False
    try:
        with open(path, "rb") as file:
            return is_dump(file.read(4096))
    except OSError:
        return True  # the reader says what is wrong with it
