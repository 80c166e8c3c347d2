"""torchdoctor beside plain signature search and a peer: accuracy, latency, throughput.

    python -m benchmarks [--folder fixtures] [--peer PYTHON] [--out build/benchmarks]

Writes results.json and index.html (bars as SVG) into the folder. ``--peer`` is an interpreter that has
gpualert; without it that is "not run". Accuracy is by family, since a peer has fewer answers than there are
rules: an answer is right when its family, or one of those it is mapped to, is that of the label. The labelled
inputs are this repository's own: torchdoctor's rules were written with them at hand, the others' were not.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from torchdoctor import __version__, catalog
from torchdoctor.workbench.case import NONE, Case
from torchdoctor.workbench.cases import read_all
from torchdoctor.workbench.evaluate import judge
from torchdoctor.workbench.literals import every_literal

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "benchmarks"))  # where the other measurements lie
# what gpualert says -> families that it may mean
GPUALERT = {
    "GPU out-of-memory (CUDA OOM)": "memory",
    "System out-of-memory (RAM)": "memory scheduler",
    "Process killed by OS (OOM)": "memory scheduler",
    "NCCL communication error": "distributed",
    "Tensor device mismatch": "tensor",
    "CUDA runtime error": "cuda-runtime hardware memory",
    "NaN detected in loss": "numerics autograd",
    "Missing Python module": "environment python extension",
    "File not found": "data checkpoint environment python",
    "Permission denied": "environment data python",
    "Segmentation fault": "extension environment python",
    "Division by zero": "python",
    "Assertion failed": "python",
}
_ASK = """
import json, sys
from gpualert.parse_errors import parse_errors
for line in sys.stdin:
    text = json.loads(line)
    print(json.dumps(parse_errors("", text, 1).split(chr(10))[0]))
