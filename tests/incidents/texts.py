"""What ranks really print when something fails: stretches of captured logs, with rank and clock put in."""

from __future__ import annotations

import functools
import re
from datetime import datetime, timedelta

from case_files import case_text

SITE = "/opt/venv/lib/python3.12/site-packages"
EPOCH = datetime(2026, 3, 9, 14, 0, 0)


@functools.cache
def captured(case: str) -> tuple[str, ...]:
    return tuple(case_text(case).splitlines())


@functools.cache
def stretch(case: str, tag: str, first: str, last: str = "") -> tuple[str, ...]:
    """The lines behind ``tag`` from the one that holds ``first`` to the one that holds ``last``."""
    lines = [line[len(tag) :] for line in captured(case) if line.startswith(tag)]
    start = next(index for index, line in enumerate(lines) if first in line)
    end = next((i for i in range(len(lines) - 1, start - 1, -1) if last and last in lines[i]), len(lines) - 1)
    return tuple(lines[start : end + 1])


def moved(lines: tuple[str, ...], old: int, rank: int, at: float) -> list[str]:
    """The lines as another rank would have printed them, the first clock in them set to ``at`` seconds."""
    zero: datetime | None = None
    found: list[str] = []
    for line in lines:
        line = re.sub(rf"\[rank{old}\]", f"[rank{rank}]", line)
        line = re.sub(rf"\bRank {old}\]", f"Rank {rank}]", line)

        def clock(match: re.Match[str]) -> str:
            nonlocal zero
            then = datetime.strptime(f"2026{match[2]}{match[3]}", "%Y%m%d%H:%M:%S.%f")
            zero = zero or then
            now = EPOCH + timedelta(seconds=at) + (then - zero)
            return f"{match[1]}{now:%m%d %H:%M:%S.%f}{match[4]}"

        line = re.sub(r"\b([EWI])(\d{4}) (\d\d:\d\d:\d\d\.\d{6})(\d*)", clock, line)
        found.append(line)
    return found


def dressed(lines: tuple[str, ...] | list[str], rank: int, prefix: bool) -> list[str]:
    """torch's excepthook puts the rank before every line of a traceback once a process group exists."""
    return [f"[rank{rank}]: {line}" for line in lines] if prefix else list(lines)


def label_range(rank: int, at: float) -> list[str]:
    case = "cuda-assert-label-range/h200x2-label-rank0"
    return moved(stretch(case, "[default0]:", "Assertion `t >= 0"), 0, rank, at)


def watchdog(rank: int, at: float, seq: int, op: str, numel: int, waited: int) -> list[str]:
    """A rank that gave up: the collective it waited in, its number and its size."""
    case = "nccl-collective-mismatch/h200x2-shape-mismatch"
    lines = stretch(case, "[default1]:", "Watchdog caught collective operation timeout")
    text = "\n".join(moved(lines, 1, rank, at))
    text = text.replace("SeqNum=4", f"SeqNum={seq}").replace("OpType=ALLGATHER", f"OpType={op}")
    text = text.replace("NumelIn=2048", f"NumelIn={numel}").replace("NumelOut=4096", f"NumelOut={numel}")
    text = text.replace("sequence id: 4 ", f"sequence id: {seq} ")
    text = re.sub(r"(?i)(last enqueued (?:nccl )?work: )4", rf"\g<1>{seq}", text)
    text = re.sub(r"(?i)(last completed (?:nccl )?work: )3", rf"\g<1>{seq - 1}", text)
    text = text.replace("Timeout(ms)=25000", f"Timeout(ms)={waited * 1000}")
    text = text.replace("ran for 25089", f"ran for {waited * 1000 + 89}")
    return text.split("\n")


def told(rank: int, at: float, by: int, last: int) -> list[str]:
    """A rank that did not time out and was told of another's timeout."""
    log = captured("nccl-timeout/told-by-another-rank")
    lines = tuple(line.replace("[E703 ", "[E0703 ") for line in log if line.startswith("[rank6]:[E703"))[:2]
    text = "\n".join(moved(lines, 6, rank, at)).replace("rank 7", f"rank {by}")
    return text.replace("work: 56116", f"work: {last}").split("\n")


