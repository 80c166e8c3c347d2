"""Cleaning of lines: escape sequences, carriage returns, control characters, escaped JSON, length."""

from __future__ import annotations

import re

from torchdoctor.patterns import pattern

# ECMA-48: CSI, OSC with either end, DCS/PM/APC/SOS strings, two-character escapes; then the 8-bit CSI.
_ANSI = (
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)"
    r"|[PX^_][^\x1b]{0,2048}\x1b\\|[ -/]{0,8}[0-~])"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
# Colour codes whose escape character got lost on the way through a web form or `cat -v`.
_BARE_COLOUR = (
    r"(?:\^\[)?\[(?:\d{1,3}(?:;\d{1,3}){0,4})?m(?![\w.])|\^\[\[[0-9;]{0,12}[mKABCDHJ]"
    r"|\[(?:\d{1,3};){1,4}\d{1,3}m|\[[01]m"
)

# Control characters, invisible marks and direction overrides: none may reach a terminal or a pattern.
_RANGES = ((0x00, 0x09), (0x0B, 0x20), (0x7F, 0xA0), (0x200B, 0x2010), (0x202A, 0x202F), (0x2060, 0x206A))
_DROP = dict.fromkeys(code for start, end in _RANGES for code in range(start, end)) | {0xFEFF: None}
_DROP_TABLE: dict[int, int | str | None] = {
    **_DROP,
    0x0A: " ",
    0x2028: " ",
    0x2029: " ",
    0x85: None,
    0xA0: " ",
}


def clean(text: str) -> list[str]:
    """The logical lines of one physical line: one, or one for each part between carriage returns."""
    if text.isprintable() and "[0" not in text:
        return [text]
    if "\x1b" in text or "\x9b" in text:
        text = pattern(_ANSI).sub("", text)
    if "[0m" in text or "[0;" in text or "^[[" in text:
        text = pattern(_BARE_COLOUR).sub("", text)
    if "\x08" in text:  # old progress bars erase themselves with backspaces
        text = pattern(r"\x08{4,}").sub("\r", text)
    if "\r" in text:
        text = text.rstrip("\r")
        if "\r" in text:
            parts = [part.translate(_DROP_TABLE) for part in text.split("\r")]
            return [part for part in parts if part and not part.isspace()] or [""]
    return [text if text.isprintable() else text.translate(_DROP_TABLE)]


def bounded(text: str) -> str:
    """The text with every run of more than 128 digits cut to its beginning: no number that means anything.

    Whole numbers of thousands of digits cannot be computed with, and readers that look for a number behind
    each digit would take time in proportion to the square of the run.
    """
    return pattern(r"(\d{32})\d{97,}").sub("\\1…", text)


def unmarked(text: str) -> str:
    """The message of a report that a program made in Markdown: ``- **Exception Message:** words``."""
    return pattern(r"^\s*(?:[-*] )?\*\*(?:Exception|Error)(?: Message)?:\*\* (?=\S)").sub("", text, count=1)


def unbold(text: str) -> str:
    """A line of a program in which a person set words in bold letters: ``UserWarning: **Using a …**``."""
    head = pattern(r"(?:Error|Warning|Exception): ").search(text)
    if head is None or "**" in text[: head.end()].lstrip("* "):
        return text  # bold letters that open before the message: the question of a list, a heading
    bold = pattern(r"\*\*(?=[^\s*])((?:[^*]|\*(?!\*)){3,300}?[^\s*])\*\*(?![\w(])")
    return text[: head.end()] + bold.sub(r"\1", text[head.end() :])


_ESCAPES = {"n": "\n", "r": "", "t": "\t", '"': '"', "\\": "\\", "/": "/", "b": "", "f": "", "'": "'"}


def unescape(text: str) -> list[str] | None:
    """The lines of a traceback that stands in one line as a JSON or repr string, or None when there is none.

    VS Code, torchelastic's error.json and many log shippers write tracebacks so.
    """
    if "\\n" not in text:
        return None
    if '"ename"' in text and '"evalue"' in text:
        output = _cell_output(text)
        if output is not None:
            return output
    if text.startswith(('{"log":"', '{"log": "')):
        return _docker(text)
    if text[:2] == '{"':
        record = json_record(text)
        if record is not None:
            return record
    if (
        "Traceback (most recent call last)" not in text
        and '\\n  File \\"' not in text
        and '\\n  File "' not in text
        and not ("\\u001b[" in text and "Error" in text)
    ):
        return None

    plain = unescaped(text)
    if "\\n" in plain and plain.count("\n") < 2:
        return None
    lines: list[str] = []
    for part in plain.split("\n"):
        lines.extend(clean(part))
    if lines:  # the quote and key in front, the quote and what follows it behind
        end = next(
            (at for at in range(1, len(lines)) if pattern(r'^["\']\s*[,}\]]').match(lines[at])), len(lines)
        )
        whole = end == len(lines)
        del lines[end:]
        lines[0] = pattern(r'^\s*[{\[]?\s*(?:"[\w ]{1,40}"\s*:\s*)?b?["\']').sub("", lines[0])
        # the last line of the text may end in a quotation mark of its own
        last = pattern(r'(["\'])[,}\]\s]*$').search(lines[-1]) if whole else None
        if last and lines[-1].count(last[1]) % 2:
            lines[-1] = lines[-1][: last.start()]
    return lines


