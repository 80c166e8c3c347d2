"""torchdoctor beside plain search and peers: accuracy, latency, throughput, growth, and what it withstands.

    python -m benchmarks [--gpualert-python PYTHON] [--denpex-python PYTHON] [--gpualert FOLDER] [PART…]

Writes results.json and index.html (plots as SVG) into build/benchmarks. Without PART all parts run, which
takes about an hour on two cores. A peer without its interpreter, and GPUAlert's public set without its
folder, are reported as not run. Accuracy is by family, since a peer has other answers than there are rules;
the mapping is in the results. The labelled inputs are this repository's own: torchdoctor's rules were
written with them at hand, the others' were not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(1, str(ROOT / "benchmarks"))

import accuracy  # noqa: E402  the parts lie beside this file
import charts  # noqa: E402
import latency  # noqa: E402
import matrices  # noqa: E402
import throughput  # noqa: E402

from torchdoctor import __version__, catalog  # noqa: E402

PARTS = ("accuracy", "latency", "imports", "throughput", "growth", "matrices")


def about(peers: dict[str, str]) -> dict[str, str]:
    """The machine and all versions."""
    rg = shutil.which("rg")
    versions = {
        name: _first_line(
            [python, "-I", "-c", f"from importlib.metadata import version as v; print(v({name!r}))"]
        )
        for name, python in peers.items()
        if python
    }
    return {
        "torchdoctor": __version__,
        "rules": f"{len(catalog.load().ids())}",
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors, {_processor()}",
        "system": f"{platform.system()} {platform.release()}",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "ripgrep": _first_line([rg, "--version"]) if rg else "not installed",
        **versions,
    }


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), "unknown")


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    return next(
        (row.partition(":")[2].strip() for row in text.splitlines() if row.startswith("model name")), ""
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The results of the parts asked for."""
    peers = {"gpualert": options.gpualert_python, "denpex": options.denpex_python}
    found: dict[str, Any] = {"about": about(peers)}
    rounds: int = options.rounds
    if options.scratch:
        Path(options.scratch).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch)
        parts: dict[str, Callable[[], object]] = {
            "accuracy": lambda: _accuracy(options, peers),
            "latency": lambda: latency.latency(options.python),
            "imports": _imports,
            "throughput": lambda: throughput.throughput(folder, options.megabytes, rounds, options.huge),
            "growth": lambda: throughput.growth(folder, options.megabytes, rounds),
            "matrices": matrices.matrices,
        }
        for name in options.parts or PARTS:
            print(f"benchmarks: {name}", file=sys.stderr)
            found[name] = parts[name]()
    return found


def _accuracy(options: argparse.Namespace, peers: dict[str, str]) -> dict[str, Any]:
    own = accuracy.own_inputs(options.folder)
    return {
        "own inputs": accuracy.compared(own[:: options.every], peers),
        "GPUAlert's public set": accuracy.compared(accuracy.gpualert_inputs(options.gpualert), peers)
        if options.gpualert
        else "not run",
        "mapping": {"gpualert": accuracy.GPUALERT, "denpex": accuracy.DENPEX, "modes": accuracy.MODES},
    }


def _imports() -> dict[str, Any]:
    found = latency.measured_imports()
    rows = {
        name: {"own": one.own, "all": len(one.cost), "of baseline": round(ratio, 2), "packages": one.packages}
        for name, (one, ratio) in found.items()
    }
    return {"commands": rows, "beyond the budget": latency.over_budget(found)}


def page(results: dict[str, Any]) -> str:
    """All results on one page."""
    reading = "Accuracy is by" + (__doc__ or "").split("Accuracy is by")[1]
    machine = "; ".join(f"{name} {text}" for name, text in results["about"].items())
    parts = [part for name in PARTS if name in results for part in _DRAWN[name](results[name])]
    return charts.page([machine, reading], parts)


