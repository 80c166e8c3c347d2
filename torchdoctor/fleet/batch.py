"""Reports on many logs as lines of JSON, for engines that hand out the logs: Ray Data, Spark, job arrays."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import BinaryIO, cast

from torchdoctor import catalog
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.incident import STDIN, explain
from torchdoctor.render.json import to_json


class _Named(BytesIO):
    """A log's bytes, which the report calls by their path."""

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(data)
        self.label = path


def report_lines(paths: Sequence[str], contents: Sequence[bytes] | None = None) -> list[str]:
    """One report for each log (``torchdoctor.report/1``), in order, as ``stats`` reads them. Asks no probe.

    ``contents`` are the logs themselves where this machine cannot open the paths. What cannot be read has a
    report of outcome ``unreadable``. Raises ValueError where the two differ in length.
    """
    rules, _ = catalog.load_with_packs()
    lines = []
    given: Sequence[bytes | None] = contents if contents is not None else [None] * len(paths)
    for path, data in zip(paths, given, strict=True):
        if data is None:
            report = explain((path,), FactBook(None), rules).report
        else:
            report = explain((STDIN,), FactBook(None), rules, cast(BinaryIO, _Named(path, data))).report
        lines.append(to_json(report))
    return lines
