"""The torch that is to load the file: what is judged by its version and by the modules beside it."""

from __future__ import annotations

import os

from torchdoctor.checkpoint import weights_only
from torchdoctor.model import Record, State
from torchdoctor.records import record


@record(frozen=True, slots=True)
class Target(Record):
    """``torch``: its version as (2, 6), None when none is known. ``folders``: where modules are found."""

    torch: tuple[int, int] | None = None
    shown: str = ""  # the version in full
    python: str = ""
    folders: tuple[str, ...] = ()

    def has_module(self, module: str) -> bool:
        """Is the top of a module's name on the path, or part of Python? True where nobody can tell."""
        import sys

        top = module.partition(".")[0]
        if (
            not self.folders
            or not top.isidentifier()
            or top in sys.stdlib_module_names
            or top in ("__builtin__", "copy_reg")
        ):
            return True
        for folder in self.folders:
            if os.path.exists(os.path.join(folder, top)) or os.path.exists(os.path.join(folder, f"{top}.py")):
                return True
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            if any(
                name.startswith((f"{top}.", "__editable__")) and not name.endswith(".pyi") for name in names
            ):
                return True  # an extension module, or a finder that may lead anywhere
        return False


def of_version(text: str, python: str = "") -> Target:
    """A torch by its version; ``python`` calls factories. Raises ValueError for what is no version."""
    found = weights_only.versions(text)
    if found is None:
        raise ValueError(text)
    return Target(found, text, python)


def of_interpreter(python: str) -> Target:
    """The torch of an interpreter, read from its files; starts the interpreter, not torch. Never raises."""
    from torchdoctor.probes.source import ProbeSource

    source = ProbeSource(python=python)
    try:
        version = source.fetch("torch.version")
        path = source.fetch("python.path")
    finally:
        source.close()
    shown = version.value if version.state is State.KNOWN and isinstance(version.value, str) else ""
    folders = (
        tuple(one for one in path.value if isinstance(one, str)) if isinstance(path.value, tuple) else ()
    )
    return Target(weights_only.versions(shown), shown, python, folders)
