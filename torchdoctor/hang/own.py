"""What one process waits for by itself: input, a debugger, a file system, the GPU, its own locks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from torchdoctor.hang import procfs
from torchdoctor.hang.look import Seen
from torchdoctor.hang.sources import locks_around
from torchdoctor.hang.stacks import Stack
from torchdoctor.hang.wait import Group, Wait, at, kernel
from torchdoctor.model import Fix, Standing, counted

_DEBUGGERS: Final = ("pdb.py", "bdb.py", "ipdb/__main__.py", "IPython/core/debugger.py", "pudb/debugger.py")
_REMOTE: Final = (
    "pydevd.py",
    "debugpy/server/api.py",
    "remote_pdb.py",
    "rpdb/__init__.py",
    "web_pdb/__init__.py",
)
_ASKS: Final = re.compile(r"\b(?:input|raw_input|getpass|getpass\.getpass|prompt|confirm)\s*\(|\bstdin\b")
# so often a second somebody who waits for the interpreter's lock wakes up, at least
_AWAKE: Final = 20.0
# and who never hands it over sleeps hardly at all
_NEVER: Final = 2.0
_SYNCHRONISES: Final = re.compile(r"\.(?:item|cpu|tolist|numpy|synchronize|nonzero|wait)\s*\(|\bprint\s*\(")
_LOCKS: Final = re.compile(r"^(?:async\s+)?with\b|\.acquire\s*\(|\.join\s*\(")
# file systems whose server is elsewhere, by the heads of the kernel's functions that wait for it
_SERVERS: Final = (
    "nfs",
    "rpc_",
    "fuse_",
    "request_wait_answer",
    "ceph_",
    "cl_",
    "ll_",
    "ldlm_",
    "cifs_",
    "smb",
    "v9fs_",
    "gpfs",
)


def stdin(one: Seen, _: Group) -> Iterator[Wait]:
    """Reads descriptor 0, or stands in a line that asks a person."""
    main, task = one.main, one.second.main
    if task is None or task.state not in "SDT" or _debugger(one) is not None:
        return
    reads = task.call == "read" and task.argument == 0
    frame = main.inner if main is not None else None
    asks = frame is not None and bool(_ASKS.search(frame.code)) and not frame.package
    stopped = task.state == "T" and "tty" in procfs.file_of(one.pid, 0)
    if not (reads or (asks and task.call in ("", "read", "poll", "select", "pselect6"))) and not (
        stopped and asks
    ):
        return
    what = procfs.file_of(one.pid, 0) or "its standard input"
    says = [f"process {one.pid} reads {what} ({kernel(one)})"]
    if main is not None:
        says.append(f"its main thread stands at {at(main)}")
    yield Wait(
        "hang-stdin", one.pid, tuple(says), main.own if main is not None else None,
        (Fix("Give it what it asks for, or start it so that it does not ask: an option for the answer, or "
             "an empty input."),
         Fix("In a job without a terminal let it fail at once instead of "
             "waiting:", "python train.py < /dev/null")),
    )  # fmt: skip


def _debugger(one: Seen) -> Stack | None:
    for stack in one.after.stacks:
        if any(stack.has("/" + name) for name in _DEBUGGERS) and one.same(stack):
            return stack
        if any(stack.has("/" + name) for name in _REMOTE) and stack is one.main and one.same(stack):
            return stack
    return None


def debugger(one: Seen, _: Group) -> Iterator[Wait]:
    """A thread stands in pdb or its kin, or waits for a client to attach."""
    stack = _debugger(one)
    if stack is None:
        return
    own = next(
        (
            frame
            for frame in reversed(stack.frames)
            if not frame.package and not frame.file.endswith(_DEBUGGERS)
        ),
        None,
    )
    says = [f"process {one.pid} stands in a debugger ({kernel(one)})"]
    if own is not None:
        says.append(f"it was called at {own.file}:{own.line} in {own.function}: {own.code}")
    yield Wait(
        "hang-debugger", one.pid, tuple(says), own,
        (Fix("Take the breakpoint out (breakpoint(), pdb.set_trace(), debugpy.wait_for_client()), or "
             "switch all off for one run:",
             "PYTHONBREAKPOINT=0 python train.py"),),
    )  # fmt: skip


def file_system(one: Seen, _: Group) -> Iterator[Wait]:
    """A thread in uninterruptible sleep in both looks, with the file and the mount that it waits for."""
    before = {task.tid for task in one.first.tasks if task.state == "D"}
    stuck = [task for task in one.second.tasks if task.state == "D" and task.tid in before]
    for task in stuck[:1]:
        path = (
            procfs.file_of(one.pid, task.argument) if task.argument >= 0 and "fork" not in task.call else ""
        )
        says = [f"thread {task.tid} of process {one.pid} is in uninterruptible sleep: state D"
                + (f", in {task.call}" if task.call else "") + (
                    f" ({task.waits_in})" if task.waits_in else "")]  # fmt: skip
        fixes = [Fix("No signal ends it: it goes on when the server answers. Look at the server, the "
                     "network and the kernel's log.",
                     "dmesg --ctime | tail -40", "needs-root")]  # fmt: skip
        sure = bool(path.startswith("/")) or task.waits_in.startswith(_SERVERS)
        if path.startswith("/"):
            place, kind = procfs.mount_of(path)
            says.append(f"it waits for {path}" + (f", on {place} ({kind})" if place else ""))
        elif task.call in ("vfork", "clone", "clone3", "fork") or "vfork" in task.waits_in:
            says.append("it waits for a child of vfork, which has neither ended nor begun another program")
            fixes.insert(
                0,
                Fix(
                    "Look at the child: ps shows what it waits for.",
                    f"ps -o pid,stat,wchan,cmd --ppid {one.pid}",
                ),
            )
            sure = True
        elif not task.call:
            says.append("which file it is may not be read: run it as the process's user, or as root")
        frame = one.main.own if one.main is not None else None
        if one.main is not None:
            says.append(f"its main thread stands at {at(one.main)}")
        yield Wait(
            "hang-file-system", one.pid, tuple(says), frame, tuple(fixes),
            Standing.CONFIRMED if sure else Standing.POSSIBLE,
        )  # fmt: skip


def lock_order(one: Seen, group: Group) -> Iterator[Wait]:
    """Two threads at lines that take a lock, none of which moves; the sources tell what each holds."""
    if not one.still or len(one.after.stacks) < 2:
        return
    stuck: list[tuple[Stack, tuple[str, ...], str]] = []
    for stack in one.after.stacks:
        task, frame = one.task(stack), _asker(stack)
        if task is None or task.state != "S" or frame is None or frame.line is None or stack.holds_gil:
            continue
        if task.call not in ("", "futex") or not _LOCKS.search(frame.code):
            continue
        held, wanted = locks_around(frame.file, frame.line)
        if wanted or ".acquire" in frame.code:
            stuck.append((stack, held, wanted))
    circle = [
        (mine, other) for mine in stuck for other in stuck
        if mine is not other and mine[2] in other[1] and other[2] in mine[1]
    ]  # fmt: skip
    waiting = {stack.tid for stack, _, _ in stuck}
    joins = {stack.tid for stack in one.after.stacks if stack.has("/threading.py", "join")}
    if len(stuck) < 2 or not (circle or all(stack.tid in waiting | joins for stack in one.after.stacks)):
        return  # a thread that does something else may hold the lock, and give it up
    shown = circle[0] if circle else tuple(stuck[:2])
    says = (
        ["threads wait for each other's locks"]
        if circle
        else ["several threads wait for locks, and none moves"]
    )
    for stack, held, _ in shown:
        words = f"thread {stack.name or stack.tid} waits at {at(stack)}"
        says.append(words + (f", holding {', '.join(held)}" if held else ""))
    yield Wait(
        "hang-lock-order", one.pid, tuple(says), shown[0][0].own,
        (Fix("Take the locks in the same order everywhere, or one lock for both. Which threads hold what, "
             "by hand:",
             f"py-spy dump --locals --pid {one.pid}"),),
        Standing.CONFIRMED if circle else Standing.POSSIBLE,
    )  # fmt: skip


def _asker(stack: Stack):  # type: ignore[no-untyped-def]
    """The frame that asked for the lock: above the ones of threading.py."""
    return next((frame for frame in reversed(stack.frames) if not frame.file.endswith("/threading.py")), None)


def gil(one: Seen, _: Group) -> Iterator[Wait]:
    """The holder of the interpreter's lock sleeps in native code at the same line, and others want it."""
    for stack in one.after.stacks:
        task = one.task(stack)
        held_before = any(earlier.tid == stack.tid and earlier.holds_gil for earlier in one.before.stacks)
        if (
            not stack.holds_gil
            or not held_before
            or task is None
            or not one.same(stack)
            or len(one.after.stacks) < 2
        ):
            continue
        if task.state not in "SDR" or (task.state == "R" and not _keeps_lock(one, stack)):
            continue  # stopped, on and off, or Python's own code, which gives the lock up when it is asked
        sleeps = task.state in "SD"
        says = [
            f"thread {stack.name or stack.tid} of process {one.pid} holds the interpreter's lock in "
            "native code "
            + (f"and sleeps there ({task.call or task.waits_in})" if sleeps else "and computes there"),
            f"it stands at {at(stack)}",
            f"{counted(len(one.after.stacks) - 1, 'other thread')} of Python cannot run",
        ]
        yield Wait(
            "hang-gil", one.pid, tuple(says), stack.own,
            (Fix("Release the lock around the native call: py::gil_scoped_release, "
                 "Py_BEGIN_ALLOW_THREADS, with nogil: in Cython, "
                 "ctypes.CDLL instead of ctypes.PyDLL."),),
            Standing.CONFIRMED if sleeps else Standing.POSSIBLE,
            decide_with=f"py-spy dump --native --pid {one.pid}",
        )  # fmt: skip
        return


