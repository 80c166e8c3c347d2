"""What is to be run and watched, and what came of it."""

from __future__ import annotations

import json
import linecache
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from torchdoctor.model import TorchdoctorError
from torchdoctor.probes.live import LiveMachine
from torchdoctor.probes.machine import Command, Outcome

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "run_target.py")
LIMIT_S = 120.0


# what starts a program in further processes, or behind a further program
_LAUNCHERS = (
    "torchrun",
    "accelerate",
    "deepspeed",
    "srun",
    "mpirun",
    "mpiexec",
    "horovodrun",
    "uv",
    "poetry",
)


class TargetError(TorchdoctorError):
    """A target that names nothing that could be run."""


@dataclass(frozen=True, slots=True)
class Target:
    """``kind`` is module, script, code, main or main-module, as the program in the child understands it."""

    kind: str
    name: str
    args: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # of the interpreter
    python: str | None = None  # when the target itself names one

    @property
    def words(self) -> str:
        """The target as the user wrote it, more or less."""
        if self.kind == "code":
            return f"-c {self.name!r}"
        return " ".join((("-m " if self.kind == "main-module" else "") + self.name, *self.args))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the program. ``line`` is None when only the file is known."""

    file: str
    line: int | None
    function: str
    code: str

    @property
    def words(self) -> str:
        return f"{self.file}:{self.line}" if self.line is not None else self.file


@dataclass(frozen=True, slots=True)
class Change:
    """A setting was changed, by the last place of the stack; that is empty when nobody knows.

    ``early``: it was so before the program's first line. ``threads`` is how many ran at that moment:
    one that began before the watching may have made the change. ``unsure`` are lines that ran too often to be
    looked at each time, and may have done it instead. ``asked`` and ``asked_at`` belong to a change
    that came too late: the function of torch that had asked for the setting before, and who called it.
    """

    setting: str
    before: str | None
    after: str | None
    stack: tuple[Place, ...]
    early: bool = False
    threads: int = 1
    unsure: tuple[Place, ...] = ()
    asked: str = ""
    asked_at: tuple[Place, ...] = ()

    @staticmethod
    def told(line: Mapping[str, object]) -> Change:
        """From what the tracer writes."""
        counted = line.get("counted")
        asked = counted if isinstance(counted, dict) else {}
        threads = line.get("threads")
        return Change(
            str(line["change"]),
            _text(line.get("before")),
            _text(line.get("after")),
            places(line.get("stack")),
            line.get("early") is True,
            threads if isinstance(threads, int) else 1,
            places(line.get("unsure")),
            str(asked.get("function") or ""),
            places(asked.get("stack")),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """What a target did. ``ended`` is ok, error, exit, os._exit, exec, signal, hang, flood, or start."""

    target: Target
    changes: tuple[Change, ...]
    ended: str
    message: str = ""
    type: str = ""
    code: int | None = None
    stack: tuple[Place, ...] = ()
    traceback: str = ""
    output: str = ""
    torch: str | None = None
    seconds: float = 0.0
    reads_stdin: bool = False
    forked: tuple[Place, ...] = ()
    faults: tuple[str, ...] = ()  # of ours, while watching
    traced: bool = True  # False: another trace function took the place of ours

    @property
    def place(self) -> Place | None:
        """The innermost line that is not of the standard library or of torch; else the innermost."""
        own = [place for place in self.stack if not _of_others().search(place.file)]
        places = own or self.stack
        return places[-1] if places else None


@cache
def _of_others() -> re.Pattern[str]:
    """Files of the standard library and of torch."""
    return re.compile(
        r"[/\\]lib(?:64)?[/\\]python\d[\d.]*t?[/\\](?!(?:site|dist)-packages)|[/\\]Lib[/\\](?!site-p)"
        r"|(?:site|dist)-packages[/\\]torch[/\\]"
    )


def parse(words: Sequence[str]) -> tuple[Target, ...]:
    """Targets from the words of a command line: modules, files, or ``python …`` for one program.

    Raises TargetError for a launcher of processes, a file that is not there, a name that is neither.
    """
    if words and re.fullmatch(r"python[w]?\d*(?:\.\d+)*t?(?:\.exe)?", os.path.basename(words[0])):
        return (_program(words),)
    if _launches(words):
        raise TargetError(
            f"{words[0]} starts further processes, which are not watched; name the program itself: "
            "-- python train.py …"
        )
    return tuple(_one(word) for word in words)


def _launches(words: Sequence[str]) -> bool:
    """Is it a call of a launcher? Some of them are modules as well, and may be meant as such."""
    if not words or os.path.basename(words[0]) not in _LAUNCHERS or os.path.isfile(words[0]):
        return False
    return words[0] == "torchrun" or any(
        word in ("launch", "run") or not word.isidentifier() for word in words[1:]
    )


def _one(word: str) -> Target:
    if os.path.isfile(word):
        return Target("script", word)
    if word.endswith(".py") or os.sep in word:
        if os.path.isdir(word):
            raise TargetError(f"{word}: a folder; name a file in it, or the module as it is imported")
        raise TargetError(f"{word}: no such file")
    if not re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", word):
        raise TargetError(
            f"{word}: neither a file nor the name of a module; a program with its arguments is given as: "
            "-- python train.py --epochs 1"
        )
    return Target("module", word)


def _program(words: Sequence[str]) -> Target:
    python = words[0] if os.path.dirname(words[0]) else None
    flags: list[str] = []
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        flag = rest.pop(0)
        flags.append(flag)
        if flag in ("-W", "-X") and rest:
            flags.append(rest.pop(0))
    if not rest or rest[0] == "-" or (rest[0] in ("-m", "-c") and len(rest) < 2):
        raise TargetError(f"{' '.join(words)}: names no program; as in: python train.py --epochs 1")
    if rest[0] == "-c":
        return Target("code", rest[1], tuple(rest[2:]), tuple(flags), python)
    if rest[0] == "-m":
        return Target("main-module", rest[1], tuple(rest[2:]), tuple(flags), python)
    if not os.path.exists(rest[0]):
        raise TargetError(f"{rest[0]}: no such file")
    return Target("main", rest[0], tuple(rest[1:]), tuple(flags), python)


def run(target: Target, python: str, limit_s: float = LIMIT_S) -> Run:
    """Run the target in a child of ``python`` and say what it changed. Blocks up to the limit.

    Raises TargetError when there is no module of the target's name.
    """
    spec = {"kind": target.kind, "name": target.name, "args": list(target.args), "limit_s": limit_s}
    argv = (target.python or python, *target.flags, PROGRAM, json.dumps(spec))
    # The program ends itself at its limit; ours is for one that cannot.
    command = Command("globals", argv, limit_s + 3.0, reports=True, named=True)
    machine = LiveMachine()
    try:
        done = _read(target, machine.finish(command))
    finally:
        machine.close()
    if target.kind in ("module", "main-module") and done.ended == "error" and not done.stack:
        lacking = re.match(r"No module named '?([\w.]+)", done.message)
        if lacking and f"{target.name}.".startswith(f"{lacking[1]}."):
            raise TargetError(
                f"{target.name}: no module named {lacking[1]!r} for {target.python or python}, "
                f"looked for in {os.getcwd()} too"
            )
    return done


def _read(target: Target, outcome: Outcome) -> Run:
    changes: list[Change] = []
    faults: list[str] = []
    last: dict[str, object] = {}
    begun = False
    forked: tuple[Place, ...] = ()
    for line in outcome.lines:
        if "change" in line:
            changes.append(Change.told(line))
        elif "fault" in line:
            faults.append(str(line["fault"]))
        elif "fork" in line:
            forked = forked or places(line["fork"])
        elif "ended" in line:
            last = dict(line)
        elif "stage" in line:
            begun = True
    torch = _text(last.get("torch"))
    output = _last_words(outcome.stderr)
    if last:
        code = last.get("code")
        return Run(
            target, tuple(changes), str(last["ended"]), str(last.get("message") or ""),
            str(last.get("type") or ""), code if isinstance(code, int) else None, places(last.get("stack")),
            str(last.get("traceback") or ""), output, torch, outcome.seconds, last.get("stdin") is True,
            forked, tuple(faults), last.get("traced") is not False,
        )  # fmt: skip
    stack = _dumped(outcome.stderr)
    if outcome.start_error or not begun:
        words = outcome.start_error or output or f"exit code {outcome.exit_code}"
        return Run(target, (), "start", words, output=output)
    if outcome.timed_out or "Timeout (" in outcome.stderr:
        ended, message = "hang", f"not finished after {outcome.seconds:.0f} s"
    elif outcome.signal is not None:
        from torchdoctor.probes.probe import signal_name

        ended, message = "signal", signal_name(outcome.signal)
    elif outcome.note:
        ended, message = "flood", outcome.note
    else:
        ended, message = "os._exit", f"the process ended with code {outcome.exit_code}"
    return Run(
        target, tuple(changes), ended, message, code=outcome.exit_code, stack=stack, output=output,
        seconds=outcome.seconds, forked=forked, faults=tuple(faults),
    )  # fmt: skip


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def places(value: object) -> tuple[Place, ...]:
    found: list[Place] = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            line = item.get("line")
            found.append(
                Place(
                    str(item.get("file")),
                    line if isinstance(line, int) else None,
                    str(item.get("function")),
                    str(item.get("code") or ""),
                )
            )
    return tuple(found)


def _dumped(text: str) -> tuple[Place, ...]:
    """The frames of the thread that faulthandler wrote last, outermost first, ours left out."""
    _, _, tail = text.rpartition("(most recent call first):")
    found = re.findall(r'^  File "([^"]+)", line (\d+) in (.+)$', tail, flags=re.MULTILINE)
    folder = os.path.dirname(PROGRAM)
    return tuple(
        Place(file, int(line), function, linecache.getline(file, int(line)).strip())
        for file, line, function in reversed(found)
        if not file.startswith((folder, "<frozen")) and os.path.basename(file) != "runpy.py"
    )


def _last_words(text: str) -> str:
    head = re.split(
        r"^(?:Fatal Python error|Timeout \(|(?:Current thread|Thread) 0x)",
        text,
        maxsplit=1,
        flags=re.MULTILINE,
    )[0]
    return "\n".join(line.rstrip() for line in head.splitlines()[-8:] if line.strip())[-2000:]
