"""Environments to plant torches in, and machines that answer what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchdoctor.model import Fact, FactValue, Reason
from torchdoctor.probes.machine import Json, Outcome, Unreadable
from torchdoctor.probes.recording import ReplayMachine
from torchdoctor.probes.source import ProbeSource


@dataclass
class Environment:
    """A virtual environment without pip, and a working folder."""

    python: Path
    site: Path
    work: Path

    def plant(
        self, body: str, *, version: str = "2.5.1+cu124", cuda: str | None = "12.4", needs: str = ""
    ) -> None:
        """Install a package torch whose import runs ``body``."""
        package = self.site / "torch"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text(body, encoding="utf-8")
        text = f"__version__ = {version!r}\ndebug = False\ncuda = {cuda!r}\nhip = None\n"
        (package / "version.py").write_text(text, encoding="utf-8")
        self.distribution("torch", version, needs)

    def distribution(self, name: str, version: str, needs: str = "") -> None:
        """Metadata of an installed package; ``needs`` are lines of Requires-Dist."""
        folder = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(exist_ok=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {need}" for need in needs.splitlines()]
        (folder / "METADATA").write_text("\n".join(lines) + "\n\nWords.\n", encoding="utf-8")
        (folder / "INSTALLER").write_text("pip\n", encoding="utf-8")


def replay(
    answers: Mapping[tuple[str, str], Json | Unreadable] | None = None,
    programs: Mapping[str, Outcome] | None = None,
) -> ProbeSource:
    """A machine that knows these answers and nothing else."""
    return ProbeSource(ReplayMachine(answers, programs))


def stated(**facts: FactValue | Fact) -> Callable[[str], Fact]:
    """Facts by name with "__" for the dot: a value is KNOWN, None is ABSENT, all others are UNKNOWN."""
    table: dict[str, Fact] = {}
    for key, value in facts.items():
        name = key.replace("__", ".")
        if isinstance(value, Fact):
            table[name] = value
        else:
            table[name] = Fact.absent(name) if value is None else Fact.known(name, value)
    return lambda name: table.get(name, Fact.unknown(name, Reason.NOT_ASKED))
