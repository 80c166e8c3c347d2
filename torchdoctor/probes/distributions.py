"""Installed packages of the examined interpreter, read from its folders and never imported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchdoctor.probes.machine import Missing, Unreadable
from torchdoctor.probes.probe import Context


@dataclass(frozen=True, slots=True)
class Distribution:
    """One installed package: ``metadata`` is its .dist-info or .egg-info folder (or file)."""

    name: str
    version: str
    metadata: str
    folder: str


def normal(name: str) -> str:
    """A package name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(context: Context, names: Sequence[str]) -> Mapping[str, tuple[Distribution, ...]]:
    """All installations of these packages, those that come first on sys.path first.

    A folder that cannot be listed is passed over when it is not there, and raises Unreadable otherwise.
    """
    found: dict[str, list[Distribution]] = {}
    for folder in context.texts("python.path"):
        try:
            here = context.machine.packages(folder, names)
        except Missing:
            continue
        for name, version, metadata in here:
            found.setdefault(name, []).append(Distribution(name, version, metadata, folder))
    return {name: tuple(items) for name, items in found.items()}


def metadata(context: Context, distribution: Distribution) -> str:
    """Its metadata file's headers; empty when there is none. An .egg-info may be that file itself."""
    for path in (
        f"{distribution.metadata}/METADATA",
        f"{distribution.metadata}/PKG-INFO",
        distribution.metadata,
    ):
        try:
            return context.machine.headers(path)
        except Unreadable:
            continue
    return ""


def requirement_lines(headers: str) -> Iterator[str]:
    for line in headers.splitlines():
        if line.startswith("Requires-Dist:"):
            yield line.partition(":")[2].strip()


def wanted(context: Context, distribution: Distribution, name: str) -> str | None:
    """The version of ``name`` that it asks for without conditions on extras, as ==2.5.1; None when none."""
    for line in requirement_lines(metadata(context, distribution)):
        requirement, _, marker = line.partition(";")
        match = re.match(r"\s*([A-Za-z0-9_.-]+)\s*(?:\[[^\]]*\])?\s*\(?([^()]*)\)?\s*$", requirement)
        if match and normal(match[1]) == name and "extra" not in marker:
            return match[2].replace(" ", "") or None
    return None
