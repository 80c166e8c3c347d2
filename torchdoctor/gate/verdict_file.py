"""A verdict that was written to a file, read again as data."""

from __future__ import annotations

import json
from typing import Any

from torchdoctor.gate.finding import EXIT, Verdict
from torchdoctor.gate.outcome import SCHEMA
from torchdoctor.model import TorchdoctorError

_MOST_BYTES = 4 << 20


class VerdictError(TorchdoctorError):
    """A file that holds no verdict that can be used; the message says why, and does not name the file."""


def read(path: str) -> dict[str, Any]:
    """What ``outcome.to_json`` wrote there. Raises VerdictError."""
    try:
        with open(path, "rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise VerdictError(f"cannot be read: {error.strerror}") from None
    if len(raw) > _MOST_BYTES:
        raise VerdictError("is larger than a verdict can be")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        raise VerdictError("is broken") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise VerdictError(f"is not a verdict of schema {SCHEMA}")
    try:
        agree = data["exit_code"] == EXIT[Verdict(data["verdict"])]
    except (ValueError, KeyError, TypeError):
        raise VerdictError("is broken") from None
    if not agree:
        raise VerdictError("contradicts itself: its verdict and exit code differ")
    return data


def objects(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in a list of the verdict; anything else there is left out."""
    found = data.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
