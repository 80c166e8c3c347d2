"""Judging what NVML says of the GPUs."""

from __future__ import annotations

from torchdoctor.extract.xid import place
from torchdoctor.gate.finding import Action, Finding, Untold
from torchdoctor.gate.look import ENVIRONMENT, FAIL, INFO, NODE, WARN, Check, Look, Said
from torchdoctor.model import State, counted
from torchdoctor.number import count as whole

_CONTAINING = (
    "A100",
    "A800",
    "H100",
    "H800",
    "H200",
    "H20",
    "GH200",
    "B100",
    "B200",
    "GB200",
    "B300",
    "GB300",
)
_SWITCHED = ("SXM", "H200", "B200", "B300", "GB200", "GB300", "HBM3", "HGX")


def _answers(look: Look) -> Said:
    """NVML itself: an error, a crash or silence of it."""
    if look.only_amd:
        return
    outcome = look.facts.ended.get("gate-nvml")
    error = look.facts.text("driver.nvml_error")
    wanted = look.expected.gpus
    if outcome is not None and "does not die" in outcome.note:
        yield look.found(
            "nvml", "NVML hangs in the kernel and cannot be killed", FAIL, NODE, Action.REBOOT,
            observed=outcome.note, expected="an answer within seconds",
            source="built in: deadline of the tier",
        )  # fmt: skip
        return
    if error:
        signs = bool(look.facts.text("node.driver_version")) or bool(look.facts.items("node.pci_gpus"))
        if "mismatch" in error.lower():
            yield look.found(
                "nvml", "Driver and its libraries have different versions", FAIL, NODE, Action.REBOOT,
                observed=error, expected="one version", source="NVML",
            )  # fmt: skip
        elif signs and wanted != 0:
            yield look.found(
                "nvml", "The NVIDIA driver does not work", FAIL, NODE, Action.REBOOT,
                observed=error, expected="a working driver: NVIDIA GPUs are on the bus", source="NVML",
            )  # fmt: skip
        elif wanted:
            yield Untold("nvml", error, True)
        return
    if look.facts.get("gpu.nvml_count").state is not State.KNOWN:
        yield from look.untold("nvml", "gpu.nvml_count", required=wanted != 0)
    elif outcome is not None and not outcome.ok:
        why = (
            "timed out"
            if outcome.timed_out
            else f"ended by signal {outcome.signal}"
            if outcome.signal
            else outcome.note
        )
        yield Untold("nvml", f"NVML did not answer everything: {why or 'its program failed'}", True)


def _count(look: Look) -> Said:
    expected = look.expected
    seen = len(look.amd) if look.only_amd else look.count
    known = look.only_amd or look.known("gpu.nvml_count")
    if look.strange_gpus and not expected.by_scheduler:
        yield look.found(
            "gpu-count", "The job asks for GPUs that do not exist here", FAIL, ENVIRONMENT, Action.CHANGE_JOB,
            observed=", ".join(look.strange_gpus),
            expected=f"GPUs 0 to {seen - 1}" if seen > 1 else "GPU 0" if seen else "no GPU",
            source="CUDA_VISIBLE_DEVICES",
            tag="gpu-request",
        )  # fmt: skip
    if expected.gpus is None:
        if not (known and seen):
            yield Untold(
                "gpu-count",
                "no GPU is visible and nothing says how many there should be: --gpus, or [expect] gpus",
                True,
            )
        else:
            yield Untold(
                "gpu-count",
                f"{counted(seen, 'GPU')} seen; nothing says how many there should be: --gpus, or [expect] "
                "gpus",
            )
        return
    if not known and not look.facts.text("driver.nvml_error"):
        yield from look.untold("gpu-count", "gpu.nvml_count", required=expected.gpus > 0)
        return
    if seen < expected.gpus:
        bus = len([row for row in look.facts.rows("node.pci_gpus", 2) if row[1] == "0x10de"]) or len(look.amd)
        on_bus = f", {bus} on the PCI bus" if bus else ""
        if seen == 0 and not bus and not expected.by_policy and not look.facts.text("node.driver_version"):
            yield Untold(
                "gpu-count",
                f"{counted(expected.gpus, 'GPU')} asked for ({expected.source}), no sign of a driver",
                True,
            )
            return
        by_us = expected.by_policy or expected.by_scheduler
        # else nobody but the job itself says that there are more, and ranks may share a GPU on purpose
        yield look.found(
            "gpu-count",
            "GPUs are missing" if by_us else "The job asks for more GPUs than there are",
            WARN if expected.source == "LOCAL_WORLD_SIZE" and not by_us else FAIL,
            NODE if by_us else ENVIRONMENT,
            Action.REBOOT if by_us else Action.CHANGE_JOB,
            tag="gpu-count" if by_us else "gpu-request",
            observed=f"{counted(seen, 'GPU')}{on_bus}",
            expected=counted(expected.gpus, "GPU"),
            source=expected.source,
            advice="then inspect what is still missing" if by_us else "",
        )
    elif seen > expected.gpus and expected.by_policy:
        yield look.found(
            "gpu-count", "More GPUs than expected", WARN, NODE, Action.INSPECT, observed=counted(seen, "GPU"),
            expected=counted(expected.gpus, "GPU"), source=expected.source,
        )  # fmt: skip


