"""Recorded machines with something changed: a fault planted into facts that were healthy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from case_files import table

from torchdoctor.gate import active, checks_environment, facts
from torchdoctor.gate.facts import Facts
from torchdoctor.gate.outcome import GateOutcome
from torchdoctor.gate.policy import Policy
from torchdoctor.gate.supervisor import Run, Wish
from torchdoctor.model import Reason, State
from torchdoctor.probes.machine import Outcome
from torchdoctor.probes.recording import RecordedSource

ROOT = Path(__file__).resolve().parent.parent
MACHINES = {path.stem: path for path in sorted((ROOT / "tests" / "gate" / "machines").glob("*.json"))}


class Altered:
    """The facts of a recording, to be changed, and then judged."""

    def __init__(self, name: str = "hgx-h100x8") -> None:
        found = facts.collect(RecordedSource(str(MACHINES[name])).machine, 5.0)
        self.known = dict(found.known)
        self.ended = dict(found.ended)
        self.options: dict[str, Any] = {"before_job": True}
        self.policy = Policy()
        self.tier = "passive"

    def put(self, name: str, value: Any) -> None:
        self.known[name] = facts.Known(State.KNOWN, value)

    def gpu(self, name: str, gpu: int, value: Any) -> None:
        """One GPU's part of a list."""
        values = list(self.known[name].value)
        values[gpu] = value
        self.put(name, values)

    def forget(self, name: str, why: str = "not permitted", reason: Reason = Reason.NOT_PERMITTED) -> None:
        self.known[name] = facts.Known(State.UNKNOWN, None, reason, why)

    def drop(self, program: str, prefix: str, outcome: Outcome) -> None:
        """A program that ended so, and told none of its facts."""
        self.known = {name: one for name, one in self.known.items() if not name.startswith(prefix)}
        self.ended[program] = outcome

    def log(self, *lines: str, at_s: float = 5000.0) -> None:
        old = list(self.known["kernel.lines"].value)
        self.put("kernel.lines", [*old, *([at_s + number, line] for number, line in enumerate(lines))])

    def variables(self, **given: str) -> None:
        self.put("node.variables", given)

    def environment(self, **given: Any) -> None:
        """What the job's interpreter told: all of it healthy but what is given."""
        count = len(self.known["gpu.uuids"].value) if "gpu.uuids" in self.known else 0
        told: dict[str, Any] = {
            "python": "/opt/venv/bin/python",
            "python_version": "3.12.3",
            "torch": "2.11.0+cu130",
            "torch_cuda": "13.0",
            "arch_list": ["sm_75", "sm_80", "sm_90", "sm_100", "compute_120"],
            "nccl": "2.28.9",
            "cudnn": 91002,
            "cuda_available": True,
            "device_count": count,
            "import_seconds": 3.5,
            "leaked": {},
            "locks": [],
            "job": {},
            "caches": [["/tmp", "", True]],
            "interfaces": [["eth0", "up"], ["lo", "unknown"]],
            "loaded": [["libnccl", "/opt/venv/lib/libnccl.so.2"]],
        }
        told["devices"] = [
            [index, self.known["gpu.names"].value[index], "9.0", self.known["gpu.uuids"].value[index], ""]
            for index in range(count)
        ]
        told |= {f"kernel.{index}": "ok" for index in range(count)}
        for name, value in {**told, **given}.items():
            if value is None:
                self.known.pop(f"env.{name}", None)
            else:
                self.put(f"env.{name}", value)
        self.ended[checks_environment.PROGRAM] = Outcome(exit_code=0, seconds=4.0)
        self.tier = "quick"

    def active(self, *changed: dict[str, Any], done: bool = True, **how: Any) -> None:
        """Results of the active set: all pass but those given."""
        if checks_environment.PROGRAM not in self.ended:
            self.environment()
        count = len(self.known["gpu.uuids"].value)
        lines: dict[str, dict[str, Any]] = {
            f"{name}@cuda:{gpu}": result(f"{name}@cuda:{gpu}", "pass")
            for name in ("gemm-exact", "h2d", "nan", "gemm-rate", "bit-equal")
            for gpu in range(count)
        }
        lines |= {one.get("check") or one.get("untold") or "": one for one in changed}
        for one in changed:
            if "untold" in one:
                lines.pop(one["untold"], None)
                lines[f"untold {one['untold']}"] = one
        end = ({"done": True},) if done else ()
        self.ended[active.LABEL] = Outcome(**{"exit_code": 0, "lines": (*lines.values(), *end), **how})
        self.tier = "standard"

    def change(self, line: str) -> None:
        """One line of ``gate/judged.cases``: a method and what it is given, or a setting and its value."""
        head, _, text = line.partition(": " if line.startswith(("log ", "forget ")) else " = ")
        how, *words = head.split(" ")
        if how == "log":
            self.log(text, at_s=float(words[0]))
        elif how == "forget":
            self.forget(words[0], text)
        elif how == "put":
            self.put(words[0], json.loads(text))
        elif how == "gpu":
            self.gpu(words[0], int(words[1]), json.loads(text))
        elif how == "drop":
            self.drop(*words, Outcome(**json.loads(text)))  # type: ignore[call-arg, misc]
        elif how == "variables":
            self.variables(**json.loads(text))
        elif how == "environment":
            self.environment(**json.loads(text))
        elif how == "active":
            given = json.loads(text)
            self.active(*map(_whole, given.pop("lines")), **given)
        elif how == "expect":
            self.policy = Policy("site.toml", json.loads(text))
        elif how == "options":
            self.options = json.loads(text)
        else:
            raise ValueError(line)

    def judge(self) -> GateOutcome:
        wish = Wish(self.tier, self.policy, **self.options)
        run = Run(wish, 0.0, 1790000000.0, Facts(self.known, self.ended))
        return replace(run.outcome(), seconds={"total": 1.0})


def result(check: str, verdict: str, blame: str | None = None, **more: Any) -> dict[str, Any]:
    """A line of the active set."""
    told = {
        "check": check,
        "verdict": verdict,
        "title": check,
        "blame": blame,
        "observed": "measured",
        "expected": "",
    }
    return {**told, "source": "", "evidence": [], "repeat": "", **more}


def _whole(line: dict[str, Any]) -> dict[str, Any]:
    if not line.get("check"):
        return line
    more = {"again": _whole(line["again"])} if "again" in line else {}
    return result(**{**line, **more})


def xid(code: int, rest: str = "pid=1234, name=python3, some words", pci: str = "0000:43:00") -> str:
    return f"NVRM: Xid (PCI:{pci}): {code}, {rest}"


JUDGED = ROOT / "tests" / "gate" / "judged.cases"
CASES = tuple(table(JUDGED))


def planted(lines: list[str]) -> Altered:
    """The machine of a case of ``gate/judged.cases``."""
    named = [line.removeprefix("machine ") for line in lines[:1] if line.startswith("machine ")]
    it = Altered(*named)
    for line in lines[len(named) :]:
        it.change(line)
    return it


def said(outcome: GateOutcome) -> list[str]:
    """The verdict, each finding, each check that could not be made."""
    found = [
        " ".join(
            (one.weight.value, one.tag, *([] if one.gpu is None else [f"GPU{one.gpu}"]), one.action.value,
             *([one.blame.value] if one.blame else []), *([one.pci] if one.pci else []))
        )
        for one in outcome.findings
    ]  # fmt: skip
    untold = [f"untold {one.check}{' required' * one.required}" for one in outcome.untold]
    return [outcome.verdict.value, *sorted(found), *sorted(untold)]
