"""How fast logs are read: by size, ranks, hits, compression and rules, beside ripgrep and cat."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from big_logs import FAILURE, RANKS, head_of, steps, write_log, write_mix
from measured import Cost, cost

from torchdoctor import catalog

MB = 1_000_000
_RULE = """id = "{id}"
family = "python"
severity = "fatal"
role = "cause"
title = "{id}, generated"
why = "It was generated."

[[match]]
text = "{text}"

[[fix]]
do = "Nothing."
risk = "safe"
"""


def quiet(command: Sequence[str]) -> Cost:
    """What a command costs whose output nobody reads; 1 is the end of ripgrep that has found nothing."""
    return cost(command, subprocess.DEVNULL, subprocess.DEVNULL, (0, 1))


def explain(path: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "torchdoctor", "explain", "--offline", "--format", "json", *more, str(path)]


def best(commands: dict[str, list[str]], rounds: int) -> dict[str, Cost]:
    """The cheapest run of each by processor time, in turns: a busy machine never improves a run."""
    found: dict[str, Cost] = {}
    for _ in range(rounds):
        for name, command in commands.items():
            one = quiet(command)
            if name not in found or one.cpu_s < found[name].cpu_s:
                found[name] = one
    return found


def write_hits(path: Path, size: int) -> None:
    """Steps of 64 ranks, with a known message in every tenth line: what many rules look at and leave."""
    rng = random.Random(11)
    literals = [one for one in catalog.load().literals() if one.isascii() and len(one) >= 12]
    with path.open("w", encoding="utf-8") as file:
        written = 0
        for lines in steps(rng, range(RANKS), True):
            told = [
                f"{head_of(rng.randrange(RANKS), True)}saw before: {rng.choice(literals)} {rng.random()}"
                if rng.random() < 0.1 else line
                for line in lines
            ]  # fmt: skip
            written += file.write("\n".join(told) + "\n")
            if written >= size:
                return


def write_errors(path: Path, size: int) -> None:
    """Nothing but tracebacks of 64 ranks, each with numbers and lines of its own."""
    rng = random.Random(13)
    with path.open("w", encoding="utf-8") as file:
        written = 0
        while written < size:
            number, head = rng.randrange(1, 100_000), head_of(rng.randrange(RANKS), True)
            trace = [
                line.replace("line 388", f"line {number}").replace("2.00 GiB", f"{number / 7:.2f} MiB")
                for line in FAILURE
            ]
            written += file.write("".join(f"{head}{line}\n" for line in trace))


def write_rules(folder: Path, number: int) -> None:
    """So many rules of which no log holds a message."""
    rng = random.Random(17)
    words = sorted({word for one in catalog.load().literals() for word in one.split() if word.isalpha()})
    (folder / "python").mkdir(parents=True)
    for at in range(number):
        text = " ".join(rng.choices(words, k=5)) + f" generated {at}"
        rule = _RULE.format(id=f"generated-{at}", text=text)
        (folder / "python" / f"generated-{at}.toml").write_text(rule, encoding="utf-8")


def logs(folder: Path, megabytes: int) -> Iterator[tuple[str, Path]]:
    """One log of each kind after the other, each removed when the next one is asked for."""
    size = megabytes * MB
    kinds: dict[str, Callable[[Path], None]] = {
        f"{megabytes} MB, 64 ranks, few hits": lambda at: write_log(at, size),
        f"{megabytes} MB, 1 rank, few hits": lambda at: write_log(at, size, [0], False, failing=0),
        f"{megabytes} MB, bars, NCCL and one warning": lambda at: write_mix(at, size, False),
        f"{megabytes} MB, every tenth line known": lambda at: write_hits(at, size),
        f"{megabytes // 5} MB of errors alone": lambda at: write_errors(at, size // 5),
        "10 MB, 64 ranks": lambda at: write_log(at, 10 * MB),
    }
    for name, write in kinds.items():
        path = folder / "kind.log"
        write(path)
        yield name, path
        path.unlink()


def throughput(folder: Path, megabytes: int, rounds: int, huge: bool) -> list[dict[str, object]]:
    """For each log the seconds, processor seconds and peak of explain, ripgrep and cat; ratios to ripgrep."""
    triggers = folder / "triggers"
    triggers.write_text("".join(f"{one}\n" for one in catalog.load().literals()), encoding="utf-8")
    rg = shutil.which("rg")
    found = []
    for name, path in logs(folder, megabytes):
        found.append(_row(name, path, triggers, rg, rounds))
        if "bars" in name:
            found += [
                _row(f"the same as {form.suffix}", form, triggers, None, 1) for form in _compressed(path)
            ]
    if huge:
        path = folder / "huge.log"
        write_mix(path, 4000 * MB, False)
        found.append(_row("4 GB, bars, NCCL and one warning", path, triggers, rg, 1))
        path.unlink()
    return found


def _row(name: str, path: Path, triggers: Path, rg: str | None, rounds: int) -> dict[str, object]:
    commands = {"explain": explain(path), "cat": ["cat", str(path)]}
    if rg is not None:
        commands["ripgrep"] = [rg, "-a", "-j1", "-c", "-F", "-f", str(triggers), str(path)]
    quiet(commands["cat"])  # into the page cache
    took = best(commands, rounds)
    row: dict[str, object] = {"log": name, "MB": round(path.stat().st_size / MB)}
    row |= {f"{who}": one._asdict() for who, one in took.items()}
    if rg is not None:
        row["of ripgrep"] = round(took["explain"].cpu_s / took["ripgrep"].cpu_s, 3)
    return row


def _compressed(path: Path) -> Iterator[Path]:
    packed = path.with_suffix(".gz")
    with path.open("rb") as plain, gzip.open(packed, "wb", 1) as file:
        shutil.copyfileobj(plain, file, 1 << 20)
    yield packed
    packed.unlink()
    zstd = shutil.which("zstd")
    if zstd is not None and find_spec("zstandard") is not None:
        subprocess.run([zstd, "-q", "-1", "-k", "-f", str(path), "-o", f"{path}.zst"], check=True)
        yield Path(f"{path}.zst")
        os.unlink(f"{path}.zst")


def growth(folder: Path, megabytes: int, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Processor seconds over size, ranks and rules: (size in MB, number of ranks or rules, seconds)."""
    path = folder / "growth.log"
    found: dict[str, list[tuple[float, float]]] = {"MB": [], "ranks": [], "rules": []}
    for size in (megabytes // 16, megabytes // 4, megabytes):
        write_log(path, size * MB)
        found["MB"].append((size, best({"": explain(path)}, rounds)[""].cpu_s))
    known = len(catalog.load().ids())
    calls = {known: explain(path)}
    for number in (1000, 2000):
        rules = folder / f"rules-{number}"
        write_rules(rules, number - known)
        calls[number] = explain(path, "--rules", str(rules))
        quiet(calls[number])  # compiled
    took = best({str(number): call for number, call in calls.items()}, rounds)
    found["rules"] = [(number, took[str(number)].cpu_s) for number in calls]
    for ranks in (1, 8, 64, 512):
        write_log(path, megabytes // 4 * MB, range(ranks), True, failing=0)
        found["ranks"].append((ranks, best({"": explain(path)}, rounds)[""].cpu_s))
    path.unlink()
    return found
