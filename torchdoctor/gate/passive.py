"""The passive set: every judgement over recorded facts. Pure: the same facts give the same findings."""

from __future__ import annotations

from torchdoctor.gate import (
    amdgpu,
    checks_gpu,
    checks_log,
    checks_node,
    checks_pcie,
    checks_power,
    checks_use,
    kernel,
)
from torchdoctor.gate.expect import expectation, job_gpus
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import Finding, Untold
from torchdoctor.gate.look import Look
from torchdoctor.gate.policy import Policy

CHECKS = (
    *checks_gpu.CHECKS,
    *checks_pcie.CHECKS,
    *checks_use.CHECKS,
    *checks_log.CHECKS,
    *amdgpu.CHECKS,
    *checks_power.CHECKS,
    *checks_node.CHECKS,
)
# findings that a check makes under another name than its own
FURTHER = ("driver", "pcie-generation", "xid-repeated", "taint", "uptime", "cpus")
ENVIRONMENT = (
    "interpreter", "kernel-image", "libraries", "dataloader", "extension-locks", "caches", "versions",
    "rendezvous", "transport", "allocation", "debug-environment",
)  # fmt: skip
ACTIVE = (
    "gemm-exact", "bit-equal", "bit-equal-hot", "nan", "h2d", "d2h", "hbm", "gemm-rate", "p2p", "nccl",
    "memory", "jitter", "torch", "active", "dcgm",
)  # fmt: skip
NAMES = (*(check.id for check in CHECKS), *FURTHER, *ENVIRONMENT, *ACTIVE)


def look_at(
    facts: Facts, policy: Policy, gpus: int | None = None, before_job: bool = False, beside: bool = False
) -> Look:
    """What the checks look at. ``gpus`` is the command line's word on the number of GPUs.

    ``beside`` says that other people's work may be running on all GPUs.
    """
    names = facts.each("gpu.names")
    policy = policy.for_model(str(names[0][1]) if names else "")
    wanted, source = gpus, "--gpus"
    if wanted is None and policy.expected("gpus") is not None:
        wanted, source = policy.expected("gpus"), f"{policy.path}: expect.gpus"
    expected = expectation(facts, wanted, source, policy.expected("model") or "")
    mine, strange = job_gpus(facts)
    return Look(facts, kernel.read(facts), expected, policy, mine, strange, before_job and not beside)


def judge(look: Look) -> tuple[tuple[Finding, ...], tuple[Untold, ...]]:
    """All findings, and all that could not be told."""
    findings: list[Finding] = []
    untold: list[Untold] = []
    for check in CHECKS:
        try:
            found = tuple(check.judge(look))
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            # facts of a form that nobody expected: no word on the node, and no pass either
            untold.append(Untold(check.id, f"what was read has an unknown format: {error}", True))
            continue
        findings += [one for one in found if isinstance(one, Finding)]
        own = [one for one in found if isinstance(one, Untold)]
        untold += own or check.unanswered(look)
    return tuple(findings), tuple(dict.fromkeys(untold))
