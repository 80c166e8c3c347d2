"""Who may import whom, who decides what, and how long a function may be: the design, held by reading it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "torchdoctor"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 400  # of a module, without a reason
MAX_FUNCTION = 60

# modules that are longer, each with the reason why parting it would part one meaning
LONG_MODULES = {
    "torchdoctor/probes/names.py": "one table: every fact with its meaning",
    "torchdoctor/extract/context.py": "for a third one table: what shows each of the surroundings",
    "torchdoctor/intake/frames.py": "for a third tables: whose code a path is",
    "torchdoctor/model.py": "the types that every part speaks in",
}
# functions that are longer; the list only shrinks
LONG_FUNCTIONS = {
    ("torchdoctor/catalog/loader.py", "read_rule"): "one key of a rule after the other",
    ("torchdoctor/cli/gate.py", "_gate"): "one option after the other",
    ("torchdoctor/engine/first.py", "incident"): "gathers all that tells of a rank",
    ("torchdoctor/gate/checks_environment.py", "_rendezvous"): "one variable after the other",
    ("torchdoctor/gate/checks_gpu.py", "_ecc"): "one counter after the other",
}
# what only one part of the package may say of an event: attribute -> the files that assign it
OWNERS = {"quoted": "torchdoctor/intake/quotation.py", "recovered": "torchdoctor/intake/ending/"}
# what begins as nothing is no decision
_BEGINS = "torchdoctor/intake/elements.py"
# names of modules that do not say what is in them
_SAY_NOTHING = frozenset(
    {
        "utils",
        "util",
        "helpers",
        "helper",
        "manager",
        "common",
        "misc",
        "told",
        "form",
        "written",
        "draft",
        "measure",
        "sweep",
        "program",
        "listing",
    }
)
# imports across the order of the parts, each with its reason
CROSSINGS = {("intake", "torchdoctor.extract.progress"): "the one place that says what is a training step"}

# what turns texts that nobody has checked into values
_TEXTS = frozenset({"durations", "json_text", "number", "regular_file", "toml_text"})
_LOWEST = _TEXTS | {
    "",
    "context_tags",
    "model",
    "native_asserts",
    "patterns",
    "records",
    "signal_words",
    "typed",
    "xid_codes",
}
_SOURCES = frozenset({"catalog", "intake", "extract", "probes"})
_ENGINE = _LOWEST | _SOURCES | {"engine"}
# part of the package -> the parts it may import, besides itself; "" is torchdoctor/__init__.py
ALLOWED = {
    "": _ENGINE | {"render", "hooks", "ddp", "watch"},
    "__main__": frozenset({"cli", "gate"}),  # whose signals come before the command line
    "model": frozenset({"records"}),
    "records": frozenset(),
    **dict.fromkeys(_TEXTS, frozenset()),
    "patterns": frozenset(),
    "native_asserts": frozenset(),
    "signal_words": frozenset(),
    "context_tags": frozenset(),
    "typed": frozenset(),
    "xid_codes": frozenset({"model", "records"}),
    **dict.fromkeys(_SOURCES, _LOWEST),
    "lint": _LOWEST,
    # names the catalog's rules, and calls the user's factory in a child
    "checkpoint": _LOWEST | {"catalog", "probes"},
    "engine": _LOWEST | _SOURCES | {"checkpoint", "lint"},
    "render": _LOWEST,
    "selftest": _ENGINE | {"render"},
    "gate": _ENGINE | {"render", "selftest"},
    "hang": _ENGINE,
    "hooks": _ENGINE | {"render", "hang", "share"},
    "ddp": _ENGINE | {"render"},
    "watch": _ENGINE | {"render"},
    "share": _ENGINE,
    "fleet": _ENGINE | {"render"},
    "workbench": _ENGINE | {"share"},
    "cli": _ENGINE
    | {"lint", "render", "selftest", "gate", "hooks", "ddp", "watch", "share", "workbench"}
    | {"checkpoint", "hang", "fleet"},
}

# Packages that only a few files may import, with the reason. A name that ends in "/" is a folder.
FENCED = {
    "click": ("torchdoctor/cli/",),  # arguments are the command line's business
    "rich": ("torchdoctor/render/styled.py",),  # all of it costs as much start-up time as all of ours
    # run only in a child, or in the user's own process on the user's own call
    "torch": (
        "torchdoctor/probes/child/",
        "torchdoctor/selftest/",
        "torchdoctor/hooks/",
        "torchdoctor/ddp",
        "torchdoctor/gate/child/",
    ),
    # what starts a program elsewhere may give it the current folder, with a stranger's files, to import from
    "subprocess": (
        "torchdoctor/probes/spawn.py",
        "torchdoctor/intake/parallel.py",  # -I -S
        "torchdoctor/hooks/run/",  # the user's own command, and cat by its full path
        # in children, which have a folder of their own
        "torchdoctor/probes/child/",
        "torchdoctor/gate/child/",
        "torchdoctor/selftest/child/",
    ),
    "pynvml": ("torchdoctor/probes/child/", "torchdoctor/selftest/"),
}

# The only places that may catch every exception, each because a fault there must not stop the rest.
CATCH_ALL = (
    "torchdoctor/__main__.py",  # so does this for an installation that cannot be imported
    "torchdoctor/gate/child/",  # what is wrong with the job's torch is the answer
    "torchdoctor/cli/main.py",  # turns a fault of ours into exit code 70
    "torchdoctor/engine/",  # the guard around each rule
    "torchdoctor/lint/examine.py",  # the guard around each check
    "torchdoctor/hooks/",  # a hook must never take the user's program down
    "torchdoctor/probes/source.py",  # the guard around each probe; it keeps the traceback
    "torchdoctor/probes/child/",  # a probe reports its own failure as a fact
    "torchdoctor/selftest/",  # so does a self-check in its child
    "torchdoctor/checkpoint/child/",  # so may the user's factory
    "torchdoctor/watch/child/",  # the program under examination may raise anything
    "torchdoctor/ddp/",  # so may the user's model
)


def imported(tree: ast.AST, package: str) -> list[tuple[str, int]]:
    """Absolute names of all that a module imports anywhere in it, with the line."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                above = parts[: len(parts) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            # "from torchdoctor import catalog" names a part of the package, "from x import y" may not
            found += [
                (f"{base}.{alias.name}" if base == "torchdoctor" else base, node.lineno)
                for alias in node.names
            ]
    return found


