"""What a person names becomes single inputs: files, folders, patterns, archives, standard input.

What is found by looking into a folder or an archive is read only when it looks like a log; links out of it,
pipes, devices and what cannot be read are said in a note, and the rest is done.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, BinaryIO, cast

from torchdoctor.intake.log_names import ARCHIVES, LOG_SUFFIXES, is_dump, may_be_dump, may_be_log
from torchdoctor.intake.source import IntakeError, Resumed, is_binary, open_binary
from torchdoctor.patterns import search
from torchdoctor.records import Record, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdoctor.intake import packed
    from torchdoctor.intake.budget import Budget

# what reads packed files is imported only for one: gzip, xz, bzip2, zstd, zip
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
FOLDER_FILES = 4_096
FOLDER_ENTRIES = 200_000
FOLDER_DEPTH = 12
_TOLD = 5  # so many of a kind are named, the others counted
SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")


class EmptyArchive(IntakeError):
    """An archive without a log in it."""


@record(frozen=True, slots=True)
class Input(Record):
    """One input: the name it is quoted by, how to open it, and its path when it is a file by itself.

    ``of``: how many inputs are read with it, as far as known.
    """

    name: str
    open: Callable[[], BinaryIO]
    path: str | None = None
    of: int = 1


class Notes:
    """Why files were left out: a few of each kind by name, the others as a number."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}

    def add(self, name: str, reason: str) -> None:
        self._kinds.setdefault(reason, []).append(name)

    def texts(self) -> list[str]:
        """One line for each reason."""
        lines = []
        for reason, names in self._kinds.items():
            more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
            lines.append(f"not read: {', '.join(names[:_TOLD])}{more}: {reason}")
        return lines


