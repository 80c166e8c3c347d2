"""Exceptions that the user's own code raised, or that Python itself raised over the user's own line.

The forms are those of Python's interpreter, its builtins, argparse and the standard library. A message of
torch's C++ is none of them, whatever class it comes in.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from torchdoctor.extract import Found, interpreter, torch_extensions
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "python.own_code": "bool: the user's own line raised it, or Python did over that line",
    "python.kind": "str: last part of the exception's class name",
    "python.suggests": "str: what Python says it may have been: Did you mean …",
    "python.unimported": "str: the module that was not imported, by what Python or the line itself says",
    "python.call": "str: the function whose definition does not fit its call",
    "python.unexpected": "str: the argument that it does not have",
    "python.lacking": "str: the arguments that it asks for and was not given",
    "python.takes": "int: how many positional arguments it takes, self of a method counted",
    "python.given": "int: how many it was given",
    "python.formatted": "str: the type of a value that a format string, as {x:.4f}, cannot be applied to",
    "python.mixed": "str: the two types that an operator of the line got",
    "python.decimal": "str: what int() was given, a number that is no whole one",
    "python.no_number": "str: what int() or float() was given, which is no number",
    "python.unpacks": "int: how many names a line unpacks into",
    "python.unpacked": "int: how many values there were",
    "python.name": "str: the name, key, file or module that the message is about",
    "python.folder": "str: the folder of the file, where open() would have made that: the folder is missing",
    "python.module": "str: the module that lacks the attribute",
    "python.class": "str: the class that lacks the attribute, where it is none of Python's own types",
    "python.refused_by": "str: the package whose __getattr__ raised, and said no more than the name",
    "python.holder": "str: the object, as the line writes it, that was asked for the name there",
    "python.keyed": "bool: that object looks its names up as keys",
    "python.program": "str: the program that was to be started and was not found, as ffmpeg",
    "python.of_request": "bool: the line worked on a request that a server had handed to it",
    "python.decoded": "bool: text or bytes were expected of a request, and an object of its JSON was there",
    "python.archive_file": "str: the missing file, where a server unpacks the archives of its models",
    "python.extension_package": "str: the package, compiled against torch, whose module is missing",
    "python.compiled_half": "bool: the file that asks for the missing module bears its name, less the ending",
    "python.failed_install": "str: what the program itself tried to install above for the missing module",
    "python.checkout": "text: the folder, no installed package's, whose module lacks what was asked of it",
    "python.lacking_file": "text: the file, no package's, that has no such name to import",
    "python.own_root": "text: the folder that holds the missing package, where its own file asks for it",
    "python.parent": "text: the interpreter of what started the script, which may have the module",
    "python.written_by": "text: the package whose own script, started elsewhere, does not find it",
    "python.handed_by": "text: what handed a function to another process, which lacks the function's module",
    "python.package": "str: what pip installs for the module that is missing, as cv2 is of opencv-python",
    "python.not_for_windows": "str: the package that has no build for Windows, whose module is missing",
}

# frames that stand between the user's call and what the call did wrong: nobody's code
_BETWEEN = frozenset((
    "_call_impl", "_wrapped_call_impl", "__call__", "decorate_context", "_fn", "wrapper", "inner",
    "autocast_decorator", "decorate_autocast", "custom_fwd", "_lru_cache_wrapper", "__format__",
))  # fmt: skip
_RAISES = r"^\s*(?:[^#'\"]*: *)?(?:raise|assert)\b"

# class -> what the interpreter, the builtins and the standard library print with it
_FORMS = {
    "NameError": r"(?:name|free variable) '(?P<name>[^']{1,200})' ",
    "UnboundLocalError": r"(?:local variable|cannot access local variable) '(?P<name>[^']{1,200})'",
    "AttributeError": (
        r"(?:'(?P<cls>[\w.]{1,200})' object|type object '[\w.]{1,200}'|(?:partially initialized )?module "
        r"'(?P<module>[\w.]{1,200})'(?: from '[^'\n]{1,400}')?) has no attribute '(?P<name>[^']{1,200})'"
        r"|'super' object has no attribute"
        r"|can't (?:set|delete) attribute"
    ),
    "TypeError": (
        r"\(\) (?:missing \d+ required|got an unexpected keyword|got multiple values|takes|argument after"
        r"|got some positional|keywords must)|unsupported operand type|object is not (?:callable|iterable"
        r"|subscriptable|an iterator)|not supported between instances|can only concatenate"
        r"|indices must be|cannot unpack non-iterable|has no len\(\)|does not support item"
        r"|expected str, bytes|must be str, not|is not JSON serializable|bad operand type|unhashable type"
        r"|can't multiply sequence|not all arguments"
        r" converted|abstract (?:class|method)|argument of type '\w{1,80}' is not iterable"
        r"|(?:int|float)\(\) argument must be|a bytes-like object is required|the JSON object must be"
        r"|can't concat|unsupported format string passed to"
    ),
    "ValueError": (
        r"(?:not enough|too many) values to unpack|invalid literal for int|could not convert string to float"
        r"|list\.remove|math domain error|operation on closed file|(?:max|min)\(\) (?:arg|iterable)"
        r"|is not in list|empty (?:range|separator)|substring not found|unknown url type|^time data "
        r"|dictionary update sequence|Sample larger than population|range\(\) arg"
    ),
    "IndexError": (
        r"(?:list|tuple|string|range object|bytearray)(?: assignment)? index out of range"
        r"|pop from (?:an )?empty"
    ),
    "KeyError": r"(?P<name>.{1,200})",
    "ZeroDivisionError": r"division|modulo",
    "FileNotFoundError": r"\[Errno 2\] [^:\n]{1,80}:\s{1,3}'(?P<name>[^']{1,400})'|\[WinError [23]\]",
    "NotADirectoryError": r"\[Errno 20\]",
    "IsADirectoryError": r"\[Errno 21\]",
    "PermissionError": r"\[Errno 1?3\]|\[WinError 5\]",
    "FileExistsError": r"\[Errno 17\]",
    "ModuleNotFoundError": r"No module named '?(?P<name>[\w.]{1,200})'?",
    "ImportError": (
        r"cannot import name '(?P<name>[^']{1,200})'|attempted relative import|No module named"
        r"(?: '?(?P<module>[\w.]{1,200})'?)?"
    ),
    "EOFError": r"Ran out of input|EOF when reading a line|^$",
    "UnicodeDecodeError": r"codec can't decode",
    "UnicodeEncodeError": r"codec can't encode",
    "JSONDecodeError": r"Expecting|Extra data|Invalid|Unterminated",
    "OverflowError": r"Python int too large|int too (?:big|large)|math range|cannot convert float",
    "RecursionError": r"maximum recursion depth exceeded",
    "RuntimeError": (
        r"(?:dictionary|Set|deque|OrderedDict) (?:changed size|keys changed|mutated) during iteration"
        r"|generator raised StopIteration|^super\(\): |^cannot schedule new futures after"
        r"|^(?:release unlocked lock|can't start new thread|threads can only be started once)"
    ),
    "UnpicklingError": r"pickle data was truncated|invalid load key|unpickling stack",
    **dict.fromkeys(("AssertionError", "NotImplementedError", "StopIteration"), r""),
}
# NumPy's compiled code leaves no frame behind, so that the user's own line is the last
_OF_ARRAY = rf"{_FORMS['IndexError']}|^index -?\d+ is out of bounds for axis \d+ with size \d+"
# what these say in numbers and names
_DETAILS = (
    r"(?P<call>[\w.]{1,100})\(\) (?:got an unexpected keyword argument '(?P<unexpected>\w{1,80})'"
    r"|missing \d+ required (?:positional|keyword-only) arguments?: (?P<lacking>'[^\n]{1,200}')"
    r"|takes (?:from \d+ to )?(?P<takes>\d+) positional arguments? but (?P<given>\d+) (?:was|were) given)",
    r"(?:between instances of|unsupported operand type\(s\) for [^\s:]{1,20}:) '(?P<one>[\w.]{1,60})' and "
    r"'(?P<other>[\w.]{1,60})'",
    r"^unsupported format string passed to (?P<formatted>[\w.]{1,80})\.__format__",
    r"invalid literal for int\(\) with base 10: '(?P<decimal>[+-]?(?=\.?\d)\d{0,20}\.\d{0,20})'",
    r"(?:invalid literal for int\(\) with base 10|could not convert string to float): "
    r"(?P<no_number>'[^'\n]{0,80}')",
    r"(?:not enough|too many) values to unpack "
    r"\(expected (?P<unpacks>\d{1,6})(?:, got (?P<unpacked>\d{1,6}))?\)",
)
# a file that open() would have made
_WRITES = r"\bopen\(.{1,300}?,\s{0,8}(?:mode\s?=\s?)?['\"][wax][bt+]{0,2}['\"]"
_COUNTS = ("takes", "given", "unpacks", "unpacked")
# web frameworks and servers of models; TorchServe loads a model in another file
_HANDS_ON = frozenset((
    "starlette", "fastapi", "flask", "aiohttp", "tornado", "sanic", "django", "bentoml", "litserve",
))  # fmt: skip
_SERVES = ("/ts/service.py", "/sagemaker_inference/transformer.py")
# what runs functions in processes of other machines or other folders, and how it unpacks them
_HANDERS = frozenset(("ray", "dask", "distributed", "pyspark"))
_UNPICKLES = r"\b(?:cloud)?pickle\w*\.loads?\("
_DECODED = r"(?:bytes-like object is required|must be str, bytes or bytearray), not '?(?:dict|list|int|float)"
_UNPACKED = r"/te?mp/models/[0-9a-f]{8,64}/(?P<file>[\w./-]{1,200})$"
_BUILDERS = ("/build_meta.py", "/pip-build-env-", "/pip-install-", "/pip-req-build-", "/builds-v0/")
_ARGPARSE = r"^\S+\.py: error: "
# where a module came from that lacks a name, by Python itself
_LACKS_FROM = (
    r"cannot import name '[^'\n]{1,99}' from '(?P<module>[\w.]{1,200})' \((?P<path>[^()\n]{1,400})\)"
)
_QUOTED = r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\""
_ASKS = r"(?<=[\w)\]])\.([A-Za-z_]\w{0,80})"
_SUGGESTS = r"(?:Did you mean:? |Perhaps you meant )'?(?P<what>[^?'\n]{1,200})"
_UNIMPORTED = r"forget to import '(?P<what>[\w.]{1,200})'"
# under which name the documentation of each has it imported
_ALIASES = {
    "np": "numpy as np", "pd": "pandas as pd", "plt": "matplotlib.pyplot as plt", "torch": "torch",
    "nn": "torch.nn as nn", "F": "torch.nn.functional as F", "optim": "torch.optim as optim",
}  # fmt: skip


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one exception, or of what argparse prints; nothing for another event."""
    if event.kind is EventKind.LOG:
        if pattern(_ARGPARSE).match(event.text[:400]):
            yield "own_code", True
            yield "kind", "argparse"
        return
    if event.kind is not EventKind.EXCEPTION or not event.type:
        return
    kind = event.type.rpartition(".")[2]
    yield "kind", kind
    yield "own_code", _own(event, kind) and not _of_build(event, transcript)
    form = _FORMS.get(kind)
    found = pattern(form).search(event.text[:2_000]) if form and "(?P<" in form else None
    groups = found.groupdict() if found is not None else {}
    if name := groups.get("name") or groups.get("module"):
        name = name.split("\n")[0][:200]
        yield "name", name
        if kind == "FileNotFoundError":
            yield "folder", _unmade_folder(name, event.frames)
        if kind in ("ModuleNotFoundError", "ImportError") and "No module named" in event.text:
            yield "extension_package", torch_extensions.of_module(name)
            yield "package", torch_extensions.pip_name(name)
            yield "not_for_windows", torch_extensions.not_for_windows(name)
            yield "compiled_half", torch_extensions.is_half(name, event.frames)
            from torchdoctor.extract import own_install  # few modules are missing

            yield "failed_install", own_install.failed_for(name, event, transcript)
            yield from _unseen(name, event.frames)
            yield "parent", interpreter.parent_of(event, transcript) or None
    if kind in ("TypeError", "ValueError"):
        yield from _details(event.text[:2_000])
    if kind == "AttributeError":
        yield from _refused_name(event, transcript)
        owner = groups.get("cls") or ""
        yield "module", groups.get("module")
        yield (
            "class",
            owner if owner[:1].isupper() and owner not in ("NoneType", "Namespace", "Tensor") else None,
        )
    yield from _lacks_name(event.text[:2_000])
    if (program := program_of(event)) is not None:
        yield "program", program
    if _of_request(event):
        yield "of_request", True
        yield "decoded", pattern(_DECODED).search(event.text[:400]) is not None
    unpacked = pattern(_UNPACKED).search(groups.get("name") or "") if kind == "FileNotFoundError" else None
    yield "archive_file", unpacked["file"] if unpacked is not None else None
    text = event.text[:4_000]
    if "ou mean" in text and (said := pattern(_SUGGESTS).search(text)) is not None:
        yield "suggests", said["what"].strip()
    if " to import " in text and (said := pattern(_UNIMPORTED).search(text)) is not None:
        yield "unimported", said["what"]
    else:
        yield "unimported", _unimported(kind, groups.get("name") or "", event.frames)


