"""What a check is, and what it finds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from torchdoctor.model import Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene

FAMILY = "lint"


@record(frozen=True, slots=True)
class Edit(Record):
    """A replacement in the parsed text; lines from 1, columns in UTF-8 bytes from 0, as in ``ast``."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@record(frozen=True, slots=True)
class Finding(Record):
    """One pitfall at one place. Columns count bytes from 0, as in ``ast``.

    ``says`` names the things of this place. ``edits`` is a safe repair, empty where there is none.
    """

    check: str
    line: int
    column: int
    end_line: int
    end_column: int
    says: str
    function: str = ""
    edits: tuple[Edit, ...] = ()


class Check:
    """One pitfall: its texts, and what finds it. A subclass stands for one id of the catalog."""

    id: ClassVar[str]
    group: ClassVar[int] = 1
    title: ClassVar[str]  # what is wrong, as a statement
    why: ClassVar[str]  # what happens at run time
    fix: ClassVar[tuple[str, ...]]  # ways out, the best first
    cause: ClassVar[str] = ""  # the rule of the failure catalog that the run would show
    overlaps: ClassVar[str] = ""  # another linter's check for something similar
    words: ClassVar[tuple[str, ...]] = ()  # a source without one of them cannot have it
    fixable: ClassVar[bool] = False

    def run(self, scene: Scene) -> Iterator[Finding]:
        """What there is of it in one source. Never raises on any source that parses."""
        raise NotImplementedError

    def at(self, node: ast.AST, says: str, scene: Scene, edits: tuple[Edit, ...] = ()) -> Finding:
        """A finding at a node."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        return Finding(
            self.id,
            line,
            column,
            getattr(node, "end_lineno", line) or line,
            getattr(node, "end_col_offset", column) or column,
            says,
            scene.function_name(node),
            edits,
        )


def replacing(node: ast.AST, text: str) -> Edit:
    """The edit that puts ``text`` in the place of a node."""
    return Edit(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text)  # type: ignore[attr-defined]


def inserting(line: int, column: int, text: str) -> Edit:
    """The edit that puts ``text`` before a place."""
    return Edit(line, column, line, column, text)
