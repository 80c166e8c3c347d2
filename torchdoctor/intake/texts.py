"""Events of several lines that are no tracebacks: native errors, warnings, compiler output, c10d records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import NO_MARK, Draft, Line, Mark, same_record
from torchdoctor.intake.frames import package_of, with_code
from torchdoctor.intake.message import CPP_FRAMES, breaks, is_hint
from torchdoctor.intake.traceback import DONE, HEADER, TAKEN, parse_frame
from torchdoctor.model import EventKind, Frame
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.reader import Feed

_WARNING_LINES = 24
_WARNING = (
    r"(?P<file>(?:(?<!\w)[A-Za-z]:[\\/][^:\n]{1,300}?|[^\s:\[\]|]+\.(?:pyx?|ipynb)|<[\w .:-]{1,60}>|[^\s:\[\]"
    r"|]+)):(?P<line>\d+): (?P<type>[\w.]*Warning)\b"
)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


class TextReader:
    """Reads a native error, a c10d record, a kernel or compiler message and the lines that continue it."""

    def __init__(self, stream: Feed, draft: Draft, mode: str, mark: Mark = NO_MARK) -> None:
        self.stream = stream
        self.draft = draft
        self.mark = mark
        self.mode = mode
        self.cpp = 0
        self.blank = 0
        # a screen's copy may break the record behind the colon
        self.wanted_next = mode == "c10d" and draft.parts[0].rstrip().endswith("NCCL error in:")

    def take(self, line: Line) -> int:
        if line.joined:
            self.draft.add(line.body, line.number, joined=True)
            return TAKEN
        stripped = line.body.strip()
        if not stripped:
            self.blank += 1
            return TAKEN if self.mode in ("c10d", "crash", "cmake") and self.blank <= 1 else DONE
        if HEADER in stripped or 'File "' in stripped or not self._wants(line, stripped):
            return DONE
        self.blank = 0
        if self.cpp <= CPP_FRAMES or not stripped.startswith("frame #"):
            self.draft.add(line.body.rstrip(), line.number)
        return TAKEN

    def _wants(self, line: Line, stripped: str) -> bool:
        if self.wanted_next and not line.mark.record:
            self.wanted_next = False
            return True
        if stripped.startswith("frame #"):
            self.cpp += 1
            return self.mode in ("c10d", "crash", "nccl")
        if self.mode == "nvrm":
            return line.mark.logger != "kernel" and line.body[:1] == " " and "NVRM:" in stripped
        if line.mark.record and not same_record(line.mark, self.mark):
            return False
        if self.mode == "c10d":
            return is_hint(stripped) or self._c10d_frame(line, stripped)
        if self.mode == "crash":
            return stripped.startswith("what():") or (
                (not self.blank or is_hint(stripped)) and self._crash(line, stripped)
            )
        if self.mode == "signal":
            return bool(pattern(r"^\[[\w.-]+:\d+\] ").match(stripped))
        if self.mode == "compiler":
            return (
                line.body[:1] == " "
                and bool(pattern(r"^ *(?:\d+ +\||\|| \^|\^|from |#|\S.*\^)|^ +[\^~]+$").match(line.body))
            ) or (stripped.startswith("compilation terminated"))
        if self.mode == "cmake":  # its paragraphs are indented by two
            # pip's own indentation counts, and a program's mark does not
            written = line.text if line.text[:1] == " " else line.body
            return _indent(written) >= _indent(self.draft.raw) + 2 and stripped[:3] != "-- "
        if self.mode == "command":
            return self.draft.end_line == self.draft.line and bool(
                pattern(r"^\"?\S[^:]{0,200}?(?:nvcc|g\+\+|gcc|c\+\+|clang|cl\.exe|cc)\"? .*-\w").match(
                    stripped.lstrip(":")
                )
            )
        if self.mode == "nccl":
            if stripped.startswith("Last error:"):
                self.wanted_next = stripped == "Last error:"
                return True
            return bool(pattern(r"^nccl\w+: ").match(stripped)) or is_hint(stripped)
        return False

    def _c10d_frame(self, line: Line, stripped: str) -> bool:
        found = pattern(r"^#\d+ (\S+) from (\S+):(\d+)$").match(stripped)
        if not found:
            return False
        self.draft.frames.insert(
            0, Frame(found[2], int(found[3]), found[1], "", package_of(found[2]), line.number)
        )
        self.draft.headed = True
        return True

    def _crash(self, line: Line, stripped: str) -> bool:
        if len(self.draft.parts) > 40 or breaks(line, self.mark):
            return False
        if self.cpp:
            return is_hint(stripped)
        return is_hint(stripped) or not (
            stripped.startswith(("Thread 0x", "Current thread", "Extension modules", "[", "Fatal ", "Signal"))
        )

    def close(self) -> None:
        if self.mode == "crash" and self.draft.rank is None:
            self.draft.rank = _rank_of_group(self.draft.parts)
        self.stream.put(self.draft)


def _rank_of_group(parts: list[str]) -> int | None:
    """The rank that a thread of torch's process group names, in what it threw to end the process."""
    said = next((part for part in parts[:3] if "what():" in part), "")
    found = pattern(r"what\(\): +\[(?:PG [^\]]{0,200} )?Rank (\d{1,6})\]").search(said[:400])
    return int(found[1]) if found is not None else None


