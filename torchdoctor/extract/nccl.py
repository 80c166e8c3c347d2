"""Facts out of NCCL's errors and warnings, and out of the watchdog lines of torch's process groups.

Facts of one message (``nccl.seq``, ``nccl.last_error``, …) come from the event alone. The claims over all
ranks (``nccl.seqs_differ``, ``nccl.progress_during_timeout``, …) look at every watchdog line of the text and
are told with each event that speaks of a timeout.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text, untold
from torchdoctor.extract.nccl_ranks import GIVE_UP, Timeout, picture, timeouts_in
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "nccl.seq": "int: sequence number of the collective that timed out; torch before 1.10 prints none",
    "nccl.op": "str: its kind, as ALLREDUCE",
    "nccl.timeout_ms": "int: how long it was allowed to take",
    "nccl.error_class": "str: ncclSystemError and so on; also where torch before 1.8 prints only the words",
    "nccl.last_error": "str: the line after 'Last error'; absent when the message has none",
    "nccl.reason": "str: last error and NCCL WARN lines, harmless ones left out; absent when none is there",
    "nccl.logged": "bool: NCCL's INFO lines are in the text",
    "nccl.shm": "bool: the reason speaks of /dev/shm",
    "nccl.infiniband": "bool: the reason speaks of InfiniBand",
    "nccl.out_of_memory": "bool: the reason speaks of memory of the GPU",
    "nccl.peer_access": "bool: the reason speaks of access from GPU to GPU",
    "nccl.invalid_device": "bool: the reason speaks of a device that is not there",
    "nccl.cuda_unknown": "bool: the reason is one of CUDA's that explain nothing",
    "nccl.topology": "bool: the reason speaks of the topology description",
    "nccl.unreachable": "bool: it says that a peer cannot be reached; unknown when a peer refused or hung up",
    "nccl.refused": "bool: a peer refused the connection or closed it: its process had ended or not begun",
    "nccl.name_unknown": "bool: the reason speaks of a host's name that does not resolve",
    "nccl.open_files": "bool: the reason speaks of the limit of open files",
    "nccl.roce": "bool: the failed connection ran over RoCE, by its addresses or NCCL's list of cards, else"
    " over InfiniBand; absent where neither tells",
    "nccl.link_fault": "bool: a line tells of a network port or link that went down; unknown without one",
    "nccl.cpu_tensor": "bool: a tensor on the CPU was given to NCCL",
    "nccl.shared_gpu": "str: PCI address of the GPU that two ranks took, as nvidia-smi and lspci write it",
    "nccl.shared_gpus": "int: how many GPUs of the node are taken by two ranks or more",
    "nccl.sharing_ranks": "int: how many ranks of the node take these",
    "nccl.ranks_are_bound": "bool: several GPUs are shared, or one with an index above 0: ranks choose",
    "nccl.ranks_timed_out": "list: ranks whose watchdog gave up",
    "nccl.ranks_unseen": "bool: a rank below one that timed out prints nothing in this text",
    "nccl.all_timed_out": "bool: the watchdogs of all ranks from 0 up gave up; no other rank is shown",
    "nccl.stuck_at_start": "bool: all of them on the same one of the first collectives",
    "nccl.same_group": "bool: the compared watchdog lines name one process group; unknown before torch 2.3",
    "nccl.seqs_differ": "bool: the ranks waited at different sequence numbers",
    "nccl.ops_differ": "bool: the ranks waited in other kinds of collectives; a sum of one number is a kind",
    "nccl.numel_differ": "bool: the ranks waited in collectives of different size",
    "nccl.sizes_recorded": "bool: flight records show one call with other sizes on other ranks",
    "nccl.stacks_differ": "bool: the processes' main threads wait in different collectives or calls",
    "nccl.at_epoch_end": "bool: a rank had just ended an epoch while others still averaged gradients",
    "nccl.progress_during_timeout": "bool: a progress bar of a rank that did not time out went on meanwhile",
}

# phrase of ncclGetErrorString -> class; torch before 1.8 prints the phrase alone
_PHRASES = (
    ("remote process exited or there was a network error", "ncclRemoteError"),
    ("unhandled system error", "ncclSystemError"),
    ("unhandled cuda error", "ncclUnhandledCudaError"),
    ("internal error", "ncclInternalError"),
    ("invalid usage", "ncclInvalidUsage"),
    ("invalid argument", "ncclInvalidArgument"),
)
_CLASS = r"\bnccl(?:SystemError|UnhandledCudaError|InternalError|RemoteError|InvalidUsage|InvalidArgument)\b"
# what marks a message as NCCL's, or as one of the process group that uses it
_MARKS = (
    "NCCL", "nccl", "collective operation timeout", "Tensors must be CUDA and dense",
    "No backend type associated with device type", "no socket interface found",
)  # fmt: skip

# "%lx" of the bus's address without its separators: domain, bus (2 digits), device (2), function (1)
_DUPLICATE = (
    r"Duplicate GPU detected : rank (\d{1,6}) and rank (\d{1,6}) both on CUDA device ([0-9a-f]{1,13})\b"
)
_INDEX = r" \[(\d{1,3})\] [^\n]{0,80}$"  # "host:pid:tid [1] init.cc:795 NCCL WARN ": the current device

# NCCL WARN lines of healthy runs
_HARMLESS = (
    "Failed to open libibverbs", "Connection closed by localRank", "Cuda driver version", "GDRCOPY",
    "pfn_hsa_system_get_info failed",
)  # fmt: skip
_OF_HIP = "[FATAL ERROR]: HIP failure: "  # RCCL's own words for what HIP answered

_REASONS = (
    ("shm", ("/dev/shm", "shared memory segment", "posix_fallocate", "shm_open")),
    ("infiniband", ("ibv_", "NET/IB", "mlx5", "InfiniBand", "infiniband")),
    ("out_of_memory", ("out of memory", "CUDA calloc", "CUDA malloc", "CUDA host alloc")),
    ("peer_access", ("peer access", "peer mapping", "P2P", "cudaIpc", "mapping of buffer object")),
    ("invalid_device", ("invalid device ordinal", "invalid device")),
    ("cuda_unknown", ("unknown error", "operation not supported", "invalid argument")),
    (
        "refused",
        (
            "onnection refused",
            "onnection reset",
            "roken pipe",
            "onnection closed by",
            "closed the connection",
        ),
    ),
    ("name_unknown", ("ame or service not known", "in name resolution", "getting address info")),
    ("open_files", ("oo many open files",)),
    ("topology", ("topology", "Attribute ", "XML", "xml")),
)

_UNREACHABLE = (
    "No route to host", "onnection timed out", "etwork is unreachable", "o socket interface found",
    "o interface found", "Software caused connection abort", "Network is down", "assign requested address",
)  # fmt: skip

# NCCL of a port's events, the kernel of Mellanox cards, the switch's log
_LINK_FAULT = (
    r"Got async event : port error|NET/IB : \S{1,40}:\d+ Got async (?:fatal )?event: port error"
    r"|mlx[45]_(?:core|ib)[^\n]{0,120}(?i:link down|port down)"
)

# the GIDs of a failed connection, which hold an address of IPv4 over RoCE v2 alone
_ROCE = r"Gids?[ =:]{1,3}::ffff:\d"
# NCCL's list of cards, the one of a failed connection, and those of the channels
_CARD = r"\[(\d{1,3})\](\w{1,40}):\d{1,3}/(IB|RoCE)\b"
_ITS_CARD = r"\bhca (\w{1,40})"
_CHANNELS = r"via NET/IB/(\d{1,3})"

LIMIT = 2000  # characters of warnings that are kept
_FIRST = frozenset({0, 1, 2})  # numbers of collectives before which nothing had gone over the links


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of an NCCL error or warning, a message that gives up waiting, or a stack; nothing for others."""
    text = event.text
    if event.kind is EventKind.STACK:
        yield from _stack(event, transcript)
        return
    gives_up = any(mark in text for mark in GIVE_UP)
    if gives_up:
        found = next(iter(timeouts_in(event)), None)
        if found is not None:
            yield from _timeout(found)
    if any(mark in text for mark in _MARKS):
        yield from _error(event, transcript)
    if "Duplicate GPU detected" in text:
        yield from _shared(event, transcript)
    if gives_up or "NCCL communicator was aborted" in text or "exhausted" in text:
        yield from _ranks(event, transcript)


