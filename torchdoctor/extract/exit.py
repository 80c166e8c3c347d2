"""Facts out of the texts with which launchers, shells and schedulers say how a process ended."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern
from torchdoctor.signal_words import BARE, ENGLISH, OF_ZSH, SERVICE_LEFT, TELLING, ZSH

FACTS: dict[str, str] = {
    "exit.code": "int: exit code as printed: negative for a signal (torchrun), 128 + signal (shells)",
    "exit.signal": "str: the signal behind it, as SIGKILL; absent when the process ended by itself",
    "exit.local_rank": "int: local rank of the process that ended first, where the launcher names one",
    "exit.pid": "int: its process id",
    "exit.done": "text: the other services of docker compose, where all left with code 0 and this failed",
}

SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # fmt: skip

# NTSTATUS values of Windows, unsigned and signed
_WINDOWS = {
    0xC0000005: "SIGSEGV",  # access violation
    0xC00000FD: "SIGSEGV",  # stack overflow
    0xC0000409: "SIGABRT",  # stack buffer overrun, and every abort() of the C runtime
    0xC000001D: "SIGILL",
    0xC0000094: "SIGFPE",
    0xC000013A: "SIGINT",
}

# torchrun's log line: "failed (exitcode: -9) local_rank: 0 (pid: 1795) of binary"
_AGENT = r"\(exitcode: (?P<code>-?\d{1,10})\) local_rank: (?P<local>\d{1,6}) \(pid: (?P<pid>\d{1,10})\)"
# torchrun's box: "rank : 1 (local_rank: 1)", "exitcode : -6 (pid: 867)"
_BOX = (
    r"rank\s*: (?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,6})\)\s+"
    r"exitcode\s*: (?P<code>-?\d{1,10}) \(pid: (?P<pid>\d{1,10})\)"
)
_BOX_LINE = r"exitcode\s*: (?P<code>-?\d{1,10}) \(pid: (?P<pid>\d{1,10})\)"

# each with a group: code (number as printed), number (of a signal), signal (its name) or word
_FORMS = (
    r"exits with return code = (?P<code>-?\d{1,10})",  # DeepSpeed
    r"died with <Signals\.(?P<signal>SIG[A-Z0-9]+): \d+>",  # subprocess
    r"returned non-zero exit status (?P<code>-?\d{1,10})",  # subprocess
    r"terminated with signal (?P<signal>SIG[A-Z0-9]+)",  # torch.multiprocessing
    r"terminated with exit code (?P<code>-?\d{1,10})",
    r"is killed by signal: (?P<word>[A-Z][\w/ ]+?)[.(]",  # DataLoader
    r"exited unexpectedly with exit code (?P<code>-?\d{1,10})",
    r"exited on signal (?P<number>\d{1,2})\b",  # Open MPI
    r"(?:terminated by(?: signal)? |return code Negsignal\.)(?P<signal>SIG[A-Z0-9]+)",  # supervisord, Airflow
    r"[Tt]erminated by signal (?P<number>\d{1,2})\b",  # GNU time, fish
    r"task \d[\d,\-]*: Exited with exit code (?P<code>\d{1,3})",  # srun
    r"tasks? \d[\d,\-]*: (?P<word>Killed|Terminated|Aborted|Bus error|Segmentation fault)",
    r"[Ee]xit [Cc]ode:? +(?P<code>-?\d{1,10})",  # kubectl describe, GitHub Actions
    r"exited with (?:exit )?(?:code|status):? (?P<code>-?\d{1,10})",  # docker compose, Ray
    r"exit(?:ed with)? code:? (?P<code>-?\d{1,10})",
    r"\(exitcode: (?P<code>-?\d{1,10})\)",
    r"got signal: (?P<number>\d{1,2})\b",  # torchelastic's SignalException
    r"Received (?P<number>\d{1,2}) death signal",
    r"\*\*\* (?P<signal>SIG[A-Z0-9]+) ",  # Ray, absl
    r"OOMKilled(?P<oom>)",
)
# a line of a shell: "Killed", "bash: line 1: 4711 Segmentation fault (core dumped) python train.py"
_SHELL = rf"(?:^|: *|\d +)(?P<word>{'|'.join(ENGLISH)})(?: *: \d+)?(?: +\(core dumped\)|\s|$)"
_FEW = 4  # names in a sentence
_MARKS = ("exit", "Exit", "signal", "SIG", "OOMKilled", "return code", "task")
_SHELL_KINDS = (EventKind.CRASH, EventKind.LAUNCHER, EventKind.SCHEDULER, EventKind.LOG)


def signal_of(code: int) -> str | None:
    """The signal behind an exit code of torchrun (-9), a shell or container (137), or Windows; else None."""
    if code < 0 and -code in SIGNALS:
        return SIGNALS[-code]
    if 128 < code < 160:
        return SIGNALS.get(code - 128)
    return _WINDOWS.get(code & 0xFFFFFFFF) if code > 255 or code < -128 else None


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of a message that says how a process ended; nothing for any other."""
    text = event.text
    if done := _done(event, transcript):
        yield "done", ", ".join(done)
    if "exitcode" in text:
        found = list(_from_torchrun(text))
        if found:
            yield from found
            return
    if any(mark in text for mark in _MARKS):
        for form in _FORMS:
            match = pattern(form).search(text)
            if match is not None:
                yield from _told(match)
                return
    if event.kind in _SHELL_KINDS:
        match = pattern(_SHELL).search(text)
        if match is not None:
            yield "signal", ENGLISH[match.group("word")]
        elif event.kind is EventKind.CRASH:
            zsh = pattern(OF_ZSH).search(text)
            signal = ZSH[zsh["word"]] if zsh is not None else _abroad(text.strip())
            if signal is not None:
                yield "signal", signal


