"""Which stream a line belongs to: cleaning, prefixes known and learned, lines glued to others."""

from __future__ import annotations

from torchdoctor.intake.clean import bounded, clean, unbold, unescape, unmarked
from torchdoctor.intake.elements import NO_MARK, Line, Mark
from torchdoctor.intake.interleave import Interleaved
from torchdoctor.intake.keep import Keep
from torchdoctor.intake.learning import (
    Shape,
    common_shape,
    label_column,
    marker,
    quotation_shape,
    service_shape,
    shape_of,
    stands_alone,
)
from torchdoctor.intake.prefix import split
from torchdoctor.intake.quotation import Sample
from torchdoctor.intake.stream import Stream
from torchdoctor.intake.traceback import HEADER, cell_head
from torchdoctor.intake.unfold import FrameMender, Unfolder
from torchdoctor.patterns import pattern

STREAMS = 4_096
LEARNED = 16
LONG = 2_000  # a longer line may come in pieces
RECORD_CHARS = 1 << 18  # of a log record in JSON
_OBJECT = ('{"', "{ ", "[{", ",{")
HELD = 1_100  # headers in a row, one of each rank
_RULED = ("=", "-", "#", "*", "+", "~", ">", "_")
_HEADING = (
    r"(?i)[=\-#*+~>_]{2,80}[ :]{1,4}(?:[\w./\\ -]{0,200}?[ _./\\-])??(?:global[ _-]?)?rank[ _=:#-]{0,3}"
    r"(?P<rank>\d{1,6})(?![\d/]| of)(?:[ .,:(][^=*#]{0,60})?(?:[ :]{0,4}[=\-#*+~<_]{2,80})?\s*$"
)


