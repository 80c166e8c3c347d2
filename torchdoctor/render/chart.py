"""A self-test's report as one HTML page that needs nothing else, with charts of measured against expected.

Every text of the report is data: cleaned, and escaped. No script, no request, no font of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchdoctor.model import CheckResult, Report, State, Verdict
from torchdoctor.render.page import safe

_ROW, _NAME, _BAR, _WIDTH = 22, 330, 300, 860
_BARS_SHOWN = 60
# decades to both sides of the limit, at least and at most; what is farther off ends at the edge
_NARROWEST, _WIDEST = 0.5, 3.0
_WORDS = {
    Verdict.FAIL: "failed",
    Verdict.WARN: "warning",
    Verdict.UNKNOWN: "could not tell",
    Verdict.PASS: "passed",
    Verdict.SKIP: "left out",
}
_STYLE = """
:root{--ink:#1c2430;--faint:#66707f;--line:#d8dde4;--back:#fff;
--pass:#2e7d4f;--warn:#b7791f;--fail:#c0392b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--faint:#98a2b3;--line:#353d49;--back:#14181f;
--pass:#4caf7d;--warn:#e0a94a;--fail:#ef6a5b}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back);
max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}p,li{overflow-wrap:anywhere}small,.faint{color:var(--faint)}
table{border-collapse:collapse;width:100%;table-layout:fixed}
th:nth-child(1){width:6.5rem}th:nth-child(2){width:28%}th:nth-child(4){width:26%}
td,th{border-top:1px solid var(--line);padding:.35rem .6rem .35rem 0;text-align:left;
vertical-align:top;overflow-wrap:anywhere}
.pass{color:var(--pass)}.warn,.unknown{color:var(--warn)}.fail{color:var(--fail)}.skip{color:var(--faint)}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
svg text.faint{fill:var(--faint)}
rect.pass{fill:var(--pass)}rect.warn{fill:var(--warn)}rect.fail{fill:var(--fail)}
line{stroke:var(--ink);stroke-width:1.5}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One measurement beside what it was held against, in the same unit."""

    name: str
    value: float
    limit: float
    verdict: str
    unit: str
    source: str

    @property
    def share(self) -> float:
        """Of the limit; one that is not finite is beyond every limit."""
        share = self.value / self.limit
        return share if math.isfinite(share) else math.inf


def to_html(report: Report, subject: str = "") -> str:
    """The page. ``subject`` says what was tested."""
    title = "torchdoctor selftest"
    least, most = bars(report, "at_least"), bars(report, "at_most")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_summary(report)}</h1><p>{safe(subject)}</p>",
        *_table(report.checks),
        *_chart("Speeds: at least the mark (logarithmic)", least),
        *_chart("Errors and times: at most the mark (logarithmic)", most),
        *_list("Could not tell", [f"{item.id}: {item.reason}" for item in report.not_checked]),
        *_list("Notes", report.notes),
        "</body></html>",
    ]
    return "\n".join(parts)


def bars(report: Report, word: str) -> tuple[Bar, ...]:
    """What was held against a number that is not zero; ``word`` is at_least or at_most."""
    facts = {fact.name: fact for fact in report.facts}
    found = []
    for fact in report.facts:
        name = fact.name.removesuffix(f".{word}")
        measured = facts.get(name)
        if name == fact.name or measured is None or measured.state is not State.KNOWN:
            continue
        if not isinstance(measured.value, (int, float)) or not isinstance(fact.value, (int, float)):
            continue
        if fact.value == 0:
            continue
        verdict = measured.detail.partition(":")[0]
        short = name.removeprefix("selftest.")
        found.append(
            Bar(short, float(measured.value), float(fact.value), verdict, fact.detail, measured.source)
        )
    return tuple(found)


def _summary(report: Report) -> str:
    numbers = ((verdict, sum(one.verdict is verdict for one in report.checks)) for verdict in _WORDS)
    told = [
        f'<span class="{verdict.value}">{count} {_WORDS[verdict]}</span>'
        for verdict, count in numbers
        if count
    ]
    return ", ".join(told) or "Nothing was checked"


def _table(checks: Sequence[CheckResult]) -> Iterator[str]:
    if not checks:
        return
    yield "<table><tr><th>Result</th><th>Check</th><th>Measured</th><th>Expected</th></tr>"
    for one in checks:
        details = [one.reason or "", *(item.text for item in one.evidence)]
        more = "".join(f"<br><small>{safe(text)}</small>" for text in details if text)
        action = f"<br><small>Do: <code>{safe(one.action)}</code></small>" if one.action else ""
        source = f"<br><small>{safe(one.threshold_source)}</small>" if one.threshold_source else ""
        yield (
            f'<tr><td class="{one.verdict.value}">{_WORDS[one.verdict]}</td>'
            f"<td>{safe(one.id)}<br><small>{safe(one.title)}</small></td>"
            f"<td>{safe(one.observed or '')}{more}{action}</td>"
            f"<td>{safe(one.expected or '')}{source}</td></tr>"
        )
    yield "</table>"


def _chart(title: str, found: Sequence[Bar]) -> Iterator[str]:
    if not found:
        return
    # those that did not pass first, then those nearest to their limit
    order = sorted(found, key=lambda bar: (bar.verdict == "pass", _distance(bar)))
    shown = order[:_BARS_SHOWN]
    height = _ROW * len(shown) + 4
    yield f"<h2>{title}</h2>"
    yield f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}">'
    span = min(max(_NARROWEST, *map(_distance, shown)), _WIDEST)
    mark = _NAME + _BAR / 2
    for number, bar in enumerate(shown):
        top = number * _ROW
        length = min(max(1.0, (_decades(bar) / span + 1) * _BAR / 2), float(_BAR))
        kind = bar.verdict if bar.verdict in ("pass", "warn", "fail") else "warn"
        unit = f" {bar.unit}" if bar.unit else ""
        yield (
            f"<g><title>{safe(f'{bar.name}: {bar.verdict}; {bar.source}')}</title>"
            f'<text x="{_NAME - 8}" y="{top + 15}" text-anchor="end">{safe(_cut(bar.name))}</text>'
            f'<rect class="{kind}" x="{_NAME}" y="{top + 4}" width="{length:.1f}" height="{_ROW - 8}"/>'
            f'<text class="faint" x="{_NAME + _BAR + 10}" y="{top + 15}">'
            f"{bar.value:.4g} of {bar.limit:.4g}{safe(unit)}</text></g>"
        )
    yield f'<line x1="{mark:.1f}" x2="{mark:.1f}" y1="0" y2="{height}"/></svg>'
    if len(shown) < len(order):
        yield f'<p class="faint">and {len(order) - len(shown)} more, farther from their limits</p>'


def _decades(bar: Bar) -> float:
    """From its limit, in powers of ten; below zero for less."""
    return math.log10(min(max(bar.share, 1e-30), 1e30))


def _distance(bar: Bar) -> float:
    return abs(_decades(bar))


def _cut(name: str, most: int = 50) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _list(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"<h2>{title}</h2><ul>{''.join(f'<li>{safe(text)}</li>' for text in texts)}</ul>"
