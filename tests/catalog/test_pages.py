"""What pages are made of is current and the same bytes each time; they say what ``rules show`` prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor import catalog
from torchdoctor.catalog.page import gather, readable
from torchdoctor.catalog.pages import in_text, site
from torchdoctor.catalog.remarks import Example, rule_file, versions
from torchdoctor.cli.main import main
from torchdoctor.workbench.examples import MAX_LENGTH, MAX_LINES, collect
from torchdoctor.workbench.lint import Catalog

ROOT = Path(__file__).resolve().parent.parent.parent


def test_they_are_current(examined: Catalog, pages: dict[str, str]) -> None:
    stale = [
        name
        for name, text in pages.items()
        if not (Path(examined.directory) / name).exists()
        or (Path(examined.directory) / name).read_bytes() != text.encode()
    ]
    assert stale == [], "`torchdoctor rules pages` writes them"


def test_they_come_out_the_same_twice(examined: Catalog, pages: dict[str, str]) -> None:
    assert examined.pages() == pages


def test_every_rule_that_matches_has_an_example(examined: Catalog) -> None:
    examples = collect(examined.answers)
    answered = {answer.case.of for answer in examined.answers if answer.top == answer.case.of}
    assert [rule_id for rule_id in sorted(answered) if not examples[rule_id].lines] == []
    # remarks that are never an answer of their own have none
    matching = [rule for rule in examined.rules.rules() if rule.matches]
    assert len(answered) > 0.95 * len(matching)
    for item in examples.values():
        assert len(item.lines) <= MAX_LINES
        assert all(len(line) <= MAX_LENGTH for line in item.lines)


def test_examples_prefer_real_logs(examined: Catalog) -> None:
    answers = {answer.case.id: answer for answer in examined.answers}
    for rule_id, item in collect(examined.answers).items():
        if not item.fixture or answers[item.fixture].case.origin != "reconstructed":
            continue
        for answer in examined.answers:
            if answer.case.of == rule_id and answer.top == rule_id:
                assert answer.case.origin == "reconstructed" or not answer.report.diagnoses[0].evidence


@pytest.fixture(scope="module")
def made(examined: Catalog) -> dict[str, str]:
    """The pages of a site."""
    return site(examined.rules, examined.directory, collect(examined.answers))


def test_show_says_the_same(examined: Catalog, made: dict[str, str], printed: Printed) -> None:
    shown = printed(["rules", "show", "cuda-assert-label-range"])
    section = made["cuda-assert-label-range.md"]
    order = [
        "Example",
        "Why",
        "What to do",
        "To decide",
        "Looks like",
        "Can lead to",
        "How it shows",
        "Read more",
    ]
    places = [shown.index(f"\n{title}\n") for title in order]
    assert places == sorted(places)
    example = collect(examined.answers)["cuda-assert-label-range"]
    assert example.lines
    for line in example.lines:
        assert line in shown
        assert line in section
    words = " ".join(shown.split())
    for text in ("torch 1.5 and later", "`cuda-assert-other`", "CUDA_LAUNCH_BLOCKING=1 python train.py"):
        assert text in section
        assert text.strip("`") in words


RULE = """id = "{id}"
family = "memory"
severity = "fatal"
role = "cause"
title = "{id} [of] <pools>"
why = "A pool with __slots__ | and *stars*; see https://example.org/a_b_c"
{more}
# torch 1.0
# and later
[[match]]
text = "the pool `{id}` {{n:int}} is exhausted"

[[match]]   # the same, shorter
text = "exhausted pool of any kind"

[[fix]]
do = "Wait."
run = "sleep 5\\necho done"
[[fix]]
do = "Take the machine apart."
risk = "needs-root"
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "rules" / "memory"
    folder.mkdir(parents=True)
    (folder / "first.toml").write_text(RULE.format(id="first", more='refines = ["second"]'), encoding="utf-8")
    (folder / "second.toml").write_text(RULE.format(id="second", more=""), encoding="utf-8")
    return tmp_path / "rules"


