"""What every file of facts must keep to, whatever wrote it."""

from __future__ import annotations

from torchdoctor.model import TorchdoctorError
from torchdoctor.probes.names import FACTS


class FactsFileError(TorchdoctorError):
    """A facts file that cannot be used; the message says where and what would be right."""


def right_kind(name: str, value: object) -> bool:
    """Is a value out of JSON of the type that the fact has?"""
    kind = FACTS.get(name, "text").partition(":")[0]
    if isinstance(value, bool) or kind == "bool":
        return isinstance(value, bool) and kind == "bool"
    types = {"text": str, "int": int, "float": (int, float), "list": list}[kind]
    return isinstance(value, types)  # type: ignore[arg-type]
