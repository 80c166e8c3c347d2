"""Tracebacks whose lines were joined, broken or cut, and cells' errors as editors copy them: their lines."""

from __future__ import annotations

from torchdoctor.patterns import pattern

_HEADER = "Traceback (most recent call last)"
_FRAME = r'\s*\bFile "([^"\n]+)", line (\d+), in (<\w+>|[\w.<>]+)\s*'
_RAISED = (
    r"(?:^|(?<=\s))(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Timeout)"
    r"(?:: (?=\S)|\s*$)"
)
# the rest of a frame whose path a narrow console broke: y", line 56, in train
_REST = r'[^"\n]{0,160}", line \d+(?:, in [^"\n]*)?\s*$'
# a frame whose front was left out when it was copied: site/net.py", line 56, in forward
_CUT = r'[^\s"\'(=,\[{]{1,200}\.py", line \d+, in (?:<\w+>|[\w.<>]+)\s*$'
# a frame that a console broke at its blanks: File, "net.py", line, 56, in forward
_ENDS = ("File", '",', "line")
_FOLDED = r'\s*File(?:\s+"[^"\n]{1,400}",(?:\s+line)?)?\s*$'
_WHOLE = r'\s*File "[^"\n]{1,400}", line \d+, in \S'
_MOST = 20  # physical lines that one flattened traceback is looked for in
_NAME = r'\s*"name": "([A-Za-z]\w*(?:Error|Exception))",\s*$'
_MESSAGE = r'\s*"message": "(.*)",\s*$'
_KEYS = r'\s*(?:\{\s*)?"(?:name|message|stack)":? ?"'


class FrameMender:
    """Takes physical lines; a frame that was broken in its path, or lost its front, comes back whole."""

    __slots__ = ("_broken",)

    def __init__(self) -> None:
        self._broken: tuple[int, str] | None = None  # a frame whose path goes on in the next line

    def take(self, number: int, text: str) -> list[tuple[int, str]] | None:
        """The lines to read instead of this one, numbered; None to read it as it stands."""
        before, self._broken = self._broken, None
        quote = text.find('"')
        if before is not None and quote > 0 and pattern(_REST).match(text):
            return [(before[0], before[1].rstrip("\r\n") + text)]
        if before is not None and quote <= 8 and (joined := _joined(before[1], text)) is not None:
            if pattern(_WHOLE).match(joined):
                return [(before[0], joined)]
            self._broken = (before[0], joined)
            return []
        given = [] if before is None else [before]
        if text.rstrip().endswith(_ENDS) and pattern(_FOLDED).match(text):
            self._broken = (number, text)
            return given
        if quote >= 0 and text.find('"', quote + 1) < 0:
            if text[max(0, quote - 5) : quote] == "File " and not text[: quote - 5].strip():
                self._broken = (number, text)
                return given
            if text[quote : quote + 7] == '", line' and pattern(_CUT).match(text):
                return [*given, (number, f'  File "{text.strip()}')]
        return [*given, (number, text)] if given else None

    def rest(self) -> list[tuple[int, str]]:
        """What is still held when the input ends."""
        broken, self._broken = self._broken, None
        return [] if broken is None else [broken]


def _joined(held: str, text: str) -> str | None:
    """A folded frame and what comes next of it; None where that is something else."""
    joined = f"{held.rstrip()} {text.strip()}"
    return joined if pattern(_WHOLE).match(joined) or pattern(_FOLDED).match(joined) else None


class Unfolder:
    """Takes physical lines; what was folded comes back as the lines it was made of."""

    __slots__ = ("_cell", "_held", "_lines", "_name")

    def __init__(self) -> None:
        self._held = ""  # a folded traceback whose exception has not come yet
        self._lines = 0
        self._cell = False  # inside an error that VS Code copied: name, message and stack in braces
        self._name = ""  # the class of that error, on a line of its own

    def take(self, text: str) -> list[str] | None:
        """The lines to read instead of this one; None to read it as it stands, nothing while one is held."""
        if self._held:
            return self._more(text)
        if self._cell or text[:9] == '{"name": ':
            return self._of_cell(text)
        if text[:5] == "[rank" and " [rank" in text and len(parts := _tagged(text)) > 1:
            return parts
        if text.lstrip()[:9] == '"name": "' and (named := pattern(_NAME).match(text)) is not None:
            self._cell, self._name = True, named[1]
            return []
        at = text.find(_HEADER)
        if at < 0 and 'File "' in text[:40] and _headless(text):
            return _unfolded(text)
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

    def _of_cell(self, text: str) -> list[str] | None:
        if not self._cell:
            if not pattern(_KEYS).match(text) or text.rstrip()[-1:] == "}":
                return None
            self._cell = True
        elif text.strip() == "}":
            self._cell = False
        plain = text.replace('\\"', '"').replace("\\\\", "\\")
        if self._name and (said := pattern(_MESSAGE).match(plain)) is not None:
            name, self._name = self._name, ""
            return f"{name}: {said[1]}".split("\\n")
        return [pattern(_KEYS).sub("", plain, 1)] if plain != text or self._cell else None


def _tagged(text: str) -> list[str]:
    """The lines of one rank that a copy joined: each begins with the same tag, behind a blank."""
    tag = text[: text.find("]:") + 2]
    return pattern(r"\s+(?=\[rank\d{1,6}\]: )").split(text) if text.count("[rank") == text.count(tag) else []


def _headless(text: str) -> bool:
    """Do frames without their header, and the exception behind them, stand in one line?"""
    return bool(pattern(r"[\s`\"'>*]{0,12}" + _FRAME + r"\S").match(text)) and _raised(text) is not None


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
