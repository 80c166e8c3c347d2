"""Is this a training step, or a progress bar? The one place that says so."""

from __future__ import annotations

from collections.abc import Iterable

from torchdoctor.patterns import Patterns

_STEP_STARTS = (
    "epoch", "step", "iter", "[epoch", "batch", "ep ", "train:", "val:", "train ", "it ", "[epoch",
    "global step", "global_step", "[iter", "training:", "|epoch", "| epoch", "epoch:", "validation", "eval",
    "[train", "[step",
)  # fmt: skip
_SOURCES = {
    "bar": r"\d%\||\d+(?:\.\d+)?(?:it|ex|tok|[kMG]?B)/s|s/it|\?it/s|^ *\d{1,3}% +\d+/\d+",
    # "loss 0.4", "'acc': 0.9", "loss mse: 0.01"
    "metric": r"\b(?:loss|acc(?:uracy)?|lr)\b\w*(?:['\"]?[ =:]+| \w{1,16}[:=] ?)-?(?:\d|nan|inf)",
    # "3100/5004 [", "[ 310/5004]", "step 100", "iter: 2000"
    "count": (
        r"(?i)(?<![\d./])(?P<at>\d{1,9})/(?P<of>\d{1,9})(?![\d/])|\b(?:step|iter(?:ation)?|it"
        r"|batch)\s?[=:#]?\s?(?P<step>\d{1,9})\b"
    ),
    # what a bar is of: transformers' shards, diffusers' components, vLLM's weights, files of a hub
    "loads": r"\W{0,8}(?:\([^()]{1,60}\) )?(?:Loading|Fetching|Downloading)\b",
    "epoch": r"(?i)\bepoch\w*\s?[=:#\[]{0,2}\s?(?P<epoch>\d{1,5})",
}
_PATTERNS = Patterns(_SOURCES)


def is_progress(line: str) -> bool:
    """True for a progress bar."""
    return ("%|" in line or "% " in line[:8] or "it/s" in line or "s/it" in line or "/s]" in line) and bool(
        _PATTERNS["bar"].search(line)
    )


def is_step(line: str) -> bool:
    """True for a line that reports a training step or a metric."""
    low = line[:240].lstrip(" |>*-").lower()
    if low.startswith(_STEP_STARTS):
        return any(c.isdecimal() for c in low)
    return ("loss" in low or "acc" in low or "lr" in low) and bool(_PATTERNS["metric"].search(low))


def moves(line: str) -> bool:
    """True for a line by which a run shows that it gets on: a step, or a bar."""
    return is_step(line) or is_progress(line)


def trains(line: str) -> bool:
    """The same without the bars of what is loaded before the first step."""
    return is_step(line) or (is_progress(line) and not _PATTERNS["loads"].match(line))


def steps_shown(line: str) -> int:
    """How many steps a line shows: the count of a bar, one for a step, none for another line."""
    if is_progress(line):
        counted = _PATTERNS["count"].search(line)
        return int(counted["at"]) if counted and counted["at"] else 1
    return int(is_step(line))


def epoch_shown(line: str) -> int:
    """The epoch that a line reports a step or metric of; 0 where it reports none."""
    counted = _PATTERNS["epoch"].search(line) if is_step(line) else None
    return int(counted["epoch"]) if counted else 0


def advances(lines: Iterable[str], *, once: bool = False) -> bool:
    """Do counts of steps or of epochs rise from line to line, twice at least or once?"""
    last: dict[str, int] = {}
    rises = 0
    for line in lines:
        epoch, count = _PATTERNS["epoch"].search(line), _PATTERNS["count"].search(line)
        now = {"epoch": epoch and epoch["epoch"], "count": count and (count["at"] or count["step"])}
        rises += any(digits and int(digits) > last.get(name, 1 << 40) for name, digits in now.items())
        last.update({name: int(digits) for name, digits in now.items() if digits})
    return rises >= (1 if once else 2)
