"""Judging what holds a GPU down: throttling, temperature, limits set by hand, the fabric it is part of."""

from __future__ import annotations

from torchdoctor.gate.finding import Action, Untold
from torchdoctor.gate.look import FAIL, INFO, NODE, WARN, Check, Look, Said
from torchdoctor.model import counted

_BUSY = 10  # per cent of utilization: an idle GPU runs slowly whatever its limits are
_HARD = {
    "hw-power-brake": "The power supply throttles the GPU (power brake)",
    "hw-thermal-slowdown": "The GPU is too hot and throttled",
}


def _throttle(look: Look) -> Said:
    for gpu, reasons in look.facts.each("gpu.throttle_reasons"):
        names = [str(one) for one in reasons] if isinstance(reasons, list) else []
        grave = [name for name in names if name in _HARD]
        for name in grave:
            yield look.found(
                "throttle", _HARD[name], FAIL, NODE, Action.INSPECT, gpu, tag=name, observed=name,
                expected="not throttled by the hardware", source="NVML: clocks event reasons",
            )  # fmt: skip
        if "hw-slowdown" in names and not grave:
            yield look.found(
                "throttle", "The hardware slows the GPU down", WARN, NODE, Action.INSPECT, gpu,
                tag="hw-slowdown",
                observed="hw-slowdown", expected="not throttled by the hardware",
                source="NVML: clocks event reasons",
            )  # fmt: skip
        soft = [name for name in names if name.startswith("sw-")]
        if soft:  # a power cap is how full load looks
            yield look.found(
                "throttle",
                "The driver limits the clock",
                INFO,
                None,
                Action.NONE,
                gpu,
                observed=", ".join(soft),
            )


def _temperature(look: Look) -> Said:
    for gpu, now in look.facts.each("gpu.temperature_c"):
        most = look.facts.number_of("gpu.temperature_slowdown_c", gpu)
        if not isinstance(now, (int, float)) or not most:
            continue
        margin = most - now
        for weight, name in ((FAIL, "temperature_margin_fail_c"), (WARN, "temperature_margin_warn_c")):
            if margin <= look.limit(name):
                yield look.found(
                    "temperature", "The GPU is close to its slowdown temperature", weight, NODE,
                    Action.INSPECT, gpu,
                    observed=f"{now:g} C, slowdown at {most:g} C",
                    expected=f"more than {look.limit(name):g} C below",
                    source=look.limit_source(name),
                )  # fmt: skip
                break


def _margin(look: Look) -> Said:
    """Parts that tell only how far they are from their limit: near it they slow down by design."""
    for gpu, margin in look.facts.each("gpu.temperature_margin_c"):
        if isinstance(margin, (int, float)) and margin <= look.limit("temperature_margin_fail_c"):
            yield look.found(
                "temperature", "The GPU is close to its temperature limit", WARN, NODE, Action.INSPECT, gpu,
                observed=f"{margin:g} C left", source=look.limit_source("temperature_margin_fail_c"),
                expected=f"more than {look.limit('temperature_margin_fail_c'):g} C",
            )  # fmt: skip


def _clocks(look: Look) -> Said:
    """A clock set by hand, below the one that the board has by default, or that holds a busy GPU down."""
    for gpu in range(look.count):
        limit = look.facts.number_of("gpu.application_clock_mhz", gpu)
        usual = look.facts.number_of("gpu.application_clock_default_mhz", gpu)
        source = "the board's default"
        busy = (look.facts.number_of("gpu.utilization", gpu) or 0) >= _BUSY
        if busy and look.facts.of("gpu.clock_held", gpu) is True:
            limit = look.facts.number_of("gpu.sm_clock_mhz", gpu)
            usual = look.facts.number_of("gpu.sm_clock_max_mhz", gpu)
            source = "the highest clock, while a manually set clock limits the GPU"
        if not limit or not usual:
            continue
        for weight, name in ((FAIL, "clock_limit_fail_share"), (WARN, "clock_limit_warn_share")):
            if limit / usual < look.limit(name):
                yield look.found(
                    "clocks", "The GPU's clock is limited manually", weight, NODE, Action.CHANGE_SETTING, gpu,
                    observed=f"{limit:g} MHz", expected=f"{look.limit(name):.0%} of {usual:g} MHz, {source}",
                    source=look.limit_source(name), advice="nvidia-smi -rgc and -rac remove such limits",
                )  # fmt: skip
                break


