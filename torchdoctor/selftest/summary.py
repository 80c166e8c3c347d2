"""Self-checks for people: what was tested, and what held, with the numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from torchdoctor.model import Report, State, Verdict
from torchdoctor.render.clean import clean

_LONG = 400


def subject(report: Report, python: str) -> str:
    """Torch, interpreter and GPUs in one phrase."""
    facts = {fact.name: fact for fact in report.facts}
    parts = []
    torch = facts.get("selftest.torch")
    if torch is not None and torch.state is State.KNOWN:
        parts.append(f"torch {torch.value}")
    gpus = facts.get("selftest.gpus")
    names = gpus.value if gpus is not None and isinstance(gpus.value, tuple) else ()
    parts += [f"{names.count(one)} × {one}" for one in dict.fromkeys(names)]
    return "; ".join(filter(None, (", ".join(parts), python)))


def passed(report: Report, width: int, verbose: bool) -> Iterator[str]:
    """The checks that passed, each with what was measured; then those that were left out."""
    seconds = {fact.name: fact.value for fact in report.facts if fact.name.endswith(".seconds")}
    for verdict, head in ((Verdict.PASS, "Passed:"), (Verdict.SKIP, "Skipped:")):
        chosen = [one for one in report.checks if one.verdict is verdict]
        if chosen:
            yield ""
            yield head
        for one in chosen:
            time = seconds.get(f"selftest.{one.id}.seconds")
            took = f" ({time:.1f} s)" if isinstance(time, float) else ""
            text = f"{one.id}: {one.observed or one.reason or ''}{took}"
            if verbose:
                text += f". {one.title}; {one.threshold_source or ''}"
            text = clean(text) if verbose or len(text) <= _LONG else clean(text[:_LONG]) + "…"
            yield from textwrap.wrap(
                text,
                max(width, 40),
                initial_indent="    ",
                subsequent_indent="      ",
                break_on_hyphens=False,
            )
