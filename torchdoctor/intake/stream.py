"""One stream of lines (one rank, one process, or all that carries no tag): which reader takes which line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.extract.progress import is_progress
from torchdoctor.intake.elements import NO_MARK, Draft, Line, Mark
from torchdoctor.intake.frames import package_of
from torchdoctor.intake.lines import classify, device_asserts, exception_head, labelled, shown_exception
from torchdoctor.intake.texts import TextReader, UserCodeReader, WarningReader, above_user_code, compiled
from torchdoctor.intake.traceback import (
    DONE,
    HEADER,
    PASS,
    TracebackReader,
    cell_head,
    chain_phrase,
    chained,
    parse_frame,
)
from torchdoctor.model import EventKind, Frame, RelationKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.keep import Keep
    from torchdoctor.intake.reader import Reader

_RAISED = ("rror", "xception", "nterrupt", "otFound")
# the debugger of VS Code, in English, Chinese or Japanese
_STOPPED = (
    "Exception has occurred",
    "\u53d1\u751f\u5f02\u5e38",
    "\u4f8b\u5916\u304c\u767a\u751f\u3057\u307e\u3057\u305f",
)
_SERIOUS = (None, "", "ERROR", "CRITICAL", "FATAL")  # levels at which a line is no remark


class Stream:
    """Feeds lines to the open reader, or finds out what a line begins."""

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.reader: Reader | None = None
        self.closed: list[Draft] = []  # the exceptions read last, the innermost first
        self.chain: tuple[RelationKind, list[Draft]] | None = None
        self.twins = 0  # doubled headers whose exceptions are still to come
        self.twin: Draft | None = None
        self.last: Draft | None = None
        self.head_mark: Mark = NO_MARK
        self.head_logger = ""
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.ignored = -9  # the line that says that the next exception is ignored
        self.phrase = 0  # how far the words between two chained exceptions are indented
        self.crash: Draft | None = None  # a native end whose stack dump may follow
        self.summary: Draft | None = None
        self.places: list[Frame] = []  # pytest prints them above the error they lead to

    def feed(self, line: Line) -> None:
        while (reader := self.reader) is not None:
            taken = reader.take(line)
            if taken == PASS:
                self.single(line)
            if taken != DONE:
                return
            self.reader = None
            reader.close()  # what it gives back may open another one, which gets the line then
        self.start(line)

    def chains(self, text: str) -> bool:
        """Does the line lead on to what was raised over the exception read last, or open it?"""
        if self.reader is None and self.chain is not None:
            return HEADER in text
        return "above exception" in text and chain_phrase(text) is not None

    def offer(self, line: Line) -> bool:
        """Give a line without a tag to the open reader; False when it does not want it."""
        reader = self.reader
        if reader is None:
            return False
        taken = reader.take(line)
        if taken == DONE:
            self.close()
        return taken not in (DONE, PASS)

    def fork(self) -> Stream:
        """A stream of its own into the same store, for what stands inside a structure."""
        return Stream(self.keep)

    def give_back(self, lines: list[Line]) -> None:
        for line in lines:
            self.feed(line)

    def close(self) -> None:
        while (reader := self.reader) is not None:
            self.reader = None
            reader.close()

    def start(self, line: Line) -> None:
        body = line.body
        first = body[:1]
        if not first or body.isspace():
            return
        if "raceback" in body and self._header(line):
            return
        if 'File "' in body and self._frame(line):
            return
        if "ser " in body and above_user_code(body) and (owner := compiled(self, line)):
            self.reader = UserCodeReader(owner)
            return
        if "above exception" in body:
            kind = chain_phrase(body)
            if kind is not None:
                self.chain = (kind, self.closed) if self.closed else None
                self.phrase = len(body) - len(body.lstrip())
                return
        cell = "<ipython-input" in body or ".py" in body or "ell " in body or "Input In" in body
        if cell and (" in " in body or " In" in body) and self._notebook(line):
            return
        if ("hread " in body or "#0 " in body[:24] or "call first)" in body) and self._stack(line):
            return
        if first in "=*RF" and self._box(line):
            return
        if body == "At:" and self._pybind(line):
            return
        if (first.isalpha() or any(word in body for word in _RAISED)) and self._bare(line):
            return
        self.single(line)

    def _header(self, line: Line) -> bool:
        body = line.body
        stripped = body.lstrip()
        if stripped.startswith(HEADER) or stripped.startswith(
            ("Original Traceback (most", "Exception Group Traceback")
        ):
            self._open_traceback(line)
            return True
        at = body.find(HEADER)
        if at < 0:
            return False
        before = body[:at]
        boxed = before.lstrip()[:1] in ("╭", "┌", "+") and before.strip(" ─-")
        if boxed or (before.strip() and not before.strip(" ─")):
            from torchdoctor.intake.notebook import BoxReader

            self.reader = BoxReader(self, line)
            return True
        if cell_head(before, body):
            from torchdoctor.intake.notebook import NotebookReader

            self.reader = NotebookReader(self, line, before.strip())
            return True
        named = before.strip()
        head = exception_head(named[:-1], loose=True) if named.endswith(":") else None
        if head is not None:  # "IndexError: Traceback (most recent call last):" without frames above it
            reader = TracebackReader(self, line, headed=False)
            self.reader = reader
            reader.take(Line(line.number, line.text, f"{named} {body[at:]}", line.mark))
            return True
        return False

    def _open_traceback(self, line: Line) -> None:
        self.head_mark = line.mark
        self.head_logger = line.mark.logger
        self.reader = reader = TracebackReader(self, line)
        reader.draft.ignored = line.number - self.ignored <= 1

    def _frame(self, line: Line) -> bool:
        body = line.body
        stripped = body.lstrip()
        if not stripped.startswith('File "'):
            return False
        frame = parse_frame(stripped, line.number)
        if frame is None:
            return False
        if " in " in stripped and ", in " not in stripped:
            from torchdoctor.intake.stackdump import StackReader

            self.reader = StackReader(self, line)
            return True
        if not frame.function and (not body.startswith("  File ") or line.mark.record):
            return False  # a SyntaxError of the program that was started comes so, two blanks in
        self.head_mark = line.mark
        self.head_logger = line.mark.logger
        reader = TracebackReader(self, line, headed=False)
        self.reader = reader
        reader.take(line)
        return True

    def _notebook(self, line: Line) -> bool:
        from torchdoctor.intake.notebook import NotebookReader, is_cell

        if not is_cell(line.body):
            return False
        self.reader = NotebookReader(self, line, "")
        self.reader.take(line)
        return True

    def _box(self, line: Line) -> bool:
        from torchdoctor.intake.elastic import ElasticReader, opens_box

        if not opens_box(line.body, self):
            return False
        self.reader = ElasticReader(self, line)
        return True

    def _stack(self, line: Line) -> bool:
        from torchdoctor.intake.stackdump import StackReader, is_thread_head

        if not is_thread_head(line.body):
            return False
        self.reader = StackReader(self, line)
        return True

    def _pybind(self, line: Line) -> bool:
        from torchdoctor.intake.pybind import reader_of

        self.reader = reader_of(self.last, line)
        return self.reader is not None

    def _bare(self, line: Line) -> bool:
        body = line.body
        if body.startswith("E   "):
            from torchdoctor.intake.notebook import PytestReader

            self.reader = PytestReader(self, line)
            return True
        if ".py:" in body and body[:1] not in " \t" and self._placed(line):
            return True
        halt = next(filter(body.startswith, _STOPPED), "")
        if halt and (stopped := pattern(r"[:\uff1a] ?([\w.]+)").match(body, len(halt))) is not None:
            reader = TracebackReader(self, line, headed=True)
            reader.debugger = True
            name = stopped[1]
            self.reader = reader
            reader.take(Line(line.number, line.text, f"{name}: ", line.mark))
            reader.draft.type = name
            return True
        if body.startswith("Exception ignored "):
            self.single(line)
            self.ignored = line.number
            return True
        if body[0] in " \t":
            indent, body = len(body) - len(body.lstrip()), body.strip()
            free = self.twins > 0 or indent < 4 or body[-6:] == "Error:"  # its text stands below
            if not free and (self.chain is None or indent != self.phrase) and labelled(body) != 0:
                return False
        head = exception_head(body, loose=self.twins > 0)
        if head is None and (shown := shown_exception(body)) is not None:
            draft = Draft(EventKind.EXCEPTION, line, shown[1])
            draft.type = shown[0]
            self.finish(draft)
            return True
        if head is None and line.mark.level in _SERIOUS and (label := labelled(body)) is not None:
            body = body[label:]
            head = exception_head(body, loose=False)
        if head is None or is_progress(body):
            return False
        reader = TracebackReader(self, line, headed=False)
        reader.heads = max(1, self.twins + 1)
        self.reader = reader
        reader.draft.ignored = line.number - self.ignored <= 1
        self.head_mark, self.head_logger = line.mark, line.mark.logger
        reader.take(Line(line.number, line.text, body, line.mark))
        if reader.message is None:
            self.reader = None
            return False
        return True

    def _placed(self, line: Line) -> bool:
        from torchdoctor.intake.notebook import placed

        found = placed(self, line)
        if found is None:
            return False
        self.reader, told = found
        self.head_mark, self.head_logger = line.mark, line.mark.logger
        self.reader.take(told)
        return True

    def single(self, line: Line) -> None:
        """An event that begins with this line and is no exception."""
        body = line.body
        if not body or body.isspace():
            return
        if (
            line.joined
            and self.last is not None
            and self.last.kind is EventKind.LOG
            and self.last.size < 4096
        ):
            self.last.add(body, line.number, joined=True)
            return
        found = classify(line)
        if found is None:
            if "/s" in body and is_progress(body):
                self.keep.progress(line)
                return
            self._log(line)
            return
        kind, mode = found
        if kind is EventKind.DEVICE_ASSERT:
            for text in device_asserts(body):
                self.keep.assertion(Draft(kind, line, text))
            return
        if kind is EventKind.WARNING and mode == "python":
            if self.reader is None:
                self.reader = WarningReader(self, line)
                return
            mode = ""
        native = kind in (EventKind.CRASH, EventKind.BUILD)
        text = body if (native and line.mark.time) or kind is EventKind.NCCL else line.text
        draft = Draft(kind, line, text.strip() if kind is EventKind.BUILD else text)
        if kind is EventKind.CRASH and ("Fatal Python error" in body or body.startswith("Windows fatal")):
            self.crash = draft
        if kind is EventKind.NCCL:
            self._nccl(draft, body)
        if kind is EventKind.WARNING:
            self.last = draft
        if mode and self.reader is None:
            self.reader = TextReader(self, draft, mode, line.mark)
        else:
            self.put(draft)

    def _log(self, line: Line) -> None:
        text = line.text if len(line.text) <= 4096 else line.text[:4096]
        draft = Draft(EventKind.LOG, line, text)
        self.last = draft
        if "<FrameSummary file " in text:
            self._summary(draft)
        elif ".py:" in text and (text.rstrip()[-1:] == ":" or ": in " in text):
            self._place(line.body, line.number)
        elif text.startswith("____"):
            self.places = []
        if self.reader is None and "NCCL error in" in text:
            self.reader = TextReader(self, draft, "nccl", line.mark)
            return
        self.keep.log(draft)

    def _place(self, text: str, number: int) -> None:
        from torchdoctor.intake.notebook import place_of

        frame = place_of(text, number)
        if frame is not None and len(self.places) < 60:
            self.places.append(frame)

    def _summary(self, draft: Draft) -> None:
        """Frames of a printed list of FrameSummary objects; the exception beside it gets them, too."""
        for found in pattern(
            r"<FrameSummary file ([^,>]{1,300}), line (\d{1,9}) in ([^>]{1,120}>?)>"
        ).finditer(draft.parts[0]):
            frame = Frame(found[1], int(found[2]), found[3], "", package_of(found[1]), draft.line)
            draft.add_frame(frame)
        self.summary = draft
        if self.closed and not self.closed[0].frames and draft.line - self.closed[0].end_line <= 2:
            for frame in draft.frames:
                self.closed[0].add_frame(frame)

    def _nccl(self, draft: Draft, body: str) -> None:
        found = pattern(r"^([\w.-]+):(\d+):\d+ \[(\d+)\]").match(body)
        if found:
            draft.host = found[1]
        level = pattern(r"\bNCCL (INFO|WARN|ERROR|TRACE)\b").search(body)
        draft.level = {"WARN": "WARNING"}.get(level[1], level[1]) if level else draft.level

    def put(self, draft: Draft) -> None:
        if draft.rank is None:
            draft.rank = self.rank
        if draft.local_rank is None:
            draft.local_rank = self.local_rank
        self.keep.put(draft)

    def finish(self, draft: Draft, heads: int = 1, inner: bool = False) -> None:
        """Hand over an exception: link it to the one before, and give twins the frames they share."""
        if self.chain is not None and not inner:
            kind, before = self.chain
            self.chain = None
            chained(draft, kind, before)
        if self.twins > 0 and not draft.frames and self.twin is not None and draft.type:
            draft.frames = list(self.twin.frames)
            draft.headed = True
            self.twins -= 1
        elif heads > 1 and draft.frames:
            self.twins = heads - 1
            self.twin = draft
        else:
            self.twins = 0
        summary = self.summary
        if summary is not None and not draft.frames and 0 <= draft.line - summary.end_line <= 2:
            draft.frames = list(summary.frames)
            draft.headed = True
        if draft.type is None and not draft.parts and not draft.frames:
            draft.headed = True
        self.put(draft)
