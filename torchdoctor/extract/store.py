"""Whether a wait at the rendezvous store was that for the ranks to meet, or one in the middle of a run."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, untold
from torchdoctor.extract.progress import is_step
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "store.waits_for": "str: what it waited for at the store; 'the ranks' or 'something later', unknown "
    "from a line of the socket alone",
    "store.elsewhere": "bool: the address that was asked is another machine's, or a name; not this one's own",
    "store.too_many": "bool: more processes came to the store than the world size says",
}

# the line of the socket stands under every wait at the store: the meeting of the ranks, a barrier of the
# launcher at the end, the id of a communicator that is made late
_SOCKET = "waitForInput: "
# what rank 0 puts into the store at the first collective; init_process_group had returned on this rank
_NCCL_ID = "ncclUniqueId from ["
_COUNTS = r"\(world_size=(?P<wanted>\d{1,6}), (?:worker_count|num_workers_joined)=(?P<joined>\d{1,6})"
_ASKED = r"(?:connect to (?:any network address of )?\(|validate to host )(?P<host>[^\s,]{1,120})"
_OWN = ("127.", "localhost", "::1", "0.0.0.0")
_STARTING = (
    "init_process_group", "_rendezvous_helper", "_create_c10d_store", "rendezvous.py", "rendezvous_handler",
    "clients joined", "store based barrier", "DistStoreError", "DistNetworkError",
)  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """What an event waits for, and who came. Other messages of the store speak of the start themselves."""
    counts = pattern(_COUNTS).search(event.text)
    yield "too_many", counts is not None and int(counts["joined"]) > int(counts["wanted"])
    asked = pattern(_ASKED).search(event.text)
    if asked is not None:
        yield "elsewhere", not asked["host"].lstrip("[").startswith(_OWN)
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


def _names_start(event: Event) -> bool:
    places = (event.text, event.type or "", *(frame.function or "" for frame in event.frames))
    return any(mark in place for mark in _STARTING for place in places)
