"""Findings as a report: one diagnosis each."""

from __future__ import annotations

from torchdoctor.lint import registry
from torchdoctor.lint.finding import FAMILY, Finding
from torchdoctor.lint.sources import Source
from torchdoctor.model import Diagnosis, Evidence, Fix, Frame, Role, Severity, Standing


def diagnosis(finding: Finding, source: Source) -> Diagnosis:
    """The finding as an entry of a report's ``diagnoses``; columns count characters from 1."""
    text = source.line(finding.line)
    cell, line = source.place(finding.line)
    _, end_line = source.place(finding.end_line)
    function = finding.function
    if cell:
        function = f"cell {cell}" + (f", {function}" if function else "")
    frame = Frame(
        source.path,
        line,
        function,
        text.strip("\r\n"),
        column=_characters(text, finding.column) + 1,
        end_line=end_line,
        end_column=_characters(source.line(finding.end_line), finding.end_column) + 1,
    )
    evidence = (Evidence(finding.says, source.path, line),)
    check = registry.all_checks()[finding.check]
    first = check.group == 1
    return Diagnosis(
        check.id,
        FAMILY,
        check.title,
        Severity.FATAL if first else Severity.WARNING,
        Role.CAUSE,
        Standing.POSSIBLE if check.group == 2 else Standing.CONFIRMED,
        " ".join(check.why.split()),
        None,
        frame,
        evidence,
        fixes=tuple(Fix(one) for one in check.fix),
        reasons=(f"when it runs, this shows as {check.cause}",) if check.cause else (),
    )


def _characters(line: str, column: int) -> int:
    """How many characters a number of UTF-8 bytes is."""
    if line.isascii():
        return min(column, len(line))
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))
