"""The types that every part of torchdoctor speaks in.

Nothing here reads a file, starts a process or knows a rule. Everything is frozen: a report can be
passed around, compared and rendered without anybody changing it under way.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from torchdoctor.records import Record as Record
from torchdoctor.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


FactValue: TypeAlias = "str | int | float | bool | tuple[FactValue, ...] | None"

REPORT_SCHEMA = "torchdoctor.report/1"
SITE = ""  # where the documentation is published, with a "/" at its end; "" while it is nowhere
# the last line of a program's log, before the code, as PyCharm, others and `torchdoctor run` write it
PROCESS_ENDED = "Process finished with exit code "


class TorchdoctorError(Exception):
    """Base of every error that a person can cause and mend; the text says what, where and what is right.

    ``problems`` holds one text a mistake; a name in it may hold anything, line ends too.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def page_of(rule: str, family: str) -> str:
    """Where the page of a rule, or of a check of ``lint``, lies in the documentation."""
    return f"{SITE}{'lint' if family == 'lint' else 'rules'}/{rule}/"


def counted(count: int, one: str, many: str = "") -> str:
    """``1 fault``, ``2 faults``; ``many`` where an s at its end does not make the plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


class State(str, Enum):
    """What is known of a fact. ABSENT means: looked, and it is not there. UNKNOWN: could not look."""

    KNOWN = "known"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Reason(str, Enum):
    """Why a fact is UNKNOWN."""

    NOT_INSTALLED = "not-installed"
    NOT_PERMITTED = "not-permitted"
    TIMED_OUT = "timed-out"
    CRASHED = "crashed"
    UNPARSABLE = "unparsable"
    NOT_ASKED = "not-asked"


@record(frozen=True, slots=True)
class Fact(Record):
    """One thing known, or not known, about a text or a machine, with where it comes from.

    ``source`` is ``text:FILE:LINE`` for facts read out of a log, else a path, a command or a library name.
    """

    name: str
    state: State
    value: FactValue = None
    reason: Reason | None = None
    source: str = ""
    detail: str = ""

    def __bool__(self) -> bool:
        raise TypeError(f"fact {self.name!r} has three states; ask for .state or .value, not for its truth")

    @staticmethod
    def known(name: str, value: FactValue, source: str = "", detail: str = "") -> Fact:
        return Fact(name, State.KNOWN, value, None, source, detail)

    @staticmethod
    def absent(name: str, source: str = "", detail: str = "") -> Fact:
        return Fact(name, State.ABSENT, None, None, source, detail)

    @staticmethod
    def unknown(name: str, reason: Reason, source: str = "", detail: str = "") -> Fact:
        return Fact(name, State.UNKNOWN, None, reason, source, detail)


class FactSource(Protocol):
    """Where facts come from that are not in the text: the probes of this machine, or a recording of one."""

    def names(self) -> Sequence[str]:
        """Every fact name this source can be asked for."""
        ...

    def fetch(self, name: str) -> Fact:
        """The fact; UNKNOWN with a reason when it cannot be told. Never raises. May start a child process."""
        ...


class EventKind(str, Enum):
    """What a stretch of text is, as far as its form tells."""

    EXCEPTION = "exception"  # a Python exception, with or without its traceback
    DEVICE_ASSERT = "device-assert"  # the line a CUDA or HIP kernel prints when an assertion in it fails
    WARNING = "warning"  # Python's warnings module, and torch's own [W ...] lines
    NCCL = "nccl"  # a line of the NCCL library
    WATCHDOG = "watchdog"  # c10d: ProcessGroupNCCL, TCPStore, socket lines of level E or F
    LAUNCHER = "launcher"  # torchrun, torch.distributed.launch, DeepSpeed, accelerate
    KERNEL_LOG = "kernel-log"  # dmesg, journalctl -k
    CRASH = "crash"  # a native end: segmentation fault, abort, bus error, Killed
    BUILD = "build"  # compilers, linkers, ninja, nvcc, pip
    STACK = "stack"  # one thread of a stack dump
    SCHEDULER = "scheduler"  # Slurm, Kubernetes, LSF
    LOG = "log"  # any other line


@record(frozen=True, slots=True)
class Frame(Record):
    """One line of a stack. ``package`` is "" for the user's own code, else the package or "python".

    Columns count characters from 1, and are known where the source itself was read; ``end_column`` is behind
    the last character. ``above`` holds the source lines that IPython shows before that of the user's frame.
    ``marks`` are the bounds of the part of ``code`` under which Python 3.11 and later set their signs.
    """

    file: str
    line: int | None
    function: str
    code: str = ""
    package: str = ""
    at: int = 0  # line of the log on which the frame stands
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    above: str = ""
    marks: tuple[int, int] = (0, 0)

    def marked(self) -> str:
        """The part of its code that Python marks; "" where it marks none."""
        return self.code[self.marks[0] : self.marks[1]]

    def place(self) -> str:
        """The file's name and the line: ``train.py:12``; the name alone where the line is unknown."""
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return name if self.line is None else f"{name}:{self.line}"

    def in_cell(self) -> bool:
        """Is it a cell of a notebook? Colab and kernels give each a file in a temporary folder, too."""
        path = self.file.replace("\\", "/")
        return (
            "/ipykernel_" in path
            or path.endswith(".ipynb")
            or path.startswith(
                ("<ipython-input-", "Cell In", "Input In", "/tmp/ipython-input-", "[<ipython-input-")
            )
        )