def out_of_memory(rank: int, prefix: bool) -> list[str]:
    lines = captured("cuda-oom-too-big/h100-oom-big")
    start = next(index for index, line in enumerate(lines) if line.startswith("Traceback"))
    return dressed(lines[start:], rank, prefix)


def illegal_access(rank: int, prefix: bool) -> list[str]:
    lines = captured("cuda-illegal-access/h100-illegal")
    return dressed(lines[: lines.index("")] if "" in lines else lines, rank, prefix)


def missing_file(rank: int, prefix: bool) -> list[str]:
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/user/proj/launch.py", line 31, in <module>',
        "    main(load_settings())",
        '  File "/home/user/proj/launch.py", line 11, in load_settings',
        "    with open(path) as file:",
        "         ^^^^^^^^^^",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/corpus/vocab.json'",
    )
    return dressed(lines, rank, prefix)


def step_ended(host: str, tasks: list[int], code: int) -> str:
    """srun on tasks of one node, as ``node05: tasks 8-10,13: Killed``."""
    runs: list[list[int]] = []
    for task in sorted(tasks):
        if runs and task == runs[-1][-1] + 1:
            runs[-1].append(task)
        else:
            runs.append([task])
    named = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    signals = {-15: "Terminated", -9: "Killed", -6: "Aborted (core dumped)"}
    how = signals.get(code, f"Exited with exit code {code}")
    return f"srun: error: {host}: task{'s' if len(tasks) > 1 else ''} {named}: {how}"


def step_cancelled(host: str, at: float) -> str:
    when = EPOCH + timedelta(seconds=at)
    return f"slurmstepd: error: *** STEP 81234.0 ON {host} CANCELLED AT {when:%Y-%m-%dT%H:%M:%S} ***"


def dataset_error(rank: int) -> list[str]:
    case = "dataloader-worker-error/h200x2-loader-rank1"
    lines = stretch(case, "[default1]:", "Traceback (most recent", "KeyError: 'segmentation'")
    return moved(lines, 1, rank, 0.0)


def memory_fault(rank: int) -> list[str]:
    """An uncorrectable error of the GPU's memory."""
    return moved(stretch("ecc-uncorrectable/nccl-rank", "[rank4]: ", "Traceback"), 4, rank, 0.0)


def segmentation_fault() -> list[str]:
    return list(captured("segfault/faulthandler-cpu"))


def own_exception(rank: int, prefix: bool, name: str, message: str) -> list[str]:
    """An exception class of a user's own project, which no catalog can know."""
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/user/proj/launch.py", line 31, in <module>',
        "    main(load_settings())",
        '  File "/home/user/proj/launch.py", line 24, in main',
        "    trainer.fit(loader)",
        '  File "/home/user/proj/trainer.py", line 208, in fit',
        "    self.quota.charge(batch)",
        f"{name}: {message}",
    )
    return dressed(lines, rank, prefix)


def peer_closed(rank: int, prefix: bool) -> list[str]:
    """What gloo prints on a rank whose peer is gone."""
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/user/proj/launch.py", line 31, in <module>',
        "    main(load_settings())",
        '  File "/home/user/proj/launch.py", line 24, in main',
        "    dist.all_reduce(total)",
        f'  File "{SITE}/torch/distributed/c10d_logger.py", line 81, in wrapper',
        "    return func(*args, **kwargs)",
        f'  File "{SITE}/torch/distributed/distributed_c10d.py", line 2999, in all_reduce',
        "    work.wait()",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer "
        "[10.2.0.17]:41822",
    )
    return dressed(lines, rank, prefix)


def nccl_remote(rank: int, prefix: bool) -> list[str]:
    """What NCCL prints on a rank whose peer is gone."""
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/user/proj/launch.py", line 24, in main',
        "    dist.all_reduce(total)",
        f'  File "{SITE}/torch/distributed/distributed_c10d.py", line 2999, in all_reduce',
        "    work = group.allreduce([tensor], opts)",
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
        "ProcessGroupNCCL.cpp:2298, remote process exited or there was a network error, NCCL version 2.27.3",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
        "prematurely.",
        "Last error:",
        "socketPollConnect: Connect to 10.20.0.7<40511> returned 111(Connection refused) errno "
        "115(Operation now in progress)",
    )
    return dressed(lines, rank, prefix)


