"""What the readers pass to each other: logical lines, prefix marks, and events under construction."""

from __future__ import annotations

import itertools

from torchdoctor.model import Event, EventKind, Frame, Quoted, Relation, RelationKind

# A message of torch can hold a list of every parameter name of a model; more than this helps nobody.
TEXT_LIMIT = 32_768
FRAME_LIMIT = 400

# what is left of a class of Python's where its first letter was not copied
BEHEADED = {
    name[1:]: name
    for name in (
        "RuntimeError", "TypeError", "ValueError", "AttributeError", "AssertionError", "ImportError",
        "IndexError", "KeyError", "ModuleNotFoundError",
    )
}  # fmt: skip


class Mark:
    """What the prefix of a line says: which stream, rank, host, when, how grave."""

    __slots__ = ("host", "key", "level", "local_rank", "logger", "rank", "record", "shapes", "time")

    def __init__(self) -> None:
        self.key = ""
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.host: str | None = None
        self.time: str | None = None
        self.level: str | None = None
        self.logger = ""
        self.shapes: tuple[object, ...] = ()  # learned prefixes that were taken off: each once
        self.record = False  # a logger's record: what follows it without prefix belongs to it


NO_MARK = Mark()


def same_record(mark: Mark, other: Mark) -> bool:
    """True for two lines of one record whose logger repeats the prefix on every line, as vLLM does."""
    if not (mark.record and other.record) or (mark.logger, mark.level) != (other.logger, other.level):
        return False
    placed = ":" in mark.logger and mark.logger[-1:].isdecimal()  # file and line of the one call
    return placed or (mark.time is not None and mark.time == other.time)


class Line:
    """One logical line: a physical line, a part of one between carriage returns, or a piece of a long one.

    ``text`` is the cleaned line without stream tags; ``body`` also lacks times, levels and logger names.
    ``joined`` says that it goes on where the line before it was cut.
    """

    __slots__ = ("body", "joined", "mark", "number", "text")

    def __init__(self, number: int, text: str, body: str, mark: Mark, joined: bool = False) -> None:
        self.number = number
        self.text = text
        self.body = body
        self.mark = mark
        self.joined = joined


_ORDER = itertools.count()


class Draft:
    """An event under construction; readers add to it until they close it."""

    __slots__ = (
        "cells", "count", "end_line", "frames", "headed", "host", "ignored", "kind", "level", "line", "links",
        "local_rank", "message_line", "number", "order", "parts", "quoted", "rank", "raw", "recovered",
        "size", "stream", "time", "type",
    )  # fmt: skip

    def __init__(self, kind: EventKind, line: Line, text: str | None = None) -> None:
        mark = line.mark
        self.kind = kind
        self.line = self.end_line = line.number
        self.raw = line.text
        self.parts: list[str] = [] if text is None else [text]
        self.size = 0 if text is None else len(text)
        self.stream = mark.key
        self.rank = mark.rank
        self.local_rank = mark.local_rank
        self.host = mark.host
        self.time = mark.time
        self.level = mark.level
        self.type: str | None = None
        self.frames: list[Frame] = []
        self.links: list[tuple[RelationKind, Draft]] = []
        self.headed = False
        self.quoted = Quoted.NO
        self.recovered = False
        self.ignored = False  # Python said so: in a destructor, at exit
        self.count = 1
        self.number = -1
        self.message_line = 0
        self.cells = False
        self.order = next(_ORDER)

    def add(self, text: str, number: int, joined: bool = False) -> None:
        """Take one more line of text; silently stops at TEXT_LIMIT."""
        self.end_line = max(self.end_line, number)
        if not self.parts:
            self.message_line = number
        if self.size >= TEXT_LIMIT:
            return
        text = text[: TEXT_LIMIT - self.size]
        self.size += len(text) + 1
        if joined and self.parts:
            self.parts[-1] += text
        else:
            self.parts.append(text)

    def add_frame(self, frame: Frame) -> None:
        self.end_line = max(self.end_line, frame.at)
        self.headed = True
        if len(self.frames) < FRAME_LIMIT:
            self.frames.append(frame)
        else:  # endless recursion: the innermost frames count
            self.frames[-1] = frame

    def link(self, kind: RelationKind, draft: Draft) -> None:
        if draft is not self:
            self.links.append((kind, draft))

    def text(self) -> str:
        return "\n".join(self.parts).strip("\n") if self.kind is not EventKind.LOG else "\n".join(self.parts)

    def event(self, source: str) -> Event:
        relations = tuple(Relation(kind, to.number) for kind, to in self.links if to.number >= 0)
        return Event(
            self.number, self.kind, self.text(), source, self.line, self.end_line, self.stream, self.rank,
            self.local_rank, self.host, self.time, self.level, self.type, tuple(self.frames), relations,
            self.headed, self.quoted, self.recovered, self.count, self.message_line, self.cells,
        )  # fmt: skip


def is_anchored(one: Draft | Event) -> bool:
    """Has it what only a program gives: frames, a traceback's head, a time, a level, a rank?"""
    return bool(one.frames or one.headed or one.time or one.level or one.rank is not None)