"""

Answer = frozenset[str]  # families; empty where nothing is said


def torchdoctor(cases: list[Case]) -> list[Answer]:
    """The family of the first diagnosis."""
    rules = catalog.load()
    found = []
    for case in cases:
        said = judge(case, rules).report.diagnoses
        found.append(frozenset(one.family for one in said[:1]))
    return found


def signatures(cases: list[Case]) -> list[Answer]:
    """Families of the rules whose longest literal stands first in the text, as `grep -m1 -F` finds it."""
    rules = catalog.load()
    literals = {
        literal: frozenset(rules.rule(one).family for one in ids)
        for literal, ids in every_literal(rules).items()
        if len(literal) >= 8
    }
    found = []
    for case in cases:
        text = case.data.decode("utf-8", "replace")
        at = {place: literal for literal in literals if (place := text.find(literal)) >= 0}
        found.append(literals[at[min(at)]] if at else frozenset())
    return found


def gpualert(cases: list[Case], python: str) -> list[Answer]:
    """What the peer says of the text as standard error, mapped; its general labels name no family."""
    texts = "".join(json.dumps(case.data.decode("utf-8", "replace")) + "\n" for case in cases)
    done = subprocess.run([python, "-c", _ASK], input=texts, capture_output=True, text=True, check=True)
    general = ("Process exited", "Python ")
    return [
        frozenset() if label.startswith(general) else frozenset(GPUALERT.get(label, "").split())
        for label in map(json.loads, done.stdout.splitlines())
    ]


def accuracy(cases: list[Case], answers: list[Answer]) -> dict[str, int]:
    """Failures with the right family, and inputs without a failure of which one is said."""
    rules = catalog.load()
    known = [(case, said) for case, said in zip(cases, answers, strict=True) if case.rule in rules]
    healthy = [said for case, said in zip(cases, answers, strict=True) if case.rule == NONE]
    right = sum(
        bool(said & {rules.rule(one).family for one in (case.rule, *case.also) if one in rules})
        for case, said in known
    )
    return {
        "failures": len(known),
        "right": right,
        "healthy": len(healthy),
        "alarms": sum(map(bool, healthy)),
    }


def seconds(arguments: list[str], runs: int = 7) -> float:
    """Median time of a process of this interpreter."""
    taken = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=False, cwd=ROOT)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def latency(folder: Path) -> dict[str, float]:
    """Seconds of short calls, against what any program of this kind costs."""
    from startup import sample_traceback

    log = folder / "train.log"
    log.write_text(sample_traceback(), encoding="utf-8")
    machine = "fixtures/machines/h100.json"
    calls = {
        "python -c pass": ["-c", "pass"],
        "import click, rich.console": ["-c", "import click, rich.console"],
        "explain, 60 lines": ["-m", "torchdoctor", "explain", str(log)],
        "explain --format json": ["-m", "torchdoctor", "explain", "--format", "json", str(log)],
        "check of a recording": ["-m", "torchdoctor", "check", "--facts", machine],
    }
    for call in calls.values():
        seconds(call, 1)
    return {name: seconds(call) for name, call in calls.items()}


def throughput(folder: Path) -> dict[str, float]:
    """Seconds for logs of 64 ranks, by size in MB."""
    from big_logs import write_log

    found = {}
    for size in (10, 40, 160):
        path = folder / f"{size}.log"
        write_log(path, size * 1_000_000, range(64), True)
        found[f"{size} MB"] = seconds(["-m", "torchdoctor", "explain", "--offline", str(path)], 3)
    return found


def bars(title: str, rows: Iterable[tuple[str, float, str]]) -> str:
    """Horizontal bars with their figures, as SVG."""
    rows = list(rows)
    most = max((value for _, value, _ in rows), default=1) or 1
    parts = [
        f'<text x="0" y="{at * 24 + 15}">{escape(name)}</text><rect x="230" y="{at * 24 + 3}" height="16" '
        f'width="{380 * value / most:.1f}"/><text x="{236 + 380 * value / most:.1f}" y="{at * 24 + 15}">'
        f"{escape(words)}</text>"
        for at, (name, value, words) in enumerate(rows)
    ]
    height = 24 * len(rows)
    return f'<h2>{escape(title)}</h2><svg width="760" height="{height}" role="img">{"".join(parts)}</svg>'


def page(results: dict[str, Any]) -> str:
    """All results on one page that loads nothing."""
    right = [
        (name, row["right"] / row["failures"], f"{row['right']:,} of {row['failures']:,}")
        if isinstance(row, dict)
        else (name, 0.0, row)
        for name, row in results["accuracy"].items()
    ]
    alarms = [
        (name, row["alarms"] / max(row["healthy"], 1), f"{row['alarms']:,} of {row['healthy']:,}")
        for name, row in results["accuracy"].items()
        if isinstance(row, dict)
    ]
    drawn = [bars("Right family on failures", right), bars("Alarms where nothing failed", alarms)]
    for name in ("latency", "throughput"):
        drawn.append(bars(f"{name}, seconds", [(one, s, f"{s:.3f} s") for one, s in results[name].items()]))
    reading = "Accuracy is" + (__doc__ or "").split("Accuracy is")[1]
    about = "; ".join(f"{name} {text}" for name, text in results["about"].items())
    return (
        '<!doctype html><meta charset="utf-8"><title>torchdoctor: benchmarks</title><style>body{font:14px '
        "sans-serif;max-width:800px;margin:2em auto;color-scheme:light dark}svg{font-size:13px;fill:"
        "currentColor}rect{fill:#4a7ebb}</style><h1>Benchmarks</h1>"
        f"<p>{escape(about)}</p><p>{escape(reading)}</p>{''.join(drawn)}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", default=str(ROOT / "fixtures"), help="labelled inputs")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has gpualert")
    parser.add_argument("--out", default=str(ROOT / "build" / "benchmarks"), help="where results go")
    options = parser.parse_args()
    cases = [one for one in read_all(options.folder)[0] if one.data and one.origin != "reconstructed"]
    ways: dict[str, Callable[[list[Case]], list[Answer]]] = {
        "torchdoctor": torchdoctor,
        "signature search": signatures,
    }
    results: dict[str, Any] = {
        "about": {
            "torchdoctor": __version__, "Python": platform.python_version(), "machine": platform.machine(),
            "system": platform.system(), "inputs": f"{len(cases):,}, captured or reported",
        },
        "accuracy": {name: accuracy(cases, way(cases)) for name, way in ways.items()},
        "mapping": {"gpualert": GPUALERT},
    }  # fmt: skip
    peer = accuracy(cases, gpualert(cases, options.peer)) if options.peer else "not run"
    results["accuracy"]["gpualert"] = peer
    with tempfile.TemporaryDirectory() as folder:
        results["latency"] = latency(Path(folder))
        results["throughput"] = throughput(Path(folder))
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "index.html").write_text(page(results), encoding="utf-8")
    print(json.dumps({name: results[name] for name in ("accuracy", "latency", "throughput")}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
