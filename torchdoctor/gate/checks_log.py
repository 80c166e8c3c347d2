"""Judging the kernel log: Xid and SXid since boot or the last reset, by class and never by a number alone."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.gate import nvlink5, sxid
from torchdoctor.gate.finding import Action, Finding, Untold, Weight
from torchdoctor.gate.kernel import Event
from torchdoctor.gate.look import FABRIC, FAIL, INFO, NODE, USER, WARN, Check, Look, Said
from torchdoctor.model import Blame, State, counted
from torchdoctor.xid_codes import codes

SOURCE = "classes of NVIDIA's Xid catalogue (torchdoctor/xid_codes.tsv)"
_RESET = {"RESET": Action.RESET_GPU, "REBOOT": Action.REBOOT, "RMA": Action.RMA}
_WANTED = {
    "reset": Action.RESET_GPU,
    "reboot": Action.REBOOT,
    "system-reboot": Action.REBOOT,
    "bus-reset": Action.REBOOT,
    "drain-p2p": Action.DRAIN_RESET,
    "drain-and-reset": Action.DRAIN_RESET,
    "recover-imex-domain": Action.RESTART_SERVICE,
}
# the driver's own wish decides over these, when it has none
_DRIVER_DECIDES = (44, 109)
_CONTAINED, _UNCONTAINED_MANY = 94, "three contained memory errors since the last reset"
_STORM_S = 3600.0
_CORRECTED_RATE = 10
_SHOWN = 4


def _log_readable(look: Look) -> Said:
    """A log that nobody can read proves nothing. Root must read it; others may have NVML's word instead."""
    found = look.facts.get("kernel.lines")
    if found.state is State.KNOWN:
        if look.facts.value("kernel.complete") is False:
            yield look.found(
                "kernel-log", "The oldest lines of the kernel log are overwritten", INFO, None, Action.NONE,
                observed="errors before the first remaining line cannot be seen",
            )  # fmt: skip
        return
    actions = look.facts.each("gpu.recovery_actions")
    told = len(actions) == look.count and look.count > 0
    free = not look.root or bool(look.container)
    yield from look.untold("kernel-log", "kernel.lines", required=not (told and free))


def _recovery(look: Look) -> Said:
    name = "gpu.recovery_actions"
    for gpu, wish in look.facts.each(name):
        action = _WANTED.get(str(wish))
        if action is not None:
            yield look.found(
                "recovery-action", f"The driver requests a recovery of this GPU: {wish}", FAIL, NODE, action,
                gpu,
                observed=f"recovery action {wish}", expected="none", source="NVML: GPU recovery action",
                tag=f"recovery-{wish}",
            )  # fmt: skip
    known = {gpu for gpu, _ in look.facts.each(name)}
    silent = [gpu for gpu in range(look.count) if gpu not in known]
    if silent and look.known("gpu.nvml_count"):
        # drivers before 570 do not tell it: the log's Xid lines stand in
        where = ", ".join(str(gpu) for gpu in silent)
        yield Untold("recovery-action", f"the driver does not report it for GPU {where}; Xid lines decide")


def _xid(look: Look) -> Said:
    yield from _log_missing(look, "xid")
    events = [event for event in look.log.events if event.xid >= 0]
    groups: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        groups.setdefault((event.pci, event.xid), []).append(event)
    for (pci, code), every in groups.items():
        kind = every[-1].kind
        live = [event for event in every if look.log.live(event)]
        if kind in ("REBOOT", "RMA"):
            live = every  # only a boot ends these, and the log begins with it
        if not live:
            yield _told(look, pci, code, every, INFO, None, Action.NONE, "before the last reset of this GPU")
        elif kind == "DECODE":
            yield from _nvlink(look, pci, code, live)
        else:
            yield _judged(look, pci, code, kind, live)
    yield from _repeated_by_jobs(look, events)


def _log_missing(look: Look, check: str) -> Iterator[Untold]:
    yield from look.untold(check, "kernel.lines")


