"""Names that a package or Python took out, and what to write in their place.

``renamed.tsv`` lists them with the release that took them out: the first whose sources lack the name.
Sources: the wheels of each package on PyPI, Python's "What's New", the release notes of NumPy and SciPy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache

from torchdoctor.extract import Found
from torchdoctor.extract.pair import NAMES_BOTH
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "renamed.name": "str: the name that is gone, with its package: transformers.AdamW",
    "renamed.instead": "str: what to write in its place",
    "renamed.from": "text: the release that took it out, with its package; absent where it is not known",
    "renamed.older": "text: requirement for pip of the releases that have it; absent for Python's own",
}

_OF_PYTHON = frozenset({"collections", "fractions", "inspect", "time"})
_ON_INDEX = {"sklearn": "scikit-learn", "pytorch_lightning": "pytorch-lightning"}


@cache
def _table() -> Mapping[str, tuple[str, str]]:
    with open(
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "renamed.tsv"), encoding="utf-8"
    ) as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream][1:]
    return {name: (instead, since) for name, instead, since in rows}


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The row of the name that the message asks for; absent for one that the table does not have."""
    del transcript
    text = event.text[:2_000]
    found = next((one for form in NAMES_BOTH if (one := pattern(form).search(text)) is not None), None)
    said = found.groupdict() if found is not None else {}
    name = ".".join(filter(None, (said.get("module"), said.get("name"))))
    instead, since = _table().get(name, (None, "-"))
    yield "name", name if instead is not None else None
    yield "instead", instead
    package = name.partition(".")[0]
    own = package in _OF_PYTHON
    known = instead is not None and since != "-"
    yield "from", f"{'Python' if own else _ON_INDEX.get(package, package)} {since}" if known else None
    yield "older", f"{_ON_INDEX.get(package, package)}<{since}" if known and not own else None
