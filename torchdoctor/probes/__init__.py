"""Facts about the machine and the examined interpreter, fetched only when asked for.

``FACTS`` costs nothing to import. ``ProbeSource`` looks at this machine, ``RecordedSource`` at a saved one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.probes.names import FACTS

if TYPE_CHECKING:
    from torchdoctor.probes.recording import RecordedSource, RecordingError
    from torchdoctor.probes.source import ProbeSource

__all__ = ["FACTS", "ProbeSource", "RecordedSource", "RecordingError"]


def __getattr__(name: str) -> object:
    # What reads a machine is imported only by those who do: `explain --offline` and the lint do not.
    if name == "ProbeSource":
        from torchdoctor.probes.source import ProbeSource

        return ProbeSource
    if name in ("RecordedSource", "RecordingError"):
        from torchdoctor.probes import recording

        return getattr(recording, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
