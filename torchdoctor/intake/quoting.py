"""Which events talk about a failure instead of being one."""

from __future__ import annotations

from torchdoctor.intake.draft import Draft, pattern
from torchdoctor.intake.form import is_prose
from torchdoctor.intake.lines import is_code, is_prompt, shown_exception
from torchdoctor.intake.listing import listed, mark_dumped, mark_entries, mark_lists, mark_settings, tabled
from torchdoctor.intake.passing import foreseen
from torchdoctor.intake.sentence import addresses, copied, leads
from torchdoctor.intake.told import Fences, Teller, rejoin, retype
from torchdoctor.intake.voice import questions_and_answers
from torchdoctor.model import EventKind, Form, Speech

_HELP_HEADS = (
    "usage:",
    "optional arguments:",
    "options:",
    "positional arguments:",
    "arguments:",
    "Options:",
    "Usage:",
    "Flags:",
)
# what leads up to a failure that a change does away with
_SPARED = (
    r"\W*(?:[Tt]o (?:avoid|prevent)|(?:[Tt]his )?(?:PR |patch |commit |change )?"
    r"(?:[Ff]ix(?:es|ed)|[Aa]voids|[Pp]revents)) [^.]{0,80}:$"
)
# how questions begin that end without their mark
_QUESTIONS = (
    "how to ", "how can ", "how do ", "how should ", "what should ", "why ", "\u5982\u4f55", "\u600e\u4e48",
    "\u8bf7\u95ee",
)  # fmt: skip
_GREP = r"^[\w./\\-]+\.(?:py|cpp|cu|h|cc|md|rst|txt|toml|yaml):\d+[:-]\s"
# a document or a program; in a log the line found is what happened
_FOUND = (
    r"^(?:[\w./\\-]+/)?[\w.-]+\.(?:py|cpp|cu|h|cc|md|rst|toml|ya?ml|html|ipynb):\d+[:-]"
    r"(?:\w+\.)*\w*(?:Error|Exception|CUDA)\b"
)
# a line that is nothing but the name of a document or a program
_NAMED = (
    r"(?:~?/|[A-Za-z]:[/\\])?(?:[\w.-]+[/\\])*[\w.-]+\.(?:py|cpp|cu|h|cc|md|rst|toml|ya?ml|html|ipynb|go|rs|js|ts|sh|c|tsx|java|kt|swift"
    r"|cs|hpp|cuh|rb)$"
)
# what was found in it, as editors, rg and websites number it
_PLACE = r" {0,8}(?:[\u00b7L] {0,2})?\d{1,6}(?:,\d{1,4})?(?:[:-]| {2,})"
_CSV = r"^[^\",:]{0,40},\"[^\"]{8,400}\"(?:,[^\",]{0,60})*$"
# an item of a list, or a key and its value, in a program
_ITEM = r"^[rbf]{0,2}([\"'])(?:(?!\1).){4,400}\1(?:,| ?: ?(?:[rbf]{0,2}[\"'].*[\"']|[\w.]{1,40}),?)$"
_STRING = r"^[rbf]{0,2}([\"'])(?:(?!\1).){4,400}\1$"
# log.error("…") and TORCH_CHECK(…, "…"); free() and what() have nothing between their parentheses
_CALL = r"^(?:raise |return |await )?[A-Za-z_][\w:.<>]*\([^)].*[\"'].*\);?$"
_HTML = r"^<(?:p|h\d|pre|li|code|td|th|tr|div|span|blockquote)\b[^>]*>.*</\w+>$"
_REAL_KEYS = (
    "error",
    "message",
    "msg",
    "reason",
    "exception",
    "detail",
    "stderr",
    "err",
    "what",
    "status",
    "cause",
    "description",
    "text",
)


def _complains(raw: str) -> bool:
    from torchdoctor.intake.titles import complains  # few inputs have a title and one line

    return complains(raw)