class Found:
    """The inputs behind what a person named; ``unreadable`` and ``notes`` fill as they are gone through."""

    def __init__(self, paths: Sequence[str], stdin: BinaryIO | None) -> None:
        self.paths = paths
        self.stdin = stdin
        self.unreadable: list[IntakeError] = []
        self.notes = Notes()
        self._seen: set[tuple[int, int]] = set()

    def __iter__(self) -> Iterator[Input]:
        plain: list[tuple[str, bool]] = []
        for path in self.paths:
            try:
                plain += [(name, name == path) for name in self._expand(path)]
            except IntakeError as error:
                self.unreadable.append(error)
        for path, named in plain:
            try:
                yield from self._file(path, len(plain))
            except EmptyArchive as error:
                if named:
                    self.unreadable.append(error)
                else:  # found in a folder, it may be anything
                    self.notes.add(error.path, error.reason)
            except IntakeError as error:
                self.unreadable.append(error)

    # ------------------------------------------------------------------- files

    def _expand(self, path: str) -> list[str]:
        if path == "-":
            return [path]
        if is_pattern(path):
            found = matches(path)
            if not found:
                raise IntakeError(path, "no such file, and none that matches it as a pattern")
            return [name for one in found for name in (self._folder(one) if os.path.isdir(one) else [one])]
        if not os.path.isdir(path):
            return [path]
        inside = self._folder(path)
        if not inside:
            raise IntakeError(
                path, "the folder holds no text log (.log, .txt, .out, .err, or a text file without suffix)"
            )
        return inside

    def _folder(self, path: str) -> list[str]:
        found: list[str] = []
        root = os.path.realpath(path)
        base = path.rstrip("/\\").count(os.sep)
        entries = 0

        def denied(error: OSError) -> None:
            self.notes.add(str(error.filename), f"the folder cannot be listed ({error.strerror})")

        for folder, folders, names in os.walk(path, onerror=denied):
            entries += len(names)
            for name in folders:
                if os.path.islink(os.path.join(folder, name)):
                    self._link(os.path.join(folder, name), root)
            folders[:] = sorted(
                (n for n in folders if not n.startswith(".") and n not in SKIPPED_FOLDERS), key=in_order
            )
            if folder.count(os.sep) - base >= FOLDER_DEPTH and folders:
                self.notes.add(folder, f"what lies deeper than {FOLDER_DEPTH} folders")
                folders[:] = []
            for name in sorted(names, key=in_order):
                file = os.path.join(folder, name)
                if self._is_log(file, root):
                    found.append(file)
            if len(found) > FOLDER_FILES or entries > FOLDER_ENTRIES:
                self.notes.add(path, f"what lies behind the first {min(len(found), FOLDER_FILES):,} logs")
                break
        return found[:FOLDER_FILES]

    def _link(self, path: str, root: str) -> None:
        """A link inside of the folder leads to what is read anyway; one out of it is not followed."""
        target = os.path.realpath(path)
        if os.path.commonpath([root, target]) != root:
            self.notes.add(path, "a link that leads out of the folder is not followed")
        elif not os.path.exists(path):
            self.notes.add(path, "a link that leads nowhere, or in a circle")

    def _is_log(self, path: str, root: str) -> bool:
        name = os.path.basename(path)
        if name.startswith(".") or not (may_be_log(name) or may_be_dump(name)):
            return False
        try:
            about = os.lstat(path)
        except OSError:
            return True  # the reader says what is wrong with it
        if stat.S_ISLNK(about.st_mode):
            self._link(path, root)
            return False
        if not stat.S_ISREG(about.st_mode):
            self.notes.add(path, f"is {kind_of(about.st_mode)}")
            return False
        if about.st_size == 0:
            return False
        try:
            with open(path, "rb") as file:
                head = file.read(4096)
        except OSError:
            return may_be_log(name)
        if is_dump(head):
            return True
        if not may_be_log(name):
            return False
        if may_be_packed(head):
            from torchdoctor.intake.decompressed import compression_of
            from torchdoctor.intake.packed import is_archive

            if compression_of(head) or is_archive(head, name):
                return True
        if is_binary(head):
            if name.lower().endswith(LOG_SUFFIXES):
                self.notes.add(path, "holds binary data, not a text log")
            return False
        return not name.lower().endswith(ARCHIVES)

    def _file(self, path: str, of: int) -> Iterator[Input]:
        if path == "-":
            name = getattr(self.stdin, "label", "<stdin>")  # the output of a program has one
            yield Input(name, lambda: open_binary("-", self.stdin), None, of)
            return
        try:
            about = os.stat(path)
        except (OSError, ValueError):
            about = None  # opening it tells why
        if about is not None and stat.S_ISREG(about.st_mode):
            if (about.st_dev, about.st_ino) in self._seen:
                return
            if about.st_ino:
                self._seen.add((about.st_dev, about.st_ino))
            file = open_binary(path, None)
            try:
                head = file.read(512) or b""
            except OSError as error:
                file.close()
                raise IntakeError(path, f"cannot be read ({error.strerror})") from None
            if not may_be_packed(head):
                file.close()
                yield Input(path, lambda: open_binary(path, None), path, of)
                return
            from torchdoctor.intake.budget import Budget
            from torchdoctor.intake.decompressed import compression_of
            from torchdoctor.intake.packed import is_archive

            if is_archive(head, path):
                try:
                    file.seek(0)
                    yield from self._archive(file, head, path, Budget(about.st_size))
                finally:
                    file.close()
                return
            file.close()
            kind = compression_of(head)
            if kind is not None:
                yield Input(
                    path,
                    lambda: unpacked(open_binary(path, None), kind, Budget(about.st_size), path),
                    None,
                    of,
                )
                return
            yield Input(path, lambda: open_binary(path, None), path, of)
            return
        yield Input(path, lambda: open_binary(path, None), None, of)

    # ---------------------------------------------------------------- archives

    def _archive(self, file: BinaryIO, head: bytes, name: str, budget: Budget) -> Iterator[Input]:
        """The logs in an archive, and in archives in it. Raises IntakeError when it cannot be read."""
        from torchdoctor.intake import packed
        from torchdoctor.intake.budget import MEMBERS
        from torchdoctor.intake.decompressed import PackedError

        found = 0
        broken = ""
        budget.depth += 1
        try:
            for member in packed.members(file, head, budget):
                full = f"{name}/{member.name}" if member.name else name
                if member.open is None:
                    self.notes.add(full, member.reason)
                    broken = broken or (f"; it {member.reason}" if not member.name else "")
                    continue
                refusal = budget.refusal()
                if refusal or not budget.members:
                    self.notes.add(name, refusal or f"what lies behind the first {MEMBERS:,} files in it")
                    break
                budget.members -= 1
                for item in self._member(member, full, budget):
                    found += 1
                    yield item
        except PackedError as error:
            raise IntakeError(name, str(error)) from None
        finally:
            budget.depth -= 1
        if not found:
            raise EmptyArchive(name, f"the archive holds no text log{broken}")

    def _member(self, member: packed.Member, full: str, budget: Budget) -> Iterator[Input]:
        base = full.rpartition("/")[2]
        log = may_be_log(base)
        if base.startswith(".") or not (log or may_be_dump(base)) or member.open is None:
            return
        from torchdoctor.intake import packed
        from torchdoctor.intake.budget import MEMBERS, NESTING
        from torchdoctor.intake.decompressed import PackedError, compression_of

        of = max(64, 4 * (MEMBERS - budget.members))
        try:
            file = member.open()
            head = file.read(4096)
        except (PackedError, OSError) as error:
            self.notes.add(full, str(error))
            return
        joined = cast("BinaryIO", Resumed(head, file))
        try:
            if is_dump(head):
                yield Input(full, lambda: joined, None, of)
                return
            if not log:
                return
            if packed.is_archive(head, base):
                if budget.depth >= NESTING:
                    self.notes.add(full, f"archives are opened {NESTING} levels deep, this one lies deeper")
                    return
                try:
                    with packed.spooled(joined) as copy:
                        yield from self._archive(copy, head, full, budget)
                except (PackedError, OSError) as error:
                    self.notes.add(full, str(error))
                except IntakeError as error:
                    self.notes.add(full, error.reason)
                return
            kind = compression_of(head)
            if kind is not None:
                yield Input(full, lambda: unpacked(joined, kind, budget, full), None, of)
            elif is_binary(head):
                if base.lower().endswith(LOG_SUFFIXES):
                    self.notes.add(full, "holds binary data, not a text log")
            elif head:
                yield Input(full, lambda: joined, None, of)
        finally:
            joined.close()


