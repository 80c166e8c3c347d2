"""Lines of lists, catalogs and tables that hold a message as one entry among others."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.lines import is_prompt
from torchdoctor.model import EventKind

# keys of records from which a model learns to answer or to classify
_LESSONS = (
    '"prompt":',
    '"completion":',
    '"question":',
    '"answer":',
    '"instruction":',
    '"messages":',
    '"expected":',
    '"gold":',
)
# a heading of MediaWiki, an attribute in Rust, an object in JavaScript
_SHOWN = r"(={2,4}) [^=].* \1$|#!?\[\w+\(.*\)\]$|\{ \w+: .*\},?$"
# "3. NCCL communicator was aborted      120 jobs": how often something was counted
_COUNTED = r"(?:\d{1,3}[.)] |[-*] )?\S.*\S {2,}[\d,.]+(?: ?[a-z%]+)?$"
# several figures beside each other: a row of a table that a program prints of its own run
_FIGURES = r"(?i)(?:\s{2,}(?:[\d.,]+(?:e[+-]?\d+)?[GMKs%]?|nan|inf)){3}$"
# a kind, how often it was counted, and its share
_SHARE = r"\S.*\S {2,}\d[\d,.]* +\(?\d[\d.,]* ?%$"
# git branch -v
_BRANCH = r"(?:\* )?[\w./-]*[a-z][\w./-]* +(?=[0-9a-f]*\d)[0-9a-f]{7,12} \S"
_ELEMENT = (
    r"<[\w:-]+\b[^>]*>(?:<(?:pattern|regexp?|hint|match|example|title|description|text|remedy)\b).*"
    r"</[\w:-]+>$"
    # Qt, XLIFF, TMX, Android, .NET
    r"|<(?:source|target|translation|seg|string|item|value|note|extracomment|oldsource)\b[^>]*>.*</\w+>$"
)
# "message -> docs/memory.md": where to read on
_POINTER = (
    r"\S.* (?:->|=>|\u2192) (?:see )?\S+\.(?:md|rst|html|txt)(?:#\S+)?$|\S.* (?:->|=>|\u2192) https?://\S+$"
)
# flake8, ruff, pylint, cpplint: a place in a program and the number of a rule
_LINTED = r"(?:^|\s)[\w./\\-]+\.(?:pyi?|ipynb|c|cc|cpp|cu|cuh|h|hpp):\d+(?::\d+)?: \[?[A-Z]{1,4}\d{3,4}\b"
# git log --oneline
_HEX = frozenset("0123456789abcdef")
_COMMIT = r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,12} (?:\([^)]{1,80}\) )?[A-Za-z]\S* "
_SETTING = r"[a-z_][\w.-]{0,60} += +(?:\w+\.)*\w*(?:Error|Exception): "


# "[ ] message", "( ) message" of a questionnaire; what a plan of tests expects; circled numbers
_POINT = (
    r"[\[(][ xX][\])] |(?:Expect(?:ed|s)?|Then|Given|When|And|Erwartet|Soll|\u9884\u671f|\u671f\u5f85\w*)\b"
    r"[^\"'`]{0,60}[\"'`]|[\u2460-\u2473] ?\S"
)
_DONE = ("[RESOLVED]", "RESOLVED: ", "[OK]", "[ok]", "[PASS]", "[pass]", "\u2705 ")
_ASKED = r"\b(?:prompt|question|query|instruction|title|caption)\s?[=:]\s?[\"'][^\"']{8}"


# commands that search, and what collects and queries logs
_QUERY = (
    r"(?:awk|grep|egrep|zgrep|rg|ack|sed|jq|journalctl|logcli)\s+(?:-|['\"/])|stash@\{\d+\}: "
    r"|[A-Ea-e][).] (?:\w+\.)*\w+(?:Error|Exception)\b|\S+\.\w{1,5} \d+:\d+ +(?:warning|info|error) "
    # grep -n over sources: an indented piece of code behind its number
    r"|\d{1,6}[-:](?: {4,}|\t)(?:[frbu]?[\"']|raise\b|return\b|assert\b|TORCH_CHECK)"
    r"|\d{1,6}[-:](?:[a-z_][\w.]*\(|[A-Za-z_]\w* = )[frbu]{0,2}[\"']"
    r"|\d{1,6} (?:[frbu]{0,2}[\"'`].*[\"'`],?|[a-z_][\w.]*\([frbu]{0,2}[\"'].*\);?)$"
    # the quickfix list of vim
    r"|[\w./\\-]+\.(?!log|txt|out|err)\w{1,5}\|\d+(?: col \d+(?:-\d+)?)?\| (?!(?:fatal )?error|warning|note)"
    r"|\d{1,6}  (?:git|grep|echo|cat|sed|awk|vim?|less|tail|head|python3?|pip|cd|ls|export|rg) "
    r"|<(?:Function|Module|Class|Package|Dir|Coroutine|UnitTestCase|TestCaseFunction) "
    r"|.*\s\|\s?(?:stats|count|where|timechart|table|top|search|line_format)\b|.*\|[=~] ?[`\"]"
)


# grep, git grep, ag, Select-String over programs: behind file, line and perhaps column comes a line of code,
# as far set in as it is there, or at once; what programs say of a place of theirs comes after one blank
_HIT = (
    r"(?:[\w.^~@/-]{1,60}:(?=[\w./-]))?(?:[A-Za-z]:)?[\w./\\~+-]+\.(?:pyi?|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|go|rs|js|jsx"
    r"|tsx?|java|kt|swift|cs|rb|lua|php|scala|jl|sh|ya?ml|toml|(?P<document>html|md|rst))[:-]\d{1,6}[:-](?:\d{1,4}[:-])?"
    r"(?P<code>(?: {2,}|\t)\S.*|[^\s:\d].*)$"
)
# code that holds a text: a call, an assignment, an item, a comparison, a statement of another language
_HOLDS = (
    r"(?:[\w.:<>\[\]!&*]+ ?\(|[\w.\[\]: ]+ ?(?::?=|<<) ?|[frbu]{0,2}[\"'`]|[#/*<{}()\[\]-]"
    r"|(?:raise|throw|return|assert|if|elif|else|case|export|const|let|var|val|static|def|with|except|import"
    r"|from|auto|char|public|private|final|print|echo|not|and|or|puts|use)\b.*[=(\"'`])"
)


def _found_in_code(text: str) -> bool:
    found = pattern(_HIT).match(text, 0, 600)
    if found is None:
        return False
    if found["document"]:
        return True
    code = found["code"]
    quoted = any(mark in code for mark in "\"'`")
    return code[0] in " \t#" or (quoted and bool(pattern(_HOLDS).match(code)))


_TYPED = (
    "awk ",
    "grep ",
    "egrep ",
    "zgrep ",
    "rg ",
    "ack ",
    "sed ",
    "jq ",
    "journalctl ",
    "logcli ",
    "stash@",
    "src",
)


def listed(text: str) -> bool:
    """True for an entry of a list, a table or a catalog; ``text`` is without white space at its ends."""
    first = text[:1]
    if (first in "[(ETGWAS\u9884\u671f" or "\u2460" <= first <= "\u2473") and pattern(_POINT).match(text):
        return True
    if (
        first in "<./"
        or "|" in text
        or text[1:2] in (")", ".")
        or text.startswith(_TYPED)
        or first.isdecimal()
    ) and pattern(_QUERY).match(text, 0, 400):
        return True
    if text.startswith(_DONE) or text[:3] == "[]\\":  # TeX, of a line that it cannot set well
        return True
    if first == "#" and pattern(r"#\d{1,6} {2,}\S.* {2,}\S").match(text):
        return True  # the issues of a project, a row each
    if ("prompt" in text or "quer" in text or "question" in text or "title" in text) and pattern(
        _ASKED
    ).search(text):
        return True
    if first == "{" and (
        any(key in text for key in _LESSONS)
        or ('"label":' in text and ('"text":' in text or '"input":' in text))
    ):
        return True
    if text[:2] in ("==", "#[", "{ ") and pattern(_SHOWN).match(text):
        return True
    if first == "<" and "</" in text and pattern(_ELEMENT).match(text):
        return True
    if ":" in text and "." in text[:200] and pattern(r"\S+[:-]\d+[:-]").match(text) and _found_in_code(text):
        return True
    if text.startswith(("msgid", "msgstr", "msgctxt", "#~ ", "#| ")):
        return True  # gettext
    if ":" in text and text[-1:] != ":" and pattern(_LINTED).search(text, 0, 300):
        return True
    if first in _HEX and 7 <= text.find(" ") <= 12 and pattern(_COMMIT).match(text):
        return True
    if " as expected" in text and pattern(r"\b(?:raise[sd]?|caught)\b|\bexpected(?::|$)").search(text):
        return True
    if ("->" in text or "=>" in text or "\u2192" in text) and pattern(_POINTER).match(text):
        return True
    if text[-1:] == "%" and pattern(_SHARE).match(text):
        return True
    if "  " in text and text[-1:].isalnum():
        if pattern(_BRANCH).match(text):
            return True
        return (
            (first.isdecimal() or first in "-*")
            and bool(pattern(_COUNTED).match(text))
            and not pattern(_FIGURES).search(text[-80:])
        )
    return " = " in text and first.islower() and bool(pattern(_SETTING).match(text))


# a row of a table in a program: a text and what belongs to it, in brackets or in a call
_ROW = (
    r"(?:[A-Za-z_][\w.]{0,60})?[(\[](?:[\w.+-]{1,40}, ?){0,3}[rbf]{0,2}([\"'])(?:(?!\1).){4,400}\1"
    r"(?:, ?(?:\w{1,30}=)?(?:[\w.+-]{1,60}|[rbf]{0,2}\"[^\"]*\"|[rbf]{0,2}'[^']*'))*[)\]],$"
)


def tabled(raw: str) -> bool:
    """True for an item of a list in a program that is a tuple, a list or a call with a text in it."""
    return raw[:1] in " \t" and raw.rstrip()[-2:] in ("),", "],") and bool(pattern(_ROW).match(raw.strip()))


# an entry of a list, or a heading, that begins with a message or holds nothing but one
_ENTRY = (
    r"\s*(?:[-*+\u2022\u2023\u25aa\u25cf\u2013]|\(?\d{1,2}[.):]|#{1,6}(?: \d{1,2}[.):]?)?|\*\*|[a-z]\)) ?\**"
    r"(?:[`\"\u201c\u201e\u300c]((?:[^`\"\u201d\u300d]+ ){3,}[^`\"\u201d\u300d]+)[`\"\u201d\u300d]"
    r"|[`\"\u201c]?((?:\w+\.)*\w+(?:Error|Exception): .+))"
)


# the message of an entry, and what its writer remarks on it
_REMARKED = r"[`\"\u201d\u300d]\** ?(?:[:\u2013\u2014\u2192\uff1a]|--?>?|=>) ?\S+ \S"
# without one of these no line is looked at closely (start-up budget)
_MARKS = ("Error: ", "Exception: ", "`", '"', "\u201c", "\u201e", "\u300c")


def _entry(raw: str) -> str:
    """The message that an entry of a list or a heading holds, without its numbers; empty for another line."""
    if not any(mark in raw for mark in _MARKS):
        return ""
    found = pattern(_ENTRY).match(raw, 0, 400)
    return _letters(found[1] or found[2]) if found else ""


def _letters(text: str) -> str:
    """What tells one message from another, whatever its numbers."""
    return pattern(r"[\W\d]+").sub("", text)[:60]


# what an entry may begin with
_BEGINS = frozenset("-*+#(0123456789\u2022\u2023\u25aa\u25cf\u2013abcdefgh")


def mark_entries(drafts: list[Draft], personal: bool) -> None:
    """Several headings with a message each; or entries of a list, where nobody says that they befell him."""
    entries = [draft for draft in drafts if not (draft.frames or draft.time or draft.rank is not None)]
    entries = [draft for draft in entries if draft.raw.strip()[:1] in _BEGINS and _entry(draft.raw)]
    if personal:
        remarked = [draft for draft in entries if pattern(_REMARKED).search(draft.raw, 0, 400)]
        entries = remarked if len(remarked) > 2 else [draft for draft in entries if draft.raw[:1] == "#"]
    if len({_entry(draft.raw) for draft in entries}) >= 2 + personal:
        for draft in entries:
            draft.quoted, draft.told = True, False


# commands that print what stands in a program or a library, the texts of its messages among it
_DUMPS = r"(?:\S{1,80}[$#%] |[$%] )(?:sudo )?(?:strings|nm|objdump|readelf|c\+\+filt|hexdump|xxd|cuobjdump)\s"


def mark_dumped(drafts: list[Draft]) -> None:
    """What such a command prints, up to the next prompt."""
    dumped = False
    for draft in drafts:
        if draft.kind is EventKind.LOG and is_prompt(draft.raw):
            dumped = bool(pattern(_DUMPS).match(draft.raw))
        elif dumped:
            draft.quoted, draft.told = True, False


def mark_lists(drafts: list[Draft]) -> None:
    """Three exceptions and more right below each other, each with a message of its own, none with frames."""
    run: list[Draft] = []
    for draft in [*drafts, None]:
        bare = (
            draft is not None
            and draft.kind is EventKind.EXCEPTION
            and not (draft.frames or draft.headed or draft.time or draft.rank is not None or draft.links)
        )
        if draft is not None and bare and (not run or draft.line == run[-1].end_line + 1):
            run.append(draft)
            continue
        for one in run[-1:]:
            named = pattern(r"(?m)^\s*(?:\w+\.)*\w+(?:Error|Exception): ").findall(one.text())
            one.quoted = one.quoted or len(named) >= 2
        if len(run) >= 3 and len({_letters(one.text()) for one in run}) == len(run):
            for one in run:
                one.quoted, one.told = True, False
        run = [draft] if draft is not None and bare else []


_OWN_KEYS = ("rror", "rrors", "eason", "easons", "essage", "essages", "ilure", "ilures", "ception", "output")


def mark_settings(drafts: list[Draft]) -> None:
    """Set ``quoted`` on the items of a list below a key of settings, as YAML is printed: what to retry on."""
    within = False
    for draft in drafts:
        if draft.kind is EventKind.LOG and draft.raw[:1] in " \t" and draft.raw.lstrip()[:2] == "- ":
            draft.quoted = draft.quoted or within
            continue
        key = draft.raw.strip()
        within = (
            key[-1:] == ":"
            and not key.endswith(tuple(f"{own}:" for own in _OWN_KEYS))
            and bool(pattern(r"[a-z][\w.]{1,40}:$").match(key))
        )
