"""Puts the rules into the wheel, and beside them the compiled catalog, so that start-up parses no TOML."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# what only the tests of the catalog read
_NOT_SHIPPED = {"literals.tsv"}


class CatalogBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # the same on all versions of hatchling
    """``rules/`` becomes ``torchdoctor/_rules``; an editable install finds it beside the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from torchdoctor.catalog.compile import compile_tree

            compiled = compile_tree(Path(self.root, "rules"))
        finally:
            sys.path.remove(self.root)
        handle, self._path = tempfile.mkstemp(suffix=".json")
        with os.fdopen(handle, "wb") as file:
            file.write(compiled)
        os.chmod(self._path, 0o644)
        for path in Path(self.root, "rules").rglob("*"):
            if path.is_file() and path.name not in _NOT_SHIPPED:
                inside = path.relative_to(self.root).as_posix().replace("rules", "torchdoctor/_rules", 1)
                build_data["force_include"][str(path)] = inside
        build_data["force_include"][self._path] = "torchdoctor/_rules/catalog.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name == "wheel" and version != "editable":
            os.unlink(self._path)