def _cell_output(text: str) -> list[str] | None:
    """The lines of an error that a notebook keeps as a cell's output: a list of texts in one JSON object."""
    import json

    start = text.find("{")
    try:
        table = json.loads(text[start:])
    except ValueError:
        return None
    trace = table.get("traceback") if isinstance(table, dict) else None
    if not isinstance(trace, list) or not all(isinstance(part, str) for part in trace):
        return None
    return [line for part in trace for text_line in part.split("\n") for line in clean(text_line)] or None


def unescaped(text: str) -> str:
    """The text without the escapes of JSON and of repr()."""
    return pattern(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf\"'\\/])").sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] in "ux" and len(code) > 1 else _ESCAPES.get(code, code)


def json_record(text: str) -> list[str] | None:
    """The lines of a log record that is one JSON object, as a logger prints them: time, level, message."""
    if "Traceback (most recent call last)" in text:
        record = _traced(text)
        if record is not None:
            return record
    message = pattern(r'"(?:msg|message|event)" ?: ?"((?:[^"\\]|\\.)*)"').search(text)
    level = pattern(r'"(?:level|levelname|severity|lvl)" ?: ?"(\w{3,9})"').search(text)
    tag = _rank_tag(text)
    if not message or not (level or tag):
        return None
    when = pattern(r'"(?:ts|time|timestamp|asctime|@timestamp)" ?: ?"([\d:.,TZ +-]{8,40})"').search(text)
    trace = pattern(
        r'"(?:exc_info|exception|traceback|stack_trace|error|exc_text)" ?: ?"((?:[^"\\]'
        r'|\\.)*Traceback(?:[^"\\]|\\.)*)"'
    ).search(text)
    grade = level[1].lower() if level else ""
    if not trace and grade in ("error", "err", "fatal", "critical"):
        trace = pattern(r'"(?:error|err|exception|cause)" ?: ?"((?:[^"\\]|\\.){4,4000})"').search(text)
    word = {"err": "ERROR", "warn": "WARNING", "fatal": "CRITICAL"}.get(grade, grade.upper())
    head = " ".join(part for part in (when[1] if when else "", word) if part)
    head += " " if head else ""
    body = unescaped(message[1])
    if trace:
        body += "\n" + unescaped(trace[1])
    elif "\n" not in body and grade not in ("error", "err", "fatal", "critical"):
        body += _figures(text)
    lines = [line for part in body.rstrip("\n").split("\n") for line in clean(part)]
    return [tag + head + lines[0], *(tag + line for line in lines[1:])] if lines else None


# the figures that tell how a run goes
_FIGURE = (
    r'"(?P<name>[\w./ -]{0,24}(?:[Ll]oss|ppl|perplexity|norm|epoch|step|iter|mem|scale)[\w./-]{0,16})" ?: ?"?'
    r'(?P<value>-?(?:\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?|[Nn]a[Nn]|Infinity|inf))"?(?=\s*[,}])'
)


def _figures(text: str) -> str:
    """The figures of a record, its loss and step among them, as programs print them behind a message."""
    found = [f" {one['name']}={one['value']}" for one in pattern(_FIGURE).finditer(text[:4_000])]
    return "".join(found[:12])


def _rank_tag(text: str) -> str:
    """The prefix with which torch marks the lines of a rank, of a record that names one."""
    rank = pattern(r'"(?:global_)?rank" ?: ?"?(\d{1,6})\b').search(text)
    return f"[rank{rank[1]}]: " if rank else ""


def _traced(text: str) -> list[str] | None:
    from torchdoctor.intake.record import traced

    found = traced(text)
    if found is None:
        return None
    when, level, says, trace = found
    tag = _rank_tag(text)
    head = " ".join(part for part in (when, level, says.rstrip()) if part)
    body = f"{head}\n{trace.rstrip()}" if says or not trace.startswith("Traceback") else trace.rstrip()
    if not says and head and not trace.startswith("Traceback"):
        body = f"{head} {trace.rstrip()}"
    return [tag + line for part in body.split("\n") for line in clean(part)]


def _docker(text: str) -> list[str] | None:
    """The line that Docker's json-file driver wrapped, behind its time."""
    found = pattern(
        r'^\{"log": ?"((?:[^"\\]|\\.)*)"(?:, ?"stream": ?"\w*")?(?:, ?"attrs": ?\{[^}]*\})?'
        r'(?:, ?"time": ?"([^"]{1,40})")?'
    ).match(text)
    if not found:
        return None
    lines = [line for part in unescaped(found[1]).rstrip("\n").split("\n") for line in clean(part)]
    when = clean(unescaped(found[2] or ""))[0].strip()
    return [f"{when} {line}" for line in lines] if when[:1].isdecimal() else lines
