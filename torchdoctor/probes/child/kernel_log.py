"""The lines of the kernel log that speak of GPUs, NVSwitches, PCIe and hung tasks, since boot.

Called as ``python kernel_log.py FILE``: tries /dev/kmsg, then dmesg, then journalctl,
and writes which one could
be read. A line is [seconds since boot or -1, text].
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

LIMIT = 4000  # lines kept, the last ones: a storm of errors must not fill the report
WANTED = re.compile(
    r"NVRM|SXid|nvidia|fallen off the bus|AER:|PCIe Bus Error|amdgpu|EDAC|hung_task|blocked for more than"
    r"|nfs: server|Machine check|mce:|I/O error"
)
STAMP = re.compile(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\](?:\[[^\]]*\])?\s?")
JOURNAL = re.compile(r"^\[?\s*(\d+\.\d+)\]? \S+ kernel: ")


def from_device() -> tuple[list[list[object]], bool]:
    """Records of /dev/kmsg: "priority,sequence,microseconds,flags;text". Says whether old ones were lost."""
    handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    found: list[list[object]] = []
    first = -1
    try:
        while True:
            try:
                record = os.read(handle, 16384)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten while we read: the next read goes on
                continue
            if not record:
                break
            head, _, text = record.decode("utf-8", "replace").partition(";")
            parts = head.split(",")
            if first < 0:
                first = int(parts[1])
            # 0 to 7 is the kernel's facility; what a program writes into /dev/kmsg has another one
            if int(parts[0]) >> 3 == 0:
                found.append([int(parts[2]) / 1e6, text.split("\n", 1)[0]])
    finally:
        os.close(handle)
    return found, first > 0


def from_command(argv: list[str], pattern: re.Pattern[str]) -> list[list[object]]:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=4, check=False)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0 or not text.strip():
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OSError(said[-1] if said else f"exit code {done.returncode}, no lines")
    found: list[list[object]] = []
    for line in text.splitlines():
        stamp = pattern.match(line)
        found.append([float(stamp[1]), line[stamp.end() :]] if stamp else [-1.0, line])
    return found


def main() -> None:
    tried = []
    lines: list[list[object]] | None = None
    source, lost = "", False
    commands = (
        ("dmesg", ["dmesg", "-k"], STAMP),
        (
            "journalctl -k -b",
            ["journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-q"],
            JOURNAL,
        ),
    )
    try:
        lines, lost = from_device()
        source = "/dev/kmsg"
    except (OSError, ValueError, IndexError) as error:
        tried.append(f"/dev/kmsg: {getattr(error, 'strerror', None) or error}")
    for name, argv, pattern in commands:
        if lines:
            break
        try:
            lines = from_command(argv, pattern)
            source = name
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            tried.append(f"{name}: {error}")
    with open(sys.argv[-1], "a", encoding="utf-8") as stream:

        def fact(name: str, value: object) -> None:
            stream.write(json.dumps({"name": name, "value": value}) + "\n")

        if not lines:
            detail = "; ".join(tried) or "no source has a line"
            record = {"name": "kernel.lines", "state": "unknown", "reason": "not-permitted", "detail": detail}
            stream.write(json.dumps(record) + "\n")
            return
        fact("kernel.source", source)
        fact("kernel.now_s", time.clock_gettime(time.CLOCK_MONOTONIC))
        fact("kernel.complete", not lost)
        fact("kernel.lines", [one for one in lines if WANTED.search(str(one[1]))][-LIMIT:])


if __name__ == "__main__":
    main()
