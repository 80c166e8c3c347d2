"""Worker processes: a loader that waits for one, and children that were forked while threads ran."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.hang import procfs
from torchdoctor.hang.look import WORKING_SHARE, Seen
from torchdoctor.hang.stacks import Stack
from torchdoctor.hang.wait import Group, Wait, at, kernel
from torchdoctor.model import Fix, Standing, counted

_LOADER = "utils/data/dataloader.py"
_WORKER = "utils/data/_utils/worker.py"
# a worker that waits for work, or for room in the queue, is well
_ASKS_FOR_WORK = (
    "multiprocessing/queues.py",
    "multiprocessing/connection.py",
    "multiprocessing/synchronize.py",
    "selectors.py",
)


def loader(one: Seen, group: Group) -> Iterator[Wait]:
    """The main thread waits in a DataLoader: which of its workers does not deliver, and why."""
    main = one.main
    if main is None or not any(
        main.has(_LOADER, name) for name in ("_try_get_data", "_get_data", "_try_get_batch")
    ):
        return
    if not one.same(main):
        return
    workers = [other for other in group.below(one) if _is_worker(other, one)]
    says = [f"process {one.pid} waits in a DataLoader at {at(main)}"]
    told = list(_told_of(workers))
    frame = main.own
    stuck = [
        other
        for other in workers
        if other.main is not None
        and not _asks_for_work(other.main)
        and other.same(other.main)
        and other.busy() < WORKING_SHARE
    ]
    if stuck and stuck[0].main is not None:
        frame = stuck[0].main.own or frame
    if any(_forked_into_lock(other, one) for other in workers):
        return  # told as a fork after threads, which is the cause
    lost = any(other.second.state in "ZTt" or other.ended for other in workers)
    working = [
        other for other in workers if other not in stuck and other.main is not None and not _idles(other)
    ]
    if working and not lost and len(stuck) < len(workers) and not any(other.still for other in stuck):
        return  # slow, and told so
    yield Wait(
        "dataloader-hang", one.pid,
        (told[0] if told else "none of its workers is alive", *says, *told[1:8]), frame,
        (Fix("Let it fail instead of hanging, with the name of what it waits for: DataLoader(..., "
             "timeout=120)."),
         Fix("See what the dataset does in the main process: DataLoader(..., num_workers=0).")),
        Standing.CONFIRMED if told else Standing.POSSIBLE,
        decide_with=f"py-spy dump --pid {stuck[0].pid}" if stuck else None,
    )  # fmt: skip


def _is_worker(other: Seen, loader: Seen) -> bool:
    """By its stack, by the name that torch gives it, or as a dead child of the same program."""
    if other.main is not None and other.main.has(_WORKER):
        return True
    return other.second.name.startswith("pt_data_worker") or (
        other.second.state == "Z"
        and other.second.parent == loader.pid
        and other.second.name in (loader.second.name, "pt_data_worker")
    )


def _told_of(workers: list[Seen]) -> Iterator[str]:
    """Each worker that is not merely waiting for work, the worst first."""
    for other in workers:
        if other.second.state == "Z" or other.ended:
            yield f"worker {other.pid} is dead"
    for other in workers:
        if other.second.state in "Tt":
            yield (
                f"worker {other.pid} is stopped (state {other.second.state}): kill -CONT {other.pid} "
                "lets it go on"
            )
    for other in workers:
        if _cannot_send(other):
            yield (
                f"worker {other.pid} cannot deliver what it has made: the thread of its queue stands in "
                "a write"
            )
    for other in workers:
        main = other.main
        if other.second.state in "ZTt" or main is None or _asks_for_work(main):
            continue
        task = other.second.main
        reading = task is not None and task.call in (
            "read",
            "pread64",
            "readv",
            "openat",
            "newfstatat",
            "recvfrom",
            "connect",
        )
        path = procfs.file_of(other.pid, task.argument) if reading and task is not None else ""
        doing = "stands" if other.same(main) else "works, slowly,"
        yield f"worker {other.pid} {doing} at {at(main)} ({kernel(other)}" + (
            f", of {path})" if path else ")"
        )
    idle = [other for other in workers if other.main is not None and _asks_for_work(other.main)]
    if idle:
        yield f"{len(idle)} of {counted(len(workers), 'worker')} wait for work"


def _cannot_send(other: Seen) -> bool:
    """The queue is full and nobody reads it: its feeder thread is in a write in both looks."""
    return any(
        stack.has("multiprocessing/queues.py", "_feed")
        and stack.has("multiprocessing/connection.py", "_send")
        and other.same(stack)
        for stack in other.after.stacks
    )


def _idles(other: Seen) -> bool:
    return other.main is not None and _asks_for_work(other.main) and other.same(other.main)


def _asks_for_work(stack: Stack) -> bool:
    """Its innermost frames are those of a queue, below the loop of the worker and nothing of the dataset."""
    if stack.has("multiprocessing/queues.py", "_feed"):
        return False
    inner = stack.inner
    if inner is None:
        return False
    file = inner.file.replace("\\", "/")
    return file.endswith(_ASKS_FOR_WORK) and not any(
        not frame.package and not frame.file.endswith(_ASKS_FOR_WORK) for frame in stack.frames[-4:]
    )


def fork(one: Seen, group: Group) -> Iterator[Wait]:
    """A child that was forked, and waits for a lock or for threads that did not come along."""
    parent = group.parent(one)
    if parent is None or not _forked_into_lock(one, parent):
        return
    main = one.main
    threads = len(parent.second.tasks)
    says = [
        f"process {one.pid} was forked from {parent.pid}, which has {counted(threads, 'thread')}, and "
        "waits for a "
        "lock that nobody can "
        f"release ({kernel(one)})",
    ]
    if main is not None:
        says.append(f"it stands at {at(main)}")
    if parent.main is not None:
        says.append(f"its parent waits at {at(parent.main)}")
    yield Wait(
        "multiprocess-fork-hang", one.pid, tuple(says), main.own if main is not None else None,
        (Fix("Start the children without inheriting locks and threads: "
             "multiprocessing.set_start_method('spawn') or 'forkserver', "
             "DataLoader(..., multiprocessing_context='forkserver')."),
         Fix("Or start them before threads, OpenMP and CUDA are in use: torch.set_num_threads(1) before "
             "the fork.")),
        decide_with=f"py-spy dump --native --pid {one.pid}",
    )  # fmt: skip


def _forked_into_lock(one: Seen, parent: Seen) -> bool:
    """Same program as its parent, asleep on a futex in both looks, and not in a wait of Python's own."""
    if not one.second.command or one.second.command != parent.second.command or one.second.state == "Z":
        return False
    task, main = one.second.main, one.main
    if task is None or task.state != "S" or one.busy() > 0.05:
        return False
    if task.call != "futex" and "futex" not in task.waits_in:
        return False
    if main is None:
        return False
    forked = (
        any(main.has(f"multiprocessing/{name}") for name in ("popen_fork.py",)) or len(one.second.tasks) == 1
    )
    inner = main.inner
    if inner is None or not one.same(main) or not forked or _asks_for_work(main):
        return False
    if inner.file.endswith(("/threading.py", "/queue.py", "/concurrent/futures/thread.py")):
        # a thread of its own may answer; where there is none, nobody can
        return len(one.second.tasks) == 1
    return True