class RelationKind(str, Enum):
    """How an exception refers to an earlier or inner one."""

    CAUSE = "cause"  # raise ... from
    CONTEXT = "context"  # during handling of
    WRAPS = "wraps"  # its message carries the inner traceback (DataLoader worker, replica, torchelastic)


@record(frozen=True, slots=True)
class Relation(Record):
    """A reference from an exception to the event that stands behind it."""

    kind: RelationKind
    event: int


class Quoted(str, Enum):
    """Was a line written by somebody instead of being printed? Judged by ``torchdoctor.intake.quotation``.

    NO is false, the others are true.
    """

    NO = ""
    WRITTEN = "written"  # a comment, a list item, a search hit, a message between quotation marks
    SOURCE = "source"  # source code, and what was typed at a prompt

    def __bool__(self) -> bool:
        return self is not Quoted.NO


@record(frozen=True, slots=True)
class Event(Record):
    """Something that happened, with the place in the input that says so.

    ``text`` is the message alone for an exception (no frames), the cleaned line or lines for all else.
    ``line`` and ``end_line`` count from 1 in ``source``. ``quoted`` says that the form of the line shows it
    to be written and not printed; ``recovered`` that the process went on after it.
    """

    id: int
    kind: EventKind
    text: str
    source: str
    line: int
    end_line: int
    stream: str = ""
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    level: str | None = None
    type: str | None = None
    frames: tuple[Frame, ...] = ()
    relations: tuple[Relation, ...] = ()
    headed: bool = False
    quoted: Quoted = Quoted.NO
    recovered: bool = False
    count: int = 1
    message_line: int = 0  # line on which the message begins; 0 when that is ``line``
    cells: bool = False  # its frames stand as IPython shows them

    def place(self, offset: int = 0) -> str:
        """Where a fact of it stands: its file and line, or so many lines below."""
        return f"text:{self.source}:{self.line + offset}"

    @property
    def flight_record(self) -> bool:
        """Is it a statement of a flight record, as ``intake/flight.py`` words them?"""
        return self.text.startswith("flight record, ")


class Form(str, Enum):
    """What kind of document the input is."""

    LOG = "log"
    BINARY = "binary"
    EMPTY = "empty"


class Ending(str, Enum):
    GOOD = "good"  # the last lines say that the run finished
    BAD = "bad"  # the last lines say that it failed
    UNKNOWN = "unknown"


@record(frozen=True, slots=True)
class Transcript(Record):
    """All that was read, in order. ``notes`` says what was cut, skipped or guessed on the way.

    ``earlier`` holds the runs before the last one of an input, each with events of its own. ``orders``: of a
    source whose lines were read in another order than they stand in, the number of each line, as read.
    """

    sources: tuple[str, ...]
    events: tuple[Event, ...]
    form: Form = Form.LOG
    ending: Ending = Ending.UNKNOWN
    lines_read: int = 0
    bytes_read: int = 0
    notes: tuple[str, ...] = ()
    earlier: tuple[Transcript, ...] = ()
    orders: tuple[tuple[str, tuple[int, ...]], ...] = ()