def part_of(name: str) -> str:
    """The part of torchdoctor that a dotted name belongs to."""
    rest = name.split(".")[1:]
    return rest[0] if rest and (rest[0] in ALLOWED or not rest[0].startswith("_")) else ""


def violations(path: str, source: str) -> list[str]:
    """What a module does that its place does not allow. ``path`` is relative to the repository."""
    tree = ast.parse(source, path)
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    package = ".".join(parts if path.endswith("__init__.py") else parts[:-1])
    own = part_of(".".join(parts))
    found: list[str] = []
    for name, line in imported(tree, package):
        top = name.partition(".")[0]
        if top in FENCED and not path.startswith(FENCED[top]):
            found.append(f"{path}:{line}: imports {top}, which belongs into {', '.join(FENCED[top])}")
        if top == "torchdoctor":
            other = part_of(name)
            if other != own and other not in ALLOWED[own] and (own, name) not in CROSSINGS:
                found.append(f"{path}:{line}: {own or 'the package'} imports {name}")
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler) or path.startswith(CATCH_ALL):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(item is None or ast.unparse(item) in ("Exception", "BaseException") for item in caught):
            found.append(f"{path}:{node.lineno}: catches every exception")
    found += _too_long(path, source, tree)
    found += _not_theirs(path, tree)
    if Path(path).stem in _SAY_NOTHING:
        found.append(f"{path}: a file is named after the one thing in it")
    return found


def _too_long(path: str, source: str, tree: ast.AST) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > MAX_LINES and path not in LONG_MODULES:
        yield f"{path}: {lines} lines, more than {MAX_LINES}, without a reason in LONG_MODULES"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION and (path, node.name) not in LONG_FUNCTIONS:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, more than {MAX_FUNCTION}"


