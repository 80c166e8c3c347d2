"""The extension of IPython, Jupyter and Colab: ``%load_ext torchdoctor``, then ``%explain``.

It listens for the end of a cell and replaces nothing, so a fault in it leaves the traceback as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdoctor.hooks.report import Report
from torchdoctor.model import Diagnosis, Outcome
from torchdoctor.records import replace

if TYPE_CHECKING:
    from collections.abc import Callable


class Note:
    """The short form of a report, as text or HTML."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def __repr__(self) -> str:
        from torchdoctor.render.note import text

        return text(self._report)

    def _repr_html_(self) -> str:
        from torchdoctor.render.html import fragment

        return fragment(self._report, brief=True)


def load_ipython_extension(shell: Any) -> None:
    """Put a note under the traceback of each cell that fails of a known cause, and add ``%explain``."""
    shell.events.register("post_run_cell", _after_cell)
    shell.register_magic_function(explain, "line", "explain")


def unload_ipython_extension(shell: Any) -> None:
    """Take both away again."""
    shell.events.unregister("post_run_cell", _after_cell)
    shell.magics_manager.magics["line"].pop("explain", None)


def _after_cell(result: Any) -> None:
    try:
        error = result.error_in_exec or result.error_before_exec
        if not isinstance(error, Exception):
            return
        report = _of_error(error)
        if report.outcome is Outcome.DIAGNOSED:
            _display(Note(report))
    except Exception:
        return  # the traceback has been shown


def explain(line: str) -> None:
    """Explain the last error in full."""
    from torchdoctor.hooks.explain import last_error

    error = last_error()
    if error is None:
        print("There is no error yet.")
    else:
        _display(_of_error(error))


def _of_error(error: BaseException) -> Report:
    """The report, with cells named as the traceback above names them: ``Cell In[3]``."""
    from IPython import get_ipython

    from torchdoctor.hooks.explain import of_error

    report = of_error(error)
    named = getattr(get_ipython().compile, "format_code_name", lambda file: None)  # IPython 8 and later

    def place(file: str | None) -> str | None:
        return " ".join(cell) if file and (cell := named(file)) else file

    return replace(report, diagnoses=tuple(_placed(one, place) for one in report.diagnoses))


def _placed(item: Diagnosis, place: Callable[[str | None], str | None]) -> Diagnosis:
    evidence = tuple(replace(one, file=place(one.file)) for one in item.evidence)
    frame = item.frame and replace(item.frame, file=place(item.frame.file) or "")
    return replace(item, evidence=evidence, frame=frame)


def _display(what: Any) -> None:
    from IPython.display import display

    display(what)
