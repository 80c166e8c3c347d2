"""Which files are looked at: those named, and the Python files and notebooks below the folders named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdoctor.lint import gitignore
from torchdoctor.lint.names import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdoctor.lint.gitignore import Pattern

# Folders of other people's code, of builds and of caches; each is looked at when it is named itself.
SKIPPED = words(
    ".git .hg .svn .venv venv .env .tox .nox .eggs .direnv build dist site-packages node_modules "
    "__pycache__ __pypackages__ .mypy_cache .ruff_cache .pytest_cache .ipynb_checkpoints"
)
ENDINGS = (".py", ".pyi", ".ipynb")


class Files:
    """The files of one run, each once. ``notes`` says what was skipped that somebody may look for."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._seen: set[str] = set()

    def below(self, root: str, exclude: Sequence[str]) -> Iterator[str]:
        """The files that a named path stands for, in the order of their names."""
        out = tuple(found for one in exclude if (found := gitignore.pattern(one)) is not None)
        if not os.path.isdir(root):
            if not _excluded(root, out, False) and self._first(root):
                yield _shown(root)
            return
        layers = [("", out), *_above(root)]
        yield from self._folder(root, layers, out)

    def _folder(
        self, folder: str, layers: list[tuple[str, tuple[Pattern, ...]]], out: tuple[Pattern, ...]
    ) -> Iterator[str]:
        own = _patterns(folder)
        if own:
            layers = [*layers, (_plain(os.path.abspath(folder)) + "/", own)]
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda one: one.name)
        except OSError as error:
            self.notes.append(f"{folder}: skipped: {error.strerror or error}")
            return
        for one in entries:
            try:
                is_folder = one.is_dir(follow_symlinks=False)
                if not is_folder and not one.name.endswith(ENDINGS):
                    continue
                if not is_folder and not one.is_file():
                    if one.is_symlink() and not one.is_dir():
                        self.notes.append(f"{one.path}: skipped: a link that leads nowhere")
                    continue
            except OSError as error:
                self.notes.append(f"{one.path}: skipped: {error.strerror or error}")
                continue
            if is_folder and (one.name in SKIPPED or os.path.exists(os.path.join(one.path, "pyvenv.cfg"))):
                continue
            if _excluded(one.path, out, is_folder):
                continue
            if gitignore.ignored(layers[1:], _plain(os.path.abspath(one.path)), is_folder):
                continue
            if is_folder:
                yield from self._folder(one.path, layers, out)
            elif self._first(one.path):
                yield _shown(one.path)

    def _first(self, path: str) -> bool:
        real = os.path.realpath(path)
        if real in self._seen:
            return False
        self._seen.add(real)
        return True


def _shown(path: str) -> str:
    """The path without the ``./`` that begins it: annotations and SARIF name files as the repository does."""
    return path.removeprefix(f".{os.sep}")


def _plain(path: str) -> str:
    return path.replace(os.sep, "/")


def _excluded(path: str, out: Sequence[Pattern], is_folder: bool) -> bool:
    """Is a path left out by its name, or by that of a folder on the way to it?"""
    if not out:
        return False
    parts = _plain(os.path.relpath(path)).split("/")
    while parts and parts[0] == "..":
        parts = parts[1:]
    for end in range(1, len(parts) + 1):
        below = "/".join(parts[:end])
        folder = is_folder or end < len(parts)
        if any(one.regex.fullmatch(below) and (folder or not one.folders) for one in out):
            return True
    return False


def _above(root: str) -> list[tuple[str, tuple[Pattern, ...]]]:
    """The .gitignore files between the root of the repository and a folder in it, the outermost first."""
    found: list[tuple[str, tuple[Pattern, ...]]] = []
    at = os.path.abspath(root)
    chain: list[str] = []
    while True:
        if os.path.exists(os.path.join(at, ".git")):
            break
        parent = os.path.dirname(at)
        if parent == at:
            return []  # in no repository
        at = parent
        chain.append(at)
    for folder in reversed(chain):
        own = _patterns(folder)
        if own:
            found.append((_plain(folder) + "/", own))
    return found


def _patterns(folder: str) -> tuple[Pattern, ...]:
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            return gitignore.patterns(file.read(1 << 20))
    except OSError:
        return ()