class Severity(str, Enum):
    FATAL = "fatal"
    WARNING = "warning"
    INFO = "info"


class Role(str, Enum):
    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    TEARDOWN = "teardown"
    CONTEXT = "context"


class Standing(str, Enum):
    """CONFIRMED: message or fact excludes the rules that share it. UNLIKELY: a fact speaks against it."""

    CONFIRMED = "confirmed"
    POSSIBLE = "possible"
    UNLIKELY = "unlikely"


class Outcome(str, Enum):
    DIAGNOSED = "diagnosed"
    UNRECOGNISED = "unrecognised"
    NO_FAILURE = "no-failure"
    UNREADABLE = "unreadable"


@record(frozen=True, slots=True)
class Evidence(Record):
    """A line of the input, or a fact, that speaks for or against a diagnosis."""

    text: str
    file: str | None = None
    line: int | None = None
    rank: int | None = None
    fact: str | None = None
    against: bool = False


@record(frozen=True, slots=True)
class Link(Record):
    """A consequence of a diagnosis that also stands in the input."""

    rule: str
    title: str
    evidence: Evidence
    rank: int | None = None


@record(frozen=True, slots=True)
class Fix(Record):
    """One way out. ``risk`` is safe, changes-environment, needs-root, loses-work or runs-code."""

    do: str
    run: str | None = None
    risk: str = "safe"


@record(frozen=True, slots=True)
class Diagnosis(Record):
    """A cause the engine holds to be present, with everything that speaks for it.

    ``missing`` lists what could not be told; ``reasons`` says in words why it stands where it stands.
    """

    rule: str
    family: str
    title: str
    severity: Severity
    role: Role
    standing: Standing
    why: str = ""
    rank: int | None = None
    frame: Frame | None = None
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    leads_to: tuple[Link, ...] = ()
    fixes: tuple[Fix, ...] = ()
    decide_with: str | None = None
    references: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    more: str | None = None  # what goes beyond ``why``
    decide_note: str | None = None  # how to read what it prints, or how to tell where no command does


@record(frozen=True, slots=True)
class Resemblance(Record):
    """A rule that knows messages like one that it does not know. Nothing is concluded from it."""

    rule: str
    title: str


class ReadingKind(str, Enum):
    """What a failure that no rule knows is, by its form."""

    LIBRARY_REFUSED = "library-refused"
    ENDED_OUTSIDE = "ended-outside"
    NATIVE_CRASH = "native-crash"
    LIBRARY_REPORTED = "library-reported"
    EXITED = "exited"
    BUILD_FAILED = "build-failed"
    INSTALL_FAILED = "install-failed"
    MODULE_MISSING = "module-missing"
    NAME_MISSING = "name-missing"
    LIBRARY_MISSING = "library-missing"
    PROGRAM_MISSING = "program-missing"
    RAISED_INSIDE = "raised-inside"
    QUOTED = "quoted"


@record(frozen=True, slots=True)
class Reading(Record):
    """What a failure that no rule knows says by itself: whose function wants what and got what.

    ``owner`` is a package, a native library, or who ended the process; ``function`` its public function.
    ``name`` is what is missing or was not built: a header, a library, a tool, a module, a package; of a
    process that ended, the signal.
    ``problem`` is the kind of failure of a build or an installation, ``place`` where in the sources.
    """

    kind: ReadingKind
    owner: str | None = None
    function: str | None = None
    wants: str | None = None
    got: str | None = None
    problem: str | None = None
    name: str | None = None
    place: str | None = None


@record(frozen=True, slots=True)
class Suspect(Record):
    """For a failure that no rule knows: the exception that looks most like its cause.

    ``resembles`` lists at most three rules, the nearest first. ``system`` is the one that the text shows,
    ``asks`` the sentence by which the message itself tells what to do, and ``setting`` the option, variable
    or parameter that it is about, ``choices`` the values that this may have; ``host`` is the only machine of
    several that does not have a file. ``caught``: its stack does not begin where a program is started, so a
    function caught and printed it, or another process or thread raised it.
    """

    type: str | None
    message: str
    rank: int | None
    frame: Frame | None
    evidence: Evidence
    resembles: tuple[Resemblance, ...] = ()
    reading: Reading | None = None
    system: str | None = None
    asks: str | None = None
    setting: str | None = None
    choices: tuple[str, ...] = ()
    host: str | None = None
    caught: bool = False