def _not_theirs(path: str, tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            owner = OWNERS.get(target.attr) if isinstance(target, ast.Attribute) else None
            if owner is not None and path != _BEGINS and not path.startswith(owner):
                yield f"{path}:{node.lineno}: assigns {ast.unparse(target)}, which is for {owner} to say"


def _graph() -> dict[str, set[str]]:
    """All imports between modules of the package, those for types and within functions, too."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & names.keys()
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names} & names.keys()
                graph[name] |= inner or ({node.module} & names.keys())
        graph[name].discard(name)
    return graph


def test_no_circle_of_imports() -> None:
    graph = _graph()
    left = dict(graph)
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    # what only leads into a circle is no part of it
    while loose := [name for name in left if not any(name in left[other] for other in left)]:
        for name in loose:
            del left[name]
    assert sorted(left) == []


def test_what_is_excused_is_still_there() -> None:
    for path, name in LONG_FUNCTIONS:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        found = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == name
            if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION
        ]
        assert found, f"{path}: {name} is short now; take it out of LONG_FUNCTIONS"
    for path in LONG_MODULES:
        assert len((ROOT / path).read_text(encoding="utf-8").splitlines()) > MAX_LINES, path


def test_modules_were_found() -> None:
    names = {path.relative_to(PACKAGE).as_posix() for path in MODULES}
    assert {"model.py", "cli/main.py", "render/text.py", "engine/diagnose.py"} <= names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_module_keeps_its_place(path: Path) -> None:
    assert violations(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("part", sorted({path.relative_to(PACKAGE).parts[0] for path in MODULES}))
def test_every_part_of_the_package_has_a_place_in_the_design(part: str) -> None:
    assert part == "__init__.py" or part.removesuffix(".py") in ALLOWED


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("torchdoctor/render/text.py", "from torchdoctor.engine import diagnose", "render imports"),
        ("torchdoctor/render/json.py", "import rich.console", "imports rich"),
        ("torchdoctor/intake/source.py", "def f():\n    from torchdoctor import catalog", "intake imports"),
        ("torchdoctor/intake/source.py", "from ..extract import oom", "intake imports"),
        ("torchdoctor/catalog/rule.py", "import torchdoctor.engine.match", "catalog imports"),
        ("torchdoctor/model.py", "from torchdoctor.catalog import RuleSet", "model imports"),
        ("torchdoctor/engine/match.py", "from torchdoctor.cli import main", "engine imports"),
        ("torchdoctor/engine/match.py", "import click", "imports click"),
        ("torchdoctor/engine/match.py", "from torchdoctor.share import redaction", "engine imports"),
        ("torchdoctor/engine/match.py", "from torchdoctor.workbench import cases", "engine imports"),
        ("torchdoctor/probes/memory.py", "import torch.cuda", "imports torch"),
        ("torchdoctor/probes/memory.py", "import pynvml as nvml", "imports pynvml"),
        ("torchdoctor/intake/a.py", "try:\n    f()\nexcept (OSError, Exception):\n    pass", "catches every"),
        ("torchdoctor/intake/a.py", "try:\n    f()\nexcept:\n    pass", "catches every"),
        ("torchdoctor/intake/a.py", "x = 1\n" * (MAX_LINES + 1), "lines"),
        ("torchdoctor/intake/utils.py", "", "named after"),
        ("torchdoctor/ddp/child/program.py", "", "named after"),
    ],
)
def test_the_check_sees(path: str, source: str, complaint: str) -> None:
    (found,) = violations(path, source)
    assert complaint in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("torchdoctor/cli/explain.py", "import click\nfrom torchdoctor.render.text import render"),
        ("torchdoctor/render/styled.py", "from rich.cells import cell_len\nimport re"),
        (
            "torchdoctor/engine/match.py",
            "from torchdoctor import extract\nfrom torchdoctor.engine import rank",
        ),
        ("torchdoctor/probes/child/nvml.py", "import pynvml\nimport torch"),
        ("torchdoctor/intake/a.py", "try:\n    f()\nexcept OSError:\n    pass"),
    ],
)
def test_the_check_allows(path: str, source: str) -> None:
    assert violations(path, source) == []


def test_one_exit_code_for_our_faults() -> None:
    """Defined once; only where that may be what cannot be imported does the number itself stand."""
    from torchdoctor.cli.exit_codes import OUR_FAULT

    written = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign | ast.Call | ast.Return)
        and str(OUR_FAULT) in re.findall(r"\b\d+\b", ast.unparse(node))
        and re.search(r"exit|fault", ast.unparse(node), re.IGNORECASE)
    }
    assert written & {path for path in written if path.startswith("cli/")} == {"cli/exit_codes.py"}
    assert "__main__.py" in written
