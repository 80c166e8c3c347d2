"""What short calls cost, beside what any program of this kind costs, and beside peers; what they import.

    python benchmarks/latency.py --check      # hold the imports against import_budget.tsv; any machine
    python benchmarks/latency.py --update     # write it as things are, to be reviewed as a diff

A row of the budget is a command, the most modules of torchdoctor and the most modules in all that it may
load, how long its imports may take in units of those of ``import click, rich.console``, and the packages
that it loads beside the standard library. Seconds are in none of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from startup import BASELINE, sample_traceback

ROOT = Path(__file__).resolve().parent.parent
BUDGET = Path(__file__).with_name("import_budget.tsv")
_HEAD = "# command\tmodules of torchdoctor\tmodules\timport time, of click and rich.console\tpackages\n"
_MACHINE = str(ROOT / "fixtures" / "machines" / "h100.json")
COMMANDS = {
    "--help": ("--help",),
    "explain": ("explain", "{log}"),
    "explain --format json": ("explain", "--format", "json", "{log}"),
    "check --facts": ("check", "--facts", _MACHINE),
    "lint": ("lint", __file__),
}
_SLACK = 1.4  # what a ratio may be above the one that was measured: the parts of a start differ by machine
_IMPORT = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.M)
# what a site puts into every interpreter is not ours
_NOT_OURS = {
    "sitecustomize",
    "usercustomize",
    "_distutils_hack",
    "distutils-precedence",
    "org",
}  # copy asks for Jython's
# peer -> how its report on the environment is asked for
PEERS = {
    "mlenvdoctor": ("bin/mlenvdoctor", "diagnose"),
    "gpu-doctor": ("bin/python", "-m", "gpu_doctor", "--check"),
}


class Imports(NamedTuple):
    """Microseconds of each module that a process loads, what it loads below it left out."""

    cost: Mapping[str, int]

    @property
    def own(self) -> int:
        return sum(name.partition(".")[0] == "torchdoctor" for name in self.cost)

    @property
    def packages(self) -> str:
        tops = {name.partition(".")[0] for name in self.cost} - set(sys.stdlib_module_names) - _NOT_OURS
        return " ".join(sorted(top for top in tops if not top.startswith("__editable__")))


def imports(arguments: Sequence[str], folder: str) -> Imports:
    """What ``python -X importtime`` says of a process of this interpreter, which works in the folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    return Imports({name: int(cost) for cost, name in _IMPORT.findall(done.stderr)})


def measured_imports(runs: int = 5) -> dict[str, tuple[Imports, float]]:
    """For each command what it loads, and its least import time over that of the baseline."""
    with tempfile.TemporaryDirectory() as folder:
        # by its name alone: a folder's may end in a number, as ranks are counted
        Path(folder, "train.log").write_text(sample_traceback(), encoding="utf-8")
        calls = {name: ("-m", "torchdoctor", *words) for name, words in COMMANDS.items()}
        found: dict[str, Imports] = {}
        least: dict[str, int] = {}
        for run in range(runs + 1):  # the first one writes byte code and the compiled catalog
            for name, call in {"": BASELINE, **calls}.items():
                one = found[name] = imports([word.format(log="train.log") for word in call], folder)
                took = sum(one.cost.values())
                least[name] = min(least.get(name, took), took) if run > 1 else took
    return {name: (found[name], least[name] / least[""]) for name in calls}


