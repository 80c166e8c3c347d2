"""Texts for users keep to plain, idiomatic English: phrases that follow another language's idiom stay out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_tree import commands

from torchdoctor import catalog
from torchdoctor.cli.main import cli, main

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
def test_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    assert found(capsys.readouterr().out) == []


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
