"""Whether every mounted file system answers, and how full it is: each asked by a process of its own.

Called as ``python mounts.py LIMIT FILE``. A dead server holds whoever asks it; those that have not answered
within LIMIT seconds are reported as hung, and left behind where nothing can end them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
import time

NETWORK = (
    "nfs",
    "nfs4",
    "lustre",
    "cifs",
    "smb3",
    "ceph",
    "beegfs",
    "gpfs",
    "glusterfs",
    "9p",
    "weka",
    "fuse",
)
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "f2fs", "bcachefs")
SKIPPED = ("/proc", "/sys", "/dev/", "/run/user", "/snap", "/boot", "/run/credentials")
MOST = 64


def mounts() -> list[tuple[str, str, str]]:
    """Place, type and options of what is to be asked; the last one mounted on a place."""
    found: dict[str, tuple[str, str, str]] = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            fields, _, rest = line.partition(" - ")
            parts, kinds = fields.split(), rest.split()
            if len(parts) < 6 or not kinds:
                continue
            place = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), parts[4])
            kind = kinds[0]
            network = kind.split(".")[0] in NETWORK
            if network or (kind in LOCAL and (place == "/" or not place.startswith(SKIPPED))):
                options = parts[5] + ("," + kinds[2] if len(kinds) > 2 else "")
                found[place] = (place, kind, options)
    order = sorted(found.values(), key=lambda one: (one[1].split(".")[0] not in NETWORK, one[0]))
    return order[:MOST]


def ask(place: str) -> tuple[int, int]:
    """Start a process that asks; its number, and where its answer will come."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        found = os.statvfs(place)
        answer = [
            found.f_blocks * found.f_frsize,
            found.f_bavail * found.f_frsize,
            found.f_files,
            found.f_favail,
            bool(found.f_flag & os.ST_RDONLY),
        ]
        os.write(writer, json.dumps(answer).encode())
    except OSError as error:
        os.write(writer, json.dumps(error.strerror or str(error)).encode())
    finally:
        os._exit(0)


def main() -> None:
    limit_s = float(sys.argv[1])
    begun = time.monotonic()
    waiting: dict[int, tuple[int, tuple[str, str, str]]] = {}
    for mount in mounts():
        child, reader = ask(mount[0])
        waiting[reader] = (child, mount)
    answers: list[list[object]] = []
    while waiting and time.monotonic() - begun < limit_s:
        ready, _, _ = select.select(list(waiting), [], [], max(0.0, begun + limit_s - time.monotonic()))
        for reader in ready:
            child, (place, kind, options) = waiting.pop(reader)
            text = os.read(reader, 4096).decode()
            os.close(reader)
            answer = json.loads(text) if text else "ended without an answer"
            answers.append([place, kind, options, answer])
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
    for child, _ in waiting.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    hung = [[place, kind, options] for _, (place, kind, options) in waiting.values()]
    with open(sys.argv[2], "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"name": "mounts.answers", "value": answers}) + "\n")
        stream.write(json.dumps({"name": "mounts.hung", "value": hung}) + "\n")
        stream.write(json.dumps({"name": "mounts.limit_s", "value": limit_s}) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