def _stack(event: Event, transcript: Transcript) -> Iterator[Found]:
    from torchdoctor.extract.nccl_stacks import averages, stacks_differ, wait_of

    if event.flight_record:
        yield from _record(event, transcript)
        return
    if wait_of(event) is None and not averages(event):
        return
    differ = stacks_differ(transcript)
    if differ is not None:
        yield "stacks_differ", differ


def _record(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What a flight record tells of the claims over all ranks; the log beside it is asked as well."""
    from torchdoctor.extract.flight import call_of
    from torchdoctor.extract.flight_hang import ended_loop, together

    call = call_of(event)
    if call is None:
        return
    if len(together(transcript).groups.get(call.group, ())) > 1:
        yield "same_group", True
    seen = picture(transcript)
    ended, why = ended_loop(transcript, call.group)
    if ended is None and seen.epoch_end:
        ended = True
    if ended is not None:
        yield "at_epoch_end", ended
    elif why:
        yield untold("nccl.at_epoch_end", event, why)
    if seen.progress:
        yield "progress_during_timeout", True
    else:  # a rank that prints nothing may be at work all the same
        missing = "whether this rank was at work meanwhile: neither its progress nor its stack is in the text"
        yield untold("nccl.progress_during_timeout", event, missing)


def _timeout(found: Timeout) -> Iterator[Found]:
    yield "seq", found.seq
    yield "op", found.op
    yield "timeout_ms", found.timeout_ms


def _error(event: Event, transcript: Transcript) -> Iterator[Found]:
    text = event.text
    yield "error_class", _error_class(text)
    last = _last_error(event, transcript)
    warned = _warnings(transcript)
    told_last = last if last != warned and not any(mark in (last or "") for mark in _HARMLESS) else None
    reason = " | ".join(part for part in (told_last, warned) if part)
    yield "last_error", last
    if any("NCCL INFO" in one.text for one in transcript.events):
        yield "logged", True
    yield "reason", reason or None
    told = {name: any(mark in reason for mark in marks) for name, marks in _REASONS} if reason else {}
    yield from told.items()
    unreachable = any(mark in text or mark in reason for mark in _UNREACHABLE)
    if unreachable or (told and not told["refused"]):
        yield "unreachable", unreachable
    if "Got completion " in text:
        yield _link(event, transcript)
        yield "roce", _over_roce(event, transcript)
    on_cpu = "device type cpu" in text or "must be CUDA and dense" in text
    if on_cpu or reason:
        yield "cpu_tensor", on_cpu


def _shared(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Which GPU two ranks took, and how many ranks and GPUs of this node are in the same trouble."""
    found = pattern(_DUPLICATE).search(event.text)
    if found is None:
        return
    yield "shared_gpu", _address(found[3])
    lines = _duplicates(transcript).get(event.host or "", ())
    cards = {card for _, card, _ in lines}
    ranks = {rank for pair, _, _ in lines for rank in pair}
    if lines:
        yield "shared_gpus", len(cards)
        yield "sharing_ranks", len(ranks)
        if len(cards) > 1 or any(index for _, _, index in lines):
            yield "ranks_are_bound", True
        elif len(ranks) > 2:  # all of them on the one
            yield "ranks_are_bound", False


def _address(number: str) -> str:
    digits = number.zfill(9)
    return f"{digits[:-5]}:{digits[-5:-3]}:{digits[-3:-1]}.{digits[-1]}"


@once_a_text
def _duplicates(transcript: Transcript) -> dict[str, list[tuple[tuple[str, str], str, int]]]:
    """(two ranks, GPU, index of the current device) of each such line, by the host that printed it."""
    told: dict[str, list[tuple[tuple[str, str], str, int]]] = {}
    for event in transcript.events:
        if event.quoted or "Duplicate GPU detected" not in event.text:
            continue
        for found in pattern(_DUPLICATE).finditer(event.text):
            before = event.text[max(0, found.start() - 200) : found.start()].rpartition("\n")[2]
            index = pattern(_INDEX).search(before)
            one = ((found[1], found[2]), found[3], int(index[1]) if index is not None else 0)
            told.setdefault(event.host or "", []).append(one)
    return told


def _link(event: Event, transcript: Transcript) -> Found:
    if _link_down(transcript):
        return "link_fault", True
    missing = "whether a link or port went down: the kernel log of the nodes tells"
    return untold("nccl.link_fault", event, missing)


@once_a_text
def _link_down(transcript: Transcript) -> bool:
    return any(pattern(_LINK_FAULT).search(one.text) for one in transcript.events if not one.quoted)


def _over_roce(event: Event, transcript: Transcript) -> bool | None:
    if pattern(_ROCE).search(event.text) is not None:
        return True
    cards, used = _cards(transcript)
    its = pattern(_ITS_CARD).search(event.text)
    links = {link for _, name, link in cards if its is not None and name == its[1]}
    links = links or {link for index, _, link in cards if index in used} or {link for _, _, link in cards}
    if len(links) == 1:
        return "RoCE" in links
    return None


@once_a_text
def _cards(transcript: Transcript) -> tuple[set[tuple[str, str, str]], set[str]]:
    """(number, name, kind of link) of each card in NCCL's lists, and the numbers that channels go over."""
    cards: set[tuple[str, str, str]] = set()
    used: set[str] = set()
    for one in transcript.events:
        if "NET/IB" in one.text:
            cards.update((found[1], found[2], found[3]) for found in pattern(_CARD).finditer(one.text))
            used.update(found[1] for found in pattern(_CHANNELS).finditer(one.text))
    return cards, used


def _error_class(text: str) -> str | None:
    found = pattern(_CLASS).search(text)
    if found is not None:
        return found.group()
    if "NCCL" not in text:
        return None
    return next((name for phrase, name in _PHRASES if phrase in text), None)


def _last_error(event: Event, transcript: Transcript) -> str | None:
    """The line after "Last error:", also where a logger made events of their own of the message's lines."""
    text = event.text
    at = event.id
    for _ in range(4):
        if "Last error:" in text:
            break
        following = _next(at, event, transcript)
        if following is None or not pattern(_CLASS + "|Last error:").search(following.text):
            return None
        at, text = following.id, following.text
    rest = text.partition("Last error:")[2].strip()
    if not rest:
        following = _next(at, event, transcript)
        rest = following.text.strip() if following is not None else ""
    line = rest.split("\n", 1)[0].strip()
    if not line or line.startswith(("Exception raised from", "Unknown NCCL Error")):
        return None
    return line


def _next(at: int, event: Event, transcript: Transcript) -> Event | None:
    """The next event of the same stream, when it stands on one of the next lines."""
    for other in transcript.events[at + 1 : at + 4]:
        if other.source == event.source and other.rank == event.rank:
            return other
    return None


@once_a_text
def _warnings(transcript: Transcript) -> str:
    """All different NCCL WARN messages of the text, joined."""
    messages: dict[str, None] = {}
    for event in transcript.events:
        if not event.quoted and ("NCCL WARN" in event.text or _OF_HIP in event.text):
            for line in event.text.split("\n"):
                message = line.partition("NCCL WARN")[2].strip() or line.partition(_OF_HIP)[2].strip()
                if message and not any(mark in message for mark in _HARMLESS):
                    messages[message] = None
    text = " | ".join(messages)[:LIMIT]
    return text


def _ranks(event: Event, transcript: Transcript) -> Iterator[Found]:
    seen = picture(transcript)
    if seen.ranks:
        yield "ranks_timed_out", seen.ranks
        named = {one.rank for one in transcript.events}
        yield "ranks_unseen", any(rank not in named for rank in range(max(map(int, seen.ranks))))
        everyone = 1 < len(seen.ranks) == 1 + max(map(int, seen.ranks))
        yield "all_timed_out", everyone
        first = any(one.seq in _FIRST for one in timeouts_in(event))
        yield "stuck_at_start", everyone and first and not seen.seqs_differ
    for name, claim in (
        ("same_group", seen.same_group),
        ("seqs_differ", seen.seqs_differ),
        ("ops_differ", seen.ops_differ),
        ("numel_differ", seen.numel_differ),
        ("progress_during_timeout", seen.progress),
    ):
        if claim is not None:
            yield name, claim
    if "WorkNCCL(" in event.text:
        from torchdoctor.extract.flight_hang import together

        yield "sizes_recorded", together(transcript).sizes_differ
    if "exhausted" in event.text or seen.epoch_end:
        yield "at_epoch_end", True
    elif "WorkNCCL(" in event.text:
        # other messages of this kind (gloo's) do not say enough of the ranks to deny it
        yield "at_epoch_end", False
