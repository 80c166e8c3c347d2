"""Tracebacks that are no plain text: IPython and Colab cells, rich's boxes, pytest's E lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.intake.elements import Line
from torchdoctor.intake.frames import package_of, with_code
from torchdoctor.intake.lines import exception_head, is_prompt
from torchdoctor.intake.message import Message
from torchdoctor.intake.traceback import DONE, HEADER, PASS, TAKEN, TracebackReader, chain_phrase
from torchdoctor.model import Frame
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

if TYPE_CHECKING:
    from torchdoctor.intake.reader import Feed

# IPython 8: File ~/x.py:12, in f(a)   Cell In[3], line 1, in f(a)   Input In [3], in <cell line: 1>()
_FILE = r"File (?P<file>.+?):(?P<line>\d+)(?:, in (?P<function>.*))?$"
_CELL = (  # Databricks names its cells <command-3412>; VS Code makes the line a link
    r"(?:File )?(?P<file>(?:Cell|Input) In ?\[(?:\d+|\*)\]|<command-\d{1,20}>)"
    r"(?:, \[?line (?P<line>\d+)(?:\]\([^)]{0,300}\))?)?(?:, in (?P<function>.*))?$"
)
# IPython 5 to 7, Colab, VS Code: <ipython-input-1-ab> in f(a)   ~/x.py in f(a)   x.ipynb Cell 5 in f()
_OLD = (
    r"\[?(?P<file><ipython-input-[^>]{1,80}>|<[\w -]{1,40}>|(?:~|/|\.{1,2}/"
    r"|[A-Za-z]:[\\/])[^\n\]]{1,300}?\.(?:py[cx]?|ipynb)|[\w.-]+/[\w./-]{1,300}\.(?:py[cx]?|pxi))"
    r"(?:\]\([^)]{0,200}\))?'?(?: Cell \d+'?)?(?: line (?P<line>\d+))? in (?P<function>(?:init "
    r")?[\w<>.]+(?: line: \d+>)?)(?:\(.*|)$"
)
_VSCODE = (
    r"\S{1,12} ?\d+ \S{1,8} (?P<file>\S{1,300}\.ipynb) in (?P<function><cell line: (?P<line>\d+)>"
    r"|[\w<>.]+)\(.*$"
)
# VS Code of 2022 and 2023, of a cell: /home/u/net.ipynb Cell 9 line 2, with a number of its own
_NUMBERED = r"(?P<file>(?:/|~|[A-Za-z]:[\\/])[^\n]{1,300}?\.ipynb) Cell \d+'? line \d+$"
_LINK = r"<a href='vscode-notebook-cell:[^'\n]{0,900}'>(\d+)</a>"  # around each line's number in the cell
_ARROW = r"^(?:-+>|❱|>) ?(?:\[(?P<link>\d+)\]\([^)]{0,300}\)|(?P<line>\d+))(?: ?│)? ?(?P<code>.*)$"
# the statement that raised, with its message as it stands in the program
_RAISED = (
    r"\s*raise (?P<type>(?:\w+\.)*\w*(?:Error|Exception))\(\s*"
    r"(?:(?P<mark>[\"']{3})(?P<three>[\s\S]{12,900}?)(?:(?P=mark)|$)"
    r"|(?P<quote>[\"'])(?P<one>[^\"'\n{}%]{12,300})(?P=quote))"
)
_CONTEXT = r"^\s*(?:\[?\d+\]?(?:\([^)]*\))?(?: |$)|\[\.\.\. |\d+ frames$)"
_ABOVE = 5  # lines; IPython shows two


def cell_frame(body: str, at: int) -> Frame | None:
    """The frame of a head line of a notebook traceback, or None."""
    if body[:1] in " \t" or len(body) > 1000:
        return None
    found = None
    if body.startswith("File ") and '"' not in body:
        found = pattern(_FILE).match(body) or pattern(_CELL).match(body)
    elif body.startswith(("Cell In", "Input In")):
        found = pattern(_CELL).match(body)
    elif " in " in body and (".py" in body or ".ipynb" in body or body[:1] == "<" or body[:2] == "[<"):
        found = pattern(_OLD).match(body) or (pattern(_VSCODE).match(body) if ".ipynb" in body else None)
    if found is None:
        told = pattern(_NUMBERED).match(body) if ".ipynb Cell " in body else None
        return Frame(told["file"], None, "", at=at) if told is not None else None
    function = (found["function"] or "<module>").partition("(")[0].strip() or "<module>"
    line = None if "cell line:" in function else found["line"]
    file = found["file"].strip()
    return _frame(file, line, function, at)


def _frame(file: str, line: str | None, function: str, at: int) -> Frame:
    frame = Frame(file, int(line[:9]) if line else None, function, at=at)
    return frame if frame.in_cell() else replace(frame, package=package_of(file))


def is_cell(body: str) -> bool:
    """True for a line that begins a notebook traceback whose header was cut off."""
    if body.startswith("File ") and '"' not in body:
        return bool(pattern(r"File \S.{0,300}\.(?:pyx?|ipynb):\d+, in ").match(body))
    return body[:1] not in " \t" and cell_frame(body, 0) is not None


class NotebookReader(TracebackReader):
    """Reads the frames of a notebook traceback; the message is read like any other."""

    def __init__(self, stream: Feed, line: Line, name: str) -> None:
        super().__init__(stream, line)
        self.name = name.rpartition(" ")[2]
        self.above: list[str] = []  # of the source, before the arrow
        self.raised: list[str] | None = None  # what follows "raise X(" where the arrow stands
        # forums want what is code to be indented, the whole paste alike
        self.margin = line.body[: len(line.body) - len(line.body.lstrip(" \t"))]

    def _in_frames(self, line: Line) -> int:
        if self.outers:  # the traceback of a worker within the message: Python printed it
            return super()._in_frames(line)
        body = line.body.removeprefix(self.margin)
        body = pattern(_LINK).sub(r"\1", body) if "</a>" in body else body
        stripped = body.strip()
        if not stripped:
            return TAKEN
        frame = cell_frame(body.rstrip(), line.number)
        if frame is not None:
            self.foreign = 0
            self.above = []
            self.draft.add_frame(frame)
            self.draft.cells = True
            return TAKEN
        arrow = pattern(_ARROW).match(stripped)
        if arrow and self.draft.frames:
            self._arrow(arrow["link"] or arrow["line"], arrow["code"])
            self.raised = [arrow["code"]] if arrow["code"].lstrip().startswith("raise ") else None
            return TAKEN
        head = None
        if body[:1] not in " \t":
            head = exception_head(stripped, loose=True)
            if head is None and self.name and stripped.startswith(f"{self.name}: "):
                head = (
                    self.name,
                    stripped[len(self.name) + 2 :],
                )  # "error: …", as cv2 and binascii name theirs
            if head is not None and self.name and head[0].rpartition(".")[2] != self.name.rpartition(".")[2]:
                head = head if head[0].endswith(("Error", "Exception")) and self.foreign == 0 else None
        if head is not None:
            return self._exception(line, *head)
        if stripped.startswith('File "'):
            return self._syntax(line, stripped)
        if HEADER in stripped or chain_phrase(stripped) or is_prompt(body):
            return DONE
        if pattern(_CONTEXT).match(body) or body[:1] in " \t":
            source = pattern(r"^\s*\d{1,6} ?").sub("", body)
            if self.raised is not None and len(self.raised) < 8:
                self.raised.append(source)
            elif self.draft.frames and not self.draft.frames[-1].code:
                self.above = [*self.above[-_ABOVE + 1 :], source[:300]]
            return TAKEN
        self.foreign += 1
        return TAKEN if self.foreign < 6 and not line.mark.record else DONE if self.foreign > 12 else PASS

    def close(self) -> None:
        """Hand over what was read; a paste cut before the exception has its class in the head."""
        draft = self.draft
        if draft.type is None and not draft.parts and draft.frames and not self.outers:
            if self.name.endswith(("Error", "Exception")):
                draft.type = self.name
            told = pattern(_RAISED).match("\n".join(self.raised)) if self.raised else None
            if told is not None:
                draft.type = told["type"]
                draft.add((told["three"] or told["one"]).strip(), draft.end_line)
        super().close()

    def _arrow(self, number: str | None, code: str) -> None:
        frame = self.draft.frames[-1]
        at = int(number[:9]) if number else frame.line
        above = "" if frame.package else "\n".join(self.above)
        self.draft.frames[-1] = replace(frame, line=frame.line or at, code=code.strip()[:300], above=above)

    def _syntax(self, line: Line, stripped: str) -> int:
        found = pattern(r'File "([^"]{1,300})", line (\d+)').match(stripped)
        if found:
            self.draft.add_frame(_frame(found[1], found[2], "", line.number))
        return TAKEN


class BoxReader(TracebackReader):
    """Reads a traceback in the box that rich draws, with wrapped paths, code and locals."""

    def __init__(self, stream: Feed, line: Line) -> None:
        super().__init__(stream, line)
        self.inside = True
        self.sides = line.body.lstrip()[:1] != "─"  # Streamlit has rich draw lines above and below only
        self.path = ""
        self.wants_name = False

    def _in_frames(self, line: Line) -> int:
        if self.outers:
            return super()._in_frames(line)
        body = line.body.strip()
        if not self.inside:
            if not body:
                self.foreign += 1
                return TAKEN if self.foreign < 3 else DONE
            head = exception_head(body, loose=True)
            return self._exception(line, *head) if head is not None else DONE
        self.draft.end_line = line.number
        if body[:1] in ("╰", "└") or (body[:2] in ("+-", "+─") and body[-1:] == "+"):
            self.inside = False
            return TAKEN
        if not self.sides:
            return self._open_sided(line, body)
        if body[:1] not in ("│", "|"):
            self.foreign += 1
            return PASS if self.foreign < 6 else DONE
        content = body[1:].strip("│|").strip() if body[-1:] in "│|" else body[1:].strip()
        if content:
            self._content(line, content)
        return TAKEN

    def _open_sided(self, line: Line, body: str) -> int:
        if len(body) > 8 and not body.strip("─"):
            self.inside = False
        elif body and line.body[:1] not in " \t❱":
            self.foreign += 1  # the right number of blanks is all that tells whose line it is
            return PASS if self.foreign < 6 else DONE
        elif body:
            self._content(line, body)
        return TAKEN

    def _content(self, line: Line, content: str) -> None:
        if content[0] in "╭╰│┌└":
            self.path = ""
            return
        if self.wants_name:
            self.wants_name = False
            frame = self.draft.frames[-1]
            self.draft.frames[-1] = Frame(frame.file, frame.line, content, "", frame.package, frame.at)
            return
        mark = pattern(r"^[❱>] *(\d+) (?:[│|] ?)?(.*)$").match(content)
        if mark and self.draft.frames:
            self.draft.frames[-1] = with_code(self.draft.frames[-1], mark[2].lstrip("│| ").strip())
            self.path = ""
            return
        text = content if content[0] in "/~" else self.path + content
        found = pattern(
            r"^(?P<file>(?:~|/|\.|[A-Za-z]:[\\/]|<)[^\n]{0,500}?):(?P<line>\d+)(?: in(?: "
            r"(?P<function>.*))?)?$"
        ).match(text)
        if found:
            self.path = ""
            self.wants_name = text.endswith(" in")
            file = found["file"]
            self.draft.add_frame(
                Frame(
                    file, int(found["line"][:9]), found["function"] or "", "", package_of(file), line.number
                )
            )
        elif pattern(r"^(?:/|~|[A-Za-z]:\\)\S*$").match(text) and len(text) < 600:
            self.path = text  # the path itself was wrapped
        else:
            self.path = ""


class PytestReader(TracebackReader):
    """Reads the lines that pytest marks with E, and the place it prints under them."""

    def __init__(self, stream: Feed, line: Line) -> None:
        super().__init__(stream, line, headed=False)
        for frame in stream.places:
            self.draft.add_frame(frame)
        stream.places = []
        self.draft.line = line.number
        self.ended = False
        self.margin = 4
        self._e_line(line)

    def take(self, line: Line) -> int:
        body = line.body
        if body.startswith("E  ") and not self.ended:
            self._e_line(line)
            return TAKEN
        if self.ended and not body.strip():
            return DONE
        self.ended = True
        place = place_of(body, line.number)
        if place is not None:
            self.draft.add_frame(place)
            return TAKEN
        return DONE if body.strip() else TAKEN

    def _e_line(self, line: Line) -> None:
        text = line.body[1:]
        if self.draft.type is None and self.message is None:
            self.margin = len(text) - len(text.lstrip())
            text = text.strip()
            head = exception_head(text, loose=True)
            if head is not None:
                self.draft.type, text = head
            elif text.startswith("assert"):
                self.draft.type = "AssertionError"
            self.message = Message(self.draft, line, 0)
            if text:
                self.draft.add(text, line.number)
            return
        self.draft.add(text[self.margin :] if text[: self.margin].isspace() else text.strip(), line.number)


def place_of(body: str, at: int) -> Frame | None:
    """The frame of a place of pytest: ``x.py:6: RuntimeError``, ``x.py:12:``, ``x.py:9: in test_it``."""
    if ".py:" not in body or len(body) > 400:
        return None
    found = pattern(
        r"^(?P<file>(?:[A-Za-z]:[\\/])?[^\s:]{1,300}\.py):(?P<line>\d+): ?"
        r"(?:in (?P<function>[\w.<>]{1,120})|[\w.]*)$"
    ).match(body.rstrip())
    if not found:
        return None
    file = found["file"]
    return Frame(file, int(found["line"][:9]), found["function"] or "", "", package_of(file), at)


def placed(stream: Feed, line: Line) -> tuple[TracebackReader, Line] | None:
    """A reader for ``src/head.py:14: RuntimeError: text``, as pytest --tb=line prints it, and the line
    from its exception on."""
    found = pattern(
        r"^((?:[A-Za-z]:[\\/])?[^\s:]{1,300}\.py):(\d{1,9}): ((?:\w+\.)*[A-Z]\w*(?:Error|Exception)): (?=\S)"
    ).match(line.body)
    if not found:
        return None
    reader = TracebackReader(stream, line, headed=False)
    reader.frame_indent = 0
    reader.draft.add_frame(Frame(found[1], int(found[2]), "", "", package_of(found[1]), line.number))
    return reader, Line(line.number, line.text, line.body[found.start(3) :], line.mark)
