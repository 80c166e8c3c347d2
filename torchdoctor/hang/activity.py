"""What is no hang: work that goes on slowly, and services that wait for requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from torchdoctor.hang.look import WORKING_SHARE, Seen
from torchdoctor.hang.wait import Group, Wait, at, kernel

_SERVING: Final = (
    "socketserver.py",
    "asyncio/base_events.py",
    "asyncio/unix_events.py",
    "selectors.py",
    "uvicorn/server.py",
    "gunicorn/arbiter.py",
    "gunicorn/workers/",
    "werkzeug/serving.py",
    "tornado/platform/asyncio.py",
    "grpc/_server.py",
    "zmq/sugar/poll.py",
    "http/server.py",
    "wsgiref/simple_server.py",
    "multiprocessing/managers.py",
    "multiprocessing/forkserver.py",
    "multiprocessing/resource_tracker.py",
    "concurrent/futures/thread.py",
    "ipykernel/kernelapp.py",
    "elastic/agent/server/api.py",
    "torch/_inductor/compile_worker",
)
_WAITS: Final = (
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "accept",
    "accept4",
    "recvfrom",
    "read",
)
_SLEEPS: Final = re.compile(
    r"\bsleep\s*\(|\.wait\s*\(|\bpause\s*\(|\.get\s*\(|\.accept\s*\(|\.recv\w*\s*\(|\.poll\s*\(|\.select\s*\("
)


def slow(one: Seen, group: Group) -> Iterator[Wait]:
    """Its stack moved, or it used a processor: it works."""
    main = one.main
    moved = main is not None and not one.same(main)
    share = one.busy() + sum(other.busy() for other in group.below(one))
    if not moved and share < WORKING_SHARE:
        return
    if not moved and main is None and one.second.state != "R" and share < WORKING_SHARE:
        return
    what = "its stack moved between the two looks" if moved else "it stands at one line and computes there"
    says = [f"process {one.pid} works: {what}; it used {100 * share:.0f} % of a processor"]
    if main is not None:
        says.append(f"it stands at {at(main)}")
    yield Wait("hang-slow", one.pid, tuple(says), main.own if main is not None else None)


def idle(one: Seen, _: Group) -> Iterator[Wait]:
    """Its main thread waits where services wait: in a loop over connections, a timer, a queue."""
    main, task = one.main, one.second.main
    if task is None or task.state != "S" or one.busy() >= WORKING_SHARE:
        return
    if main is None:
        return
    frame = main.inner
    serving = any(part in item.file.replace("\\", "/") for item in main.frames for part in _SERVING)
    waits = task.call in _WAITS or (not task.call and "poll" in task.waits_in)
    sleeps = frame is not None and (task.call == "clock_nanosleep" or "nanosleep" in task.waits_in)
    asked = frame is not None and bool(_SLEEPS.search(frame.code)) and task.call != "read"
    if not ((serving and (waits or sleeps or task.call == "futex")) or sleeps or (asked and waits)):
        return
    yield Wait(
        "hang-idle",
        one.pid,
        (
            f"process {one.pid} waits for requests or for time to pass ({kernel(one)})",
            f"it stands at {at(main)}",
        ),
        main.own,
    )