def _lost(look: Look) -> Said:
    for name, weight in (("gpu.errors", WARN), ("gpu.health_errors", INFO)):
        for said in dict.fromkeys(str(one) for one in look.facts.items(name)):
            number, _, words = said.removeprefix("GPU ").partition(":")
            gpu = whole(number)
            if gpu is None:
                yield Untold("gpu-lost", f"NVML: {said}")
                continue
            words = words.lower()
            gone = any(one in words for one in ("is lost", "fallen off", "reset required"))
            # some drivers answer single questions so; a GPU that does not even tell its UUID is not there
            gone = gone or ("unknown error" in words and look.facts.of("gpu.uuids", gpu) is None)
            yield look.found(
                "gpu-lost",
                "A GPU does not answer" if gone else "A query about a GPU fails with an error",
                FAIL if gone else weight,
                NODE,
                Action.REBOOT if gone else Action.INSPECT,
                gpu,
                tag="gpu-lost" if gone else "nvml-error",
                observed=said,
                expected="an answer",
                source="NVML",
            )
    if not look.root or look.container or not look.known("gpu.pci") or not look.known("node.pci_gpus"):
        return
    seen = {place(str(address)) for _, address in look.facts.each("gpu.pci")}
    if "" in seen or len(seen) != look.count:
        yield Untold("gpu-lost", "NVML's PCI addresses cannot be read", True)
        return
    for row in look.facts.rows("node.pci_gpus", 3):
        if row[1] == "0x10de" and row[2] == "nvidia" and place(str(row[0])) not in seen:
            yield look.found(
                "gpu-lost", "A GPU is on the PCI bus but not in NVML", FAIL, NODE, Action.REBOOT,
                observed=str(row[0]), expected="every GPU that the driver has", source="/sys/bus/pci",
                tag="gpu-lost",
            )  # fmt: skip


def _model(look: Look) -> Said:
    names = {str(name) for _, name in look.facts.each("gpu.names")}
    if look.expected.model:
        for gpu, name in look.facts.each("gpu.names"):
            if look.expected.model.lower() not in str(name).lower():
                yield look.found(
                    "gpu-model", "A different GPU than expected", FAIL, NODE, Action.INSPECT, gpu,
                    observed=str(name),
                    expected=look.expected.model, source=f"{look.policy.path}: expect.model",
                )  # fmt: skip
    elif len(names) > 1:
        yield look.found(
            "gpu-model", "GPUs of several models", INFO, None, Action.NONE, observed=", ".join(sorted(names))
        )
    driver = look.policy.expected("driver")
    version = look.facts.text("driver.nvml_version")
    if driver and version and not version.startswith(driver):
        yield look.found(
            "driver", "A different driver than expected", FAIL, NODE, Action.CHANGE_SETTING, observed=version,
            expected=driver, source=f"{look.policy.path}: expect.driver",
        )  # fmt: skip


