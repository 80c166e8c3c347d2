"""A lock in the folder where torch builds extensions, in a text whose writer waits, or that ends there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.passage import Line, Passage
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "build_lock"

FACTS: dict[str, str] = {
    "build_lock.named": "bool: the text names a lock in the folder of torch's extensions",
    "build_lock.path": "str: that file, where its path is given",
    "build_lock.waits": "bool: somebody says that his program hangs, or the output ends at the lock",
}

_PATTERNS = {
    "path": r"(?P<path>[^\s'\"`()<>]{0,200}torch_extensions[\\/][^\s'\"`()<>]{0,200}[\\/]lock)(?![\w.])",
    # nvdiffrast and what was made after it, before they call load()
    "exists": r"Lock file exists in build directory: ",
    "named": (
        r"\block(?:[ -]?files?|s)?\b[^\n]{0,80}torch_extensions|torch_extensions[^\n]{0,80}\block(?:[ -]?file"
        r"|s)?\b|\b(?:File)?[Bb]aton\b[^\n]{0,40}\block"
    ),
    "extensions": r"torch_extensions|cpp_extension|\bload\(name=|[Bb]uild directory",
    # what load() itself prints before it waits
    "of-build": r"as PyTorch extensions root|Lock file exists in build directory",
}

_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of a lock that is waited for; nothing where nobody waits."""
    if _pattern("extensions").search(passage.text) is None:
        return
    named = next(filter(None, map(passage.first, map(_pattern, ("path", "exists", "named")))), None)
    waits = _waits(passage)
    if named is None or waits is None:
        return
    yield named.fact("build_lock.named", True)
    if (found := _pattern("path").search(passage.text)) is not None:
        yield named.fact("build_lock.path", found["path"])
    yield waits.fact("build_lock.waits", True)


def _waits(passage: Passage) -> Line | None:
    if stall.speaks(passage) and (told := stall.told(passage)) is not None:
        return told
    last = next(reversed(passage.lines), None)
    if last is None or _pattern("of-build").search(last.text) is None:
        return None
    return passage.first(_pattern("exists"))