class WarningReader:
    """Reads a Python warning: head, message, and the source line, indented by two, that ends it.

    Without that source line in sight the lines behind the head are given back.
    """

    def __init__(self, stream: Feed, line: Line) -> None:
        self.stream = stream
        self.draft = Draft(EventKind.WARNING, line, line.body)
        self.draft.raw = line.text
        self.mark = line.mark
        head = pattern(_WARNING).search(line.body)
        self.frame: Frame | None = None
        self.indent = 0
        if head:
            before = line.body[: head.start()]
            if before.isspace():
                self.indent = len(before)
            elif "/s" in before or "%|" in before or ("|" in before and "[" in before):
                self.draft.parts = [line.body[head.start() :]]  # glued to a progress bar
            self.draft.type = head["type"]
            self.frame = Frame(
                head["file"], int(head["line"][:9]), "", "", package_of(head["file"]), line.number
            )
        self.waiting: list[Line] = []
        self.traced = False
        self.done = False

    def take(self, line: Line) -> int:
        body = line.body
        if self.done:
            return DONE
        if line.joined and not self.waiting:
            self.draft.add(body, line.number, joined=True)
            return TAKEN
        if self.traced or 'File "' in body:
            frame = parse_frame(body, line.number)
            if frame is not None:  # anomaly mode prints the traceback of the forward call
                self._accept()
                self.traced = True
                self.draft.add_frame(frame)
                return TAKEN
            if self.traced and body.startswith("    "):
                if self.draft.frames and not self.draft.frames[-1].code:
                    self.draft.frames[-1] = with_code(self.draft.frames[-1], body.strip())
                return TAKEN
        body = body[self.indent :] if body[: self.indent].isspace() else body
        if body.startswith("  ") and body[2:3].strip():
            self._accept()
            if self.frame is not None and not self.traced:
                self.frame = with_code(self.frame, body.strip())
            self.draft.add(body, line.number)
            self.done = True
            return TAKEN
        if (
            HEADER in body
            or body.lstrip().startswith("CMake ")  # its paragraphs are indented as a source line is
            or (line.mark.record and not same_record(line.mark, self.mark))
            or len(self.waiting) >= _WARNING_LINES
            or (body.strip() and breaks(line, self.mark))
        ):
            return DONE
        self.waiting.append(line)
        return TAKEN

    def _accept(self) -> None:
        for line in self.waiting:
            self.draft.add(line.body, line.number)
        self.waiting = []

    def close(self) -> None:
        waiting, self.waiting = self.waiting, []
        while (
            waiting
            and not self.done
            and (waiting[0].body.lstrip().startswith("(Triggered") or is_hint(waiting[0].body))
        ):
            self.draft.add(waiting[0].body, waiting[0].number)
            waiting.pop(0)
        if self.frame is not None and not self.draft.frames:
            self.draft.frames.append(self.frame)
        self.stream.put(self.draft)
        self.stream.give_back(waiting)


# Dynamo's and torch.export's words above the frames of the user's function, alone or at the end of a record
_USER_CODE = (
    r"(?:from user code(?: at)?|[Uu]ser [Cc]ode traceback|[Uu]ser [Ss]tack"
    r"(?: \(most recent call last\))?):$"
)


def above_user_code(body: str) -> bool:
    """Do the frames of the user's function follow this line? (torch 2.0 to 2.13)"""
    stripped = body.rstrip()
    return stripped[-1:] == ":" and "ser " in stripped and bool(pattern(_USER_CODE).search(stripped[-80:]))


def compiled(stream: Feed, line: Line) -> Draft | None:
    """Whose frames Dynamo prints below this line: itself, the record above, or the exception further up.

    Its message goes on in paragraphs, which change with the release.
    """
    number = line.number
    if line.mark.record and pattern(_USER_CODE).sub("", line.body).strip(" :"):
        stream.single(line)  # "Graph break: from user code at:"
        stream.close()
        return stream.last
    last = stream.last if stream.last is not None and number - stream.last.end_line <= 3 else None
    raised = stream.closed[0] if stream.closed else None
    if (
        raised is not None
        and number - raised.end_line <= 12
        and (last is None or last.level is None)
        and ("torch." in (raised.type or "") or any(frame.package == "torch" for frame in raised.frames))
    ):
        return raised
    return last


class UserCodeReader:
    """Reads the frames that Dynamo prints behind ``from user code:``; they belong to the line above."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def take(self, line: Line) -> int:
        body = line.body
        frame = parse_frame(body, line.number) if 'File "' in body else None
        if frame is not None:
            self.draft.add_frame(frame)
            return TAKEN
        if self.draft.frames and not self.draft.frames[-1].code and body[:1] in " \t" and body.strip():
            self.draft.frames[-1] = with_code(self.draft.frames[-1], body.strip())
            return TAKEN
        if self.draft.frames and body.strip() and not body.strip("^~ "):
            return TAKEN  # under the source line
        return TAKEN if body.strip().startswith("(snipped, see stack below") else DONE

    def close(self) -> None:
        """Nothing to hand over: the line above is an event already."""
