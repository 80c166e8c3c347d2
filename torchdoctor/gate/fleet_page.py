"""The nodes of a fleet and their checks as one HTML page; nodes of which the same is said share a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchdoctor.gate.fleet import Fleet, Node, told
from torchdoctor.gate.hostlist import fold
from torchdoctor.model import counted
from torchdoctor.render.page import page, safe

_KINDS = {"✗": "fail", "!": "warn", "?": "ask", "": ""}
_WORDS = {"✗": "fails", "!": "warning", "?": "could not be determined"}
_VERDICTS = {
    "unfit": "fail",
    "environment": "warn",
    "undetermined": "ask",
    "inconclusive": "ask",
    "fit": "pass",
}
_MOST_ROWS = 500
_MOST_REASONS = 1000
_MOST_NAMES = 2000  # letters of a list of nodes
_STYLE = """<style>
body{max-width:none}.map th{font-weight:400;text-align:left;vertical-align:bottom}
.map th.check{writing-mode:vertical-rl;transform:rotate(180deg);padding:.3rem 0}
.map td{padding:.1rem .5rem;border-top:1px solid var(--line)}.map td.cell{text-align:center;min-width:1.6rem}
th{text-align:left}.drift td:nth-child(-n+3){white-space:nowrap}
.map tr:hover{background:var(--panel)}.number{text-align:right}
</style>"""


def to_html(fleet: Fleet) -> str:
    """One page that loads nothing; its size goes with what is wrong, not with the number of nodes."""
    counts = Counter(told(node) for node in fleet.nodes)
    head = ", ".join(
        f'<span class="{_VERDICTS[name]}">{count} {name}</span>' for name, count in counts.items()
    )
    title = counted(len(fleet.nodes), "node")
    body = [f"{_STYLE}<h1>{title}: {head}</h1>", *_map(fleet), *_drift(fleet), *_reasons(fleet)]
    body += _list("The fabric", fleet.fabric) + _list("Notes", fleet.notes)
    if fleet.exclude:
        body.append(f"<h2>Leave out</h2><pre>--exclude={safe(fold(fleet.exclude))}</pre>")
    return page(f"torchdoctor gate: {title}", "\n".join(body))


def _map(fleet: Fleet) -> Iterator[str]:
    """A row for each thing that is said of nodes, the worst first; a column for each check with a finding."""
    rows: dict[tuple[str, tuple[tuple[str, str], ...]], list[Node]] = {}
    for node in fleet.nodes:
        rows.setdefault((told(node), node.marks), []).append(node)
    worst = Counter(check for _, marks in rows for check, mark in marks if mark == "✗")
    checks = sorted({check for _, marks in rows for check, _ in marks}, key=lambda one: (-worst[one], one))
    yield '<h2>Nodes and checks</h2><div class="draw"><table class="map">'
    yield "<tr><th>Nodes</th><th></th><th>Verdict</th>"
    yield "".join(f'<th class="check">{safe(check)}</th>' for check in checks) + "</tr>"
    for (verdict, marks), nodes in list(rows.items())[:_MOST_ROWS]:
        found = dict(marks)
        cells = "".join(_cell(check, found.get(check, "")) for check in checks)
        names = fold(node.name for node in nodes)
        short = names if len(names) <= 60 else f"{names[:57]}…"
        whole = f' title="{safe(names[:_MOST_NAMES])}"' if short != names else ""
        yield (
            f'<tr><td{whole}>{safe(short)}</td><td class="number">{len(nodes)}</td>'
            f'<td class="{_VERDICTS[verdict]}">{verdict}</td>{cells}</tr>'
        )
    yield "</table></div>"
    if len(rows) > _MOST_ROWS:
        left = counted(len(rows) - _MOST_ROWS, "row")
        yield f'<p class="dim">and {left} more; --format json has every node</p>'
    legend = ", ".join(f"{mark} {words}" for mark, words in _WORDS.items())
    yield f'<p class="dim">{legend}; empty: nothing found</p>'


def _cell(check: str, mark: str) -> str:
    title = f' title="{safe(check)}: {_WORDS[mark]}"' if mark else ""
    return f'<td class="cell {_KINDS[mark]}"{title}>{mark}</td>'


def _drift(fleet: Fleet) -> Iterator[str]:
    if not fleet.odd:
        return
    yield '<h2>What differs from most nodes</h2><table class="drift">'
    yield "<tr><th>What</th><th>On most</th><th>Here</th><th>Nodes</th></tr>"
    for odd in fleet.odd:
        values: dict[str, list[str]] = {}
        for name, value in odd.nodes:
            values.setdefault(value, []).append(name)
        for value, names in sorted(values.items(), key=lambda item: -len(item[1])):
            yield (
                f"<tr><td>{safe(odd.what)}</td><td>{safe(odd.usual)}</td><td>{safe(value)}</td>"
                f"<td>{safe(fold(names)[:_MOST_NAMES])}</td></tr>"
            )
    yield "</table>"


def _reasons(fleet: Fleet) -> Iterator[str]:
    found = [node for node in fleet.nodes if told(node) != "fit"]
    if not found:
        return
    yield "<h2>Nodes that are not fit</h2><table>"
    for node in found[:_MOST_REASONS]:
        verdict = told(node)
        yield (
            f'<tr><td>{safe(node.name)}</td><td class="{_VERDICTS[verdict]}">{verdict}</td>'
            f"<td>{safe(node.reason)}</td></tr>"
        )
    yield "</table>"
    if len(found) > _MOST_REASONS:
        yield f'<p class="dim">and {len(found) - _MOST_REASONS} more; --format json has every node</p>'


def _list(title: str, texts: tuple[str, ...]) -> list[str]:
    items = "".join(f"<li>{safe(text)}</li>" for text in texts[:_MOST_REASONS])
    return [f"<h2>{title}</h2><ul>{items}</ul>"] if texts else []
