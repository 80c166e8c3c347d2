"""One door to the machine: files, listings, environment, and programs that run for us.

Every probe reads through a ``Machine``. The live one looks, the recording one looks and remembers, the
replayed one remembers only. An answer is JSON, so that a whole machine fits into a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from torchdoctor.model import Reason, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

TEXT_LIMIT = 256 * 1024


class Unreadable(Exception):
    """The machine would not tell; ``reason`` is what a fact made of it says."""

    def __init__(self, subject: str, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{subject}: {detail or reason.value}")
        self.subject = subject
        self.reason = reason
        self.detail = detail


class Missing(Unreadable):
    """Looked, and it is not there."""

    def __init__(self, subject: str) -> None:
        super().__init__(subject, Reason.NOT_INSTALLED, "not there")


class NotRecorded(Exception):
    """A replayed machine was asked for something its recording does not hold.

    No kind of ``Unreadable``: a probe that takes an unreadable file for an absent one must not take this so.
    """


@dataclass(frozen=True, slots=True)
class Status:
    """What stands at a path, links followed. ``modified`` is seconds since the epoch."""

    is_folder: bool
    size: int
    modified: float
    mode: int


@dataclass(frozen=True, slots=True)
class Space:
    """A mounted file system, in bytes; ``free`` is what an ordinary user may still take."""

    total: int
    free: int
    used: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: ``root`` is the part that is shown, ``controllers`` those of a cgroup mount."""

    place: str
    root: str
    kind: str
    options: tuple[str, ...]
    controllers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dynamic:
    """What an ELF file asks of the loader."""

    needed: tuple[str, ...]
    rpath: str
    runpath: str
    soname: str


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run for us. ``label`` names it in recordings.

    With ``reports`` the program gets the path of a file as its last argument and writes one JSON object a
    line into it. ``limit_s`` counts from its start. It runs in a folder of its own, and finds no code in the
    current one; ``named`` is for what the user named to be run, which runs where and as they would run it.
    """

    label: str
    argv: tuple[str, ...]
    limit_s: float
    reports: bool = False
    named: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended. ``signal`` is set when one ended it; ``timed_out`` when we ended it.

    ``stderr`` and ``stdout`` are the last part of what it printed. ``start_error`` says why it never ran.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    lines: tuple[dict[str, Json], ...] = ()
    stdout: str = ""
    stderr: str = ""
    start_error: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.start_error


# (operation, subject) -> answer or refusal; label of a program -> how it ended
Memory: TypeAlias = "tuple[dict[tuple[str, str], Json | Unreadable], dict[str, Outcome]]"


class Machine:
    """Typed questions over ``answer``. Raises Missing, Unreadable, or NotRecorded.

    ``programs`` is False where none may run: ``finish`` then raises Unreadable.
    """

    programs: bool = True

    def answer(self, operation: str, subject: str) -> Json:
        raise NotImplementedError

    def start(self, command: Command) -> None:
        """Begin to run it, without waiting; nothing when it already runs or ran."""

    def finish(self, command: Command) -> Outcome:
        """How it ended; starts it when need be, waits up to its limit, then ends its whole group."""
        raise NotImplementedError

    def running(self, label: str) -> bool:
        """Was a program of this label started (or recorded)?"""
        raise NotImplementedError

    def remembered(self) -> Memory:
        """Everything that was asked so far, and how every program ended."""
        raise NotImplementedError

    def read(self, path: str) -> str:
        """The file's text, up to 256 KiB, undecodable bytes replaced."""
        return as_text(self.answer("file", path))

    def head(self, path: str) -> str:
        """The first 4 KiB of the file's text."""
        return as_text(self.answer("head", path))

    def headers(self, path: str) -> str:
        """The file's text up to the first empty line."""
        return as_text(self.answer("headers", path))

    def mounts(self) -> tuple[Mount, ...]:
        """All mounts that this process sees, later ones over earlier ones."""
        found = []
        for item in as_list(self.answer("mounts", "/proc/self/mountinfo")):
            place, root, kind, options, controllers = as_row(item, 5)
            found.append(Mount(place, root, kind, tuple(options.split(",")), tuple(controllers.split(","))))
        return tuple(found)

    def read_or(self, path: str, default: str = "") -> str:
        """The file's text, or the default when it cannot be read."""
        try:
            return self.read(path)
        except Unreadable:
            return default

    def number(self, path: str) -> int:
        """The file's text as an int. Raises Unreadable when it is none."""
        text = self.read(path).strip()
        try:
            return int(text, 0)
        except ValueError:
            raise Unreadable(path, Reason.UNPARSABLE, f"{text[:40]!r} is no number") from None

    def names(self, folder: str, like: Sequence[str] = ("*",)) -> tuple[str, ...]:
        """Names in a folder that match one of the shell patterns, sorted.

        The patterns are part of the question, so that a recording holds no name beyond them.
        """
        found = self.answer("folder", folder if tuple(like) == ("*",) else f"{folder}?{'|'.join(like)}")
        return tuple(str(name) for name in as_list(found))

    def status(self, path: str) -> Status:
        data = as_mapping(self.answer("status", path))
        return Status(
            bool(data.get("folder")),
            as_int(data.get("size")),
            as_float(data.get("modified")),
            as_int(data.get("mode")),
        )

    def exists(self, path: str) -> bool:
        """Is something there? A path that cannot be looked at raises Unreadable."""
        try:
            self.answer("status", path)
        except Missing:
            return False
        return True

    def real_path(self, path: str) -> str:
        """The path with links followed; raises Missing when nothing is there."""
        return as_text(self.answer("real", path))

    def may(self, path: str, how: str) -> bool:
        """May this user do it? ``how`` is of the letters r, w, x."""
        return bool(self.answer("access", f"{how}:{path}"))

    def space(self, path: str) -> Space:
        data = as_mapping(self.answer("space", path))
        return Space(as_int(data.get("total")), as_int(data.get("free")), as_int(data.get("used")))

    def variable(self, name: str) -> str | None:
        """An environment variable; None when it is not set."""
        value = self.answer("variable", name)
        return None if value is None else str(value)

    def value(self, name: str) -> Json:
        """Something the system tells about itself: see ``operations.VALUES``."""
        return self.answer("value", name)

    def dynamic(self, path: str) -> Dynamic:
        """The dynamic section of an ELF file. Raises Unreadable when it is none."""
        data = as_mapping(self.answer("dynamic", path))
        return Dynamic(
            tuple(str(name) for name in as_list(data.get("needed"))),
            str(data.get("rpath")), str(data.get("runpath")), str(data.get("soname")),
        )  # fmt: skip

    def marks(self, path: str, prefix: str) -> tuple[str, ...]:
        """Version texts after ``prefix`` in a binary, as 3.4.30 after GLIBCXX_, lowest first."""
        return tuple(str(mark) for mark in as_list(self.answer("marks", f"{prefix}:{path}")))

    def packages(self, folder: str, names: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
        """Installed packages of these (normalised) names: name, version, folder of the metadata."""
        found = []
        for item in as_list(self.answer("packages", f"{folder}?{','.join(names)}")):
            name, version, entry = as_row(item, 3)
            found.append((name, version, f"{folder}/{entry}"))
        return tuple(found)

    def modules(self, folder: str, names: Sequence[str]) -> tuple[str, ...]:
        """Paths of what an import of one of these names would take from the folder, in the order of names."""
        found = self.answer("modules", f"{folder}?{','.join(names)}")
        return tuple(f"{folder}/{name}" for name in as_list(found))

    def holders(self, path: str) -> tuple[tuple[int, ...], bool]:
        """Processes that have the file open, and whether all processes could be looked at."""
        data = as_mapping(self.answer("holders", path))
        return tuple(as_int(pid) for pid in as_list(data.get("pids"))), bool(data.get("complete"))


def as_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise Unreadable(repr(value)[:40], Reason.UNPARSABLE, "no text")


def as_list(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    raise Unreadable(repr(value)[:40], Reason.UNPARSABLE, "no list")


def as_row(value: Json, length: int) -> list[str]:
    """A list of so many texts."""
    items = as_list(value)
    if len(items) != length:
        raise Unreadable(
            repr(value)[:40], Reason.UNPARSABLE, f"{counted(len(items), 'part')} instead of {length}"
        )
    return [str(item) for item in items]


def as_mapping(value: Json) -> dict[str, Json]:
    if isinstance(value, dict):
        return value
    raise Unreadable(repr(value)[:40], Reason.UNPARSABLE, "no mapping")


def as_int(value: Json) -> int:
    if isinstance(value, (int, float)):
        return int(value)
    raise Unreadable(repr(value)[:40], Reason.UNPARSABLE, "no number")


def as_float(value: Json) -> float:
    return float(value) if isinstance(value, (int, float)) else float(as_int(value))