def _power_limit(look: Look) -> Said:
    for gpu, usual in look.facts.each("gpu.power_limit_default_w"):
        limit = look.facts.number_of("gpu.power_limit_w", gpu)
        if not isinstance(usual, (int, float)) or not usual or limit is None:
            continue
        share = limit / usual
        for weight, name in ((FAIL, "power_limit_fail_share"), (WARN, "power_limit_warn_share")):
            if share < look.limit(name):
                yield look.found(
                    "power-limit", "The GPU's power limit is lowered", weight, NODE, Action.CHANGE_SETTING,
                    gpu,
                    observed=f"{limit:g} W", expected=f"{usual:g} W, the default",
                    source=look.limit_source(name),
                    advice=f"nvidia-smi -pl {usual:g}",
                )  # fmt: skip
                break


def _persistence(look: Look) -> Said:
    wish = {"fail": FAIL, "warn": WARN, "info": INFO}.get(str(look.policy.options.get("persistence", "")))
    for gpu, on in look.facts.each("gpu.persistence"):
        if on is False:
            yield look.found(
                "persistence", "Persistence mode is off: the driver forgets its state between jobs",
                wish or WARN, NODE,
                Action.CHANGE_SETTING, gpu, observed="off", expected="on", source="NVML",
                advice="start nvidia-persistenced",
            )  # fmt: skip


def _fabric(look: Look) -> Said:
    """The state of NVLink's fabric per GPU: complete when it says so itself, with or without IMEX."""
    states = look.facts.each("gpu.fabric_states")
    for gpu, state in states:
        status = look.facts.number_of("gpu.fabric_status", gpu)
        if state == "completed" and status:
            yield look.found(
                "fabric", "The GPU was not accepted into the NVLink fabric", FAIL, NODE,
                Action.RESTART_SERVICE, gpu,
                observed=f"completed with NVML error {status:g}", expected="completed with success",
                source="NVML",
                advice="the fabric manager's log says which resource is lacking",
            )  # fmt: skip
        elif state in ("not-started", "in-progress"):
            uptime = look.facts.number("node.uptime_s")
            fresh = uptime is not None and uptime < 300
            yield look.found(
                "fabric", "The GPU is not part of the NVLink fabric yet", WARN if fresh else FAIL, NODE,
                Action.RESTART_SERVICE, gpu, observed=str(state), expected="completed", source="NVML",
                advice="start the fabric manager (or IMEX) and look at its log",
            )  # fmt: skip


def _fabric_manager(look: Look) -> Said:
    switches = look.facts.number("node.nvswitches")
    if switches is None:
        yield from look.untold("fabric-manager", "node.nvswitches")
        return
    if switches == 0:
        return
    if look.facts.value("node.fabric_manager") is not True:
        states = {state for _, state in look.facts.each("gpu.fabric_states")}
        if states == {"completed"}:
            return  # it is managed from elsewhere, and done
        if look.container:
            yield Untold("fabric-manager", "a container does not see the host's services")
            return
        yield look.found(
            "fabric-manager", "The fabric manager is not running", FAIL, NODE, Action.RESTART_SERVICE,
            observed=f"{counted(int(switches), 'NVSwitch', 'NVSwitches')}, no nv-fabricmanager",
            expected="running", source="/proc",
            advice="systemctl restart nvidia-fabricmanager",
        )  # fmt: skip
        return
    own, driver = look.facts.text("node.fabric_version"), look.facts.text("driver.nvml_version")
    driver = driver or look.facts.text("node.driver_version")
    if own[:1].isdigit() and driver[:1].isdigit() and own != driver:
        yield look.found(
            "fabric-manager", "Fabric manager and driver have different versions", FAIL, NODE,
            Action.CHANGE_SETTING,
            observed=f"fabric manager {own}, driver {driver}", expected="one version",
            source="NVIDIA's guide",
            advice="install the fabric manager of the driver's version and restart it",
        )  # fmt: skip


CHECKS = (
    Check("throttle", "The hardware does not throttle", _throttle, ("gpu.throttle_reasons",)),
    Check("temperature", "Temperatures have headroom", _temperature, ("gpu.temperature_c",)),
    Check("temperature", "Temperatures are well below the limit", _margin),
    Check("clocks", "Clocks are not limited", _clocks, ("gpu.clock_held",)),
    Check(
        "power-limit",
        "Power limits are the default ones",
        _power_limit,
        ("gpu.power_limit_w", "gpu.power_limit_default_w"),
    ),
    Check("persistence", "Persistence mode is on", _persistence, ("gpu.persistence",)),
    Check("fabric", "GPUs are part of the NVLink fabric", _fabric, ("gpu.fabric_states",)),
    Check("fabric-manager", "The fabric manager runs, in the driver's version", _fabric_manager),
)