def over_budget(found: Mapping[str, tuple[Imports, float]]) -> list[str]:
    """What is beyond the budget."""
    wrong = []
    rows = [row.split("\t") for row in BUDGET.read_text(encoding="utf-8").splitlines() if row[0] != "#"]
    if {row[0] for row in rows} != set(COMMANDS):
        wrong.append(f"{BUDGET.name} has other commands than {', '.join(COMMANDS)}")
    for name, own, total, ratio, packages in (row for row in rows if row[0] in found):
        one, took = found[name]
        more = set(one.packages.split()) - set(packages.split())
        for told, value, most in (
            ("modules of torchdoctor", one.own, int(own)), ("modules", len(one.cost), int(total)),
            ("times the imports of click and rich.console", round(took, 2), float(ratio)),
        ):  # fmt: skip
            if value > most:
                wrong.append(f"{name}: {value:g} {told}, and {most:g} are allowed")
        if more:
            wrong.append(f"{name}: loads {', '.join(sorted(more))}")
    return wrong


def _update(found: Mapping[str, tuple[Imports, float]]) -> None:
    rows = (
        f"{name}\t{one.own + 3}\t{len(one.cost) + 15}\t{ratio * _SLACK:.2f}\t{one.packages}\n"
        for name, (one, ratio) in found.items()
    )
    BUDGET.write_text(_HEAD + "".join(rows), encoding="utf-8")


def latency(python: str) -> dict[str, float | str]:
    """Median seconds of short calls, in turns. ``check`` and its peers look at ``python``'s torch.

    Cold: without byte code and without the compiled catalog; the files are in the page cache, as they are
    on any machine that was just installed.
    """
    found: dict[str, float | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        log, cache, code = (Path(folder) / name for name in ("train.log", "cache", "code"))
        log.write_text(sample_traceback(), encoding="utf-8")
        environment = os.environ | {"XDG_CACHE_HOME": str(cache), "PYTHONPYCACHEPREFIX": str(code)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def wall(call: Sequence[str]) -> float:
            begun = time.perf_counter()
            quiet = subprocess.DEVNULL
            subprocess.run(call, stdout=quiet, stderr=quiet, check=False, cwd=ROOT, env=environment)
            return time.perf_counter() - begun

        ours = [sys.executable, "-m", "torchdoctor"]
        quick = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import click, rich.console": [sys.executable, *BASELINE],
            "explain, 60 lines": [*ours, "explain", str(log)],
            "explain --format json": [*ours, "explain", "--format", "json", str(log)],
        }
        slow = {
            "check": [*ours, "check", "--python", python],
            "torch.utils.collect_env": [python, "-m", "torch.utils.collect_env"],
        }
        for name, (program, *words) in PEERS.items():
            home = Path(folder) / name
            if why := _installed(name, home, python):
                found[name] = f"not run: {why}"
            else:
                slow[name] = [str(home / program), *words]
        for calls, runs in ((quick, 15), (slow, 3)):
            for name, call in calls.items():
                shutil.rmtree(cache, ignore_errors=True)
                shutil.rmtree(code, ignore_errors=True)
                found[f"{name}, cold"] = wall(call)
            for call in calls.values():
                wall(call)
            taken = [[wall(call) for call in calls.values()] for _ in range(runs)]
            medians = map(statistics.median, zip(*taken, strict=True))
            found |= dict(zip(calls, medians, strict=True))
    return found


def _installed(name: str, home: Path, python: str) -> str:
    """Puts the package into an environment of its own, with ``python``'s torch; says why not, else ""."""
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    own = str(home / "bin" / "python")
    pip = [own, "-m", "pip", "install", "-q", "--disable-pip-version-check", name]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place, packages = (
        subprocess.check_output([one, "-I", "-c", where], text=True).strip() for one in (own, python)
    )
    (Path(place) / "torch.pth").write_text(f"import site; site.addsitedir({packages!r})\n", encoding="utf-8")
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 beyond the budget")
    parser.add_argument("--update", action="store_true", help="write the budget")
    options = parser.parse_args()
    found = measured_imports()
    for name, (one, ratio) in found.items():
        print(f"{name:24} {one.own:4} of {len(one.cost):4} modules, {ratio:5.2f} x, {one.packages}")
    if options.update:
        _update(found)
    wrong = over_budget(found) if options.check else []
    print(*(f"✗ {text}" for text in wrong), sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
