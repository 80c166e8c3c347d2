"""Indices and labels out of range: the error must come, and a new process must compute right afterwards.

On a GPU each makes a kernel's assertion fail, which ends its process's use of the GPU for good and makes the
NVIDIA driver write an Xid 43 into the kernel log; on the CPU the same call raises IndexError or RuntimeError.
Each runs in a process of its own, all at once. Then a new process computes the same with indices in range,
against the CPU, and waits for the GPU's memory to be free again as before.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from torchdoctor.selftest.child.bench import Bench, Lacking, Unclear, far, run

LABEL, INDEX = ("cuda-assert-label-range",), ("cuda-assert-index-range",)
CASES = {"label": LABEL, "index": INDEX, "gather": INDEX, "embedding": INDEX}
PROCESS_S = 90.0
PR_SET_NAME = 15  # of prctl(2)
NAME = b"torchdoctor"  # by which torchdoctor gate knows these Xids
MEMORY_S = 5.0
# Other small programs come and go; what an assertion could leave behind is a whole context, 200 MiB or more.
SLACK_BYTES = 64 << 20
# what a failed call must have raised: torch 1 and 2, CUDA and HIP, and the CPU's forms
SIGNS = ("device-side assert", "IndexError", "out of range", "out of bounds")


def lookup(bench: Bench, case: str, beyond: bool) -> Any:
    """One of the four lookups; ``beyond`` puts one index outside the table."""
    numbers = bench.numbers()
    table = bench.put(torch.randn(10, 16, generator=numbers))
    at = torch.randint(0, 10, (33,), generator=numbers)
    if beyond and bench.fault != "silent":
        at[17] = 12
    at = bench.put(at)
    if case == "label":
        scores = bench.put(torch.randn(33, 10, generator=numbers))
        return torch.nn.functional.cross_entropy(scores, at)
    if case == "index":
        return table[at]
    if case == "gather":
        return torch.gather(table.t().contiguous(), 1, at.expand(16, 33))
    return torch.nn.functional.embedding(at, table)


def call_itself(name: bytes) -> None:
    """The driver names a process in its Xid lines as it was when it first used the GPU. Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_NAME, name, 0, 0, 0)


def failing(bench: Bench, case: str) -> None:
    call_itself(NAME)
    print(lookup(bench, case, beyond=True).sum().item(), flush=True)


def sound(bench: Bench) -> None:
    """The same with indices in range; says how far the results are from the CPU's, one a line."""
    plain = bench.on_cpu()
    for case in CASES:
        got = bench.spoil(lookup(bench, case, beyond=False))
        print(f"far {far(got, lookup(plain, case, beyond=False))!r}", flush=True)
    left = torch.randn(64, 96, generator=bench.numbers(1), dtype=torch.float64)
    right = torch.randn(96, 32, generator=bench.numbers(2), dtype=torch.float64)
    if bench.device.type == "mps":  # it has no float64
        left, right = left.float(), right.float()
    print(f"far {far(bench.put(left) @ bench.put(right), left @ right)!r}", flush=True)


def weigh(bench: Bench) -> None:
    """Free memory of the GPU, seen from a process with a context of its own; waits for what is awaited."""
    wanted = int(os.environ.get("TORCHDOCTOR_WANTED", "0"))
    torch.zeros(1, device=bench.device)
    kept = []
    if wanted and bench.fault == "leak":
        kept.append(torch.zeros(SLACK_BYTES * 2, dtype=torch.uint8, device=bench.device))
    begun = time.monotonic()
    while True:
        free = int(torch.cuda.mem_get_info(bench.device)[0])
        if free >= wanted - SLACK_BYTES or time.monotonic() - begun > MEMORY_S:
            print(f"free {free} after {time.monotonic() - begun:.2f}", flush=True)
            return
        time.sleep(0.1)