def _ecc(look: Look) -> Said:
    if look.count or not (look.only_amd or look.expected.gpus == 0):
        yield from look.untold("ecc", "gpu.ecc_uncorrected", "gpu.remap_failed", required=look.count > 0)
    capable = [gpu for gpu, name in look.facts.each("gpu.names") if _contains(str(name))]
    for gpu in capable:
        if look.facts.of("gpu.ecc_enabled", gpu) is False:
            yield look.found(
                "ecc", "ECC is switched off: memory errors go unnoticed", WARN, NODE,
                Action.CHANGE_SETTING, gpu, tag="ecc-off", observed="off", expected="on", source="NVML",
                advice="nvidia-smi -e 1, and a reset",
            )  # fmt: skip
    counted = look.facts.get("gpu.ecc_uncorrected").state is not State.UNKNOWN
    silent = [gpu for gpu in capable if counted and look.facts.of("gpu.ecc_uncorrected", gpu) is None]
    silent = [gpu for gpu in silent if look.facts.of("gpu.ecc_enabled", gpu) is not False]
    if silent:  # parts that count errors, and a driver that does not tell them
        which = ", ".join(map(str, silent))
        yield Untold("ecc", f"gpu.ecc_uncorrected: no answer for GPU {which}", True)
    contained = {event.pci for event in look.log.events if event.xid == 94 and look.log.live(event)}
    grave = {event.pci for event in look.log.events if event.xid in (48, 95) and look.log.live(event)}
    for gpu, count in look.facts.each("gpu.ecc_uncorrected"):
        if not isinstance(count, int) or count <= 0:
            continue
        pci = look.where(gpu)[1]
        only_contained = pci in contained and pci not in grave
        yield look.found(
            "ecc", "Uncorrectable memory errors since the driver was loaded",
            WARN if only_contained else FAIL, NODE,
            Action.RESET_GPU, gpu, observed=f"{count} uncorrectable", expected="0",
            source="NVML: volatile ECC counters",
            advice="contained by the driver (Xid 94)" if only_contained else "",
        )  # fmt: skip
    for gpu, count in look.facts.each("gpu.ecc_corrected"):
        if isinstance(count, int) and count >= look.limit("ecc_corrected_warn"):
            yield look.found(
                "ecc", "A storm of corrected memory errors", WARN, NODE, Action.INSPECT, gpu,
                tag="ecc-corrected",
                observed=f"{count} corrected", expected=f"below {look.limit('ecc_corrected_warn'):g}",
                source=look.limit_source("ecc_corrected_warn"),
            )  # fmt: skip
    for gpu, count in look.facts.each("gpu.sram_corrected"):
        if isinstance(count, int) and count >= look.limit("sram_corrected_warn"):
            yield look.found(
                "ecc", "A storm of corrected SRAM errors", WARN, NODE, Action.INSPECT, gpu,
                tag="sram-corrected", observed=f"{count} corrected",
                expected=f"below {look.limit('sram_corrected_warn'):g}",
                source=look.limit_source("sram_corrected_warn"),
            )  # fmt: skip
    for gpu, over in look.facts.each("gpu.sram_threshold"):
        if over is True:
            yield look.found(
                "ecc", "SRAM errors exceed the replacement threshold", FAIL, NODE, Action.RMA, gpu,
                tag="sram",
                observed="threshold exceeded", expected="not exceeded", source="NVML: SRAM ECC error status",
            )  # fmt: skip
    for gpu, count in look.facts.each("gpu.sram_uncorrected_total"):
        if isinstance(count, int) and count > look.limit("sram_uncorrected_warn"):
            yield look.found(
                "ecc", "Many uncorrectable SRAM errors in this GPU's lifetime", WARN, NODE, Action.RMA, gpu,
                tag="sram-total", observed=f"{count}",
                expected=f"at most {look.limit('sram_uncorrected_warn'):g}",
                source=look.limit_source("sram_uncorrected_warn"),
            )  # fmt: skip


def _contains(name: str) -> bool:
    """Is it a part that counts memory errors and contains them?"""
    return any(word in _CONTAINING for word in name.replace("-", " ").split())


def _remap(look: Look) -> Said:
    for gpu, failed in look.facts.each("gpu.remap_failed"):
        if failed is True:
            yield look.found(
                "remap", "A broken memory row could not be replaced", FAIL, NODE, Action.RMA, gpu,
                tag="remap-failed",
                observed="row remapping failed", expected="not failed", source="NVML: remapped rows",
            )  # fmt: skip
    wish = look.policy.options.get("remap_pending")
    for gpu, pending in look.facts.each("gpu.remap_pending"):
        if pending is True:
            contains = _contains(look.facts.text_of("gpu.names", gpu))
            weight = {"fail": FAIL, "warn": WARN, "info": INFO}.get(str(wish), WARN if contains else FAIL)
            yield look.found(
                "remap", "A memory row will be replaced at the next reset", weight, NODE, Action.RESET_GPU,
                gpu,
                tag="remap-pending", observed="row remapping pending", expected="none pending",
                source="NVIDIA: parts with error containment may keep running until they are idle",
            )  # fmt: skip
    for gpu, banks in look.facts.each("gpu.remap_histogram"):
        if isinstance(banks, list) and len(banks) == 5 and isinstance(banks[4], int) and banks[4] > 0:
            yield look.found(
                "remap", "Memory banks with no spare row for another failure", WARN, NODE, Action.RMA, gpu,
                tag="remap-full", observed=f"{counted(banks[4], 'bank')} without spare rows", expected="0",
                source="NVML",
            )  # fmt: skip
    for gpu, count in look.facts.each("gpu.retired_pages"):
        many = isinstance(count, int) and count > look.limit("retired_pages_warn")
        worn = many and int(str(count)) >= look.limit("retired_pages_fail")
        worn = worn and look.facts.of("gpu.retired_pending", gpu) is True
        if many:
            bound = "retired_pages_fail" if worn else "retired_pages_warn"
            yield look.found(
                "remap", "Many memory pages are retired", FAIL if worn else WARN, NODE, Action.RMA, gpu,
                tag="retired-pages",
                observed=counted(int(str(count)), "page") + (", more pending" if worn else ""),
                expected=f"at most {look.limit('retired_pages_warn'):g}", source=look.limit_source(bound),
            )  # fmt: skip
    for gpu, pending in look.facts.each("gpu.retired_pending"):
        if pending is True:
            yield look.found(
                "remap", "Memory pages will be retired at the next reboot", WARN, NODE, Action.REBOOT, gpu,
                tag="retire-pending", observed="page retirement pending", expected="none", source="NVML",
            )  # fmt: skip


