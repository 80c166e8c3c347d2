"""Echoes: what a process prints because another one, or the run itself, has already failed."""

from __future__ import annotations

from torchdoctor.engine.context import moving_after
from torchdoctor.engine.finding import Finding, Occurrence
from torchdoctor.model import Event, EventKind, Role, Transcript
from torchdoctor.patterns import pattern, search

# the groups peer-death and worker-death of rules/groups.toml; a test holds the two together
PEER_CAUSES = frozenset(  # those of them that can be causes, too
    ("gloo-connect", "nccl-system-error", "nccl-internal-error", "nccl-socket-interface",
     "nccl-peer-refused", "nccl-ib-unacknowledged", "dist-rendezvous-timeout")
)  # fmt: skip
STORE_LOST = "dist-store-lost"
PEER_DEATH = PEER_CAUSES | frozenset(
    ("nccl-timeout", "nccl-remote-error", "nccl-aborted", "nccl-heartbeat", STORE_LOST,
     "dist-store-timeout", "gloo-peer-lost")
)  # fmt: skip
WORKER_DEATH = frozenset(
    {
        "dataloader-worker-exited", "dataloader-worker-killed", "dataloader-worker-error",
        "pin-thread-died", "too-many-open-files", "ipc-cuda-handle",
    }
)  # fmt: skip

# gloo's pair.cc, torch's TCPStore and socket.cpp, NCCL's socket.cc, UCX and WinError 10054
_GONE = (
    r"connection (?:was )?(?:closed|reset|aborted|lost|dropped)(?: by|:) ?(?:the |remote |a )*(?:peer|host)"
    r"|closed by (?:the )?(?:remote )?peer|forcibly closed by the remote host|pair closure"
    r"|remote process exit|(?:remote|peer) (?:process|rank|side) (?:has |was )?"
    r"(?:exited|died|closed|terminated|gone)"
    r"|connection was likely closed|\bbroken pipe\b|ncclremoteerror"
)
# how Ray, multiprocessing, concurrent.futures and torch tell that a process of theirs is gone
_DEATH = (
    r"\b(?:actor|worker|process|child|engine)\b[^.\n]{0,60}\b(?:died|dead|killed|exited|terminated|crashed)\b"
    r"|\b(?:killed|terminated) by signal\b|\bdied\b.{0,40}\bsignals?\b|\blow on memory\b"
)
_DEATH_TYPES = ("EOFError", "BrokenPipeError", "BrokenProcessPool", "MemoryError", "OutOfMemoryError")
KILLED = "host-oom-killed"
_REDRAWN = 2  # lines
_TRANSPORT = r"\bgloo\b|nccl|c10d|tcpstore|process ?group|torch/distributed|\bmpi\b|\bucx\b"


def dead_peer(item: Occurrence, family: str) -> bool:
    """Does the text say that the other end of a connection between ranks is gone?"""
    text = item.event.text.lower()
    if not search(_GONE, text, "connection", "peer", "remote", "pair", "broken", "nccl"):
        return False
    return family == "distributed" or bool(pattern(_TRANSPORT).search(text))


def mark_echoes(findings: list[Finding], strange: list[Event]) -> None:
    """Take the role of a cause from findings that only report the end of something else.

    A lost connection is never a cause. What the death of a rank or of the main process brings about is none
    behind an exception of its own (``strange``, exceptions that no rule knows) on that rank.
    """
    own = [event for event in strange if _is_own(event)]
    for finding in findings:
        rule = finding.rule
        live = [item for item in finding.occurrences if not item.event.recovered]
        if rule.role is not Role.CAUSE or not live:
            continue
        if all(dead_peer(item, rule.family) for item in live):
            finding.echo = True
        elif rule.id in PEER_DEATH:
            finding.echo = all(any(_before(one, item.event) for one in own) for item in live)
        elif rule.id in WORKER_DEATH:
            finding.echo = all(
                any(one.rank == item.event.rank and _before(one, item.event) for one in own) for item in live
            )


def mark_own_ends(findings: list[Finding], transcript: Transcript) -> None:
    """Take the role of a cause from a shell's "Killed" behind an exception that the program printed last.

    Who is killed from outside prints nothing. Servers of models end their own processes with SIGKILL when one
    of them has failed, and only the shell says so.
    """
    finding = next((one for one in findings if one.rule.id == KILLED), None)
    live = [item.event for item in finding.occurrences if not item.event.recovered] if finding else []
    if finding is None or not live or any(event.kind is not EventKind.CRASH for event in live):
        return
    raised = [one for one in transcript.events if _failed_by_itself(one, transcript)]
    finding.echo = all(any(_before(one, event) for one in raised) for event in live)


def _failed_by_itself(event: Event, transcript: Transcript) -> bool:
    """Is it an exception with its frames, none that tells of a process's death, and no steps behind it?"""
    if event.kind is not EventKind.EXCEPTION or not event.frames or event.type is None:
        return False
    if event.recovered or event.quoted or event.type.rpartition(".")[2].endswith(_DEATH_TYPES):
        return False
    text = event.text[:600].lower()
    if pattern(_DEATH).search(text) or pattern(_GONE).search(text):
        return False
    lines = 0
    for one in moving_after(event, transcript):
        # the states of a bar are one event; the last of them is drawn again when it closes
        lines += max(0, one.end_line - max(one.line - 1, event.end_line))
        if lines > _REDRAWN:
            return False
    return True


def _is_own(event: Event) -> bool:
    """True when the user's code is in its frames and no connection in it: else it may be an echo itself."""
    last = event.frames[-1].file.replace("\\", "/") if event.frames else ""
    if "torch/distributed/" in last or (event.type or "").rpartition(".")[2].startswith("Connection"):
        return False
    mine = any(not frame.package for frame in event.frames)
    return mine and not pattern(_GONE).search(event.text.lower())


def _before(one: Event, other: Event) -> bool:
    from torchdoctor.engine.clocks import CLOCK_SKEW_S, seconds

    began, then = seconds(one.time), seconds(other.time)
    if began is not None and then is not None and one.stream != other.stream:
        return began <= then + CLOCK_SKEW_S
    if one.source != other.source:
        return True  # two files without times: nothing says that the echo came first
    return one.id < other.id
