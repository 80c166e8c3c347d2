"""Whether a wait at the rendezvous store was that for the ranks to meet, or one in the middle of a run.

And which ranks said that they come to it: Lightning's processes announce themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text, untold
from torchdoctor.extract.progress import is_step
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "store.waits_for": "str: what it waited for at the store; 'the ranks' or 'something later'; unknown "
    "from a line of the socket alone",
    "store.elsewhere": "bool: the address that was asked is another machine's, or a name; not this one's own",
    "store.too_many": "bool: more processes came to the store than the world size says",
    "store.in_file": "bool: the ranks were to meet in a file, init_method='file://…'",
    "store.file": "str: the path of that file",
    "store.url": "str: the address that was asked, where an init_method or an option of the text gives it: tcp://…",
    "store.ranks_absent": "int: how many ranks did not announce themselves where others, with rank 0, did it "
    "more than once and the ranks did not meet",
    "store.ranks_waited": "int: ranks that had not announced themselves when the text ends, where rank 0 had",
    "store.met_anyway": "bool: after the port was refused a collective ran; who listens on it is of this job",
}

# the line of the socket stands under every wait at the store: the meeting of the ranks, a barrier of the
# launcher at the end, the id of a communicator that is made late
_SOCKET = "waitForInput: "
# what rank 0 puts into the store at the first collective; init_process_group had returned on this rank
_NCCL_ID = "ncclUniqueId from ["
_NOT_STATIC = "master_addr is only used for static rdzv_backend"  # torchrun, before anything can fail
_LINE_CHARS = 2000
_COUNTS = r"\(world_size=(?P<wanted>\d{1,6}), (?:worker_count|num_workers_joined)=(?P<joined>\d{1,6})"
_CLIENTS = r"\b(?P<joined>\d{1,6})/(?P<wanted>\d{1,6}) clients joined"
_ASKED = r"(?:connect to (?:any network address of )?\(|validate to host )(?P<host>[^\s,]{1,120})"
_ASKED_PORT = r"[^\d]{1,3}(?P<port>\d{1,5})"
# an init_method, an option or a message of the meeting in the same line; without a path where it is joined
_FILE = r"""\bfile:(?://)?(?P<path>/[\w./~@%+-]{2,200}|[A-Za-z]:/[\w./~@%+-]{2,200})?(?=["'\s),]|$)"""
_MEETING = ("init_method", "init_process_group", "dist_url", "dist-url", "istributed init", "rendezvous")
# PyTorch Lightning: "initializing ddp: GLOBAL_RANK: 1, MEMBER: 2/8", behind the head of a logger
_ANNOUNCES = r"(?P<head>[^\n]{0,200})GLOBAL_RANK: (?P<rank>\d{1,6}), MEMBER: \d{1,6}/(?P<world>\d{1,6})"
_MET = " processes registered. Starting"
_REFUSED = "The server socket has failed to "
_COLLECTIVES = frozenset((
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "barrier", "broadcast",
    "broadcast_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "gather", "scatter",
    "all_to_all", "all_to_all_single", "_verify_param_shape_across_processes",
))  # fmt: skip
_OWN = ("127.", "localhost", "::1", "0.0.0.0")
_STARTING = (
    "init_process_group", "_rendezvous_helper", "_create_c10d_store", "rendezvous.py", "rendezvous_handler",
    "clients joined", "store based barrier", "DistStoreError", "DistNetworkError",
)  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What an event waits for, and who came. Other messages of the store speak of the start themselves."""
    counts = pattern(_COUNTS).search(event.text) or pattern(_CLIENTS).search(event.text)
    if counts is not None:
        yield "too_many", int(counts["joined"]) > int(counts["wanted"])
    asked = pattern(_ASKED).search(event.text)
    if asked is not None:
        yield "elsewhere", not asked["host"].lstrip("[").startswith(_OWN)
        port = pattern(_ASKED_PORT).match(event.text, asked.end())
        url = f"tcp://{asked['host']}:{port['port']}" if port is not None else ""
        if url and any(url in line for line in _lines(transcript)):
            yield "url", url
    file = _file(transcript)
    if file is not None:
        yield "in_file", True
        if file:
            yield "file", file
    if _met_anyway(transcript):
        yield "met_anyway", True
    absent, twice = _ranks_absent(transcript)
    if absent:
        yield ("ranks_absent" if twice else "ranks_waited"), absent
    if _NOT_STATIC in event.text:
        yield untold(
            "store.waits_for", event, "what failed: only how the launcher was started is in the text"
        )
        return
    if _NCCL_ID in event.text:
        yield "waits_for", "something later"
        return
    if _SOCKET not in event.text:
        yield "waits_for", "the ranks"
        return
    if any(is_step(other.text) for other in transcript.events[: event.id]):
        yield "waits_for", "something later"
    elif any(_names_start(other) for other in transcript.events):
        yield "waits_for", "the ranks"
    else:
        missing = "what the process waited for: neither its stack nor the exception is in the text"
        yield untold("store.waits_for", event, missing)


def _lines(transcript: Transcript) -> Iterator[str]:
    """The texts, and the lines of source that the frames show."""
    for event in transcript.events:
        yield event.text
        yield from (frame.code for frame in event.frames if frame.code)


@once_a_text
def _file(transcript: Transcript) -> str | None:
    """The file in which the ranks were to meet; "" where its name is not shown, None where it is no file."""
    found = None
    for line in _lines(transcript):
        if "file:" in line and any(mark in line for mark in _MEETING):
            shown = pattern(_FILE).search(line[:_LINE_CHARS])
            found = (shown["path"] or found or "") if shown is not None else found
    return found


@once_a_text
def _ranks_absent(transcript: Transcript) -> tuple[int, bool]:
    """How many ranks of one start never came, and whether rank 0 came twice; 0 where they met or it ended.

    A node's own log holds its ranks alone, once for each start; rank 0 is on one node only.
    """
    shown: Counter[tuple[str, int]] = Counter()
    world, ended = 0, False
    for event in transcript.events:
        if event.quoted:
            continue
        if "GLOBAL_RANK: " in event.text:
            for found in pattern(_ANNOUNCES).finditer(event.text):
                # loggers of several forms may say it, each once
                head = "".join(one for one in found["head"] if not one.isdigit())
                shown[head, int(found["rank"])] += 1
                world = int(found["world"])
        elif _MET in event.text or event.kind is EventKind.LAUNCHER or is_step(event.text):
            shown.clear()
        elif event.kind is EventKind.EXCEPTION and shown:
            ended = True
            break  # what comes now is another start
    first = [count for (_, rank), count in shown.items() if rank == 0]
    twice = any(count > 1 for count in first)
    if not first or (ended and not twice):
        return 0, False
    return max(0, world - len({rank for _, rank in shown})), twice


@once_a_text
def _met_anyway(transcript: Transcript) -> bool:
    """Does a collective fail below the refusal of the port? A group of ranks had been made then."""
    refused = False
    for event in transcript.events:
        if not event.quoted and _REFUSED in event.text:
            refused = True
        elif refused and event.frames and event.kind is EventKind.EXCEPTION:
            for frame in event.frames:
                if frame.package == "torch" and frame.function in _COLLECTIVES:
                    return True
    return False


def _names_start(event: Event) -> bool:
    places = (event.text, event.type or "", *(frame.function or "" for frame in event.frames))
    return any(mark in place for mark in _STARTING for place in places)
