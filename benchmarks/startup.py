"""How long ``torchdoctor explain`` takes as a process, against ``import click, rich.console``.

    python benchmarks/startup.py [--runs 21] [--file LOG] [--check]

Whole processes, alternating; the quickest run of each, since a busy machine never improves one, and its
ratio to that of the baseline. Then what each part costs inside one process. With ``--check`` the exit code
is 1 when a bound is exceeded. It measures the torchdoctor that its interpreter has installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BASELINE = ("-c", "import click, rich.console")
BOUNDS = {"text": 1.3, "json": 1.2}

# One process, one step after the other; each is charged with what it is the first to import.
_PARTS = """
import json, sys, time
marks = [("start of main", time.perf_counter())]
def mark(name): marks.append((name, time.perf_counter()))
import click; mark("click")
import torchdoctor.model; mark("model")
import torchdoctor.cli.main, torchdoctor.cli.explain; mark("other imports")
from torchdoctor import catalog, engine, intake
rules = catalog.load(); mark("catalog")
transcript = intake.read([sys.argv[1]]); mark("intake")
report = engine.diagnose(transcript, engine.FactBook(None), rules); mark("engine")
import torchdoctor.render.json; text = torchdoctor.render.json.to_json(report); mark("render json")
import torchdoctor.render.text; import io
torchdoctor.render.text.render(report, stream=io.StringIO()); mark("render text")
print(json.dumps([(b[0], b[1] - a[1]) for a, b in zip(marks, marks[1:])]))
"""


def sample_traceback(lines: int = 60) -> str:
    """A log of so many lines: progress, then a traceback through torch and its error."""
    tail = [
        "Traceback (most recent call last):",
        '  File "/home/me/project/train.py", line 92, in <module>',
        "    main()",
        '  File "/home/me/project/train.py", line 71, in main',
        "    loss = training_step(model, batch)",
        '  File "/home/me/project/train.py", line 40, in training_step',
        "    logits = model(batch)",
    ]
    torch = "/usr/lib/python3.11/site-packages/torch/nn/modules"
    for number in range(7):
        tail += [
            f'  File "{torch}/module.py", line {1511 + number}, in _wrapped_call_impl',
            "    return self._call_impl(*args, **kwargs)",
        ]
    tail += [
        f'  File "{torch}/linear.py", line 114, in forward',
        "    return F.linear(input, self.weight, self.bias)",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, "
        "cuda:0 and cpu! (when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
    ]
    head = [f"epoch 1 step {number * 10} loss {2.3 - number / 50:.3f}" for number in range(lines - len(tail))]
    return "\n".join([*head, *tail]) + "\n"


def environment(folder: str) -> dict[str, str]:
    """Ours, with byte code kept as in any installation (some build machines switch it off)."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


def timed(arguments: tuple[str, ...], env: dict[str, str]) -> float:
    """Seconds that a process of this interpreter takes; raises CalledProcessError when it fails."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - started


def parts(path: str, runs: int, env: dict[str, str]) -> dict[str, float]:
    """Median seconds of each step of ``explain`` within one process."""
    found: dict[str, list[float]] = {}
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", _PARTS, path], check=True, capture_output=True, text=True, env=env
        )
        for name, seconds in json.loads(done.stdout):
            found.setdefault(name, []).append(seconds)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=21, help="runs of each command, at least 15 (default 21)")
    parser.add_argument("--file", help="a log to explain; a 60-line traceback by default")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is exceeded")
    options = parser.parse_args()
    runs = max(options.runs, 15)
    with tempfile.TemporaryDirectory() as folder:
        env = environment(os.path.join(folder, "bytecode"))
        path = options.file
        if path is None:
            path = os.path.join(folder, "train.log")
            with open(path, "w", encoding="utf-8") as file:
                file.write(sample_traceback())
        commands = {
            "python -c pass": ("-c", "pass"),
            "import click": ("-c", "import click"),
            "baseline": BASELINE,
            "json": ("-m", "torchdoctor", "explain", "--format", "json", path),
            "text": ("-m", "torchdoctor", "explain", path),
        }
        for arguments in commands.values():
            timed(arguments, env)  # byte code and the compiled catalog are written once
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, arguments in commands.items():
                seconds[name].append(timed(arguments, env))
        steps = parts(path, runs, env)
    quickest = {name: min(values) for name, values in seconds.items()}
    within = True
    print(f"{runs} alternating runs, the quickest of each; Python {sys.version.split()[0]}")
    for name, least in quickest.items():
        ratio = least / quickest["baseline"]
        bound = BOUNDS.get(name)
        verdict = "" if bound is None else f"  bound {bound}: {'kept' if ratio <= bound else 'EXCEEDED'}"
        within = within and (bound is None or ratio <= bound)
        shown = " ".join(BASELINE) if name == "baseline" else name
        print(f"  {shown:<34} {1000 * least:7.1f} ms  {ratio:5.2f} x{verdict}")
    print("what each part costs in one process")
    for name, part in steps.items():
        print(f"  {name:<34} {1000 * part:7.1f} ms")
    return 0 if within or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
