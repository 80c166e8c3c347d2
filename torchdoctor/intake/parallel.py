"""A big file scanned by several processors at once: this process takes the first part, children the others.

The parts are read in order, so what comes out does not depend on who was faster. A child that dies, or that
cannot be started, costs time only: its part is scanned here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Any, BinaryIO

from torchdoctor.intake import scan
from torchdoctor.intake.window import Block

PART_BYTES = 32 << 20
PARTS = 32  # of a file of more than 1 GiB; in each, lines of one kind are read anew up to their limit
CHILDREN = 7


def blocks(
    file: BinaryIO, path: str, size: int, literals: list[bytes], scanner: scan.Scanner, prime: int
) -> Generator[Block, None, None]:
    """The blocks of a regular file of ``size`` bytes, scanned in parts of 32 MiB or more.

    ``prime``: so many bytes at the beginning of the file show each child what lines are common.
    """
    bounds = _bounds(file, size)
    parts = list(pairwise(bounds))
    workers = min(len(parts), processors(), CHILDREN + 1)
    # the first share is this process's and the smallest: it reads what all of them find, too
    mine = max(1, (len(parts) - (workers - 1)) // workers)
    cuts = [0, *(mine + (len(parts) - mine) * one // max(1, workers - 1) for one in range(workers))]
    children: dict[int, Any] = {}
    for first, end in list(pairwise(cuts))[1:]:
        child = _start(path, parts[first:end], prime, scanner.novel, literals)
        if child is not None:
            children[first] = child
    number = 1
    try:
        for first, end in pairwise(cuts):
            for offset, length, ends, hot in _found(file, parts[first:end], children.get(first), scanner):
                yield Block(number, ends, hot, loader(file, offset, length), length)
                number += ends
    finally:
        for child in children.values():
            child.kill()
            child.stdout.close()
            child.wait()


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def loader(file: BinaryIO, offset: int, length: int) -> Callable[[], bytes]:
    """Reads a stretch of the file when it is asked for."""

    def load() -> bytes:
        file.seek(offset)
        return file.read(length)

    return load


def _bounds(file: BinaryIO, size: int) -> list[int]:
    """Where parts begin: behind the first line end after each length of one; then the end of the file."""
    bounds = [0]
    length = max(PART_BYTES, size // PARTS)
    while size - bounds[-1] > length * 3 // 2:
        at = bounds[-1] + length
        file.seek(at)
        end = file.read(8 * scan.BLOCK_BYTES).find(b"\n")
        if end < 0:  # no line end in sight: one part
            break
        bounds.append(at + end + 1)
    return [*bounds, size]


def _start(
    path: str, parts: list[tuple[int, int]], prime: int, novel: int, literals: list[bytes]
) -> Any | None:
    import marshal
    import subprocess

    if not sys.executable:
        return None
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(scan.__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    assert child.stdin is not None
    try:
        with child.stdin:
            child.stdin.write(marshal.dumps((os.path.abspath(path), parts, prime, novel, literals)))
    except OSError:  # it died at once; reading its part shows that
        pass
    return child


def _found(
    file: BinaryIO, parts: list[tuple[int, int]], child: Any | None, scanner: scan.Scanner
) -> Iterator[tuple[int, int, int, list[int]]]:
    """(offset, length, line ends, hot lines) of each block, from the child as far as it gets."""
    reached = parts[0][0]
    if child is not None:
        for line in child.stdout:
            if line == scan.SPENT:
                scanner.spent = True
                continue
            offset, length, ends, *hot = (int(word) for word in line.split())
            if offset != reached or not line.endswith(b"\n"):
                break
            reached = offset + length
            yield offset, length, ends, hot
    for first, end in parts:
        if end <= reached:
            continue
        scanner.restart()
        for at, block in scan.part(file, max(first, reached), end):
            ends, hot = scanner.look(block)
            yield at, len(block), ends, hot
