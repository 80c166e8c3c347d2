"""Judging whether the GPUs are as the job wants to use them: whole, and free."""

from __future__ import annotations

from torchdoctor.gate.finding import Action
from torchdoctor.gate.look import ENVIRONMENT, FAIL, INFO, NODE, USER, WARN, Check, Look, Said

_BUSY_PERCENT = 50  # more than a desktop draws, or than NVML still counts of a program that has just ended


def _mig(look: Look) -> Said:
    wanted = look.policy.expected("mig")
    for gpu, on in look.facts.each("gpu.mig_modes"):
        if on is not True and on is not False:
            continue
        if wanted is not None and on is not wanted:
            yield look.found(
                "mig", "MIG is not as expected", FAIL, NODE, Action.CHANGE_SETTING, gpu,
                observed=f"MIG {_on(on)}",
                expected=f"MIG {_on(wanted)}", source=f"{look.policy.path}: expect.mig",
            )  # fmt: skip
        elif on and wanted is None:
            slices = any(value.startswith("MIG-") for value in look.facts.variables().values())
            if not slices and look.expected.gpus and look.mine(gpu):
                yield look.found(
                    "mig", "MIG is on, but the job asks for whole GPUs", FAIL if look.before_job else WARN,
                    ENVIRONMENT,
                    Action.CHANGE_JOB, gpu, observed="MIG on",
                    expected="MIG off, or a MIG device in the job's list",
                    source=look.expected.source,
                )  # fmt: skip
            elif not slices:
                yield look.found("mig", "MIG is on", INFO, None, Action.NONE, gpu, observed="MIG on")


def _on(value: object) -> str:
    return "on" if value else "off"


def _leftovers(look: Look) -> Said:
    """Memory that is taken before the job begins, and by whom."""
    owners = {str(row[0]): f" ({row[1]} of {row[2]})" for row in look.facts.rows("gpu.owners", 3)}
    by_gpu: dict[int, list[str]] = {}
    for row in look.facts.rows("gpu.processes", 3):
        if isinstance(row[0], int):
            by_gpu.setdefault(row[0], []).append(f"{row[1]}{owners.get(str(row[1]), '')}")
    for gpu in range(look.count):
        if not look.mine(gpu):
            continue
        used, total = (
            look.facts.number_of("gpu.memory_used_bytes", gpu),
            look.facts.number_of("gpu.memory_total_bytes", gpu),
        )
        if used is None or not total or used <= look.limit("memory_used_warn_bytes"):
            continue
        pids = by_gpu.get(gpu, [])
        busy = look.facts.number_of("gpu.utilization", gpu) or 0 if pids else 0
        # a program that computes takes half of the GPU, however little memory it holds
        much = used / total > look.limit("memory_used_fail_share") or busy >= _BUSY_PERCENT
        holder = f"process {', '.join(pids)}" if pids else "no visible process"
        holder += f", {busy:.0f} % busy" if busy >= _BUSY_PERCENT else ""
        yield look.found(
            "leftovers",
            "GPU memory is in use before the job starts" if look.before_job else "GPU memory is in use",
            FAIL if much and look.before_job else WARN if look.before_job else INFO,
            NODE if look.before_job else USER,
            Action.END_PROCESS if pids else Action.RESET_GPU, gpu,
            observed=f"{used / 1e9:.1f} GB used by {holder}",
            expected=f"below {look.limit('memory_used_fail_share'):.0%} of {total / 1e9:.0f} GB",
            source=look.limit_source("memory_used_fail_share"),
        )  # fmt: skip


CHECKS = (
    Check("mig", "MIG is as the job requests it", _mig, ("gpu.mig_modes",)),
    Check("leftovers", "GPU memory is free", _leftovers, ("gpu.memory_used_bytes",)),
)
