"""``rules new``: from a log to stubs that fail the lint until they are filled, and pass it then."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.catalog.template import compiled, fold, parse
from torchdoctor.cli.main import main
from torchdoctor.workbench.scaffold import MAX_TEMPLATE, as_template

LOG = """alice@gpu-17:~/proj$ python train.py
INFO 10.12.7.33:29500 is the frobnicator
Traceback (most recent call last):
  File "/home/alice/proj/train.py", line 12, in main
    pool.put(batch)
  File "/home/alice/.venv/lib/python3.11/site-packages/frobnicator/core.py", line 77, in put
    raise RuntimeError(text)
frobnicator.errors.PoolError: Frobnicator pool of 4096 slots on cuda:1 is full after 12.5 s
"""


@pytest.fixture
def place(tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8")
    return tmp_path


def new(*more: str, rule_id: str = "frobnicator-pool-full") -> int:
    return main(["rules", "new", rule_id, "--from", "run.log", "--rules", "pack", *more])


def lint(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["rules", "lint", "--rules", "pack", "--fixtures", "fixtures"])
    return code, capsys.readouterr().out


def test_stubs_fail_the_lint_until_they_are_filled(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new("--family", "memory") == 0
    out = capsys.readouterr().out
    assert "Frobnicator pool of {int1:int} slots on cuda:{int2:int} is full after {float1:float} s" in out
    rule = place / "pack/memory/frobnicator-pool-full.toml"
    cases = place / "fixtures/frobnicator-pool-full.cases"
    assert 'type  = "PoolError"' in rule.read_text("utf-8")
    text = cases.read_text("utf-8")
    for name in ("alice", "gpu-17", "10.12.7.33"):
        assert name not in text
    assert "slots on cuda:1 is full after 12.5 s" in text

    code, told = lint(capsys)
    assert code == 1
    for path in ("memory/frobnicator-pool-full.toml", f"{cases.name}:2: first", f"{cases.name}:13: near"):
        assert any(path in line and "TODO" in line for line in told.splitlines()), path

    filled = [
        ("TODO: what is wrong, in one line", "The frobnicator's pool is full"),
        (
            "TODO: a paragraph in plain words: what happens, why it shows so.",
            "Each batch takes a slot, and " * 4,
        ),
        ('["TODO: an https address, or an empty list"]', "[]"),
        ("TODO: which versions or which program print this; cut it to its own words", "frobnicator 1.0"),
        (
            "TODO: what to change, with the values of the message: {match.NAME}",
            "Raise the {match.int1} slots.",
        ),
    ]
    body = rule.read_text("utf-8")
    for old, right in filled:
        assert old in body
        body = body.replace(old, right)
    rule.write_text(body, encoding="utf-8")
    (place / "near.log").write_text(LOG.replace("is full", "was full, waiting"), encoding="utf-8")
    near = ["rules", "case", "frobnicator-pool-full/near", "--from", "near.log", "--rule", "none"]
    assert main([*near, "--origin", "reconstructed", "--fixtures", "fixtures"]) == 0
    cases.write_text(cases.read_text("utf-8").replace("# TODO: ", "# invented: "), encoding="utf-8")
    code, told = lint(capsys)
    assert (code, told.splitlines()[-1]) == (0, "✓ no fault"), told


def test_the_new_id_is_listed(place: Path) -> None:
    (place / "pack").mkdir()
    (place / "pack" / "ids.txt").write_text("# all ids\na-rule\nz-rule\n", encoding="utf-8")
    assert new() == 0
    assert (place / "pack/ids.txt").read_text("utf-8") == "# all ids\na-rule\nfrobnicator-pool-full\nz-rule\n"


@pytest.mark.parametrize(
    ("rule_id", "family"), [("nccl-frobnicator", "distributed"), ("frobnicator-pool", "python")]
)
def test_the_family_is_that_of_ids_alike(place: Path, rule_id: str, family: str) -> None:
    assert new(rule_id=rule_id) == 0
    assert (place / "pack" / family / f"{rule_id}.toml").exists()


def test_a_known_failure_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LOG.replace(
        "frobnicator.errors.PoolError: Frobnicator pool of 4096 slots on cuda:1 is full after 12.5 s",
        "IndexError: Target 11 is out of bounds.",
    )
    (place / "run.log").write_text(log, encoding="utf-8")
    assert new() == 0
    out = capsys.readouterr().out
    assert "the catalog says cuda-assert-label-range (confirmed) of this log" in out
    assert "Target {int1:int} is out of bounds." in out


def test_a_line_of_choice(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new("--line", "2") == 0
    assert "is the frobnicator" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nccl-timeout"], "nccl-timeout exists in distributed/"),
        (["Bad Id"], '"Bad Id" is no id: small letters, digits and hyphens, such as "bad-id"'),
        (["taken"], "exists; remove it or choose another id"),
        (["x-new", "--family", "memroy"], 'no family "memroy"; there are: environment'),
        (["x-new", "--line", "99"], "run.log:99: no message there"),
        (["x-new", "--from", "gone.log"], "gone.log"),
        (["x-new", "--from", "."], "is a folder"),
        (
            ["x-new", "--from", "calm.log"],
            "no failure is found in it; name the line of the message with --line N",
        ),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(
    place: Path, arguments: list[str], complaint: str, printed: Printed
) -> None:
    (place / "calm.log").write_text("epoch 1\nepoch 2\n", encoding="utf-8")
    (place / "fixtures").mkdir()
    (place / "fixtures" / "taken.cases").write_text("")
    log = [] if "--from" in arguments else ["--from", "run.log"]
    assert complaint in printed.errors(["rules", "new", *arguments, *log, "--rules", "pack"], 2)
    assert not list(place.rglob("*.toml"))


@pytest.mark.parametrize("command", [["new", "x-new", "--from", "run.log"], ["pages"]])
def test_an_installed_catalog_is_not_written_to(
    place: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    installed = place / "site-packages" / "torchdoctor" / "_rules"
    installed.mkdir(parents=True)
    monkeypatch.setattr("torchdoctor.catalog.rules_directory", lambda: str(installed))
    assert "name a folder of your own with --rules DIR" in printed.errors(["rules", *command], 2)
    assert not list(installed.iterdir())


def test_twice_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new() == 0
    assert new() == 2
    assert "An id is never reused" in capsys.readouterr().err
    assert place.exists()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Target -11 is out of bounds", "Target {int1:int} is out of bounds"),
        ("Tried to allocate 20.00 MiB of 79.11 GiB", "Tried to allocate {size1:size} of {size2:size}"),
        ("needs torch 2.4.1+cu121 or later", "needs torch {version1:version} or later"),
        ("cannot open /data/set/a.bin: gone", "cannot open {path1:path} gone"),
        ("loss is 1.5e-3 at 0x7f001122", "loss is {float1:float} at {word1:word}"),
        ("expected {'a': 1} but got Float8_e4m3fn", "expected {{'a': {int1:int}}} but got Float8_e4m3fn"),
        ("cuda:0 and cpu! x86_64 conv2d", "cuda:{int1:int} and cpu! x86_64 conv2d"),
    ],
)
def test_numbers_become_holes(message: str, expected: str) -> None:
    assert as_template(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        "a word and 12 " * 60,
        "no number " * 60,
        "{}" * 150,
        "1 2 3 4 5 6 7 8 9 sizes (1.5 GiB), /a/b/c, 0xff done",
    ],
)
def test_a_template_matches_the_message_it_came_from(message: str) -> None:
    source = as_template(fold(message))
    assert compiled(parse(source).pattern).search(fold(message))
    assert len(source) <= 2 * MAX_TEMPLATE


def test_the_next_command_names_the_folders_that_were_written(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "my logs").mkdir()
    assert new("--family", "memory", "--fixtures", "my logs") == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.endswith("then `torchdoctor rules lint --rules pack --fixtures 'my logs'`.")
