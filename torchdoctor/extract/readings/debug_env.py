"""Variables for debugging in the environment of a run whose speed somebody complains about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says
from torchdoctor.extract.readings.values import values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "debug_env"

FACTS: dict[str, str] = {
    "debug_env.variable": "str: variable that makes programs slow, with its value, in a printed environment",
    "debug_env.slow": "bool: somebody says that the run is slow",
}

WORSE = 1.3  # times: less is noise

# Each lets the host wait for every kernel, every allocation or every collective, or prints for each of them.
_SLOW = (
    r"(?P<name>(?:CUDA|HIP)_LAUNCH_BLOCKING|PYTORCH_NO_(?:CUDA|HIP)_MEMORY_CACHING|TORCH_SHOW_DISPATCH_TRACE)"
    r"{between}(?P<value>[1-9])"
    r"|(?P<name2>TORCH_DISTRIBUTED_DEBUG){between}(?P<value2>DETAIL)"
    r"|(?P<name3>AMD_SERIALIZE_(?:KERNEL|COPY)){between}(?P<value3>[1-3])"
    r"|(?P<name4>NCCL_DEBUG){between}(?P<value4>TRACE)"
    r"|(?P<name5>(?:TORCH_)?NCCL_BLOCKING_WAIT|NCCL_(?:P2P|IB|SHM)_DISABLE|TORCH_COMPILE_DEBUG|TORCH(?:DYNAMO"
    r"|_COMPILE)_DISABLE|CUD(?:NN|ART)_LOG(?:INFO_DBG|LEVEL_DBG)|CUBLAS_LOGINFO_DBG){between}(?P<value5>1"
    r"|[Tt]rue)"
    r"|(?P<name6>TORCH_LOGS){between}(?P<value6>\+?all|\+(?:dynamo|inductor|aot))"
    r"|(?P<name7>NCCL_DEBUG_SUBSYS){between}(?P<value7>ALL)"
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
            r"[\"'][\])]?\s?(?:[=:,]|->|=>|\u2192)\s?"
            r"[\"']",
        )
        + r")"
    ),
    "any": r"(?<![\w$])(?:" + _SLOW.replace("{between}", r"[\"'`]?[=:]\s?[\"'`]?") + r")(?!\w)",
    "figure": r"(?<![\w.])(?P<value>\d{1,5}(?:[.,]\d{1,3})?) ?(?P<unit>m?s|s/it|it/s|img/s|h|min)\b(?!/)",
    "asked": r"(?:environ|getenv)\W{1,3}(?:get\W{1,3})?(?P<variable>[A-Z][A-Z0-9_]{3,60})",
    "pairs": r"(?:^|[\s,;(])[A-Z][A-Z0-9_]{2,60}=\S+",
    # where variables stay set, and words of somebody who set one for a single run
    "place": (
        r"/environ\b|/etc/|profile|\.?(?:bash|zsh)rc|Dockerfile|docker-compose|compose\.ya?ml|\.env\b|\benv\b"
        r"|environment|template|(?:job|launch|start|sbatch|slurm)[ -]?script|sbatch|module ?file|\bpod\b"
        r"|\.sh\b|crontab"
        r"|systemd|Umgebung|environnement|entorno|ambiente|\u0441\u0440\u0435\u0434\u0430"
        r"|\u043e\u043a\u0440\u0443\u0436\u0435\u043d"
        r"|\u73af\u5883\u53d8\u91cf|\u74b0\u5883\u5909\u6570|\ud658\uacbd \ubcc0\uc218"
        r"|\ud658\uacbd\ubcc0\uc218"
    ),
    "once": (
        r"\b(?:once|one run|single run|for a run|without|removed|unset|had set|was set|used to|einmal|ohne"
        r"|entfernt"
        r"|une fois|sans|una vez|not set|n't set|nicht gesetzt|not in|sin|uma vez|sem|una volta|senza|bez"
        r"|\u0431\u0435\u0437)\b|\u53bb\u6389|\u4e0d\u8bbe"
    ),
    "shown": r"[\"'](?:" + _SLOW.replace("{between}", r"[\"']: [\"']") + r")[\"']",
}


_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the first such variable; nothing where nobody speaks of speed."""
    if not (passage.personal or passage.session):
        return  # a guide speaks of slow runs, too
    slow = passage.told(says("slow")) or _two_speeds(passage)
    if slow is None:
        return
    for line in passage.lines:
        found = _found(passage, line) or _answered(passage, line)
        if found is not None:
            named = found.groupdict()
            name = next(named[key] for key in named if key[:4] == "name" and named[key])
            value = next(named[key] for key in named if key[:5] == "value" and named[key])
            yield line.fact("debug_env.variable", f"{name}={value}")
            yield slow.fact("debug_env.slow", True)
            return


def _two_speeds(passage: Passage) -> Line | None:
    """A line with two times, or two rates, one of which is a good deal worse."""
    if not passage.personal:
        return None
    for sentence in passage.of(Voice.SAID):
        figures: dict[str, list[float]] = {}
        for found in _pattern("figure").finditer(sentence.text):
            figures.setdefault(found.group("unit"), []).append(float(found.group("value").replace(",", ".")))
        if any(max(told) >= WORSE * min(told) > 0 for told in figures.values()):
            return sentence
    return None


def _found(passage: Passage, line: Line) -> re.Match[str] | None:
    if line.text.lstrip()[:1] == "#":
        return None
    pair = "\n".join(one.text for one in passage.lines[line.at : line.at + 2])
    return (
        _pattern("line").match(line.text)
        or _pattern("environ").search(line.text)
        or _among(passage, line)
        or (_pattern("shown").search(line.text) if line.voice is Voice.PRINTED else None)
        or (_pattern("pair").search(pair) if "name:" in line.text else None)
    )


def _answered(passage: Passage, line: Line) -> re.Match[str] | None:
    """What Python printed for os.environ["NAME"]."""
    for value in values(passage):
        if value.line.at == line.at and (asked := _pattern("asked").search(value.expression)) is not None:
            return _pattern("any").search(f"{asked.group('variable')}={value.text}")
    return None


def _among(passage: Passage, line: Line) -> re.Match[str] | None:
    """In a row of variables, or in a sentence that says where it stays set."""
    found = _pattern("any").search(line.text)
    if found is None:
        return None
    if line.voice is Voice.PRINTED and len(_pattern("pairs").findall(line.text)) >= 2:
        return found
    for sentence in passage.sentences:
        held = _pattern("any").search(sentence.text)
        if (
            held is not None
            and held.group() == found.group()
            and _pattern("place").search(sentence.text)
            and not _pattern("once").search(sentence.text)
        ):
            return found
    return None
