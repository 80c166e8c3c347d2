"""What every self-check shares: its arguments, its cases, faults to order, and the file of results.

    python CHECK.py [--device cuda:0] [--seed 0] [--level standard] [--fault NAME] [REPORT]

Without REPORT each case is printed and the exit code is 1 when one failed; with it each case goes there as a
line of JSON, the moment it is known, so that those before a crash survive it. --fault (or the variable
TORCHDOCTOR_FAULT) spoils the run on purpose, to see that the check notices. Every check knows: hang, busy,
crash, abort, killed, exit, exit-3, garbage, flood, grandchild, error, cuda-error, no-memory, closed. Those
that compute know one-element, tile and nan as well, which spoil what the device gave; some have more of their
own (silent, leak, odd, slow, worker-killed, rank-dies). Python 3.7 or later.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

# What torch says when this build or this device lacks something: nothing is broken then.
LACKING = (
    "not implemented",
    "not supported",
    "NOT_SUPPORTED",
    "unexpected keyword argument",
    "unsupported",
    "is not available",
    "not compiled with",
    "only supports",
    "isn't supported",
    "not currently supported",
    "not currently implemented",
    "doesn't support float64",
    "requires compute capability",
    "No available kernel",
)
LOST = 4  # exit code under --stay: no further check in this process
NO_MEMORY = ("out of memory", "can't allocate memory", "ALLOC_FAILED")


class Ended(Exception):
    """Nothing more can be learned in this process."""


class Lacking(Exception):
    """This torch or this device cannot do it; raised by a case that finds out by itself."""


class Unclear(Exception):
    """The case could not be judged; the text says why."""


class Bench:
    """One run of one check on one device; all its random numbers come from ``seed``."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.device = torch.device(options.device)
        self.on_gpu = self.device.type != "cpu"
        self.seed: int = options.seed
        self.level: str = options.level
        self.fault: str = options.fault
        self.topic: str = options.topic
        self.report: str = options.report
        self.failed = 0
        self.under_way = ""
        self._begun = time.perf_counter()

    @property
    def folder(self) -> str | None:
        """Where files may be left: what stands beside the report is removed with it."""
        return os.path.dirname(os.path.abspath(self.report)) if self.report else None

    def on_cpu(self) -> Bench:
        """The same on the CPU, to compare with, and with no fault."""
        names = {
            "device": "cpu",
            "seed": self.seed,
            "level": self.level,
            "fault": "",
            "topic": "",
            "report": "",
        }
        return Bench(argparse.Namespace(**names))

    def numbers(self, offset: int = 0) -> Any:
        """A generator on the CPU: the same numbers for every device and, mostly, every torch."""
        return torch.Generator().manual_seed(self.seed + offset)

    def put(self, tensor: Any) -> Any:
        return tensor.to(self.device)

    def wait(self) -> None:
        """Until the device has done all it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.on_gpu:
            getattr(torch, self.device.type).synchronize()

    def about(self, topic: str) -> bool:
        """Is this part of the program wanted?"""
        return self.topic in ("", topic)

    def within(
        self, case: str, measured: float, limit: float, source: str, unit: str = "", beyond: str = "fail"
    ) -> None:
        """Passes when ``measured`` is at most ``limit``; else, and with a NaN, the verdict is ``beyond``."""
        verdict = "pass" if measured <= limit else beyond
        told = f"{measured:.3g}{unit}"
        self.told(case, verdict, told, f"at most {limit:.3g}{unit}", source, measured, limit)

    def exact(self, case: str, wrong: int, source: str, where: str = "") -> None:
        """Passes when nothing is wrong; ``where`` names the places."""
        told = f"{wrong} wrong" + (f": {where}" if where else "")
        self.told(case, "pass" if wrong == 0 else "fail", told, "0 wrong", source, float(wrong), 0.0)

    def holds(self, case: str, good: bool, measured: str, expected: str, source: str) -> None:
        self.told(case, "pass" if good else "fail", measured, expected, source)

    def rate(self, case: str, value: float, unit: str) -> None:
        """A speed: judged by the reader of the report, who knows the device and its siblings."""
        self.told(case, "measured", f"{value:.4g} {unit}", value=value, unit=unit)

    def note(self, case: str, text: str, value: float | None = None) -> None:
        """Worth telling, and no failure whatever it is."""
        self.told(case, "note", text, value=value)

    def told(
        self,
        case: str,
        verdict: str,
        measured: str = "",
        expected: str = "",
        source: str = "",
        value: float | None = None,
        limit: float | None = None,
        unit: str = "",
    ) -> None:
        self.failed += verdict == "fail"
        self.write(
            case=case, verdict=verdict, measured=measured, expected=expected, source=source,
            value=value, limit=limit, unit=unit,
        )  # fmt: skip
        if not self.report:
            wanted = f" (expected {expected}: {source})" if expected else ""
            print(f"{verdict:8} {case}: {measured}{wanted}", flush=True)

    def text(self, case: str, captured: str, causes: tuple[str, ...]) -> None:
        """What a failing program printed, for ``torchdoctor explain``, and the causes it should name."""
        self.write(text=captured, case=case, causes=list(causes))
        if not self.report:
            print(captured)

    def write(self, **record: object) -> None:
        if not self.report:
            return
        record["t"] = round(time.perf_counter() - self._begun, 4)
        clean = {key: plain(value) for key, value in record.items()}
        # Opened anew for each line: what is under test may close descriptors that it did not open.
        stream = os.open(self.report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(stream, (json.dumps(clean) + "\n").encode("ascii"))
        finally:
            os.close(stream)

    def attempt(self, case: str, work: Callable[..., None], *given: Any) -> None:
        """Run ``work(*given)`` as one case; an exception is its result, and the next goes on.

        Raises Ended when the device is lost.
        """
        self.write(stage=case)
        self.under_way = case
        try:
            work(*given)
        except Ended:
            raise
        except Exception as error:
            self.caught(case, error)
        self.under_way = ""

    def caught(self, case: str, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}".strip()
        short = words.splitlines()[0][:300]
        if isinstance(error, Unclear):
            self.told(case, "unknown", str(error))
        elif isinstance(error, MemoryError) or any(sign in words for sign in NO_MEMORY):
            self.told(case, "unknown", f"not enough free memory: {short}")
        elif isinstance(error, Lacking):
            self.told(case, "skip", str(error))
        elif isinstance(error, (NotImplementedError, AttributeError, ImportError)) or any(
            sign in words for sign in LACKING
        ):
            self.told(case, "skip", f"this torch or device lacks it: {short}")
        else:
            trace = traceback.format_exc()
            self.told(case, "fail", f"raised {short}", "no exception", "the call is valid")
            self.write(text=trace[-6000:], case=case, causes=[])
            sys.stderr.write(trace)
            if "CUDA error" in words or "device-side assert" in words:
                raise Ended from error  # a CUDA context does not recover

    def spoil(self, tensor: Any) -> Any:
        """The tensor, with one element, one tile or one NaN wrong when that fault was ordered."""
        if self.fault not in ("one-element", "tile", "nan"):
            return tensor
        wrong = tensor.detach().clone(memory_format=torch.contiguous_format)
        flat = wrong.view(-1)
        at = int(torch.randint(flat.numel(), (1,), generator=self.numbers(991)))
        if self.fault == "tile" and wrong.dim() >= 2:
            corner = wrong[..., :32, :32]
            corner.copy_(corner + 1)
        elif self.fault == "nan" and wrong.is_floating_point():
            flat[at] = math.nan
        elif wrong.dtype == torch.bool:
            flat[at] = not bool(flat[at])
        else:
            flat[at] = flat[at] + (1 if not wrong.is_floating_point() else max(1.0, float(flat[at].abs())))
        return wrong


def plain(value: object) -> object:
    """As JSON has it: no NaN, no infinity, no lone surrogate."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


