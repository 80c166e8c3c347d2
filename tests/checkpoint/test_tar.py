"""The format of torch 0.1 (no release can be installed any more), made here as its reader expects it."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from collections import OrderedDict
from pathlib import Path

import pytest

from torchdoctor.checkpoint.inspect import inspect
from torchdoctor.checkpoint.refusals import findings
from torchdoctor.checkpoint.target import of_version
from torchdoctor.model import Severity


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
