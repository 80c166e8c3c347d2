"""Claims about the GPUs: how many are left to this process, who else uses them, are they sound."""

from __future__ import annotations

from torchdoctor.model import FactValue, Reason, counted
from torchdoctor.number import number
from torchdoctor.probes.claims_torch import capabilities
from torchdoctor.probes.derived import CannotTell, Claim, Derived, Facts, NotApplicable
from torchdoctor.xid_codes import codes

# Memory in use below this is what driver and display take. Source: thresholds for "memory in use before the
# job", which warn above 500 MiB.
_NOTICEABLE = 500 << 20
_BUSY = 20  # percent; a desktop that draws stays below
# Less than a CUDA context takes: a driver that was just started reports load, and nobody is there.
_CONTEXT = 200 << 20
_DAY_S = 86400
# classes of codes whose fault is the card's or the link's, and not a program's
_HARDWARE = frozenset({"RESET", "REBOOT", "RMA", "LINK", "RECOVERY"})
_HARD_THROTTLE = {"hw-slowdown", "hw-thermal-slowdown", "hw-power-brake", "sw-thermal-slowdown"}


def _count(facts: Facts) -> Claim:
    error = str(facts.maybe("driver.nvml_error") or "")
    if "Driver Not Loaded" in error:
        return Claim(0, f"NVML: {error}")
    found = facts.get("gpu.nvml_count")
    return Claim(found if found is not None else 0, "NVML" if found is not None else "no NVIDIA driver")


def visible(setting: str | None, count: int, uuids: tuple[str, ...]) -> int:
    """How many GPUs CUDA_VISIBLE_DEVICES leaves: entries count up to the first that names no GPU.

    Entries are indices, or beginnings of UUIDs that fit one GPU; a MIG instance counts as one.
    Source: CUDA programming guide, "CUDA environment variables".
    """
    if setting is None:
        return count
    seen: list[str] = []
    for entry in (part.strip() for part in setting.split(",")):
        if entry.startswith("MIG"):
            key = entry
        elif entry.startswith("GPU-"):
            fitting = [uuid for uuid in uuids if uuid.startswith(entry)]
            if len(fitting) != 1:
                break
            key = fitting[0]
        else:
            index = number(entry.lstrip("+"))
            if index is None or not 0 <= index < count:
                break
            key = str(index)
        if key in seen:  # CUDA takes a GPU that is named twice for an error, and shows none
            return 0
        seen.append(key)
    return len(seen)


def _visible_count(facts: Facts) -> Claim:
    count = int(facts.number("gpu.count"))
    setting = facts.get("env.CUDA_VISIBLE_DEVICES")
    named = str(setting) if setting is not None else None
    uuids = facts.texts("gpu.uuids") if named and "GPU-" in named else ()
    return Claim(visible(named, count, uuids), "CUDA_VISIBLE_DEVICES is not set" if named is None else named)


def _hidden(facts: Facts) -> Claim:
    if facts.number("gpu.count") == 0:
        raise NotApplicable("no GPU")
    left = facts.number("gpu.visible_count")
    return Claim(left == 0, f"CUDA_VISIBLE_DEVICES={facts.maybe('env.CUDA_VISIBLE_DEVICES')}")


def _lowest(facts: Facts) -> Claim:
    return Claim(min(float(one) for one in capabilities(facts)))


def _gpus(facts: Facts) -> None:
    if facts.number("gpu.count") == 0:
        raise NotApplicable("no GPU")


def _mig(facts: Facts) -> Claim:
    _gpus(facts)
    return Claim(True in facts.items("gpu.mig_modes"))


def _mig_without(facts: Facts) -> Claim:
    _gpus(facts)
    modes = facts.items("gpu.mig_modes")
    every = bool(modes) and all(mode is True for mode in modes)
    return Claim(every and facts.number("gpu.mig_instances") == 0)


def _exclusive(facts: Facts) -> Claim:
    _gpus(facts)
    modes = [str(mode) for mode in facts.items("gpu.compute_modes") if mode not in (None, "default")]
    return Claim(bool(modes), ", ".join(modes))


def _order_ambiguous(facts: Facts) -> Claim:
    _gpus(facts)
    models = set(facts.texts("gpu.names"))
    order = facts.text("env.CUDA_DEVICE_ORDER")
    return Claim(len(models) > 1 and order != "PCI_BUS_ID", ", ".join(sorted(models)))


def _lost(facts: Facts) -> Claim:
    error = str(facts.maybe("driver.nvml_error") or "")
    if "lost" in error.lower():
        return Claim(True, error)
    _gpus(facts)
    said = [text for text in facts.texts("gpu.errors") if "lost" in text.lower()]
    return Claim(bool(said), "; ".join(said))


