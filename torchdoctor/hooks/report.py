"""The report as a program and a notebook want it."""

from __future__ import annotations

from typing import Any, cast

from torchdoctor import model

_WIDTH = 100


class Report(model.Report):
    """What ``torchdoctor.explain`` returns; ``str`` gives the text, and notebooks show HTML.

    Fields are those of ``torchdoctor.model.Report``; it holds texts and numbers only, and can be pickled.
    """

    @staticmethod
    def of(report: model.Report) -> Report:
        return Report(*cast(Any, report)._values())

    def to_dict(self) -> dict[str, Any]:
        """The JSON report (``torchdoctor.report/1``) as dictionaries and lists."""
        from torchdoctor.render.json import to_dict

        return to_dict(self)

    def __str__(self) -> str:
        import io
        import sys

        from torchdoctor.render.text import render

        text = io.StringIO()
        render(self, stream=text, width=_WIDTH, height=sys.maxsize)
        return text.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        what = self.diagnoses[0].rule if self.diagnoses else self.outcome.value
        return f"<torchdoctor report: {what}; print it to read it>"

    def _repr_html_(self) -> str:
        from torchdoctor.render.html import fragment

        return fragment(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
