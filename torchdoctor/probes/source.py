"""Facts of a machine, each fetched when it is first asked for, and once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from torchdoctor.model import Fact, Reason
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Machine, NotRecorded, Unreadable
from torchdoctor.probes.names import FACTS, MODULES
from torchdoctor.probes.probe import NOT_RECORDED, Context, Cost, Limits, Probe

if TYPE_CHECKING:
    from torchdoctor.probes.derived import Derived

CLAIMS = "claims"
_TELL_S = 0.5
# what a person waits for, by module
_WORDS = {
    "interpreter": "the interpreter", "torch_package": "the interpreter", "torch_import": "import torch",
    "torch_cuda": "torch to start CUDA", "deep": "what --deep does", "nvml": "NVML", "toolchain": "compilers",
}  # fmt: skip
# The programs that take longest begin first.
_EARLY = ("torch_cuda", "torch_import", "interpreter", "nvml", "toolchain")


def _given_up(work: Callable[[], object], limit_s: float) -> bool:
    """Do it in a thread that is left alone after the limit: a dead disk stops whoever looks at it."""
    import threading

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit_s)
    return thread.is_alive()


class ProbeSource:
    """The facts of ``machine`` and of the interpreter ``python`` on it, each looked at when it is asked for.

    ``faults`` holds the tracebacks of our own mistakes; the facts concerned are UNKNOWN. With ``deep`` probes
    that disturb running jobs may run too. To be closed, so that no program outlives us.
    """

    def __init__(
        self,
        machine: Machine | None = None,
        python: str | None = None,
        *,
        limits: Limits | None = None,
        deep: bool = False,
    ) -> None:
        self.machine = machine if machine is not None else LiveMachine()
        self.context = Context(self.machine, self.fetch, python or "", limits or Limits())
        self.faults: list[str] = []
        self._paces: dict[str, float] = {}
        self.tell: Callable[[str], None] | None = None  # is told, while we wait, what for
        self._deep = deep
        self._facts: dict[str, Fact] = {}
        self._asking: dict[str, None] = {}
        total_s = self.context.limits.total_s
        self._deadline = None if total_s is None else time.monotonic() + total_s

    def know(self, facts: Iterable[Fact]) -> None:
        """Take these facts as they are; what is asked from now on follows from them."""
        self._facts.update((fact.name, fact) for fact in facts)

    def names(self) -> Sequence[str]:
        """Every fact name this source can be asked for."""
        return tuple(FACTS)

    def fetch(self, name: str) -> Fact:
        """The fact; UNKNOWN with a reason when it cannot be told. Never raises. May wait for a program."""
        if name in self._facts or self._deadline is None:
            return self._ask(name)
        import threading

        if threading.current_thread() is not threading.main_thread():
            return self._ask(name)
        # whatever hangs, and wherever it does: after the limit it is left alone
        thread = threading.Thread(target=self._ask, args=(name,), daemon=True)
        if time.monotonic() < self._deadline:
            thread.start()
        while thread.is_alive() and (left := self._deadline - time.monotonic()) > 0:
            thread.join(min(left, _TELL_S))
            if self.tell is not None and (asking := list(self._asking)):
                self.tell(_WORDS.get(MODULES.get(asking[-1], ""), "files of this machine"))
        late = f"the limit of {self.context.limits.total_s:g} s for the whole run was over"
        found = self._facts.get(name)
        return Fact.unknown(name, Reason.TIMED_OUT, detail=late) if found is None else found

    def _ask(self, name: str) -> Fact:
        fact = self._facts.get(name)
        if fact is not None:
            return fact
        if name in self._asking:
            return Fact.unknown(name, Reason.NOT_ASKED, detail="it needs itself")
        self._asking[name] = None
        try:
            for fact in self._find(name):
                self._facts.setdefault(fact.name, fact)
        finally:
            self._asking.pop(name, None)
        return self._facts.setdefault(name, Fact.unknown(name, Reason.NOT_ASKED, detail="no probe told it"))

    def all(self) -> tuple[Fact, ...]:
        """Every fact, in the order of the catalogue, invasive ones if deep; programs run side by side."""
        self.start(FACTS)
        return tuple(self.fetch(name) for name in FACTS if self._deep or not _is_invasive(name))

    def start(self, names: Iterable[str]) -> None:
        """Begin, without waiting, every program that one of these facts waits for.

        Whether one is needed is asked of the disk, which may be dead: a limit for all counts there too.
        """
        if self._deadline is None:
            self._begin(names)
            return
        _given_up(partial(self._begin, tuple(names)), self.context.limits.files_s)

    def _begin(self, names: Iterable[str]) -> None:
        wanted = list(_behind(names))
        for module in _EARLY:
            for probe in _probes(module):
                if probe in wanted and probe.command is not None:
                    self._guard(partial(self._start, probe), ())

    def close(self) -> None:
        """End every program that still runs."""
        if isinstance(self.machine, LiveMachine):
            self.machine.close()

    def _start(self, probe: Probe) -> Iterator[Fact]:
        command = probe.command(self.context) if probe.command is not None else None
        if command is not None:
            self.machine.start(command)
        yield from ()

    def _find(self, name: str) -> Iterable[Fact]:
        if name not in MODULES:
            return (Fact.unknown(name, Reason.NOT_ASKED, detail="no such fact"),)
        if MODULES[name] == CLAIMS:
            return self._guard(lambda: (_derived(name).tell(self.fetch),), (name,))
        probe = _probe(name)
        if probe.cost is Cost.INVASIVE and not self._deep:
            return tuple(
                Fact.unknown(one, Reason.NOT_ASKED, detail="only with --deep") for one in probe.names
            )
        if probe.command is not None or probe.cost is Cost.FREE:
            return self._look(probe)
        return self._within_limit(probe)

    def _within_limit(self, probe: Probe) -> Iterable[Fact]:
        """What looks at a disk does so within the limit of files."""
        for name in probe.needs:
            self.fetch(name)
        found: list[Fact] = []
        limit_s = self.context.limits.files_s
        if _given_up(lambda: found.extend(self._look(probe)), limit_s):
            detail = f"no answer within {limit_s:.0f} s"
            return tuple(Fact.unknown(name, Reason.TIMED_OUT, detail=detail) for name in probe.names)
        return found

    def _look(self, probe: Probe) -> list[Fact]:
        begun = time.monotonic()
        found = self._guard(partial(probe.look, self.context), probe.names)
        # the first name says which part of a module it was
        self._paces[f"{MODULES[probe.names[0]]} ({probe.names[0]} …)"] = time.monotonic() - begun
        return found

    def paced(self) -> Iterator[str]:
        """How long each probe took, slowest first, what it waited for included."""
        yield "Times:"
        for name, seconds in sorted(self._paces.items(), key=lambda item: -item[1]):
            yield f"    {seconds:7.3f} s  {name}"

    def _guard(self, look: Callable[[], Iterable[Fact]], names: Sequence[str]) -> list[Fact]:
        """What a probe tells before it ends, well or not; the rest of its names UNKNOWN."""
        found: list[Fact] = []
        try:
            # one by one: what was told before an exception is kept
            for fact in look():
                found.append(fact)
            return found
        except Unreadable as error:
            reason, detail = error.reason, f"{error.subject}: {error.detail}"
        except NotRecorded:
            reason, detail = Reason.NOT_ASKED, NOT_RECORDED
        except (
            Exception
        ) as error:  # a fault of ours must not take the other probes with it; the caller sees it
            import traceback

            self.faults.append(traceback.format_exc())
            reason, detail = Reason.CRASHED, f"a fault of torchdoctor: {type(error).__name__}: {error}"
        told_names = {fact.name for fact in found}
        found.extend(Fact.unknown(name, reason, detail=detail) for name in names if name not in told_names)
        return found


def waits(names: Iterable[str]) -> int:
    """How long these facts may take: 0 only files are read, 1 an interpreter starts, 2 more is run."""
    from torchdoctor.probes.interpreter import command

    programs = {probe.command for probe in _behind(names)} - {None}
    return 2 if programs - {command} else len(programs)


def _behind(names: Iterable[str]) -> Iterator[Probe]:
    """The probes that tell these facts, and those that claims among them rest on; some of them twice."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in seen or name not in MODULES:
            continue
        seen.add(name)
        if MODULES[name] == CLAIMS:
            waiting.extend(_derived(name).needs)
        else:
            probe = _probe(name)
            waiting.extend(probe.needs)
            yield probe


def _probes(module: str) -> tuple[Probe, ...]:
    probes: tuple[Probe, ...] = import_module(f"torchdoctor.probes.{module}").PROBES
    return probes


def _probe(name: str) -> Probe:
    for probe in _probes(MODULES[name]):
        if name in probe.names:
            return probe
    raise LookupError(f"no probe of torchdoctor.probes.{MODULES[name]} tells {name}")


def _is_invasive(name: str) -> bool:
    return MODULES[name] != CLAIMS and _probe(name).cost is Cost.INVASIVE


def _derived(name: str) -> Derived:
    from torchdoctor.probes.claims import DERIVED

    return DERIVED[name]
