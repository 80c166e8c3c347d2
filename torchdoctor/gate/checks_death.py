"""Why the job's torch died, when it did: what it was set to, what it said, or what cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.gate.facts import Facts
from torchdoctor.gate.finding import Action, Untold
from torchdoctor.gate.look import ENVIRONMENT, FAIL, Look, Said
from torchdoctor.probes.machine import Outcome
from torchdoctor.probes.probe import failure, signal_name

# the engine is imported where a torch died, and nowhere else: it costs the passive tier a tenth of a second
if TYPE_CHECKING:
    from torchdoctor.engine.last_words import Cause

PROGRAM = "gate-without"
_ENVIRONMENT = "gate-environment"
_LATE = ("import", "cuda", "kernel")


def died_at(facts: Facts) -> str:
    """The stage in which the job's Python ended by itself, of those in which torch is at work; else ""."""
    outcome = facts.ended.get(_ENVIRONMENT)
    if outcome is None or outcome.ok or outcome.timed_out or outcome.note or outcome.start_error:
        return ""
    stages = [str(line.get("stage")) for line in outcome.lines if "stage" in line]
    at = stages[-1] if stages else ""
    return at if at.startswith(_LATE) and signal_name(outcome.signal or 0) != "SIGKILL" else ""


def suspects(facts: Facts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The settings to leave out when it is tried again: those that its last words quote, and the others."""
    given = _settings(facts)
    if not given or not died_at(facts):
        return (), ()
    from torchdoctor.engine.last_words import quoted

    likely = quoted(facts.ended[_ENVIRONMENT].stderr, given)
    return likely, tuple(name for name in given if name not in likely)


def named(facts: Facts, error: str) -> tuple[tuple[str, ...], str]:
    """Evidence and advice for an exception of torch: what the rules call it, and the variable it is about."""
    from torchdoctor.engine.last_words import cause

    said = cause(error, _settings(facts))
    if said is None:
        return (error,), "torchdoctor check says why"
    given = tuple(f"{name}={value}" for name, value in _settings(facts).items() if name in said.variables)
    advice = f"change or unset {', '.join(said.variables)}" if given else "torchdoctor check says why"
    return (error, f"{said.title} [{said.rule}]", *given), advice


def judge(look: Look, check: str) -> Said:
    """One finding that blames the environment, else that it could not be told. Of a torch that died alone."""
    from torchdoctor.engine.last_words import cause

    facts = look.facts
    outcome, at = facts.ended[_ENVIRONMENT], died_at(facts)
    given = _settings(facts)
    how = f"the job's Python {_how(outcome)} in: {at}"
    said = cause(outcome.stderr, given)
    without = [str(one) for one in facts.items("env.works_without")]
    names = tuple(without) or (said.variables if said is not None else ())
    if names or (said is not None and said.of_environment):
        yield look.found(
            check, said.title if said is not None else "The job's settings end torch", FAIL, ENVIRONMENT,
            Action.CHANGE_JOB, tag=said.rule if said is not None else "torch-settings",
            observed="; ".join((*(f"{name}={given.get(name, '')}" for name in names), how)),
            expected=f"torch starts, as it does without {', '.join(without)}" if without else "torch starts",
            source="import torch, and a first kernel on each GPU",
            evidence=tuple(line for line in (said.line if said is not None else "",) if line),
            advice=f"change or unset {', '.join(names)}" if names else "torchdoctor check says why",
        )  # fmt: skip
        return
    yield Untold(check, f"{how}{_known(said)}", True)


def _known(said: Cause | None) -> str:
    return f": {said.title} [{said.rule}]" if said is not None else ""


def _how(outcome: Outcome) -> str:
    if outcome.signal:
        return f"was ended by {signal_name(outcome.signal)}"
    return failure(outcome)[1]


def _settings(facts: Facts) -> dict[str, str]:
    found = facts.value("env.settings")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
