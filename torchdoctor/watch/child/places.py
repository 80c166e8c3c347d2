"""Places in the program under examination: stacks of its own frames with their statements, lines that patch.

Runs in the examined interpreter: standard library only, syntax of Python 3.6.
"""

import dis
import linecache

MYPY = False
if MYPY:
    from collections.abc import Callable
    from types import CodeType, FrameType

_FRAMES = 40
# Functions that set attributes under names that do not stand in the line.
_SETTERS = frozenset((
    "setattr", "__setattr__", "delattr", "patch", "wrap_function_wrapper", "patch_function_wrapper",
    "patch_function", "__dict__", "vars",
))  # fmt: skip


def stack(frame: "FrameType | None", line: int, mine: "Callable[[str], bool]") -> "list[dict[str, object]]":
    """The frames whose file is ``mine``, outermost first.

    ``line`` is that of the innermost frame: 0 for the one it stands at, -1 when it is not known.
    """
    found = []  # type: list[dict[str, object]]
    while frame is not None and len(found) < _FRAMES:
        name = frame.f_code.co_filename
        if mine(name):
            number = line if line and not found else frame.f_lineno
            found.append(
                {
                    "file": name,
                    "line": number if number > 0 else None,
                    "function": frame.f_code.co_name,
                    "code": statement(name, number, frame)[:300] if number > 0 else "",
                }
            )
        frame = frame.f_back
    return found[::-1]


_spans = {}  # type: dict[str, list[tuple[int, int]]]


def statement(name: str, line: int, frame: "FrameType | None" = None) -> str:
    """The whole statement at a line, on one line; that line alone when the file cannot be parsed."""
    text = linecache.getline(name, line, frame.f_globals if frame is not None else None).strip()
    lines = linecache.getlines(name)
    if name not in _spans:
        _spans[name] = _simple_statements("".join(lines))
    best = None
    for first, last in _spans[name]:
        if first <= line <= last and (best is None or first >= best[0]):
            best = (first, last)
    if best is None or best[0] == best[1]:
        return text
    return " ".join(" ".join(lines[best[0] - 1 : best[1]]).split())


def _simple_statements(source: str) -> "list[tuple[int, int]]":
    """First and last line of each statement that holds no other, where it spans several."""
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for node in ast.walk(tree):
        end = getattr(node, "end_lineno", None)  # Python 3.8 and later
        if isinstance(node, ast.stmt) and end is not None and not hasattr(node, "body") and end > node.lineno:
            found.append((node.lineno, end))
    return found


def setters(code: "CodeType") -> "dict[int, frozenset[str] | None]":
    """The lines that set attributes: line -> their names, None when they may have any name."""
    found = {}  # type: dict[int, frozenset[str] | None]
    operations = {dis.opname[number] for number in set(code.co_code[::2])}
    if not operations & {"STORE_ATTR", "DELETE_ATTR"} and not _SETTERS.intersection(code.co_names):
        return found
    lines = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = lines.get(step.offset) or line
        if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
            names = found.get(line, frozenset())
            found[line] = None if names is None else names | {str(step.argval)}
        elif step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST" and step.argval in _SETTERS:
            found[line] = None
    return found


class Code:
    """What is known of one code object: its lines that may patch torch, and how often it was run."""

    __slots__ = ("calls", "code", "runs", "setters")

    def __init__(self, code: "CodeType") -> None:
        self.code = code  # kept, so that its id is not given to another
        self.calls = 0
        self.runs = {}  # type: dict[int, int]
        self.setters = setters(code)
