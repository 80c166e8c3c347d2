"""Modules that are no part of a package: of a file, and those that change a setting of the process."""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType


def loaded(path: Path) -> ModuleType:
    """The file as a module, read anew each time."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def unpacked() -> Path:
    """The package ``planted`` of ``watch/planted.cases`` in a folder that goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="torchdoctor-")).resolve() / "planted"
    atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
    held = "\n" + (Path(__file__).parent / "watch" / "planted.cases").read_text(encoding="utf-8")
    for part in held.split("\n=== ")[1:]:
        name, _, text = part.partition("\n")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return folder
