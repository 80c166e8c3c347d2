"""Stack dumps: py-spy, faulthandler, gdb. Each thread becomes one event, outermost frame first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import Draft, Line
from torchdoctor.intake.frames import as_one_stack, package_of
from torchdoctor.intake.traceback import DONE, TAKEN, parse_frame
from torchdoctor.model import EventKind, Frame
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    import re

    from torchdoctor.intake.reader import Feed

_HEAD = (
    r"(?:Current t|T)hread (?:0x[0-9a-fA-F]+|\d+)(?: \[[^\]]{0,80}\])? \((?:most recent call first|idle"
    r"|active|active\+gil|sleeping|Thread 0x|LWP |idle\+gil)"
    r"|#0 +0x[0-9a-f]+ in "
    r"|(?:Traceback|Stack) \(most recent call first\):\s*$"  # gdb's py-bt; faulthandler of one thread
)
# py-spy:  wait (threading.py:359)      native frames have a library instead: poll (libc.so.6)
_SPY_PLACE = r"\((?P<file>[^()]{1,300}?)(?::(?P<line>\d+))?\)$"
# gdb:  #1  0x00007f in select_poll_poll (self=...) at Modules/selectmodule.c:600
_GDB = (
    r"^#\d+ +(?:0x[0-9a-f]+ in )?(?:<signal handler called>"
    r"|(?P<function>[^\s(]{1,200}) ?\([^\n]*?\)(?: at (?P<file>[^\s:]{1,300}):(?P<line>\d+)| from "
    r"(?P<lib>\S{1,300}))?)"
)
_SKIP = r"^\s*(?:Arguments:|Locals:|Garbage-collecting|<no Python frame>|\.\.\.|\S[^:]{0,60}: .*)$"


def is_thread_head(body: str) -> bool:
    """True for the line that begins a thread of a dump."""
    return bool(pattern(_HEAD).match(body.lstrip()))


def _spy(body: str) -> tuple[re.Match[str] | None, str]:
    """File and line, and the function before them, whose name may hold parentheses in native code."""
    text = body.rstrip()
    at = text.rfind(" (")
    if at < 1 or not body[:1].isspace():
        return None, ""
    return pattern(_SPY_PLACE).match(text, at + 1), text[:at].strip()[:300]


def _is_native(file: str, line: str | None) -> bool:
    """A library or a program, which has no lines, or a source of C, C++ or Rust."""
    return line is None or file.endswith((".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cu", ".S", ".rs"))


class StackReader:
    """Reads one thread; dumps print the innermost frame first, events keep it last."""

    def __init__(self, stream: Feed, line: Line) -> None:
        self.stream = stream
        self.draft = Draft(EventKind.STACK, line, line.body.strip())
        self.draft.headed = True
        self.head = line.body.lstrip()
        # how far the whole dump is indented, when it begins with a thread's head
        self.margin = line.body[: len(line.body) - len(self.head)] if is_thread_head(line.body) else ""
        self.locals = -1  # how far the head of a list of values is indented, of ``py-spy dump --locals``
        line = self._without_margin(line)
        self.sources = self.head.startswith("Traceback")  # each frame has its line of code below it
        if line.body[:1] in "# ":
            self._frame(line)

    def take(self, line: Line) -> int:
        body = line.body
        if not body.strip() or not body.startswith(self.margin):
            return DONE
        line = self._without_margin(line)
        body = line.body
        if body[:1] not in " \t#":
            return DONE
        if self._value(body):
            self.draft.end_line = line.number
            return TAKEN
        if self._frame(line):
            self.draft.add(body.rstrip(), line.number)
            return TAKEN
        if pattern(_SKIP).match(body) or (self.sources and body.startswith("    ")):
            self.draft.end_line = line.number
            return TAKEN
        return DONE

    def _value(self, body: str) -> bool:
        """True for the arguments and local variables of a frame, whatever they look like."""
        depth = len(body) - len(body.lstrip())
        if body.strip() in ("Arguments:", "Locals:"):
            self.locals = depth
            return True
        if self.locals >= 0 and depth > self.locals:
            return True
        self.locals = -1
        return False

    def _without_margin(self, line: Line) -> Line:
        if not self.margin:
            return line
        return Line(line.number, line.text, line.body[len(self.margin) :], line.mark)

    def _frame(self, line: Line) -> bool:
        body = line.body
        frame = None
        if 'File "' in body:
            frame = parse_frame(body.strip(), line.number)
        elif body[:1] == "#":
            frame = self._gdb(body, line.number)
        else:
            found, function = _spy(body)
            if found:
                file = found["file"]
                number = found["line"]
                frame = Frame(
                    file,
                    int(number[:9]) if number else None,
                    function,
                    "",
                    "native" if _is_native(file, number) else package_of(file, True),
                    line.number,
                )
        if frame is None:
            return False
        self.draft.add_frame(frame)
        return True

    def _gdb(self, body: str, at: int) -> Frame | None:
        python = pattern(r"Frame 0x[0-9a-f]+, for file ([^,]{1,300}), line (\d+), in (\S+)").search(body)
        if python:
            return Frame(python[1], int(python[2][:9]), python[3], "", package_of(python[1]), at)
        found = pattern(_GDB).match(body)
        if not found:
            return None
        file = found["file"] or found["lib"] or ""
        line = int(found["line"][:9]) if found["line"] else None
        return Frame(
            file, line, found["function"] or "<signal handler called>", "", package_of(file) or "native", at
        )

    def close(self) -> None:
        self.draft.frames.reverse()
        self.draft.frames = as_one_stack(self.draft.frames, short=True)
        crash = self.stream.crash
        if crash is not None and (not crash.frames or self.head.startswith("Current thread")):
            crash.frames = list(self.draft.frames)  # the thread that died
            crash.headed = crash.headed or bool(crash.frames)
        self.stream.put(self.draft)
