"""What this machine measured before, kept in a file, and how far it has moved since."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchdoctor import json_text, regular_file
from torchdoctor.model import TorchdoctorError
from torchdoctor.probes.machine import Outcome
from torchdoctor.selftest.results import Case, Job, Measure, cases_of
from torchdoctor.selftest.siblings import FINGERPRINT
from torchdoctor.selftest.survey import Survey

SCHEMA = "torchdoctor.selftest-baseline/1"
SOURCE = "the baseline"
_MOST_BYTES = 8 << 20
# share of the baseline below which a speed fails, and below which it warns; what involves others only warns
_OWN = {"gemm-rate": (0.85, 0.92), "hbm": (0.85, 0.92)}
_SHARED = (0.0, 0.85)


class BaselineError(TorchdoctorError):
    """A baseline that cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """``speeds`` and ``bits`` by check, device and case; ``gpus`` are name and UUID of each."""

    torch: str
    seed: int
    gpus: tuple[str, ...]
    speeds: dict[str, float]
    bits: dict[str, str]


def gather(found: Survey, seed: int, ended: Sequence[tuple[Job, Outcome]]) -> Baseline:
    """Everything in a run that a later one can be compared with."""
    speeds: dict[str, float] = {}
    bits: dict[str, str] = {}
    for job, outcome in ended:
        for case in cases_of(outcome.lines):
            if case.verdict != "measured":
                continue
            if case.name.endswith(FINGERPRINT):
                bits[f"{job.id}.{case.name}"] = case.measured
            elif case.unit and case.value:
                speeds[f"{job.id}.{case.name}"] = case.value
    return Baseline(found.torch, seed, found.named, speeds, bits)


def load(path: str) -> Baseline | None:
    """The baseline in the file; None where there is none and one can be written. Raises BaselineError."""
    try:
        data: Any = json_text.parse(regular_file.read(path, _MOST_BYTES))
    except FileNotFoundError:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):  # told before the run, not when its time is spent
            raise BaselineError(f"--baseline {path}: there is no folder {folder}") from None
        if not os.access(folder, os.W_OK):
            raise BaselineError(f"--baseline {path}: nothing can be written into {folder}") from None
        return None
    except OSError as error:
        raise BaselineError(f"--baseline {path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BaselineError(
            f"--baseline {path}: no JSON: {error}; name a file that selftest --baseline wrote, or one that "
            "is not there yet"
        ) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise BaselineError(f"--baseline {path}: no baseline of a self-test; its schema would be {SCHEMA!r}")
    torch, seed, gpus = data.get("torch"), data.get("seed"), data.get("gpus")
    speeds, bits = data.get("speeds"), data.get("bits")
    if (
        not isinstance(torch, str)
        or not isinstance(seed, int)
        or not isinstance(gpus, list)
        or not isinstance(speeds, dict)
        or not isinstance(bits, dict)
    ):
        raise BaselineError(
            f"--baseline {path}: torch, seed, gpus, speeds or bits is missing or of another type"
        )
    numbers = {name: float(value) for name, value in speeds.items() if isinstance(value, (int, float))}
    words = {name: value for name, value in bits.items() if isinstance(value, str)}
    return Baseline(torch, seed, tuple(str(one) for one in gpus), numbers, words)


def save(path: str, baseline: Baseline) -> None:
    """Write it, whole or not at all. Raises BaselineError."""
    data = {
        "schema": SCHEMA,
        "torch": baseline.torch,
        "seed": baseline.seed,
        "gpus": list(baseline.gpus),
        "speeds": baseline.speeds,
        "bits": baseline.bits,
    }
    draft = ""
    try:
        number, draft = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".baseline-")
        with open(number, "w", encoding="utf-8") as stream:
            json.dump(data, stream, indent=1, sort_keys=True)
            stream.write("\n")
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise BaselineError(f"--baseline {path}: cannot be written: {error.strerror or error}") from error


class Drift:
    """Judges by the baseline what was judged by other GPUs and by the model before; worse counts."""

    def __init__(self, before: Baseline, found: Survey, seed: int, judge: Measure) -> None:
        self._before = before
        self._judge = judge
        self.compared = 0
        self.notes = list(self._differences(found, seed))
        self._speeds = before.gpus == found.named
        self._bits = not self.notes

    def _differences(self, found: Survey, seed: int) -> list[str]:
        told = []
        if self._before.gpus != found.named:
            told.append("Different GPUs than in the baseline: nothing was compared with it")
        elif self._before.torch != found.torch:
            told.append(
                f"The baseline is of torch {self._before.torch}: speeds were compared with it, bits were not"
            )
        elif self._before.seed != seed:
            told.append(f"The baseline is of seed {self._before.seed}: bits were not compared with it")
        return told

    def judge(self, job: Job, case: Case) -> Case:
        judged = self._judge(job, case)
        key = f"{job.id}.{case.name}"
        if case.name.endswith(FINGERPRINT) and self._bits and key in self._before.bits:
            self.compared += 1
            return self._same(judged, case, self._before.bits[key])
        if case.unit and case.value and self._speeds and key in self._before.speeds:
            self.compared += 1
            return self._moved(judged, case, self._before.speeds[key])
        return judged

    def _same(self, judged: Case, case: Case, before: str) -> Case:
        if judged.verdict == "fail":
            return judged
        good = case.measured == before
        if good and judged.verdict == "pass":
            return judged
        return replace(
            judged,
            verdict="pass" if good else "fail",
            measured="the same bits"
            if good
            else "different bits than in the baseline, with the same torch and seed",
            expected="the bits of the baseline",
            source=SOURCE,
        )

    def _moved(self, judged: Case, case: Case, before: float) -> Case:
        assert case.value is not None
        fail, warn = _OWN.get(case.name.partition(",")[0], _SHARED)
        share = case.value / before
        if judged.verdict == "fail" or (share >= warn and judged.verdict not in ("unknown", "measured")):
            return judged
        verdict = "fail" if share < fail else "warn" if share < warn else "pass"
        least = fail if verdict == "fail" else warn
        return replace(
            judged,
            verdict=verdict,
            measured=f"{case.value:.4g} {case.unit}, {share:.0%} of the baseline's {before:.4g}",
            expected=f"at least {least:.0%} of it",
            source=SOURCE,
            limit=round(before * least, 4),
        )
