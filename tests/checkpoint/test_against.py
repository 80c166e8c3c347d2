"""Two sets of names and shapes of which it is known why they differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint import made
from checkpoint.broken import tensors

from torchdoctor.checkpoint import against
from torchdoctor.checkpoint.report import examine
from torchdoctor.checkpoint.stretch import CheckpointError
from torchdoctor.checkpoint.target import Target
from torchdoctor.model import Outcome, Severity

Shapes = dict[str, list[int]]


def transformer(
    layers: int = 3, width: int = 8, words: int = 1000, positions: int = 64, prefix: str = ""
) -> Shapes:
    found: Shapes = {"embed_tokens.weight": [words, width], "pos_embed.weight": [positions, width]}
    for number in range(layers):
        found |= {
            f"layers.{number}.attn.qkv.weight": [3 * width, width],
            f"layers.{number}.attn.qkv.bias": [3 * width],
            f"layers.{number}.mlp.up.weight": [4 * width, width], f"layers.{number}.norm.weight": [width],
        }  # fmt: skip
    found["lm_head.weight"] = [words, width]
    return {prefix + name: shape for name, shape in found.items()}


def convolutions(classes: int = 10, channels: int = 3) -> Shapes:
    return {
        "stem.weight": [16, channels, 3, 3], "stem.bias": [16],
            "block.0.weight": [32, 16, 3, 3], "block.0.bias": [32],
        "bn.weight": [32], "bn.bias": [32],
            "bn.running_mean": [32], "fc.weight": [classes, 32], "fc.bias": [classes],
    }  # fmt: skip


def lora(rank: int, prefix: str = "") -> Shapes:
    found: Shapes = {}
    for number in range(3):
        for part in ("q_proj", "v_proj"):
            found[f"{prefix}layers.{number}.{part}.lora_A.weight"] = [rank, 8]
            found[f"{prefix}layers.{number}.{part}.lora_B.weight"] = [8, rank]
    return found


def renamed(shapes: Shapes, old: str, new: str) -> Shapes:
    return {name.replace(old, new): shape for name, shape in shapes.items()}


def inner(shapes: Shapes) -> Shapes:
    """torch.compile around each layer instead of around the model."""
    return {name.replace(".attn.", "._orig_mod.attn."): shape for name, shape in shapes.items()}


def turned(shapes: Shapes, part: str) -> Shapes:
    return {name: shape[::-1] if part in name else shape for name, shape in shapes.items()}


# why -> (the file, the model, the rules in order, what the first evidence says)
PAIRS: dict[str, tuple[Shapes, Shapes, list[str], str]] = {
    "the same": (transformer(), transformer(), [], ""),
    "module. in the file": (transformer(prefix="module."), transformer(), [
        "checkpoint-module-prefix"], "'module.'"),
    "module. in the model": (transformer(), transformer(prefix="module."), [
        "checkpoint-module-prefix"], "begin with 'module.'"),
    "compiled": (transformer(prefix="_orig_mod."), transformer(), [
        "checkpoint-module-prefix"], "'_orig_mod.'"),
    "compiled, then DDP": (transformer(prefix="module._orig_mod."), transformer(), [
        "checkpoint-module-prefix"], "'module._orig_mod.'"),
    "compiled layers": (inner(transformer()), transformer(), ["checkpoint-module-prefix"], "'_orig_mod.'"),
    "Lightning": (transformer(prefix="model."), transformer(), ["checkpoint-module-prefix"], "'model.'"),
    "Fabric": (transformer(prefix="_forward_module."), transformer(), [
        "checkpoint-module-prefix"], "'_forward_module.'"),
    "a name of its own": (transformer(prefix="backbone.net."), transformer(), [
        "checkpoint-module-prefix"], "'backbone.net.'"),
    "one prefix for another": (
        transformer(prefix="student."), transformer(prefix="encoder."), [
            "checkpoint-module-prefix"], "begin with 'student.'",
    ),
    "PEFT": (lora(4, "base_model.model."), lora(4), ["checkpoint-module-prefix"], "'base_model.model.'"),
    "transposed": (turned(transformer(), "mlp.up"), transformer(), [
        "checkpoint-size-mismatch"], "transposed"),
    "vocabulary": (transformer(words=1000), transformer(words=1008), ["checkpoint-size-mismatch"],
        "1,000 tokens in the file and 1,008"),
    "classes": (convolutions(classes=1000), convolutions(), ["checkpoint-size-mismatch"],
        "classes is 1,000 in the file and 10"),
    "classes behind a prefix": (
        {f"module.{name}": shape for name, shape in convolutions(classes=5).items()}, convolutions(),
        ["checkpoint-module-prefix", "checkpoint-size-mismatch"], "'module.'",
    ),
    "LoRA rank": (lora(8), lora(16), ["checkpoint-size-mismatch"], "LoRA rank is 8 in the file and 16"),
    "positions": (transformer(positions=128), transformer(), [
        "checkpoint-size-mismatch"], "number of positions"),
    "width": (transformer(width=16), transformer(), ["checkpoint-size-mismatch"], "2 times as wide"),
    "channels": (convolutions(channels=1), convolutions(), ["checkpoint-size-mismatch"],
        "1 input channels in the file and 3"),
    "depth of the model": (transformer(layers=2), transformer(), ["checkpoint-missing-keys"],
        "has 2 layers in the file and 3 in the model"),
    "depth of the file": (transformer(layers=5), transformer(), ["checkpoint-missing-keys"],
        "has 3 layers in the model and 5 in the file"),
    "gamma and beta": (
        renamed(renamed(convolutions(), "bn.weight", "bn.gamma"), "bn.bias", "bn.beta"), convolutions(),
        ["checkpoint-missing-keys"], "gamma → weight, beta → bias",
    ),
    "a head that is missing": (
        {name: shape for name, shape in convolutions().items() if not name.startswith("fc")}, convolutions(),
        ["checkpoint-missing-keys"], "the model has, and the file lacks, all of fc",
    ),
    "adapters that are "
    "missing": (transformer(), transformer() | lora(4), ["checkpoint-missing-keys"], "adapters"),
    "another model": (transformer(), convolutions(), ["checkpoint-missing-keys"], "belongs to another model"),
}  # fmt: skip


@pytest.mark.parametrize("why", PAIRS)
def test_the_cause_is_named(why: str, tmp_path: Path) -> None:
    file, model, rules, words = PAIRS[why]
    (tmp_path / "file.safetensors").write_bytes(tensors(file))
    (tmp_path / "model.safetensors").write_bytes(tensors(model))
    report = examine(
        [str(tmp_path / "file.safetensors")], Target(), against=str(tmp_path / "model.safetensors")
    )
    found = [one for one in report.diagnoses if one.severity is not Severity.INFO]
    assert [one.rule for one in found] == rules
    assert report.outcome is (Outcome.DIAGNOSED if rules else Outcome.NO_FAILURE)
    if rules:
        assert words in found[0].evidence[0].text


def test_there_are_twenty_pairs() -> None:
    assert len(PAIRS) >= 20


@pytest.mark.parametrize(
    "why", [why for why, pair in PAIRS.items() if pair[2] == ["checkpoint-module-prefix"]]
)
def test_the_snippet_makes_the_names_meet(why: str) -> None:
    """Its line of Python is run on the names themselves."""
    file, model, _, _ = PAIRS[why]
    found = against.compare(*({name: tuple(shape) for name, shape in one.items()} for one in (file, model)))
    space: dict[str, object] = {"sd": dict.fromkeys(file)}
    exec(found.change.snippet(), space)
    assert set(space["sd"]) == set(model)  # type: ignore[call-overload]


FACTORY = """
def network():
    import collections
    from torch import nn
    return nn.Sequential(collections.OrderedDict(
        embed=nn.Embedding(10, 4), body=nn.Linear(4, 6), norm=nn.BatchNorm1d(6), head=nn.Linear(6, CLASSES)))

