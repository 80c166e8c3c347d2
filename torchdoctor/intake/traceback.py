"""Tracebacks as CPython prints them, with chains, wrapped inner tracebacks, and cut or doubled heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.extract.progress import is_progress
from torchdoctor.intake.elements import Draft, Line
from torchdoctor.intake.frames import as_one_stack, package_of, with_code
from torchdoctor.intake.interleave import FILE, Codes, is_mark
from torchdoctor.intake.lines import classify, exception_head, is_code
from torchdoctor.intake.message import Message, announces_process, breaks, ends_open, take_raised
from torchdoctor.model import EventKind, Frame, RelationKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.intake.reader import Feed

HEADER = "Traceback (most recent call last)"
TAKEN, PASS, DONE = 1, 2, 3
_FOREIGN_LIMIT = 8
_QUOTES = ('"""', "'''")
_CHAINS = (
    ("The above exception was the direct cause of the following exception", RelationKind.CAUSE),
    ("During handling of the above exception, another exception occurred", RelationKind.CONTEXT),
)
# Where a worker begins: a chained traceback that starts here belongs to the inner one, not to the wrapper.
_WORKER_STARTS = frozenset(
    ("_worker_loop", "_worker", "_wrap", "worker", "mapstar", "_process_worker", "do_one_step", "_call")
)


def chain_phrase(body: str) -> RelationKind | None:
    """The relation that a line between two tracebacks announces."""
    if "above exception" not in body:
        return None
    for phrase, kind in _CHAINS:
        if phrase in body:
            return kind
    return None


def parse_frame(body: str, at: int) -> Frame | None:
    """The frame of a line ``File "path", line 3, in function``, or None."""
    start = body.find('File "')
    if start < 0:
        return None
    middle = body.find('", line ', start + 6)
    if middle < 0:
        return None
    end = middle + 8
    stop = end
    while stop < len(body) and body[stop].isdecimal():
        stop += 1
    if stop == end:
        return None
    rest = body[stop:]
    link = body[start + 6] == "[" and rest.startswith("](")
    if link:  # JupyterLab makes a link of file and line: File "[/path", line 3](http://…), in f
        rest = rest.partition(")")[2]
    if rest.startswith(", in "):
        function = rest[5:].strip()
    elif rest.startswith(" in "):
        function = rest[4:].strip()
    elif rest.strip(" ,") not in ("", "in"):  # a page takes <module> for a tag of its own
        return None
    else:
        function = ""
    function = function.rstrip(" *")  # the marks of TensorFlow's AutoGraph
    file = body[start + 6 + link : middle]
    # torch.fx and dataclasses write such functions at run time; a user's "python -c" is <module>
    written = file == "<string>" and function in ("<lambda>", "__init__", "__eq__", "__repr__")
    package = "python" if written else package_of(file)
    if not package and file.endswith((".pyx", ".pxi")) and function.count(".") > 0:
        # Cython names the module in full, "init scipy.spatial._ckdtree", where it leaves out the folder
        package = function.removeprefix("init ").partition(".")[0]
    if file == "<unknown>" and "tvm" in function:
        package = "tvm_ffi"  # compiled code under it, without a file
    return Frame(file, int(body[end:stop]) if stop - end < 10 else None, function[:200], "", package, at)


def cell_head(before: str, text: str) -> bool:
    """Does a line end a notebook's traceback head: ``RuntimeError      Traceback (most recent call last)``?

    IPython fills the line up to 75 columns, so a long class name leaves few blanks or none, and a page that
    was copied has one. Without the colon that Python prints, the word before is no prefix.
    """
    if not text.rstrip().endswith(HEADER) or not before.strip():
        return False
    return before.endswith("  ") or bool(pattern(r"[A-Za-z_][\w.]*\s*$").match(before.lstrip()))


