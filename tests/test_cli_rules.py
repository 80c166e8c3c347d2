"""``torchdoctor rules``: list, show, lint, facts, eval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_files import put
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog.page import gather, readable
from torchdoctor.catalog.pages import in_text
from torchdoctor.catalog.template import parse
from torchdoctor.cli.main import main
from torchdoctor.lint import registry
from torchdoctor.workbench.evaluate import evaluate
from torchdoctor.workbench.labelled import EvaluationError, cases
from torchdoctor.workbench.scoreboard import in_words

RULE = """\
id          = "{id}"
family      = "tensor"
severity    = "fatal"
role        = "cause"
title       = "The {id} of the tests"
why         = "This is invented, so that these tests do not depend on any one rule of the catalog at all."
decide_with = "python train.py --decide"
confirm     = [{{ fact = "match.number", at_least = 5 }}]
references  = ["https://example.org/{id}"]

# invented
[[match]]
type = "RuntimeError"
text = "The {id} of tensor {{number:int}} {{{{failed}}}}"

[[fix]]
do   = "Do without it."
run  = "python train.py --without"
risk = "loses-work"
"""


def log(rule: str, number: int = 7) -> str:
    return (
        "Traceback (most recent call last):\n"
        '  File "/home/me/project/train.py", line 12, in main\n'
        "    main()\n"
        f"RuntimeError: The {rule} of tensor {number} {{failed}}\n"
    )


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "rules" / "tensor"
    folder.mkdir(parents=True)
    for name in ("test-folding", "test-bending"):
        (folder / f"{name}.toml").write_text(RULE.format(id=name), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "rules"


@pytest.mark.usefixtures("rules")
class TestListAndShow:
    def test_list_names_every_rule_once(self, printed: Printed) -> None:
        lines = printed(["rules", "list"]).splitlines()
        ids = [line.split()[0] for line in lines if line.startswith("  ")]
        assert sorted(ids) == sorted([*catalog.load().ids(), *registry.all_checks()])

    def test_list_of_a_family_with_rules_of_our_own(self, printed: Printed) -> None:
        rows = json.loads(
            printed(["rules", "list", "--family", "tensor", "--rules", "rules", "--format", "json"])
        )
        assert {row["family"] for row in rows} == {"tensor"}
        assert {
            "id": "test-folding",
            "family": "tensor",
            "severity": "fatal",
            "role": "cause",
            "title": "The test-folding of the tests",
        } in rows

    def test_show(self, printed: Printed) -> None:
        text = printed(["rules", "show", "test-folding", "--rules", "rules"])
        assert text.startswith("The test-folding of the tests\ntest-folding (tensor, fatal, cause)\n")
        for part in (
            "  - The test-folding of tensor NUMBER {failed}\n    (RuntimeError)\n",
            "  1. Do without it. (loses work)\n     $ python train.py --without\n",
            "To decide\n  $ python train.py --decide\n",
            "Confirmed when\n  NUMBER at least 5\n",
            "  https://example.org/test-folding\n",
        ):
            assert part in text

    def test_show_as_json(self, printed: Printed) -> None:
        data = json.loads(printed(["rules", "show", "test-folding", "--rules", "rules", "--format", "json"]))
        assert data["matches"] == [
            {
                "text": ["The test-folding of tensor {number:int} {{failed}}"],
                "event": [],
                "type": ["RuntimeError"],
                "where": [],
                "versions": "invented",
            }
        ]
        assert data["fixes"][0]["risk"] == "loses-work"

    def test_show_of_an_unknown_rule_names_the_nearest(self, printed: Printed) -> None:
        assert "did you mean test-folding" in printed.errors(
            ["rules", "show", "test-foldin", "--rules", "rules"], 2
        )


def test_every_rule_of_the_catalog_has_a_page() -> None:
    rules = catalog.load()
    for rule_id in rules.ids():
        assert rules.rule(rule_id).title.split()[0] in in_text(gather(rules, rule_id))


@pytest.mark.parametrize(
    "source",
    [
        "Tried to allocate {want:size}. GPU {gpu:int} has",
        "{{literal}} braces (and) [other] * marks? {:rest}",
        "{a:float} {b:version} {c:path} {d:word} and {e:rest} then",
        "ends with a hole: {rest:rest}",
    ],
)
def test_a_pattern_reads_back_as_its_template(source: str) -> None:
    assert readable(parse(source).pattern) == source


def test_a_pattern_that_is_no_template_stays_as_it_is() -> None:
    assert readable(r"code (\d+|none)$") == r"code (\d+|none)$"


class TestLint:
    def test_a_fault_is_named_and_gives_1(self, rules: Path, printed: Printed) -> None:
        path = rules / "tensor" / "test-folding.toml"
        path.write_text(RULE.format(id="test-folding").replace("severity", "severty"), encoding="utf-8")
        out = printed(["rules", "lint", "--rules", "rules"], 1)
        assert 'tensor/test-folding.toml: unknown key "severty"' in out
        assert out.rstrip().splitlines()[-1].startswith("✗ ")

    @pytest.mark.usefixtures("rules")
    def test_no_fault(self, printed: Printed) -> None:
        assert printed(["rules", "lint", "--rules", "rules"]).endswith("✓ no fault\n")


class TestCasesBesideOwnRules:
    """What `rules new --rules DIR` writes beside DIR is what lint and pages read there."""

    def test_pages_take_their_examples_from_there(self, rules: Path) -> None:
        put(rules.parent / "fixtures", "test-folding/first", "test-folding", log("test-folding"))
        assert main(["rules", "pages", "--rules", "rules"]) == 0
        examples = json.loads((rules / "examples.json").read_text(encoding="utf-8"))
        assert examples["test-folding"]["lines"] == ["RuntimeError: The test-folding of tensor 7 {failed}"]
        assert main(["rules", "pages", "--rules", "rules", "--site", "site"]) == 0
        assert "The test-folding of tensor 7" in Path("site", "test-folding.md").read_text("utf-8")

    def test_lint_runs_them(self, rules: Path, printed: Printed) -> None:
        put(rules.parent / "fixtures", "test-folding/first", "test-folding", "epoch 1 done\n")
        assert "expected test-folding, got none" in printed(["rules", "lint", "--rules", "rules"], 1)

    def test_a_folder_of_that_name_with_other_things_is_left_alone(self, rules: Path) -> None:
        (rules.parent / "fixtures" / "users").mkdir(parents=True)
        assert main(["rules", "lint", "--rules", "rules"]) == 0


class TestFacts:
    def test_text(self, printed: Printed) -> None:
        lines = printed(["rules", "facts"]).splitlines()
        assert any(line.startswith("event.text ") for line in lines)
        assert any(line.startswith("torch.version ") for line in lines)

    def test_json(self, printed: Printed) -> None:
        facts = json.loads(printed(["rules", "facts", "--format", "json"]))
        assert list(facts) == sorted(facts)
        assert facts["event.rank"].startswith("int: ")


@pytest.fixture
def labelled(rules: Path) -> Path:
    """Six logs: right, right through also, wrong and confirmed, false alarm, silent, without a rule."""
    folder = rules.parent / "cases"
    folder.mkdir()
    rows = [
        ("a.txt", "test-folding", "", "easy", log("test-folding")),
        ("b.txt", "test-unknown", "test-folding", "hard", log("test-folding")),
        ("c.txt", "test-bending", "", "hard", log("test-folding")),
        ("d.txt", "none-of-the-above", "", "easy", log("test-folding", 2)),
        ("e.txt", "none-of-the-above", "", "easy", "epoch 1\nepoch 2\nTraining finished.\n"),
        ("f.txt", "test-unknown", "", "easy", log("test-something")),
    ]
    lines = ["case\tcause\talso\tdifficulty\tstyle\tdecisive"]
    for name, cause, also, difficulty, text in rows:
        (folder / name).write_text(text, encoding="utf-8")
        lines.append(f"{name}\t{cause}\t{also}\t{difficulty}\tplain\t")
    (folder / "labels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


class TestEval:
    def test_counts(self, labelled: Path) -> None:
        result = evaluate(str(labelled), catalog.load(extra=["rules"]))
        data = result.as_data()
        assert data["cases"] == 6
        assert data["with_rule"] == 2
        assert (data["top1"], data["top3"]) == (1, 1)
        assert data["none_of_the_above"] == 2
        assert data["false_positives"] == ["d.txt"]
        assert data["wrong_and_confirmed"] == ["c.txt"]
        assert data["without_rule"] == {"cases": 2, "right": 1, "unrecognised": 1}
        assert data["by_family"] == {"tensor": {"cases": 2, "top1": 1, "top3": 1}}
        assert [miss["case"] for miss in data["misses"]] == ["c.txt", "d.txt"]
        assert data["misses"][0]["got"] == [{"rule": "test-folding", "standing": "confirmed"}]
        assert data["misses"][0]["evidence"]["line"] == 4

    def test_words(self, labelled: Path) -> None:
        text = in_words(evaluate(str(labelled), catalog.load(extra=["rules"])))
        assert "top-1                   1 / 2      50.0 %" in text
        assert "false positives         1 / 2      50.0 %" in text
        assert "wrong and confirmed     1" in text
        assert (
            "  c.txt: expected test-bending\n    got   test-folding (confirmed)\n    line  c.txt:4  " in text
        )
        assert "1 right through `also`, 1 without a diagnosis" in text

    @pytest.mark.usefixtures("labelled")
    @pytest.mark.parametrize("form", ["text", "json"])
    def test_command(self, form: str, printed: Printed) -> None:
        assert "c.txt" in printed(["rules", "eval", "cases", "--rules", "rules", "--format", form])

    def test_files_of_cases(self, rules: Path) -> None:
        root = rules.parent / "fixtures"
        put(root, "test-folding/one", "test-folding", log("test-folding"), frame="train.py:12")
        put(root, "test-folding/two", "test-folding", log("test-folding"), frame="train.py:13")
        put(root, "test-folding/near", "test-bending", log("test-bending"))
        put(root, "clean/one", "none", "epoch 1\nTraining finished.\n")
        put(root, "unknown/one", "unrecognised", log("test-something"))
        result = evaluate(str(root), catalog.load(extra=["rules"]))
        data = result.as_data()
        assert (data["with_rule"], data["top1"], data["none_of_the_above"]) == (3, 3, 1)
        assert data["unrecognised"] == {"cases": 1, "right": 1}
        assert data["false_positives"] == []
        assert list(data["differences"]) == ["test-folding/two"]
        (difference,) = data["differences"].values()
        assert difference == ["user frame train.py:12, expected train.py:13"]
        assert "user frame train.py:12, expected train.py:13" in in_words(result)

    @pytest.mark.parametrize(
        ("labels", "complaint"),
        [
            ("case\tlabel\na.txt\tx\n", 'no column "cause"'),
            ("case\tcause\ngone.txt\tx\n", "labels.tsv:2: gone.txt is not there"),
            (None, "holds neither labels.tsv nor cases"),
        ],
    )
    def test_faulty_labels(self, labels: str | None, complaint: str, tmp_path: Path) -> None:
        if labels is not None:
            (tmp_path / "labels.tsv").write_text(labels, encoding="utf-8")
        with pytest.raises(EvaluationError, match=complaint):
            cases(str(tmp_path))
