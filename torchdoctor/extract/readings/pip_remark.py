"""pip's remark that a package which is installed asks for another torch than the one it just put there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.extract.readings.passage import Line, Passage, Voice
from torchdoctor.extract.readings.patterns import patterns
from torchdoctor.extract.readings.spoken import says

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Fact

NAMESPACE = "pip_remark"

FACTS: dict[str, str] = {
    "pip_remark.package": "str: the package that asks for another torch",
    "pip_remark.release": "str: its version",
    "pip_remark.wanted": "str: what it asks for (==2.4.0)",
    "pip_remark.have": "str: the version of torch that is there",
    "pip_remark.open": "bool: the text ends with the remark, or somebody asks about it",
}

_PATTERNS = {
    "remark": (
        r"(?P<package>[\w.-]{2,60}) (?P<release>\d[\w.+!]{0,40}) (?:requires|has requirement) torch"
        r"(?P<wanted>[=<>!~][^\s;]{1,60})(?:; ?[^\n]{1,80})?, but you(?:'ll)? have torch "
        r"(?P<have>\d[\w.+]{0,40}) which is incompatible"
    ),
    "whole": r"\s*(?:ERROR: )?[\w.-]{2,60} \d",
    # what pip prints around it
    "of-pip": (
        r"\brequires? \S|has requirement|which is (?:incompatible|not installed)|^(?:ERROR|WARNING"
        r"|\[notice\])\b|resolver|^Successfully (?:un)?installed|^Installing collected"
        r"|^\s+(?:Attempting|Found|Uninstalling)"
    ),
    "moot": r"\b(?:still|anyway|nevertheless|despite|even so)\b[^.\n]{0,40}\bwork|\bignore\b|\bharmless\b",
}

_pattern = patterns(_PATTERNS)


def read(passage: Passage) -> Iterator[Fact]:
    """Facts of the first such remark; nothing where something was run after it, or it did not matter."""
    line = passage.first(_pattern("remark"))
    found = _pattern("remark").search(line.text) if line is not None else None
    if line is None or found is None:
        return
    for name in ("package", "release", "wanted", "have"):
        yield line.fact(f"pip_remark.{name}", found[name])
    if _open(passage, line):
        yield line.fact("pip_remark.open", True)


def _open(passage: Passage, remark: Line) -> bool:
    below = passage.lines[remark.at + 1 :]
    over = passage.told(says("solved")) or passage.told(_pattern("moot")) or passage.told(says("works"))
    ran = any(line.voice in (Voice.SHELL, Voice.TYPED) for line in below)
    if over is not None or ran:
        return False
    printed = [line for line in below if line.voice is Voice.PRINTED]
    if any(_pattern("of-pip").search(line.text) is None for line in printed):
        return False
    went_on = any(line.text.startswith("Successfully installed") for line in printed)
    printed_so = not went_on and _pattern("whole").match(remark.text) is not None
    return passage.asked or (printed_so and not passage.lesson)
