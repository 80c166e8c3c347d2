"""What the code asks of Python that came with a later release than the one that runs.

Only forms that a Python which has it cannot print: a name of the standard library with the release that
brought it, built-in classes with ``[]``, ``|`` between classes or dictionaries, and a line of its grammar.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from torchdoctor.extract import Found, torch_extensions
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "newer.python": "str: the first release of Python that has what the code asks for",
    "newer.asked": "text: what that is: typing.Self, list[…], X | Y between classes",
    "newer.package": "text: the package whose line asks for it, by pip's name",
    "newer.joined": "str: the type of what an annotation joins by | and is no class: str, function",
    "newer.annotation": "text: the file and line of the annotation that asks for it, where it is one",
}

# release of Python, module, the names that it got there (its documentation: "Added in version"); a line
# without names is the module itself, and str stands for its methods
_ADDED = (
    "3.8 typing Literal Final Protocol TypedDict runtime_checkable final get_args get_origin SupportsIndex",
    "3.8 functools cached_property",
    "3.8 math prod dist",
    "3.8 importlib metadata",
    "3.9 typing Annotated",
    "3.9 functools cache",
    "3.9 zoneinfo",
    "3.9 graphlib",
    "3.9 importlib.resources files",
    "3.9 math lcm",
    "3.9 asyncio to_thread",
    "3.9 str removeprefix removesuffix",
    "3.10 typing ParamSpec TypeAlias Concatenate TypeGuard is_typeddict",
    "3.10 types NoneType UnionType EllipsisType",
    "3.10 itertools pairwise",
    "3.10 dataclasses KW_ONLY",
    "3.11 typing Self Never LiteralString Required NotRequired Unpack TypeVarTuple dataclass_transform",
    "3.11 typing assert_never assert_type reveal_type",
    "3.11 enum StrEnum",
    "3.11 datetime UTC",
    "3.11 asyncio TaskGroup timeout Runner",
    "3.11 tomllib",
    "3.11 contextlib chdir",
    "3.12 typing override TypeAliasType",
    "3.12 itertools batched",
    "3.13 typing TypeIs ReadOnly NoDefault",
    "3.13 warnings deprecated",
)
_NO_NAME = (
    r"^(?:cannot import name '(?P<name>\w{1,80})' from '(?P<module>[\w.]{1,80})'"
    r"|module '(?P<of>[\w.]{1,80})' has no attribute '(?P<attribute>\w{1,80})'"
    r"|No module named '(?P<missing>[\w.]{1,80})'"
    r"|'(?P<cls>str)' object has no attribute '(?P<method>\w{1,80})')"
)
# a class as its own class is called: type, ABCMeta, types.GenericAlias, torch._C._TensorMeta
_CLASS = r"(?:type|[\w.]{0,80}(?:Meta|EnumType|GenericAlias|_SpecialForm))"
_UNION = rf"^unsupported operand type\(s\) for \|: '{_CLASS}' and '(?:{_CLASS}|NoneType)'"
# what an extension or a library calls the class of its classes, which only an annotation is sure to hold
_OF_CLASSES = r"[\w.]{0,80}(?:(?<!\.d)(?<!\bd)type|Metaclass|TypeVar)"
_OPTIONAL = (
    rf"^unsupported operand type\(s\) for \|: '{_OF_CLASSES}' and '(?:{_CLASS}|{_OF_CLASSES}|NoneType)'"
)
_PLAIN = r"^(?:'(?:type|ABCMeta)' object|type '[\w.]{1,80}') is not subscriptable"
_GENERIC = (
    (r"\b(array\.array)\[", "3.12"),
    (
        r"(?<!typing\.)\b(list|dict|tuple|set|frozenset|type|deque|OrderedDict|defaultdict|Counter|Queue|Popen|"
        r"Pattern|Match|PathLike|Future|Task|Callable|Sequence|Mapping|MutableMapping|Iterable|Iterator|"
        r"Generator|Awaitable|Coroutine|AsyncIterator|AsyncGenerator|Collection)\[",
        "3.9",
    ),
)
_ANNOTATED = r"^\s*(?:(?:async )?def \w|\)\s*->|\w{1,80}: )"
_NO_CLASS = (
    r"^unsupported operand type\(s\) for \|: (?='[\w.]{1,80}' and '[\w.]{1,80}').{0,90}?"
    r"'(?P<joined>str|function|builtin_function_or_method)'"
)
# a line that a SyntaxError shows -> what it holds of a later grammar, and the release that brought that
_GRAMMAR = (
    (r"^match (?!=)[^=]+:$", "match", "3.10"),
    (
        r"^with \((?:.* as \w|$)|^[\w.]+\(.*\) as \w+(?:,|\):)$",
        "with and several contexts in brackets",
        "3.10",
    ),
    (r"^except\s?\*", "except*", "3.11"),
    (r"^type \w+(?:\[.*\])? = ", "the type statement", "3.12"),
    (r"^(?:async )?(?:def|class) \w+\[", "def or class with type parameters", "3.12"),
    (r"^(?:async )?def \w+\(.*, /[,)]", "a / among parameters", "3.8"),
    (r"[\w)] := ", "the operator :=", "3.8"),
)
_GRAMMAR_SAYS = ("invalid syntax", "expected '('", "expected ':'")
# an f-string that has its own quotes, a backslash or a remark between the braces
_F_SAYS = r"^f-string(?:: unmatched '[\[({]'|: expecting '\}'| expression part cannot include (?:a b|'#'))"
_F_QUOTED = r"\b[rR]?[fF][rR]?(?:\"[^\"]*\{[^\"}]*\"|'[^']*\{[^'}]*')"
_OWN_VERSION = r"[/\\]python(\d\.\d{1,2})[/\\]|[/\\]Python(3)(\d{1,2})[/\\]"


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The release that has it, what it is, and the annotation; nothing where Python is new enough."""
    del transcript
    if event.kind is not EventKind.EXCEPTION:
        return
    code = event.frames[-1].code if event.frames else ""
    kind = (event.type or "").rpartition(".")[2]
    text = event.text[:400]
    asked, release = _FOR_KIND[kind](text, code) if kind in _FOR_KIND else _named(text)
    last = event.frames[-1] if event.frames else None
    evaluated = last is not None and kind == "TypeError" and pattern(_ANNOTATED).match(code) is not None
    annotation = last.place() if last is not None and evaluated else None
    if evaluated and (joined := pattern(_NO_CLASS).match(text)) is not None:
        yield "joined", joined["joined"]
        yield "annotation", annotation
        return
    if not release or not _before(event, release):
        return
    yield "asked", asked
    yield "python", release
    yield "annotation", annotation
    package = last.package if last is not None and last.package != "python" else ""
    yield "package", torch_extensions.pip_name(package) or None


