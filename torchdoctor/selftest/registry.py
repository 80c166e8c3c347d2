"""Every self-check: its name, when and where it runs, how long it may take, and what it proves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchdoctor.model import Blame


class Level(str, Enum):
    """How much is run: each level has all of the one before it."""

    QUICK = "quick"
    STANDARD = "standard"
    DEEP = "deep"


class Place(str, Enum):
    """What a check is about."""

    DEVICE = "device"  # one GPU, or the CPU in its stead
    GPU = "gpu"  # one GPU, and has no meaning on a CPU
    GPUS = "gpus"  # all GPUs together
    HOST = "host"  # the machine around them


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """One program under ``child/``.

    ``title`` says what is compared. ``remark`` stands before its notes, ``warning`` is said before it
    runs. ``limit_s`` is some ten times what it takes; who is slower is stuck, or slow and not judged.
    ``module`` is its file, when it shares one with others that differ in ``topic``. ``shares`` says that it
    may have a process together with others; ``measures``, that it wants the machine for itself. ``failed`` is
    its title where it failed or warned.
    """

    name: str
    title: str
    level: Level
    place: Place
    limit_s: float
    blame: Blame = Blame.NODE
    remark: str = ""
    warning: str = ""
    module: str = ""
    topic: str = ""
    shares: bool = False
    measures: bool = False
    failed: str = ""

    def fault(self, why: str) -> str:
        """The title where it failed or warned."""
        return self.failed or f"{self.title}: {why}"

    @property
    def file(self) -> str:
        return self.module or self.name.replace("-", "_")


XID = (
    "device-assert makes kernel assertions fail on purpose. The NVIDIA driver writes an Xid 43 into the "
    "kernel log for each, as for any program with an index out of range: not a sign of broken hardware"
)

QUICK, STANDARD, DEEP = Level.QUICK, Level.STANDARD, Level.DEEP
DEVICE, GPU, GPUS, HOST = Place.DEVICE, Place.GPU, Place.GPUS, Place.HOST
GELS = (
    "without full rank gels, the only driver on CUDA, has no defined answer: not broken hardware "
    "(torchdoctor rules show lstsq-rank-deficient)"
)
ASSERT = "Indices out of range: the error, its cause by name, and what a new process computes afterwards"


def _alone(name: str, title: str, level: Level, limit_s: float, failed: str = "") -> SelfCheck:
    return SelfCheck(name, title, level, DEVICE, limit_s, shares=True, failed=failed)


def _topic(
    module: str, name: str, title: str, level: Level, place: Place, limit_s: float, failed: str = ""
) -> SelfCheck:
    """A check that shares its file. On a device it only computes, and can share a process too."""
    blame = Blame.ENVIRONMENT if place is HOST else Blame.FABRIC if place is GPUS else Blame.NODE
    there = place in (DEVICE, GPU)
    return SelfCheck(
        name, title, level, place, limit_s, blame, module=module, topic=name, shares=there,
        measures=module == "rates", failed=failed,
    )  # fmt: skip


CHECKS = (
    _alone(
        "gemm-exact",
        "Matrix products of whole numbers, exact in every type",
        QUICK,
        240.0,
        failed="Matrix products of whole numbers are not exact",
    ),
    _topic(
        "bit_equal",
        "bit-equal",
        "The same computation gives the same bits, repeatedly",
        QUICK,
        DEVICE,
        120.0,
        failed="The same computation gives other bits when repeated",
    ),
    SelfCheck(
        "lstsq-rank",
        "Least squares (torch.linalg.lstsq) against float64 on the CPU",
        QUICK,
        DEVICE,
        60.0,
        remark=GELS,
        shares=True,
    ),
    _topic("training", "nan", "A transformer's first steps against float64", STANDARD, DEVICE, 60.0),
    SelfCheck("device-assert", ASSERT, STANDARD, DEVICE, 240.0, warning=XID),
    _topic("numerics", "conv", "Convolutions against float64 on the CPU", STANDARD, DEVICE, 90.0),
    _topic(
        "numerics", "attention", "Attention, each kernel, against float64 on the CPU", STANDARD, DEVICE, 90.0
    ),
    _topic("numerics", "fft", "Fourier transforms against float64 on the CPU", STANDARD, DEVICE, 60.0),
    _topic("numerics", "linalg", "Linear algebra against float64 on the CPU", STANDARD, DEVICE, 90.0),
    _topic("training", "autograd", "Gradients against float64 on the CPU", STANDARD, DEVICE, 60.0),
    _topic(
        "training",
        "amp",
        "Mixed precision: autocast's types and results, GradScaler's steps",
        STANDARD,
        DEVICE,
        60.0,
    ),
    _topic(
        "training",
        "rng",
        "Random numbers: their moments, and the same from the same seed",
        STANDARD,
        DEVICE,
        60.0,
    ),
    _alone(
        "graphs",
        "Steps recorded as a CUDA graph give the same bits as without",
        STANDARD,
        60.0,
        failed="Steps recorded as a CUDA graph give other bits than without",
    ),
    SelfCheck(
        "memory",
        "Memory reads back as written, and recovers from running out",
        STANDARD,
        DEVICE,
        120.0,
        failed="Memory does not read back as written, or does not recover from running out",
    ),
    _topic(
        "bit_equal",
        "bit-equal-hot",
        "The same bits again after 20 s of load",
        DEEP,
        DEVICE,
        180.0,
        failed="The same computation gives other bits after 20 s of load",
    ),
    SelfCheck("compile", "torch.compile against float64 without it", DEEP, DEVICE, 400.0),
    _topic(
        "rates",
        "jitter",
        "The times of one kernel lie close together",
        STANDARD,
        DEVICE,
        60.0,
        failed="The times of one kernel scatter",
    ),
    _topic(
        "rates",
        "h2d",
        "Speed of copies from host to GPU",
        STANDARD,
        GPU,
        60.0,
        failed="Copies from host to GPU are slow",
    ),
    _topic(
        "rates",
        "d2h",
        "Speed of copies from GPU to host",
        STANDARD,
        GPU,
        60.0,
        failed="Copies from GPU to host are slow",
    ),
    _topic(
        "rates",
        "hbm",
        "Speed of the GPU's own memory",
        STANDARD,
        GPU,
        60.0,
        failed="The GPU's own memory is slow",
    ),
    _topic(
        "rates",
        "gemm-rate",
        "Speed of matrix products",
        STANDARD,
        GPU,
        90.0,
        failed="Matrix products are slow",
    ),
    _topic("workers", "dataloader", "DataLoader workers through shared memory", STANDARD, HOST, 120.0),
    _topic(
        "workers", "fork-spawn", "Tensors to and from forked and spawned processes", STANDARD, HOST, 120.0
    ),
    _topic("collectives", "gloo", "Collectives between processes on the CPU", STANDARD, HOST, 150.0),
    SelfCheck(
        "extension",
        "A small extension is built and computes correctly; two builders wait for each other",
        DEEP,
        DEVICE,
        600.0,
        Blame.ENVIRONMENT,
        failed="A small extension is not built, or computes a wrong result",
    ),
    SelfCheck("p2p", "Copies between GPUs: what arrives, and how fast", STANDARD, GPUS, 120.0, Blame.FABRIC),
    _topic("collectives", "nccl", "Collectives between all GPUs of the machine", STANDARD, GPUS, 200.0),
)


def find(name: str) -> SelfCheck | None:
    return next((check for check in CHECKS if check.name == name), None)


def upto(level: Level) -> tuple[SelfCheck, ...]:
    """All checks of this level and of those below it."""
    order = list(Level)
    return tuple(check for check in CHECKS if order.index(check.level) <= order.index(level))
