"""Lines of the kernel log beside the log of a job: which of them belong to it, and to which of its ranks.

A node's kernel log holds weeks and all jobs. An Xid of last Friday, of a GPU that the job did not have, or of
another node explains nothing; one on a rank's own GPU names the rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from torchdoctor.extract.xid import place
from torchdoctor.model import Event, EventKind, Record, Transcript, counted, moment_of
from torchdoctor.patterns import pattern
from torchdoctor.records import record, replace
from torchdoctor.xid_codes import CLASSES, codes

# this long before the first line of a job, or after its last, is not of it, whatever the zones of the clocks
_FAR_S = 26 * 3600.0
# with clocks in one zone: a job reports an error of its GPU within a collective's timeout of half an hour,
# and the first line that we keep may be the error itself
_BEFORE_S = 3600.0
_AFTER_S = 600.0
_SHOWN = 4
_CODES_SHOWN = 12

_ABOUT_GPU = ("Xid (", "SXid (", "fallen off the bus")
_ABOUT_MEMORY = ("Killed process", "oom-kill", "Out of memory")
_ADDRESS = r"(?:PCI:|GPU at |GPU )((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})"
# "gpu17:4711:4801 [1] NCCL INFO comm 0x55ab rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 9d000 commId …"
_COMM = (
    r"(?:^|\s)(?P<host>[\w.-]{1,80}):(?P<pid>\d{1,8}):\d{1,8} \[\d+\] NCCL INFO "
    r".{0,80}?\brank (?P<rank>\d{1,6}) nranks \d+ .{0,80}?busId (?P<bus>[0-9A-Fa-f]{4,12})\b"
)
# torchrun's box
_BOX = r"\brank +: (?P<rank>\d{1,6}) \(local_rank: \d+\)\s+exitcode +: .{0,40}?\(pid: (?P<pid>\d{1,8})\)"
_CODE = r"Xid \((?:PCI:)?[0-9A-Fa-f:.]{7,16}\): (?P<code>\d{1,3})\b"
_PID = r"\bpid=(\d{1,8})|Killed process (\d{1,8})\b|task=[^,]{0,40},pid=(\d{1,8})"


@record(frozen=True, slots=True)
class _Job(Record):
    """What the job's own log tells of where and when it ran."""

    hosts: frozenset[str]
    gpus: dict[tuple[str, str], int]  # host and address with domain -> rank
    pids: dict[int, frozenset[int]]  # process -> ranks; nodes share process numbers
    start: float | None
    end: float | None
    zoned: bool


def joined(transcript: Transcript) -> tuple[Transcript, tuple[str, ...]]:
    """The transcript with the kernel's lines told apart: the job's have its rank, others count as quoted.

    The second value says what was set aside, and why. Nothing changes when there is no job beside them.
    """
    kernel = [event for event in transcript.events if event.kind is EventKind.KERNEL_LOG]
    others = [event for event in transcript.events if event.kind is not EventKind.KERNEL_LOG]
    if not kernel or not others:
        return transcript, ()
    job = _job(others)
    changed: dict[int, Event] = {}
    aside: list[str] = []
    for event in kernel:
        if not any(word in event.text for word in (*_ABOUT_GPU, *_ABOUT_MEMORY)):
            continue
        why = _unrelated(event, job)
        if why:
            changed[event.id] = replace(event, kind=EventKind.LOG, text="")  # of another job
            aside.append(f"{event.source}, line {event.line}: {why}")
        elif event.rank is None and (rank := _rank(event, job)) is not None:
            changed[event.id] = replace(event, rank=rank)
    if not changed:
        return transcript, ()
    events = tuple(changed.get(event.id, event) for event in transcript.events)
    notes = aside[:_SHOWN]
    if len(aside) > _SHOWN:
        notes.append(f"and {counted(len(aside) - _SHOWN, 'more line')} of the kernel log, set aside likewise")
    return replace(transcript, events=events), tuple(notes)


