"""Loading the catalog: what a rule file may hold, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import UnknownRuleError, load
from torchdoctor.catalog.compile import compile_tree
from torchdoctor.catalog.page import gather
from torchdoctor.catalog.pages import in_text
from torchdoctor.catalog.reader import CatalogError
from torchdoctor.catalog.ruleset import RuleSet, word_of
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Role, Severity

# the sample of the design, word for word
SAMPLE = '''
id          = "cuda-assert-label-range"
family      = "cuda-runtime"
severity    = "fatal"
role        = "cause"                   # cause | consequence | teardown | context
title       = "A class label lies outside [0, num_classes)"
why         = """One paragraph in plain words."""
leads_to    = ["cuda-assert-other", "cublas-execution-failed", "nccl-timeout", "dist-child-failed"]
confirm     = [{ fact = "assert.kernel", contains = "nll_loss" }]   # raises the cause
rule_out    = []                        # removes it; "could not tell" does neither and is listed as missing
decide_with = "CUDA_LAUNCH_BLOCKING=1 python train.py"   # the one command that settles it
references  = ["https://…"]

[[match]]                               # any one of these
event = "device-assert"
text  = "Assertion `t >= 0 && t < n_classes` failed"

[[match]]
event = "exception"
type  = "IndexError"
text  = "Target {label:int} is out of bounds"

[[fix]]
do   = "Bring the labels into 0 … num_classes - 1, or raise num_classes."
run  = "…"                              # optional command
risk = "safe"                           # safe | changes-environment | needs-root | loses-work
'''

MINIMAL = """
id = "{id}"
family = "{family}"
severity = "fatal"
role = "consequence"
title = "{id} happened"
why = "Because."
[[match]]
text = "some literal text of {id}"
"""


def write(root: Path, family: str, rule_id: str, text: str | None = None) -> Path:
    folder = root / family
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{rule_id}.toml"
    path.write_text(text if text is not None else MINIMAL.format(id=rule_id, family=family), encoding="utf-8")
    return path


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "rules"
    write(root, "cuda-runtime", "cuda-assert-label-range", SAMPLE)
    write(root, "cuda-runtime", "cuda-assert-other")
    write(root, "environment", "cublas-execution-failed")
    write(root, "distributed", "nccl-timeout")
    write(root, "distributed", "dist-child-failed")
    return root


def test_the_sample_of_the_design_loads(tree: Path) -> None:
    rules = load(str(tree))
    rule = rules.rule("cuda-assert-label-range")
    assert rule.severity is Severity.FATAL
    assert rule.role is Role.CAUSE
    assert rule.leads_to == (
        "cuda-assert-other",
        "cublas-execution-failed",
        "nccl-timeout",
        "dist-child-failed",
    )
    assert rule.confirm[0].fact == "assert.kernel"
    assert rule.matches[1].types == ("IndexError",)
    assert rules.text(rule.id).decide_with == "CUDA_LAUNCH_BLOCKING=1 python train.py"
    assert rules.text(rule.id).fixes[0].fix.risk == "safe"


def test_all_mistakes_of_all_files_are_reported_at_once(tree: Path) -> None:
    write(tree, "memory", "one", MINIMAL.format(id="one", family="memory") + 'anny = "x"\n')
    write(tree, "memory", "two", "this is = = no toml")
    write(tree, "memory", "three", MINIMAL.format(id="other", family="memory"))
    write(tree, "memory", "four", MINIMAL.format(id="four", family="memroy"))
    with pytest.raises(CatalogError) as error:
        load(str(tree))
    text = str(error.value)
    assert 'memory/one.toml: [[match]] 1 unknown key "anny"' in text
    assert "memory/two.toml: not valid TOML" in text
    assert 'memory/three.toml: id "other" is not the file\'s name "three"' in text
    assert 'memory/four.toml: family "memroy" is not the folder "memory"' in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('role = "consequence"', 'role = "cuase"', 'role is "cuase", must be one of'),
        ('severity = "fatal"', 'severity = "fatl"', 'did you mean "fatal"?'),
        ('why = "Because."', 'wy = "Because."', 'unknown key "wy"; did you mean "why"?'),
        ('text = "some literal text of x"', 'text = "short"', "no literal run of 8 characters"),
        ('text = "some literal text of x"', 'text = "a {hole:nope} of text"', "unknown hole type 'nope'"),
        ('text = "some literal text of x"', 'regex = ".*anything"\nevent = "log"', "must not begin with .*"),
        ('text = "some literal text of x"', 'text = "literal text"\nevent = "logg"', 'did you mean "log"?'),
        ('why = "Because."', 'why = "B"\nleads_to = ["nccl-timeuot"]', 'did you mean "nccl-timeout"?'),
        ('why = "Because."', 'why = "B"\nleads_to = ["@nothing"]', 'unknown group "@nothing"'),
        (
            'why = "Because."',
            'why = "B"\nconfirm = [{ fact = "a.b", equals = 1 }]',
            "needs exactly one of is, in",
        ),
        ('why = "Because."', 'why = "B"\nconfirm = [{ fact = "a.b", known = false }]', "known takes true"),
        (
            'why = "Because."',
            'why = "B"\nconfirm = [{ fact = "a.b", matches_version = "new" }]',
            "matches_version takes a specifier",
        ),
        (
            'text = "some literal text of x"',
            'text = "some literal text of x"\n[[fix]]\ndo = "Do it."\nfor = ["widnows"]',
            'did you mean "windows"?',
        ),
        (
            'text = "some literal text of x"',
            'text = "some literal text of x"\n[[fix]]\ndo = "Do it."\nnotfor = ["windows"]',
            'did you mean "not_for"?',
        ),
    ],
)
def test_each_mistake_says_what_would_be_right(tree: Path, old: str, new: str, message: str) -> None:
    text = MINIMAL.format(id="x", family="memory")
    assert old in text
    write(tree, "memory", "x", text.replace(old, new))
    with pytest.raises(CatalogError) as error:
        load(str(tree))
    assert "memory/x.toml" in str(error.value)
    assert message in str(error.value)


def test_groups_are_expanded_and_leave_the_rule_itself_out(tree: Path) -> None:
    (tree / "groups.toml").write_text('late = ["nccl-timeout", "dist-child-failed"]\n', encoding="utf-8")
    text = MINIMAL.format(id="nccl-timeout", family="distributed")
    write(tree, "distributed", "nccl-timeout", text.replace("why =", 'leads_to = ["@late"]\nwhy ='))
    assert load(str(tree)).rule("nccl-timeout").leads_to == ("dist-child-failed",)


def test_a_changed_rule_is_read_anew(tree: Path) -> None:
    assert load(str(tree)).rule("nccl-timeout").title == "nccl-timeout happened"
    text = MINIMAL.format(id="nccl-timeout", family="distributed").replace("happened", "came to pass")
    write(tree, "distributed", "nccl-timeout", text)
    assert load(str(tree)).rule("nccl-timeout").title == "nccl-timeout came to pass"


def test_an_unwritable_cache_is_no_error(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert len(load(str(tree))) == 5


def test_a_damaged_cache_is_made_anew(tree: Path, tmp_path: Path) -> None:
    load(str(tree))
    (cached,) = (tmp_path / "cache" / "torchdoctor").iterdir()
    cached.write_bytes(cached.read_bytes()[:200])
    assert len(load(str(tree))) == 5


def test_a_pack_of_rules_adds_to_the_catalog_and_may_name_its_rules(tree: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    text = MINIMAL.format(id="our-cluster", family="scheduler")
    write(pack, "scheduler", "our-cluster", text.replace("why =", 'leads_to = ["nccl-timeout"]\nwhy ='))
    rules = load(str(tree), [str(pack)])
    assert rules.rule("our-cluster").leads_to == ("nccl-timeout",)
    assert len(rules) == 6


def test_a_pack_cannot_take_an_id_of_the_catalog(tree: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    write(pack, "distributed", "nccl-timeout")
    with pytest.raises(CatalogError, match='id "nccl-timeout" is taken by the catalog'):
        load(str(tree), [str(pack)])


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_a_folder_without_rules_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CatalogError, match=r"FAMILY/ID\.toml"):
        load(str(tmp_path / folder))


def test_an_unknown_id_names_the_nearest(tree: Path) -> None:
    with pytest.raises(UnknownRuleError, match="did you mean nccl-timeout"):
        load(str(tree)).rule("nccl-timout")


def test_compiling_twice_gives_the_same_bytes(tree: Path) -> None:
    assert compile_tree(tree) == compile_tree(tree)
    assert RuleSet([compile_tree(tree)]).ids() == load(str(tree)).ids()


def test_the_prefilter_leaves_out_no_literal_that_a_text_holds() -> None:
    rules = load()
    every = list(rules.literals())
    assert len(set(every)) == len(every) > 2000
    for literal in every:
        assert literal in rules.literals(set(f"x{literal}x".split()))
        assert rules.places(literal)
    assert rules.places("a literal that no rule needs") == []


def test_what_a_text_has_no_word_of_is_left_out() -> None:
    assert word_of("Expected all tensors to be on the same device") == "tensors"
    assert word_of(" between blanks ") == "between"
    assert word_of("two words") == word_of("one") == word_of("") == ""
    few = list(load().literals({"tensors"}))
    assert {word_of(literal) for literal in few} == {"", "tensors"}
    assert len(few) < len(list(load().literals())) / 2


def test_a_pack_may_need_a_literal_of_the_catalog(tree: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    text = MINIMAL.format(id="nccl-timeout", family="distributed").replace(
        'id = "nccl-timeout"', 'id = "pack-timeout"'
    )
    write(pack, "distributed", "pack-timeout", text)
    write(pack, "distributed", "pack-other")
    rules = load(str(tree), [str(pack)])
    assert rules.places("some literal text of nccl-timeout") == [("nccl-timeout", 0), ("pack-timeout", 0)]
    assert rules.places("some literal text of pack-other") == [("pack-other", 0)]


def test_a_rule_may_be_found_by_a_command_alone(tree: Path) -> None:
    text = MINIMAL.format(id="hang-somehow", family="waiting").partition("[[match]]")[0]
    write(tree, "waiting", "hang-somehow", text + 'found_by = ["hang"]\n')
    assert not load(str(tree)).rule("hang-somehow").matches


@pytest.mark.parametrize(
    ("found_by", "message"),
    [
        ("", "a rule needs a [[match]], a [check] or found_by"),
        ('found_by = ["lint"]', 'found_by names "lint"'),
    ],
)
def test_a_rule_that_nothing_finds_is_refused(tree: Path, found_by: str, message: str) -> None:
    text = MINIMAL.format(id="hang-somehow", family="waiting").partition("[[match]]")[0]
    write(tree, "waiting", "hang-somehow", f"{text}{found_by}\n")
    with pytest.raises(CatalogError) as caught:
        load(str(tree))
    assert any(message in problem for problem in caught.value.problems)


@pytest.mark.parametrize("command", ["checkpoint", "hang"])
def test_what_a_command_finds_is_named_in_its_sources(command: str) -> None:
    """Each rule that says so is found by a line of the command, and each id of a line is a rule's."""
    import re

    import tomllib

    root = Path(__file__).parents[2]
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (root / "torchdoctor" / command).glob("*.py")
    )
    rules = {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
        for path in (root / "rules").glob("*/*.toml")
    }
    said = {name for name, table in rules.items() if command in table.get("found_by", ())}
    assert said
    assert {name for name in said if f'"{name}"' not in sources} == set()
    named = set(
        re.findall(
            r'"((?:checkpoint|hang|extension|dataloader|collective|dist|safetensors)-[a-z-]+)"', sources
        )
    )
    assert named <= set(rules)


