"""The place of a failure that a person tells in his own words: ``it points to line 33 in my main.py``."""

from __future__ import annotations

from torchdoctor.intake.draft import pattern
from torchdoctor.intake.frames import package_of
from torchdoctor.model import Event, EventKind, Frame, Transcript

# Chinese and Japanese set no blank between words and a name
_FILE = (
    r"(?<![./~\\-])(?<![^\W\u3000-\u9fff])[`\"'(<\u201c]{0,2}"
    r"(?P<file>(?:[A-Za-z]:[\\/])?(?:[^\W\u3000-\u9fff]|[./~\\-]){1,200}\.(?:py|ipynb))"
    r"[`\"')>\u201d]{0,2}"
)
_LINE = (
    r"(?:lines?|[Ll]ine number|Zeile|ligne|l[i\u00ed]nea|linha|riga"
    r"|\u0441\u0442\u0440\u043e\u043a[\u0430\u0435\u0438]|l\.) ?[:#]? ?(?P<line>\d{1,6})(?!\d)"
    # lines 12 to 18 are no place
    r"(?! ?(?:-|\u2013|to|bis|through|\u00e0|hasta|at\u00e9) ?\d)"
)
# file and line in either order; a bare main.py:33 counts, as the sentence must speak of the failure
_PLACES = (
    rf"{_FILE}(?:,| on| at| in| \(|:| \u0432)? ?{_LINE}\b",
    rf"\b{_LINE}\)?,? ?(?:in|of|inside|from|der|de|von|du|del|di|\u0432|\u0444\u0430\u0439\u043b\u0430)"
    rf"(?: the| my| our| file| script| notebook| module){{0,3}} {_FILE}",
    rf"{_FILE}:(?P<line>\d{{1,6}})\b",
    # Chinese and Japanese: main.py 的第 33 行, main.py の 33 行目
    rf"{_FILE} ?(?:\u7684|\u306e|\u6587\u4ef6|\u4e2d|\uff0c|,){{0,3}} ?\u7b2c? ?(?P<line>\d{{1,6}}) ?\u884c",
    rf"\u7b2c ?(?P<line>\d{{1,6}}) ?\u884c[^\w]{{0,4}}{_FILE}",
)
_FAILS = (
    r"(?i)\b(?:points?|pointing|fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|happen(?:s|ed|ing)?"
    r"|occur(?:s|red|ring)?|rais(?:es|ed|ing)|throws?|thrown|threw|breaks?|broke|dies|died|stops?|stopped"
    r"|blows? up|goes wrong|com(?:es|ing) from|came from|originat\w+|trac(?:es|ed) back|trigger(?:s|ed)"
    r"|caus(?:es|ed)|allocated (?:at|in|by)"
    r"|trace(?:back)?|stack|\w*errors?|exception|culprit|offending|complain\w*"
    r"|hangs?|hung|stuck|freez(?:es?|ing)|froze|blocks|stands? still|h\u00e4ngt|bleibt|bloque|se cuelga"
    r"|bricht|scheitert|zeigt auf|fehler\w*|absturz|tritt auf|passiert|kracht|erreur|plante|\u00e9choue"
    r"|se produit|falla|ocurre|fallo|erro|errore|ocorre)\b"
    r"|\u5361(?:\u5728|\u4f4f|\u6b7b)|\u6b62\u307e|\u56fa\u307e|\u0437\u0430\u0432\u0438\u0441"
    r"|\u62a5\u9519|\u51fa\u9519|\u9519\u8bef|\u5f02\u5e38|\u5d29\u6e83|\u30a8\u30e9\u30fc|\u4f8b\u5916"
    r"|\u0432\u044b\u043b\u0435\u0442\u0430\u0435\u0442|\u043f\u0430\u0434\u0430\u0435\u0442"
    r"|\u043e\u0448\u0438\u0431\u043a"
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
# pytest ends a failure with "tests/test_a.py:41: AssertionError", which is its place
_RECORD = (
    r"^\s*(?:[\[(]|\d{2,4}[-/:]|[A-Z]+\b[ :]|[A-Z]\d{4} |[\w./-]+:\d+: (?!\w{1,40}(?:Error|Exception)\s*$))"
)
# "[finetune.py:61] step skipped (RuntimeError)": who catches a failure says where
_CAUGHT = r"^\s*\[[\w./-]+\.py:\d+\] .*\b[A-Z]\w*Error\b"


def told_frame(transcript: Transcript, shown: bool = False) -> Frame | None:
    """The one place in the user's code that the prose around a failure names; None where two are named.

    ``shown``: nothing failed and the whole text is about one thing, so that a place needs no word of failure.
    """
    found: dict[tuple[str, int], Frame] = {}
    names = {_name(frame.file) for event in transcript.events for frame in event.frames if frame.package}
    for above, event in zip((None, *transcript.events), transcript.events, strict=False):
        # "I get RuntimeError: … in net.py line 40": the words around a message are part of it
        in_words = event.told and event.kind is EventKind.EXCEPTION
        if (
            (event.kind is not EventKind.LOG and not in_words)
            or event.time
            or event.level
            or ".py" not in event.text.replace("ipynb", "py")
        ):
            continue
        if len(event.text) > 2_000 or (
            pattern(_RECORD).match(event.text) and not (shown and pattern(_CAUGHT).match(event.text))
        ):
            continue
        for frame in _places(event, in_words or shown or _announced(above, event)):
            name = _name(frame.file)
            if name not in names:
                found.setdefault((name, frame.line or 0), frame)
        if len(found) > 1:
            return None
    return next(iter(found.values()), None)


def _announced(above: Event | None, event: Event) -> bool:
    """Does the sentence above end in a colon and say that something fails, for the place below it?"""
    if above is None or above.kind is not EventKind.LOG or event.line - above.end_line > 2:
        return False
    sentence = pattern(r"(?<=[.!?;]) +|\n").split(above.text.rstrip())[-1]
    if len(sentence) > 600 or sentence[-1:] not in (":", "\uff1a") or pattern(_OTHER).search(sentence):
        return False
    return bool(pattern(_FAILS).search(sentence))


def _places(event: Event, failing: bool) -> list[Frame]:
    frames = []
    for sentence in pattern(r"(?<=[.!?;]) +|\n").split(event.text):
        if len(sentence) > 600 or pattern(_OTHER).search(sentence):
            continue
        if not failing and not pattern(_FAILS).search(sentence):
            continue
        for place in _PLACES:
            for match in pattern(place).finditer(sentence):
                file = match["file"]
                if not package_of(file) and not package_of(f".../{file}") and file not in _TORCH_FILES:
                    frames.append(Frame(file, int(match["line"]), "", "", "", event.line))
    return frames


def _name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]
