"""Tracebacks whose lines were joined, broken or cut, and cells' errors as editors copy them: their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.error_object import ErrorObject

_HEADER = "Traceback (most recent call last)"
_FRAME = r'\s*\bFile "([^"\n]+)", line (\d+), in (<\w+>|[\w.<>]+)\s*'
_KINDS = ("Error", "Exception", "Interrupt", "Exit", "Iteration", "Timeout")
_RAISED = rf"(?:^|(?<=\s))(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:{'|'.join(_KINDS)})(?:: (?=\S)|\s*$)"
# a frame whose front was left out when it was copied: site/net.py", line 56, in forward
_CUT = r'[^\s"\'(=,\[{]{1,200}\.py", line \d+, in (?:<\w+>|[\w.<>]+)\s*$'
# a frame that a console or a page broke, as far as its first lines have it: File "C:\\net, File "net.py", lin
_BEGUN = (
    r'(?:.{0,120}\s)?File(?:\s*|\s+"(?:(?P<open>[^"\n]{0,400})|[^"\n]{1,400}"(?:,\s*(?:l|li|lin|line)?\s*'
    r"|, line (?P<line>\d{1,9})(?:,(?: (?:i|in ?)?)?)?)?))$"
)
_WHOLE = r'(?:.{0,120}\s)?File "[^"\n]{1,400}", line \d{1,9}(?P<where>, in \S[^"\n]*)?\s*$'
_PIECE = r"[^\s\"'][^\"'\n]{0,200}[\\/][^\"'\n]{0,200}$"  # of a path, which fills a line of its own
_PIECES = 8  # of a long path in a narrow console
_GOES_ON = r"(?:\d{0,9}, in )?[\w<>]{1,100}\s*$"  # the number, the function's name, behind a full line
_MOST = 20  # physical lines that one flattened traceback is looked for in
_NAME = r'\s*"name": "([A-Za-z]\w*(?:Error|Exception))",\s*$'
_MESSAGE = r'\s*"message": "(.*)",\s*$'
_KEYS = r'\s*(?:\{\s*)?"(?:name|message|stack)":? ?"'


class FrameMender:
    """Takes physical lines; a frame that was broken, or lost its front, comes back whole."""

    __slots__ = ("_full", "_held", "_text", "_width")

    def __init__(self) -> None:
        self._held: list[tuple[int, str]] = []  # the lines of a frame that goes on in the next one
        self._text = ""  # what they say together
        self._width = 0  # of its first line
        self._full = 0  # its width, where it is whole and its last line full: the name may go on

    def take(self, number: int, text: str) -> list[tuple[int, str]] | None:
        """The lines to read instead of this one, numbered; None to read it as it stands."""
        if self._full:
            width, done = self._full, self.rest()
            if pattern(_GOES_ON).match(text):
                return self._whole(done[0][0], done[0][1] + text.rstrip(), text, width)
            read = self.take(number, text)
            return done + ([(number, text)] if read is None else read)
        held, self._held = self._held, []
        if held:
            joined, whole = _grown(self._text, text)
            if whole:
                return self._whole(held[0][0], joined, text, self._width)
            if joined and len(held) < _PIECES:
                self._held, self._text = [*held, (number, text)], joined
                return []
        if _may_begin(text) and pattern(_BEGUN).match(text.rstrip("\r\n")):
            self._held, self._text = [(number, text)], text.rstrip("\r\n")
            self._width = len(self._text)
            return held
        if '.py", line ' in text and not text[0].isspace() and pattern(_CUT).match(text):
            return [*held, (number, f'  File "{text.strip()}')]
        return [*held, (number, text)] if held else None

    def rest(self) -> list[tuple[int, str]]:
        """What is still held when the input ends."""
        held, self._held, self._full = self._held, [], 0
        return held

    def _whole(self, number: int, joined: str, last: str, width: int) -> list[tuple[int, str]]:
        """A whole frame, unless its last line is as long as its first."""
        if len(last.rstrip("\r\n")) != width:
            return [(number, joined)]
        self._held, self._full = [(number, joined)], width
        return []


def _may_begin(text: str) -> bool:
    """Is there a frame that does not go on to its function?"""
    _, file, rest = text.rpartition("File")
    return bool(file) and ", in " not in rest.partition('", line ')[2].rstrip("\r\n")[:-1]


def _grown(begun: str, text: str) -> tuple[str, bool]:
    """(a frame that was begun with what this line adds, is that the whole); "" where it adds nothing.

    One blank at the line's head may be the path's own; more of them only indent what was broken.
    """
    found = pattern(_BEGUN).match(begun)
    rest = text.strip() if text[:2].isspace() else text.rstrip()
    if found is None or not rest:
        return "", False
    in_path = found["open"] is not None
    for joined in (begun + rest, f"{begun.rstrip()} {rest.strip()}")[: 1 if in_path else 2]:
        whole = pattern(_WHOLE).match(joined)
        if whole is not None and (whole["where"] or not found["line"]):
            return joined, True
        if pattern(_BEGUN).match(joined) and (not in_path or '"' in rest or pattern(_PIECE).match(rest)):
            return joined, False
    return "", False


class Unfolder:
    """Takes physical lines; what was folded comes back as the lines it was made of."""

    __slots__ = ("_cell", "_held", "_lines", "_name", "_object")

    def __init__(self) -> None:
        self._object: ErrorObject | None = None  # from the first field of one on
        self._held = ""  # a folded traceback whose exception has not come yet
        self._lines = 0
        self._cell = False  # inside an error that VS Code copied: name, message and stack in braces
        self._name = ""  # the class of that error, on a line of its own

    def take(self, text: str) -> list[str] | None:
        """The lines to read instead of this one; None to read it as it stands, nothing while one is held."""
        if self._object is None and '"exception_' in text:
            from torchdoctor.intake.error_object import ErrorObject  # which most texts do not have

            self._object = ErrorObject()
        if self._object is not None and (told := self._object.take(text)) is not None:
            return told
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
        return (_unfolded(held) if held else []) + (self._object.rest() if self._object is not None else [])

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
    named = any(kind in text for kind in _KINDS)  # no frame by itself names one
    return (
        named
        and bool(pattern(r"[\s`\"'>*]{0,12}" + _FRAME + r"\S").match(text))
        and _raised(text) is not None
    )


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
