"""One source through the checks."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from torchdoctor.lint import registry
from torchdoctor.lint.finding import Finding
from torchdoctor.lint.ignoring import Ignores
from torchdoctor.lint.scene import Scene
from torchdoctor.lint.sources import Broken, Source, parse
from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

# A source without one of them holds nothing that a check looks for, and need not be walked.
_WORDS = ("torch", "horovod", "PYTHONHASHSEED", "lightning", "accelerate")


@record(frozen=True, slots=True)
class Result(Record):
    """What was found in one source. ``problems`` are mistakes in its ignore comments, ``idle`` those comments
    that hide nothing, ``skipped`` what could not be looked at, ``faults`` tracebacks of checks that broke."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[tuple[int, str], ...] = ()
    idle: tuple[tuple[int, str], ...] = ()
    skipped: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def examine(source: Source, ids: frozenset[str]) -> Result:
    """All findings of the checks ``ids`` in one source, in its order. Never raises."""
    found = [_broken(source, one) for one in source.broken]
    skipped: list[str] = []
    faults: list[str] = []
    tree = parse(source) if source.text else None
    if isinstance(tree, Broken):
        found.append(_broken(source, tree))
    elif tree is not None and any(word in source.text for word in _WORDS):
        try:
            scene = Scene(tree, source.text, source.path, notebook=source.notebook)
            found += _run(scene, ids, skipped, faults)
        except RecursionError:
            skipped.append("nested too deep to be looked at")
    ignores = Ignores(source.text)
    kept = {one for one in found if one.check in ids and not ignores.hides(one)}
    ordered = sorted(kept, key=lambda one: (one.line, one.column, one.check))
    return Result(
        tuple(ordered), tuple(ignores.problems), tuple(ignores.idle(ids)), tuple(skipped), tuple(faults)
    )


def _run(scene: Scene, ids: frozenset[str], skipped: list[str], faults: list[str]) -> Iterator[Finding]:
    for id_, check in registry.all_checks().items():
        if id_ not in ids or (check.words and not any(word in scene.text for word in check.words)):
            continue
        try:
            yield from check.run(scene)
        except RecursionError:
            skipped.append(f"nested too deep for {id_}")
        except Exception:  # a fault of one check: the others are made
            faults.append(f"{id_} in {scene.path}: {traceback.format_exc()}")


def _broken(source: Source, one: Broken) -> Finding:
    width = max(len(source.line(one.line)), one.column + 1)
    column = len(source.line(one.line)[: one.column].encode("utf-8", "surrogatepass"))
    return Finding(
        registry.SYNTAX_ERROR, one.line, column, one.line, min(column + 1, width), f"no Python: {one.says}"
    )
