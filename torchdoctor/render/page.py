"""The frame of every HTML page: one file with its style inside.

A policy in the page itself forbids scripts and loads, so that nothing a log says can bring them in.
"""

from __future__ import annotations

from html import escape

from torchdoctor.render.clean import clean

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root{--ink:#1b1f24;--dim:#5b6570;--paper:#fff;--panel:#f5f7f9;--line:#d9dee4;--fail:#b3261e;--warn:#8a5a00;
--pass:#1a7f37;--ask:#0b6e99;--accent:#0b57d0}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa5b1;--paper:#14171b;--panel:#1d2228;
--line:#343b44;--fail:#ff8a80;--warn:#ffc35c;--pass:#6bd68a;--ask:#6cc8ee;--accent:#8ab4f8}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem 1rem 3rem;max-width:64rem;color:var(--ink);background:var(--paper);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.05rem;margin:1.6rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
pre,code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.6rem .8rem;margin:.4rem 0;
white-space:pre-wrap}
code{background:var(--panel);border-radius:4px;padding:.1em .3em}
.mark{font-weight:700;margin-right:.4rem}
.fail{color:var(--fail)}.warn{color:var(--warn)}.pass{color:var(--pass)}.ask{color:var(--ask)}
.dim,.place{color:var(--dim);font-size:.875rem}
.place{display:block;margin-top:.5rem}
ol,ul{padding-left:1.4rem;margin:.3rem 0}li{margin:.35rem 0}
.risk{color:var(--warn);font-size:.875rem}
.draw{overflow-x:auto}
svg.wide{max-width:100%;min-width:50rem;height:auto}
svg{font:11px ui-monospace,Menlo,Consolas,monospace}
svg text{fill:var(--ink)}svg text.dim{fill:var(--dim);font-size:11px}svg .lane{stroke:var(--line)}
svg .first{fill:var(--fail);stroke:var(--ink);stroke-width:1.5}svg .own{fill:var(--fail)}
svg .echo{fill:none;stroke:var(--dim);stroke-width:2}
.chain{list-style:none;padding:0}
.chain li{border-left:3px solid var(--line);padding:.1rem 0 .1rem .8rem;margin:0}
.chain li.head{border-left-color:var(--fail);font-weight:600}
details{margin:.8rem 0}summary{cursor:pointer;font-weight:600}
table{border-collapse:collapse;font-size:.8125rem}td{padding:.15rem .8rem .15rem 0;vertical-align:top}
section+section{border-top:3px solid var(--line);margin-top:2rem}
@media print{details{display:block}details>*{display:block}}
"""


def page(title: str, body: str) -> str:
    """A whole document; ``body`` is HTML whose texts are escaped already."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{safe(title)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n"
        '<p class="dim">Made by torchdoctor; the page loads nothing.</p>\n</body></html>\n'
    )


def safe(value: str) -> str:
    """A text from a log or a machine, as it stands in HTML or SVG."""
    return escape(clean(value))
