"""Facts out of the frames of an exception that was raised while a DataLoader fetched samples."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.extract.progress import advances
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.patterns import pattern

MOST_EVENTS = 500  # what a long log shows below a stack is of other ranks and other days

FACTS: dict[str, str] = {
    "loader.fetching": "bool: a DataLoader was fetching samples, in this process or in a worker",
    "loader.collating": "bool: samples were put together to a batch; unknown without frames",
    "loader.by_sample_index": "bool: the line that raised takes an item by the sample's index",
    "loader.indexed": "text: what that line takes the item from, an attribute of the data set",
    "loader.seen_waiting": "bool: a stack was taken while it waited; unknown after a Ctrl-C",
    "loader.moves_on": "bool: counts below the stack rise, so that the program goes on",
    "loader.stuck_child": "bool: this is the stack of a forked child that waits for a lock",
    "loader.stuck_elsewhere": "bool: not this stack but another is of a forked child that waits for a lock",
    "loader.child_waits_for_lock": "bool: a forked child's stack ends in a lock; unknown if none does",
}

# what the native top of a stack shows when a forked child waits for threads or locks that it does not have
_LOCKS = (
    "GOMP_", "gomp_", "__kmp", "kmp_", "pthread_mutex_lock", "pthread_cond_wait", "__lll_lock_wait", "futex",
    "cv::", "blas_thread", "acquire (threading", "lock_wait",
)  # fmt: skip
_FORKED = ("popen_fork", "_worker_loop", "forkserver")

# what default_collate and transformers' collators say themselves
_OF_BATCH = ("each element in list of batch", "you should probably activate truncation and/or padding")
_FETCHING = ("utils/data/_utils/fetch.py", "utils/data/dataloader.py", "utils/data/_utils/worker.py")
# self.items[idx], df.iloc[index], data[i], paths[self.order[item]], rows[idx // 4]
_BY_INDEX = r"\[[^\[\]]{0,40}\b(?:idx|index|indices|ind|i|item|n|key|sample_id|id|ix)\b[^\[\]]{0,20}\]"
_INDEXED = rf"\b(self(?:\.\w{{1,60}}){{1,3}}){_BY_INDEX}"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one exception or stack with frames; nothing for an event without any."""
    if event.kind is not EventKind.EXCEPTION:
        yield "seen_waiting", True
        yield "moves_on", _moves_on(event, transcript)
    if event.kind is EventKind.STACK:
        own = _stuck_child(event)
        anywhere = own or any(_stuck_child(one) for one in transcript.events)
        yield "stuck_child", own
        yield "stuck_elsewhere", anywhere and not own
        if anywhere:
            yield "child_waits_for_lock", True
    collating = any("collate" in f"{frame.file} {frame.function}" for frame in event.frames)
    collating = collating or any(words in event.text for words in _OF_BATCH)
    if not event.frames:
        if collating:
            yield "collating", True
        return
    files = [frame.file.replace("\\", "/") for frame in event.frames]
    frames = [*event.frames]
    for relation in event.relations:  # what a worker's exception wraps says where it was raised
        frames += transcript.events[relation.event].frames
    fetching = any(mark in file for file in files for mark in _FETCHING)
    yield "fetching", fetching
    yield "collating", collating or fetching
    sample = _sample_frame(frames)
    if sample is not None and sample.code:
        by_index = sample is _last_own(frames) and pattern(_BY_INDEX).search(sample.code) is not None
        yield "by_sample_index", by_index
        named = pattern(_INDEXED).search(sample.code) if by_index else None
        yield "indexed", named[1] if named is not None else None


def _moves_on(event: Event, transcript: Transcript) -> bool:
    """Do counts below a stack rise? Then the wait that it shows is a moment of the run, and no hang."""
    if len(transcript.events) > MOST_EVENTS:
        return False
    below = (one for one in transcript.events if one.source == event.source and one.line > event.end_line)
    return advances(line for one in below for line in one.text.split("\n"))


def _stuck_child(event: Event) -> bool:
    if event.kind is not EventKind.STACK:
        return False
    places = event.text + " ".join(f"{frame.file} {frame.function}" for frame in event.frames)
    return any(mark in places for mark in _LOCKS) and any(mark in places for mark in _FORKED)


def _sample_frame(frames: list[Frame]) -> Frame | None:
    """The innermost __getitem__ that is the user's own."""
    own = [frame for frame in frames if frame.function.endswith("__getitem__") and not frame.package]
    return own[-1] if own else None


def _last_own(frames: list[Frame]) -> Frame | None:
    own = [frame for frame in frames if not frame.package]
    return own[-1] if own else None