def _operator(text: str, code: str) -> tuple[str, str]:
    annotated = pattern(_ANNOTATED).match(code) is not None
    if pattern(_UNION).match(text) is not None or (annotated and pattern(_OPTIONAL).match(text) is not None):
        return "X | Y between classes", "3.10"
    if text.startswith("unsupported operand type(s) for |: 'dict' and 'dict'"):
        return "| between dictionaries", "3.9"
    if pattern(_PLAIN).match(text) is not None:
        for form, release in _GENERIC:
            if (found := pattern(form).search(code)) is not None:
                return f"{found[1]}[…]", release
    return "", ""


def _grammar(text: str, code: str) -> tuple[str, str]:
    if pattern(_F_SAYS).match(text) is not None:
        told = "cannot include" in text or pattern(_F_QUOTED).search(code) is not None
        return ("f-strings with any text in the braces", "3.12") if told else ("", "")
    if not text.startswith(_GRAMMAR_SAYS):
        return "", ""
    found = ((asked, release) for form, asked, release in _GRAMMAR if pattern(form).search(code.strip()))
    return next(found, ("", ""))


_FOR_KIND = {"TypeError": _operator, "SyntaxError": _grammar}


@cache
def _releases() -> dict[str, str]:
    found = {}
    for release, module, *names in map(str.split, _ADDED):
        found.update(dict.fromkeys([f"{module}.{name}" for name in names] or [module], release))
    return found


def _named(text: str) -> tuple[str, str]:
    found = pattern(_NO_NAME).match(text)
    if found is None or "-packages" in text:  # a backport or a file of that name took the module's place
        return "", ""
    parts = [value for value in found.groups() if value]
    asked = ".".join(reversed(parts) if found["name"] else parts)
    return asked, _releases().get(asked, "")


def _before(event: Event, release: str) -> bool:
    """Is the Python of the frames older, as far as their paths tell it?"""
    for frame in event.frames:
        if (found := pattern(_OWN_VERSION).search(frame.file)) is not None:
            ran = found[1] or f"{found[2]}.{found[3]}"
            return tuple(map(int, ran.split("."))) < tuple(map(int, release.split(".")))
    return True
