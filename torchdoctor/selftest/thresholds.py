"""What speeds a GPU of a known model must reach, and how far GPUs of one machine may be apart.

A floor is for one exact model, told by its name and its number of multiprocessors; of an unknown one an
absolute judgement is refused. Below a floor is a warning: the floors are generous and not calibrated on the
reader's machines. Against the median of its siblings a GPU can fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from torchdoctor.selftest.results import Case

# rate -> share of the siblings' median below which it fails, and below which it warns
RELATIVE = {"gemm-rate": (0.85, 0.92), "hbm": (0.85, 0.92), "h2d": (0.50, 0.80), "d2h": (0.50, 0.80)}
# 0.6 of the specified memory speed, 0.6 to 0.75 of measured products, copies as in Azure's node health checks
SOURCE = "floor for this model"


@dataclass(frozen=True, slots=True)
class Model:
    """Floors of one model: copies with the host and own memory in GB/s, bfloat16 products in TFLOP/s."""

    words: tuple[str, ...]  # all in the name
    processors: int
    copy: float
    hbm: float
    gemm: float

    def floor(self, rate: str) -> float | None:
        return {"h2d": self.copy, "d2h": self.copy, "hbm": self.hbm, "gemm-rate": self.gemm}.get(rate)


MODELS = (
    Model(("H100", "HBM3"), 132, 48.0, 2000.0, 590.0),
    Model(("H200",), 132, 48.0, 2900.0, 590.0),
    Model(("B200",), 148, 48.0, 4800.0, 1350.0),
    Model(("A100", "SXM4", "80GB"), 108, 21.0, 1200.0, 185.0),
    Model(("V100", "SXM2"), 80, 9.0, 540.0, 65.0),
    Model(("L4",), 58, 10.0, 180.0, 45.0),
    Model(("MI300X",), 304, 48.0, 3200.0, 520.0),
)


def model_of(name: str, processors: int) -> Model | None:
    """The model with these floors; None for an unknown one or a variant with another number of processors."""
    words = name.replace("-", " ").split()
    found = (
        one for one in MODELS if one.processors == processors and all(word in words for word in one.words)
    )
    return next(found, None)


def absolute(case: Case, name: str, processors: int) -> Case:
    """A rate against its model's floor: pass, warn, or unknown when there is none."""
    model = model_of(name, processors)
    floor = model.floor(case.name) if model is not None else None
    if case.value is None or floor is None:
        why = f"{case.measured}; no floor is known for {name} with {processors} multiprocessors"
        return replace(case, verdict="unknown", measured=why)
    verdict = "pass" if case.value >= floor else "warn"
    return replace(case, verdict=verdict, expected=f"at least {floor:g} {case.unit}", source=SOURCE)


def relative(case: Case, others: Sequence[float]) -> Case:
    """A rate against the median of its siblings, itself not among them: makes the verdict worse, or known."""
    if case.value is None or case.name not in RELATIVE or not others:
        return case
    middle = median(others)
    fail, warn = RELATIVE[case.name]
    share = case.value / middle if middle else 1.0
    told = replace(
        case,
        measured=f"{case.value:.4g} {case.unit}, {share:.0%} of the median of its siblings",
        expected=f"at least {fail:.0%} of it",
        source="its siblings",
    )
    if share < fail:
        return replace(told, verdict="fail")
    if share < warn:
        return replace(told, verdict="warn", expected=f"at least {warn:.0%} of it")
    return replace(told, verdict="pass") if case.verdict == "unknown" else case