class Apart:
    """Work in a process of its own, begun at once; ``end`` waits for it."""

    def __init__(self, bench: Bench, name: str, work: Callable[[], None]) -> None:
        self.out = tempfile.TemporaryFile()  # noqa: SIM115
        self.deadline = time.monotonic() + PROCESS_S
        self.process: Any = None
        if hasattr(os, "fork"):
            self.child = forked(work, self.out.fileno())
            return
        argv = [sys.executable, os.path.abspath(__file__), "--device", str(bench.device)]
        argv += ["--seed", str(bench.seed), "--fault", bench.fault, f"part:{name}"]
        self.process = subprocess.Popen(argv, stdout=self.out, stderr=self.out)

    def end(self) -> tuple[int | None, str]:
        """Its exit code (None: it did not end) and all that it printed."""
        code = self.wait()
        self.out.seek(0)
        said = self.out.read().decode("utf-8", "replace")
        self.out.close()
        return code, said

    def wait(self) -> int | None:
        if self.process is not None:
            try:
                return int(self.process.wait(max(0.1, self.deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                self.process.kill()
                return None
        while time.monotonic() < self.deadline:
            done, status = os.waitpid(self.child, os.WNOHANG)
            if done:
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            time.sleep(0.02)
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)
        return None


def forked(work: Callable[[], None], out: int) -> int:
    # torch is imported here and the GPU untouched, so that a fork saves the import
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        work()
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def begin(bench: Bench) -> dict[str, Apart]:
    """All at once: what takes time is each process's way to the GPU."""
    if bench.on_gpu and (bench.device.type != "cuda" or torch.version.hip):
        return {}

    def failure_of(case: str) -> Callable[[], None]:
        return lambda: failing(bench, case)

    return {case: Apart(bench, case, failure_of(case)) for case in CASES}


def provoke(bench: Bench, case: str, begun: Apart | None) -> None:
    if begun is None:
        raise Lacking("this device's kernels are built without assertions")
    code, said = begun.end()
    last = next((line for line in reversed(said.splitlines()) if any(sign in line for sign in SIGNS)), "")
    if code is None:
        bench.holds(case, False, f"did not end within {PROCESS_S:.0f} s", "an error", "index out of range")
    else:
        seen = last or said.strip()[-200:] or f"no error (exit code {code})"
        bench.holds(case, code != 0 and bool(last), seen[:200], "an error that says so", "index out of range")
    if last:
        bench.text(case, said if len(said) < 12000 else said[:6000] + said[-6000:], CASES[case])


def afterwards(bench: Bench) -> None:
    code, said = Apart(bench, "sound", lambda: sound(bench)).end()
    far_off = [float(line[4:]) for line in said.splitlines() if line.startswith("far ")]
    if code != 0 or len(far_off) != len(CASES) + 1:
        last = said.strip().splitlines()[-1:] or [f"exit code {code}"]
        bench.holds("new process", False, last[0][:300], "right results", "the CPU")
        bench.text("new process", said[-6000:], ())
        return
    worst = max(far_off, key=lambda value: (value != value, value))
    bench.within("new process", worst, 1e-5, "the same on the CPU")


def free_bytes(bench: Bench, name: str) -> tuple[int, str]:
    code, said = Apart(bench, name, lambda: weigh(bench)).end()
    words = next((line.split() for line in said.splitlines() if line.startswith("free ")), [])
    if code != 0 or len(words) != 4:
        raise Unclear(
            f"free memory could not be read: {(said.strip().splitlines() or ['no answer'])[-1][:200]}"
        )
    return int(words[1]), words[3]


def memory(bench: Bench, before: int) -> None:
    os.environ["TORCHDOCTOR_WANTED"] = str(before)
    free, seconds = free_bytes(bench, "after")
    missing = max(0, before - free) / (1 << 20)
    bench.within(
        "memory not given back", missing, SLACK_BYTES >> 20, f"free before, {seconds} s after", " MiB"
    )


def check(bench: Bench) -> None:
    before: list[int] = []
    counts = bench.device.type == "cuda"
    if counts:
        bench.attempt("memory before", lambda: before.append(free_bytes(bench, "before")[0]))
    begun = begin(bench)
    for case in CASES:
        bench.attempt(case, provoke, bench, case, begun.get(case))
    bench.attempt("new process", afterwards, bench)
    if counts and before:
        bench.attempt("memory not given back", memory, bench, before[0])


def part(bench: Bench, name: str) -> None:
    if name == "sound":
        sound(bench)
    elif name in CASES:
        failing(bench, name)
    else:
        weigh(bench)


if __name__ == "__main__":
    run(check, part)