class TracebackReader:
    """Reads one traceback, its message, and what the message wraps."""

    def __init__(self, stream: Feed, line: Line, headed: bool = True) -> None:
        self.stream = stream
        self.draft = Draft(EventKind.EXCEPTION, line)
        self.draft.headed = headed
        self.outers: list[Draft] = []
        self.message: Message | None = None
        self.base = max(0, len(line.body) - len(line.body.lstrip(" "))) if headed else 0
        self.frame_indent = -1
        self.foreign = 0
        self.heads = 1
        self.headless = not headed
        self.prior: list[Frame] = []
        self.codes = Codes(headed)
        self.loose_type: str | None = None
        self.user_code = False
        self.debugger = False

    # ------------------------------------------------------------------ lines

    def take(self, line: Line) -> int:
        return self._in_message(line) if self.message is not None else self._in_frames(line)

    def _in_frames(self, line: Line) -> int:
        body = line.body
        stripped = body.lstrip(" \t")
        indent = len(body) - len(stripped)
        if not stripped:
            self.foreign += 1
            return TAKEN if self.foreign < 4 else DONE
        if line.joined:
            return TAKEN
        if stripped[0] in "F>" and stripped.startswith(('File "', '> File "')):
            frame = parse_frame(stripped, line.number)
            indent += 2 * (stripped[0] == ">")  # loguru marks the frame that caught
            if frame is not None:
                return self._frame(frame, indent)
        if self.draft.frames and indent > self.frame_indent:
            return self._code(line, stripped)
        if stripped.startswith("[Previous line repeated"):
            self.foreign = 0
            return TAKEN
        if HEADER in stripped:
            if stripped.startswith(HEADER):
                return self._second_header(line)
            if not pattern(r"^[\w.]+(?:\([\w.]+\))?: *" + "Traceback").match(stripped):
                return DONE
        if chain_phrase(stripped):
            return DONE
        if indent <= max(self.base, 2) or self.frame_indent < 0:
            head = exception_head(stripped.rstrip(), loose=True)
            if (head is not None and not line.mark.record) or (head is not None and self._same_record(line)):
                return self._exception(line, *head)
            if self.loose_type and stripped.startswith(": "):
                return self._exception(line, self.loose_type, stripped[2:])
            if (self.draft.frames or self.heads > 1) and "Error" in stripped[:160] and not breaks(line):
                scrambled = pattern(r"(\w*?([A-Z]\w*(?:Error|Exception)))\W{0,3}: ?").search(stripped[:200])
                if scrambled and "(" not in stripped[: scrambled.start()]:
                    return self._exception(line, scrambled[2], stripped)
        last = self.draft.frames[-1] if self.draft.frames else None
        if last is not None and self.frame_indent == 0 and not last.code and line.number == last.at + 1:
            return self._code(line, stripped)  # a page took all blanks away from the beginnings of lines
        self.foreign += 1
        return PASS if self.foreign <= _FOREIGN_LIMIT else DONE

    def _same_record(self, line: Line) -> bool:
        return line.mark.logger == self.stream.head_logger or not self.stream.head_logger

    def _frame(self, frame: Frame, indent: int) -> int:
        self.foreign = 0
        self.codes.frame(frame)
        if self.prior:
            first, self_prior = self.prior[0], self.prior
            self.prior = []
            if (first.file, first.function) == (frame.file, frame.function):
                self.draft.frames = self_prior  # two processes print at once: one list, without doubles
            else:
                self._lost_head(self_prior)
                self.heads = 1
        if self.frame_indent < 0:
            self.frame_indent = indent
            self.base = max(0, indent - 2)
        if self.heads > 1 and any(
            (f.file, f.line, f.function) == (frame.file, frame.line, frame.function)
            for f in self.draft.frames[-2:]
        ):
            return TAKEN
        self.draft.add_frame(frame)
        return TAKEN

    def _lost_head(self, frames: list[Frame]) -> None:
        """A traceback that broke off before its exception, with another one right behind it."""
        lost = Draft(EventKind.EXCEPTION, Line(self.draft.line, self.draft.raw, "", self.stream.head_mark))
        lost.headed = True
        lost.frames = frames
        lost.end_line = frames[-1].at
        self.stream.put(lost)
        self.draft.line = self.draft.end_line

    def _code(self, line: Line, stripped: str) -> int:
        self.foreign = 0
        code, _, more = stripped.rstrip().partition(FILE)
        indent = len(line.body) - len(stripped)
        if is_mark(code):
            self.draft.frames[-1] = self.codes.mark(self.draft.frames[-1], code, indent)
            return TAKEN
        self.codes.code(code, indent)
        if not self.draft.frames[-1].code:
            self.draft.frames[-1] = with_code(self.draft.frames[-1], code)
        frame = parse_frame(FILE + more, line.number) if more else None
        return self._frame(frame, self.frame_indent) if frame is not None else TAKEN

    def _second_header(self, line: Line) -> int:
        if self.draft.frames and self.heads == 1 and not self.prior:
            self.prior, self.draft.frames = self.draft.frames, []
            self.draft.end_line = line.number
        self.heads += 1
        self.stream.head_mark = line.mark
        return TAKEN

    def _exception(self, line: Line, name: str, text: str) -> int:
        self.foreign = 0
        draft = self.draft
        doubled = name.count("Error") > 1 or name.count("Exception") > 1
        twice = pattern(r"^(\w*?(?:Error|Exception))\1+$").match(name) if doubled else None
        if twice:  # "RuntimeErrorRuntimeError: : text": two processes wrote at once
            name, text = twice[1], text.lstrip(": ")
        if self.prior:
            draft.frames, self.prior = self.prior, []
        draft.type = name
        draft.end_line = line.number
        if draft.level is None:
            draft.level = line.mark.level
        if text.startswith(HEADER):  # torch before 1.2: the worker's traceback is the message
            self.message = Message(draft, line, self.base)
            return self._nest(line)
        if text.startswith("Caught ") or text:
            draft.add(text, line.number)
        self.message = Message(draft, line, self.base)
        return TAKEN

    # ---------------------------------------------------------------- message

    def _in_message(self, line: Line) -> int:
        message, draft = self.message, self.draft
        assert message is not None
        body = line.body
        stripped = body.strip()
        if not stripped or line.joined:
            self.user_code = self.user_code and not message.blank
            return TAKEN if message.wants(line) else DONE
        if HEADER in stripped:
            return self._header_in_message(line, stripped)
        if 'File "' in stripped:
            frame = parse_frame(stripped, line.number) if stripped.startswith('File "') else None
            if frame is not None and frame.function:
                return self._frame_in_message(line, frame)
        bare = draft.frames and not draft.frames[-1].code
        if (self.user_code or self.debugger) and bare and body[:1] in " \t":
            draft.frames[-1] = with_code(draft.frames[-1], stripped)
            draft.end_line = line.number
            return TAKEN
        if stripped == "from user code:":
            self.user_code = True
        if stripped in _QUOTES:
            return self._quotes(line)
        if chain_phrase(stripped):
            return DONE
        indent = len(body) - len(body.lstrip(" "))
        if indent <= message.base:
            if stripped.startswith("+ Exception Group"):
                return DONE
            head = exception_head(stripped, loose=False)
            if head is not None and not (message.blank and line.mark.record):
                if ends_open(draft) and draft.parts and not message.blank:
                    self._push(line)
                    self.draft.headed = False
                    return self._exception(line, *head)
                if draft.parts or draft.headed:
                    return DONE
        # Triton and TorchScript quote the source in the message
        own_code = (draft.type or "").endswith("CompilationError") or message.quotes_code()
        loose = (self.heads > 1 or self.headless) and not own_code
        if loose and draft.parts and not self.outers and is_code(stripped):
            return TAKEN if self.heads > 1 and indent >= 4 else DONE  # source lines of another process
        if message.wants(line):
            self._build_inside(line)
            return TAKEN
        if is_progress(body) and self.foreign < _FOREIGN_LIMIT:
            self.foreign += 1
            message.blank = max(message.blank, 1)  # what follows a bar must be tied to the message
            return PASS
        return DONE

    def _header_in_message(self, line: Line, stripped: str) -> int:
        draft, message = self.draft, self.message
        assert message is not None
        if stripped.startswith("Original Traceback"):
            return self._nest(line)
        if stripped.startswith(("+ Exception Group", "╭", "+--")) or "    " in stripped:
            return DONE
        inside = announces_process(draft) or _in_quotes(draft)
        if inside or (ends_open(draft) and draft.parts and not message.blank):
            return self._nest(line)
        return DONE

    def _nest(self, line: Line) -> int:
        self._push(line)
        self.message = None
        self.frame_indent = -1
        self.base = max(0, len(line.body) - len(line.body.lstrip(" ")))
        return TAKEN

    def _push(self, line: Line) -> None:
        inner = Draft(EventKind.EXCEPTION, line)
        inner.rank, inner.local_rank = self.draft.rank, self.draft.local_rank
        inner.headed = True
        self.outers.append(self.draft)
        self.draft = inner
        self.message = None
        self.heads = 1
        self.user_code = False

    def _frame_in_message(self, line: Line, frame: Frame) -> int:
        draft = self.draft
        if self.user_code or self.debugger:
            draft.add_frame(frame)
            if self.message is not None:
                self.message.blank = 0
            return TAKEN
        if "ray::" in "".join(draft.parts[-2:]) or ends_open(draft):
            self._push(line)
            self.frame_indent = -1
            taken = self._frame(frame, len(line.body) - len(line.body.lstrip(" ")))
            self.base += 2 * (draft.parts[-1:] == ["in user code:"])  # TensorFlow's, all of it as far in
            return taken
        if not draft.parts and self.draft.type and not self.outers:
            self.loose_type = draft.type  # scrambled: the type came alone, its text may follow
            draft.type = None
            self.message = None
            return self._frame(frame, len(line.body) - len(line.body.lstrip(" ")))
        return DONE

    def _quotes(self, line: Line) -> int:
        """Triple quotes around the traceback of another process (multiprocessing.pool.RemoteTraceback)."""
        if self.outers and _in_quotes(self.outers[-1]):
            outer = self.outers.pop()
            self.stream.finish(self.draft, inner=True)
            outer.link(RelationKind.WRAPS, self.draft)
            outer.parts = [part for part in outer.parts if part.strip() not in _QUOTES]
            outer.end_line = line.number
            self.draft = outer
            self.message = Message(outer, line, 0)
            return TAKEN
        self.draft.add(line.body.strip(), line.number)
        return TAKEN

    def _build_inside(self, line: Line) -> None:
        """The compiler's error lines in the message of a failed build are events of their own, too."""
        if "rror" not in line.body and "fatal" not in line.body and "not found" not in line.body:
            return
        found = classify(line)
        if found is not None and found[0] is EventKind.BUILD:
            build = Draft(EventKind.BUILD, line, line.body.strip())
            self.draft.link(RelationKind.WRAPS, build)
            self.stream.put(build)

    # ------------------------------------------------------------------- end

    def close(self) -> None:
        """Hand over what was read; the innermost exception first."""
        if self.prior and not self.draft.frames:
            self.draft.frames = self.prior
        frames = self.draft.frames
        last = frames[-1].function if len(frames) > 1 else ""
        if (self.debugger and last == "<module>") or last.startswith("_run_module_as_main"):
            frames.reverse()  # the debugger of VS Code prints the innermost first
        if frames and self.draft.type is None and not self.outers and frames[-1].code.startswith("raise "):
            take_raised(self.draft)
        for draft in (self.draft, *self.outers):
            draft.frames = as_one_stack(self.codes.sure(draft.frames))
        chain, draft = [self.draft], self.draft
        self.stream.finish(draft, self.heads, inner=bool(self.outers))
        while self.outers:
            outer = self.outers.pop()
            outer.link(RelationKind.WRAPS, draft)
            outer.end_line = max(outer.end_line, draft.end_line)
            self.stream.finish(outer, inner=bool(self.outers))
            chain.append(outer)
            draft = outer
        self.stream.closed = chain


def _in_quotes(draft: Draft) -> bool:
    return bool(draft.parts) and draft.parts[-1].strip() in _QUOTES


def chained(draft: Draft, kind: RelationKind, before: list[Draft]) -> None:
    """Link an exception to the one it names: behind a wrapper, to the inner or the outer one."""
    inner, outer = before[0], before[-1]
    if inner is not outer and draft.frames and draft.frames[0].function in _WORKER_STARTS:
        draft.link(kind, inner)
        outer.links = [(k, draft if to is inner else to) for k, to in outer.links]
    else:
        draft.link(kind, outer)
