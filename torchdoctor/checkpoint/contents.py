"""What was found in one file: its tensors, what it needs to be loaded, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchdoctor.checkpoint.pickled import Import
from torchdoctor.checkpoint.tensors import Storage, Tensor
from torchdoctor.checkpoint.values import Values
from torchdoctor.model import Fix, Record, Severity, Standing
from torchdoctor.records import record


@record(frozen=True, slots=True)
class Finding(Record):
    """A rule of the catalog with what was seen of it in a file. The first of ``says`` is the very cause."""

    rule: str
    says: tuple[str, ...]
    severity: Severity = Severity.FATAL
    fixes: tuple[Fix, ...] = ()
    standing: Standing = Standing.CONFIRMED
    missing: tuple[str, ...] = ()
    file: str = ""


@dataclass(slots=True)
class StateDict:
    """Names and tensors that belong together, and the keys that lead to them: ``("state_dict",)``."""

    path: tuple[str, ...]
    tensors: dict[str, Tensor]
    owner: str = ""  # class of the pickled module that they are taken from


@dataclass(slots=True)
class Contents:
    """One file as far as it was read. ``format`` is "" when it is no checkpoint at all."""

    path: str
    size: int
    format: str = ""
    version: str = ""
    writer: str = ""
    root: object = None
    storages: dict[str, Storage] = field(default_factory=dict)
    states: list[StateDict] = field(default_factory=list)
    optimizers: list[str] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    codes: set[int] = field(default_factory=set)
    protocol: int = 0
    byte_strings: int = 0
    owner: str = ""  # the class, where the whole value is a pickled module
    metadata: dict[str, str] = field(default_factory=dict)
    big_endian: bool = False
    findings: list[Finding] = field(default_factory=list)
    array_types: list[str] = field(default_factory=list)  # of NumPy, as "f4"
    sources: int = 0  # classes that carry their sources
    values: dict[str, Values] = field(default_factory=dict)  # by the keys of the storages
    nested: list[bytes] = field(default_factory=list)  # files of torch.save inside of the pickle
    not_read: list[str] = field(default_factory=list)  # what a budget left out
    notes: list[str] = field(default_factory=list)

    def found(
        self, rule: str, *says: str, severity: Severity = Severity.FATAL, fixes: tuple[Fix, ...] = ()
    ) -> None:
        self.findings.append(Finding(rule, says, severity, fixes, file=self.path))

    @property
    def broken(self) -> bool:
        return any(one.severity is Severity.FATAL for one in self.findings)

    @property
    def weights(self) -> StateDict | None:
        """The state dict with the most tensors: the model's, where there are several."""
        return max(self.states, key=lambda one: len(one.tensors), default=None)
