"""Texts for users: plain, idiomatic English, and a count agrees with its noun. Held by reading them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_tree import commands
from printed import Printed

from torchdoctor import catalog
from torchdoctor.cli.main import cli
from torchdoctor.model import counted

ROOT = Path(__file__).resolve().parent.parent

# phrase, and what to write instead
PHRASES = [
    (r"(?:could|can)(?:not| not)? be told\b(?! apart)", "determined"),
    (r"\b(?:is|are|was|were|counts? as) (?:not )?told\b(?! to)", "reported, shown"),
    (r"\bnot told\b", "undetermined, unknown"),
    (r"\btells? of\b", "describes, reports"),
    (r"\bcomputes? (?:right|wrong)\b", "correctly, incorrectly"),
    (r"\bHeld:", "Passed:"),
    (r"\bnot the matter\b", "not the problem"),
    (r"\bfor ever\b", "forever"),
    (r"\bput out\b", "printed"),
    (r"\bmend(?:s|ed|ing)?\b", "fix"),
    (r"\bsaid as\b", "called"),
    (r"\bwhom to\b", "which nodes to, who is to"),
    (r"\bone that goes on\b", "one that continues"),
    (r"\banew\b", "again"),
    (r"\bbefell\b", "happened to"),
    (r"\bmistakes? in the call\b", "usage error"),
    (r"\b(?:come|came|comes) to (?:an|its|their) end\b", "finish"),
    (r"\bwithout a word\b", "without any message"),
    (r"\bpass(?:es)? it on\b", "share it"),
    (r"\bnode of processors\b", "CPU-only node"),
    (r"(?<![Tt]here )\bis no (?!longer\b|more\b)[\w-]+", "is not a"),
    (r"\bone (?:report|page|file|finding|pair)s? an? (?:line|family|cause|rule)\b", "one per line"),
    (r"\bin (?:its|their) stead\b", "instead"),
    (r"\bcomes and goes\b", "is intermittent"),
    (r"\bsees? to it\b", "make sure"),
]

BAD = [(re.compile(pattern), instead) for pattern, instead in PHRASES]

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "deploy").glob("*/README.md")),
]

MODULES = sorted(
    path
    for part in ("cli", "render", "gate", "selftest")
    for path in (ROOT / "torchdoctor" / part).rglob("*.py")
)


def found(text: str) -> list[str]:
    """Each phrase of the list that stands in a text, with what to write instead."""
    text = " ".join(text.split())
    return [f"{match[0]!r}: rather {instead!r}" for bad, instead in BAD for match in bad.finditer(text)]


def literals(source: str) -> Iterator[str]:
    """String literals of a module, f-strings with ``{}`` for their values, docstrings left out."""
    tree = ast.parse(source)
    passed: set[int] = set()
    for node in ast.walk(tree):
        # not those of commands, which are their help; the help itself is read below
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            passed.update(id(part) for part in node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.value


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents(path: Path) -> None:
    assert found(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", [(), *commands(cli)], ids=" ".join)
def test_help(path: tuple[str, ...], printed: Printed) -> None:
    assert found(printed([*path, "--help"])) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_messages(path: Path) -> None:
    problems = {text: bad for text in literals(path.read_text(encoding="utf-8")) if (bad := found(text))}
    assert problems == {}


def test_rules() -> None:
    rules = catalog.load()
    problems = {}
    for name in rules.ids():
        words = rules.text(name)
        told = [words.why, words.more or "", words.decide_note or "", *(item.fix.do for item in words.fixes)]
        if bad := [problem for text in told for problem in found(text)]:
            problems[name] = bad
    assert problems == {}


def test_the_list_finds_what_it_is_for() -> None:
    for text in (
        "it could not be told",
        "ranks 0 and 1 cannot be\ntold",
        "nodes that are not told",
        "does this GPU compute right?",
        "that is not the matter",
        "whom to exclude",
        "2 a mistake in the call",
        "a.toml is no TOML",
    ):
        assert found(text), text
    for text in ("which ranks cannot be told apart", "it is no longer there", "there is no such file"):
        assert not found(text), text
    source = 'def f(x):\n    "is no file"\n    return f"{x} is no " + "file", "for ever"\n'
    assert sorted(literals(source)) == ["file", "for ever", "{} is no "]


# A count and its noun agree: "1 node", "2 nodes". Held by reading the sources
MODULES_COUNTS = sorted((ROOT / "torchdoctor").rglob("*.py"))

# Names that hold a number of things.
_NUMBERS = re.compile(
    "n|counts?|numbers?|total|wrong|warned|tried|seen|times|more|left|trainable|forgotten|gpus|world|processors|"
    "threads|lines_read|compared|statistics|switches|errors|elements|size|files|lines|most"
)

# Words in s that may follow a number and are no plural.
_NO_NOUN = re.compile("as|has|is|was|its|this|times|stands?")

# Plurals that may stand: the number is never 1, or a singular stands beside them. File, text after it.
ALLOWED = {
    ("torchdoctor/intake/plain_pickle.py", " bytes"): "of a size beyond a limit",
    ("torchdoctor/extract/oom.py", " bytes"): "as torch prints it",
    ("torchdoctor/gate/child/pair.py", " sums"): "of a message of many",
    ("torchdoctor/probes/operations.py", " bytes"): "of a size beyond a limit",
    ("torchdoctor/gate/checks_caches.py", " minutes"): "more than ten",
    ("torchdoctor/selftest/child/collectives.py", " ranks"): "two or more",
    ("torchdoctor/selftest/child/collectives.py", " GPUs"): "two or more",
    ("torchdoctor/selftest/child/survey.py", " threads"): "part of the name that a baseline is kept under",
    ("torchdoctor/selftest/thresholds.py", " multiprocessors"): "of a whole GPU",
    ("torchdoctor/watch/report.py", " threads"): "said where there are several",
    ("torchdoctor/intake/transcript.py", " files"): "more than three",
    ("torchdoctor/intake/inputs.py", " logs"): "thousands",
    ("torchdoctor/gate/checks_node.py", " inodes"): "of a whole file system",
    ("torchdoctor/workbench/lint_words.py", " words"): "more than sixty",
    ("torchdoctor/workbench/lint_words.py", " characters"): "more than a hundred and sixty",
}


def _may_be_one(value: ast.FormattedValue) -> bool:
    """Is it a number, as far as its form tells, and no constant of ours, which are known to be more?"""
    node = value.value
    if isinstance(node, ast.BinOp) or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("len", "sum", "int")
    ):
        return True
    form = ast.unparse(value.format_spec) if value.format_spec is not None else ""
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if last.lstrip("_").isupper():
        return False
    return bool(_NUMBERS.fullmatch(last) or re.search(r"[,gdf]'$", form))


def unchecked_plurals(path: str, source: str) -> list[str]:
    """Places where a number stands before a plural, whatever the number is."""
    tree = ast.parse(source)
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp) and re.search(r"(?:[<>]=?|==|!=) ?[12]\b", ast.unparse(node.test))
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            noun = re.match(r" (?:more |plain |other )?([A-Za-z]+[^\W\d_s]s)\b", str(text.value))
            if noun is None or _NO_NOUN.fullmatch(noun[1]) or id(node) in guarded or not _may_be_one(value):
                continue
            if (path, noun[0]) not in ALLOWED:
                found.append(f"{path}:{value.lineno}: {ast.unparse(value.value)}{noun[0]}")
    return found


@pytest.mark.parametrize("path", MODULES_COUNTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_count_and_its_noun_agree(path: Path) -> None:
    assert unchecked_plurals(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "f'{len(nodes)} nodes'",
        "f'{wrong} faults'",
        "f'and {len(a) - 6} more ranks'",
        "f'{seen:g} GPUs asked'",
        "f'{self.count:,} GPUs'",
    ],
)
def test_the_check_sees(source: str) -> None:
    assert len(unchecked_plurals("a.py", source)) == 1


@pytest.mark.parametrize(
    "source", ["f'{len(a)} ranks' if len(a) > 1 else 'rank 0'", "f'{name} is set'", "f'{len(a)} active'"]
)
def test_the_check_allows(source: str) -> None:
    assert unchecked_plurals("a.py", source) == []


def test_counted() -> None:
    assert [counted(number, "fault") for number in (0, 1, 2, 1000)] == [
        "0 faults", "1 fault", "2 faults", "1,000 faults",
    ]  # fmt: skip
    assert counted(2, "library", "libraries") == "2 libraries"
    assert counted(1, "node works", "nodes work") == "1 node works"
