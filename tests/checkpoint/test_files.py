"""What torch 1.4 to 2.13 wrote: names, shapes and kinds as torch itself read them, and what it refused."""

from __future__ import annotations

import io
import pickle
import re
import struct
import tarfile
from collections import OrderedDict
from pathlib import Path

import pytest
from checkpoint import made

from torchdoctor.checkpoint import judge, refusals
from torchdoctor.checkpoint.inspect import inspect
from torchdoctor.checkpoint.refusals import findings
from torchdoctor.checkpoint.target import Target, of_version
from torchdoctor.model import Severity

FILES = sorted(made.told())

# torch 1.4 itself cannot load these two: a sparse tensor it wrote wrongly, and TorchScript
UNREADABLE_THERE = ("1.4/kinds.pt", "1.4/script.pt")


def test_there_are_files_of_five_torches() -> None:
    assert {name.split("/")[0] for name in FILES} == {"1.4", "1.13", "2.1", "2.6", "2.13"}
    assert len(FILES) >= 40


@pytest.mark.parametrize("name", FILES)
def test_names_shapes_and_kinds_are_those_that_torch_read(name: str) -> None:
    contents = inspect(str(made.folder() / name))
    row = made.told()[name][name.split("/")[0]]
    if name == "1.4/zip.pt":  # no torch after 1.5 reads it
        assert [one.rule for one in contents.findings] == ["checkpoint-other-format"]
    else:
        assert contents.findings == []
    if "shapes" not in row:
        assert name in UNREADABLE_THERE
        return
    weights = contents.weights.tensors if contents.weights else {}
    assert {key: [list(one.shape), one.dtype] for key, one in weights.items()} == row["shapes"]


@pytest.mark.parametrize("name", FILES)
def test_weights_only_refuses_what_each_torch_refused(name: str) -> None:
    for version, row in made.told()[name].items():
        if "admitted" not in row or name == "1.4/zip.pt":
            continue
        found = list(refusals.findings(inspect(str(made.folder() / name)), of_version(version)))
        refused = [one for one in found if one.rule == "checkpoint-weights-only"]
        assert bool(refused) is not row["admitted"], (version, row.get("said"))
        named = re.search(r"(?:GLOBAL|Unsupported class) ([\w.]+)", row.get("said", ""))
        if named and refused and "builtins" not in " ".join(refused[0].says):
            # torch names the first name that it meets; we name them all
            assert named[1].rpartition(".")[2] in " ".join(refused[0].says), (version, named[1])


def test_severity_follows_the_torch_that_loads() -> None:
    def severity(version: str) -> Severity:
        (found,) = refusals.findings(inspect(str(made.folder() / "2.1/trainer.pt")), of_version(version))
        return found.severity

    assert severity("2.6.0+cu124") is Severity.FATAL
    assert severity("2.5.1") is Severity.INFO
    (unknown,) = refusals.findings(inspect(str(made.folder() / "2.1/trainer.pt")), Target())
    assert unknown.severity is Severity.WARNING
    assert "--python" in unknown.missing[0]


def test_an_archive_is_newer_than_torch_1_5() -> None:
    (found,) = refusals.findings(inspect(str(made.folder() / "2.1/state.pt")), of_version("1.5.1"))
    assert (found.rule, found.severity) == ("checkpoint-newer-format", Severity.FATAL)


@pytest.mark.parametrize("name", ["trainer.pt", "numpy.pt", "class.pt", "path.pt", "odd-device.pt", "net.pt"])
def test_the_line_that_admits_does_so_in_torch(name: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    path = made.folder() / "2.13" / name
    contents = inspect(str(path))
    (found,) = list(refusals.findings(contents, of_version("2.13"))) or [None]
    if found is None:
        assert torch.load(path, weights_only=True)
        return
    line = next(fix.run for fix in found.fixes if fix.run)
    monkeypatch.syspath_prepend(str(path.parent))
    before = torch.serialization.get_safe_globals()
    try:
        exec(line, {})
        torch.load(path, weights_only=True)
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def test_no_line_admits_classes_that_are_saved_with_their_sources() -> None:
    """Torch 1.4 saved them so; the restricted reader refuses the reference, whatever is admitted."""
    (found,) = refusals.findings(inspect(str(made.folder() / "1.4/net.pt")), of_version("2.13"))
    assert "saved with their sources" in " ".join(found.says)
    assert not any("add_safe_globals" in (fix.run or "") for fix in found.fixes)
    import torch

    nn = torch.nn
    admitted = torch.serialization.safe_globals([nn.Sequential, nn.Embedding, nn.Linear, nn.BatchNorm1d])
    with admitted, pytest.raises(Exception, match="Only persistent_load of storage is allowed"):
        torch.load(made.folder() / "1.4/whole.pt", weights_only=True)


def found_in(name: str, version: str = "2.13") -> dict[str, Severity]:
    contents = inspect(str(made.folder() / name), look_at_values=True)
    judge.judge(contents, of_version(version))
    return {one.rule: one.severity for one in contents.findings}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("2.13/state.pt", {}),
        ("2.13/wrapped.pt", {"checkpoint-module-prefix": Severity.INFO}),
        ("2.13/compiled.pt", {"checkpoint-module-prefix": Severity.INFO}),
        ("1.4/wrapped.pt", {"checkpoint-module-prefix": Severity.INFO}),
        ("1.13/tied.pt", {"checkpoint-tied-weights": Severity.INFO}),
        ("2.6/view.pt", {"checkpoint-view-storage": Severity.INFO}),
        ("1.4/view.pt", {"checkpoint-view-storage": Severity.INFO}),
        ("2.1/cuda.pt", {"checkpoint-saved-device": Severity.INFO}),
        ("2.13/nan.pt", {"checkpoint-not-finite": Severity.FATAL}),
        ("1.4/nan.pt", {"checkpoint-not-finite": Severity.FATAL}),
        ("2.6/adapter.safetensors", {"checkpoint-adapter-only": Severity.INFO,
            "checkpoint-module-prefix": Severity.INFO}),
        ("2.6/kinds.safetensors", {}),
        ("2.13/whole.pt", {"checkpoint-weights-only": Severity.FATAL,
            "checkpoint-class-missing": Severity.INFO}),
        ("2.13/net.pt", {"checkpoint-weights-only": Severity.FATAL,
            "checkpoint-class-missing": Severity.INFO}),
        ("2.13/script.pt", {"checkpoint-weights-only": Severity.INFO}),
    ],
)  # fmt: skip
def test_what_is_told_of_each_kind(name: str, wanted: dict[str, Severity]) -> None:
    assert found_in(name) == wanted