def box(ends: list[tuple[int, int, int, float]], host: str, program: str = "launch.py") -> list[str]:
    """The summary of one node's agent for (rank, local rank, exit code, time) of its processes.

    The agent looks at its processes in order; all that it finds ended in one look carry its own clock, and
    the one it saw first it calls the root cause.
    """
    case = captured("cuda-assert-label-range/h200x2-label-rank0")
    start = next(n for n, line in enumerate(case) if line[:9] == "Traceback" and "torchrun" in case[n + 1])
    stop = next(
        n for n, line in enumerate(case) if line.startswith("torch.distributed.elastic") and n > start
    )
    root = min(ends, key=lambda end: (end[3], end[1]))

    def entry(number: int, end: tuple[int, int, int, float]) -> list[str]:
        rank, local, code, at = end
        how = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        if code < 0:
            how = "Signal {0} ({1}) received by PID {2}"
        names = {-15: "SIGTERM", -9: "SIGKILL", -11: "SIGSEGV", -6: "SIGABRT"}
        return [
            f"[{number}]:",
            f"  time      : {EPOCH + timedelta(seconds=at):%Y-%m-%d_%H:%M:%S}",
            f"  host      : {host}",
            f"  rank      : {rank} (local_rank: {local})",
            f"  exitcode  : {code} (pid: {4000 + rank})",
            "  error_file: <N/A>",
            "  traceback : " + how.format(-code, names.get(code, "?"), 4000 + rank),
        ]

    others = [end for end in ends if end is not root]
    lines = [*case[start : stop + 1], "=" * 60, f"{program} FAILED", "-" * 60, "Failures:"]
    if not others:
        lines.append("  <NO_OTHER_FAILURES>")
    for number, end in enumerate(others, 1):
        lines += entry(number, end)
    return [*lines, "-" * 60, "Root Cause (first observed failure):", *entry(0, root), "=" * 60]


def agent(kind: str, at: float, pid: int, local: int, code: int = 1) -> str:
    """A line of torchrun's agent about one of its processes."""
    now = EPOCH + timedelta(seconds=at)
    if kind == "sigterm":
        return (
            f"W{now:%m%d %H:%M:%S.%f} 639 torch/distributed/elastic/multiprocessing/api.py:1012] "
            f"Sending process {pid} closing signal SIGTERM"
        )
    return (
        f"E{now:%m%d %H:%M:%S.%f} 639 torch/distributed/elastic/multiprocessing/api.py:986] failed "
        f"(exitcode: {code}) local_rank: {local} (pid: {pid}) of binary: /opt/venv/bin/python"
    )


def stack_of(stuck: bool) -> list[str]:
    """A dump of faulthandler, as faulthandler.dump_traceback_later writes it."""
    inner = (
        [
            '  File "/home/user/proj/cache.py", line 57 in refresh',
            '  File "/home/user/proj/trainer.py", line 188 in fit',
        ]
        if stuck
        else [
            f'  File "{SITE}/torch/distributed/distributed_c10d.py", line 2999 in all_reduce',
            f'  File "{SITE}/torch/distributed/c10d_logger.py", line 81 in wrapper',
            '  File "/home/user/proj/trainer.py", line 201 in fit',
        ]
    )
    return [
        "Timeout (0:05:00)!",
        "Thread 0x00007f96e3402b80 (most recent call first):",
        *inner,
        '  File "/home/user/proj/launch.py", line 24 in main',
        '  File "/home/user/proj/launch.py", line 31 in <module>',
    ]


def time_limit(host: str, at: float) -> list[str]:
    """Slurm at the end of a job's time."""
    lines = [line for line in captured("job-time-limit/slurm") if line.startswith(("slurmstepd", "srun"))]
    when = f"{EPOCH + timedelta(seconds=at):%Y-%m-%dT%H:%M:%S}"
    return [re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", when, line).replace("gn033", host) for line in lines]
