"""``torchdoctor.explain``: from an exception, a file, a text or the last error to a report."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from torchdoctor import catalog, model
from torchdoctor.engine import FactBook
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.hooks import memory
from torchdoctor.hooks.report import Report
from torchdoctor.intake import read_text
from torchdoctor.model import Evidence, Fact
from torchdoctor.records import replace

if TYPE_CHECKING:
    from torchdoctor.catalog import RuleSet
    from torchdoctor.model import Diagnosis, Frame

_TEXT_LIMIT = 1 << 20  # characters of a traceback, whose message may hold anything
SOURCE = "<traceback>"


def explain(what: BaseException | os.PathLike[str] | str | None = None) -> Report:
    """Why it failed: an exception, a file or folder of logs (a path object), a text (any str), or the error
    that is being handled or was shown last.

    Of an exception the report also names the tensors of the failing line, by name, dtype, shape and device.
    Raises TypeError for anything else, ValueError when there is no last error.
    """
    if what is None:
        what = last_error()
        if what is None:
            raise ValueError("there is no error yet: give explain() an exception, a path or a text")
    if isinstance(what, BaseException):
        return of_error(what)
    if isinstance(what, str):
        return Report.of(diagnose(read_text(what), FactBook(), _rules()))
    if isinstance(what, os.PathLike):
        return _of_file(os.fspath(what))
    kind = type(what).__name__
    raise TypeError(f"explain() takes an exception, a path object, a str or nothing, not {kind}")


def last_error() -> BaseException | None:
    """The exception that is handled now, else the one that Python or IPython showed last."""
    handled = sys.exc_info()[1]
    return handled or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)


def of_error(error: BaseException) -> Report:
    """The report on an exception, from what Python prints of it and from what is in memory."""
    from torchdoctor.probes.opening import open_for_log

    source = open_for_log(sys.executable, programs=False)
    try:
        facts = FactBook(memory.Memory(source))
        report = diagnose(read_text(text_of(error), SOURCE), facts, _rules())
    finally:
        source.close()
    return Report.of(_with_memory(report, error))


def text_of(error: BaseException) -> str:
    """What Python prints of an exception; of a huge one the head and the tail."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(text) > _TEXT_LIMIT:
        half = _TEXT_LIMIT // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return text


def _with_memory(report: model.Report, error: BaseException) -> model.Report:
    answer = report.diagnoses[0] if report.diagnoses else report.suspect
    own = answer.frame if answer is not None else None
    rows = memory.tensors(error, own)
    facts = tuple(memory.modes())
    if rows:
        facts = (*facts, Fact.known(memory.TENSORS, rows, SOURCE))
    diagnoses = report.diagnoses
    if rows and diagnoses and own is not None:
        diagnoses = (_naming(diagnoses[0], rows, own), *diagnoses[1:])
    return replace(report, diagnoses=diagnoses, facts=(*report.facts, *facts))


def _naming(item: Diagnosis, rows: tuple[tuple[str, str], ...], own: Frame) -> Diagnosis:
    text = "; ".join(f"{name} is {what}" for name, what in rows)
    named = Evidence(text, own.file, own.line, fact=memory.TENSORS)
    return replace(item, evidence=(*item.evidence, named))


def _of_file(path: str) -> Report:
    from torchdoctor.engine.incident import Local, explain
    from torchdoctor.probes.opening import open_for_log

    local = Local(lambda programs, site: open_for_log(None, programs, site))
    return Report.of(explain((path,), FactBook(), _rules(), local=local).report)


def _rules() -> RuleSet:
    return catalog.load_with_packs()[0]