def far(got: Any, want: Any) -> float:
    """The largest difference, as a share of the largest entry of ``want``; NaN anywhere is infinitely far."""
    kind = torch.complex128 if got.is_complex() or want.is_complex() else torch.float64
    left, right = got.detach().cpu().to(kind), want.detach().cpu().to(kind)
    if left.shape != right.shape:
        return math.inf
    if left.numel() == 0:
        return 0.0
    scale = float(right.abs().max())
    apart = float((left - right).abs().max())
    return math.inf if apart != apart else apart / (scale if scale > 0 else 1.0)


def unequal(got: Any, want: Any, shown: int = 3) -> tuple[int, str]:
    """How many elements differ, and the places of the first; nothing equals NaN but NaN in the same place."""
    left, right = got.detach().cpu(), want.detach().cpu()
    if left.shape != right.shape or left.dtype != right.dtype:
        return max(left.numel(), 1), f"shape or type {left.dtype}{list(left.shape)}, {right.dtype}"
    apart = left != right
    if left.is_floating_point() or left.is_complex():
        apart = apart & ~(torch.isnan(left) & torch.isnan(right))
    places = apart.nonzero()
    words = "; ".join(
        f"{at} is {left[tuple(at)].item():g}, not {right[tuple(at)].item():g}"
        for at in places[:shown].tolist()
    )
    return int(places.shape[0]), words


