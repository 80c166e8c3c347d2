"""The page of a maker's manual that a finding is about."""

from __future__ import annotations

_MEMORY = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
_FABRIC = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
_BY_CHECK = {
    "xid": "https://docs.nvidia.com/deploy/xid-errors/index.html",
    "xid-repeated": "https://docs.nvidia.com/deploy/xid-errors/index.html",
    "recovery-action": "https://docs.nvidia.com/deploy/xid-errors/index.html",
    "ecc": _MEMORY,
    "remap": _MEMORY,
    "sxid": _FABRIC,
    "fabric": _FABRIC,
    "fabric-manager": _FABRIC,
    "amdgpu": "https://docs.kernel.org/gpu/amdgpu/ras.html",
    "pcie-errors": "https://docs.kernel.org/PCI/pcieaer-howto.html",
    "dcgm": "https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html",
    "mig": "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html",
    "persistence": "https://docs.nvidia.com/deploy/driver-persistence/index.html",
    "nccl": _NCCL,
    "transport": _NCCL,
    "debug-environment": _NCCL,
    "rendezvous": "https://docs.pytorch.org/docs/stable/distributed.html",
    "dataloader": "https://docs.pytorch.org/docs/stable/multiprocessing.html",
    "shm": "https://docs.pytorch.org/docs/stable/multiprocessing.html",
}


def page(check: str, of_amd: bool = False) -> str:
    """The address for a check, "" where no maker has a page on it."""
    return _BY_CHECK["amdgpu"] if check == "ecc" and of_amd else _BY_CHECK.get(check, "")
