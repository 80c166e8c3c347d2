"""A labelled input, and how the engine reads it."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from io import BufferedReader, BytesIO

from torchdoctor import intake
from torchdoctor.model import FactSource, TorchdoctorError, Transcript

ORIGINS = ("captured", "reported", "reconstructed")
NONE = "none"  # the rule of an input in which no rule may find a failure
UNRECOGNISED = "unrecognised"  # of one that shows a failure which no rule knows
UNFINISHED = "TODO"  # what a stub holds where a person has something to say
# the files of cases that belong to no rule: nothing failed, no rule knows it, people wrote it
CLEAN, UNKNOWN, TEXTS = "clean", "unknown", "texts"


class CaseError(TorchdoctorError):
    """A case that cannot be read or found; the message names file, line and what would be right."""


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled input. ``of`` is the file of cases it stands in: a rule's id, ``clean`` or ``unknown``.

    ``rule`` is the id expected as the answer, NONE or UNRECOGNISED; ids under ``also`` are right as well.
    ``frame`` (FILE_NAME:LINE), ``rank``, ``standing`` and ``suspect`` (last part of a class name) are
    compared where they are given. The input is ``data``, else what lies at ``path``.
    """

    name: str
    rule: str
    of: str = ""
    origin: str = ""
    also: tuple[str, ...] = ()
    standing: str | None = None
    rank: int | None = None
    suspect: str | None = None
    frame: str | None = None
    machine: str | None = None  # path of the recording of the machine that the input comes from
    torch: str | None = None
    note: str = ""
    data: bytes = b""
    path: str | None = None
    place: str = ""  # FILE:LINE of the head, for what is said of the case

    @property
    def id(self) -> str:
        """``ID/NAME``, by which the case is called."""
        return f"{self.of}/{self.name}" if self.of else self.name

    @property
    def near(self) -> bool:
        """It stands with a rule that must not be the answer to it."""
        return self.of not in ("", CLEAN, UNKNOWN, TEXTS) and self.rule != self.of

    @property
    def unfinished(self) -> bool:
        """Its label still holds a mark of a stub."""
        return UNFINISHED in self.note or UNFINISHED in self.rule

    @property
    def several_files(self) -> bool:
        """The input is an archive of several files."""
        return self.path is not None and self.path.endswith(".tar.gz")

    @property
    def packed(self) -> bool:
        """The input is one file, gzipped to be stored."""
        stored = self.of and self.path is not None and self.path.endswith(".gz")
        return bool(stored) and not self.several_files

    def input(self) -> bytes:
        """The bytes of the input, of an archive its own. Raises CaseError when its file cannot be read."""
        if self.path is None:
            return self.data
        try:
            with open(self.path, "rb") as file:
                held = file.read()
            return gzip.decompress(held) if self.packed else held
        except (OSError, EOFError, zlib.error) as error:
            raise CaseError(f"{self.place or self.path}: {self.path}: {error}") from error


def transcript(case: Case) -> Transcript:
    """The input as the engine reads one on standard input. Raises IntakeError, CaseError."""
    if case.path is not None and not case.packed:
        return intake.read([case.path])
    # buffered as standard input is: what looks at its head needs that
    return intake.read(["-"], BufferedReader(BytesIO(case.input())))


def facts(case: Case) -> FactSource | None:
    """The facts of the machine that the input comes from, where there is a recording of it."""
    if case.machine is None:
        return None
    from torchdoctor.probes.recorded import load_facts

    return load_facts(case.machine)
