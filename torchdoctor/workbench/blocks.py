"""The form of a file of labelled inputs: ``fixtures/<id>.cases``.

A file is a row of blocks. A block is a head, the input byte for byte, and a line break::

    # a note on the case
    === label-100 bytes=312 origin=captured rule=cuda-assert-label-range frame=train.py:41 torch=2.3
    …the next 312 bytes, whatever they hold…

A value that holds a space or a quotation mark is written as a JSON string. An input of more than
``MAX_INLINE`` bytes, or one that is no UTF-8 text, lies gzipped in ``big/`` (``bytes=0 big=NAME.gz``); one of
several files is an archive there (``big=NAME.tar.gz``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence

from torchdoctor.catalog.reader import meant
from torchdoctor.model import Standing, counted
from torchdoctor.workbench.case import ORIGINS, Case

SUFFIX = ".cases"
BIG, MACHINES = "big", "machines"  # the folders beside the files
MAX_INLINE = 20_000
KEYS = ("bytes", "origin", "rule", "also", "standing", "rank", "suspect", "frame", "machine", "torch", "big")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_PAIR = re.compile(r'([A-Za-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)')
_PLAIN = re.compile(r'[^\s"]+')
# behind the input stands one line break, then the next head with its notes, or nothing
_BEHIND = re.compile(rb"\n(?:\Z|(?:#[^\n]*\n)*=== )")
_NEXT_HEAD = re.compile(rb"\n(?:#[^\n]*\n)*=== \S+ bytes=")


def parse(held: bytes, file: str) -> tuple[list[Case], list[str]]:
    """The cases of the bytes of a ``.cases`` file, and one line for each fault, with file and line.

    A block with a fault in it is left out, the blocks behind it are read all the same.
    """
    reader = _Reader(held, file)
    return list(reader.cases()), reader.problems


class _Reader:
    """Goes through a file block by block; ``at`` is the first byte not read yet."""

    def __init__(self, held: bytes, file: str) -> None:
        self.held = held
        self.file = file
        self.of = os.path.basename(file).removesuffix(SUFFIX)
        self.root = os.path.dirname(file)
        self.at = 0
        self.problems: list[str] = []
        self.seen: set[str] = set()

    def cases(self) -> Iterator[Case]:
        note: list[str] = []
        while self.at < len(self.held):
            started = self.at
            end = self.held.find(b"\n", started)
            end = len(self.held) if end < 0 else end
            self.at = end + 1
            line = self.held[started:end].decode("utf-8", "replace")
            if line.startswith("=== "):
                case = self._block(started, line, "\n".join(note))
                note = []
                if case is not None:
                    yield case
            elif line.startswith("#"):
                note.append(line[1:].removeprefix(" "))
            else:
                self._complain(started, f"neither a note nor the head of a case: {line[:60]!r}")
                self._resume()
                note = []
        if note:
            self.problems.append(f"{self.file}: a note stands at its end, without a case below it")

    def _block(self, started: int, line: str, note: str) -> Case | None:
        try:
            name, label = _head(line)
            size = int(label["bytes"])
        except ValueError as error:
            self._complain(started, str(error))
            self._resume()
            return None
        data = self.held[self.at : self.at + size]
        if not _BEHIND.match(self.held, self.at + size):
            self._wrong_size(started, name, size)
            self._resume()
            return None
        self.at += size + 1
        try:
            return self._case(name, label, data, note, f"{self.file}:{self._line(started)}")
        except ValueError as error:
            self._complain(started, f"{name}: {error}")
            return None

    def _case(self, name: str, label: dict[str, str], data: bytes, note: str, place: str) -> Case:
        if name in self.seen:
            raise ValueError("there is another case of this name above")
        self.seen.add(name)
        big = label.get("big")
        if big is not None and (data or "/" in big or not big.endswith(".gz")):
            raise ValueError(f"big={big} wants bytes=0 and the name of a .gz file in {BIG}/")
        path = os.path.join(self.root, BIG, big) if big else None
        machine = label.get("machine")
        if machine is not None:
            machine = os.path.join(self.root, MACHINES, f"{machine}.json")
        for needed in filter(None, (path, machine)):
            if not os.path.isfile(needed):
                raise ValueError(f"{needed}: no such file")
        return Case(
            name=name,
            rule=label["rule"],
            of=self.of,
            origin=label["origin"],
            also=tuple(item for item in label.get("also", "").split(",") if item),
            standing=label.get("standing"),
            rank=int(label["rank"]) if "rank" in label else None,
            suspect=label.get("suspect"),
            frame=label.get("frame"),
            machine=machine,
            torch=label.get("torch"),
            note=note,
            data=data,
            path=path,
            place=place,
        )

    def _wrong_size(self, started: int, name: str, size: int) -> None:
        found = _NEXT_HEAD.search(self.held, self.at - 1)
        right = (found.start() if found else len(self.held) - self.held.endswith(b"\n")) - self.at
        if right == size:
            self._complain(started, f"{name}: no line break stands behind its input")
            return
        what = f"the case on line {self._line(found.end())} begins" if found else "the file ends"
        self._complain(started, f"{name}: bytes={size}, but {what} after {counted(max(right, 0), 'byte')}")

    def _resume(self) -> None:
        """Go on at the next head, with the notes above it."""
        found = _NEXT_HEAD.search(self.held, self.at - 1)
        self.at = found.start() + 1 if found else len(self.held)

    def _line(self, at: int) -> int:
        return self.held.count(b"\n", 0, at) + 1

    def _complain(self, at: int, text: str) -> None:
        self.problems.append(f"{self.file}:{self._line(at)}: {text}")


def _head(line: str) -> tuple[str, dict[str, str]]:
    """Name and values of a head line. Raises ValueError, in words."""
    name, _, rest = line[4:].strip().partition(" ")
    if not _NAME.fullmatch(name):
        raise ValueError(f'"{name}" is no name of a case: letters, digits and hyphens')
    label: dict[str, str] = {}
    at = 0
    for pair in _PAIR.finditer(rest):
        if rest[at : pair.start()].strip():
            break
        key, value = pair.groups()
        if key in label:
            raise ValueError(f"{name}: {key} stands twice")
        label[key] = str(json.loads(value)) if value.startswith('"') else value
        at = pair.end()
    if rest[at:].strip():
        raise ValueError(
            f"{name}: not understood from {rest[at:].strip()[:40]!r} on; "
            'a value is KEY=VALUE, with a space in it KEY="A VALUE"'
        )
    _valid(name, label)
    return name, label


def _valid(name: str, label: dict[str, str]) -> None:
    for key in label:
        if key not in KEYS:
            told = meant(key, KEYS, f"; known: {', '.join(KEYS)}")
            raise ValueError(f'{name}: unknown key "{key}"{told}')
    for key in ("bytes", "origin", "rule"):
        if key not in label:
            raise ValueError(f'{name}: key "{key}" is missing')
    for key in ("bytes", "rank"):
        if not re.fullmatch(r"\d{1,9}", label.get(key, "0")):
            raise ValueError(f"{name}: {key}={label[key]} is no number")
    if label["origin"] not in ORIGINS:
        raise ValueError(f"{name}: origin is one of {', '.join(ORIGINS)}")
    standings = [item.value for item in Standing]
    if label.get("standing", standings[0]) not in standings:
        raise ValueError(f"{name}: standing is one of {', '.join(standings)}")


def block(case: Case) -> bytes:
    """A case as it stands in a file; its input has to lie in ``big/`` already where it belongs there."""
    values: dict[str, str | None] = {
        "bytes": str(len(case.data) if case.path is None else 0),
        "origin": case.origin,
        "rule": case.rule,
        "also": ",".join(case.also),
        "standing": case.standing,
        "rank": None if case.rank is None else str(case.rank),
        "suspect": case.suspect,
        "frame": case.frame,
        "machine": os.path.basename(case.machine).removesuffix(".json") if case.machine else None,
        "torch": case.torch,
        "big": os.path.basename(case.path) if case.path is not None else None,
    }
    pairs = (f"{key}={_written(value)}" for key, value in values.items() if value)
    note = "".join(f"# {line}".rstrip() + "\n" for line in case.note.splitlines())
    head = f"{note}=== {case.name} {' '.join(pairs)}\n"
    return head.encode() + (case.data if case.path is None else b"") + b"\n"


def _written(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def written(cases: Sequence[Case]) -> bytes:
    """The bytes of a file that holds these cases, in this order."""
    return b"".join(block(case) for case in cases)


def is_inline(data: bytes) -> bool:
    """Does an input stand in the file itself: is it short, and text that an editor leaves as it is?"""
    if len(data) > MAX_INLINE or b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
