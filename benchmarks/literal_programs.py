"""The programs that literals are searched in: their files, and the texts of a file."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import urllib.parse
import warnings
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

HOLE = "\x01"  # a value in a text of Python; FORMAT's matches are made one where pieces are told apart
FORMAT = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d.*]*(?:ll|[lhz])?[sdrifgxucp]|\{[^{}\s]{0,60}\}")
_TEXT_RUN = re.compile(rb"[\t\n\r\x20-\x7e]{6,}")
_LONGEST_NAME = 80  # runs without a space above it are mangled symbols and tables
_SOURCE_CODE = (
    *(".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".cu", ".go", ".rs"),
    *(".txt", ".json", ".yaml", ".jinja"),
)
_SKIPPED = (
    *(".pyc", ".png", ".jpg", ".gz", ".zip", ".a", ".lib", ".pdb", ".bc", ".cubin"),
    *("RECORD", "METADATA"),
)
_PLATFORMS = (
    *("manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"),
    *("manylinux_2_24_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64"),
)

Member = tuple[str, Callable[[], bytes]]


class Texts:
    """All texts of a program in one string, a text a line, and which file each place in it is from."""

    def __init__(self, files: Iterable[Member]) -> None:
        self._names: list[str] = []
        self._starts: list[int] = []
        pieces: list[str] = []
        length = 0
        for name, read in files:
            if name.endswith(_SKIPPED):
                continue
            # by file: the runs of a library of a gigabyte hold the same few texts over and over
            text = "\n".join(dict.fromkeys(fold(item) for item in texts_of(name, read())))
            self._names.append(name)
            self._starts.append(length)
            pieces.append(text)
            length += len(text) + 1
        self.whole = "\n".join(pieces)
        # one byte a character: a text with a single Chinese one takes four, and four times as long to search
        self._bytes = self.whole.encode("utf-8", "replace")
        self._is_ascii = len(self._bytes) == length - 1

    def find(self, literal: str) -> int:
        """The place of a literal, -1 when it stands nowhere."""
        at = self._bytes.find(literal.encode("utf-8"))
        return at if at < 0 or self._is_ascii else len(self._bytes[:at].decode("utf-8"))

    def name_at(self, position: int) -> str:
        return self._names[bisect_right(self._starts, position) - 1]


def fold(text: str) -> str:
    return " ".join(text.split())


def python_texts(source: str) -> Iterator[str]:
    """Every string of a Python source, adjacent pieces joined, values in f-strings as holes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            yield source
            return
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(value) for value in node.values)
            yield "".join(
                str(value.value) if isinstance(value, ast.Constant) else HOLE for value in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name


def texts_of(name: str, data: bytes) -> Iterator[str]:
    if name.endswith((".py", ".pyi")):
        yield from python_texts(data.decode("utf-8", "replace"))
    elif name.endswith(_SOURCE_CODE):
        # adjacent literals of C are one
        yield re.sub(r'"\s*\n\s*"', "", data.decode("utf-8", "replace"))
    else:
        for run in _TEXT_RUN.findall(data):
            if b" " in run or (len(run) <= _LONGEST_NAME and not run.startswith(b"_Z")):
                yield run.decode("ascii")


def members(source: str) -> Iterator[tuple[str, Iterable[Member]]]:
    """Name with version of each program in a source, and its files; a downloaded one is removed after use."""
    kind, _, wanted = source.partition(":")
    if kind in ("pypi", "debian"):
        with tempfile.TemporaryDirectory() as folder:
            _download(kind, wanted, folder)
            for path in sorted(Path(folder).iterdir()):
                yield from members(str(path))
    elif source == "python":
        library = Path(sysconfig.get_path("stdlib"))
        paths = [path for path in library.rglob("*") if "site-packages" not in path.parts]
        shared = sysconfig.get_config_var("LDLIBRARY") or ""
        extra = [Path(sys.executable).resolve(), Path(sysconfig.get_config_var("LIBDIR") or "") / shared]
        name = f"python {sys.version_info.major}.{sys.version_info.minor}"
        yield name, [_on_disk(path, path.name) for path in [*paths, *extra] if path.is_file()]
    elif source.endswith(".whl"):
        name, version = os.path.basename(source).split("-")[:2]
        with zipfile.ZipFile(source) as archive:
            yield f"{name} {version}", [_in_archive(archive, item) for item in archive.namelist()]
    elif source.endswith(".tar.gz"):
        name, _, version = os.path.basename(source)[: -len(".tar.gz")].rpartition("-")
        with tarfile.open(source) as tree:
            yield f"{name} {version}", _in_tree(tree, strip=1)
    elif source.endswith(".deb"):
        name, version = urllib.parse.unquote(os.path.basename(source)).split("_")[:2]
        with tempfile.TemporaryFile() as unpacked:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", source], stdout=unpacked, check=True)
            unpacked.seek(0)
            with tarfile.open(fileobj=unpacked) as tree:
                yield f"{name} {version}", _in_tree(tree)
    else:
        info = Path(source)
        name, _, version = info.name[: -len(".dist-info")].rpartition("-")
        listed = [line.rsplit(",", 2)[0] for line in (info / "RECORD").read_text("utf-8").splitlines()]
        places = [(info.parent / item, item) for item in listed]
        yield f"{name} {version}", [_on_disk(place, item) for place, item in places if place.is_file()]


def listed(sources: Iterable[str]) -> Iterator[str]:
    """The sources, those of an ``@FILE`` in its place; ``#`` begins a comment in it."""
    for source in sources:
        if source.startswith("@"):
            lines = Path(source[1:]).read_text("utf-8").splitlines()
            yield from filter(None, (line.partition("#")[0].strip() for line in lines))
        else:
            yield source


def _download(kind: str, wanted: str, folder: str) -> None:
    if kind == "debian":
        # the user that APT changes to may not write there
        subprocess.run(
            ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", wanted], cwd=folder, check=True
        )
        return
    name, _, asked = wanted.partition("@")
    command = [sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", folder]
    if asked:
        python, _, platform = asked.partition(",")
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
        command += [f"--platform={item}" for item in ([platform] if platform else _PLATFORMS)]
    subprocess.run([*command, name], check=True)


def _on_disk(path: Path, shown: str) -> Member:
    return shown, path.read_bytes


def _in_archive(archive: zipfile.ZipFile, name: str) -> Member:
    return name, lambda: archive.read(name)


def _in_tree(tree: tarfile.TarFile, strip: int = 0) -> Iterator[Member]:
    """The files of an archive, those of an archive inside it too, as Debian packs the sources of modules."""
    for item in tree:
        file = tree.extractfile(item) if item.isfile() else None
        if file is None:
            continue
        name = "/".join(item.name.removeprefix("./").split("/")[strip:])
        if name.endswith((".tar.xz", ".tar.bz2")):
            with tarfile.open(fileobj=file) as inner:
                yield from _in_tree(inner)
        else:
            yield name, file.read
