"""Lines of Python sources on this machine, read as text, and the locks that surround one of them."""

from __future__ import annotations

import ast
import os
import stat
from functools import lru_cache
from typing import Final

MAX_BYTES: Final = 4 << 20


@lru_cache(maxsize=256)
def _lines(path: str) -> tuple[str, ...]:
    """The lines of a regular file; () for anything else."""
    try:
        if (
            not os.path.isabs(path)
            or not stat.S_ISREG(os.stat(path).st_mode)
            or os.path.getsize(path) > MAX_BYTES
        ):
            return ()
        with open(path, encoding="utf-8", errors="replace") as stream:
            return tuple(stream.read().splitlines())
    except (OSError, ValueError):
        return ()


def line_of(path: str, number: int) -> str:
    """One line, without the blanks around it; "" when it cannot be read."""
    lines = _lines(path)
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def locks_around(path: str, number: int) -> tuple[tuple[str, ...], str]:
    """What ``with`` statements hold around a line, outermost first, and what the line itself asks for."""
    try:
        tree = ast.parse("\n".join(_lines(path)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (), ""
    held: list[tuple[int, str]] = []
    wanted = ""
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)) and node.end_lineno is not None:
            names = [ast.unparse(item.context_expr) for item in node.items]
            if node.lineno == number:
                wanted = names[-1]
                held += [(node.lineno, name) for name in names[:-1]]
            elif node.lineno < number <= node.end_lineno:
                held += [(node.lineno, name) for name in names]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute) and node.func.attr == "acquire"
            and node.lineno <= number <= (node.end_lineno or 0)
        ):  # fmt: skip
            wanted = wanted or ast.unparse(node.func.value)
    return tuple(name for _, name in sorted(held)), wanted
