"""Free space, and whether the caches of torch, Triton and the hubs can be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from torchdoctor.model import Fact, FactValue
from torchdoctor.probes import extension
from torchdoctor.probes.host import mount_of, nearest
from torchdoctor.probes.machine import Missing, Mount, Space, Unreadable, as_row, as_text
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

_TOLD = tuple(CATALOGUE["disk"])


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache folder; ``runs`` says that compiled libraries are loaded from it."""

    folder: str
    runs: bool


def caches(context: Context) -> tuple[Cache, ...]:
    """Where each program keeps its cache, by its own rules for the place."""
    variable, home, cache = context.variable, extension.home(context), extension.cache_home(context)
    temporary = as_text(context.machine.value("temporary"))
    number, user = _user(context)
    found = (
        Cache(extension.root(context), True),
        Cache(variable("TORCHINDUCTOR_CACHE_DIR") or f"{temporary}/torchinductor_{user or number}", True),
        Cache(variable("TRITON_CACHE_DIR") or f"{home}/.triton/cache", True),
        Cache(variable("TORCH_HOME") or f"{cache}/torch", False),
        Cache(variable("HF_HOME") or f"{cache}/huggingface", False),
    )
    return tuple({one.folder: one for one in found}.values())


def _user(context: Context) -> tuple[str, str]:
    number, name = as_row(context.machine.value("user"), 2)
    return number, name


def _free(context: Context, place: str) -> FactValue:
    return context.machine.space(as_text(context.machine.value(place))).free


def _look(context: Context) -> Iterator[Fact]:
    machine = context.machine
    for name, place in (
        ("disk.tmp_free_bytes", "temporary"),
        ("disk.home_free_bytes", "home"),
        ("disk.work_free_bytes", "folder"),
    ):
        yield told(name, partial(_free, context, place))
    every = caches(context)
    yield Fact.known("disk.cache_folders", tuple(one.folder for one in every))
    spaces: list[tuple[Space, str]] = []
    closed, forbidden, network, code_network = [], [], [], []
    for one in every:
        place = nearest(context, one.folder)
        try:
            spaces.append((machine.space(place), one.folder))
            if not machine.may(place, "wx"):
                closed.append(one.folder)
        except (Missing, Unreadable):
            closed.append(one.folder)
            continue
        mount = _mount(context, place)
        if mount and one.runs and "noexec" in mount.options:
            forbidden.append(one.folder)
        if mount and mount.kind in extension.NETWORK:
            network.append(f"{one.folder} ({mount.kind})")
            code_network += network[-1:] if one.runs else []
    if spaces:
        space, folder = min(spaces, key=lambda item: item[0].free)
        yield Fact.known("disk.cache_free_bytes", space.free, folder)
        yield Fact.known("disk.cache_fullest", folder)
    trouble = [f"{one.folder}: cannot be written to" for one in every if one.runs and one.folder in closed]
    trouble += [f"{folder}: mounted noexec" for folder in forbidden]
    for name, value in (("cache_trouble", trouble), ("code_cache_network", code_network)):
        yield Fact.known(f"disk.{name}", tuple(value)) if value else Fact.absent(f"disk.{name}")
    yield Fact.known("disk.cache_unwritable", tuple(closed))
    yield Fact.known("disk.cache_noexec", tuple(forbidden), "/proc/self/mountinfo")
    yield Fact.known("disk.cache_network", tuple(network), "/proc/self/mountinfo")


def _mount(context: Context, place: str) -> Mount | None:
    try:
        return mount_of(context, context.machine.real_path(place))
    except Missing:  # no /proc on this system
        return None


PROBES = (Probe(_TOLD, Cost.CHEAP, _look),)
