"""Why a process sees none of the GPUs that the driver knows: a variable, a job without GPUs, MIG."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns

if TYPE_CHECKING:
    from torchdoctor.extract.readings.values import Command, Value

NOTHING = ("", "-1", "NoDevFiles")  # the last is what Slurm sets for a job without GPUs

_PATTERNS = {
    "hidden": (
        r"CUDA_VISIBLE_DEVICES['\"\]\)]{0,3}(?:\s*[=:]\s*(?:''|\"\"|-1\b|'-1'|\"-1\"|['\"]?\s*$)"
        r"|(?:\s|,\s?)(?:''|\"\"|-1\b)"
        r"|['\"]?\s*[=:]\s*['\"]?(?:NoDevFiles|none|void)\b)"
    ),
    "uuid": r"UUID: (?P<uuid>(?:GPU|MIG)-[0-9a-f]{2,8})",
    "by-uuid": r"CUDA_VISIBLE_DEVICES['\"\]]{0,3}\s*[=:]\s*['\"]?(?P<uuid>(?:GPU|MIG)-[0-9a-f]{2,8})",
    "from": r"CUDA_VISIBLE_DEVICES=[\"']?\$\{?(?P<name>[A-Za-z_]\w*)",
    "index": r"CUDA_VISIBLE_DEVICES['\"\]]{0,3}\s*[=:]\s*['\"]?(?P<index>\d{1,2})(?!\d)",
    "gpu": (
        r"^\s*GPU (?P<index>\d{1,2}): |^\s*\|\s{1,4}(?P<row>\d{1,2})\s{1,4}\S[^|]{2,60}\|\s*[0-9A-F]{4,8}:"
    ),
    "slurm": r"^\s*#SBATCH\s+-|\b(?:srun|salloc|sbatch)\s+-",
    "asked": r"--gres|--gpus|--gpu\b|-G[ =]?\d|gres=gpu|--tres-per",
    "sized": r"--partition|-p \S|--cpus|-c ?\d|--mem|--time|-t ?\d|--nodes|-N ?\d|--pty|-n ?\d|--ntasks",
    "none-listed": r"^\s*No devices were found\s*\.?\s*$",
    "mig-on": r"MIG Mode|mig\.mode\.current|MIG M\.|\bMIG\b",
    "enabled": r"\bEnabled\b",
    "no-instance": (
        r"MIG Devices\s*: None|No MIG devices found|No GPU instances found|No compute instances found"
        r"|No MIG-enabled devices"
    ),
    "instance": r"^\s*MIG \d[cg]\.|\bMIG-[0-9a-f]{4,8}\b|MIG \d+g\.\d+gb",
}


_pattern = patterns(_PATTERNS)


def hidden(passage: Passage, commands: tuple[Command, ...]) -> Line | None:
    """The line that shows CUDA_VISIBLE_DEVICES empty, -1, or naming a GPU that the machine does not have."""
    line = passage.first(_pattern("hidden"))
    return line or _shown_empty(passage) or _from_empty(passage, commands) or _beyond(passage)


def _shown_empty(passage: Passage) -> Line | None:
    """The answer to a question for the variable, or to echo, where it hides all GPUs."""
    for line in passage.of(Voice.TYPED, Voice.SHELL):
        _, variable, rest = line.text.partition("CUDA_VISIBLE_DEVICES")
        if variable and "=" not in rest:
            for below in passage.lines[line.at + 1 : line.at + 2]:
                if below.voice is Voice.PRINTED and below.text.strip(" '\"") in NOTHING:
                    return below
    return None


def _from_empty(passage: Passage, commands: tuple[Command, ...]) -> Line | None:
    """The variable is set from another one, and echo shows that one to be empty."""
    line = passage.first(_pattern("from"))
    found = _pattern("from").search(line.text) if line is not None else None
    if line is None or found is None:
        return None
    name = found.group("name")
    for command in commands:
        head, echo, shown = command.text.partition("echo ")
        wanted = re.sub(rf"\$\{{?{name}\}}?", "", shown.strip(" \"'"))
        if echo and not head and wanted != shown.strip(" \"'"):
            answer = command.answers[0].text.strip() if command.answers else ""
            if answer == wanted.strip():
                return line
    return None


def _beyond(passage: Passage) -> Line | None:
    """The first index that the variable names is higher than those that nvidia-smi lists."""
    listed = {found.group("uuid") for found in _pattern("uuid").finditer(passage.text)}
    for line in passage.lines:
        named = _pattern("by-uuid").search(line.text)
        if named is not None and line.voice is not Voice.SAID and listed:
            wanted = named.group("uuid")
            if not any(one.startswith(wanted) or wanted.startswith(one) for one in listed):
                return line
    count = _listed(passage)
    return next((line for index, line in _set_to(passage) if index >= count), None) if count else None


def chosen(passage: Passage) -> Line | None:
    """The variable names a GPU other than the first, and the text does not list so many."""
    if not passage.personal or _listed(passage):
        return None
    return next((line for index, line in _set_to(passage) if index), None)


def _listed(passage: Passage) -> int:
    """How many GPUs nvidia-smi lists; 0 when it does not."""
    count = 0
    for line in passage.lines:
        if (found := _pattern("gpu").match(line.text)) is not None:
            count = max(count, int(found.group("index") or found.group("row")) + 1)
    return count


def _set_to(passage: Passage) -> list[tuple[int, Line]]:
    return [
        (int(found.group("index")), line)
        for line in passage.of(Voice.SHELL, Voice.CODE, Voice.PRINTED, Voice.TYPED)
        if (found := _pattern("index").search(line.text)) is not None
    ]


def not_requested(passage: Passage, values: tuple[Value, ...]) -> Line | None:
    """The line of a Slurm job that asks for no GPU, where none is seen in it."""
    asking = [
        line
        for line in passage.lines
        if line.voice is not Voice.SAID and _pattern("slurm").search(line.text) is not None
    ]
    text = "\n".join(line.text for line in asking)
    if not _pattern("sized").search(text) or _pattern("asked").search(text):
        return None
    nothing = passage.first(_pattern("none-listed")) is not None or any(
        value.expression.endswith("device_count()") and value.text == "0" for value in values
    )
    return asking[0] if nothing else None


def no_instance(passage: Passage) -> Line | None:
    """The line that shows MIG switched on without an instance."""
    if not _pattern("mig-on").search(passage.text) or _pattern("instance").search(passage.text):
        return None
    bare = passage.first(_pattern("no-instance"))
    if bare is not None and _pattern("enabled").search(passage.text):
        return bare
    on = next((at for at, line in enumerate(passage.lines) if "mig.mode.current" in line.text), None)
    if on is None or "nvidia-smi -L" not in passage.text:
        return None
    below = passage.lines[on + 1 : on + 6]
    return next((line for line in below if _pattern("enabled").search(line.text)), None)
