"""Which rules know messages like one that no rule knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdoctor import catalog
from torchdoctor.catalog.nearest import LEAST, MESSAGES, messages_text, nearest, normalised
from torchdoctor.cli.main import main

ROWS = [
    ("dtype-mismatch", "RuntimeError: expected a and b to have the same dtype, but got: float != double"),
    ("dtype-mismatch", "RuntimeError: expected a and b to have the same dtype, but got: long != int"),
    ("matmul-shape", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
    ("cuda-oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
]


# a word that many messages have tells nothing, so there must be many
OTHERS = [(f"other-{a}", f"RuntimeError: {a * 4} failed") for a in "bcdfghjklmnpqrstvwxz"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / MESSAGES).write_text(messages_text([*ROWS, *OTHERS]), encoding="utf-8")
    return str(tmp_path)


def test_words_without_paths_numbers_and_signs() -> None:
    assert normalised("OSError: /home/me/a.pt: 12 bytes of loadStateDict_v2 (module.weight)") == (
        "os error bytes of load state dict module weight"
    )


def test_a_message_stands_once_for_each_rule(folder: str) -> None:
    assert Path(folder, MESSAGES).read_text(encoding="utf-8").count("\n") == len(ROWS) + len(OTHERS)
    assert messages_text([ROWS[2], ROWS[2], ("x", "12 / 3")]).count("\n") == 1


@pytest.mark.parametrize(
    ("message", "rules"),
    [
        (
            "RuntimeError: linalg.solve: Expected A and B to have the same dtype, found Float",
            ["dtype-mismatch"],
        ),
        ("ValueError: shapes (3,4) and (5,6) cannot be multiplied", ["matmul-shape"]),
        ("KeyError: 'labels'", []),  # "error" alone makes nothing alike
        ("", []),
        ("12 34", []),
    ],
)
def test_the_nearest_rule(folder: str, message: str, rules: list[str]) -> None:
    assert [one.rule for one in nearest(folder, message)] == rules


def test_the_same_message_is_wholly_alike(folder: str) -> None:
    first = nearest(folder, ROWS[3][1])[0]
    assert (first.rule, round(first.likeness, 6)) == ("cuda-oom", 1.0)


def test_a_folder_without_messages_has_none(tmp_path: Path) -> None:
    assert nearest(str(tmp_path), ROWS[0][1]) == []


def test_explain_says_what_an_unknown_failure_resembles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/v/site-packages/solver/core.py", line 3, in run\n'
        "    check(a, b)\nRuntimeError: solver: expected a and b to have the same dtype, got half\n",
        encoding="utf-8",
    )
    assert main(["explain", str(log), "--format", "json", "--fail-on", "unknown"]) == 4
    report = json.loads(capsys.readouterr().out)
    assert (report["outcome"], report["diagnoses"]) == ("unrecognised", [])
    title = catalog.load().rule("dtype-mismatch").title
    assert {"rule": "dtype-mismatch", "title": title} in report["suspect"]["resembles"]
    for form in ("text", "markdown", "html"):
        assert main(["explain", str(log), "--format", form]) == 0
        shown = capsys.readouterr().out
        assert "Resembles these, but this message is not known for them" in shown
        assert "dtype-mismatch" in shown


def test_authors_find_the_rule_of_a_new_wording(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["rules", "nearest", "expected to have the same dtype but found Half", "--format", "json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found[0]["rule"] == "dtype-mismatch"
    assert found[0]["likeness"] > LEAST
    assert main(["rules", "nearest", "qwertz"]) == 0
    assert capsys.readouterr().out == "no known message is near enough: give more of its words\n"