def test_comments_above_the_matches(tree: Path) -> None:
    assert versions(rule_file([str(tree)], "memory", "first")) == ("torch 1.0 and later", "")
    assert versions(rule_file([str(tree)], "memory", "none")) == ()


def test_ways_out_keep_their_order_and_look_alikes_are_named(tree: Path) -> None:
    rules = catalog.load(str(tree))
    page = gather(rules, "first", ("torch 1.0 and later", ""), Example("first/one", ("a line",), ("second",)))
    assert [item.fix.do for item in page.fixes] == ["Wait.", "Take the machine apart."]  # as explain has it
    assert page.look_alikes == (
        ("second", "second [of] <pools>", "the more general case, which this rule replaces"),
    )
    (alike,) = gather(rules, "second").look_alikes
    assert alike[2] == "a special case, which replaces this rule where it is sure"
    text = in_text(page, 60)
    assert "\nExample\n  a line\n" in text
    assert "  1. Wait.\n     $ sleep 5\n     $ echo done\n  2. Take the machine apart. (needs adm" in text
    assert "  torch 1.0 and later\n  - the pool `first` N is exhausted\n" in text


def test_values_of_the_message_and_groups_are_words_for_readers(made: dict[str, str]) -> None:
    page = made["allocator-option-invalid.md"]
    assert r"1. Take OPTION out of PYTORCH\_CUDA\_ALLOC\_CONF" in page
    assert "- `Unrecognized CachingAllocator option: OPTION` – torch 1.10 to 2.8" in page
    groups = "[`@peer-death`](index.md#groups), [`@launcher-teardown`](index.md#groups)"
    assert f"## Can lead to\n\n{groups}\n" in page
    for name, text in made.items():
        assert not re.search(r"\{\w+\.\w+\}|\bmatch\.", text), name


def test_rules_print_the_same_text_only_where_they_share_a_whole_template(examined: Catalog) -> None:
    def alike(rule_id: str) -> set[str]:
        found = gather(examined.rules, rule_id).look_alikes
        return {name for name, _, how in found if how == "prints the same text"}

    assert "cuda-oom-other-process" in alike("cuda-oom-fragmentation")
    assert "cuda-oom-too-big" not in alike("allocator-option-invalid")


def test_a_site_has_a_page_for_each_rule_and_every_link_leads_to_one(tmp_path: Path) -> None:
    assert main(["rules", "pages", "--site", str(tmp_path)]) == 0
    rules = catalog.load()
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert {f"{rule_id}.md" for rule_id in rules.ids()} < texts.keys()
    for name, text in texts.items():
        assert set(re.findall(r"\]\(([^)#:]+\.md)\)", text)) <= texts.keys(), name
    assert "# dtype-mismatch\n" in texts["dtype-mismatch.md"]
    assert "(dtype-mismatch.md)" in texts["index.md"]


def test_markdown_shows_texts_as_they_are(tree: Path) -> None:
    made = site(catalog.load(str(tree)), str(tree), {"first": Example("first/one", ("```", "x"), ())})
    page = made["first.md"]
    assert r"\_\_slots\_\_ \| and \*stars\*; see https://example.org/a_b_c" in page
    assert r"**first \[of\] \<pools>**" in page
    assert "````text\n```\nx\n````" in page
    assert "- ``the pool `first` N is exhausted`` – torch 1.0 and later" in page
    assert "\n\n        sleep 5\n        echo done\n\n" in page


def test_the_command_writes_what_changed_only(tree: Path, printed: Printed) -> None:
    assert "examples.json" in printed(["rules", "pages", "--rules", str(tree)])
    before = {path: path.stat().st_mtime_ns for path in tree.iterdir()}
    assert printed(["rules", "pages", "--rules", str(tree)]) == "2 files are current\n"
    assert {path: path.stat().st_mtime_ns for path in tree.iterdir()} == before


@pytest.mark.parametrize(
    "source", ["{name:word}: not found", "{file:path} is gone for good", "{n:int} items lost"]
)
def test_a_leading_hole_reads_back(source: str) -> None:
    from torchdoctor.catalog.template import parse

    assert readable(parse(source).pattern) == source
