"""The table of derived facts."""

from __future__ import annotations

from torchdoctor.model import Fact
from torchdoctor.probes import claims_driver, claims_gpu, claims_machine, claims_torch
from torchdoctor.probes.derived import Ask, Derived

DERIVED: dict[str, Derived] = {
    one.name: one
    for one in (*claims_torch.CLAIMS, *claims_driver.CLAIMS, *claims_gpu.CLAIMS, *claims_machine.CLAIMS)
}


def derive(name: str, ask: Ask) -> Fact | None:
    """The derived fact of that name out of the facts that ``ask`` gives; None when there is none."""
    found = DERIVED.get(name)
    return found.tell(ask) if found is not None else None
