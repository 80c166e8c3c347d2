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
RELATIVE = {
    "gemm-rate": (0.85, 0.92),
    "hbm": (0.85, 0.92),
    "h2d": (0.50, 0.80),
    "d2h": (0.50, 0.80),
    "p2p": (0.50, 0.80),
}
# where nothing was measured: 0.6 of the specified memory speed, 0.6 to 0.75 of published products; copies as
# in Azure's node health checks
SOURCE = "floor for this model"
# the share of what sound GPUs of a model reach below which it warns: a quarter less is found
MEASURED_SHARE = 0.82
MEASURED = "0.82 of what sound GPUs of this model reach"


@dataclass(frozen=True, slots=True)
class Model:
    """Floors of one model: copies with the host and own memory in GB/s, bfloat16 products in TFLOP/s."""

    words: tuple[str, ...]  # all in the name
    processors: int
    copy: float
    hbm: float
    gemm: float
    peer: float | None = None
    measured_hbm: float | None = None
    measured_gemm: float | None = None
    all_reduce: tuple[tuple[str, float], ...] = ()  # measured, by number of GPUs and size

    def floor(self, rate: str) -> tuple[float | None, str]:
        """The floor of a rate and where it comes from."""
        measured = {"hbm": self.measured_hbm, "gemm-rate": self.measured_gemm, **dict(self.all_reduce)}.get(
            rate
        )
        if measured is not None:
            return round(measured * MEASURED_SHARE, 1), MEASURED
        plain = {"h2d": self.copy, "d2h": self.copy, "hbm": self.hbm, "gemm-rate": self.gemm}
        if rate.startswith("gemm-rate, "):  # when it is warm
            return self.gemm, SOURCE
        return (self.peer if rate.startswith("p2p, ") else plain.get(rate)), SOURCE


# measured with torch 2.11.0+cu130: two H200 of one host; H100 80GB HBM3, several, the smallest of each
_REDUCED = (
    ("all-reduce, 2 GPUs, 256 MiB", 295.0),
    ("all-reduce, 2 GPUs, 1024 MiB", 326.0),
    ("all-reduce, 4 GPUs, 1024 MiB", 355.0),
    ("all-reduce, 8 GPUs, 1024 MiB", 361.0),
)
MODELS = (
    Model(("H100", "HBM3"), 132, 48.0, 2000.0, 590.0, 335.0, 2950.0, 778.0, _REDUCED),
    Model(("H200",), 132, 48.0, 2900.0, 590.0, 335.0, 4261.0, 796.0, _REDUCED),
    Model(("B200",), 148, 48.0, 4800.0, 1350.0),
    Model(("A100", "SXM4", "80GB"), 108, 21.0, 1200.0, 185.0, 238.0),
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
    floor, source = model.floor(case.name) if model is not None else (None, "")
    if case.value is None or floor is None:
        why = f"{case.measured}; no floor is known for {name} with {processors} multiprocessors"
        return replace(case, verdict="unknown", measured=why)
    verdict = "pass" if case.value >= floor else "warn"
    return replace(
        case, verdict=verdict, expected=f"at least {floor:g} {case.unit}", source=source, limit=floor
    )


def relative(case: Case, others: Sequence[float]) -> Case:
    """A rate against the median of its siblings, itself not among them: makes the verdict worse, or known."""
    kind = case.name.partition(",")[0]
    if case.value is None or kind not in RELATIVE or not others:
        return case
    middle = median(others)
    fail, warn = RELATIVE[kind]
    share = case.value / middle if middle else 1.0
    told = replace(
        case,
        measured=f"{case.value:.4g} {case.unit}, {share:.0%} of the median of its siblings",
        expected=f"at least {fail:.0%} of it",
        source="its siblings",
        limit=round(middle * fail, 3),
    )
    if share < fail:
        return replace(told, verdict="fail")
    if share < warn:
        return replace(
            told, verdict="warn", expected=f"at least {warn:.0%} of it", limit=round(middle * warn, 3)
        )
    return replace(told, verdict="pass") if case.verdict == "unknown" else case