def _draw_accuracy(found: dict[str, Any]) -> Iterator[str]:
    for title, rows in found.items():
        if title == "mapping":
            for name, mapping in rows.items():
                yield charts.table(f"Mapping: {name}", ("answer", "families"), mapping.items())
            continue
        if isinstance(rows, str):
            yield charts.table(title, ("",), [(rows,)])
            continue
        for what, of in (("right", "failures"), ("wrong", "failures"), ("alarms", "healthy")):
            drawn = [
                (name, row[what] / max(row[of], 1), f"{row[what]:,} of {row[of]:,}")
                if isinstance(row, dict)
                else (name, 0.0, row)
                for name, row in rows.items()
            ]
            if any(isinstance(row, dict) and row[of] for row in rows.values()):
                heads = {
                    "right": "right family",
                    "wrong": "another family",
                    "alarms": "a failure named where none is",
                }
                yield charts.bars(f"{title}: {heads[what]}", drawn)


def _draw_latency(found: dict[str, Any]) -> Iterator[str]:
    rows = [(name, s, f"{s:.3f} s") if isinstance(s, float) else (name, 0.0, s) for name, s in found.items()]
    yield charts.bars("Latency, seconds", rows)


def _draw_imports(found: dict[str, Any]) -> Iterator[str]:
    rows = [(name, *map(str, row.values())) for name, row in found["commands"].items()]
    head = ("command", "modules of torchdoctor", "modules", "times click and rich.console", "packages")
    yield charts.table("Imports", head, rows)


def _draw_throughput(found: list[dict[str, Any]]) -> Iterator[str]:
    for who in ("explain", "ripgrep", "cat"):
        rows = [
            (str(row["log"]), row[who]["cpu_s"], f"{row[who]['cpu_s']:.2f} s, {row[who]['mib']:.0f} MiB")
            for row in found
            if who in row
        ]
        yield charts.bars(f"{who}: processor seconds, peak", rows)
    ratios = [
        (str(row["log"]), row["of ripgrep"], f"{row['of ripgrep']:.2f}")
        for row in found
        if "of ripgrep" in row
    ]
    yield charts.bars("explain in units of ripgrep with the catalog's literals", ratios)


def _draw_growth(found: dict[str, list[tuple[float, float]]]) -> Iterator[str]:
    for unit, points in found.items():
        yield charts.line(f"Growth with {unit}", points, unit, charts.slope(points))


def _draw_matrices(found: dict[str, dict[str, dict[str, int]]]) -> Iterator[str]:
    for name, files in found.items():
        rows = [
            (file, *(str(row.get(how, 0)) for how in ("held", "failed", "skipped")))
            for file, row in files.items()
        ]
        yield charts.table(f"Matrix: {name}", ("file", "held", "failed", "not run here"), rows)


_DRAWN: dict[str, Callable[[Any], Iterator[str]]] = {
    "accuracy": _draw_accuracy,
    "latency": _draw_latency,
    "imports": _draw_imports,
    "throughput": _draw_throughput,
    "growth": _draw_growth,
    "matrices": _draw_matrices,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--folder", default=str(ROOT / "fixtures"), help="labelled inputs")
    parser.add_argument("--every", type=int, default=1, help="only every N-th of them")
    parser.add_argument(
        "--gpualert", metavar="FOLDER", help="GPUAlert's public set: a checkout of gpualert-eval"
    )
    parser.add_argument("--gpualert-python", metavar="PYTHON", help="an interpreter that has gpualert")
    parser.add_argument(
        "--denpex-python", metavar="PYTHON", help="an interpreter that has denpex; it needs Node.js"
    )
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch, for check")
    parser.add_argument("--megabytes", type=int, default=500, help="of the logs")
    parser.add_argument("--huge", action="store_true", help="a log of 4 GB too")
    parser.add_argument("--rounds", type=int, default=3, help="of which the cheapest one counts")
    parser.add_argument("--scratch", metavar="FOLDER", help="where the logs are made")
    parser.add_argument("--out", default=str(ROOT / "build" / "benchmarks"), help="where results go")
    options = parser.parse_args()
    if options.megabytes < 16:
        parser.error(f"--megabytes {options.megabytes}: at least 16, of which the least log is one sixteenth")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "results.json"
    before = json.loads(file.read_text(encoding="utf-8")) if options.parts and file.exists() else {}
    results = before | measure(options)
    file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "index.html").write_text(page(results), encoding="utf-8")
    print(json.dumps({name: results[name] for name in options.parts or PARTS}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
