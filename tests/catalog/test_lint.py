"""The lint: that the catalog keeps what it checks, and that each check can fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from case_files import put
from printed import Printed

from torchdoctor.catalog import load
from torchdoctor.catalog.rule import Condition
from torchdoctor.catalog.ruleset import RuleSet
from torchdoctor.catalog.template import parse
from torchdoctor.cli.main import _COMMANDS, main
from torchdoctor.model import FactValue
from torchdoctor.workbench import lint, lint_patterns, lint_rules, literals

ROOT = Path(__file__).resolve().parent.parent.parent

# How many rules each list of exemptions may hold. Lower a number when a list has shrunk; never raise one.
EXEMPTIONS = {"REGEX_ALLOWED": 0, "NO_POSITIVE": 0, "NO_NEAR_MISS": 0, "RISKIER_FIRST": 0}


RULE = """id = "{id}"
family = "memory"
severity = "fatal"
role = "cause"
title = "{id} happened"
why = "The pool of {id} holds a fixed number of slots, and all of them are taken by earlier requests."
# frobnicator 1.0 and later
[[match]]
text = "the pool of {id} with {{slots:int}} slots is exhausted"
[[fix]]
do = "Raise the number of slots above {{match.slots}}."
"""
LOG = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 7, in main\n    pool.put(x)\n'
    "RuntimeError: the pool of {id} with {slots} slots is exhausted\n"
)


@pytest.mark.parametrize(("name", "most"), EXEMPTIONS.items())
def test_exemptions_only_shrink(name: str, most: int) -> None:
    assert len(getattr(lint, name)) == most


def test_every_list_of_exemptions_is_counted() -> None:
    lists = {name for name, value in vars(lint).items() if isinstance(value, frozenset)}
    assert lists == set(EXEMPTIONS)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rules and cases in which nothing is wrong."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules" / "memory").mkdir(parents=True)
    for name in ("first", "second"):
        write(tmp_path, f"rules/memory/{name}.toml", RULE.format(id=name))
        fixture(tmp_path, f"{name}/plain", name, LOG.format(id=name, slots=8))
    fixture(tmp_path, "first/second", "second", LOG.format(id="second", slots=8))
    fixture(tmp_path, "second/other", "none", LOG.format(id="third", slots=8))
    fixture(tmp_path, "clean/good", "none", "epoch 1\nTraining finished.\n")
    fixture(tmp_path, "unknown/other", "unrecognised", LOG.format(id="fourth", slots=8))
    write(tmp_path, "rules/ids.txt", "# all\nfirst\nsecond\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def fixture(root: Path, name: str, rule: str, text: str, **label: object) -> None:
    put(root / "fixtures", name, rule, text, origin="reported", **label)


def problems(tree: Path, golden_file: str | None = None) -> list[str]:
    return list(lint.lint(str(tree / "rules"), str(tree / "fixtures"), golden_file).problems)


def change(tree: Path, old: str, new: str, name: str = "rules/memory/first.toml") -> None:
    path = tree / name
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_nothing_is_wrong_with_the_sample(tree: Path) -> None:
    report = lint.lint(str(tree / "rules"), str(tree / "fixtures"))
    assert report.problems == ()
    assert report.summary == (
        "2 rules in 1 family",
        "6 cases: 0 captured, 6 reported, 0 reconstructed (100 % from real programs or reports)",
        "clean.cases: 1 of 1 with the outcome no-failure",
        "unknown.cases: 1 of 1 with the outcome unrecognised",
    )


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("family =", "famly =", 'unknown key "famly"; did you mean "family"'),
        ('id = "first"', 'id = "frist"', 'id "frist" is not the file\'s name "first"'),
        ("first happened", "second happened", "title is the same as that of memory/first.toml"),
        ("The pool of first holds", "TODO The pool of first holds", "a TODO of the stub is left"),
        (
            " holds a fixed number of slots, and all of them are taken by earlier requests",
            "",
            "why is too short",
        ),
        ("# frobnicator 1.0 and later", "", "no comment above the first [[match]]"),
        ("[[fix]]\ndo =", "#", "a cause needs at least one [[fix]]"),
        ("{match.slots}", "{match.slot}", 'a fix names "{match.slot}"'),
        ("Raise the", "Try updating the", "a fix that only says to update is none"),
        ("# frob", 'references = ["http://x.org"]\n# frob', "is no https address"),
        ("# frob", 'confirm = [{ fact = "match.slot", is = 1 }]\n# frob', "no template has that hole"),
        (
            "# frob",
            'confirm = [{ fact = "log.torch_sen", is = true }]\n# frob',
            'did you mean "log.torch_seen"',
        ),
        (
            "# frob",
            'confirm = [{ fact = "event.rank", is = "two" }]\n# frob',
            "is of type int, but compared with 'two'",
        ),
    ],
)
def test_each_fault_of_a_rule_is_told(tree: Path, old: str, new: str, complaint: str) -> None:
    change(tree, old, new)
    assert [line for line in problems(tree) if complaint in line]


def test_no_fix_stands_behind_a_riskier_one(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fix = '[[fix]]\ndo = "Raise the number of slots above {match.slots}."\n'
    riskier = '[[fix]]\ndo = "Kill who holds a slot."\nrisk = "loses-work"\n'
    change(tree, fix, riskier + fix.replace(" above {match.slots}", ""))
    (told,) = (text for text in problems(tree) if "stands behind a riskier one" in text)
    assert told.startswith("memory/first.toml: fix 2 (safe) stands behind a riskier one (loses-work)")
    monkeypatch.setattr(lint, "RISKIER_FIRST", frozenset({"first", "second"}))
    told_of = [text for text in problems(tree) if "RISKIER_FIRST" in text or "riskier" in text]
    assert told_of == ["memory/second.toml: safe fixes stand first: take it out of RISKIER_FIRST"]


def test_ids_are_permanent(tree: Path) -> None:
    write(tree, "rules/ids.txt", "third\nfirst\n")
    found = problems(tree)
    assert "ids.txt: third was published and has no rule" in found
    assert "ids.txt: second is not listed; add it" in found
    assert "ids.txt: its lines are not sorted, or an id stands twice" in found


def test_a_retired_rule_needs_no_evidence(tree: Path) -> None:
    old = RULE.format(id="old").replace(
        "# frob", 'retired = "2.0: told apart"\nreplaced_by = ["first"]\n# frob'
    )
    write(tree, "rules/memory/old.toml", old)
    write(tree, "rules/ids.txt", "first\nold\nsecond\n")
    report = lint.lint(str(tree / "rules"), str(tree / "fixtures"))
    assert report.problems == ()
    assert report.summary[:2] == ("2 rules in 1 family", "1 retired rule")


@pytest.mark.parametrize(
    ("name", "rule", "rule_id", "complaint"),
    [
        ("first/wrong", "first", "second", "fixtures/first.cases:13: wrong: expected first, got second"),
        ("clean/bad", "none", "first", "fixtures/clean.cases:5: bad: expected none, got first"),
        ("unknown/bad", "unrecognised", "first", "unknown.cases:7: bad: expected unrecognised, got first"),
        ("clean/bad", "first", "first", "bad: nothing may fire here, so its rule is none"),
        ("unknown/bad", "none", "fifth", "bad: nothing may fire here, so its rule is unrecognised"),
        ("first/bad", "none", "first", "fixtures/first.cases:13: bad: expected none, got first"),
        ("first/bad", "frist", "first", "first.cases:13: bad: names frist, which no rule has as its id"),
        ("third/plain", "first", "first", "fixtures/third.cases: no rule has this id"),
    ],
)
def test_wrong_answers_and_places(tree: Path, name: str, rule: str, rule_id: str, complaint: str) -> None:
    fixture(tree, name, rule, LOG.format(id=rule_id, slots=8))
    assert [line for line in problems(tree) if complaint in line]


def test_an_accepted_id_is_one_of_a_rule(tree: Path) -> None:
    fixture(tree, "first/accepted", "first", LOG.format(id="first", slots=8), also=("second",))
    assert problems(tree) == []
    fixture(tree, "first/typo", "first", LOG.format(id="first", slots=8), also=("second", "secnd"))
    assert [line.partition("fixtures/")[2] for line in problems(tree)] == [
        "first.cases:19: typo: names secnd, which no rule has as its id"
    ]


def test_missing_evidence(tree: Path) -> None:
    write(tree, "rules/memory/third.toml", RULE.format(id="third"))
    found = problems(tree)
    assert "third: no case of it in fixtures/third.cases" in found
    assert "third: no near miss in fixtures/third.cases" in found


def test_all_faulty_labels_are_told_at_once(tree: Path) -> None:
    fixture(tree, "first/other", "first", LOG.format(id="first", slots=8), note="TODO: say more")
    change(tree, "plain bytes=153 origin=reported", "plain bytes=153 origin=dreamt", "fixtures/first.cases")
    change(tree, "plain bytes=154 origin=", "plain bytes=143 origins=", "fixtures/second.cases")
    found = "\n".join(problems(tree))
    assert "first.cases:1: plain: origin is one of captured, reported, reconstructed" in found
    assert 'second.cases:1: plain: unknown key "origins"; did you mean "origin"?' in found
    assert "first.cases:14: other: a TODO of the stub is left" in found


class TestGolden:
    def test_a_changed_answer_is_told_until_it_is_recorded(
        self, tree: Path, printed: Printed, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tree / "tests" / "golden" / "top1.tsv"
        command = ["rules", "lint", "--rules", "rules", "--fixtures", "fixtures", "--golden", str(path)]
        assert "--update-golden writes it" in printed.errors(command, 2)
        assert main([*command, "--update-golden"]) == 0
        assert path.read_text("utf-8").splitlines()[:2] == [
            "case\ttop-1\tstanding\tuser frame",
            "clean/good\tno-failure\t-\t-",
        ]
        assert "first/plain\tfirst\tconfirmed\ttrain.py:7" in path.read_text("utf-8")
        assert main(command) == 0
        change(tree, "line 7", "line 9", "fixtures/first.cases")
        fixture(tree, "first/another", "first", LOG.format(id="first", slots=9))
        (tree / "fixtures/unknown.cases").unlink()
        capsys.readouterr()
        out = printed(command, 1)
        assert (
            "first/plain is recorded as first, confirmed, train.py:7, is now first, confirmed, train.py:9"
            in out
        )
        assert "first/another is not recorded" in out
        assert "unknown/other is recorded and gone" in out

    def test_it_is_found_beside_the_fixtures(self, tree: Path, printed: Printed) -> None:
        write(tree, "tests/golden/top1.tsv", "case\ttop-1\tstanding\tuser frame\n")
        assert "first/plain is not recorded" in printed(
            ["rules", "lint", "--rules", "rules", "--fixtures", "fixtures"], 1
        )

    @pytest.mark.usefixtures("tree")
    def test_without_a_place_it_cannot_be_recorded(self, printed: Printed) -> None:
        assert "--golden FILE" in printed.errors(["rules", "lint", "--rules", "rules", "--update-golden"], 2)


KNOWN = {
    "a.int": "int",
    "a.float": "float",
    "a.bool": "bool",
    "a.text": "text",
    "a.list": "list",
    "a.str": "str",
}


@pytest.mark.parametrize(
    ("fact", "word", "constant"),
    [
        ("a.int", "is", 1),
        ("a.int", "in", (1, 2)),
        ("a.float", "is", 1),
        ("a.float", "below", 2.5),
        ("a.bool", "is", True),
        ("a.text", "is", "x"),
        ("a.str", "in", ("x", "y")),
        ("a.str", "at_least", "2.1"),
        ("a.text", "matches_version", ">=2"),
        ("a.list", "contains", ("x", "y")),
        ("a.text", "contains", "x"),
        ("a.text", "contains_any", ("x", "y")),
        ("a.text", "lacks", ("x", "y")),
        ("a.bool", "known", True),
        ("env.CUDA_VISIBLE_DEVICES", "is", ""),
    ],
)
def test_conditions_that_fit(fact: str, word: str, constant: FactValue) -> None:
    assert lint_rules.fits(Condition(fact, word, constant), KNOWN) is None


@pytest.mark.parametrize(
    ("fact", "word", "constant"),
    [
        ("a.int", "is", True),
        ("a.int", "is", 1.5),
        ("a.int", "in", (1, "2")),
        ("a.int", "contains", "1"),
        ("a.int", "contains_any", ("1", "2")),
        ("a.int", "lacks", "1"),
        ("a.int", "matches_version", ">=2"),
        ("a.int", "at_least", "2.1"),
        ("a.bool", "is", 1),
        ("a.bool", "at_least", 1),
        ("a.text", "is", 1),
        ("a.text", "below", 1),
        ("a.list", "is", "x"),
        ("a.list", "matches_version", ">=2"),
        ("env.CUDA_VISIBLE_DEVICES", "is", 0),
        ("a.other", "known", True),
    ],
)
def test_conditions_that_can_never_hold(fact: str, word: str, constant: FactValue) -> None:
    assert lint_rules.fits(Condition(fact, word, constant), KNOWN) is not None


class TestPatterns:
    def rules(self, tree: Path, text: str, more: str = "") -> RuleSet:
        change(tree, "the pool of first with {slots:int} slots is exhausted", text)
        change(tree, "{match.slots}", "it")
        change(tree, "[[fix]]", f"{more}\n[[fix]]")
        return load(str(tree / "rules"))

    def test_a_regex_needs_an_exemption(self, tree: Path) -> None:
        rules = self.rules(tree, "some long text", r"regex = '(?:oom|OOM) \d{1,9}'")
        (found,) = lint_patterns.problems(rules, frozenset())
        assert found == "memory/first.toml: [[match]] 1 uses a regular expression, which its rule may not"
        assert not list(lint_patterns.problems(rules, frozenset({"first"})))

    def test_a_slow_template_is_told(self, tree: Path) -> None:
        rules = self.rules(tree, "start of it {a:rest} and {b:rest} and {c:rest} and {d:rest} stop")
        assert any("on hostile input" in line for line in lint_patterns.problems(rules, frozenset()))

    def test_a_leading_hole_is_not_slow(self) -> None:
        for kind in ("word", "path"):
            source = f"{{name:{kind}}}: not found"
            spent, _ = lint_patterns.slowest(parse(source).pattern, tuple(lint_patterns.hostile(source)))
            assert spent < lint_patterns.HOSTILE_S


class TestLiterals:
    LITERAL = "the pool of first with "

    def test_each_must_be_recorded(self, tree: Path) -> None:
        write(tree, f"rules/{literals.PLACE}", "the pool of second with \tfrobnicator 1.0: frob/pool.py\n")
        (found,) = problems(tree)
        assert repr(self.LITERAL) in found
        assert "is not recorded" in found

    @pytest.mark.parametrize(
        ("where", "right"),
        [
            ("torch 2.13.0: torch/nn/functional.py", True),
            ("historic: torch 0.4 to 1.2", True),
            ("other program: frobnicator, a server", True),
            ("unverified: frobnicator 2", False),
            ("joined: the pool of (frob 1.2: a.so) + first (grate 0.1: b (x86).so)", True),
            ("joined: the pool of (frob 1.2: a.so)", False),
            ("joined: the pool of (frob 1.2: a.so) + first (grate)", False),
            ("joined: ", False),
            ("historic: ", False),
            ("somewhere", False),
            ("", False),
        ],
    )
    def test_a_place_is_named(self, tree: Path, where: str, right: bool) -> None:
        rows = f"{self.LITERAL}\t{where}\nthe pool of second with \tfrobnicator 1.0: frob/pool.py\n"
        write(tree, f"rules/{literals.PLACE}", rows)
        assert (not problems(tree)) is right

    def test_a_line_that_no_template_needs(self, tree: Path) -> None:
        rules = load(str(tree / "rules"))
        table = dict.fromkeys(literals.every_literal(rules), "frobnicator 1.0: frob/pool.py")
        write(
            tree,
            f"rules/{literals.PLACE}",
            literals.recorded_text({**table, "gone with": "historic: long ago"}),
        )
        (found,) = problems(tree)
        assert "'gone with' is the literal of no template" in found


def test_rules_name_only_commands_that_exist() -> None:
    """What a fix or decide_with tells to run: ``torchdoctor WORD``."""
    named = {
        (word, path.name)
        for path in (ROOT / "rules").rglob("*.toml")
        for word in re.findall(r"(?<![\w.-])torchdoctor ([a-z]+)\b", path.read_text(encoding="utf-8"))
    }
    assert {word for word, _ in named} >= {"selftest"}
    assert {item for item in named if item[0] not in _COMMANDS} == set()
