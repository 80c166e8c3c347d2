"""Is a log from this machine? Only then may it be judged by this machine's facts."""

from __future__ import annotations

import os

from torchdoctor.model import Transcript

MAX_FRAMES = 40
MAX_FILE_BYTES = 4 * 1024 * 1024


def printed_here(transcript: Transcript) -> bool:
    """Does a line of code that a traceback quotes stand at that place in a file of this machine?

    Only absolute paths with a code line of some length count. Reads at most MAX_FRAMES files, starts nothing.
    """
    looked = 0
    for event in transcript.events:
        for frame in event.frames:
            if looked >= MAX_FRAMES:
                return False
            if frame.line and len(frame.code) >= 12 and os.path.isabs(frame.file):
                looked += 1
                if _stands_there(frame.file, frame.line, frame.code):
                    return True
    return False


def _stands_there(path: str, line: int, code: str) -> bool:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_FILE_BYTES:
            return False
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, start=1):
                if number == line:
                    return text.strip() == code.strip()
                if number > line:
                    break
    except (OSError, ValueError):
        return False
    return False