def unpacked(file: BinaryIO, kind: str, budget: Budget, name: str) -> BinaryIO:
    """The bytes of a compressed file. Raises IntakeError when its kind cannot be read here."""
    from torchdoctor.intake.decompressed import PackedError, Unpacked

    try:
        return cast("BinaryIO", Unpacked(file, kind, budget))
    except PackedError as error:
        file.close()
        raise IntakeError(name, str(error)) from None


def may_be_packed(head: bytes) -> bool:
    """True for the first 512 bytes of what may be compressed, or an archive."""
    return head.startswith(_PACKED) or head[257:262] == b"ustar"


def is_pattern(path: str) -> bool:
    """True for a pattern like ``logs/rank*.log`` that no shell has expanded."""
    return (
        search(r"[*?]|\[[^\]]+\]", path, "*", "?", "[") is not None
        and path != "-"
        and not os.path.lexists(path)
    )


def matches(pattern: str) -> list[str]:
    """The files and folders a pattern stands for; rank10 comes behind rank9."""
    import glob

    return sorted(glob.glob(pattern, recursive=True), key=in_order)


def in_order(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts rank10 behind rank9."""
    return [
        (0, int(part[:18]), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)
    ]


def kind_of(mode: int) -> str:
    """In words what a file is that is no regular one."""
    kinds = (
        (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"), (stat.S_ISDIR, "a folder"),
    )  # fmt: skip
    return next((words for test, words in kinds if test(mode)), "no regular file")


def files_below(folder: str) -> list[str]:
    """The files below a folder that by name or first bytes may be logs or dumps, by path.

    Hidden ones and links are left out; a folder that cannot be listed stands for itself. Empty for a file.
    """
    found: list[str] = []
    for place, folders, names in os.walk(folder, onerror=lambda error: found.append(str(error.filename))):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(".") and not os.path.islink(path) and (may_be_log(name) or _dumped(path)):
                found.append(path)
    return sorted(found) if os.path.isdir(folder) else []


def _dumped(path: str) -> bool:
    if not may_be_dump(path):
        return False
    try:
        with open(path, "rb") as file:
            return is_dump(file.read(4096))
    except OSError:
        return True  # the reader says what is wrong with it
