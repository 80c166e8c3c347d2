"""The program, as a launcher of one machine prints that it started it: DeepSpeed's, accelerate's."""

from __future__ import annotations

import re

from torchdoctor.model import Transcript
from torchdoctor.patterns import pattern

_CALLED = (
    r"\[('[^'\n]{1,200}'(?:, '[^'\n]{0,200}'){1,60})\]'? (?:exits with return code|returned non-zero exit)"
)
_LAUNCHERS = {"deepspeed": "deepspeed", "accelerate": "accelerate launch"}
_OF_A_RANK = ("--local_rank=", "--local-rank=")


def started_by(launcher: str, transcript: Transcript) -> list[str]:
    """The command by which that launcher is asked to start it, without a rank's own option; [] for none."""
    begin = _LAUNCHERS.get(launcher, "")
    for event in transcript.events if begin else ():
        found = pattern(_CALLED).search(event.text) if "', '" in event.text else None
        words = re.findall(r"'([^']*)'", found[1]) if found is not None else []
        at = next((at for at, word in enumerate(words[:4]) if word.endswith(".py")), 0)
        if at and "python" in words[0]:
            from shlex import quote

            own = [quote(word) for word in words[at:] if not word.startswith(_OF_A_RANK)]
            return [f"{begin} {' '.join(own)}"]
    return []
