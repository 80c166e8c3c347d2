"""Files and folders that are missing or wrong, in every command: exit code 2, and what would be right."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from printed import Printed

from torchdoctor.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
MACHINE = str(ROOT / "fixtures" / "machines" / "laptop-cpu.json")
RULES = str(ROOT / "rules")
NODE = str(ROOT / "tests" / "gate" / "machines" / "h100.json")
NO_RULES = "a rules folder holds FAMILY/ID.toml"
RECORDING = "expected a file of `torchdoctor facts --save`"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file that is nothing in particular, and an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("hello\n", encoding="utf-8")
    (tmp_path / "empty.toml").write_text(" \n", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (["explain", "nope"], "nope: no such file"),
        (["explain", "--facts", "nope", "file.txt"], RECORDING),
        (["explain", "--rules", "nope", "file.txt"], NO_RULES),
        (["check", "--facts", "nope"], RECORDING),
        (["check", "--facts", "folder"], RECORDING),
        (["check", "--facts", MACHINE, "--rules", "nope"], NO_RULES),
        (["check", "--python", "nope"], "nope: not on PATH; name an interpreter"),
        (["check", "--python", "folder"], "folder: a folder without an interpreter"),
        (["check", "--target", "nope.py"], "nope.py: no such file"),
        (["facts", "--facts", "nope"], RECORDING),
        (["facts", "diff", "nope", MACHINE], RECORDING),
        (["facts", "diff", MACHINE, "nope"], RECORDING),
        (["globals", "nope.py"], "nope.py: no such file"),
        (["globals", "nope_nope"], "no module named 'nope_nope' for "),
        (["globals", "--", "python", "nope.py"], "nope.py: no such file"),
        (["ddp", "nope.py:f"], "nope.py: no such file"),
        (["ddp", "nope_nope:f"], "no module named 'nope_nope' for "),
        (["selftest", "--python", "nope"], "name an interpreter"),
        (
            ["selftest", "--device", "cpu", "--baseline", "nope/b.json"],
            "--baseline nope/b.json: there is no folder",
        ),
        (
            ["selftest", "--device", "cpu", "--baseline", "folder"],
            "--baseline folder: cannot be read: Is a directory",
        ),
        (["selftest", "--device", "cpu", "--baseline", "file.txt"], "no JSON: "),
        (["rules", "list", "--rules", "nope"], NO_RULES),
        (["rules", "list", "--family", "tensr"], "no family 'tensr'; there are: "),
        (["rules", "show", "nccl-timeout", "--rules", "file.txt"], NO_RULES),
        (["rules", "lint", "--rules", "nope"], f"--rules nope: no such folder; {NO_RULES}"),
        (["rules", "lint", "--rules", "file.txt"], f"--rules file.txt: no such folder; {NO_RULES}"),
        (["rules", "lint", "--rules", "folder"], f"--rules folder: holds no rule; {NO_RULES}"),
        (["rules", "lint", "--rules", RULES, "--rules", "nope"], f"--rules nope: no such folder; {NO_RULES}"),
        (
            ["rules", "lint", "--rules", RULES, "--fixtures", "nope"],
            "--fixtures nope: no such folder; it holds the cases",
        ),
        (["rules", "lint", "--golden", "nope"], "--golden nope: no such file; --update-golden writes it"),
        (["rules", "pages", "--rules", "nope"], NO_RULES),
        (["rules", "eval", "nope"], "nope: no such folder"),
        (["rules", "eval", "folder"], "folder: holds neither labels.tsv nor cases"),
        (["rules", "new", "mine", "--from", "nope", "--rules", "new"], "nope: no such file"),
        (["gate", "policy", "check", "nope"], "`torchdoctor gate policy learn` creates one"),
        (
            ["gate", "policy", "check", "empty.toml"],
            "empty.toml: is empty; `torchdoctor gate policy learn` prints",
        ),
        (["gate", "--tier", "passive", "--policy", "empty.toml"], "empty.toml: is empty; "),
        (["gate", "policy", "learn", "--facts", "nope"], RECORDING),
        (
            ["gate", "policy", "learn", "-o", "nope/site.toml"],
            "--output nope/site.toml: there is no folder nope",
        ),
        (["gate", "--facts", "nope"], RECORDING),
        (["gate", "--tier", "fast"], "'fast' is not one of"),
        (
            ["gate", "--facts", "folder"],
            "folder: holds no machine.json; gate --save FOLDER/ writes such a folder",
        ),
        (
            ["gate", "--facts", NODE, "-o", "folder"],
            "--output folder: this is a folder; name a file, or folder/",
        ),
        (["gate", "--facts", NODE, "-o", "nope/v.json"], "--output nope/v.json: there is no folder nope"),
        (
            ["gate", "--facts", NODE, "--prometheus", "folder"],
            "--prometheus folder: this is a folder; name a file",
        ),
        (["gate", "--facts", NODE, "--save", "nope/m.json"], "--save nope/m.json: there is no folder nope"),
        (
            ["gate", "--facts", NODE, "--save", "folder"],
            "--save folder: this is a folder; name a file, or folder/",
        ),
        (["gate", "--facts", NODE, "--save", "file.txt/"], "--save: file.txt/: File exists"),
        (["gate", "--facts", NODE, "--drain"], "--drain changes only the exit codes of --exit-style slurm"),
        (["gate", "merge", "nope"], "name the folder that the nodes wrote to"),
        (["gate", "merge", "folder"], "folder: holds no verdict"),
        (["gate", "pairs", "nope"], "name the folder with the pairs' results"),
    ],
    ids=lambda item: " ".join(item).replace(str(ROOT), "") if isinstance(item, list) else "",
)
def test_a_mistake_in_the_call_is_2_and_says_what_is_right(
    call: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 2
    written = capsys.readouterr()
    assert told in " ".join(written.err.split())
    assert written.out == ""


def test_nothing_is_learned_where_there_is_no_gpu(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "site.toml").write_text("[expect]\ngpus = 8\n", encoding="utf-8")
    assert main(["gate", "policy", "learn", "--facts", MACHINE, "-o", "site.toml"]) == 12
    written = capsys.readouterr()
    assert written.out == ""
    assert "no policy was made: no GPU is visible" in written.err
    assert "[expect] gpus = 0" in written.err
    assert (place / "site.toml").read_text(encoding="utf-8") == "[expect]\ngpus = 8\n"


def test_what_is_learned_goes_into_the_file(place: Path, printed: Printed) -> None:
    assert (
        printed.errors(["gate", "policy", "learn", "--facts", NODE, "-o", "site.toml"])
        == "torchdoctor: wrote site.toml\n"
    )
    assert "gpus = 1\n" in (place / "site.toml").read_text(encoding="utf-8")
    assert (
        printed(["gate", "policy", "check", "site.toml"]) == "site.toml: good; 0 suppressions, 0 profiles\n"
    )


def test_names_with_quotes_are_learned_as_they_are(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        Path(NODE).read_text(encoding="utf-8").replace("NVIDIA H100 80GB HBM3", 'NVIDIA \\"H100\\" \\\\ HBM3')
    )
    assert json.loads(text)
    (place / "node.json").write_text(text, encoding="utf-8")
    assert main(["gate", "policy", "learn", "--facts", "node.json", "-o", "site.toml"]) == 0
    assert main(["gate", "policy", "check", "site.toml"]) == 0
    assert r'model = "NVIDIA \"H100\" \\ HBM3"' in (place / "site.toml").read_text(encoding="utf-8")


def test_could_not_tell_anything_is_no_tick(place: Path, printed: Printed) -> None:
    (place / "facts.json").write_text('{"env.HOME": "/root"}', encoding="utf-8")
    assert printed(["check", "--facts", "facts.json"]).startswith("? ")


@pytest.mark.skipif(os.name != "posix", reason="a folder in use can be deleted there alone")
@pytest.mark.parametrize(
    "call", [["explain", "."], ["rules", "lint", "--rules", "mine"], ["facts", "--save", "x"]]
)
def test_a_working_folder_that_was_deleted(
    call: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = place / "gone"
    home.mkdir()
    os.chdir(home)
    home.rmdir()
    try:
        assert main(call) == 2
    finally:
        os.chdir(place)
    assert "internal error" not in capsys.readouterr().err
