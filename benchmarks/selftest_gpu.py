"""The self-test on a machine with GPUs: how long it takes, whether it finds seeded faults, and healthy runs.

    python benchmarks/selftest_gpu.py timings|deep|faults|healthy [--out FOLDER] [--runs 20] [--budget 290]

``timings``: quick and standard, against importing torch and touching the GPU. ``deep``: the deep level.
``faults``: every fault that can be ordered, each must be found and named right. ``healthy``: runs at level
quick one after the other, with the bound that no failure in so many proves. Each writes NAME.json into the
folder (or $OUT), and its exit code is 1 when a figure is missed. Run in the root of the repository, with the
interpreter that has torch.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

BASE = "import torch; torch.zeros(1, device='cuda')"
ABOUT = (
    "import json, torch; c = torch.cuda; n = c.device_count(); "
    "print(json.dumps([torch.__version__, [c.get_device_name(i) for i in range(n)]]))"
)
QUICK_FACTOR, QUICK_PLUS_S, STANDARD_S = 1.6, 5.0, 60.0


@dataclass
class Run:
    """One run of the command: its report, its exit code, and the seconds it took."""

    words: list[str]
    code: int
    seconds: float
    report: dict[str, Any] = field(default_factory=dict)
    said: str = ""

    def check(self, name: str) -> dict[str, Any]:
        return next((one for one in self.report.get("checks", ()) if one["id"] == name), {})

    def verdicts(self) -> dict[str, str]:
        return {one["id"]: one["verdict"] for one in self.report.get("checks", ())}

    def each(self) -> dict[str, float]:
        """Seconds of each check."""
        found = {}
        for fact in self.report.get("facts", ()):
            name = fact["name"].removeprefix("selftest.")
            if name.endswith(".seconds"):
                found[name.removesuffix(".seconds")] = fact["value"]
        return found

    def measured(self) -> dict[str, str]:
        """Speeds, and what the GPU said of itself during them."""
        names = ("rate", "hbm", "h2d", "d2h", "p2p", "launch", "state during", "all-reduce", "transport")
        return {
            fact["name"].removeprefix("selftest."): fact["detail"]
            for fact in self.report.get("facts", ())
            if fact["detail"] and any(word in fact["name"].rpartition("@")[2] for word in names)
        }


def selftest(*words: str, fault: str = "", limit_s: float = 280.0) -> Run:
    argv = [sys.executable, "-m", "torchdoctor", "selftest", "--python", sys.executable, "--format", "json"]
    environment = {**os.environ, "TORCHDOCTOR_FAULT": fault}
    begun = time.perf_counter()
    try:
        done = subprocess.run([*argv, *words], env=environment, capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        return Run([*words], -1, time.perf_counter() - begun, said=str(error))
    run = Run([*words], done.returncode, round(time.perf_counter() - begun, 2))
    run.said = done.stderr.decode("utf-8", "replace")[-3000:]
    try:
        run.report = json.loads(done.stdout)
    except ValueError:
        run.said += f"\nno JSON: {done.stdout[-300:]!r}"
    return run


def seconds(code: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return round(time.perf_counter() - begun, 2)


def wrongs(run: Run) -> list[str]:
    """What did not pass, in words."""
    found = []
    for one in run.report.get("checks", ()):
        if one["verdict"] not in ("pass", "skip"):
            texts = [one["reason"] or "", one["observed"] or "", *(item["text"] for item in one["evidence"])]
            found.append(f"{one['verdict']} {one['id']}: {' | '.join(text for text in texts if text)[:700]}")
    found += [f"not told {one['id']}: {one['reason'][:300]}" for one in run.report.get("not_checked", ())]
    if not run.report:
        found.append(f"exit code {run.code}: {run.said[-600:]}")
    return found


def told(title: str, run: Run) -> dict[str, Any]:
    print(f"{title}: {run.seconds:.1f} s, exit code {run.code}")
    for name, value in sorted(run.each().items(), key=lambda item: -item[1]):
        print(f"    {value:6.2f} s  {name}: {run.verdicts().get(name)}")
    for words in wrongs(run):
        print(f"    {words}")
    checks = run.report.get("checks", ())
    skipped = [f"{one['id']}: {one['reason']}" for one in checks if one["verdict"] == "skip"]
    for words in skipped:
        print(f"    left out {words}")
    return {**asdict(run), "report": None, "checks": run.verdicts(), "each": run.each(),
            "measured": run.measured(), "wrong": wrongs(run), "skipped": skipped}  # fmt: skip


def timings(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    bases = [seconds(BASE) for _ in range(3)]
    print(f"{BASE!r}: {', '.join(f'{one:.2f}' for one in bases)} s")
    base = sorted(bases)[1]
    bound = QUICK_FACTOR * base + QUICK_PLUS_S
    quick = [selftest("--level", "quick") for _ in range(3)]
    found: dict[str, Any] = {"base": bases, "quick_bound": bound, "standard_bound": STANDARD_S}
    found["quick"] = [told(f"quick {number + 1}", run) for number, run in enumerate(quick)]
    isolated = selftest("--level", "quick", "--isolate")
    found["quick isolated"] = told("quick, each check its own process", isolated)
    standard = selftest("--level", "standard", "--isolate")
    found["standard isolated"] = told("standard, each check its own process", standard)
    shared = selftest("--level", "standard", "--share")
    found["standard shared"] = told("standard, sharing", shared)
    median = sorted(run.seconds for run in quick)[1]
    print(f"quick: median {median:.1f} s, bound {bound:.1f} s (1.6 x {base:.2f} + 5)")
    both = f"{standard.seconds:.1f} s isolated, {shared.seconds:.1f} s shared"
    print(f"standard: {both}; bound {STANDARD_S:.0f} s")
    for name, words in standard.measured().items():
        print(f"    {name}: {words}")
    good = median <= bound and min(standard.seconds, shared.seconds) <= STANDARD_S
    return found, good and not any(wrongs(run) for run in (*quick, standard, shared))


def deep(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    run = selftest("--level", "deep", limit_s=max(options.budget, 60.0) + 290)
    found = told("deep", run)
    for name, words in run.measured().items():
        print(f"    {name}: {words}")
    return found, run.code == 0 and not wrongs(run)


@dataclass
class Seeded:
    """A fault, the checks that are run with it, and which result must come of which of them.

    ``wanted`` maps a check's id to its verdict and a pattern that its words must match.
    """

    fault: str
    checks: tuple[str, ...]
    wanted: dict[str, tuple[str, str]]
    words: tuple[str, ...] = ()


def seeded(gpus: int) -> list[Seeded]:
    one = "cuda:0" if gpus else "cpu"
    found = [
        Seeded("one-element", ("gemm-exact", "bit-equal", "nan", "graphs"), {
            f"gemm-exact@{one}": ("fail", r"1 wrong: first at \[\d+, \d+\], within rows (\d+)-\1, columns"),
            f"bit-equal@{one}": ("fail", r"1 wrong: repeat \d+, \[.*\] is"),
            f"nan@{one}": ("fail", r"transformer, 5 steps"),
            f"graphs@{one}": ("fail", r"1 wrong: replay 4"),
        }),
        Seeded("tile", ("gemm-exact", "conv", "attention"), {
            f"gemm-exact@{one}": ("fail", r"1024 wrong: first at \[0, 0\], within rows 0-31, columns 0-31"),
            f"conv@{one}": ("fail", r"cases failed"),
            f"attention@{one}": ("fail", r"cases failed"),
        }),
        Seeded("nan", ("nan", "bit-equal", "gemm-exact", "lstsq-rank"), {
            f"nan@{one}": ("fail", r"transformer, finite: losses .*nan"),
            f"bit-equal@{one}": ("fail", r"is nan, not"),
            f"gemm-exact@{one}": ("fail", r"1 wrong"),
            f"lstsq-rank@{one}": ("fail", r"inf"),
        }),
        Seeded("slow", ("gemm-rate", "hbm", "h2d", "d2h", "jitter"), {
            f"gemm-rate@{one}": ("warn", r"TFLOP/s, expected at least"),
            f"hbm@{one}": ("warn", r"GB/s, expected at least"),
            f"h2d@{one}": ("warn", r"GB/s, expected at least"),
            f"d2h@{one}": ("warn", r"GB/s, expected at least"),
            f"jitter@{one}": ("warn", r"1\.[23]\d* × the median"),
        }),
        Seeded("crash", ("gemm-exact", "lstsq-rank"), {
            f"gemm-exact@{one}": ("fail", r"crashed: ended by SIGSEGV"),
            f"lstsq-rank@{one}": ("fail", r"crashed: ended by SIGSEGV"),
        }),
        Seeded("hang", ("nan",), {
            f"nan@{one}": ("fail", r"stuck: no further output for"),
        }, ("--stretch", "0.25")),
        Seeded("garbage", ("gemm-exact", "nan"), {
            f"gemm-exact@{one}": ("unknown", r"ended without a result"),
            f"nan@{one}": ("unknown", r"ended without a result"),
        }),
        Seeded("silent", ("device-assert",), {
            f"device-assert@{one}": ("fail", r"label: .*expected an error"),
        }),
        Seeded("leak", ("memory", "device-assert"), {
            f"memory@{one}": ("fail", r"bytes not given back: \d+ wrong"),
            f"device-assert@{one}": ("fail", r"memory not given back: \d+ MiB"),
        }),
        Seeded("error", ("conv",), {f"conv@{one}": ("fail", r"raised RuntimeError: an error that was")}),
        Seeded("no-memory", ("conv",), {f"conv@{one}": ("unknown", r"not enough free memory")}),
    ]  # fmt: skip
    if gpus > 1:
        two = "cuda:1"
        found += [
            Seeded("odd@cuda:1", ("bit-equal",), {
                f"bit-equal@{two}": (
                    "fail", r"other bits than" if gpus == 2 else r"cuda:1 is the one that differs"
                ),
            }),
            Seeded("one-element@cuda:1", ("gemm-exact",), {
                f"gemm-exact@{one}": ("pass", ""),
                f"gemm-exact@{two}": ("fail", r"1 wrong"),
            }),
            Seeded("slow@cuda:1", ("gemm-rate", "hbm"), {
                f"gemm-rate@{one}": ("pass", ""),
                f"gemm-rate@{two}": ("fail", r"% of the median of its siblings"),
                f"hbm@{one}": ("pass", ""),
                f"hbm@{two}": ("fail", r"% of the median of its siblings"),
            }),
            Seeded("one-element", ("nccl", "p2p"), {
                "nccl@cuda": ("fail", r"nccl all_reduce: .*on rank 1"),
                "p2p@cuda": ("fail", r"bytes, 0 to 1: 1 wrong: first at byte"),
            }),
            Seeded("slow", ("p2p",), {"p2p@cuda": ("warn", r"p2p, 0 to 1: .*expected at least")}),
            Seeded("rank-dies", ("nccl",), {"nccl@cuda": ("fail", r"rank 1 ended first, with 9")}),
        ]  # fmt: skip
    return found


def missing(run: Run, wanted: dict[str, tuple[str, str]]) -> list[str]:
    """What was wanted and did not come."""
    found = []
    for name, (verdict, pattern) in wanted.items():
        check = run.check(name)
        texts = [check.get(key) or "" for key in ("reason", "observed", "expected")]
        texts += [item["text"] for item in check.get("evidence", ())]
        if check.get("verdict") != verdict or not any(re.search(pattern, text) for text in texts):
            found.append(f"{name}: wanted {verdict} /{pattern}/, got {check.get('verdict')} {texts}")
    return found


def faults(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    begun = time.monotonic()
    results: list[dict[str, Any]] = []
    for item in seeded(len(about()[1])):
        if time.monotonic() - begun > options.budget:
            print(f"no time left for {item.fault} {' '.join(item.checks)}")
            results.append({"fault": item.fault, "checks": item.checks, "missing": ["not run"]})
            continue
        words = [part for name in item.checks for part in ("--only", name)]
        run = selftest(*words, "--share", *item.words, fault=item.fault, limit_s=100.0)
        lacking = missing(run, item.wanted) if run.report else [f"no report: {run.said[-600:]}"]
        print(
            f"{'WRONG' if lacking else 'found'} {item.fault} in {', '.join(item.checks)}: {run.seconds:.1f} s"
        )
        for text in lacking:
            print(f"    {text}")
        results.append(
            {"fault": item.fault, "checks": item.checks, "seconds": run.seconds, "missing": lacking,
             "verdicts": run.verdicts(), "words": wrongs(run)}
        )  # fmt: skip
    right = sum(not one["missing"] for one in results)
    print(f"{right} of {len(results)} seeded runs found and named right")
    return {"runs": results, "right": right}, right == len(results)


def healthy(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    begun = time.monotonic()
    runs: list[Run] = []
    bad: list[dict[str, Any]] = []
    for number in range(options.runs):
        if time.monotonic() - begun > options.budget - 15:
            break
        run = selftest("--level", options.level, "--seed", str(number))
        runs.append(run)
        if run.code != 0 or wrongs(run):
            bad.append({"seed": number, "code": run.code, "wrong": wrongs(run)})
            print(f"run {number}: {wrongs(run)}")
    checks = sum(verdict == "pass" for run in runs for verdict in run.verdicts().values())
    failures = sum(any(text.startswith("fail") for text in one["wrong"]) for one in bad)
    print(f"{len(runs)} runs at level {options.level}, {checks} checks passed")
    print(f"{failures} runs with a failure, {len(bad)} with anything else than pass or skip")
    found: dict[str, Any] = {"runs": len(runs), "level": options.level, "passed": checks, "bad": bad,
                             "seconds": [run.seconds for run in runs]}  # fmt: skip
    if runs and not bad:
        found["bound_run"], found["bound_check"] = 3 / len(runs), 3 / max(checks, 1)
        print(f"with 95 % confidence (rule of three) a healthy run fails in less than {3 / len(runs):.1%} of "
              f"runs, a check in less than {3 / max(checks, 1):.2%}")  # fmt: skip
    return found, bool(runs) and not bad


def about() -> tuple[str, list[str]]:
    done = subprocess.run([sys.executable, "-c", ABOUT], check=True, capture_output=True, text=True)
    torch, gpus = json.loads(done.stdout)
    return torch, gpus


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parts = {"timings": timings, "deep": deep, "faults": faults, "healthy": healthy}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--level", default="quick", help="of healthy")
    parser.add_argument("--budget", type=float, default=290.0, help="seconds after which nothing new begins")
    options = parser.parse_args()
    torch, gpus = about()
    print(f"torch {torch}, Python {sys.version.split()[0]}, {len(gpus)} GPUs: {', '.join(gpus) or 'none'}")
    found, good = parts[options.part](options)
    found = {"torch": torch, "gpus": gpus, "good": good, "part": options.part, **found}
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"selftest-{options.part}.json"
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{options.part}: {'good' if good else 'MISSED'}; {path}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
