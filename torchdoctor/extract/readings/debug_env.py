"""Variables for debugging in the environment of a run whose speed somebody complains about."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "debug_env"

FACTS: dict[str, str] = {
    "debug_env.variable": "str: variable that makes programs slow, with its value, in a printed environment",
    "debug_env.slow": "bool: somebody says that the run is slow",
}

# Each lets the host wait for every kernel, every allocation or every collective, or prints for each of them.
_SLOW = (
    r"(?P<name>(?:CUDA|HIP)_LAUNCH_BLOCKING|PYTORCH_NO_(?:CUDA|HIP)_MEMORY_CACHING|TORCH_SHOW_DISPATCH_TRACE)"
    r"{between}(?P<value>[1-9])"
    r"|(?P<name2>TORCH_DISTRIBUTED_DEBUG){between}(?P<value2>DETAIL)"
    r"|(?P<name3>AMD_SERIALIZE_(?:KERNEL|COPY)){between}(?P<value3>[1-3])"
    r"|(?P<name4>NCCL_DEBUG){between}(?P<value4>TRACE)"
)
_PATTERNS = {
    # env, export -p, a Dockerfile, docker run -e, a list in YAML, what Python shows of os.environ
    "line": (
        r"^\s*(?:[$>] ?)?(?:export |declare -x |ENV |-e |--env |- |set |setx )?[\"']?(?:"
        + _SLOW.replace("{between}", r"[\"']?\s?[=: ]\s?[\"']?")
        + r")[\"']?,?\s*\\?$"
    ),
    "pair": r"\bname: [\"']?(?:" + _SLOW.replace("{between}", r"[\"']?,? *\n? *value: [\"']?") + r")",
    "environ": (
        r"environ\b[^\n]{0,20}[\"'](?:"
        + _SLOW.replace(
            "{between}",
            r"[\"']\]?\s?[=:,]\s?"
            r"[\"']",
        )
        + r")"
    ),
    "shown": r"[\"'](?:" + _SLOW.replace("{between}", r"[\"']: [\"']") + r")[\"']",
}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name])


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the first such variable; nothing where nobody speaks of speed."""
    if not (passage.personal or passage.session):
        return  # a guide speaks of slow runs, too
    slow = passage.told(says("slow"))
    if slow is None:
        return
    for line in passage.lines:
        found = _found(passage, line)
        if found is not None:
            named = found.groupdict()
            name = next(named[key] for key in ("name", "name2", "name3", "name4") if named[key])
            value = next(named[key] for key in ("value", "value2", "value3", "value4") if named[key])
            yield line.fact("debug_env.variable", f"{name}={value}")
            yield slow.fact("debug_env.slow", True)
            return


def _found(passage: Passage, line: Line) -> re.Match[str] | None:
    if line.text.lstrip()[:1] == "#":
        return None
    pair = "\n".join(one.text for one in passage.lines[line.at : line.at + 2])
    return (
        _pattern("line").match(line.text)
        or _pattern("environ").search(line.text)
        or (_pattern("shown").search(line.text) if line.voice is Voice.PRINTED else None)
        or (_pattern("pair").search(pair) if "name:" in line.text else None)
    )
