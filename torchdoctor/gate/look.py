"""What a check may look at, and how it says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torchdoctor.extract.xid import place
from torchdoctor.gate.expect import Expectation
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import Action, Finding, Untold, Weight
from torchdoctor.gate.kernel import Log
from torchdoctor.gate.policy import Policy
from torchdoctor.model import Blame, State

NODE, ENVIRONMENT, USER, FABRIC = Blame.NODE, Blame.ENVIRONMENT, Blame.USER, Blame.FABRIC
FAIL, WARN, INFO = Weight.FAIL, Weight.WARN, Weight.INFO


@dataclass(frozen=True, slots=True)
class Look:
    """Facts, the kernel log, what is expected, and the site's policy.

    ``job_gpus`` are NVML's numbers of the job's GPUs,
    None for all. ``before_job`` says that the GPUs should be
    free: a job is about to start on them.
    """

    facts: Facts
    log: Log
    expected: Expectation
    policy: Policy
    job_gpus: frozenset[int] | None = None
    strange_gpus: tuple[str, ...] = ()
    before_job: bool = False

    @property
    def count(self) -> int:
        number = self.facts.number("gpu.nvml_count")
        return int(number) if number is not None else 0

    @property
    def amd(self) -> tuple[str, ...]:
        """PCI addresses of the AMD GPUs that their driver holds."""
        rows = self.facts.rows("node.pci_gpus", 3)
        return tuple(place(str(row[0])) for row in rows if row[1] == "0x1002" and row[2] == "amdgpu")

    @property
    def only_amd(self) -> bool:
        """Are all GPUs here AMD's? NVML has nothing to say then."""
        nvidia = any(row[1] == "0x10de" for row in self.facts.rows("node.pci_gpus", 2))
        return bool(self.amd) and not nvidia and not self.count

    @property
    def root(self) -> bool:
        return self.facts.number("node.uid") == 0

    @property
    def container(self) -> str:
        return self.facts.text("node.container")

    def mine(self, gpu: int) -> bool:
        return self.job_gpus is None or gpu in self.job_gpus

    def limit(self, name: str) -> float:
        return self.policy.threshold(name)

    def limit_source(self, name: str) -> str:
        return self.policy.threshold_source(name)

    def known(self, name: str) -> bool:
        return self.facts.get(name).state is State.KNOWN

    def where(self, gpu: int | None) -> tuple[str, str]:
        """UUID and PCI address, with its domain, of a GPU."""
        if gpu is None:
            return "", ""
        return self.facts.text_of("gpu.uuids", gpu), place(self.facts.text_of("gpu.pci", gpu))

    def gpu_at(self, pci: str) -> int | None:
        for gpu, address in self.facts.each("gpu.pci"):
            if place(str(address)) == pci:
                return gpu
        return None

    def untold(self, check: str, *names: str, required: bool = False) -> Iterator[Untold]:
        """For each of these facts that is not known, that and why; nothing for an absent one."""
        reasons = []
        for name in names:
            found = self.facts.get(name)
            if found.state is State.UNKNOWN:
                why = found.why or (found.reason.value if found.reason else "not known")
                reasons.append(f"{name}: {why}")
        if reasons:
            yield Untold(check, "; ".join(dict.fromkeys(reasons)), required)

    def found(
        self,
        check: str,
        title: str,
        weight: Weight,
        blame: Blame | None,
        action: Action,
        gpu: int | None = None,
        *,
        tag: str = "",
        observed: str = "",
        expected: str = "",
        source: str = "",
        evidence: tuple[str, ...] = (),
        advice: str = "",
    ) -> Finding:
        uuid, pci = self.where(gpu)
        return Finding(
            check, title, weight, blame if weight is FAIL or weight is WARN else None, action, tag or check,
            gpu,
            uuid, pci, observed, expected, source, evidence or ((observed,) if observed else ()), advice,
        )  # fmt: skip


Said = Iterator["Finding | Untold"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``needs`` are the facts without which it is not made, where it does not say so by itself."""

    id: str
    title: str
    judge: Callable[[Look], Said] = field(repr=False)
    needs: tuple[str, ...] = ()

    def unanswered(self, look: Look) -> Iterator[Untold]:
        """What it could not look at: facts that are not known, and GPUs that gave no answer."""
        reasons: list[str] = []
        for name in self.needs:
            found = look.facts.get(name)
            of_gpus = name.startswith("gpu.")
            if of_gpus and not look.count:
                continue
            if found.state is State.UNKNOWN or (of_gpus and found.state is State.ABSENT):
                reasons.append(
                    f"{name}: {found.why or (found.reason.value if found.reason else 'not known')}"
                )
            elif of_gpus and isinstance(found.value, list):
                silent = [str(gpu) for gpu, one in enumerate(found.value) if one is None]
                if silent:
                    reasons.append(f"{name}: no answer for GPU {', '.join(silent)}")
        if reasons:
            yield Untold(self.id, "; ".join(reasons))