def _used(facts: Facts) -> list[tuple[int, int, int]]:
    """Index, bytes in use and bytes in all of each GPU that tells them."""
    _gpus(facts)
    used, total = facts.items("gpu.memory_used_bytes"), facts.items("gpu.memory_total_bytes")
    found = [
        (index, int(mine), int(all_of_it))
        for index, (mine, all_of_it) in enumerate(zip(used, total, strict=False))
        if isinstance(mine, int) and isinstance(all_of_it, int) and all_of_it > 0
    ]
    if not found:
        raise CannotTell("no GPU tells its memory")
    return found


def _others_bytes(facts: Facts) -> Claim:
    index, used, _ = max(_used(facts), key=lambda one: one[1])
    return Claim(used, f"GPU {index}")


def _others_share(facts: Facts) -> Claim:
    index, used, total = max(_used(facts), key=lambda one: one[1] / one[2])
    return Claim(round(used / total, 4), f"GPU {index}")


def _held_by_dead(facts: Facts) -> Claim:
    full = [index for index, used, _ in _used(facts) if used > _NOTICEABLE]
    known = {item[0] for item in facts.items("gpu.processes") if isinstance(item, tuple)}
    modes = facts.items("gpu.mig_modes")
    # With MIG the processes are listed under the instances.
    orphans = [index for index in full if index not in known and not (index < len(modes) and modes[index])]
    if not orphans:
        return Claim(False)
    if facts.get("os.container") or facts.get("os.wsl"):
        raise CannotTell("processes outside are not to be seen from here", Reason.NOT_PERMITTED)
    return Claim(True, ", ".join(f"GPU {index}" for index in orphans))


def _neighbours(facts: Facts) -> Claim:
    """GPUs that others use: memory, load, and of each process what may be told."""
    load, modes = facts.maybe("gpu.utilization"), facts.maybe("gpu.mig_modes")
    shows = facts.maybe("gpu.display_active")
    owners = {one[0]: one for one in _rows(facts.maybe("gpu.owners")) if len(one) == 5}
    listed = [one for one in _rows(facts.maybe("gpu.processes")) if len(one) == 4]
    found = []
    for index, used, total in _used(facts):
        mine = [one for one in listed if one[0] == index]
        busy = _at(load, index)
        percent = busy if isinstance(busy, (int, float)) else 0
        desktop = bool(_at(shows, index)) and all(one[3] == "graphics" for one in mine)
        least = total // 4 if desktop else max(_NOTICEABLE, total // 20)
        # with MIG the figures are those of all instances
        if _at(modes, index) is True or (used < least and (used < _CONTEXT or percent < _BUSY or desktop)):
            continue
        text = f"GPU {index}: {used / 2**30:.1f} of {total / 2**30:.1f} GiB in use, {percent:.0f} % busy"
        who = [_process(int(str(one[1])), owners.get(one[1])) for one in mine]
        found.append(f"{text}: " + ("; ".join(who) or "no process of it can be seen from here"))
    return Claim(tuple(found) or None)


def _rows(value: FactValue) -> list[tuple[FactValue, ...]]:
    return [one for one in value if isinstance(one, tuple)] if isinstance(value, tuple) else []


def _at(value: FactValue, index: int) -> FactValue:
    return value[index] if isinstance(value, tuple) and index < len(value) else None


def _process(pid: int, owner: tuple[FactValue, ...] | None) -> str:
    if owner is None:
        return f"process {pid}"
    _, name, user, age_s, orphan = owner
    age = f", {age_s / 3600:.1f} h old" if isinstance(age_s, (int, float)) else ""
    return f"process {pid} ({name} of {user}{age}{', an orphan' if orphan else ''})"


def _xid_recent(facts: Facts) -> Claim:
    hardware = {code.code for code in codes().values() if code.kind in _HARDWARE}
    found: dict[str, float] = {}
    for row in _rows(facts.get("kernel.gpu_errors")):
        if len(row) == 3 and row[1] in hardware and isinstance(row[2], (int, float)) and row[2] < _DAY_S:
            key = f"Xid {row[1]} of {row[0]}"
            found[key] = min(found.get(key, row[2]), row[2])
    return Claim(tuple(f"{key}, {age / 3600:.1f} h ago" for key, age in found.items()) or None)


def _virtual(facts: Facts) -> Claim:
    _gpus(facts)
    kinds = facts.items("gpu.virtualization")
    if "vgpu" in kinds:
        return Claim(True, "a vGPU")
    return Claim(True in facts.items("gpu.mig_modes"), "MIG" if True in facts.items("gpu.mig_modes") else "")


def _throttled(facts: Facts) -> Claim:
    _gpus(facts)
    found = [
        f"GPU {index}: {', '.join(hard)}"
        for index, reasons in enumerate(facts.items("gpu.throttle_reasons"))
        if isinstance(reasons, tuple) and (hard := [str(one) for one in reasons if one in _HARD_THROTTLE])
    ]
    return Claim(bool(found), "; ".join(found))


