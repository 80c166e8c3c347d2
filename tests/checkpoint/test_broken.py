"""Each way of being broken is named by its own rule; a short run of the fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint import made
from checkpoint.broken import BROKEN, copied, entries, good, packed, tensors
from checkpoint.mutations import examine as survives
from checkpoint.mutations import mutations

from torchdoctor import catalog
from torchdoctor.checkpoint.report import examine
from torchdoctor.checkpoint.target import Target
from torchdoctor.model import Outcome, Report, Severity


def report_on(path: Path, **options: object) -> Report:
    return examine([str(path)], Target(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_named(name: str, tmp_path: Path) -> None:
    make, rule = BROKEN[name]
    report = report_on(make(tmp_path))
    assert report.outcome is Outcome.DIAGNOSED
    assert report.diagnoses[0].rule == rule, [(one.rule, one.evidence[0].text) for one in report.diagnoses]
    assert report.diagnoses[0].severity is Severity.FATAL
    assert report.diagnoses[0].evidence
    assert report.diagnoses[0].fixes or rule in (
        "checkpoint-hostile-archive",
        "safetensors-header",
        "checkpoint-newer-format",
    )


@pytest.mark.parametrize("name", ["dcp", "state.pt", "legacy.pt"])
def test_the_good_one_has_nothing_wrong(name: str) -> None:
    report = report_on(made.folder() / "2.13" / name, values=True)
    assert report.outcome is Outcome.NO_FAILURE
    assert all(one.severity is Severity.INFO for one in report.diagnoses)


def test_a_good_index_with_all_its_shards(tmp_path: Path) -> None:
    import json

    (tmp_path / "one.safetensors").write_bytes(tensors({"a": [2], "b": [3]}))
    (tmp_path / "two.safetensors").write_bytes(tensors({"c": [4]}))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}})
    )
    assert report_on(index).diagnoses == ()
    assert report_on(tmp_path).diagnoses == ()


def test_what_is_left_of_a_cut_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(good()[:1800])
    (found,) = report_on(path).diagnoses
    assert (
        "its tensors alone take 444 bytes" in " ".join(one.text for one in found.evidence)
        or "table of contents" in found.evidence[0].text
    )


def test_nan_in_a_part_of_dcp(tmp_path: Path) -> None:
    """One number of the model is overwritten where the table says that it lies."""
    part = copied(tmp_path, "2.13") / "__0_0.distcp"
    data = bytearray(part.read_bytes())
    import torch

    weight = torch.load(made.folder() / "2.13/state.pt")["embed.weight"]
    at = data.index(weight.numpy().tobytes())
    data[at : at + 4] = b"\x00\x00\xc0\x7f"
    part.write_bytes(bytes(data))
    rules = [one.rule for one in report_on(part.parent, values=True).diagnoses]
    assert rules[0] == "checkpoint-not-finite"


def test_a_compressed_archive_is_read(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "model.pt"
    path.write_bytes(packed(entries(good()), zipfile.ZIP_DEFLATED))
    assert report_on(path).diagnoses == ()


def test_every_rule_named_here_is_in_the_catalog() -> None:
    known = set(catalog.load().ids())
    assert {rule for _, rule in BROKEN.values()} <= known


# A short run of the fuzzer; ``benchmarks/checkpoint_fuzz.py`` makes the long one
def test_no_mutation_makes_it_raise(tmp_path: Path) -> None:
    for data in mutations(1500, seed=2):
        survives(data, tmp_path / "model.pt")


def test_random_instructions(tmp_path: Path) -> None:
    """Pickles of random opcodes: the machine must end each in a value, a fault or a budget."""
    import random

    chance = random.Random(5)
    codes = b"(0123NIJKMLFGSTUVXRQPbcioaselduthjgqrp})]."
    codes += b"\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x8f\x90\x91\x92\x93\x94"
    for _ in range(1500):
        body = bytes(chance.choice(codes) for _ in range(chance.randrange(1, 200)))
        survives(b"\x80\x02" + body, tmp_path / "model.pkl")
