"""Which torch is installed, from its files and metadata: it is never imported here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from torchdoctor.model import Fact, FactValue, State
from torchdoctor.probes import distributions
from torchdoctor.probes.distributions import Distribution
from torchdoctor.probes.interpreter import command, missing
from torchdoctor.probes.machine import Missing, Unreadable
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, failure, reported, told

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_PATH = ("torch.path",)
_FILES = ("torch.version", "torch.cuda", "torch.hip", "torch.xpu", "torch.git_version", "torch.copies")
_METADATA = tuple(name for name in CATALOGUE["torch_package"] if name not in _PATH + _FILES)


def _look_path(context: Context) -> Iterator[Fact]:
    outcome = context.machine.finish(command(context))
    reason, detail = failure(outcome)
    unknown = Fact.unknown("torch.path", reason, "sys.path", detail)
    yield reported(outcome, _PATH, "sys.path").get("torch.path", unknown)


def copies(context: Context) -> tuple[str, ...]:
    """Folders of every torch on the path that has its version file; the first is the one to be imported."""
    found = []
    for folder in context.texts("python.path"):
        try:
            context.machine.status(f"{folder}/torch/version.py")
        except Missing:
            continue
        except Unreadable:
            pass
        found.append(f"{folder}/torch")
    path = context.text("torch.path")
    # An editable install is on no folder of the path: a finder of its own leads to it.
    if path and path not in found and context.machine.exists(f"{path}/version.py"):
        found.insert(0, path)
    return tuple(dict.fromkeys(found))


def _look_files(context: Context) -> Iterator[Fact]:
    if context.ask("python.path").state is not State.KNOWN:
        yield from missing(context, _FILES)
        return
    found = copies(context)
    path = context.text("torch.path")
    source = f"{path if path in found else found[0]}/version.py" if found else ""
    yield Fact.known("torch.copies", found, "sys.path")
    names = {"torch.version": "__version__", "torch.cuda": "cuda", "torch.hip": "hip", "torch.xpu": "xpu",
             "torch.git_version": "git_version"}  # fmt: skip
    if not source:
        version = _metadata_version(context)
        for name in names:
            if name == "torch.version" and version:
                yield Fact.known(name, version, "package metadata", "its files are not there")
            else:
                yield Fact.absent(name, "sys.path", "no torch on sys.path")
        return
    for name, variable in names.items():
        yield told(name, partial(_assigned, context, source, variable), source)


def _assigned(context: Context, path: str, variable: str) -> FactValue:
    """The text that version.py gives a variable; None when it gives None or does not know it."""
    pattern = rf"^{variable}\s*(?::[^=\n]*)?=\s*(?:None|'([^']*)'|\"([^\"]*)\")"
    match = re.search(pattern, context.machine.read(path), re.MULTILINE)
    return (match[1] or match[2] or None) if match else None


def _metadata_version(context: Context) -> str:
    found = distributions.installed(context, ("torch",)).get("torch", ())
    return found[0].version if found else ""


def _look_metadata(context: Context) -> Iterator[Fact]:
    if context.ask("python.path").state is not State.KNOWN:
        yield from missing(context, _METADATA)
        return
    found = distributions.installed(context, ("torch",)).get("torch", ())
    if not found:
        for name in _METADATA:
            yield Fact.absent(name, "sys.path", "no metadata of torch")
        return
    own = found[0]
    yield Fact.known("torch.metadata_version", own.version, own.metadata)
    yield told("torch.installer", lambda: _installer(context, own), own.metadata)
    requirements = tuple(_requirements(context, own))
    yield Fact.known(
        "torch.requirements", tuple(str(one).partition(";")[0] for one in requirements), own.metadata
    )
    present = distributions.installed(context, tuple(distributions.normal(one.name) for one in requirements))
    lacking, other = [], []
    for one in requirements:
        versions = present.get(distributions.normal(one.name), ())
        if not versions:
            lacking.append(one.name)
        elif not one.specifier.contains(versions[0].version, prereleases=True):
            other.append(f"{one.name} {versions[0].version}, wants {one.specifier}")
    yield Fact.known("torch.requirements_missing", tuple(lacking), own.metadata)
    yield Fact.known("torch.requirements_other", tuple(other), own.metadata)


def _installer(context: Context, own: Distribution) -> FactValue:
    text = context.machine.read_or(f"{own.metadata}/INSTALLER").strip()
    if text:
        return text
    prefix = context.text("python.prefix")
    if prefix and context.machine.names(f"{prefix}/conda-meta", ("pytorch-[0-9]*.json",)):
        return "conda"
    return None


def _requirements(
    context: Context, own: Distribution, extras: frozenset[str] = frozenset()
) -> Iterator[Requirement]:
    """What the metadata asks for here, and what that asks for where extras are named."""
    from packaging.requirements import InvalidRequirement, Requirement

    environment = _marker_environment(context)
    for line in distributions.requirement_lines(distributions.metadata(context, own)):
        try:
            one = Requirement(line)
        except InvalidRequirement:
            continue
        tries = extras or {""}
        if one.marker and not any(one.marker.evaluate({**environment, "extra": extra}) for extra in tries):
            continue
        if extras and not one.marker:
            continue
        yield one
        if one.extras:
            name = distributions.normal(one.name)
            for further in distributions.installed(context, (name,)).get(name, ())[:1]:
                yield from _requirements(context, further, frozenset(one.extras))


def _marker_environment(context: Context) -> dict[str, str]:
    """The variables of PEP 508 as the examined interpreter would set them."""
    version = context.text("python.version")
    system = context.text("os.name")
    pieces = version.split(".")
    return {
        "python_version": ".".join(pieces[:2]),
        "python_full_version": version,
        "platform_system": {"linux": "Linux", "macos": "Darwin", "windows": "Windows"}.get(system, system),
        "sys_platform": {"macos": "darwin", "windows": "win32"}.get(system, system),
        "os_name": "nt" if system == "windows" else "posix",
        "platform_machine": context.text("os.machine"),
        "platform_python_implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(
            context.text("python.implementation"), ""
        ),
        "implementation_name": context.text("python.implementation"),
    }


_NEEDS = ("python.path", "torch.path", "python.prefix", "python.version", "os.name", "os.machine")
PROBES = (
    Probe(_PATH, Cost.SLOW, _look_path, command),
    Probe(_FILES, Cost.CHEAP, _look_files, needs=_NEEDS),
    Probe(_METADATA, Cost.CHEAP, _look_metadata, needs=(*_NEEDS, "python.implementation")),
)
