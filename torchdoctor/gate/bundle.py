"""A folder with all that a verdict came from, so that it can be given again without the node.

``machine.json`` is what the programs told, ``call.json`` how the gate was called, ``policy.toml`` the site's
policy as it was, ``verdict.json`` what came of it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from torchdoctor.gate.files import WriteError, replace_file
from torchdoctor.gate.outcome import GateOutcome, to_json
from torchdoctor.model import TorchdoctorError
from torchdoctor.probes import named_file

MACHINE, CALL, POLICY, VERDICT = "machine.json", "call.json", "policy.toml", "verdict.json"
_MOST_BYTES = 1 << 20
_TIERS = ("passive", "quick", "standard", "deep")


class BundleError(TorchdoctorError):
    """A folder that is no bundle: what is missing in it or wrong."""


@dataclass(frozen=True, slots=True)
class Call:
    """How the gate was called, as far as it matters for the verdict."""

    tier: str
    gpus: int | None = None
    before_job: bool = False


def too_little(recorded: Call, tier: str) -> bool:
    """Is the tier wanted beyond the one that was recorded?"""
    return _TIERS.index(tier) > _TIERS.index(recorded.tier)


def prepare(folder: str) -> str:
    """Make the folder where it is not there; the path of the recording in it. Raises WriteError."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{folder}: {error.strerror}") from None
    return os.path.join(folder, MACHINE)


def complete(folder: str, outcome: GateOutcome, call: Call, policy: str) -> None:
    """Write what stands beside the recording; ``policy`` is the text of one. Raises WriteError."""
    told = {"tier": call.tier, "gpus": call.gpus, "before_job": call.before_job}
    replace_file(os.path.join(folder, CALL), json.dumps(told) + "\n")
    replace_file(os.path.join(folder, VERDICT), to_json(outcome) + "\n")
    if policy:
        replace_file(os.path.join(folder, POLICY), policy)


def read(folder: str) -> tuple[str, Call, str]:
    """Path of the recording, the call, and path of the policy or "". Raises BundleError."""
    machine, policy = os.path.join(folder, MACHINE), os.path.join(folder, POLICY)
    if not os.path.isfile(machine):
        raise BundleError(f"{folder}: holds no {MACHINE}; gate --save FOLDER/ writes such a folder")
    path = os.path.join(folder, CALL)
    try:
        told = json.loads(named_file.read(path, _MOST_BYTES).decode("utf-8"))
        call = Call(str(told["tier"]), told["gpus"], bool(told["before_job"]))
        if call.tier not in _TIERS or not (call.gpus is None or isinstance(call.gpus, int)):
            raise ValueError("a tier and a number of GPUs were expected")
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BundleError(f"{path}: not as gate --save writes it: {error}") from None
    return machine, call, policy if os.path.isfile(policy) else ""
