"""What ``lint`` finds in the failing program itself, as evidence beside what the program printed."""

from __future__ import annotations

from torchdoctor.engine.provenance import unchanged
from torchdoctor.lint import registry
from torchdoctor.lint.examine import examine
from torchdoctor.lint.sources import MOST_BYTES, Source
from torchdoctor.model import Diagnosis, Evidence, Report, Transcript
from torchdoctor.records import replace

MAX_SHOWN = 3


def with_pitfalls(report: Report, transcript: Transcript) -> Report:
    """The report with each pitfall that would show as a diagnosed rule, where the user's files have it.

    A pitfall is what may be behind the failure: it stands after the evidence and changes no standing. Files
    that differ from what the log quotes of them are left out. Runs nothing.
    """
    causes: dict[str, set[str]] = {}
    for check in registry.all_checks().values():
        causes.setdefault(check.cause, set()).add(check.id)
    if not any(one.rule in causes for one in report.diagnoses):
        return report
    sources = [Source(path, "\n".join(lines)) for path, lines in unchanged(transcript).items()]
    sources = [one for one in sources if len(one.text) <= MOST_BYTES]
    return replace(
        report,
        diagnoses=tuple(_told(one, causes.get(one.rule, set()), sources) for one in report.diagnoses),
    )


def _told(diagnosis: Diagnosis, ids: set[str], sources: list[Source]) -> Diagnosis:
    found = [
        Evidence(f"lint finds {one.check}, a possible reason: {one.says}", source.path, one.line)
        for source in sources
        for one in examine(source, frozenset(ids)).findings
        if one.check in ids
    ]
    return replace(diagnosis, evidence=(*diagnosis.evidence, *found[:MAX_SHOWN])) if found else diagnosis
