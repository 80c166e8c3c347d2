"""What a probe is: the facts it tells, what it costs, how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from torchdoctor.model import Fact, FactValue, Reason, State
from torchdoctor.probes.machine import Command, Json, Machine, Missing, NotRecorded, Outcome, Unreadable

NOT_RECORDED = "not in this recording"


class Cost(str, Enum):
    FREE = "free"  # what our own process knows
    CHEAP = "cheap"  # reads a few files
    SLOW = "slow"  # starts a program
    INVASIVE = "invasive"  # takes memory of a GPU, writes to a log, disturbs a running job


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that programs may take. Importing torch from a cold network disk takes tens of seconds.

    With ``total_s`` for all that is asked: what has not answered by then stays unknown.
    """

    interpreter_s: float = 20.0
    import_s: float = 60.0
    cuda_s: float = 30.0
    nvml_s: float = 20.0
    tool_s: float = 10.0
    files_s: float = 5.0
    total_s: float | None = None
    deep_s: float = 120.0

    @staticmethod
    def within(total_s: float, import_s: float | None = None) -> Limits:
        """Shares of a limit for all: they run beside each other, and the import of torch takes longest."""
        third = total_s / 3
        longest = 2 * third if import_s is None else import_s
        return Limits(third, longest, third, third, third / 2, third / 6, total_s, deep_s=2 * third)


@dataclass(frozen=True, slots=True)
class Context:
    """What a probe may use. ``ask`` fetches another fact; ``python`` is the examined interpreter."""

    machine: Machine
    ask: Callable[[str], Fact]
    python: str = ""
    limits: Limits = field(default_factory=Limits)

    def is_there(self, path: str) -> bool:
        """Is there a file at the path? No where that cannot be looked at."""
        try:
            return self.machine.exists(path)
        except Unreadable:
            return False

    def text(self, name: str) -> str:
        """A known fact as text; empty when it is not known."""
        fact = self.ask(name)
        return str(fact.value) if fact.state is State.KNOWN else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """A known list fact; empty when it is not known."""
        fact = self.ask(name)
        return tuple(str(item) for item in fact.value) if isinstance(fact.value, tuple) else ()

    def variable(self, name: str) -> str:
        """An environment variable; empty when it is not set."""
        return self.machine.variable(name) or ""


@dataclass(frozen=True, slots=True)
class Probe:
    """Tells ``names`` by reading files, within ``Limits.files_s``, or by a program, which has its own limit.

    ``command`` gives the program that can be started early, or None when none is needed here. ``needs`` are
    facts that ``look`` asks for: they are fetched before its time begins.
    """

    names: tuple[str, ...]
    cost: Cost
    look: Callable[[Context], Iterable[Fact]]
    command: Callable[[Context], Command | None] | None = None
    needs: tuple[str, ...] = ()


def told(name: str, read: Callable[[], FactValue], source: str = "") -> Fact:
    """The fact as ``read`` gives it; ABSENT when that is None or missing, UNKNOWN when it cannot be read."""
    try:
        value = read()
    except Missing as error:
        return Fact.absent(name, source or error.subject)
    except Unreadable as error:
        return Fact.unknown(name, error.reason, source or error.subject, error.detail)
    except NotRecorded:
        return Fact.unknown(name, Reason.NOT_ASKED, source, NOT_RECORDED)
    except (ValueError, LookupError) as error:
        return Fact.unknown(name, Reason.UNPARSABLE, source, str(error))
    return Fact.absent(name, source) if value is None else Fact.known(name, value, source)


def value_of(value: Json) -> FactValue:
    """JSON as the value of a fact: lists become tuples."""
    if isinstance(value, list):
        return tuple(value_of(item) for item in value)
    if isinstance(value, dict):
        raise ValueError("a fact is no mapping")
    return value


def reported(outcome: Outcome, names: Iterable[str], source: str) -> Mapping[str, Fact]:
    """The facts of these names among the lines a program wrote."""
    wanted = set(names)
    found: dict[str, Fact] = {}
    for line in outcome.lines:
        name = line.get("name")
        if not isinstance(name, str) or name not in wanted:
            continue
        detail = str(line.get("detail") or "")
        state = line.get("state", "known")
        if state == "absent":
            found[name] = Fact.absent(name, source, detail)
        elif state == "unknown":
            found[name] = Fact.unknown(name, reason_of(line.get("reason")), source, detail)
        else:
            found[name] = told(name, partial(value_of, line.get("value")), source)
    return found


def reason_of(text: Json) -> Reason:
    try:
        return Reason(str(text))
    except ValueError:
        return Reason.UNPARSABLE


def stage_state(outcome: Outcome, stage: str) -> str:
    """Whether a program began and ended a stage: "", "begin" or "end"."""
    state = ""
    for line in outcome.lines:
        if line.get("stage") == stage:
            state = str(line.get("state"))
    return state


def failure(outcome: Outcome) -> tuple[Reason, str]:
    """Why a program told nothing more, and in words how it ended."""
    if outcome.start_error:
        return Reason.NOT_INSTALLED, outcome.start_error
    if outcome.timed_out:
        return Reason.TIMED_OUT, f"no answer within {outcome.seconds:.0f} s"
    if outcome.note:
        return Reason.CRASHED, outcome.note
    if outcome.signal is not None:
        return Reason.CRASHED, f"ended by {signal_name(outcome.signal)}"
    last = outcome.stderr.strip().splitlines()
    words = f"exit code {outcome.exit_code}" + (f": {last[-1][:300]}" if last else "")
    return Reason.CRASHED, words


def signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
