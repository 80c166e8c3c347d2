"""What lies in the working folder under the name of torch, or of what torch imports: looked at, never run.

A script in that folder, or ``python -c`` there, imports it instead of the real one. Our own programs do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchdoctor.model import Fact
from torchdoctor.probes.machine import Missing
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe

_NAMES = tuple(CATALOGUE["hiding"])

# torch, and what `import torch` 2.13 takes in by name that an interpreter does not hold from its start:
# sys.modules after the import without those before it and the names that begin with "_" (Python 3.11)
IMPORTED = (
    "torch", "numpy", "typing_extensions",
    "argparse", "array", "ast", "asyncio", "base64", "binascii", "bisect", "bz2", "calendar", "cmath",
    "collections", "concurrent", "contextlib", "contextvars", "copy", "copyreg", "csv", "ctypes",
    "dataclasses", "datetime", "difflib", "dis", "email", "enum", "fcntl", "fnmatch", "functools",
    "gettext", "glob", "grp", "gzip", "hashlib", "heapq", "http", "importlib", "inspect", "ipaddress",
    "json", "keyword", "linecache", "locale", "logging", "lzma", "math", "mmap", "multiprocessing",
    "numbers", "opcode", "operator", "pathlib", "pickle", "pickletools", "pkgutil", "platform", "pprint",
    "queue", "quopri", "random", "re", "reprlib", "runpy", "select", "selectors", "shutil", "signal",
    "socket", "ssl", "string", "struct", "subprocess", "sysconfig", "tarfile", "tempfile", "textwrap",
    "threading", "timeit", "token", "tokenize", "traceback", "types", "typing", "unittest", "urllib",
    "uuid", "warnings", "weakref", "zipfile", "zlib",
)  # fmt: skip


def _look(context: Context) -> Iterator[Fact]:
    found: list[str] = []
    for folder in _folders(context):
        try:
            found += context.machine.modules(folder, IMPORTED)
        except Missing:
            continue
    yield Fact.known("torch.hidden_by", tuple(dict.fromkeys(found)), "the working folder")


def _folders(context: Context) -> Iterator[str]:
    """The working folder, and those that entries of PYTHONPATH name from there."""
    here = str(context.machine.value("folder"))
    yield here
    for entry in context.variable("PYTHONPATH").split(os.pathsep):
        if entry and not os.path.isabs(entry):
            yield os.path.normpath(f"{here}/{entry}")


PROBES = (Probe(_NAMES, Cost.CHEAP, _look),)
