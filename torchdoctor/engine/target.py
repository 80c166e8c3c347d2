"""``check --target``: what importing a program switches for the whole process, and by which line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from torchdoctor.model import Blame, CheckResult, Evidence, NotChecked, Outcome, Report, Verdict
from torchdoctor.probes.machine import Command, Machine
from torchdoctor.probes.machine import Outcome as Ended

LIMIT_S = 120.0

# setting -> (id of the check, what is wrong, what to do)
_SETTINGS = {
    "grad_enabled": (
        "grad-mode-disabled",
        "Importing the program switches gradients off for the whole process",
        "Remove torch.set_grad_enabled(False) from module level; use `with torch.no_grad():` where needed.",
    ),
    "inference_mode": (
        "grad-mode-disabled",
        "Importing the program leaves inference mode switched on",
        "Leave the inference_mode block before the import ends.",
    ),
    "default_dtype": (
        "target-default-dtype",
        "Importing the program changes the default dtype of all later tensors",
        "Give the dtype where tensors are made, or set the default in the main script alone.",
    ),
    "default_device": (
        "target-default-device",
        "Importing the program changes the device of all later tensors",
        "Give the device where tensors are made, or use it as `with torch.device(...):`.",
    ),
    "deterministic_algorithms": (
        "target-deterministic",
        "Importing the program changes deterministic mode for the whole process",
        "Set it in the main script, where its cost and its errors are expected.",
    ),
    "anomaly_mode": (
        "target-anomaly-mode",
        "Importing the program leaves anomaly detection on, which makes backward many times slower",
        "Use it as `with torch.autograd.detect_anomaly():` around the part in question.",
    ),
}


def with_target(
    report: Report, machine: Machine, python: str, target: str, limit_s: float = LIMIT_S
) -> Report:
    """The report with what importing ``target`` does.

    Starts ``python`` in a process group of its own, for at most ``limit_s`` seconds, and imports it there.
    A target that cannot be imported is no finding about settings: it is told in ``not_checked``.
    """
    program = os.path.join(os.path.dirname(os.path.dirname(__file__)), "probes", "child", "imported.py")
    command = Command("target", (python, program, target), limit_s, reports=True)
    ended = machine.finish(command)
    results = tuple(_results(target, ended.lines))
    unclear = _unclear(ended, limit_s)
    not_checked = (NotChecked("target", f"{target}: {unclear}"),) if unclear else ()
    failed = any(result.verdict in (Verdict.FAIL, Verdict.WARN) for result in results)
    if not results and not unclear:
        results = (
            CheckResult("target", Verdict.PASS, f"Importing {target} switches nothing for the process"),
        )
    return replace(
        report,
        outcome=Outcome.DIAGNOSED if failed else report.outcome,
        checks=(*results, *report.checks),
        not_checked=(*not_checked, *report.not_checked),
    )


def _unclear(ended: Ended, limit_s: float) -> str:
    """Why what the import does could not be told, or not in full; "" when it could."""
    last: dict[str, Any] = {}
    for line in ended.lines:
        last[str(line.get("kind"))] = line
    if "no-torch" in last:
        error = last["no-torch"]
        return f"torch cannot be imported: {error['type']}: {error['message']}"
    if "ended" in last:
        error = last["ended"]
        frames = error.get("stack") or []
        place = f" at {frames[-1]['file']}:{frames[-1]['line']}" if frames else ""
        if error["type"] == "SystemExit":
            return f"the import ends the process (SystemExit: {error['message']}){place}"
        return f"the import raises {error['type']}: {error['message']}{place}"
    if "done" in last:
        return ""
    if ended.start_error:
        return f"the interpreter does not start: {ended.start_error}"
    if ended.timed_out:
        return f"the import did not end within {limit_s:g} s, and was ended"
    if ended.signal:
        return f"the import crashed the interpreter (signal {ended.signal})"
    return f"the import ended the interpreter (exit code {ended.exit_code})"


def _results(target: str, lines: Sequence[dict[str, Any]]) -> Iterator[CheckResult]:
    done = next((line for line in lines if line.get("kind") == "done"), None)
    calls = [line for line in lines if line.get("kind") == "set"]
    if done is None:
        # it ended by itself in the middle: the last setter that ran still stands
        for setting in dict.fromkeys(str(call["setting"]) for call in calls):
            last = [call for call in calls if call["setting"] == setting][-1]
            first = next(call for call in calls if call["setting"] == setting)
            if first["was"] != last["to"]:
                yield _result(target, setting, str(first["was"]), str(last["to"]), last)
        return
    before, after = done["before"], done["after"]
    for setting in _SETTINGS:
        if setting in before and setting in after and before[setting] != after[setting]:
            value = str(after[setting])
            made = [call for call in calls if call["setting"] == setting and call["to"] == value]
            yield _result(target, setting, str(before[setting]), value, made[-1] if made else None)


def _result(target: str, setting: str, before: str, after: str, call: dict[str, Any] | None) -> CheckResult:
    check_id, title, action = _SETTINGS[setting]
    frames = call["stack"] if call else []
    evidence = tuple(
        Evidence(frame["code"] or frame["function"], frame["file"], frame["line"])
        for frame in reversed(frames)
    )
    place = (
        f" by {frames[-1]['file']}:{frames[-1]['line']}" if frames else ", by a line that could not be told"
    )
    return CheckResult(
        check_id,
        Verdict.WARN,
        title,
        Blame.USER,
        observed=f"{setting}: {before} before, {after} after importing {target}{place}",
        expected=f"{setting} stays {before}",
        evidence=evidence,
        action=action,
    )
