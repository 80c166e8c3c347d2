"""What to change in a call that a package refused, of a failure that no rule knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.model import ReadingKind

if TYPE_CHECKING:
    from torchdoctor.model import Reading, Suspect

_DEVICE = r"(mps|xpu|hpu|npu|xla|cuda|hip)(?::\d{1,3})?"
_CHOICES = 8  # values that one sentence lists
_OF_IMPORTS = ("ImportError", "ModuleNotFoundError")


def of_call(item: Suspect, read: Reading, at: str) -> str:
    """What to change in the line ``at``, file and number, that called the package."""
    if read.problem == "none":
        shown = f"print({read.name})" if read.name else "print them"
        return (
            f"Look what {at} hands to {read.owner}, {shown} just before it: one of the values, or a part of "
            "one, is None."
        )
    if read.problem == "empty":
        return (
            f"Look where what {at} hands to {read.owner} is made or filtered: it is empty there, with a size "
            "of 0. Print its length after each step."
        )
    device = re.fullmatch(_DEVICE, read.got or "")
    if device is not None:
        return (
            f"Do this on the CPU: move its tensors there, .cpu(), before {at}, or give the program the CPU "
            f"as its device. {read.owner} does not do it on {device[1]}."
        )
    on_rank = f", on rank {item.rank}" if item.rank is not None else ""
    if item.setting and item.choices:
        return (
            f"Set {item.setting} to {alternatives(item.choices)} where {at} gives it to {read.owner}"
            f"{on_rank}: it takes no other value here."
        )
    change = f"Change {item.setting}, which {at} gives" if item.setting else f"Change what {at} hands"
    return (
        f"{change} to {read.owner}, as the message says. If that looks right, print the values just "
        f"before that line{on_rank}."
    )


def alternatives(choices: tuple[str, ...]) -> str:
    """``a, b or c``, of many the first ones."""
    if len(choices) > _CHOICES:
        return f"{', '.join(choices[:_CHOICES])} or another that the message lists"
    return " or ".join(part for part in (", ".join(choices[:-1]), choices[-1]) if part)


def of_import(item: Suspect) -> str:
    """What to do where a package says that another one is missing or too old; "" where none says so."""
    read = item.reading
    kinds = (ReadingKind.LIBRARY_REFUSED, ReadingKind.RAISED_INSIDE)
    if read is None or read.kind not in kinds or not (item.type or "").endswith(_OF_IMPORTS):
        return ""
    return (
        "Install or update what the message names, with the interpreter that ran this: "
        f"{read.owner} needs it here. `python -m pip check` shows what else does not go together."
    )
