"""Runs a tier: each set in processes of its own, within the time limits, and always to a verdict.

This process never imports torch, opens no GPU, and touches no file system that may hang: whatever may,
is done by
a child that can be left behind.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torchdoctor.gate import (
    active,
    checks_active,
    checks_dcgm,
    checks_death,
    checks_environment,
    ending,
    facts,
    passive,
)
from torchdoctor.gate.expect import job_gpus, leave_others_alone
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.files import replace_file
from torchdoctor.gate.finding import Finding, Untold
from torchdoctor.gate.look import Check, Look
from torchdoctor.gate.outcome import PREFIX, GateOutcome
from torchdoctor.gate.policy import Policy
from torchdoctor.probes import descendants
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Command, Machine, Outcome
from torchdoctor.probes.spawn import Running

_ENVIRONMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "environment.py")
_MEASURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "active_set.py")
_DCGM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "dcgm.py")
_WITHOUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "without.py")
_LATER = (active.LABEL, checks_death.PROGRAM, checks_dcgm.PROGRAM)
_DCGM_LEVEL = 2  # about two minutes
# kept back from the hard limit for ending children and writing the verdict
_RESERVE_S = 2.5
_PASSIVE_S = 6.0
# beyond the hard limit, for a verdict that a dead disk or process holds up; then nothing does
_GRACE_S = 5.0
_BREATH_S = 0.05
_LIMITS = ("nofile", "memlock", "nproc", "shm_bytes", "governor")
_TRY_S = 3.0  # less is not worth another import of torch


@dataclass(frozen=True, slots=True)
class Tier:
    """Seconds: ``budget_s`` is what 95 of 100 runs keep, ``limit_s`` is never passed."""

    name: str
    budget_s: float
    limit_s: float


TIERS = {
    one.name: one
    for one in (
        Tier("passive", 2.0, 10.0),
        Tier("quick", 15.0, 30.0),
        Tier("standard", 60.0, 120.0),
        Tier("deep", 600.0, 900.0),
    )
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What to do. ``python`` is the job's interpreter; ``before_job`` says that its GPUs should be free."""

    tier: str
    policy: Policy = field(default_factory=Policy)
    python: str = sys.executable
    gpus: int | None = None
    before_job: bool = False
    observe: bool = False
    fault: str = ""
    limit_s: float | None = None


@dataclass(slots=True)
class Run:
    """What is known so far; a verdict can be made of it at any time."""

    wish: Wish
    begun: float
    time_s: float
    facts: Facts = field(default_factory=lambda: Facts({}))
    seconds: dict[str, float] = field(default_factory=dict)
    phase: str = "passive"
    cut: str = ""
    skipped: list[Untold] = field(default_factory=list)
    show: Callable[[str], None] | None = None  # is told what is being done

    def tell(self, what: str) -> None:
        if self.show is not None:
            limit_s = self.wish.limit_s or self.tier.limit_s
            self.show(f"{time.monotonic() - self.begun:.0f} of at most {limit_s:.0f} s  {what}")

    @property
    def tier(self) -> Tier:
        return TIERS[self.wish.tier]

    @property
    def deadline(self) -> float:
        return self.begun + (self.wish.limit_s or self.tier.limit_s) - _RESERVE_S

    def left_s(self) -> float:
        return max(0.1, self.deadline - time.monotonic())

    def outcome(self) -> GateOutcome:
        """The verdict on what is known. Pure but for the clock."""
        wish = self.wish
        look = passive.look_at(self.facts, wish.policy, wish.gpus, wish.before_job)
        findings, untold = passive.judge(look) if self.facts.known or self.facts.ended else ((), ())
        further_findings, further_untold = judge_further(look, self.facts)
        findings, untold = (*findings, *further_findings), (*untold, *further_untold, *self.skipped)
        if self.cut:
            untold = (*untold, Untold("gate", f"{self.cut} in the {self.phase} set", True))
        findings, untold, notes = wish.policy.apply(findings, untold)
        self.seconds["total"] = time.monotonic() - self.begun
        return describe(self, look, findings, untold, notes)


def judge_further(look: Look, known: Facts) -> tuple[tuple[Finding, ...], tuple[Untold, ...]]:
    """The environment and active sets, as far as they were run."""
    said: list[Finding | Untold] = []
    checks: tuple[Check, ...] = checks_environment.CHECKS if checks_environment.PROGRAM in known.ended else ()
    for check in checks:
        said += check.judge(look)
    said += checks_active.judge(look)
    said += checks_dcgm.judge(look)
    return (
        tuple(one for one in said if isinstance(one, Finding)),
        tuple(one for one in said if isinstance(one, Untold)),
    )


