"""What follows from what a text states of its machine, under the names of the probes' claims.

A log that names the driver tells which CUDA it offers, and one that names the card its compute capability.
"""

from __future__ import annotations

from torchdoctor.model import EventKind, Fact, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "python.minor": "text: the first two numbers of Python's version, as in the names of packages",
}
_LISTED = r"(?m)^torch {2,}\d+\.\d+\.\d+ *$"  # a row of `pip list`, without a tag


def added(stated: dict[str, Fact], transcript: Transcript) -> dict[str, Fact]:
    """The facts of a text, and those that follow from them; what the text says itself stays."""
    for name, value, source in (_driver_cuda(stated), _lowest_capability(stated), _python_minor(stated)):
        if value is not None and name not in stated:
            stated[name] = Fact.known(name, value, source)
    if "torch.cpu_only" not in stated and (row := _wheel_of_pypi(transcript)):
        stated["torch.cpu_only"] = Fact.known("torch.cpu_only", True, row, "PyPI's wheel for Windows")
    return stated


def _wheel_of_pypi(transcript: Transcript) -> str:
    """Where pip lists torch without a tag in a venv of Windows: each build for a GPU has one there."""
    for event in transcript.events:
        if event.kind is not EventKind.LOG or event.quoted or "torch" not in event.text:
            continue
        if pattern(_LISTED).search(event.text) is not None:
            from torchdoctor.extract import context

            told = [context.tags(name, transcript) for name in ("system", "python")]
            return event.place() if told == [("windows",), ("venv",)] else ""
    return ""


def _driver_cuda(stated: dict[str, Fact]) -> tuple[str, str | None, str]:
    """The highest CUDA that the named driver offers."""
    driver = stated.get("driver.version")
    if driver is None:
        return "driver.cuda", None, ""
    from torchdoctor.probes.compatibility import cuda_of_driver, parse

    offered = cuda_of_driver(parse(str(driver.value)))
    return "driver.cuda", ".".join(map(str, offered)) if offered else None, driver.source


def _lowest_capability(stated: dict[str, Fact]) -> tuple[str, float | None, str]:
    """The smallest compute capability of the named cards; none when a name is not in the table."""
    names = stated.get("gpu.names")
    if names is None or not isinstance(names.value, tuple):
        return "gpu.lowest_capability", None, ""
    found = [_capability(str(name)) for name in names.value]
    known = [one for one in found if one is not None]
    lowest = min(known) if known and len(known) == len(found) else None
    return "gpu.lowest_capability", lowest, names.source


def _python_minor(stated: dict[str, Fact]) -> tuple[str, str | None, str]:
    """The two numbers of Python by which distributions name its packages."""
    version = stated.get("python.version")
    if version is None:
        return "python.minor", None, ""
    return "python.minor", ".".join(str(version.value).split(".")[:2]), version.source


def _capability(card: str) -> float | None:
    from torchdoctor.probes.compatibility import table

    rows = table("cards")
    return next((float(row["capability"]) for row in rows if pattern(row["name"]).search(card)), None)
