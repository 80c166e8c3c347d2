"""Judging what the active set measured: wrong results at once, speeds only when a second look agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchdoctor.gate.active import LABEL, NOW, SPEEDS
from torchdoctor.gate.checks_environment import torch_gpu
from torchdoctor.gate.finding import Action, Finding, Untold
from torchdoctor.gate.look import ENVIRONMENT, FAIL, INFO, NODE, WARN, Look, Said
from torchdoctor.number import count
from torchdoctor.probes.machine import Json
from torchdoctor.probes.probe import failure

# without these nobody knows whether the GPUs compute
_NEEDED = ("gemm-exact",)


def judge(look: Look) -> Said:
    """Findings of the active set's results, and whether it came to its end."""
    outcome = look.facts.ended.get(LABEL)
    if outcome is None:
        return
    results = [line for line in outcome.lines if isinstance(line.get("check"), str)]
    passed: dict[str, int] = {}
    for line in results:
        if line.get("verdict") == "pass":
            name = _name(line)
            passed[name] = passed.get(name, 0) + 1
    for line in results:
        yield from _one(look, line, passed.get(_name(line), 0))
    for line in outcome.lines:
        if isinstance(line.get("untold"), str):
            name = str(line["untold"]).partition("@")[0].partition(":")[0]
            yield Untold(name, f"{line['untold']}: {line.get('reason')}", name in _NEEDED)
    yield from _transport(look, outcome.lines)
    named = {_name(line) for line in results} | {
        str(line.get("untold")).partition("@")[0] for line in outcome.lines
    }
    for name in _NEEDED if look.count or look.only_amd else ():
        if name not in named:
            yield Untold(name, "it was not run on any GPU", True)
    if not any(line.get("done") is True for line in outcome.lines):
        _, why = failure(outcome)
        now = next((line[NOW] for line in reversed(outcome.lines) if NOW in line), None)
        during = f" while {', '.join(map(str, now))} ran" if isinstance(now, list) and now else ""
        yield Untold("active", f"the active checks did not finish: {why}{during}", True)


def _transport(look: Look, lines: Sequence[Mapping[str, Json]]) -> Said:
    """The ways that NCCL took inside the node, from its own log: none of them should leave the node."""
    wanted = look.policy.expected("transport")
    notes = [str(note) for line in lines for note in _list(line.get("notes"))]
    told = [note for note in notes if note.startswith("nccl@") and "does not tell" not in note]
    if wanted and not told:
        yield Untold("transport", "NCCL did not say which paths it used; the standard tier asks for them")
    if wanted and told and not any(wanted.lower() in note.lower() for note in told):
        leaked = look.facts.value("env.leaked")
        by_job = isinstance(leaked, dict) and any(name.endswith("_DISABLE") for name in leaked)
        yield look.found(
            "transport", "NCCL uses other paths within the node than expected", FAIL,
            ENVIRONMENT if by_job else NODE, Action.CHANGE_JOB if by_job else Action.INSPECT,
            tag="transport-other", observed=told[0][:300], expected=wanted,
            source=f"{look.policy.path}: expect.transport",
            advice="" if by_job else "ACS, the IOMMU, a missing link, or a container without shared memory",
        )  # fmt: skip
    for note in notes:
        if note.startswith("nccl@"):
            out = "via NET/" in str(note) or " NET/" in str(note)
            yield look.found(
                "transport",
                "NCCL leaves the node to reach its own GPUs" if out else "The paths that NCCL uses",
                WARN if out else INFO,
                ENVIRONMENT if out else None,
                Action.CHANGE_JOB if out else Action.NONE,
                observed=str(note)[:300], expected="P2P, SHM or NVLS within a node" if out else "",
                source="NCCL_DEBUG=INFO of a short all-reduce",
            )  # fmt: skip


def _name(line: Mapping[str, Json]) -> str:
    return str(line.get("check")).partition("@")[0]


def _gpu(look: Look, line: Mapping[str, Json]) -> int | None:
    device = count(str(line.get("check")).partition("@")[2].removeprefix("cuda:"))
    if device is None:
        return None
    for row in look.facts.rows("env.devices", 3):
        if row[0] == device:
            found = torch_gpu(look, list(row))
            if found is not None:
                return found
    mine = sorted(look.job_gpus) if look.job_gpus is not None else list(range(look.count))
    return mine[device] if device < len(mine) else None


def _one(look: Look, line: Mapping[str, Json], passed: int) -> Said:
    verdict, name = str(line.get("verdict")), _name(line)
    if verdict in ("pass", "skip", "unknown"):  # a reason for what is unknown comes as a line of its own
        return
    gpu = _gpu(look, line)
    evidence = tuple(str(one) for one in _list(line.get("evidence")))
    again = line.get("again")
    if name in SPEEDS:
        yield _speed(look, line, gpu, evidence, again if isinstance(again, dict) else None)
        return
    if verdict == "warn":
        yield _found(look, line, gpu, evidence, fail=False)
        return
    blame = line.get("blame")
    if blame == "node":
        yield _found(look, line, gpu, evidence, fail=True, retest=_repeated(again))
    elif blame == "environment":
        yield _found(look, line, gpu, evidence, fail=True, environment=True)
    elif blame == "fabric":
        raised = "raised " in str(line.get("observed"))
        yield _found(look, line, gpu, evidence, fail=True, environment=raised)
    elif passed:  # the same program works on its siblings
        yield _found(look, line, gpu, evidence, fail=True)
    else:
        yield Untold(name, f"{line.get('check')}: {line.get('observed')}; nothing to compare with", True)


def _repeated(again: Json) -> str:
    """What a second run of a wrong result gave. It changes no verdict: one wrong result is enough."""
    if not isinstance(again, dict):
        return ""
    comes_and_goes = " (intermittent)" if again.get("verdict") == "pass" else ""
    return f"again: {again.get('verdict')}, {again.get('observed')}{comes_and_goes}"


def _speed(
    look: Look,
    line: Mapping[str, Json],
    gpu: int | None,
    evidence: tuple[str, ...],
    again: Mapping[str, Json] | None,
) -> Finding:
    """Slow twice is slow; slow once is noise, or somebody else's work."""
    first = str(line.get("observed"))
    if again is None:
        return _found(look, line, gpu, evidence, fail=False, retest="not measured again: no time was left")
    retest = f"again after a pause: {again.get('verdict')}, {again.get('observed')}"
    if again.get("verdict") == "pass":
        return look.found(
            _name(line), f"{line.get('title')}: slow once", INFO, None, Action.NONE, gpu, observed=first,
            expected=str(line.get("expected")), evidence=(*evidence, retest),
        )  # fmt: skip
    both = line.get("verdict") == "fail" and again.get("verdict") == "fail"
    return _found(look, line, gpu, evidence, fail=both, retest=retest)


def _found(
    look: Look,
    line: Mapping[str, Json],
    gpu: int | None,
    evidence: tuple[str, ...],
    *,
    fail: bool,
    environment: bool = False,
    retest: str = "",
) -> Finding:
    from dataclasses import replace

    action = Action.CHANGE_JOB if environment else Action.RESET_GPU if fail else Action.INSPECT
    found = look.found(
        _name(line), str(line.get("title")), FAIL if fail else WARN, ENVIRONMENT if environment else NODE,
        action, gpu,
        observed=str(line.get("observed")), expected=str(line.get("expected") or "the check passes"),
        source=str(line.get("source") or f"torchdoctor selftest --only {_name(line)}"),
        evidence=evidence, advice=str(line.get("repeat") or ""),
    )  # fmt: skip
    return replace(found, retest=retest) if retest else found


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
