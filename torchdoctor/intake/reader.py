"""What a reader of one structure is, and what it may ask of the stream of lines that feeds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torchdoctor.intake.elements import Draft, Line, Mark
    from torchdoctor.model import Frame, RelationKind


class Reader(Protocol):
    """Reads one structure, line by line, and hands its events to the stream."""

    def take(self, line: Line) -> int:
        """Take the line: DONE, PASS or another number of ``traceback`` says what becomes of it."""
        ...

    def close(self) -> None:
        """Nothing more comes; hand over what was read."""
        ...


class Feed(Protocol):
    """The stream of lines, as its readers see it."""

    closed: list[Draft]  # the exceptions read last, the innermost first
    chain: tuple[RelationKind, list[Draft]] | None
    places: list[Frame]  # pytest prints them above the error they lead to
    crash: Draft | None
    last: Draft | None
    head_mark: Mark
    head_logger: str
    rank: int | None

    def feed(self, line: Line) -> None:
        """Hand a line to whatever reads it."""
        ...

    def single(self, line: Line) -> None:
        """An event that begins with this line and is no exception."""
        ...

    def give_back(self, lines: list[Line]) -> None:
        """Lines that a reader took too much."""
        ...

    def put(self, draft: Draft) -> None:
        """An event that is complete."""
        ...

    def finish(self, draft: Draft, heads: int = 1, inner: bool = False) -> None:
        """An exception that is complete; ``heads`` twins share its frames."""
        ...

    def close(self) -> None:
        """End the open reader."""
        ...

    def fork(self) -> Feed:
        """A stream of its own into the same store, for what stands inside a structure."""
        ...