def raises():
    raise ValueError("no data set here")

def hangs():
    import time
    time.sleep(100)

def ends():
    raise SystemExit(4)

def crashes():
    import ctypes
    ctypes.string_at(0)

def nothing():
    return 5

def talks():
    print("x" * 100000)
    return network()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "factory.py"
    path.write_text(FACTORY.replace("CLASSES", "3"))
    return path


def test_a_factory_whose_model_the_file_fits(program: Path) -> None:
    report = examine([str(made.folder() / "2.13/state.pt")], Target(), against=f"{program}:talks")
    assert report.diagnoses == ()
    assert any("fits the model" in note for note in report.notes)


def test_a_factory_and_the_state_dict_inside_of_a_trainers_file(tmp_path: Path, program: Path) -> None:
    program.write_text(FACTORY.replace("CLASSES", "7"))
    report = examine([str(made.folder() / "2.13/trainer.pt")], Target((2, 13)), against=f"{program}:network")
    found = next(one for one in report.diagnoses if one.rule == "checkpoint-size-mismatch")
    assert "classes is 3 in the file and 7" in found.evidence[0].text
    assert "['model_state_dict']" in next(fix.run for fix in found.fixes if fix.run)


def test_the_snippet_loads_the_file_into_the_model(program: Path) -> None:
    import torch

    path = made.folder() / "2.13/wrapped.pt"
    report = examine([str(path)], Target((2, 13)), against=f"{program}:network")
    (found,) = [one for one in report.diagnoses if one.severity is Severity.FATAL]
    space: dict[str, object] = {}
    exec(program.read_text(), space)
    space["model"] = space["network"]()  # type: ignore[operator]
    exec(next(fix.run for fix in found.fixes if fix.run), space)
    weights = torch.load(path)
    assert torch.equal(space["model"].head.weight, weights["module.head.weight"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "ValueError: no data set here"),
        ("hangs", "did not end within"),
        ("ends", "SystemExit"),
        ("crashes", "crashes the interpreter"),
        ("nothing", "returned a int"),
        ("lost", "has no 'lost'"),
    ],
)
def test_a_factory_that_gives_no_model(program: Path, name: str, words: str) -> None:
    from torchdoctor.checkpoint.factory import FactoryError

    with pytest.raises(FactoryError, match=words):
        examine([str(made.folder() / "2.13/state.pt")], Target(), against=f"{program}:{name}", limit_s=2.0)


@pytest.mark.parametrize("python", ["3.6", "3.8"])
def test_the_child_runs_in_old_interpreters(python: str, tmp_path: Path) -> None:
    import shutil

    found = shutil.which(f"python{python}")
    pyenv = Path.home() / ".pyenv/versions"
    found = next(map(str, pyenv.glob(f"{python}.*/bin/python")), found)
    if found is None:
        pytest.skip(f"no Python {python} here")
    (tmp_path / "old.py").write_text(
        "class T:\n    shape = (2, 3)\n    dtype = 'f'\n\ndef made():\n    return {'a': T()}\n"
    )
    from torchdoctor.checkpoint.factory import shapes_of

    assert shapes_of(f"{tmp_path / 'old.py'}:made", found) == {"a": (2, 3)}


def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file"):
        examine([str(made.folder() / "2.13/state.pt")], Target(), against=str(tmp_path / "none.pt"))
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(CheckpointError, match="no state dict"):
        examine([str(made.folder() / "2.13/state.pt")], Target(), against=str(tmp_path / "text.txt"))