def describe(
    run: Run, look: Look, findings: tuple[Finding, ...], untold: tuple[Untold, ...], notes: tuple[str, ...]
) -> GateOutcome:
    known = run.facts
    gpus = tuple(
        {
            "gpu": gpu,
            "name": known.text_of("gpu.names", gpu) or None,
            "uuid": look.where(gpu)[0] or None,
            "pci": look.where(gpu)[1] or None,
            "of_job": look.mine(gpu),
        }
        for gpu in range(look.count)
    )
    expected = {
        "gpus": look.expected.gpus,
        "model": look.expected.model or None,
        "source": look.expected.source or None,
    }
    return GateOutcome(
        run.wish.tier, findings, untold,
        host=known.text("node.hostname") or os.uname().nodename,
        boot_id=known.text("node.boot_id"),
        time_s=run.time_s,
        seconds=dict(run.seconds),
        budget_s=run.tier.budget_s,
        limit_s=run.wish.limit_s or run.tier.limit_s,
        expected=expected,
        suppressions=notes,
        fingerprint=fingerprint(known),
        gpus=gpus,
        policy=run.wish.policy.path,
        prefix=str(run.wish.policy.options.get("prefix", PREFIX)),
        observe=run.wish.observe,
    )  # fmt: skip


def skipped(why: str, tier: str) -> GateOutcome:
    """No verdict, and why: another process looks at this node."""
    one = TIERS[tier]
    expected = {"gpus": None, "model": None, "source": None}
    return GateOutcome(
        tier, (), (),
        host=os.uname().nodename,
        time_s=time.time(),
        budget_s=one.budget_s,
        limit_s=one.limit_s,
        expected=expected,
        skipped=why,
    )  # fmt: skip


def fingerprint(known: Facts) -> Mapping[str, Any]:
    """What should be the same on all nodes of a job."""
    job = known.value("env.nccl_variables") or known.value("env.leaked")
    nccl = {name: value for name, value in job.items() if "NCCL_" in name} if isinstance(job, dict) else {}
    settings = known.value("env.settings")
    variables = {
        name: value
        for name, value in (settings.items() if isinstance(settings, dict) else ())
        if "NCCL_" not in name and name != "CUDA_VISIBLE_DEVICES"  # told already; the job's own
    }
    return {
        "driver": known.text("driver.nvml_version") or known.text("node.driver_version") or None,
        "kernel": known.text("node.kernel") or None,
        "gpus": sorted(str(name) for _, name in known.each("gpu.names")),
        "python": known.text("env.python_version") or None,
        "torch": known.text("env.torch") or None,
        "cuda": known.text("env.torch_cuda") or None,
        "nccl": known.text("env.nccl") or None,
        "cudnn": known.value("env.cudnn"),
        "nccl_variables": nccl,
        "variables": variables,
        "packages": known.text("env.packages") or None,
        "image": known.text("env.image") or None,
        "gpu_firmware": sorted({str(one) for _, one in known.each("gpu.firmware")}),
        "limits": {name: known.value(f"node.{name}") for name in _LIMITS if known.value(f"node.{name}")},
        "network_firmware": sorted({str(row[1]) for row in known.rows("node.ib_firmware", 2)}),
        "architectures": sorted({str(row[2]) for row in known.rows("env.devices", 3)}),
        "shared_caches": known.value("env.shared") or {},
        "time_s": known.number("node.time_s"),
    }


def supervise(
    wish: Wish,
    machine: Machine | None = None,
    save: str = "",
    show: Callable[[str], None] | None = None,
) -> GateOutcome:
    """Do it. Blocks up to the tier's hard limit. ``machine`` is a recording, for a verdict without the node.

    To be called in a process of its own: at the end every process that descends from it is killed.
    ``save`` is where to write what the programs told, ``show`` is told what is being done. Raises WriteError
    when the recording cannot be written.
    """
    run = Run(wish, ending.began(), time.time(), show=show)
    live = machine is None
    looked = LiveMachine() if machine is None else machine
    ending.limit((wish.limit_s or run.tier.limit_s) + _GRACE_S)
    if live:
        descendants.adopt_orphans()
        ending.looking()
    try:
        _passive(run, looked)
        if wish.tier != "passive" and not ending.asked():
            _further(run, looked)
    finally:
        if isinstance(looked, LiveMachine):
            looked.close()
            descendants.end()
        stopped = ending.giving()
    if stopped:
        run.cut = f"stopped by {stopped}"
    if save:
        replace_file(save, facts.record(run.facts.ended))
    return run.outcome()


def _passive(run: Run, machine: Machine) -> None:
    begun = time.monotonic()
    run.tell("the GPUs, the kernel log, the node, its mounts")
    run.facts = facts.collect(machine, min(_PASSIVE_S, run.left_s()))
    run.seconds["passive"] = time.monotonic() - begun


