"""Files that are no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.lint.finding import Check, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.scene import Scene


class SyntaxErrorInFile(Check):
    """What ``examine`` tells of a source that has no tree: there is no scene to look at."""

    id = "syntax-error"
    group = 0
    title = "The file is not Python that this interpreter can read"
    why = """Nothing can be said of a file, or a cell of a notebook, that does not parse; the others are
    looked at all the same. Python 2 is such a file, and so is what is newer than the Python that runs
    torchdoctor."""
    fix = ("Mend the line, or leave the file out (exclude in pyproject.toml, or --exclude).",)

    def run(self, scene: Scene) -> Iterator[Finding]:
        yield from ()
