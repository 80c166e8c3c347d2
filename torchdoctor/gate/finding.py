"""What a check says: a finding with its blame and its proof, or that it could not be told."""

from __future__ import annotations

from enum import Enum

from torchdoctor.model import Blame, Record
from torchdoctor.records import record


class Weight(str, Enum):
    """FAIL decides the verdict, by its blame. WARN and INFO are only told."""

    FAIL = "fail"
    WARN = "warn"
    INFO = "info"


class Action(str, Enum):
    """What to do about it, from little to much."""

    NONE = "none"
    CHANGE_JOB = "change-job"
    RESTART_JOB = "restart-job"
    END_PROCESS = "end-process"
    CHANGE_SETTING = "change-setting"
    CLEAN_UP = "clean-up"
    RESTART_SERVICE = "restart-service"
    RESET_GPU = "reset-gpu"
    DRAIN_RESET = "drain-and-reset"
    REBOOT = "reboot"
    CHECK_NETWORK = "check-network"
    INSPECT = "inspect"
    RMA = "replace"


@record(frozen=True, slots=True)
class Finding(Record):
    """One thing that is wrong or worth knowing.

    ``check`` is the check's id,
    ``tag`` a short word for the reason line (``xid79``). ``gpu`` is the number that
    NVML gives the GPU. ``source`` says where the expectation comes from, ``retest`` what a second look gave.
    """

    check: str
    title: str
    weight: Weight
    blame: Blame | None
    action: Action
    tag: str = ""
    gpu: int | None = None
    uuid: str = ""
    pci: str = ""
    observed: str = ""
    expected: str = ""
    source: str = ""
    evidence: tuple[str, ...] = ()
    advice: str = ""
    retest: str = ""
    suppressed: str = ""  # by whom and until when

    @property
    def counts(self) -> bool:
        """Does it decide the verdict?"""
        return self.weight is Weight.FAIL and not self.suppressed


@record(frozen=True, slots=True)
class Untold(Record):
    """A check that could not be made. ``required`` says that the verdict cannot be FIT without it."""

    check: str
    reason: str
    required: bool = False


class Verdict(str, Enum):
    FIT = "fit"
    UNFIT = "unfit"
    ENVIRONMENT = "environment"  # the node is fit, the job's environment or request is not
    INCONCLUSIVE = "inconclusive"


EXIT = {Verdict.FIT: 0, Verdict.UNFIT: 10, Verdict.ENVIRONMENT: 11, Verdict.INCONCLUSIVE: 12}


def decide(findings: tuple[Finding, ...], untold: tuple[Untold, ...]) -> Verdict:
    """The worst that is certain: a bad node, then a bad environment, then what could not be told.

    A fault of the fabric drains nobody: it makes the verdict inconclusive.
    """
    blamed = {one.blame for one in findings if one.counts}
    if Blame.NODE in blamed:
        return Verdict.UNFIT
    if Blame.ENVIRONMENT in blamed or Blame.USER in blamed:
        return Verdict.ENVIRONMENT
    if blamed or any(one.required for one in untold):
        return Verdict.INCONCLUSIVE
    return Verdict.FIT
