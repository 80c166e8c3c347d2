"""Source files and notebooks as text and tree, or why there is none."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import stat
import tokenize
import warnings
from functools import cached_property

from torchdoctor.model import Record, TorchdoctorError
from torchdoctor.records import record

# What people write has less; a tree takes some sixty times the memory of its text.
MOST_BYTES = 2 << 20
_NOTEBOOK_BYTES = 64 << 20  # most of it are pictures
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class UnreadableSource(TorchdoctorError):
    """A source that cannot be opened or is not read, with the reason."""


@record(frozen=True, slots=True)
class Broken(Record):
    """A place at which a source is no Python. ``column`` counts characters from 0."""

    line: int
    column: int
    says: str


class Source:
    """The text of one file; of a notebook that of its code cells, one after the other.

    ``cells`` holds the first line of each cell and its number, empty for a file of Python.
    """

    def __init__(
        self,
        path: str,
        text: str,
        *,
        cells: tuple[tuple[int, int], ...] = (),
        broken: tuple[Broken, ...] = (),
    ) -> None:
        self.path = path
        self.text = text
        self.cells = cells
        self.broken = broken
        self.notebook = path.endswith(".ipynb")

    @cached_property
    def lines(self) -> list[str]:
        """The lines as the parser counts them, without their ends."""
        return [one.rstrip("\r\n") for one in _LINE.findall(self.text)]

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def place(self, line: int) -> tuple[int, int]:
        """Cell and line in the cell; cell 0 for a file of Python."""
        for first, cell in reversed(self.cells):
            if line >= first:
                return cell, line - first + 1
        return 0, line


def read(path: str) -> Source:
    """The source in a file. Raises UnreadableSource for one that cannot be opened, or that is too big."""
    most = _NOTEBOOK_BYTES if path.endswith(".ipynb") else MOST_BYTES
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise UnreadableSource(f"{path}: no regular file; - reads standard input")
        with open(path, "rb") as file:
            raw = file.read(most + 1)
    except OSError as error:
        raise UnreadableSource(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > most:
        raise UnreadableSource(f"{path}: skipped, more than {most >> 20} MiB: nobody wrote that by hand")
    return of(raw, path)


def of(raw: bytes, path: str) -> Source:
    """The source in bytes, named ``path``."""
    if path.endswith(".ipynb"):
        return _notebook(raw, path)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return Source(
            path, "", broken=(Broken(_line_of(raw, error), 0, f"the text cannot be decoded: {error}"),)
        )
    return Source(path, text)


def _line_of(raw: bytes, error: Exception) -> int:
    return raw.count(b"\n", 0, error.start) + 1 if isinstance(error, UnicodeDecodeError) else 1


def parse(source: Source) -> ast.Module | Broken:
    """The tree of a source, or where and why it has none. Never raises."""
    flags = ast.PyCF_ONLY_AST | (_TOP_LEVEL_AWAIT if source.notebook else 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(source.text, "<source>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        return Broken(error.lineno or 1, max((error.offset or 1) - 1, 0), error.msg or "no Python")
    except (ValueError, OverflowError) as error:  # NUL bytes
        return Broken(1, 0, str(error))
    except (RecursionError, MemoryError):
        return Broken(1, 0, "nested too deep to be parsed")
    assert isinstance(tree, ast.Module)
    return tree


def _notebook(raw: bytes, path: str) -> Source:
    try:
        book = json.loads(raw.decode("utf-8-sig"))
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
        code = [
            (number, _joined(cell.get("source", cell.get("input", ""))))
            for number, cell in enumerate(cells, 1)
            if cell.get("cell_type") == "code"
        ]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        return Source(path, "", broken=(Broken(1, 0, f"no notebook: {error or type(error).__name__}"),))
    lines: list[str] = []
    starts: list[tuple[int, int]] = []
    broken: list[Broken] = []
    for number, text in code:
        plain = _without_magic(text)
        first = len(lines) + 1
        starts.append((first, number))
        found = parse(Source(path, "\n".join(plain)))
        if isinstance(found, Broken):
            broken.append(Broken(first + found.line - 1, found.column, found.says))
            plain = [""] * len(plain)  # the other cells are read all the same
        lines += plain
    return Source(path, "\n".join(lines) + "\n", cells=tuple(starts), broken=tuple(broken))


def _joined(text: object) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def _without_magic(text: str) -> list[str]:
    """The lines of a cell, with ``pass`` for what IPython runs and Python does not know."""
    lines = text.split("\n")
    head = next((line for line in lines if line.strip()), "")
    if head.startswith("%%"):
        if not re.match(r"%%(?:time|timeit|capture|prun|memit)\b", head):
            return [""] * len(lines)
        lines[lines.index(head)] = ""
    plain: list[str] = []
    for line in lines:
        bare = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if re.match(r"[!?]|%{1,2}\w", bare) or re.fullmatch(r"[\w.]+\?{1,2}", bare):
            plain.append(f"{indent}pass")
        elif found := re.match(r"(\s*[\w, ]+=\s*)[!%](?=\w)", line):
            plain.append(f"{found.group(1)}None")
        else:
            plain.append(line)
    return plain
