"""The engine: a transcript, facts and rules in; a report out."""

from __future__ import annotations

from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook

__all__ = ["FactBook", "diagnose"]