def test_writers_are_told_apart() -> None:
    writers = {
        name: inspect(str(made.folder() / name)).writer
        for name in ("1.4/state.pt", "1.13/state.pt", "2.6/state.pt", "2.13/state.pt")
    }
    assert "1.5" in writers["1.4/state.pt"]
    assert "1.6 to 2.0" in writers["1.13/state.pt"]
    assert writers["2.6/state.pt"] == "torch 2.1 to 2.6"
    assert writers["2.13/state.pt"] == "torch later than 2.6"


def test_the_whole_model_gives_its_state_dict_and_its_class() -> None:
    contents = inspect(str(made.folder() / "2.13/whole.pt"))
    assert contents.owner == "torch.nn.modules.container.Sequential"
    assert "norm.num_batches_tracked" in contents.weights.tensors


def test_the_trainers_parts_are_told() -> None:
    contents = inspect(str(made.folder() / "2.6/trainer.pt"))
    assert [one.path for one in contents.states] == [("model_state_dict",)]
    assert contents.optimizers == ["optimizer_state_dict"]


def test_the_first_bad_number_is_told() -> None:
    contents = inspect(str(made.folder() / "2.13/nan.pt"), look_at_values=True)
    judge.judge(contents, Target())
    (found,) = [one for one in contents.findings if one.rule == "checkpoint-not-finite"]
    assert found.says[0] == "weight: 1 NaN, 1 infinite of 3, the first at element 1"


# The format of torch 0.1 (no release can be installed any more), made here as its reader expects it
def torch_0_1(path: Path, cut: int = 0) -> None:
    """One storage of six floats and two tensors of it, as torch/serialization.py (legacy_load) reads them."""
    import torch

    numbers = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
    storages = (
        pickle.dumps(1, 2) + pickle.dumps((11, "cpu", torch.FloatStorage), 2) + struct.pack("<q", 6) + numbers
    )
    storages += pickle.dumps([(12, 11, 4, 2)], 2)  # views: (its key, that of the whole, offset, count)
    rows = b""
    for key, storage, sizes, strides, offset in ((21, 11, (2, 2), (2, 1), 0), (22, 12, (2,), (1,), 0)):
        rows += pickle.dumps((key, storage, torch.FloatTensor), 2) + struct.pack("<i", len(sizes)) + bytes(4)
        rows += struct.pack(f"<{2 * len(sizes) + 1}q", *sizes, *strides, offset)
    value = io.BytesIO()
    writer = pickle.Pickler(value, 2)
    writer.persistent_id = lambda one: one.key if isinstance(one, _Key) else None  # type: ignore[method-assign]
    writer.dump(OrderedDict([("weight", _Key(21)), ("bias", _Key(22))]))
    parts = {
        "sys_info": pickle.dumps({"protocol_version": 1000, "little_endian": True}, 2),
        "storages": storages[: len(storages) - cut],
        "tensors": pickle.dumps(2, 2) + rows,
        "pickle": value.getvalue(),
    }
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


class _Key:
    def __init__(self, key: int) -> None:
        self.key = key


def test_it_is_what_torch_itself_reads(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "model.pt"
    torch_0_1(path)
    loaded = torch.load(path, weights_only=False)
    contents = inspect(str(path), look_at_values=True)
    assert contents.format == "torch tar format"
    assert contents.findings == []
    (state,) = contents.states
    assert {name: one.shape for name, one in state.tensors.items()} == {
        name: tuple(one.shape) for name, one in loaded.items()
    }
    assert loaded["bias"].tolist() == [5.0, 6.0]
    assert state.tensors["bias"].storage.count == 2  # type: ignore[union-attr]
    assert {one.dtype for one in state.tensors.values()} == {"float32"}


def test_weights_only_does_not_read_it(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "model.pt"
    torch_0_1(path)
    with pytest.raises(RuntimeError, match="legacy"):
        torch.load(path, weights_only=True)
    (found,) = findings(inspect(str(path)), of_version("2.13"))
    assert (found.rule, found.severity) == ("checkpoint-weights-only", Severity.FATAL)


def test_one_that_is_cut(tmp_path: Path) -> None:
    torch_0_1(tmp_path / "model.pt", cut=30)
    assert [one.rule for one in inspect(str(tmp_path / "model.pt")).findings] == ["checkpoint-truncated"]