def _nvlink(look: Look) -> Said:
    """Links against the policy, else against the siblings, else against those that the GPU has at all.

    A GPU for which NVML does not support the question has no links, or none that this machine is given.
    """
    if look.count:
        yield from look.untold("nvlink", "gpu.nvlinks_active")
    active = dict(look.facts.each("gpu.nvlinks_active"))
    pinned = look.policy.expected("nvlinks")
    names = {gpu: look.facts.text_of("gpu.names", gpu) for gpu in range(look.count)}
    for gpu in range(look.count):
        up = look.facts.number_of("gpu.nvlinks_active", gpu)
        down = look.facts.number_of("gpu.nvlinks_inactive", gpu) or 0
        siblings = [
            int(str(number)) for one, number in active.items() if names.get(one) == names[gpu] and one != gpu
        ]
        if pinned is not None:
            if (up or 0) < pinned:
                yield _links(look, gpu, up or 0, pinned, f"{look.policy.path}: expect.nvlinks", True)
        elif up is not None and siblings and up < max(siblings):
            yield _links(look, gpu, up, max(siblings), "its siblings", _switched(names[gpu]))
        elif up is not None and down:
            # all links of all GPUs down is no proof of health: a part made for a switch must have them
            yield _links(look, gpu, up, up + down, "the links this GPU has", _switched(names[gpu]))
    for gpu, errors in look.facts.each("gpu.nvlink_errors"):
        if isinstance(errors, int) and errors >= look.limit("nvlink_errors_warn"):
            yield look.found(
                "nvlink", "NVLink had to retransmit often", WARN, NODE, Action.INSPECT, gpu,
                tag="nvlink-errors",
                observed=counted(errors, "replay or recovery", "replays and recoveries"),
                expected=f"below {look.limit('nvlink_errors_warn'):g}",
                source=look.limit_source("nvlink_errors_warn"),
            )  # fmt: skip


def _switched(name: str) -> bool:
    return (
        any(word in name.upper() for word in _SWITCHED)
        and "PCIE" not in name.upper()
        and "NVL" not in name.upper()
    )


def _links(look: Look, gpu: int, up: float, wanted: float, source: str, must: bool) -> Finding:
    down = look.facts.of("gpu.nvlinks_down", gpu)
    which = f" (down: {', '.join(str(one) for one in down)})" if isinstance(down, list) and down else ""
    return look.found(
        "nvlink", "NVLinks are down", FAIL if must else WARN, NODE, Action.RESET_GPU, gpu,
        observed=f"{counted(int(up), 'link')} up{which}", expected=f"{wanted:g}", source=source,
        advice="" if must else "bridged cards work without it, at PCIe speed between peers",
    )  # fmt: skip


CHECKS = (
    Check("nvml", "NVML answers", _answers),
    Check("gpu-count", "All GPUs are there", _count),
    Check("gpu-lost", "Every GPU answers", _lost, ("gpu.errors",)),
    Check("gpu-model", "The GPUs are of the expected model", _model, ("gpu.names",)),
    Check("ecc", "No uncorrectable memory errors", _ecc, ("gpu.ecc_uncorrected",)),
    Check("remap", "Memory rows are intact", _remap, ("gpu.remap_failed",)),
    Check("nvlink", "NVLinks are up", _nvlink),
)