def _further(run: Run, machine: Machine) -> None:
    """The environment and active sets, side by side: both spend most of their time importing torch."""
    run.phase = "environment"
    limit_s = run.left_s()
    environment = Command(
        checks_environment.PROGRAM,
        (run.wish.python, _ENVIRONMENT),
        limit_s - 0.5 if limit_s > 2 else limit_s,
        True,
    )
    if isinstance(machine, LiveMachine):
        leave_others_alone(run.facts, os.environ)
        device = _measured_on(run)
        measured = Command(active.LABEL, _active_argv(run, limit_s, device), limit_s, True)
        _together(run, (environment, *((measured,) if device else ())))
        _try_without(run)
        if device == "cuda" and wants_dcgm(run.wish) and not ending.asked():
            _together(run, (_diagnostic(run),))
    else:
        ended = {
            one.label: machine.finish(one)
            for one in (environment, *(Command(label, (), 0.0) for label in _LATER))
            if machine.running(one.label)
        }
        _add(run, ended)
        if not machine.running(environment.label):
            run.skipped.append(Untold("interpreter", "the job's environment is not in this recording", True))
        if _measured_on(run) and not machine.running(active.LABEL):
            run.skipped.append(Untold("active", "no measurement is in this recording", True))
    known = run.facts.number("env.import_seconds")
    if known is not None:
        run.seconds["import_torch"] = known


def _try_without(run: Run) -> None:
    """Where the job's torch died: does it start without its settings? That decides what no message tells."""
    likely, others = checks_death.suspects(run.facts)
    if not (likely or others) or ending.asked() or run.left_s() < _TRY_S:
        return
    run.phase = "environment"
    argv = (run.wish.python, _WITHOUT, json.dumps((likely, others)))
    _together(run, (Command(checks_death.PROGRAM, argv, run.left_s(), True),))


def wants_dcgm(wish: Wish) -> bool:
    return wish.tier == "deep" and wish.policy.options.get("dcgm", _DCGM_LEVEL) > 0


def _diagnostic(run: Run) -> Command:
    """NVIDIA's own diagnostic, after ours: both want the GPUs for themselves."""
    run.phase = "dcgm"
    limit_s = run.left_s()
    mine = job_gpus(run.facts)[0]
    level = run.wish.policy.options.get("dcgm", _DCGM_LEVEL)
    gpus = ",".join(map(str, sorted(mine))) if mine is not None else ""
    argv = checks_dcgm.argv(level, max(1.0, limit_s - 8.0), gpus, _DCGM)
    return Command(checks_dcgm.PROGRAM, argv, limit_s, True)


def _measured_on(run: Run) -> str:
    """On what the active set runs: the GPUs, the processor where no GPU is expected, "" for not at all."""
    look = passive.look_at(run.facts, run.wish.policy, run.wish.gpus)
    if look.count or look.only_amd:
        return "cuda"
    if look.expected.gpus == 0:
        return "cpu"
    run.skipped.append(Untold("active", "no GPU is visible", True))
    return ""


def _active_argv(run: Run, limit_s: float, device: str) -> tuple[str, ...]:
    wish = {
        "python": run.wish.python,
        "tier": run.wish.tier,
        "limit_s": limit_s - 2.0,
        "fault": run.wish.fault,
        "device": device,
    }
    return (sys.executable, _MEASURE, json.dumps(wish))


def _together(run: Run, commands: tuple[Command, ...]) -> None:
    """Run these side by side and keep what each told; those that are too slow are ended, gently first."""
    begun = time.monotonic()
    running = {one.label: Running(one) for one in commands}
    ended: dict[str, Outcome] = {}
    try:
        while running:
            for label in [name for name, one in running.items() if one.over()]:
                ended[label] = running.pop(label).finish()
                run.seconds[label.removeprefix("gate-")] = time.monotonic() - begun
                _add(run, ended)
                run.phase = "active" if running and not ending.asked() else run.phase
            if running and (ending.asked() or time.monotonic() >= run.deadline):
                for label, one in running.items():
                    if ending.asked():
                        one.interrupt()
                    ended[label] = one.finish()
                    run.seconds[label.removeprefix("gate-")] = time.monotonic() - begun
                running = {}
            elif running:
                run.tell(", ".join(map(_doing, running.values())))
                time.sleep(_BREATH_S)
    finally:
        for one in running.values():
            one.stop()
        _add(run, ended)


def _doing(program: Running) -> str:
    """The checks that it makes now; its name, where it does not say."""
    now = program.latest().get(active.NOW) if program.command.label == active.LABEL else None
    return ", ".join(map(str, now)) if isinstance(now, list) else program.command.label.removeprefix("gate-")


def _add(run: Run, ended: Mapping[str, Outcome]) -> None:
    known = {**run.facts.known, **dict(facts.told(ended.values()))}
    run.facts = replace(run.facts, known=known, ended={**run.facts.ended, **ended})
