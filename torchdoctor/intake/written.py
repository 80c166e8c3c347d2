"""Documents that are written whole, and that no run prints: programs, settings, histories of commits."""

from __future__ import annotations

from torchdoctor.intake.draft import pattern


def is_history(lines: list[str]) -> bool:
    """True for the commits that git shows, in full or one a line."""
    if any(line.startswith(("Traceback (most", '  File "')) for line in lines):
        return False
    if any(line[:2] == "$ " and not line.startswith("$ git ") for line in lines):
        return False  # something was run after it
    if lines[0].startswith("changeset: ") and any(line.startswith("summary: ") for line in lines[:8]):
        return True  # Mercurial
    if all(pattern(r"\^?[0-9a-f]{7,40} .*\(.*\d{4}-\d\d-\d\d").match(line) for line in lines[:20]):
        return True  # git blame
    if lines[0].startswith("commit ") and any(line.startswith("Author: ") for line in lines[:4]):
        return True
    # git log --oneline, or with its graph
    drawn = [line.lstrip("*|/\\_ ") for line in lines]
    drawn = [line for line in drawn if line]
    short = sum(bool(pattern(r"^(?=[0-9a-f]*\d)[0-9a-f]{7,12} \S").match(line)) for line in drawn)
    return short >= 3 and short * 5 >= len(drawn) * 4


def is_program_text(lines: list[str]) -> bool:
    """True for a script, a patch, or a Python file, however long its docstrings; nothing ran in it."""
    strong = 0
    if len(lines) > 2 and lines[0].strip() in ('"""', "'''") and lines[-1].strip() == lines[0].strip():
        return True  # a docstring
    if lines and (lines[0].startswith("#!") or any(line.startswith("diff --git ") for line in lines[:20])):
        return not any(line.startswith(("Traceback (most", '  File "')) for line in lines)
    for line in lines:
        if line.startswith(("Traceback (most", '  File "', "RuntimeError: ")):
            return False
        strong += bool(pattern(r"^\s*(?:def \w+\(|class \w+[(:]|import \w|from [\w.]+ import )").match(line))
    return (strong >= 5 and strong * 25 >= len(lines)) or _is_snippet(lines)


_EDGE = (
    r"(?:async )?(?:def|class|import|from|if|elif|for|while|with|assert|except|return|raise|del|global) ?"
    r".*[\w)\]}\"':\\,(]$"
    r"|(?:try|else|finally):|@\w|#|[rbf]?[\"']{3}|[\])}]+[,:;]?$"
    r"|[A-Za-z_][\w.]*(?:\[[^\]]*\])? ?(?:[-+*/]?=|\()"
)


def _is_snippet(lines: list[str]) -> bool:
    """True when all that stands at the left edge is Python, and some of it can be nothing else."""
    edge = [line for line in lines if line[:1] not in " \t"]
    if len(lines) < 2 or not edge or not all(pattern(_EDGE).match(line.rstrip()) for line in edge):
        return False
    return any(
        pattern(
            r"(?:async def|def|class) \w+.*:|(?:import \w|from [\w.]+ import )|[A-Za-z_]\w* = [\[({]$"
        ).match(line.rstrip())
        for line in edge
    )


def is_settings(lines: list[str]) -> bool:
    """True for a file of settings or data: sections, ``key = value``, columns behind tabs."""
    heads = [line for line in lines if line[:1] == "["]
    if (
        len(lines) >= 3
        and heads[:1] == lines[:1]
        and all(pattern(r"\[\[?[\w.:/ -]+\]\]?$|[#;]|[A-Za-z_][\w.-]*\s*= ?").match(line) for line in lines)
    ):
        return True  # sections, and nothing but keys with their values in them
    columns = lines[0].count("\t") if lines else 0
    if len(lines) >= 3 and columns >= 2 and all(line.count("\t") == columns for line in lines):
        return not any(c.isdecimal() for c in lines[0])  # a table with its head
    kept = other = 0
    within = False  # a text of several lines
    for line in lines:
        marks = line.count('"""') + line.count("'''")
        if within or marks or line.lstrip()[:1] == "#":
            within = within != bool(marks % 2)
            continue
        if line.startswith("Traceback (most"):
            return False  # a program that prints its settings, and fails
        section = pattern(r"^\[\[?[\w.-]+\]\]?$").match(line)
        value = pattern(r"^[a-z][\w.-]*\s*=\s*(?:[\"'\[{\d-]|true|false)").match(line)
        bare = pattern(r"\"[^\"]*\"|'[^']*'").sub("0", line)
        if value and pattern(r"[\w\]})],? +[A-Za-z_][\w.-]*=\S").search(bare):
            value = None  # ``rank=0 step=9 loss=0.1``: a record of a log
        if section or value or (line.count("\t") >= 3 and not line[:1].isdecimal()):
            kept += 1
        elif not pattern(r"^\s*(?:[\"'{\]}]|\.\.\.)").match(line):
            other += 1
    return kept >= 5 and kept > 4 * other


