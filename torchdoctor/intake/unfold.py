"""Tracebacks whose lines were joined: their lines."""

from __future__ import annotations

from torchdoctor.patterns import pattern

_HEADER = "Traceback (most recent call last)"
_FRAME = r'\s*\bFile "([^"\n]+)", line (\d+), in (<\w+>|[\w.<>]+)\s*'
_RAISED = (
    r"(?:^|(?<=\s))(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Timeout)"
    r"(?:: (?=\S)|\s*$)"
)
_MOST = 20  # physical lines that one flattened traceback is looked for in


class Unfolder:
    """Takes physical lines; what was folded comes back as the lines it was made of."""

    __slots__ = ("_held", "_lines")

    def __init__(self) -> None:
        self._held = ""  # a folded traceback whose exception has not come yet
        self._lines = 0

    def take(self, text: str) -> list[str] | None:
        """The lines to read instead of this one; None to read it as it stands, nothing while one is held."""
        if self._held:
            return self._more(text)
        at = text.find(_HEADER)
        if at < 0 or text.count('File "', at) < 2 or len(pattern(_FRAME).findall(text, at)) < 2:
            return None
        if _raised(text) is None:
            self._held, self._lines = text, 1
            return []
        return _unfolded(text)

    def rest(self) -> list[str]:
        """What is still held when the input ends."""
        held, self._held = self._held, ""
        return _unfolded(held) if held else []

    def _more(self, text: str) -> list[str]:
        self._lines += 1
        if text.strip() and self._lines <= _MOST:
            joined = f"{self._held.rstrip()} {text.strip()}"
            if _raised(joined) is None:
                self._held = joined
                return []
            self._held = ""
            return _unfolded(joined)
        return [*self.rest(), text]


def _raised(text: str) -> int | None:
    """Where the exception stands behind the last frame."""
    frames = list(pattern(_FRAME).finditer(text))
    if not frames:
        return None
    found = pattern(_RAISED).search(text, frames[-1].end())
    return found.start() if found else None


def _unfolded(text: str) -> list[str]:
    at = max(0, text.find(_HEADER))
    lines = [text[:at].rstrip()] if text[:at].strip() else []
    lines.append(f"{_HEADER}:")
    frames = list(pattern(_FRAME).finditer(text, at))
    ends = _raised(text)
    for index, frame in enumerate(frames):
        lines.append(f'  File "{frame[1]}", line {frame[2]}, in {frame[3]}')
        stop = frames[index + 1].start() if index + 1 < len(frames) else (len(text) if ends is None else ends)
        code = text[frame.end() : stop].strip()
        if code:
            lines.append(f"    {code}")
    if ends is not None:
        lines.append(text[ends:].strip())
    return lines