# Retired rules: they load, match nothing, and nothing may lead to them
RULE = """id = "{id}"
family = "memory"
severity = "fatal"
role = "cause"
title = "{id} happened"
why = "Because."
{more}
[[match]]
text = "the pool of {id} is exhausted"
"""

RETIRED = 'retired = "0.4: two causes in one"\nreplaced_by = ["new-one"]'

LOG = (
    'Traceback (most recent call last):\n  File "/home/me/a.py", line 1, in f\n    g()\n'
    "RuntimeError: the pool of {} is exhausted\n"
)


@pytest.fixture
def retired_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "rules" / "memory").mkdir(parents=True)
    retired_write(tmp_path / "rules", "new-one")
    retired_write(tmp_path / "rules", "old-one", RETIRED)
    return tmp_path / "rules"


def retired_write(root: Path, rule_id: str, more: str = "") -> None:
    (root / "memory" / f"{rule_id}.toml").write_text(RULE.format(id=rule_id, more=more), encoding="utf-8")


def test_it_loads_and_never_matches(retired_tree: Path) -> None:
    rules = load(str(retired_tree))
    assert rules.retired == {"old-one": ("new-one",)}
    assert not rules.rule("old-one").matches
    for name, expected in (("new-one", ["new-one"]), ("old-one", [])):
        report = diagnose(read_text(LOG.format(name)), FactBook(None), rules)
        assert [item.rule for item in report.diagnoses] == expected


