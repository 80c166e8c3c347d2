"""The whole answer of a gate, and the forms it is given in: JSON, one line, exit codes, metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchdoctor.gate.finding import EXIT, Action, Finding, Untold, Verdict, Weight, decide
from torchdoctor.gate.manuals import page
from torchdoctor.model import counted

SCHEMA = "torchdoctor.gate/1"
PREFIX = "[node_problem]"
REASON_LIMIT = 160
_ORDER = (Weight.FAIL, Weight.WARN, Weight.INFO)
_BLAMES = ("node", "environment", "user", "fabric")
EXIT_OBSERVED = 0
_NAGIOS = {Verdict.FIT: 0, Verdict.UNFIT: 2, Verdict.ENVIRONMENT: 1, Verdict.INCONCLUSIVE: 3}
_NPD = {Verdict.FIT: 0, Verdict.UNFIT: 1, Verdict.ENVIRONMENT: 0, Verdict.INCONCLUSIVE: 2}


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """``seconds`` by phase; ``fingerprint`` is what is compared between nodes.

    ``skipped`` says which process looks instead of this one: there is no verdict then.
    """

    tier: str
    findings: tuple[Finding, ...]
    untold: tuple[Untold, ...]
    host: str = ""
    boot_id: str = ""
    time_s: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    budget_s: float = 0.0
    limit_s: float = 0.0
    expected: Mapping[str, Any] = field(default_factory=dict)
    suppressions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    gpus: tuple[Mapping[str, Any], ...] = ()
    policy: str = ""
    prefix: str = PREFIX
    observe: bool = False
    skipped: str = ""

    @property
    def verdict(self) -> Verdict:
        return decide(self.findings, self.untold)

    def exit_code(self, style: str = "native", drain: bool = False) -> int:
        """The process's exit code. ``drain`` lets slurm's style say 1 for an unfit node."""
        verdict = self.verdict
        if self.observe:
            return EXIT_OBSERVED
        if style == "slurm":
            return 1 if drain and verdict is Verdict.UNFIT else 0
        if style == "nagios":
            warned = any(one.weight is Weight.WARN for one in self.findings)
            return 1 if verdict is Verdict.FIT and warned else _NAGIOS[verdict]
        if style == "npd":
            return _NPD[verdict]
        if style == "k8s":
            return 0 if verdict is Verdict.FIT else 1
        return EXIT[verdict]


def ordered(findings: tuple[Finding, ...]) -> list[Finding]:
    """What decides first: counting findings, failures before warnings, the node's before others'."""
    severity = {action: at for at, action in enumerate(Action)}

    def key(one: Finding) -> tuple[int, int, int, int]:
        blame = _BLAMES.index(one.blame.value) if one.blame is not None else len(_BLAMES)
        return (not one.counts, _ORDER.index(one.weight), blame, -severity[one.action])

    return sorted(findings, key=key)


def reason(outcome: GateOutcome) -> str:
    """One line of ASCII, at most 160 characters: ``[node_problem] td:xid79 GPU3 0000:9a:00 reboot``."""
    verdict = outcome.verdict
    parts: list[str] = []
    if outcome.skipped:
        parts = [f"td:skipped {outcome.skipped}"]
    elif verdict is Verdict.FIT:
        warned = sum(one.weight is Weight.WARN for one in outcome.findings)
        parts = ["td:fit", counted(warned, "warning") if warned else ""]
    elif any(one.counts for one in outcome.findings):
        first = next(one for one in ordered(outcome.findings) if one.counts)
        gpu = f"GPU{first.gpu}" if first.gpu is not None else ""
        parts = [f"td:{first.tag}", gpu, first.pci, first.action.value]
        parts.append(f"({first.observed})" if not first.pci and first.observed else "")
        more = sum(one.counts for one in outcome.findings) - 1
        parts.append(f"+{more} more" if more else "")
    else:
        first_untold = next(one for one in outcome.untold if one.required)
        parts = [f"td:inconclusive {first_untold.check}:", first_untold.reason]
    prefix = outcome.prefix if verdict is Verdict.UNFIT else ""
    text = " ".join(part for part in (prefix, *parts) if part)
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in text)
    return plain if len(plain) <= REASON_LIMIT else plain[: REASON_LIMIT - 3] + "..."


def to_json(outcome: GateOutcome) -> str:
    """One line of ASCII JSON after ``schema/verdict-1.json``; every key is always there."""
    data = {
        "schema": SCHEMA,
        "verdict": None if outcome.skipped else outcome.verdict.value,
        "exit_code": EXIT[outcome.verdict],
        "skipped": outcome.skipped or None,
        "observe": outcome.observe,
        "reason": reason(outcome),
        "tier": outcome.tier,
        "host": outcome.host,
        "boot_id": outcome.boot_id,
        "time_s": round(outcome.time_s, 3),
        "seconds": {name: round(value, 3) for name, value in outcome.seconds.items()},
        "budget_s": outcome.budget_s,
        "limit_s": outcome.limit_s,
        "policy": outcome.policy or None,
        "expected": dict(outcome.expected),
        "gpus": [dict(one) for one in outcome.gpus],
        "findings": [_finding(one) for one in ordered(outcome.findings)],
        "not_checked": [
            {"check": one.check, "reason": one.reason, "required": one.required} for one in outcome.untold
        ],
        "suppressions": list(outcome.suppressions),
        "notes": list(outcome.notes),
        "fingerprint": dict(outcome.fingerprint),
    }
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=str)


def to_json_lines(outcome: GateOutcome) -> Iterator[str]:
    """A line for each finding and for each check that was not made, then the verdict, for collectors of logs.

    Each says by itself when and where it was found, under ``kind``: finding, not_checked or verdict.
    """
    whole = json.loads(to_json(outcome))
    common = {name: whole[name] for name in ("schema", "host", "boot_id", "time_s", "tier")}
    for kind, key in (("finding", "findings"), ("not_checked", "not_checked")):
        for one in whole.pop(key):
            yield json.dumps({**common, "kind": kind, **one}, separators=(",", ":"))
    yield json.dumps({**common, "kind": "verdict", **whole}, separators=(",", ":"))


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "check": one.check,
        "tag": one.tag,
        "title": one.title,
        "weight": one.weight.value,
        "blame": one.blame.value if one.blame is not None else None,
        "gpu": one.gpu,
        "uuid": one.uuid or None,
        "pci": one.pci or None,
        "observed": one.observed or None,
        "expected": one.expected or None,
        "threshold_source": one.source or None,
        "evidence": list(one.evidence),
        "action": one.action.value,
        "advice": one.advice or None,
        "retest": one.retest or None,
        "suppressed": one.suppressed or None,
        "doc": page(one.check, "RAS" in one.source) or None,
    }


def to_prometheus(outcome: GateOutcome) -> str:
    """Metrics for the node exporter's textfile collector."""
    verdict = outcome.verdict
    lines = [
        "# HELP torchdoctor_gate_verdict The gate's verdict: 1 for the one that holds.",
        "# TYPE torchdoctor_gate_verdict gauge",
    ]
    lines += [
        f'torchdoctor_gate_verdict{{tier="{outcome.tier}",verdict="{one.value}"}} {int(one is verdict)}'
        for one in Verdict
    ]
    lines += [
        "# HELP torchdoctor_gate_time_seconds When the gate ran, in seconds since the epoch.",
        "# TYPE torchdoctor_gate_time_seconds gauge",
        f'torchdoctor_gate_time_seconds{{tier="{outcome.tier}"}} {outcome.time_s:.3f}',
        "# HELP torchdoctor_gate_duration_seconds How long the gate took.",
        "# TYPE torchdoctor_gate_duration_seconds gauge",
        f'torchdoctor_gate_duration_seconds{{tier="{outcome.tier}"}} {outcome.seconds.get("total", 0.0):.3f}',
        "# HELP torchdoctor_gate_finding One for each failure and warning of the last run.",
        "# TYPE torchdoctor_gate_finding gauge",
    ]
    counts: dict[str, int] = {}
    for one in outcome.findings:
        if one.weight is Weight.INFO:
            continue
        blame = one.blame.value if one.blame is not None else "none"
        labels = {
            "tier": outcome.tier, "check": one.check, "tag": one.tag, "weight": one.weight.value,
            "blame": blame,
            "gpu": "" if one.gpu is None else str(one.gpu), "pci": one.pci, "action": one.action.value,
            "suppressed": str(bool(one.suppressed)).lower(),
        }  # fmt: skip
        text = ",".join(f'{name}="{_label(value)}"' for name, value in labels.items())
        counts[text] = counts.get(text, 0) + 1
    lines += [f"torchdoctor_gate_finding{{{text}}} {count}" for text, count in counts.items()]
    lines += [
        "# HELP torchdoctor_gate_not_checked Checks that could not be made.",
        "# TYPE torchdoctor_gate_not_checked gauge",
        *(
            f'torchdoctor_gate_not_checked{{tier="{outcome.tier}",required="{str(need).lower()}"}} '
            f"{sum(one.required is need for one in outcome.untold)}"
            for need in (True, False)
        ),
    ]
    return "\n".join(lines) + "\n"


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