def _judged(look: Look, pci: str, code: int, kind: str, live: list[Event]) -> Finding:
    gpu = look.gpu_at(pci)
    if all("nonfatal" in event.text.lower() or "non-fatal" in event.text.lower() for event in live):
        return _told(
            look, pci, code, live, WARN, NODE, Action.NONE, "the line itself says that it is not fatal"
        )
    if kind in _RESET:
        wish = look.facts.text_of("gpu.recovery_actions", gpu) if gpu is not None else ""
        if code in _DRIVER_DECIDES and wish == "none":
            return _told(look, pci, code, live, WARN, NODE, Action.NONE, "the driver requests no recovery")
        return _told(look, pci, code, live, FAIL, NODE, _WANTED.get(wish, _RESET[kind]), "")
    if kind == "RECOVERY":
        action = _WANTED.get(live[-1].recovery)
        if action is None:
            return _told(look, pci, code, live, INFO, None, Action.NONE, "cleared")
        return _told(look, pci, code, live, FAIL, NODE, action, "")
    if kind == "LINK":
        down = look.facts.items("gpu.nvlinks_down")
        broken = gpu is not None and gpu < len(down) and bool(down[gpu])
        if code == 74 and not broken:
            return _told(look, pci, code, live, WARN, NODE, Action.INSPECT, "NVML shows every link up")
        return _told(look, pci, code, live, FAIL, NODE, Action.RESET_GPU, "")
    if kind == "WATCH":
        if code == _CONTAINED and len(live) >= look.limit("contained_errors_fail"):
            return _told(look, pci, code, live, FAIL, NODE, Action.RESET_GPU, _UNCONTAINED_MANY)
        return _told(
            look, pci, code, live, WARN, NODE, Action.RESTART_JOB if code == 94 else Action.INSPECT, ""
        )
    if kind in ("APP", "IGN", "LEGACY"):
        why = "caused by a job, not by itself a sign of a broken GPU" if kind == "APP" else ""
        return _told(look, pci, code, live, INFO, None, Action.NONE, why)
    return _told(look, pci, code, live, WARN, NODE, Action.INSPECT, "a code that is not in the table")


def _told(
    look: Look,
    pci: str,
    code: int,
    events: list[Event],
    weight: Weight,
    blame: Blame | None,
    action: Action,
    why: str,
) -> Finding:
    known = codes().get(code)
    meaning = known.meaning if known is not None else "unknown code"
    gpu = look.gpu_at(pci)
    found = look.found(
        "xid", f"Xid {code}: {meaning}", weight, blame, action, gpu, tag=f"xid{code}",
        observed=f"{len(events)} times since boot" if len(events) > 1 else "once since boot",
        expected="none since the last reset", source=SOURCE,
        evidence=tuple(event.text for event in events[-_SHOWN:]),
        advice="; ".join(one for one in (why, known.action if known is not None else "") if one),
    )  # fmt: skip
    return found if gpu is not None else _at(found, pci)


def _at(found: Finding, pci: str) -> Finding:
    from dataclasses import replace

    return replace(found, pci=pci)


def _nvlink(look: Look, pci: str, code: int, live: list[Event]) -> Iterator[Finding]:
    """The gravest of the lines decides; each is decoded by unit and sub-code."""
    worst: tuple[int, Weight, Blame | None, Action, str, Event] | None = None
    for event in live:
        meaning = nvlink5.decode(code, event.unit, event.reason, event.status)
        if meaning is None:
            judged = (1, WARN, NODE, Action.INSPECT, "a sub-code that is not in the table: never gates")
        elif event.severity == "nonfatal" or not meaning.grave:
            judged = (1, WARN, NODE, Action.INSPECT, f"{meaning.severity}: {meaning.investigate}")
        elif meaning.other_end:
            words = f"{meaning.severity}: inspect the other end of the link"
            judged = (2, FAIL, FABRIC, Action.INSPECT, words)
        else:
            words = f"{meaning.severity}: {meaning.immediate}, then {meaning.investigate}"
            judged = (3, FAIL, NODE, Action.RESET_GPU, words)
        if worst is None or judged[0] > worst[0]:
            worst = (*judged, event)
    assert worst is not None
    _, weight, blame, action, why, event = worst
    link = f", link {event.link}" if event.link >= 0 else ""
    yield _told(look, pci, code, [event], weight, blame, action, f"{event.unit}{link}; {why}")