def _job(events: Iterable[Event]) -> _Job:
    hosts: set[str] = set()
    gpus: dict[tuple[str, str], int] = {}
    pids: dict[int, frozenset[int]] = {}
    times: list[datetime] = []
    for event in events:
        if event.host:
            hosts.add(_short(event.host))
        if (when := moment_of(event.time)) is not None:
            times.append(when)
        if event.kind is EventKind.NCCL and "busId" in event.text:
            for found in pattern(_COMM).finditer(event.text):
                host, rank, pid = _short(found["host"]), int(found["rank"]), int(found["pid"])
                hosts.add(host)
                gpus[host, _address_of(int(found["bus"], 16))] = rank
                pids[pid] = pids.get(pid, frozenset()) | {rank}
        elif event.kind is EventKind.LAUNCHER:
            for found in pattern(_BOX).finditer(event.text):
                pids[int(found["pid"])] = pids.get(int(found["pid"]), frozenset()) | {int(found["rank"])}
    zoned = bool(times) and all(when.tzinfo for when in times)
    seconds = [_seconds(when) for when in times]
    return _Job(frozenset(hosts), gpus, pids, min(seconds, default=None), max(seconds, default=None), zoned)


def _unrelated(event: Event, job: _Job) -> str:
    """Why a line of the kernel log has nothing to do with the job; "" when it may have."""
    if event.host and job.hosts and _short(event.host) not in job.hosts:
        return f"of {event.host}, where this job did not run"
    when = moment_of(event.time)
    if when is not None and job.start is not None and job.end is not None:
        time = _seconds(when)
        certain = bool(when.tzinfo) and job.zoned
        if time < job.start - (_BEFORE_S if certain else _FAR_S):
            return f"of {event.time}, before this job began"
        if time > job.end + (_AFTER_S if certain else _FAR_S):
            return f"of {event.time}, after this job had ended"
    address = _address(event.text)
    about_gpu = "SXid" not in event.text and any(word in event.text for word in _ABOUT_GPU)
    if about_gpu and address and job.gpus and not _ranks_on(event, address, job):
        return f"of the GPU at {address}, which this job did not use"
    return ""


def _rank(event: Event, job: _Job) -> int | None:
    """The one rank that the line is about; None when there is none, or several nodes have such a GPU."""
    address = _address(event.text)
    ranks = _ranks_on(event, address, job) if address and "SXid" not in event.text else frozenset()
    if len(ranks) != 1 and (found := pattern(_PID).search(event.text)) is not None:
        of_process = job.pids.get(int(next(filter(None, found.groups()))), frozenset())
        ranks = ranks & of_process if ranks else of_process
    return next(iter(ranks)) if len(ranks) == 1 else None


def _ranks_on(event: Event, address: str, job: _Job) -> frozenset[int]:
    host = _short(event.host) if event.host else ""
    return frozenset(rank for (where, at), rank in job.gpus.items() if at == address and host in ("", where))


def remarks(transcript: Transcript, explained: set[int]) -> list[str]:
    """What the driver's codes say that no finding holds, in words: one note a code and GPU."""
    counts: dict[tuple[int, str], tuple[Event, int]] = {}
    for event in transcript.events:
        if event.kind is not EventKind.KERNEL_LOG or event.quoted or event.id in explained:
            continue
        for found in pattern(_CODE).finditer(event.text):
            key = (int(found["code"]), _address(found[0]))
            first, count = counts.get(key, (event, 0))
            counts[key] = (first, count + event.count)
    notes = []
    for (code, address), (event, count) in list(counts.items())[:_CODES_SHOWN]:
        known = codes().get(code)
        meaning = (
            f"{known.meaning}; {CLASSES[known.kind]}"
            if known is not None
            else "a code without a meaning here"
        )
        times = f", {count} times" if count > 1 else ""
        where = f" at {address}" if address else ""
        notes.append(f"Xid {code}{where} ({event.source}, line {event.line}{times}): {meaning}")
    return notes


def _address(text: str) -> str:
    """The PCI address of a line, with its domain: ``0000:9d:00``; "" for none."""
    found = pattern(_ADDRESS).search(text)
    if found is None:
        return ""
    address = found[1]
    return place(address if address.count(":") == 2 else f"0:{address}")


def _address_of(bus: int) -> str:
    """NCCL's busId: domain, bus, device and function as one number."""
    return f"{bus >> 20:04x}:{bus >> 12 & 0xFF:02x}:{bus >> 4 & 0xFF:02x}"


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _seconds(when: datetime) -> float:
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
