"""What ``torchdoctor run`` was asked for, and what a command that ran tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from torchdoctor.hooks.run.stops import Stop
    from torchdoctor.intake.live import Output


@record(frozen=True, slots=True)
class Wish(Record):
    """``stall_s``: no output for so long is looked into; None: never. ``file`` and ``folder`` get the report
    and the bundle as well."""

    argv: tuple[str, ...]
    form: str = "text"
    file: str | None = None
    folder: str | None = None
    offline: bool = False
    quiet: bool = False
    stall_s: float | None = None
    kill_on_stall: bool = False


class Ran(Protocol):
    """What the report needs of a command that ran."""

    wish: Wish
    output: Output
    killed: bool
    stopped: bool
    readers_gone: bool

    @property
    def stops(self) -> Sequence[Stop]: ...
    @property
    def lost(self) -> Sequence[str]: ...
    @property
    def code(self) -> int: ...
    @property
    def python(self) -> str: ...
    def run(self) -> None: ...
    def logs(self) -> list[str]: ...
    def say(self, text: str) -> None: ...
