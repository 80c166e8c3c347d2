"""Everything the passive set knows, as facts that programs of ours told: from this machine or a recording."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torchdoctor.model import Reason, State
from torchdoctor.probes.machine import Command, Json, Machine, NotRecorded, Outcome
from torchdoctor.probes.probe import failure, reason_of

_CHILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "probes", "child")
NVML, NODE, MOUNTS, KERNEL = "gate-nvml", "gate-node", "gate-mounts", "gate-kernel-log"
# the beginning of a fact's name -> the program that tells it
_TELLER = {
    "env": "gate-environment",
    "gpu": NVML,
    "driver": NVML,
    "node": NODE,
    "mounts": MOUNTS,
    "kernel": KERNEL,
    "dcgm": "gate-dcgm",
}
_FALLBACK = {NVML: "nvml"}  # recordings of `facts --save` have the first half of it
# A mount answers in milliseconds; a server under load may take seconds, and is no fault yet
MOUNTS_S = 4.0


@dataclass(frozen=True, slots=True)
class Known:
    """One fact: ``value`` where its state is KNOWN, else ``why`` in words."""

    state: State
    value: Json = None
    reason: Reason | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by name, and how each program ended."""

    known: Mapping[str, Known]
    ended: Mapping[str, Outcome] = field(default_factory=dict)

    def get(self, name: str) -> Known:
        found = self.known.get(name)
        if found is not None:
            return found
        teller = _TELLER.get(name.partition(".")[0], "")
        outcome = self.ended.get(teller)
        if outcome is None:
            return Known(State.UNKNOWN, None, Reason.NOT_ASKED, f"{teller or name} was not run")
        if outcome.ok:
            return Known(State.UNKNOWN, None, Reason.NOT_ASKED, f"{teller} does not report it")
        reason, why = failure(outcome)
        return Known(State.UNKNOWN, None, reason, f"{teller}: {why}")

    def value(self, name: str) -> Json:
        """The value, or None where it is absent or not known."""
        return self.get(name).value

    def text(self, name: str) -> str:
        value = self.value(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float | None:
        value = self.value(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def items(self, name: str) -> list[Json]:
        value = self.value(name)
        return value if isinstance(value, list) else []

    def rows(self, name: str, length: int) -> list[list[Json]]:
        """The lists in a list that have so many entries at least."""
        return [one for one in self.items(name) if isinstance(one, list) and len(one) >= length]

    def each(self, name: str) -> list[tuple[int, Json]]:
        """For a fact of every GPU: number and value of those that answered."""
        return [(gpu, value) for gpu, value in enumerate(self.items(name)) if value is not None]

    def of(self, name: str, gpu: int) -> Json:
        values = self.items(name)
        return values[gpu] if 0 <= gpu < len(values) else None

    def text_of(self, name: str, gpu: int) -> str:
        value = self.of(name, gpu)
        return value if isinstance(value, str) else ""

    def number_of(self, name: str, gpu: int) -> float | None:
        value = self.of(name, gpu)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def variables(self) -> Mapping[str, str]:
        """The variables by which a scheduler says what a job was given."""
        found = self.value("node.variables")
        return {name: str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def commands(limit_s: float) -> tuple[Command, ...]:
    """The programs of the passive set. They use this interpreter and of its packages only pynvml."""
    from importlib.util import find_spec

    # -I -S: nothing of a user's environment may change what runs, here as root
    python = (sys.executable, "-I", "-S")
    spec = find_spec("pynvml")
    pynvml = os.path.dirname(spec.origin) if spec is not None and spec.origin else ""

    def program(label: str, file: str, *words: str, limit_s: float = limit_s) -> Command:
        return Command(label, (*python, os.path.join(_CHILD, file), *words), limit_s, reports=True)

    return (
        program(NVML, "nvml_health.py", pynvml),
        program(KERNEL, "kernel_log.py"),
        program(NODE, "node.py"),
        program(MOUNTS, "mounts.py", str(MOUNTS_S), limit_s=min(limit_s, MOUNTS_S + 2.0)),
    )


def collect(machine: Machine, limit_s: float, only: tuple[str, ...] = ()) -> Facts:
    """Ask all programs, or ``only`` some, side by side.

    Blocks ``limit_s`` and the seconds that ending them takes, at most.
    """
    asked = [command for command in commands(limit_s) if not only or command.label in only]
    for command in asked:
        machine.start(command)
    ended: dict[str, Outcome] = {}
    for command in asked:
        for label in (command.label, _FALLBACK.get(command.label, "")):
            if not label:
                continue
            try:
                ended[command.label] = machine.finish(Command(label, command.argv, command.limit_s, True))
                break
            except NotRecorded:
                continue
    return Facts(dict(told(ended.values())), ended)


def told(outcomes: Iterable[Outcome]) -> Iterable[tuple[str, Known]]:
    """The facts in what programs wrote; a later line of a name replaces an earlier one."""
    for outcome in outcomes:
        for line in outcome.lines:
            name, state = line.get("name"), line.get("state", "known")
            if not isinstance(name, str):
                continue
            why = str(line.get("detail") or "")
            if state == "absent":
                yield name, Known(State.ABSENT, None, None, why)
            elif state == "unknown":
                yield name, Known(State.UNKNOWN, None, reason_of(line.get("reason")), why)
            else:
                yield name, Known(State.KNOWN, line.get("value"), None, why)


def record(outcomes: Mapping[str, Outcome]) -> str:
    """What the programs told, as ``--facts`` reads it: no users, and the host has another name."""
    import json

    import torchdoctor
    from torchdoctor.probes.pseudonyms import Pseudonyms
    from torchdoctor.probes.recording import PRIVATE

    known = dict(told(outcomes.values()))
    host = known.get("node.hostname")
    names = Pseudonyms(hosts=(str(host.value),) if host is not None and host.value else (), users=(), home="")
    programs: dict[str, Json] = {}
    for label, outcome in outcomes.items():
        lines: list[Json] = [line for line in outcome.lines if line.get("name") not in PRIVATE]
        entry: dict[str, Json] = {"seconds": outcome.seconds, "lines": lines}
        if outcome.exit_code is not None:
            entry["exit_code"] = outcome.exit_code
        if outcome.signal is not None:
            entry["signal"] = outcome.signal
        for name in ("stderr", "start_error", "note"):
            if getattr(outcome, name):
                entry[name] = str(getattr(outcome, name))
        if outcome.timed_out:
            entry["timed_out"] = True
        programs[label] = names.tree(entry)
    about: Json = {"torchdoctor": torchdoctor.__version__}
    data = {"schema": "torchdoctor.machine/1", "about": about, "programs": programs}
    return json.dumps(data, indent=1) + "\n"
