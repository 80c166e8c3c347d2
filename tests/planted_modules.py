"""Modules that change a setting of the process: in ``watch/planted.cases``, each behind ``=== FILE``."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def unpacked() -> Path:
    """They as the package ``planted`` in a folder that goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="torchdoctor-")).resolve() / "planted"
    atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
    held = "\n" + (Path(__file__).parent / "watch" / "planted.cases").read_text(encoding="utf-8")
    for part in held.split("\n=== ")[1:]:
        name, _, text = part.partition("\n")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return folder
