"""A folder for a colleague: the log, the facts of the machine and the report, without names and secrets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdoctor.hooks.run.answer import written

if TYPE_CHECKING:
    from torchdoctor.engine.incident import Local
    from torchdoctor.intake.live import Output
    from torchdoctor.model import Report

LOG, FACTS = "output.log", "facts.json"
_REPORTS = {"report.json": "json", "report.md": "markdown", "report.txt": "text"}


def save(folder: str, report: Report, output: Output, machine: Local | None) -> None:
    """Write the bundle; the report is redacted already. Raises OSError. Blocks while the machine is read."""
    from torchdoctor.probes.recording import save as record
    from torchdoctor.share.publish import names_here
    from torchdoctor.share.redaction import Redactor

    for name, form in _REPORTS.items():
        _write(folder, name, written(report, form))
    log = b"".join(output.text()).decode("utf-8", "replace")
    users, hosts = names_here()
    _write(folder, LOG, Redactor([log], hosts, users)(log))
    if machine is None:
        return
    source = machine.open(True, "")
    try:
        record(source, os.path.join(folder, FACTS))
    finally:
        source.close()


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)