def _done(event: Event, transcript: Transcript) -> list[str]:
    """The services that had nothing more to do, where docker compose tells the ends of all."""
    codes = _services(transcript)
    others = [name for name in codes if name != event.stream]
    failed = codes.get(event.stream, "0") != "0"
    return others if failed and 0 < len(others) <= _FEW and all(codes[name] == "0" for name in others) else []


@once_a_text
def _services(transcript: Transcript) -> dict[str, str]:
    """The exit code of each service, by docker compose."""
    told = (event for event in transcript.events if " exited with code " in event.text[:120])
    found = (pattern(SERVICE_LEFT).match(event.text) for event in told)
    return {one["service"]: one["code"] for one in found if one is not None}


def _abroad(text: str) -> str | None:
    """The signal that a shell's line names in another language than English."""
    if text in BARE:
        return BARE[text]
    word = next((word for word in TELLING if word in text), None)
    if word is not None:
        return TELLING[word]
    # the longest first: "Terminado (killed)" begins with "Terminado"
    found = [word for word in BARE if f" {word}  " in text]
    return BARE[max(found, key=len)] if found else None


def _from_torchrun(text: str) -> Iterator[Found]:
    """The box lists the later failures first and the first one last, under "Root Cause"."""
    head, _, root = text.partition("Root Cause")
    boxes = [*pattern(_BOX).finditer(root), *pattern(_BOX).finditer(head)]
    match = boxes[0] if boxes else pattern(_AGENT).search(text) or pattern(_BOX_LINE).search(text)
    if match is None:
        return
    yield from _code(int(match.group("code")))
    yield "pid", int(match.group("pid"))
    named = match.groupdict()
    if named.get("local") is not None:
        yield "local_rank", int(named["local"])


def _code(code: int) -> Iterator[Found]:
    yield "code", code
    yield "signal", signal_of(code)


def _told(match: re.Match[str]) -> Iterator[Found]:
    named = match.groupdict()
    number, word = named.get("number"), named.get("word")
    signal = (
        SIGNALS.get(int(number)) if number else ENGLISH.get(word.strip()) if word else named.get("signal")
    )
    if named.get("code") is not None:
        yield from _code(int(named["code"]))
    elif signal is not None:
        yield "signal", signal
    elif "oom" in named:
        yield "signal", "SIGKILL", "the container's memory limit"
