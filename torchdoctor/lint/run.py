"""All files of a call through the checks: the report, the mistakes, and what a repair would change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdoctor.lint import repair, report, sources
from torchdoctor.lint.examine import Result, examine
from torchdoctor.lint.paths import Files
from torchdoctor.lint.settings import Asked, Settings, settings
from torchdoctor.model import Diagnosis, Outcome, Record, Report
from torchdoctor.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdoctor.lint.sources import Source

STDIN = "-"
MOST_READ = (64 << 20) + 1  # bytes of standard input: of a notebook most are pictures


@record(frozen=True, slots=True)
class Linted(Record):
    """The report over all files. ``mistakes`` are those of the call, of settings and of comments; what they
    say was left out and the rest done. ``changes`` are diffs of the repairs, ``fixable`` counts findings that
    ``--fix`` would mend."""

    report: Report
    mistakes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    repaired: int = 0
    fixable: int = 0
    files: int = 0


class Run:
    """One call. ``mend`` is "" to look only, "diff" to tell what a repair would change, "fix" to make it."""

    def __init__(self, asked: Asked, mend: str = "") -> None:
        self._asked = asked
        self._mend = mend
        self._diagnoses: list[Diagnosis] = []
        self._mistakes: list[str] = []
        self._notes: list[str] = []
        self._faults: list[str] = []
        self._changes: list[str] = []
        self._repaired = self._fixable = self._count = 0

    def paths(self, named: Sequence[str]) -> Linted:
        """Every file that the paths stand for, each once."""
        files = Files()
        for root in named:
            if not os.path.lexists(root):
                self._mistakes.append(f"{root}: no such file or folder")
                continue
            chosen = self._settings(root)
            for path in files.below(root, chosen.exclude):
                self._file(path, chosen)
        self._notes += files.notes
        return self._done(tuple(named))

    def text(self, raw: bytes, name: str) -> Linted:
        """What came from standard input, judged as the file that it is said to be."""
        chosen = self._settings(name if name != STDIN else ".")
        most = MOST_READ - 1 if name.endswith(".ipynb") else sources.MOST_BYTES
        if len(raw) > most:
            self._notes.append(f"{name}: skipped, more than {most >> 20} MiB")
            return self._done((name,))
        source = sources.of(raw, name)
        self._source(source, chosen, b"")
        return self._done((name,))

    def _settings(self, root: str) -> Settings:
        chosen = settings(root, self._asked)
        self._mistakes += (one for one in chosen.problems if one not in self._mistakes)
        return chosen

    def _file(self, path: str, chosen: Settings) -> None:
        try:
            source = sources.read(path)
        except sources.UnreadableSource as error:
            big = "skipped" in str(error)
            (self._notes if big else self._mistakes).append(str(error))
            return
        raw = b""
        if self._mend == "fix" and source.text:
            with open(path, "rb") as file:
                raw = file.read()
        self._source(source, chosen, raw)

    def _source(self, source: Source, chosen: Settings, raw: bytes) -> None:
        self._count += 1
        ids = chosen.ids_for(source.path)
        if not self._mend:
            self._add(source, examine(source, ids))
            return
        after, result = repair.repaired(source, ids)
        if source.notebook and any(one.edits for one in result.findings):
            self._notes.append(f"{source.path}: notebooks are not repaired")
        if after.text != source.text:
            self._changes.append(repair.difference(source, after))
            self._repaired += 1
            if self._mend == "fix" and raw:
                try:
                    repair.write(source.path, raw, after)
                except repair.UnwritableSource as error:
                    self._mistakes.append(str(error))
        self._add(after, result)

    def _add(self, source: Source, result: Result) -> None:
        self._diagnoses += (report.diagnosis(one, source) for one in result.findings)
        self._fixable += sum(1 for one in result.findings if one.edits and not source.notebook)
        self._faults += result.faults
        self._notes += (f"{source.path}: {text}" for text in result.skipped)
        for line, text in result.problems:
            self._mistakes.append(f"{source.path}:{line}: {text}")
        if self._asked.advice:
            self._notes += (f"{source.path}:{line}: ignore[{one}] hides nothing" for line, one in result.idle)

    def _done(self, named: tuple[str, ...]) -> Linted:
        made = Report(
            Outcome.DIAGNOSED if self._diagnoses else Outcome.NO_FAILURE,
            named,
            tuple(self._diagnoses),
            notes=tuple(self._notes),
            faults=tuple(self._faults),
        )
        return Linted(
            made, tuple(self._mistakes), tuple(self._changes), self._repaired, self._fixable, self._count
        )
