"""The table of derived facts."""

from __future__ import annotations

from torchdoctor.probes import claims_driver, claims_gpu, claims_machine, claims_torch
from torchdoctor.probes.derived import Derived

DERIVED: dict[str, Derived] = {
    one.name: one
    for one in (*claims_torch.CLAIMS, *claims_driver.CLAIMS, *claims_gpu.CLAIMS, *claims_machine.CLAIMS)
}
