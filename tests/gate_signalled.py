"""One run of the gate that is sent one to three signals at random times, and what must not come of it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRAPPER = Path(__file__).resolve().parent.parent / "deploy" / "torchdoctor-gate"
STYLES = ("native", "npd", "nagios", "slurm-drain")
CONTRACT = (0, 2, 10, 11, 12, 70)
SETS = {"passive": {"passive"}, "quick": {"passive", "environment", "active"}}
# how long an undisturbed run takes on two cores, so that a signal may come to its end too
SECONDS = {"passive": 0.8, "quick": 6.0}
_SIGNALS = ("SIGTERM", "SIGTERM", "SIGINT", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL")
_UNFIT = {"native": 10, "npd": 1, "nagios": 2, "slurm-drain": 1}
# codes that say that the node may be used; 0 of slurm-drain says nothing
_FIT = {"native": (0,), "npd": (0,), "nagios": (0, 1), "slurm-drain": ()}
# a node that has not run for a thousand years: a finding that blames it
_UNFIT_POLICY = '[thresholds]\nuptime_warn_s = 3e10\n[checks.uptime]\nweight = "fail"\n'
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """``code`` as subprocess gives it, ``fault`` what must not be, "" for nothing.

    ``before_us``: Python ended while it started, before the first instruction of ours.
    """

    tier: str
    style: str
    unfit: bool
    signals: tuple[str, ...]
    code: int
    verdict: str
    before_us: bool
    fault: str


def signalled(program: Path, folder: Path, draw: random.Random, style: str = "", tier: str = "") -> Ended:
    """Run it once. Blocks some seconds; the verdict file of an earlier run in the folder is removed."""
    tier = tier or draw.choice(("passive", "passive", "quick"))
    style = style or draw.choice(STYLES)
    unfit = draw.random() < 0.5
    first = draw.uniform(0.0, SECONDS[tier])
    # half of the further ones come while the first is dealt with
    later = [draw.choice((draw.uniform(0.0, 0.2), draw.uniform(0.0, 3.0))) for _ in range(draw.randint(0, 2))]
    times = sorted((first, *(first + delay for delay in later)))
    names = tuple(draw.choice(_SIGNALS) for _ in times)
    to_all = draw.random() < 0.5
    file, policy = folder / "verdict.json", folder / "policy.toml"
    file.unlink(missing_ok=True)
    policy.write_text(f"{_UNFIT_POLICY if unfit else ''}[expect]\ngpus = 0\n", encoding="utf-8")
    words = ["--tier", tier, "--policy", str(policy), "-o", str(file), "--python", sys.executable]
    command = [str(program), "gate"] if style == "native" else [str(WRAPPER), style]
    with subprocess.Popen(
        [*command, *words],
        env={**os.environ, "TORCHDOCTOR": str(program)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        begun = time.monotonic()
        for at, name in zip(times, names, strict=True):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, at - (time.monotonic() - begun)))
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if to_all else os.kill)(process.pid, getattr(signal, name))
        code = _ended(process)
        said = process.stderr.read().decode("utf-8", "replace") if process.stderr is not None else ""
    verdict = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    before_us = "Fatal Python error: init_" in said or ("Traceback" in said and "torchdoctor/" not in said)
    fault = _fault(tier, style, unfit, code, verdict, "" if before_us else said)
    return Ended(tier, style, unfit, names, code, str(verdict.get("verdict", "")), before_us, fault)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Its code; a gate whose script was killed is ended with it, since nobody hears it any more."""
    try:
        code = process.wait(_LIMIT_S)
    except subprocess.TimeoutExpired:
        code = 124
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return code


def _fault(tier: str, style: str, unfit: bool, code: int, verdict: dict[str, Any], said: str) -> str:
    told = verdict.get("verdict")
    if verdict and (told == "fit") and not _reached(tier, verdict):
        return "a file says fit that the verdict did not reach"
    if told == ("fit" if unfit else "unfit"):
        return f"a file says {told} of the other kind of node"
    if code == 124:
        return f"it did not end within {_LIMIT_S:g} s"
    if code == _UNFIT[style] and told != "unfit" and not (style == "native" and code == 1):
        return f"code {code} says unfit, the file {told}"
    if code in _FIT[style] and (unfit or told != "fit") and not (style == "npd" and told == "environment"):
        return f"code {code} says fit, the file {told}"
    if style == "native" and code >= 0 and code not in CONTRACT and said:
        return f"code {code} is none of the contract"
    if "Traceback" in said:
        return "a traceback"
    return ""


def _reached(tier: str, verdict: dict[str, Any]) -> bool:
    """Was every set of the tier run, and nothing cut short?"""
    cut = any(one["check"] == "gate" for one in verdict["not_checked"])
    return not cut and SETS[tier] <= set(verdict["seconds"])
