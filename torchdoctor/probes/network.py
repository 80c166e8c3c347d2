"""Network cards for collectives, and proxies: which variables name one, never its address."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.model import Fact
from torchdoctor.probes.machine import Missing
from torchdoctor.probes.names import CATALOGUE
from torchdoctor.probes.probe import Context, Cost, Probe, told

_CARDS = "/sys/class/infiniband"
_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def _cards(context: Context) -> tuple[str, ...] | None:
    try:
        return context.machine.names(_CARDS) or None
    except Missing:
        return None


def _look(context: Context) -> Iterator[Fact]:
    yield told("net.infiniband", lambda: _cards(context), _CARDS)
    # the address may hold a password, and is not read into an answer that is recorded
    yield told(
        "net.proxies",
        lambda: tuple(name for name in _PROXIES if context.machine.answer("set", name)) or None,
        "environment",
    )


PROBES = (Probe(tuple(CATALOGUE["network"]), Cost.CHEAP, _look),)