def _repeated_by_jobs(look: Look, events: list[Event]) -> Iterator[Finding]:
    """Several jobs that fail on one GPU speak against the GPU; the active checks decide.

    What torchdoctor selftest provokes (device-assert) is no job: its processes have its name.
    """
    jobs: dict[str, set[int]] = {}
    for event in events:
        ours = event.process == "torchdoctor"
        if event.kind == "APP" and event.pid >= 0 and not ours and look.log.live(event):
            jobs.setdefault(event.pci, set()).add(event.pid)
    for pci, pids in jobs.items():
        if len(pids) >= look.limit("app_xid_jobs_warn"):
            found = look.found(
                "xid-repeated", "Several processes failed on this GPU", WARN, NODE, Action.INSPECT,
                look.gpu_at(pci),
                observed=f"errors of {counted(len(pids), 'process', 'processes')} on one GPU",
                expected=f"fewer than {look.limit('app_xid_jobs_warn'):g}",
                source=look.limit_source("app_xid_jobs_warn"),
                advice="run torchdoctor gate --tier standard: its exact products and memory checks decide",
            )  # fmt: skip
            yield found if found.gpu is not None else _at(found, pci)


def _sxid(look: Look) -> Said:
    yield from _log_missing(look, "sxid")
    groups: dict[tuple[str, int], list[Event]] = {}
    for event in look.log.events:
        if event.sxid >= 0:
            groups.setdefault((event.pci, event.sxid), []).append(event)
    loaded = look.log.resets.get("", -1.0)
    for (pci, code), every in groups.items():
        live = [event for event in every if event.at_s < 0 or event.at_s > loaded]
        if code == sxid.LINK_FAULT:
            live = [event for event in live if not look.log.near_reset(event, 60.0)]
        grave = sxid.gravity(code, every[-1].severity)
        if grave is sxid.Gravity.REBOOT:
            live = every
        if not live:
            continue
        weight, blame, action = _of_gravity(look, grave, live)
        found = look.found(
            "sxid", f"NVSwitch error (SXid) {code}", weight, blame, action, tag=f"sxid{code}",
            observed=f"{counted(len(live), 'time')} since the driver was loaded", expected="none",
            source="SXid classes (torchdoctor/gate/sxid.py)",
            evidence=tuple(event.text for event in live[-_SHOWN:]),
            advice="reset all GPUs and restart the fabric manager" if action is Action.DRAIN_RESET else "",
        )  # fmt: skip
        yield _at(found, pci)


def _of_gravity(look: Look, grave: sxid.Gravity, live: list[Event]) -> tuple[Weight, Blame | None, Action]:
    if grave is sxid.Gravity.REBOOT:
        return FAIL, NODE, Action.REBOOT
    if grave is sxid.Gravity.RESET:
        return FAIL, NODE, Action.DRAIN_RESET
    if grave is sxid.Gravity.ACCESS:
        return WARN, USER, Action.INSPECT
    if grave is sxid.Gravity.WATCH:
        return WARN, NODE, Action.INSPECT
    times = sorted(event.at_s for event in live if event.at_s >= 0)
    storm = any(
        times[at + _CORRECTED_RATE] - times[at] <= _STORM_S for at in range(len(times) - _CORRECTED_RATE)
    )
    return (WARN, NODE, Action.INSPECT) if storm else (INFO, None, Action.NONE)


CHECKS = (
    Check("kernel-log", "The kernel log can be read", _log_readable),
    Check("recovery-action", "The driver requests no recovery of a GPU", _recovery),
    Check("xid", "No Xid that indicates a bad GPU", _xid),
    Check("sxid", "No SXid that indicates a bad NVSwitch", _sxid),
)
