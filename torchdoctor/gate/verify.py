"""After a repair: do the checks that failed pass now, on the same GPU?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from torchdoctor.gate.finding import EXIT, Finding, Verdict, Weight
from torchdoctor.gate.outcome import GateOutcome
from torchdoctor.gate.verdict_file import VerdictError, objects, read
from torchdoctor.model import Record, TorchdoctorError
from torchdoctor.records import record
from torchdoctor.render.clean import clean


class VerifyError(TorchdoctorError):
    """A verdict with nothing to verify."""


class State(str, Enum):
    PASSES = "passes"
    FAILS = "fails"
    NOT_RUN = "not run"
    ANOTHER = "not the same GPU"


_SIGNS = {State.PASSES: "✓", State.FAILS: "✗", State.NOT_RUN: "?", State.ANOTHER: "?"}


@record(frozen=True, slots=True)
class Failed(Record):
    """What an earlier verdict holds against a node, or could not tell though it had to."""

    check: str
    title: str
    uuid: str = ""

    def same(self, other: Finding) -> bool:
        return self.check == other.check and self.uuid in ("", other.uuid)


@record(frozen=True, slots=True)
class Earlier(Record):
    """The verdict before the repair. ``gpus`` is the number that the command line asked for then."""

    host: str
    tier: str
    policy: str
    gpus: int | None
    failed: tuple[Failed, ...]


@record(frozen=True, slots=True)
class Result(Record):
    failed: Failed
    state: State
    observed: str = ""


@record(frozen=True, slots=True)
class Verified(Record):
    """``new`` is what fails now and did not before: it keeps the node from passing all the same."""

    results: tuple[Result, ...]
    new: tuple[str, ...]
    now: Verdict

    @property
    def exit_code(self) -> int:
        passes = all(one.state is State.PASSES for one in self.results)
        return EXIT[Verdict.INCONCLUSIVE if self.now is Verdict.FIT and not passes else self.now]


def earlier(path: str) -> Earlier:
    """What is to be looked at again. Raises VerifyError."""
    try:
        data = read(path)
    except VerdictError as error:
        raise VerifyError(f"{path}: {error}; expected a file of `torchdoctor gate -o`") from None
    failed = [
        Failed(str(one.get("check")), str(one.get("title")), str(one.get("uuid") or ""))
        for one in objects(data, "findings")
        if one.get("weight") == Weight.FAIL.value and not one.get("suppressed")
    ]
    failed += [
        Failed(str(one.get("check")), str(one.get("reason")))
        for one in objects(data, "not_checked")
        if one.get("required") is True
    ]
    if not failed:
        raise VerifyError(f"{path}: nothing failed in this verdict; torchdoctor gate gives a new one")
    expected = data.get("expected")
    gpus = expected.get("gpus") if isinstance(expected, dict) and expected.get("source") == "--gpus" else None
    return Earlier(
        str(data.get("host") or ""), str(data.get("tier") or ""), str(data.get("policy") or ""),
        gpus if isinstance(gpus, int) else None, tuple(dict.fromkeys(failed)),
    )  # fmt: skip


def compare(before: Earlier, now: GateOutcome) -> Verified:
    """Each failure of then against what the same checks say now."""
    here = {str(one.get("uuid")) for one in now.gpus}
    failing = [one for one in now.findings if one.counts]
    untold = {one.check: one.reason for one in now.untold}

    def result(one: Failed) -> Result:
        if now.host != before.host:
            return Result(one, State.ANOTHER, f"this is node {now.host}, the verdict is about {before.host}")
        if one.uuid and one.uuid not in here:
            return Result(one, State.ANOTHER, "it is not in this node; torchdoctor gate judges what is")
        found = next((it for it in failing if one.same(it)), None)
        if found is not None:
            return Result(one, State.FAILS, found.observed)
        if one.check in untold:
            return Result(one, State.NOT_RUN, untold[one.check])
        return Result(one, State.PASSES)

    new = [it for it in failing if not any(one.same(it) for one in before.failed)]
    return Verified(
        tuple(map(result, before.failed)),
        tuple(f"{it.title}{f' ({it.uuid})' if it.uuid else ''}: {it.observed}" for it in new),
        now.verdict,
    )


def to_json(verified: Verified, now: Mapping[str, Any]) -> str:
    """One line of ASCII JSON; ``now`` is the new verdict."""
    data = {
        "schema": "torchdoctor.verify/1",
        "exit_code": verified.exit_code,
        "checks": [
            {
                "check": one.failed.check,
                "title": one.failed.title,
                "uuid": one.failed.uuid or None,
                "state": one.state.value,
                "observed": one.observed or None,
            }
            for one in verified.results
        ],
        "new": list(verified.new),
        "now": dict(now),
    }
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def lines(verified: Verified) -> Iterator[tuple[str, str]]:
    """A line for each check that failed, with its mark, then what is new."""
    for one in verified.results:
        gpu = f" ({one.failed.uuid})" if one.failed.uuid else ""
        why = f": {one.observed}" if one.observed else ""
        # what was found then is no longer so where it passes
        found = f"(was: {one.failed.title})" if one.state is State.PASSES else one.failed.title
        yield _SIGNS[one.state], clean(f"{one.failed.check} {one.state.value}{gpu}  {found}{why}")
    for text in verified.new:
        yield "✗", clean(f"fails, and did not before  {text}")
    yield (
        "",
        {0: "All pass now", 12: "It could not be determined"}.get(
            verified.exit_code, "The node does not pass"
        )
        + f" (exit code {verified.exit_code})",
    )