def misbehave(bench: Bench) -> None:
    """The faults that every check knows: ways for a program to end badly."""
    fault = bench.fault
    if fault == "hang":
        time.sleep(3600)
    elif fault == "busy":  # slow, not stuck: goes on telling, and is never done
        for number in range(36000):
            bench.told(f"step {number}", "pass", "1", "1", "a planted fault")
            time.sleep(0.1)
    elif fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(10)
    elif fault == "abort":
        os.abort()
    elif fault == "killed":
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        time.sleep(10)
    elif fault in ("exit", "exit-3"):
        os._exit(3 if fault == "exit-3" else 0)
    elif fault == "garbage":
        for place in (1, 2):
            os.write(place, b"\x1b[31m\xff\xfe garbage {]\n" * 3)
        if bench.report:
            with open(bench.report, "ab") as stream:
                stream.write(
                    b'\xff\x00{"case": "half a li\n[1, 2]\n{"case": 7, "verdict": "splendid"}\n{"done":'
                )
        os._exit(0)
    elif fault == "flood":
        while True:
            os.write(1, b"flood " * 20000)
    elif fault == "grandchild":
        import subprocess

        sleep = "import time; time.sleep(3600)"
        subprocess.Popen([sys.executable, "-I", "-c", sleep, "torchdoctor-grandchild"])
    elif fault == "closed":
        os.closerange(0, 64)
    elif fault == "error":
        raise RuntimeError("a planted error")
    elif fault == "cuda-error":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    elif fault == "no-memory":
        raise MemoryError("out of memory, as planted")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, mps ...")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", choices=("quick", "standard", "deep"), default="standard")
    parser.add_argument("--fault", default=os.environ.get("TORCHDOCTOR_FAULT", ""))
    parser.add_argument("--topic", default="", help="only this part of a program that has several")
    parser.add_argument("--limit", type=float, default=0.0, help="seconds until the stacks are printed")
    parser.add_argument("--stay", action="store_true", help="leave the process to the check that follows")
    parser.add_argument("report", nargs="?", default="")
    return parser.parse_args()


def run(check: Callable[[Bench], None], part: Callable[[Bench, str], None] | None = None) -> None:
    """Do the check as the arguments say, or a ``part`` of it in a process of its own; ends this process."""
    options = arguments()
    if part is not None and options.report.startswith("part:"):
        part(Bench(options), options.report[len("part:") :])
        return
    bench = Bench(options)
    faulthandler.enable()
    if not bench.report and hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # CHECK.py | head: who reads no more wants no more
    if options.limit > 0:
        # where others wait for this process it ends itself: that thread of faulthandler needs no interpreter
        faulthandler.dump_traceback_later(options.limit, exit=options.stay)
    code, lost = 0, False
    try:
        bench.write(stage="begin", torch=str(torch.__version__), seed=bench.seed, device=str(bench.device))
        misbehave(bench)
        check(bench)
    except Ended:
        lost = True
    except Exception as error:
        try:
            # A signal handler may raise while a case is being told: DataLoader's does, of a dead worker.
            bench.caught(bench.under_way or "whole check", error)
        except Ended:
            lost = True
    bench.write(done=True)
    if not bench.report:
        code = 1 if bench.failed else 0
    sys.stdout.flush()
    sys.stderr.flush()
    if options.stay:
        faulthandler.cancel_dump_traceback_later()
        sys.exit(LOST if lost else 0)
    # Taking a CUDA context down can hang where the computation did not.
    os._exit(code)