def mark_quoted(drafts: list[Draft], form: Form, chat: bool, speech: Speech, lines: list[str]) -> None:
    """Set ``quoted`` on the drafts; a headed traceback at the left edge never is."""
    asked = lines[-1].rstrip()[-1:] in ("?", "\uff1f") and "Did you mean: " not in lines[-1]  # Python's own
    titled = lines[0][:2] == "# " and _complains(lines[-1])
    short_question = len(lines) <= 2 and (asked or lines[-1].lower().startswith(_QUESTIONS) or titled)
    speaks = speech.now if chat else speech.person or short_question
    personal = form is Form.PROSE and not speech.lesson and speaks
    answered = ""  # the command at a prompt of Python to which the following lines are the answer
    helping = -1  # how far the head of a help text is indented; its options are indented further
    example = False
    fences = Fences()
    few = sum(draft.raw.strip("`~ ") != "" for draft in drafts) <= 3
    own_words = (draft.raw for draft in drafts if draft.kind is EventKind.LOG)  # messages say "you", too
    short = form is Form.PROSE and few and not any(map(addresses, own_words))
    spared = False  # what stands between the fences befalls nobody any more
    above = ""
    teller = None
    if (personal or short) and (not chat or speech.now) and not questions_and_answers(lines):
        teller = Teller(personal)
    live = speech.now
    told_in = Teller(speech.person) if form is Form.LOG and len(drafts) <= 3 else Teller(False)
    found_in = False  # below the name of a file, as rg and ack head what they found there
    for draft in drafts:
        raw = draft.raw
        shown = teller is not None and teller.shown(draft)
        if "```" in raw or "~~~" in raw:
            fences.see(raw)
            spared = fences.open and bool(pattern(_SPARED).match(above))
        elif spared and not draft.headed:
            draft.quoted = True
            continue
        else:
            above = raw
        if raw.lstrip(" \u00b7L")[:1].isdecimal():
            if found_in and pattern(_PLACE).match(raw):
                draft.quoted = True
                continue
        elif draft.kind is EventKind.LOG and raw.strip() and not (found_in and raw[:1] in " \t"):
            found_in = "." in raw and bool(pattern(_NAMED).match(raw))
        if fences.language in ("diff", "patch", "suggestion") and not draft.headed:
            draft.quoted = True  # what somebody wants to change
            continue
        if not draft.frames and foreseen(raw):
            draft.quoted = True
            continue
        if draft.kind is not EventKind.LOG:
            if not draft.headed and draft.kind is not EventKind.DEVICE_ASSERT:
                inside = 0 <= helping < len(raw) - len(raw.lstrip()) - 1
                draft.quoted = inside or _held(raw) or _logged_setting(draft)
                if draft.quoted:
                    continue
        else:
            stripped = raw.lstrip()
            if stripped[:4] in (">>> ", "In [") or stripped[2:7] == "echo ":
                answered = stripped
            elif answered and stripped[:4] == "... ":
                answered = f"{answered}\n{stripped}"[:2_000]
            elif is_prompt(raw) and stripped[:3] not in ("...", ">>>"):
                answered = ""
            if stripped.startswith(_HELP_HEADS):
                helping = len(raw) - len(stripped)
                draft.quoted = True
                continue
            if 0 <= helping < len(raw) - len(stripped) - 1:
                draft.quoted = True
                continue
            helping = -1
            if teller is not None and personal and raw[:1] == "#" and not fences.open:
                draft.quoted, draft.told = True, copied(raw)  # the title of a report
                if draft.told and leads(raw):
                    retype(draft)
                continue
            if _literal(raw) and not (shown and personal and raw[:1] != ">" and is_prose(raw, stripped)):
                draft.quoted = True
                continue
            if answered and _recited(raw, answered):
                draft.quoted = True
                continue
        if draft.kind is EventKind.EXCEPTION and not draft.frames and example:
            draft.quoted = raw[:1] in " \t"  # a doctest in a document
            continue
        example = draft.kind is EventKind.LOG and raw[:1] in " \t" and raw.lstrip()[:4] == ">>> "
        if form is Form.LOG and not draft.headed and (_told_about(draft) or _bracketed(draft)):
            draft.quoted = True
            continue
        if (
            form is Form.LOG
            and len(drafts) <= 3
            and draft.kind is EventKind.LOG
            and "::" not in raw
            and told_in.shown(draft)
        ):
            retype(draft)
        if form is Form.LOG or (personal and fences.open):
            continue  # in somebody's report the block between the fences is the output of his run
        if form is Form.SOURCE_CODE:
            draft.quoted = _in_program(draft)
        else:
            bare = personal or (short and not speech.lesson)
            draft.quoted = not shown and ((chat and not draft.headed) or _in_prose(draft, bare))
            draft.told = draft.quoted and (live or (teller is not None and personal)) and copied(raw)
            if teller is not None and draft.kind is EventKind.LOG and (shown or (draft.told and leads(raw))):
                retype(draft)
    rejoin(drafts if personal else [])
    mark_lists(drafts)
    mark_dumped(drafts)
    mark_settings(drafts)
    mark_entries(drafts, personal)
    if form is Form.PROSE and not chat:
        _beside_failures(drafts)
    if form is Form.LOG and drafts and drafts[0].raw[:2] == "# ":
        from torchdoctor.intake.titles import entitle

        entitle(drafts, speech.person)
    elif form is Form.LOG and [draft.line - drafts[0].end_line for draft in drafts[1:2]] == [2]:
        from torchdoctor.intake.titles import headline

        headline(drafts)  # a line that stands apart
    elif form is Form.SOURCE_CODE and speech.person and not speech.lesson and fences.seen:
        drafts[0].told = drafts[0].raw[:2] == "# " and copied(drafts[0].raw)  # a report that is mostly code
    _also_in_patch(drafts)


