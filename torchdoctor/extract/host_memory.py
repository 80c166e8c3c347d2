"""What a log tells of the host's memory: records of the out-of-memory killer, and figures that rise.

A process that ends by SIGKILL was killed for memory only if somebody wrote that down: the kernel
(``oom-kill:``, ``Out of memory: Killed process``), the scheduler, Kubernetes or Ray.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.extract.progress import trains
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "host_memory.kill_recorded": "bool: the text holds a record of a kill for memory; unknown without one",
    "host_memory.ours": "bool: the process in the kernel's record on this event is a Python or torch process",
    "host_memory.grew": "bool: figures of host memory up to this event rose from line to line",
    "host_memory.worker_share": "float: how much of its node's memory the worker held that Ray ended",
    "host_memory.served": "bool: a web server had answered a request before this, or something had worked",
}

_RECORDS = (
    "oom-kill:", "oom_kill event", "Out of memory: Kill", "emory cgroup out of memory",
    "invoked oom-killer", "OOMKilled", "running low on memory", "killed due to memory pressure",
    "OOM Killed", "of the memory on node",
)  # fmt: skip
# "python3.10", "pt_main_thread" and "pt_data_worker" (torch 2.4 and later name their threads), "ray::f"
_OURS = ("python", "pt_", "torchrun", "accelerate", "deepspeed", "ray::", "vllm", "jupyter", "ipython")
LOOK_BACK = 400
LINE_CHARS = 2000
GROWTH = 1.3
FEWEST = 4
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}

_SOURCES = {
    "victim": r"Kill(?:ed)? process \d{1,8}(?:,[^(\n]{0,40})? \((?P<name>[^)\n]{1,64})\)",
    # Ray's memory monitor, of the worker itself and of its node
    "worker": (
        r"memory used=(?P<held>\d{1,6}(?:\.\d{1,4})?)GB\) was running was \d{1,6}(?:\.\d{1,4})?GB"
        r" / (?P<node>\d{1,6}(?:\.\d{1,4})?)GB"
    ),
    # uvicorn, Flask and gunicorn: "GET /docs HTTP/1.1" 200
    "request": r"\b(?:GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH) /\S{0,200} HTTP/\d",
    "task": r"\btask=(?P<name>[^,\n]{1,64}),pid=\d",
    # "rss 12.4 GiB", "RAM: 58.3/503 GB", "host mem 121.9 GB", "cpu_mem=31244MB", "VmRSS: 812344 kB"
    "figure": (
        r"\b(?P<name>(?:[A-Za-z]{1,12}[ _])?(?:Vm)?(?:RSS|rss|RAM|ram|USS|uss|PSS|pss)|"
        r"(?:host|cpu|CPU|Host|sys|system)[ _]?(?:mem|memory|Mem|RAM|ram))\b[^\d\n]{0,12}?"
        r"(?P<number>\d{1,12}(?:\.\d{1,6})?)\s?(?:/\s?\d+(?:\.\d+)?\s?)?(?P<unit>[KMGTkmgt])i?[Bb]?\b"
    ),
}
_PATTERNS = Patterns(_SOURCES)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts about host memory as far as the text up to and around this event tells; any event may ask."""
    record = next((one for one in transcript.events if not one.quoted and _is_record(one.text)), None)
    if record is not None:
        yield Fact.known("host_memory.kill_recorded", True, record.place(), record.text[:120])
    found = _PATTERNS["victim"].search(event.text) or _PATTERNS["task"].search(event.text)
    if found is not None:
        name = found.group("name").strip()
        yield "ours", name.lower().startswith(_OURS)
    held = _PATTERNS["worker"].search(event.text) if "memory used=" in event.text else None
    if held is not None and float(held["node"]) > 0:
        yield "worker_share", float(held["held"]) / float(held["node"])
    yield "served", _served(event.id, transcript)
    series: dict[str, list[float]] = {}
    for earlier in transcript.events[max(0, event.id - LOOK_BACK) : event.id + 1]:
        for figure in _PATTERNS["figure"].finditer(earlier.text[:LINE_CHARS]):
            number = float(figure.group("number")) * 1024.0 ** _POWERS[figure.group("unit").lower()]
            series.setdefault(figure.group("name").lower(), []).append(number)
    long_enough = [values for values in series.values() if len(values) >= FEWEST]
    if long_enough:
        yield "grew", any(_rises(values) for values in long_enough)


def _served(at: int, transcript: Transcript) -> bool:
    earlier = transcript.events[max(0, at - LOOK_BACK) : at]
    return any(
        (" HTTP/" in one.text and _PATTERNS["request"].search(one.text)) or trains(one.text)
        for one in earlier
    )


def _is_record(text: str) -> bool:
    return any(mark in text for mark in _RECORDS)


def _rises(values: list[float]) -> bool:
    falls = sum(1 for before, after in itertools.pairwise(values) if after < before * 0.98)
    return values[-1] >= GROWTH * values[0] and falls * 10 <= len(values)