def _details(text: str) -> Iterator[Found]:
    """What the first form that fits says of the call, the two types, the text or the values."""
    for form in _DETAILS:
        if (found := pattern(form).search(text)) is None:
            continue
        said = {name: value for name, value in found.groupdict().items() if value is not None}
        if "one" in said:
            yield "mixed", f"{said['one']} and {said['other']}"
            return
        if "lacking" in said:
            said["lacking"] = said["lacking"].replace("'", "")
        for name, value in said.items():
            yield name, int(value) if name in _COUNTS else value
        return


def _unimported(kind: str, name: str, frames: tuple[Frame, ...]) -> str | None:
    """What a line takes for imported: an alias, or a module of Python that it asks for an attribute."""
    imported = _ALIASES.get(name)
    if kind == "ModuleNotFoundError":
        return imported if imported != name else None
    code = frames[-1].code if frames else ""
    if kind != "NameError" or re.search(rf"\b{re.escape(name)}\.[A-Za-z_]", code) is None:
        return None
    return imported or (name if name in sys.stdlib_module_names else None)


def _refused_name(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The name that the user's line asked for, where a package's ``__getattr__`` told no more than that.

    The exception before it, which the method caught, names it; else the line does, if it asks for one alone.
    """
    frame = raised_at(event)
    last = event.frames[-1] if event.frames else None
    if frame is None or last is None or not last.package or not _refuses(event, last):
        return
    yield "refused_by", last.package
    before = transcript.events[event.id - 1] if event.id else None
    caught = (
        before is not None
        and before.type == "KeyError"
        and bool(before.frames)
        and (before.frames[-1].file, before.frames[-1].function) == (last.file, last.function)
    )
    code = pattern(_QUOTED).sub("''", frame.code[:500])
    asked = set(pattern(_ASKS).findall(code))
    told = before.text.strip().strip("'\"") if caught and before is not None else event.text.strip()
    name = told if told in asked else next(iter(asked)) if not told and len(asked) == 1 else None
    if name is None:
        return
    yield "name", name
    yield "keyed", caught
    holder = re.search(rf"(?P<holder>[A-Za-z_]\w{{0,60}}(?:\.\w{{1,60}})*)\.{re.escape(name)}\b", code)
    yield "holder", holder["holder"] if holder is not None else None


def _unseen(name: str, frames: tuple[Frame, ...]) -> Iterator[Found]:
    """Who started the process that does not see the folder from which the program was started."""
    last = next((one for one in reversed(frames) if one.package != "python"), None)
    if last is None:
        return
    path = last.file.replace("\\", "/")
    root, inside, _ = path.rpartition(f"/{name.partition('.')[0]}/")
    if inside and root and not last.package and "-packages/" not in path:
        yield "own_root", root
    installed = "-packages/" in path or path.endswith(".exe/__main__.py") or not path.endswith(".py")
    if last.function == "<module>" and last.package == name and not installed:
        yield "written_by", last.package
    if last.package in _HANDERS and pattern(_UNPICKLES).search(last.code):
        yield "handed_by", last.package


def _unmade_folder(path: str, frames: tuple[Frame, ...]) -> str | None:
    """The folder of a file that open() would have made, as the message writes it."""
    folder = re.split(r"[\\/]+[^\\/]*$", path, maxsplit=1)[0]
    writes = bool(frames) and pattern(_WRITES).search(frames[-1].code) is not None
    return folder if writes and folder != path and folder else None


def _lacks_name(text: str) -> Iterator[Found]:
    """The module's file where it is no package's, and the folder above its package."""
    said = pattern(_LACKS_FROM).search(text) if "cannot import name" in text else None
    if said is None or "-packages/" in (path := said["path"].replace("\\", "/")):
        return
    yield "checkout", path.rpartition(f"/{said['module'].partition('.')[0]}/")[0] or None
    of_python = pattern(r"(?i)/lib/(?:python3|\w+\.py$)|^unknown").search(path) is not None
    yield "lacking_file", None if of_python else said["path"]


def _of_request(event: Event) -> bool:
    """Is a server's call of a handler in the stack?"""
    return any(
        frame.package in _HANDS_ON or frame.file.replace("\\", "/").endswith(_SERVES)
        for frame in event.frames
    )


def of_setup_script(event: Event) -> bool:
    """Did the setup script of a package raise it, which pip or uv ran to build that?"""
    paths = " ".join(frame.file.replace("\\", "/") for frame in event.frames)
    return any(part in paths for part in _BUILDERS)


# what a package starts where Windows, which does not name a program, found none
_STARTS = {"whisper": "ffmpeg", "whisperx": "ffmpeg", "ffmpeg": "ffmpeg", "pydub": "ffmpeg"}


def program_of(event: Event) -> str | None:
    """The program that subprocess did not find; None for another exception."""
    if not (event.type or "").endswith("FileNotFoundError") or not event.frames:
        return None
    if _method(event.frames[-1]) != "_execute_child":
        return None
    found = pattern(_FORMS["FileNotFoundError"]).search(event.text[:2_000])
    if found is None:
        return None
    if found["name"] is not None:
        return found["name"]
    starter = next((one.package for one in reversed(event.frames) if one.package != "python"), "")
    return _STARTS.get(starter)


def of_python(event: Event) -> bool:
    """Did Python itself raise it over a line, whoever's, and no ``raise`` or ``assert`` of the code?"""
    form = _FORMS.get((event.type or "").rpartition(".")[2])
    last = event.frames[-1] if event.frames else None
    if form is None or (last is not None and last.package != "python" and pattern(_RAISES).match(last.code)):
        return False
    return pattern(form).search(event.text[:2_000]) is not None


def _own(event: Event, kind: str) -> bool:
    """Did the user's own line raise it, or Python over that line?"""
    if kind in ("SyntaxError", "IndentationError", "TabError"):
        return bool(event.frames) and not event.frames[-1].package
    frame = raised_at(event) if kind != "KeyboardInterrupt" else None  # a signal's, whoever raises it
    if frame is None or (frame.file == "<string>" and of_setup_script(event)):
        return False
    if frame.code and pattern(_RAISES).match(frame.code):
        return True
    if kind == "AttributeError" and _refuses(event, event.frames[-1]):
        return True
    form = _OF_ARRAY if kind == "IndexError" and frame is event.frames[-1] else _FORMS.get(kind)
    return form is not None and pattern(form).search(event.text[:2_000]) is not None


def _of_build(event: Event, transcript: Transcript) -> bool:
    """Does uv show it as what a build backend wrote, which it starts by a text of its own?"""
    above = transcript.events[event.id - 1].text.strip() if event.id else ""
    return event.frames[-1].file == "<string>" and above in ("--- stderr:", "[stderr]")


def raised_at(event: Event) -> Frame | None:
    """The innermost frame but for those between a call and what it did; None when it is not the user's."""
    for frame in reversed(event.frames):
        if not frame.package:
            return frame
        between = frame.package == "torch" and (_method(frame) in _BETWEEN or _lacks_attribute(frame))
        if frame.package != "python" and not between and not _refuses(event, frame):
            return None
    return None


def _method(frame: Frame) -> str:
    """Its name alone; IPython 8 puts the class before it, as Module._call_impl."""
    return frame.function.rpartition(".")[2]


def _lacks_attribute(frame: Frame) -> bool:
    """Is it torch's nn.Module?"""
    return _method(frame) == "__getattr__" and frame.file.replace("\\", "/").endswith("/nn/modules/module.py")


def _refuses(event: Event, frame: Frame) -> bool:
    """Is it the method by which a class answers for names that it lacks, with the name at most as message?"""
    named = (event.type or "").endswith("AttributeError") and _method(frame) == "__getattr__"
    return named and (not event.text.strip() or event.text.strip().isidentifier())