# the lines of files in which programs keep their messages and what they are in another language
_KEPT = (
    r"(?:\#[,:.|~]? ?.*|msg(?:id|str|ctxt|id_plural)(?:\[\d\])? \".*\"|\".*\")$",  # gettext
    r"(?:<[^>]{1,300}>.*|.*</[\w:-]+>)$",  # Qt, XLIFF, Android, .NET
    r"(?:\"(?:[^\"\\]|\\.)*\" = \"(?:[^\"\\]|\\.)*\";|/\*.*|.*\*/|//.*)$",  # Apple
    r"(?:[#!].*|[a-z][\w-]*(?:\.[\w-]+)+ ?[=:] ?\S.*)$",  # Java
)
_KEEPS = (
    ("msgid ", "msgstr "),
    ("<trans-unit", "<unit", "<translation", "<target", "<resources", "<string ", "<tuv", "<data name="),
    ('" = "',),
)
# a dump of a record names what was raised: exception.message=…
_RECORDED = (
    r"[\w.-]*\b(?:error|exception|message|msg|type|stack\w*|trace\w*|reason|status|level|time\w*|detail)"
    r" ?[=:]"
)


def is_catalog(lines: list[str]) -> bool:
    """True for a file of messages and their translations, whatever its format; nothing was raised in it."""
    if len(lines) < 3 or any(line.startswith(("Traceback (most", '  File "')) for line in lines):
        return False
    held = [sum(any(one in line for one in keeps) for line in lines) for keeps in _KEEPS]
    named = [line.partition("=")[0].strip() for line in lines if "=" in line]
    named = [name for name in named if "." in name and " " not in name]
    for shape, count in zip(_KEPT, (*held, len(named)), strict=True):
        if count >= 3 and count * 6 >= len(lines):
            kept = sum(pattern(shape).match(line.strip()) is not None for line in lines)
            if kept * 10 >= len(lines) * 9:
                return shape is not _KEPT[-1] or not any(map(pattern(_RECORDED).match, lines))
    return False


def is_yaml(lines: list[str]) -> bool:
    """True for nested keys and lists, and nothing else but the command that printed them, and a remark."""
    nested = 0
    if lines and lines[0][:2] in ("$ ", "% ", "> "):
        lines = lines[1:]
    if lines and lines[-1][:1] == "(" and lines[-1].rstrip()[-1:] == ")":
        lines = lines[:-1]
    for line in lines:
        text = line.strip()
        key = r"(?:- )?(?:[a-z][\w./-]{0,60}|[A-Z][A-Z\d_]{1,60}):(?: \S.*)?$|- \S|#|---$"
        if not pattern(key).match(text) or (text.count(" ") > 1 and is_program(text)):
            return False
        nested += text[-1:] == ":" or text.endswith((": |", ": >"))
    return len(lines) >= 5 and nested >= 2 and any(line[:1] == " " for line in lines)


# the parts of a prompt for a language model
_PARTS = frozenset(
    ("role", "rules", "examples", "example", "instructions", "context", "system", "task", "format")
)


def is_for_machines(lines: list[str]) -> bool:
    """True for a program, settings, data: what somebody wrote for a machine to read."""
    return is_program_text(lines) or is_settings(lines) or is_yaml(lines)


def is_prompt_text(lines: list[str]) -> bool:
    """True for a prompt in parts between tags; what its examples say befell nobody."""
    tags = {line.strip()[1:-1] for line in lines if line.strip()[:1] == "<" and line.strip()[-1:] == ">"}
    return len(tags & _PARTS) >= 2 and len({f"/{tag}" for tag in tags} & tags) >= 2


def is_program(text: str) -> bool:
    """True for a program that speaks: ``srun: error: …``, ``ONNX: export failure …``."""
    return bool(
        pattern(
            r"^[a-z][\w.+-]{1,30}(?:\[\d+\])?: (?:[^\s:]{1,60}: )?(?:[\w ]{0,40} )?"
            r"(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Ww]arning|aborted|[Kk]illed|Terminat)"
            # Ultralytics and YOLOv5, a format each
            r"|^[A-Z][\w ]{2,24}: (?:starting export|export (?:success|failure))\b"
        ).match(text)
    )