ONLY_RANK = "the only rank that the text names"


@record(frozen=True, slots=True)
class FirstFailure(Record):
    """Which rank failed first. ``tie`` lists ranks that cannot be told apart; empty when there is none."""

    rank: int | None
    host: str | None
    time: str | None
    decided_by: str
    tie: tuple[int, ...] = ()


class Verdict(str, Enum):
    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


# in which a report lists checks: the worst first
VERDICT_ORDER = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.UNKNOWN: 2, Verdict.PASS: 3, Verdict.SKIP: 4}


class Blame(str, Enum):
    NODE = "node"
    ENVIRONMENT = "environment"
    USER = "user"
    FABRIC = "fabric"


class Part(str, Enum):
    """What a rank's failure is in an incident: the first, another of its own, or an answer to one."""

    FIRST = "first"
    CAUSE = "cause"
    ECHO = "echo"


@record(frozen=True, slots=True)
class Moment(Record):
    """The failure of one rank in the order of events. ``text`` is empty for a rank that fell silent."""

    rank: int
    host: str | None
    time: str | None
    role: Part
    text: str
    rule: str | None = None
    kind: EventKind | None = None
    file: str | None = None
    line: int | None = None
    also: tuple[str, ...] = ()  # further rules that stand on lines of this rank


@record(frozen=True, slots=True)
class CheckResult(Record):
    """What one check of a machine or a program found, against what it expected."""

    id: str
    verdict: Verdict
    title: str
    blame: Blame | None = None
    observed: str | None = None
    expected: str | None = None
    threshold_source: str | None = None
    evidence: tuple[Evidence, ...] = ()
    action: str | None = None
    reason: str | None = None
    group: str | None = None  # what it is about: the family of a rule


@record(frozen=True, slots=True)
class NotChecked(Record):
    """A check that was not made, and why."""

    id: str
    reason: str


@record(frozen=True, slots=True)
class Run(Record):
    """One of several runs of an input: where it stands, when it began, what came of it.

    ``rule`` is that of its first diagnosis.
    """

    number: int
    file: str
    line: int
    end_line: int
    started: str | None
    outcome: Outcome
    rule: str | None = None


@record(frozen=True, slots=True)
class Incident(Record):
    """One of several incidents of the inputs: its files, and what came of it."""

    source: tuple[str, ...]
    outcome: Outcome
    diagnoses: tuple[Diagnosis, ...] = ()
    first_failure: FirstFailure | None = None
    suspect: Suspect | None = None


@record(frozen=True, slots=True)
class Report(Record):
    """The answer. ``diagnoses[0]`` is the cause; consequences stand in its ``leads_to``."""

    outcome: Outcome
    source: tuple[str, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    suspect: Suspect | None = None
    checks: tuple[CheckResult, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    first_failure: FirstFailure | None = None
    timeline: tuple[Moment, ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    faults: tuple[str, ...] = ()  # what broke in torchdoctor itself; the rest of the report stands
    schema: str = REPORT_SCHEMA
    runs: tuple[Run, ...] = ()  # of the input, the judged one among them; empty when there is one
    incidents: tuple[Incident, ...] = ()  # of the inputs, this one among them; empty when there is one
    got_over: bool = False  # no failure ended the run, but it met some
    open_end: bool = False  # no failure, and nothing tells how the run ended


def moment_of(time: str | None) -> datetime | None:
    """An ISO 8601 time, with its zone where it names one; None when it is missing or no date."""
    if not time:
        return None
    from datetime import datetime

    try:
        return datetime.fromisoformat(_for_python_310(time))
    except ValueError:
        return None


def _for_python_310(time: str) -> str:
    """Python before 3.11 reads fractions of three or six digits, zones with a colon, and no "Z"."""
    if time.endswith("Z"):
        time = time[:-1] + "+00:00"
    elif time[-5:-4] in ("+", "-") and time[-4:].isdecimal() and ":" in time[-12:-5]:
        time = f"{time[:-2]}:{time[-2:]}"
    head, dot, tail = time.partition(".")
    if not dot:
        return time
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