class Router:
    """Cleans lines, takes their prefixes off, learns new prefixes, and hands each line to its stream."""

    def __init__(self) -> None:
        self.keep = Keep()
        self.sample = Sample()
        self.plain = Stream(self.keep)
        self.streams: dict[str, Stream] = {"": self.plain}
        self.learned: list[Shape] = []
        self.record: Stream | None = None  # a tagged record whose continuation may come without tag
        self.held: list[tuple[str, int, str]] = []  # headers behind something that may be a prefix
        self.cut_clean = True
        self.recent = self.plain  # where the line before went, for a piece that continues it
        self.runs: tuple[str, int] = ("", 0)
        self.interleaved = Interleaved()
        self.section: Stream | None = None  # the part of a file that one rank wrote, under a heading
        self.mender = FrameMender()
        self.unfolder = Unfolder()
        self.named = ""  # the class of the exception that a report's field named
        self.long = (0, "")  # the pieces of a log record that is one long line, as far as they came
        self.column = 0  # of the colon behind the padded numbers of srun -l
        self.grouped = False  # inside an exception group
        self.listed = False  # behind a record that is an item of a list
        self.before = ""  # the line before, which a prefix has in common with the next one

    def physical(self, number: int, text: str, joined: bool) -> None:
        joined = joined and not self.cut_clean
        if self.long[1]:
            if joined and len(self.long[1]) < RECORD_CHARS:
                self.long = (number, self.long[1] + text)
                return
            self._whole()
        if not joined and len(text) > LONG and text[:2] in _OBJECT and text.rstrip()[-1:] != "}":
            self.long, self.cut_clean = (number, text), False
            return
        self._physical(number, text, joined)

    def _whole(self) -> None:
        (number, text), self.long = self.long, (0, "")
        self._physical(number, text, False)

    def _physical(self, number: int, text: str, joined: bool) -> None:
        self.sample.see(number, text)
        if self.listed and text == "]":  # the end of a list of records
            return
        self.cut_clean = text.endswith("\r")
        if "\\n" in text or text[:2] in _OBJECT:
            lines = self._record(text) if text[:2] in _OBJECT else None
            self.listed = lines is not None and text[0] in "[,"
            lines = unescape(text) if lines is None and "\\n" in text else lines
            if lines is not None:
                for part in lines:
                    self.logical(number, part, False)
                return
        if ":** " in text[:48]:
            text = self._field(text)
        if "**" in text:
            text = unbold(text)
        mended = self.mender.take(number, text)
        if mended is None:
            self._unfolded(number, text, joined)
            return
        for at, line in mended:
            self._unfolded(at, line, False)

    def _record(self, text: str) -> list[str] | None:
        from torchdoctor.intake.record import lines_of

        return lines_of(text)

    def _unfolded(self, number: int, text: str, joined: bool) -> None:
        unfolded = self.unfolder.take(text)
        if unfolded is not None:
            for line in unfolded:
                for part in clean(line):
                    self.logical(number, part, False)
            return
        for part in clean(text):
            self.logical(number, part, joined)
            joined = False

    def _field(self, text: str) -> str:
        """A field of a report in Markdown; the class of an exception and its message stand in two of them."""
        kind = pattern(r"^\s*(?:[-*] )?\*\*Exception Type:\*\* ([\w.]+)\s*$").match(text)
        if kind:
            self.named = kind[1]
            return text
        message = unmarked(text)
        if message is text or not self.named:
            return message
        named, self.named = self.named, ""
        return f"{named}: {message}"

    def prime(self, texts: list[str]) -> None:
        """Learn from the first lines what all lines begin with."""
        bare = [part for text in texts if len(text) < 2_000 for part in clean(text)[:1]]
        self.column = label_column(bare)
        if self.column:
            return
        rest = [text[split(text, [])[2] :] for text in bare]
        shape = common_shape(rest) or service_shape(rest) or quotation_shape(rest)
        if shape is not None:
            self.learned.append(shape)

    def logical(self, number: int, text: str, joined: bool) -> None:
        if len(text) > 128:
            text = bounded(text)
        if self.column and text[:1] == " " and text[self.column : self.column + 1] == ":":
            text = text.lstrip(" ") if text[: self.column].lstrip(" ").isdecimal() else text
        apart = self.interleaved.take(number, text)
        if apart is None:
            self._logical(number, text, joined)
            return
        for at, piece in apart:
            self._logical(at, piece, False)

    def _logical(self, number: int, text: str, joined: bool) -> None:
        if self.grouped or "Exception Group Traceback" in text:
            text = self._ungrouped(text)
        if HEADER in text or "/s" in text or "s/it" in text or 'File "' in text:
            parts = self._unglue(number, text)
            if parts is None:
                return
            for part in parts:
                self._route(number, part, joined)
                joined = False
            return
        if self.held:
            self._release()
        if not joined:
            at = marker(text)
            if at > 0:
                self._learn_marker(text[:at])
            elif text[:1].isalpha():
                self._repeat(text)
            self.before = text
        self._route(number, text, joined)

    def _ungrouped(self, text: str) -> str:
        """A line of an exception group without its margin, of which each member has another one."""
        found = pattern(r" *(?:\+[-+]+(?: \S+ -+)?$|[|+](?: |$))").match(text)
        self.grouped = found is not None and (self.grouped or "Exception Group Traceback" in text)
        return text[found.end() :] if found else text

    def _learn_marker(self, before: str) -> None:
        """Learn what stands before the bare word of a shell or the head of a stack dump, if a prefix."""
        _, _, bare = split(before, self.learned)
        head = before[bare:]
        if head.strip() and len(head) <= 100 and len(self.learned) < LEARNED:
            _, _, other = split(self.before, self.learned)
            if stands_alone(head) or self.before.startswith(head, other):
                self.learned.append(shape_of(head))

    def _repeat(self, text: str) -> None:
        """Learn a tag like ``diffusers> `` or ``web_1  | `` that eight lines in a row begin with."""
        last, count = self.runs
        if last and text.rstrip() == last:
            return
        end = text.find("> ", 1, 40) + 1 or text.find("| ", 2, 40) + 1
        tag = text[:end]
        if not end or " " in tag.rstrip("|> "):
            self.runs = ("", 0)
        elif tag == last:
            self.runs = (tag, count + 1)
            if (
                count == 6
                and len(self.learned) < LEARNED
                and pattern(r"^[A-Za-z][\w./@-]{1,38}(?:>| *\|)$").match(tag)
            ):
                self.learned.append(shape_of(tag + " "))
        else:
            self.runs = (tag, 1)

    def _route(self, number: int, text: str, joined: bool) -> None:
        if joined:
            line = Line(number, text, text, NO_MARK, True)
            self.recent.feed(line)
            return
        mark, shown, bare = split(text, self.learned)
        line = Line(number, text[shown:] if shown else text, text[bare:] if bare else text, mark)
        if text[:1] in _RULED and "ank" in text and not mark.key:
            self._heading(text)
        if not mark.key and self.section is not None:
            if mark is NO_MARK:
                line.mark = mark = Mark()
            mark.rank = self.section.rank
            self.recent = self.section
            self.section.feed(line)
            return
        if not mark.key:
            record = self.record
            if record is not None and not mark.record and self.plain.reader is None:
                if record.chains(text):
                    self.recent = record
                    record.feed(line)
                    return
                if text and HEADER not in text and record.offer(line):
                    self.recent = record
                    return
                if text.strip():
                    self.record = None
            elif mark.record:
                self.record = None
            self.recent = self.plain
            self.plain.feed(line)
            return
        stream = self.streams.get(mark.key)
        if stream is None:
            if len(self.streams) >= STREAMS:
                stream = self.plain
            else:
                stream = self.streams[mark.key] = Stream(self.keep)
        if mark.rank is not None:
            stream.rank = mark.rank
        elif stream.rank is not None:
            mark.rank = stream.rank
        fresh = stream.reader
        self.recent = stream
        stream.feed(line)
        self.record = (
            stream if mark.record and stream.reader is not None and stream.reader is not fresh else None
        )

    def _heading(self, text: str) -> None:
        """``==> stack_rank2.txt <==`` or ``===== rank 2 =====``: what follows is of that rank."""
        found = pattern(_HEADING).match(text)
        if found:
            if self.section is not None:
                self.section.close()
            rank = int(found["rank"])
            key = f"heading rank {rank}"
            self.section = self.streams.setdefault(key, Stream(self.keep))
            self.section.rank = rank

    # -------------------------------------------------------- glue and learning

    def _unglue(self, number: int, text: str) -> list[str] | None:
        """The parts of a line in which a traceback or a record follows something else directly."""
        at = text.find(HEADER)
        if at > 0 or text.startswith(f"{HEADER}:  File"):
            return self._unglue_header(number, text, at)
        at = text.find('File "') if '", line ' in text else -1
        if at > 2 and text[at - 2 : at] == "  " and not text[:at].isspace():
            self._learn(text, text[: at - 2])
            return [text]
        if self.held:
            self._release()
        if "it/s" in text or "s/it" in text or "B/s" in text:
            bar = pattern(r"(?:it/s|s/it|B/s)[^\]\[\n]{0,200}\](?=[^\s\],])").search(text)
            if bar:
                return [text[: bar.end()], text[bar.end() :]]
        return [text]

    def _unglue_header(self, number: int, text: str, at: int) -> list[str] | None:
        before = text[:at]
        behind = text[at + len(HEADER) :]
        if behind.startswith(":") and behind[1:].lstrip().startswith('File "') and "`" not in before:
            # NumPy prints the stack of an import without a line end behind the header
            parts = self._unglue_header(number, before + HEADER + ":", at)
            _, _, bare = split(before, self.learned)
            if parts is not None:
                return [*parts, f"{text[:bare]}  {behind[1:].lstrip()}"]
            return self._unglue(number, f"{before}  {behind[1:].lstrip()}")
        _, _, bare = split(before, self.learned)
        left = before[bare:]
        stripped = left.strip()
        if stripped.strip("|+ ") in ("", "Original", "traceback :", "Exception Group"):
            if self.held:
                self._release()
            return [text]
        if (
            stripped[0] in "╭┌"
            or not stripped.strip("─")
            or stripped[:3] in ("+--", "+ -")
            or cell_head(left, text)
        ):
            return [text]
        if stripped.endswith(":") and pattern(
            r"^[\w.]*(?:Error|Exception|Empty|Iteration|Interrupt): ?$"
        ).match(stripped):
            return [text]
        tag = pattern(r"\[(?:rank|default)\d+\]: ?(?:\[rank\d+\]: ?)?$").search(before)
        if tag:
            return [before[: tag.start()], text[tag.start() :]]
        if "`" in stripped or stripped.endswith(("'", '"', "(")) or text[at + len(HEADER) :].strip(": "):
            return [text]
        if pattern(r"\]$|\^C$|[%)]$|\.\.\.$").search(stripped) or (
            len(stripped) > 60 and "[" not in stripped
        ):
            return [before, text[:bare] + text[at:]]
        self.held.append((before, number, text))
        if len(self.held) > HELD:
            self._release()
        return None

    def _learn(self, text: str, prefix: str) -> None:
        """A frame stands behind this prefix: take it off from now on, and from headers held back."""
        _, shown, bare = split(prefix, self.learned)
        unknown = prefix[max(shown, bare) :]
        if unknown.strip() in (">", ">>", "> >") and self.held and self.held[-1][0] == prefix:
            self.learned.append(shape_of(unknown, tag=False))
        elif (
            unknown.strip(" |│+>")
            and unknown.strip() != "Serialized"  # TorchScript's word for a frame of an archive
            and len(unknown) <= 100
            and len(self.learned) < LEARNED
            and not unknown.rstrip().endswith(("(", "=", ","))
        ):
            shape = shape_of(unknown)
            if shape.pattern.pattern not in [known.pattern.pattern for known in self.learned]:
                self.learned.append(shape)
        held, self.held = self.held, []
        for before, number, line in held:
            _, _, bare = split(before, self.learned)
            if before[bare:].strip():
                at = len(before)
                self._route(number, before, False)
                self._route(number, line[at:], False)
            else:
                self._route(number, line, False)

    def _release(self) -> None:
        """The headers held back were glued to their line, not prefixed."""
        held, self.held = self.held, []
        for before, number, line in held:
            _, _, bare = split(before, self.learned)
            self._route(number, before, False)
            self._route(number, line[:bare] + line[len(before) :], False)

    def close(self) -> None:
        if self.long[1]:
            self._whole()
        for at, line in self.mender.rest():
            self._unfolded(at, line, False)
        for line in self.unfolder.rest():
            self.logical(0, line, False)
        for at, piece in self.interleaved.rest():
            self._logical(at, piece, False)
        self.pause()

    def pause(self) -> None:
        """What is open ends here: nothing that follows stands directly behind it."""
        if self.held:
            self._release()
        for stream in self.streams.values():
            for _ in range(64):  # a reader may give lines back that open another
                if stream.reader is None:
                    break
                stream.close()
        self.record = None
        self.before = ""
        self.runs = ("", 0)
        self.keep.bar = None
