"""The files that five versions of torch wrote, and what each of them said of each: see ``make.py``."""

from __future__ import annotations

import functools
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).with_name("files.tar.xz")


@functools.cache
def _keeper() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="checkpoints-", ignore_cleanup_errors=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder.name, filter="data")
    return folder


def folder() -> Path:
    """Where they lie, unpacked once a run."""
    return Path(_keeper().name)


@functools.cache
def told() -> dict[str, dict[str, dict[str, Any]]]:
    """File -> version of torch that loaded it -> shapes, admitted, said, fails."""
    with tarfile.open(ARCHIVE) as archive:
        member = archive.extractfile("told.json")
        assert member is not None
        loaded: dict[str, dict[str, dict[str, Any]]] = json.load(member)
        return loaded
