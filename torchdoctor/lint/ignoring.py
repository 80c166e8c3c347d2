"""Comments that hide findings: ``# torchdoctor: ignore[id]``, and ``ignore-file[id]`` near the top."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

from torchdoctor.lint import registry
from torchdoctor.lint.settings import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.lint.finding import Finding

_HEAD_LINES = 10
_COMMENT = re.compile(
    r"#\s*torchdoctor\s*:\s*ignore(?P<file>-file)?\b(?:\s*\[(?P<ids>[^\]\n]*)\])?", re.IGNORECASE
)


class Ignores:
    """The ignore comments of one source. ``problems`` holds (line, text) of those that name no check."""

    def __init__(self, text: str) -> None:
        self.problems: list[tuple[int, str]] = []
        self._lines: dict[int, set[str]] = {}
        self._file: dict[str, int] = {}
        self._used: set[tuple[int, str]] = set()
        if "torchdoctor" in text.lower():
            for line, comment in _comments(text):
                self._read(line, comment)

    def _read(self, line: int, comment: str) -> None:
        for found in _COMMENT.finditer(comment):
            ids = [one.strip() for one in (found["ids"] or "").split(",") if one.strip()]
            if not ids:
                self.problems.append((line, "an ignore comment names the checks that it hides: ignore[id]"))
            if found["file"] and line > _HEAD_LINES:
                self.problems.append((line, f"ignore-file counts in the first {_HEAD_LINES} lines only"))
                continue
            for one in ids:
                if one not in registry.all_ids():
                    self.problems.append((line, nearest(one)))
                elif found["file"]:
                    self._file.setdefault(one, line)
                else:
                    self._lines.setdefault(line, set()).add(one)

    def hides(self, finding: Finding) -> bool:
        """Does a comment on one of its lines, or for the whole file, hide it?"""
        hidden = False
        if finding.check in self._file:
            self._used.add((self._file[finding.check], finding.check))
            hidden = True
        for line in range(finding.line, finding.end_line + 1):
            if finding.check in self._lines.get(line, ()):
                self._used.add((line, finding.check))
                hidden = True
        return hidden

    def idle(self, made: frozenset[str]) -> Iterator[tuple[int, str]]:
        """Line and id of the comments that hid nothing, of the checks that were made."""
        given = {(line, one) for line, ids in self._lines.items() for one in ids}
        given |= {(line, one) for one, line in self._file.items()}
        yield from sorted((line, one) for line, one in given - self._used if one in made)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError, ValueError):
        return
