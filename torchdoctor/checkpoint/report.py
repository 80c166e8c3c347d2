"""From paths to a report: what the files are, what is wrong with them, and whether they fit a model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from torchdoctor.checkpoint import dcp, differences, factory, folders, judge
from torchdoctor.checkpoint.against import Comparison, Shapes
from torchdoctor.checkpoint.contents import Contents, Finding
from torchdoctor.checkpoint.folders import Layout
from torchdoctor.checkpoint.inspect import inspect
from torchdoctor.checkpoint.stretch import CheckpointError
from torchdoctor.checkpoint.summary import facts_of, lines_of
from torchdoctor.checkpoint.target import Target
from torchdoctor.model import Diagnosis, Evidence, NotChecked, Outcome, Report, Severity, counted
from torchdoctor.records import replace

_PREFIX = ("checkpoint-module-prefix", Severity.INFO)
_ORDER = {Severity.FATAL: 0, Severity.WARNING: 1, Severity.INFO: 2}
# what makes everything else about a file idle talk comes first
_FIRST = ("checkpoint-dangerous-import", "checkpoint-hostile-archive")


def examine(
    paths: Sequence[str],
    target: Target,
    values: bool = False,
    against: str | None = None,
    limit_s: float = factory.LIMIT_S,
) -> Report:
    """Look into files, folders and indexes, and hold them against a factory or another file.

    Nothing in a file is executed; a factory is called in a child of the target's interpreter. Raises
    CheckpointError for paths that cannot be read and FactoryError for a factory that gives no model.
    """
    findings: list[Finding] = []
    read: list[Contents] = []
    notes: list[str] = []
    model = _wanted(against, target, limit_s) if against is not None else None
    for path in paths:
        layout = folders.lay_out(path)
        contents = list(_read(layout, target, values))
        findings += [*layout.findings, *(one for item in contents for one in item.findings)]
        if model is not None:  # what the comparison says of prefixes is more
            findings = [one for one in findings if (one.rule, one.severity) != _PREFIX]
        notes += layout.notes
        if layout.kind == "index" and path.endswith(".index.json"):
            findings += folders.check_index(path, {one.path: one for one in contents})
        if model is not None:
            found = differences.closest(contents, model)
            if found is None:
                raise CheckpointError(f"{path}: no state dict in it that could be compared")
            findings += differences.findings(
                *found, path if len(contents) != 1 else contents[0].path, _called(against)
            )
            notes += _told_of(found[1], path, _called(against))
        read += contents
    return _report(paths, findings, read, notes)


def _read(layout: Layout, target: Target, values: bool) -> Iterator[Contents]:
    if layout.metadata:
        yield from _distributed(layout, target, values)
        return
    for path in layout.files:
        contents = inspect(path, values)
        judge.judge(contents, target)
        yield contents


def _distributed(layout: Layout, target: Target, values: bool) -> Iterator[Contents]:
    table, places = dcp.read_metadata(layout.metadata)
    folder = os.path.dirname(layout.metadata) or "."
    table.findings.extend(dcp.missing(folder, places, layout.metadata))
    judge.judge(table, target)
    yield table
    for path in layout.files:
        part = dcp.look_at_part(path, places.get(os.path.basename(path), []), values)
        judge.judge(part, target)
        part.states = []  # the table has the tensors whole
        yield part


def _wanted(against: str, target: Target, limit_s: float) -> Shapes:
    """The names and shapes of the other side."""
    if factory.is_factory(against):
        from torchdoctor.probes.interpreter import choose

        return factory.shapes_of(against, target.python or choose()[0], limit_s)
    if not os.path.exists(against):
        raise CheckpointError(f"{against}: no such file, and no MODULE:FACTORY or FILE.py:FACTORY")
    contents = list(_read(folders.lay_out(against), target, False))
    wanted = {
        name: tensor.shape
        for one in contents
        for name, tensor in (one.weights.tensors if one.weights else {}).items()
    }
    if not wanted:
        raise CheckpointError(f"{against}: no state dict in it that could be compared")
    return wanted


def _called(against: str | None) -> str:
    assert against is not None
    return "the model" if factory.is_factory(against) else against


def _told_of(found: Comparison, path: str, other: str) -> Iterator[str]:
    if found.fits:
        yield f"{path} fits {other}: all {counted(found.same, 'name')} and shapes are the same"


def _report(
    paths: Sequence[str], findings: Sequence[Finding], read: Sequence[Contents], notes: Sequence[str]
) -> Report:
    ordered = sorted(findings, key=lambda one: (_ORDER[one.severity], one.rule not in _FIRST))
    bad = any(one.severity is not Severity.INFO for one in ordered)
    return Report(
        Outcome.DIAGNOSED if bad else Outcome.NO_FAILURE,
        source=tuple(paths),
        diagnoses=tuple(_diagnosis(one) for one in _once(ordered)),
        not_checked=tuple(NotChecked(one.path, words) for one in read for words in one.not_read),
        notes=(
            *(line for one in read for line in lines_of(one)),
            *notes,
            *(words for one in read for words in one.notes),
        ),
        facts=tuple(fact for one in read for fact in facts_of(one)),
    )


def _once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The same finding about several shards is one, with where else it holds."""
    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.rule, one.severity), []).append(one)
    for group in groups.values():
        first = group[0]
        rest = [item for item in group[1:] if item != first]
        if not rest:
            yield first
            continue
        if len({item.file for item in group}) == 1:
            says = (*first.says, *(words for item in rest for words in item.says))
            yield replace(
                first,
                says=tuple(dict.fromkeys(says)),
                fixes=tuple(dict.fromkeys(f for item in group for f in item.fixes)),
            )
            continue
        more = [f"{os.path.basename(item.file)}: {item.says[0]}" for item in rest[:12]]
        if len(rest) > 12:
            more.append(f"and {counted(len(rest) - 12, 'more file')}")
        yield replace(first, says=(*first.says, *more))


def _diagnosis(one: Finding) -> Diagnosis:
    """The catalog's words about the rule, and what was seen."""
    from torchdoctor import catalog

    rules = catalog.load()
    rule, text = rules.rule(one.rule), rules.text(one.rule)
    return Diagnosis(
        rule.id, rule.family, rule.title, one.severity, rule.role, one.standing, why=text.why,
        evidence=tuple(Evidence(words, one.file or None) for words in one.says),
        missing=one.missing, fixes=one.fixes, references=text.references,
        reasons=("read in the file itself; nothing of it was executed",),
    )  # fmt: skip