def test_its_page_names_the_rule_in_its_place(retired_tree: Path) -> None:
    page = in_text(gather(load(str(retired_tree)), "old-one"))
    assert "Retired: 0.4: two causes in one. Its failures are told by new-one." in page


@pytest.mark.parametrize("key", ["leads_to", "refines"])
@pytest.mark.parametrize("name", ["old-one", "@gone"])
def test_nothing_names_it(retired_tree: Path, key: str, name: str) -> None:
    (retired_tree / "groups.toml").write_text('gone = ["old-one"]\n', encoding="utf-8")
    retired_write(retired_tree, "third", f'{key} = ["{name}"]')
    with pytest.raises(CatalogError) as error:
        load(str(retired_tree))
    assert error.value.problems == (
        f'memory/third.toml: {key} names the retired rule "old-one"; name new-one',
    )


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('replaced_by = ["new-one"]', "replaced_by stands only beside retired"),
        ('retired = "0.4: gone"\nreplaced_by = ["new-on"]', 'unknown rule "new-on"; did you mean "new-one"'),
        ('retired = "0.4: gone"\nreplaced_by = ["old-one"]', 'replaced_by names the retired rule "old-one"'),
        ("retired = true", "retired must be text"),
    ],
)
def test_faulty_retirements(retired_tree: Path, more: str, complaint: str) -> None:
    retired_write(retired_tree, "third", more)
    with pytest.raises(CatalogError, match=complaint):
        load(str(retired_tree))
