"""The place of a failure that a person tells in his own words: ``it points to line 33 in my main.py``."""

from __future__ import annotations

from torchdoctor.intake.draft import pattern
from torchdoctor.intake.frames import package_of
from torchdoctor.model import Event, EventKind, Frame, Transcript

_FILE = (
    r"(?<![\w./~\\-])[`\"'(<\u201c]{0,2}(?P<file>(?:[A-Za-z]:[\\/])?[\w./~\\-]{1,200}\.(?:py|ipynb))"
    r"[`\"')>\u201d]{0,2}"
)
_LINE = r"(?:lines?|[Ll]ine number|Zeile|ligne|l\.) ?[:#]? ?(?P<line>\d{1,6})"
# file and line in either order; a bare main.py:33 counts, as the sentence must speak of the failure
_PLACES = (
    rf"{_FILE}(?:,| on| at| in| \(|:)? ?{_LINE}\b",
    rf"\b{_LINE}\)?,? ?(?:in|of|inside|from|der|de|von)"
    rf"(?: the| my| our| file| script| notebook| module){{0,3}} {_FILE}",
    rf"{_FILE}:(?P<line>\d{{1,6}})\b",
)
_FAILS = (
    r"(?i)\b(?:points?|pointing|fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|happen(?:s|ed|ing)?"
    r"|occur(?:s|red|ring)?|rais(?:es|ed|ing)|throws?|thrown|threw|breaks?|broke|dies|died|stops?|stopped"
    r"|blows? up|goes wrong|com(?:es|ing) from|came from|originat\w+|trac(?:es|ed) back|trigger(?:s|ed)"
    r"|caus(?:es|ed)|trace(?:back)?|stack|errors?|exception|culprit|offending|complain\w*"
    r"|bricht|scheitert|zeigt auf)\b"
)
# what was done to a line, and what somebody else's line does
_OTHER = (
    r"(?i)\b(?:fix(?:ed|es)?|chang(?:ed|ing)|add(?:ed|ing)|remov(?:ed|ing)|edit(?:ed|ing)?|replac(?:ed|ing)"
    r"|patch\w*|comment(?:ed|ing)? out|no longer|used to|until|works?|worked|fine on|see|cf|e\.g|instead of"
    r"|similar|unrelated|if you|would|should)\b"
)
# what people name who read the stack's last line: files of torch
_TORCH_FILES = frozenset({
    "functional.py", "module.py", "linear.py", "conv.py", "_tensor.py", "tensor.py", "fetch.py", "worker.py",
    "collate.py", "distributed_c10d.py", "spawn.py", "serialization.py", "optimizer.py", "__init__.py",
    "_functions.py", "grad_mode.py", "container.py", "cpp_extension.py", "adam.py", "adamw.py", "sgd.py",
})  # fmt: skip
_RECORD = r"^\s*(?:[\[(]|\d{2,4}[-/:]|[A-Z]+\b[ :]|[A-Z]\d{4} |[\w./-]+:\d+: )"


def told_frame(transcript: Transcript) -> Frame | None:
    """The one place in the user's code that the prose around a failure names; None where two are named."""
    found: dict[tuple[str, int], Frame] = {}
    names = {_name(frame.file) for event in transcript.events for frame in event.frames if frame.package}
    for event in transcript.events:
        if (
            event.kind is not EventKind.LOG
            or event.time
            or event.level
            or ".py" not in event.text.replace("ipynb", "py")
        ):
            continue
        if len(event.text) > 2_000 or pattern(_RECORD).match(event.text):
            continue
        for frame in _places(event):
            name = _name(frame.file)
            if name not in names:
                found.setdefault((name, frame.line or 0), frame)
        if len(found) > 1:
            return None
    return next(iter(found.values()), None)


def _places(event: Event) -> list[Frame]:
    frames = []
    for sentence in pattern(r"(?<=[.!?;]) +|\n").split(event.text):
        if len(sentence) > 600 or not pattern(_FAILS).search(sentence) or pattern(_OTHER).search(sentence):
            continue
        for place in _PLACES:
            for match in pattern(place).finditer(sentence):
                file = match["file"]
                if not package_of(file) and not package_of(f".../{file}") and file not in _TORCH_FILES:
                    frames.append(Frame(file, int(match["line"]), "", "", "", event.line))
    return frames


def _name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]