def _keeps_lock(one: Seen, holder: Stack) -> bool:
    """Does a thread that computes keep the lock from one that asks for it?

    Who waits for the lock sleeps in a futex and wakes up at each switch interval (5 ms) to ask again. Code of
    Python hands it over then; native code does not, and what a thread asks for it never gets.
    """
    calls = {task.tid: task.call for task in one.first.tasks}
    asked = any(
        task.tid != holder.tid
        and "futex" in (task.call, calls.get(task.tid))
        and one.pauses(task.tid) >= _AWAKE
        for task in map(one.task, one.after.stacks)
        if task is not None
    )
    return asked and one.busy(holder.tid) >= 0.3 and one.pauses(holder.tid) < _NEVER


def on_gpu(one: Seen) -> Standing | None:
    """Does the main thread wait for the GPU in both looks? Confirmed by torch's frame, possible by a line."""
    main = one.main
    if main is None or not one.same(main) or not procfs.maps(one.pid, "libcuda.so"):
        return None
    frame = main.inner
    if frame is None:
        return None
    named = main.has("torch/cuda/__init__.py", "synchronize") or main.has(
        "torch/cuda/streams.py", "synchronize"
    )
    own = main.own
    asks = own is not None and own is frame and bool(_SYNCHRONISES.search(own.code))
    devices = any(path.startswith("/dev/nvidia") for path in procfs.open_files(one.pid).values())
    if not (named or asks) or not devices:
        return None
    return Standing.CONFIRMED if named else Standing.POSSIBLE


def cuda_sync(one: Seen, _: Group) -> Iterator[Wait]:
    """The main thread waits for the GPU at a line that synchronises, in both looks."""
    standing, main = on_gpu(one), one.main
    if standing is None or main is None:
        return
    yield Wait(
        "hang-cuda-sync", one.pid,
        (f"process {one.pid} waits for its GPU at "
         f"{at(main)}", f"its main thread did not move ({kernel(one)})"),
        main.own,
        (Fix("Find the kernel that does not end: run with the blocking launch, and see which line stands "
             "still.",
             "CUDA_LAUNCH_BLOCKING=1 python train.py"),
         Fix("Look whether the GPU works or stands, and whether the driver "
             "complains:", "nvidia-smi; dmesg --ctime | grep -i xid")),
        standing,
    )  # fmt: skip