def _also_in_patch(drafts: list[Draft]) -> None:
    """A message between back quotes that a patch below adds or takes away is what the patch is about."""
    patch = "\n".join(d.raw for d in drafts if d.quoted and d.raw[:1] in ("+", "-"))
    if not patch:
        return
    for draft in drafts:
        if draft.kind is EventKind.LOG and not draft.quoted and "`" in draft.raw:
            held = pattern(r"`([^`]{24,})`").search(draft.raw)
            draft.quoted = held is not None and held[1] in patch


def _beside_failures(drafts: list[Draft]) -> None:
    """In a report the lines right before and after a failure with its stack are output of the same run."""
    real = [
        index
        for index, draft in enumerate(drafts)
        if not draft.quoted and draft.frames and draft.kind is not EventKind.WARNING
    ]
    for index in real:
        for step in (-1, 1):
            near = drafts[index].line if step < 0 else drafts[index].end_line
            for at in range(index + step, -1 if step < 0 else len(drafts), step):
                draft = drafts[at]
                raw = draft.raw
                apart = near - draft.end_line if step < 0 else draft.line - near
                if draft.kind is EventKind.CRASH and apart <= 3:
                    near = draft.line if step < 0 else draft.end_line
                    continue
                if (
                    draft.kind is not EventKind.LOG
                    or apart > 3
                    or raw.lstrip()[:1] in "|>*-#`~"
                    or _sentence(raw)
                ):
                    break
                draft.quoted = _literal(raw)
                near = draft.line if step < 0 else draft.end_line


def _sentence(raw: str) -> bool:
    """What a person writes: words between which few marks stand, and a full stop or a colon at the end."""
    text = raw.strip()
    spoken = pattern(r"[\w.-]{2,30} (?:[Ee]rror|[Ww]arning|fatal): ").match(text)  # a library, of itself
    return text[-1:] in ".?!:" and not spoken and is_prose(raw, text)


def _told_about(draft: Draft) -> bool:
    """A sentence that explains a message: ``The error message X indicates …``, ``XError: This means …``."""
    if draft.frames or draft.time or draft.rank is not None:
        return False
    text = draft.raw.strip().removeprefix("> ") if draft.kind is EventKind.LOG else draft.text()
    # most lines begin otherwise, and need no look; nor is the pattern compiled for them (start-up budget)
    return text.startswith(("The ", "This ", "That ", "A ", "An ", "It ")) and bool(
        pattern(
            r"(?:The|This|That|An?) (?:(?:error|warning|exception|full|above|following|same) ?){1,3}"
            r"(?:message|text|line)?(?::| ?[\u2014-])? ?"
            r"(?<!\w).{12,}\b(?:indicates?|means?|suggests?|is caused|stems from|occurs|happens)\b"
            r"|(?:This|It|That) (?:indicates|means|suggests|points to|usually|typically|happens|occurs)\b"
        ).match(text)
    )


def _bracketed(draft: Draft) -> bool:
    """True for a message between the quotation marks of Chinese and Japanese, within a sentence."""
    raw = draft.raw
    return (
        draft.kind is EventKind.LOG
        and "\u300c" in raw
        and bool(pattern(r"\u300c[^\u300d]{12,}\u300d").search(raw))
    )


def _recited(raw: str, command: str) -> bool:
    """A text that somebody had Python show: an object's repr, or what print was given."""
    text = raw.strip()
    if command[2:7] == "echo ":
        return text in command
    shown = text[:1] in "\"'" and text[-1:] == text[:1] and text.count(" ") >= 3
    return shown or "print(" in command


def _literal(raw: str) -> bool:
    """A line of a log that holds its message as a value: source, settings, options, test names, commands."""
    text = raw.strip()
    if not text:
        return False
    if "guarantee(" in text and pattern(r"^/\S+\.cpp:\d+: *guarantee\(").match(text):
        return False  # ROCm's runtime, of itself
    if pattern(r"^[\w.-]+ \.{3,} ").match(text) or text.startswith("Namespace("):
        return True  # a dump of settings
    if text[:1] == "-" and pattern(r"^(?:-\w,? )?--[A-Za-z][\w-]*(?:[ =,]|$)").match(text):
        return True
    if text.endswith(("PASSED", " ok", "SKIPPED", "XFAIL")) and pattern(r"(?:::|\btest_|\(\w+\.)").search(
        text
    ):
        return True
    if is_prompt(raw):
        return True
    if _held(raw):
        return True
    if "`" in text and pattern(_GREP).match(text):
        return True
    if '"' in text or "'" in text:
        key = pattern(r"^(?:- )?\"?([a-z][\w.-]{1,60})\"?\s*[:=]\s*[\[\"'(]").match(text)
        if key and not key[1].endswith(_REAL_KEYS):
            return True
        if is_code(text.lstrip(">+- ")) and shown_exception(text) is None:
            return True
        if pattern(_GREP).match(text) or pattern(_CSV).match(text):
            return True
        if text[:6].isupper() and pattern(r"(?:INSERT|UPDATE|SELECT|DELETE|CREATE|ALTER)\b").match(text):
            return True
    if text[:1] == "#" and pattern(r"#\d{1,7}\s+(?i:open|closed|merged|draft)\b").match(text):
        return True
    if text[:1] == "<" and pattern(_HTML).match(text):
        return True
    return ":" in text[:200] and bool(pattern(_FOUND).match(text, 0, 300))


