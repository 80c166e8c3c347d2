"""Imports torch once, without touching a GPU, and forks a process for each program it is asked to run.

Called as ``python forker.py SOCKET``. Each connection asks for one program with a line of JSON: argv (a
program of Python and its arguments), stdout and stderr (files). The answer is a line when it has begun,
{"pid": n}, and one when it has ended, {"exit": n} or {"signal": n}. When the connection is closed before,
or the caller's own, which is the first of all, the program's process group is killed. The group is killed at
its end too, so that nothing of it stays. Standard library and torch; Python 3.7 or later.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import runpy
import selectors
import signal
import socket
import sys

DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of linux/prctl.h
POLL_S = 0.02
LINE_LIMIT = 1 << 16


class Running:
    """A forked program and the connection that waits for it."""

    def __init__(self, pid: int, wire: socket.socket) -> None:
        self.pid = pid
        self.wire = wire

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def ended(self) -> bool:
        """Has it ended? Its group is killed before its number can be given away; then it is reaped."""
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        self.kill()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            say(self.wire, {"signal": os.WTERMSIG(status)})
        else:
            say(self.wire, {"exit": os.WEXITSTATUS(status)})
        return True


def say(wire: socket.socket, record: dict[str, int]) -> None:
    with contextlib.suppress(OSError):  # when nobody waits any more
        wire.sendall((json.dumps(record) + "\n").encode("ascii"))


def become(asked: dict[str, object], descriptors: list[int]) -> None:
    """In the forked process: everything of the parent's left behind, then the program; never returns."""
    code = 1
    try:
        os.setsid()
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        for descriptor in descriptors:
            os.close(descriptor)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number, name in ((1, "stdout"), (2, "stderr")):
            target = os.open(str(asked[name]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(target, number)
            os.close(target)
        argv = asked["argv"]
        assert isinstance(argv, list)
        sys.argv = [str(word) for word in argv]
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


class Server:
    """The loop: connections, requests, ends."""

    def __init__(self, path: str) -> None:
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.door.bind(path)
        self.door.listen(64)
        self.watch = selectors.DefaultSelector()
        self.watch.register(self.door, selectors.EVENT_READ)
        self.caller: socket.socket | None = None
        self.running: list[Running] = []

    def loop(self) -> None:
        while True:
            for key, _ in self.watch.select(POLL_S if self.running else None):
                if key.fileobj is self.door:
                    self.admit()
                elif isinstance(key.fileobj, socket.socket) and not self.listen(key.fileobj):
                    return
            self.running = [one for one in self.running if not one.ended()]

    def admit(self) -> None:
        wire, _ = self.door.accept()
        if self.caller is None:
            self.caller = wire
        self.watch.register(wire, selectors.EVENT_READ)

    def listen(self, wire: socket.socket) -> bool:
        """A request, or the end of a connection; False when it was the caller's own."""
        try:
            data = wire.recv(LINE_LIMIT)
        except OSError:
            data = b""
        if data:
            self.start(json.loads(data), wire)
            return True
        if wire is self.caller:
            return False
        for one in self.running:
            if one.wire is wire:
                one.kill()
        self.watch.unregister(wire)
        wire.close()
        return True

    def start(self, asked: dict[str, object], wire: socket.socket) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            descriptors = [self.door.fileno(), wire.fileno()]
            descriptors += [one.wire.fileno() for one in self.running if one.wire.fileno() >= 0]
            if self.caller is not None:
                descriptors.append(self.caller.fileno())
            become(asked, [one for one in dict.fromkeys(descriptors) if one > 2])
        self.running.append(Running(pid, wire))
        say(wire, {"pid": pid})

    def end(self) -> None:
        for one in self.running:
            one.kill()


def serve(path: str) -> None:
    # neither the current folder nor this file's: torch must import what is installed
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and os.path.normpath(entry) != here]
    import torch

    assert torch.__version__  # imported for those that are forked, who find it there
    server = Server(path)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        server.loop()
    finally:
        server.end()


if __name__ == "__main__":
    serve(sys.argv[1])