def _pairs(facts: Facts, one: str, other: str) -> list[tuple[int, int, int]]:
    _gpus(facts)
    return [
        (index, int(left), int(right))
        for index, (left, right) in enumerate(zip(facts.items(one), facts.items(other), strict=False))
        if isinstance(left, int) and isinstance(right, int)
    ]


def _pcie_degraded(facts: Facts) -> Claim:
    narrow = [
        f"GPU {index}: {now} of {counted(most, 'lane')}"
        for index, now, most in _pairs(facts, "gpu.pcie_width", "gpu.pcie_width_max")
        if now < most
    ]
    return Claim(bool(narrow), "; ".join(narrow))


def _nvlink_down(facts: Facts) -> Claim:
    """Links that are down count only where they must be up: on a switch, or when a twin has more of them.

    A PCIe card without its bridge has links that are down by construction.
    """
    pairs = _pairs(facts, "gpu.nvlinks_active", "gpu.nvlinks_inactive")
    names = facts.items("gpu.names")
    switched = facts.number("driver.nvswitches") > 0 or "completed" in facts.items("gpu.fabric_states")
    best: dict[FactValue, int] = {}
    for index, up, _ in pairs:
        name = names[index] if index < len(names) else None
        best[name] = max(best.get(name, 0), up)
    down = [
        f"GPU {index}: {broken} down, {up} up"
        for index, up, broken in pairs
        if broken and (switched or up < best[names[index] if index < len(names) else None])
    ]
    return Claim(bool(down), "; ".join(down))


def _ecc_failed(facts: Facts) -> Claim:
    _gpus(facts)
    found = [
        f"GPU {at}: {number} uncorrected"
        for at, number in enumerate(facts.items("gpu.ecc_uncorrected"))
        if number
    ]
    found += [
        f"GPU {at}: row remap failed" for at, failed in enumerate(facts.items("gpu.remap_failed")) if failed
    ]
    return Claim(bool(found), "; ".join(found))


CLAIMS = (
    Derived("gpu.count", ("driver.nvml_error", "gpu.nvml_count"), _count),
    Derived("gpu.visible_count", ("gpu.count", "env.CUDA_VISIBLE_DEVICES", "gpu.uuids"), _visible_count),
    Derived("gpu.hidden", ("gpu.count", "gpu.visible_count", "env.CUDA_VISIBLE_DEVICES"), _hidden),
    Derived("gpu.lowest_capability", ("torch.device_capability", "gpu.compute_capability"), _lowest),
    Derived("gpu.mig", ("gpu.count", "gpu.mig_modes"), _mig),
    Derived("gpu.mig_without_instance", ("gpu.count", "gpu.mig_modes", "gpu.mig_instances"), _mig_without),
    Derived("gpu.exclusive", ("gpu.count", "gpu.compute_modes"), _exclusive),
    Derived("gpu.order_ambiguous", ("gpu.count", "gpu.names", "env.CUDA_DEVICE_ORDER"), _order_ambiguous),
    Derived("gpu.lost", ("driver.nvml_error", "gpu.count", "gpu.errors"), _lost),
    Derived(
        "gpu.others_memory_bytes",
        ("gpu.count", "gpu.memory_used_bytes", "gpu.memory_total_bytes"),
        _others_bytes,
    ),
    Derived(
        "gpu.others_memory_share",
        ("gpu.count", "gpu.memory_used_bytes", "gpu.memory_total_bytes"),
        _others_share,
    ),
    Derived(
        "gpu.held_by_dead",
        (
            "gpu.count", "gpu.memory_used_bytes", "gpu.memory_total_bytes", "gpu.processes", "gpu.mig_modes",
            "os.container", "os.wsl",
        ),
        _held_by_dead,
    ),
    Derived(
        "gpu.neighbours",
        (
            "gpu.count", "gpu.memory_used_bytes", "gpu.memory_total_bytes", "gpu.utilization",
            "gpu.processes", "gpu.owners", "gpu.mig_modes", "gpu.display_active",
        ),
        _neighbours,
    ),
    Derived("gpu.xid_recent", ("kernel.gpu_errors",), _xid_recent),
    Derived("gpu.virtual", ("gpu.count", "gpu.virtualization", "gpu.mig_modes"), _virtual),
    Derived("gpu.throttled", ("gpu.count", "gpu.throttle_reasons"), _throttled),
    Derived("gpu.pcie_degraded", ("gpu.count", "gpu.pcie_width", "gpu.pcie_width_max"), _pcie_degraded),
    Derived(
        "gpu.nvlink_down",
        (
            "gpu.count", "gpu.nvlinks_active", "gpu.nvlinks_inactive", "gpu.names", "driver.nvswitches",
            "gpu.fabric_states",
        ),
        _nvlink_down,
    ),
    Derived("gpu.ecc_failed", ("gpu.count", "gpu.ecc_uncorrected", "gpu.remap_failed"), _ecc_failed),
)  # fmt: skip