def _logged_setting(draft: Draft) -> bool:
    """``10:00:00 INFO retry_on = "…"``: what a line below the level of a warning shows of a program."""
    level = draft.level or ""
    return level.upper() in ("INFO", "DEBUG") and _held(draft.raw.partition(level)[2].lstrip(" :|]-"))


def _held(raw: str) -> bool:
    """A line of a program, a settings file or a search in them: of whatever kind the text in it looks."""
    text = raw.strip()
    if _comment(text):
        return True
    if listed(text) or tabled(raw):
        return True
    found = pattern(_GREP).match(text)
    if found and text[found.end() - 1 : found.end() + 1].isspace():
        return _held(text[found.end() :])
    blamed = pattern(r"\d{1,7} +[a-z]\w{1,15} {2,}(?=\S)").match(text)
    if blamed:
        return _held(text[blamed.end() :])  # svn blame
    if ('"' not in text and "'" not in text) or text.startswith("tensor("):
        return False  # a tensor that was printed names its device so
    key = pattern(r"^(?:- )?([a-z][\w.-]{1,40}): (?:'[^']{8,}'|\"[^\"]{8,}\")$").match(text)
    if key and not key[1].endswith(_REAL_KEYS) and not key[1].rpartition(".")[2][:1].isupper():
        return True  # YAML; a class is the one of an exception
    if found:
        return False
    if text[:3] in ('- "', "- '") and text.rstrip(",")[-1:] in "\"'":
        return True
    if pattern(r"^[a-z_][\w.-]{0,60} += +[\"'(\[{]").match(text):
        return True  # an assignment, in a program or a settings file; loggers write key="value"
    if text[:1] in "\"'rbf":
        key = pattern(r"^\"([a-z][\w.-]{1,60})\"\s*:").match(text)
        if not (key and key[1].endswith(_REAL_KEYS)) and pattern(_ITEM).match(text):
            return True
        if raw[:1] in " \t" and pattern(_STRING).match(text):
            return True
    return text[-1:] in ");" and bool(pattern(_CALL).match(text)) and shown_exception(text) is None


def _comment(text: str) -> bool:
    """A comment of a program, alone or behind a statement."""
    if pattern(r"^(?:#+ ?[^\W\d]|//+(?: |[^\W\d])|/\*+ ?\w)").match(text):
        return True
    if ";  // " in text or "{  // " in text:
        return True
    code, mark, _ = text.partition("  #")
    return bool(mark) and (
        is_code(code) or pattern(r"^(?:except|try|elif|else|import|from)\b.*$").match(code) is not None
    )


def _in_program(draft: Draft) -> bool:
    if not draft.headed:
        return True
    return draft.raw[:1] in " \t#>" or not any(frame.line for frame in draft.frames)


# a warning with its place, which nobody writes by hand, whatever marks of Markdown stand before it
_LOCATED = r"[#>*` ]{0,8}[\w./~\\:-]{1,300}\.py:\d{1,6}: \w{0,40}Warning: "


def _in_prose(draft: Draft, personal: bool) -> bool:
    """In prose: headed tracebacks are real, bare error lines are when they stand for themselves."""
    if draft.headed and draft.kind is not EventKind.WARNING and draft.frames:
        return False
    raw = draft.raw
    text = raw.strip()
    if personal and draft.kind is EventKind.WARNING and pattern(_LOCATED).match(text):
        return False
    if raw[:1] in " \t" or text[:1] in "|>*-#":
        return True
    if "`" in text and draft.kind is not EventKind.DEVICE_ASSERT:
        # torch sets names of arguments between back quotes, too, in the middle of what it says
        said = pattern(r"[A-Za-z][\w.]+: (?!This |That |It |You |When |If )[^`]{24,}`").match(text)
        return not (personal and said is not None and draft.kind is EventKind.EXCEPTION)
    if draft.kind is EventKind.LOG:
        return not (draft.time or draft.rank is not None)
    return not (personal or draft.time is not None or draft.rank is not None)
