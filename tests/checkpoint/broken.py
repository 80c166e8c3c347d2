"""Checkpoints broken in known ways, each made of a good one, with the rule that names it."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

from checkpoint import made

# name -> (how it is made, the rule that must come first)
BROKEN: dict[str, tuple[Callable[[Path], Path], str]] = {}


def written(name: str, function: Callable[[], bytes]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(function())
        return path

    return write


def named(rule: str, name: str = "model.pt") -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """Registers a function that gives the bytes of a file."""

    def keep(function: Callable[[], bytes]) -> Callable[[], bytes]:
        BROKEN[function.__name__] = (written(name, function), rule)
        return function

    return keep


def laid_out(rule: str) -> Callable[[Callable[[Path], Path]], Callable[[Path], Path]]:
    """Registers a function that lays out a folder and gives the path to name."""

    def keep(function: Callable[[Path], Path]) -> Callable[[Path], Path]:
        BROKEN[function.__name__] = (function, rule)
        return function

    return keep


def good(name: str = "2.13/state.pt") -> bytes:
    return (made.folder() / name).read_bytes()


def packed(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return target.getvalue()


def entries(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def safetensors(table: dict[str, object], data: bytes) -> bytes:
    head = json.dumps(table).encode()
    return len(head).to_bytes(8, "little") + head + data


def tensors(shapes: dict[str, list[int]], extra: dict[str, str] | None = None) -> bytes:
    """A safetensors file with float32 tensors of these shapes, all zero."""
    table: dict[str, object] = {"__metadata__": extra} if extra else {}
    at = 0
    for name, shape in shapes.items():
        size = 4
        for one in shape:
            size *= one
        table[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return safetensors(table, bytes(at))


@named("checkpoint-corrupt")
def zeros_in_the_middle() -> bytes:
    data = bytearray(good())
    at = data.index(b"embed.weight")
    data[at : at + 64] = bytes(64)
    return bytes(data)


@named("checkpoint-corrupt")
def a_bit_flipped_in_the_pickle() -> bytes:
    data = bytearray(good())
    data[data.index(b"embed.weight") + 3] ^= 0x10
    return bytes(data)


@named("checkpoint-corrupt")
def a_storage_is_missing() -> bytes:
    left = entries(good())
    del left[next(name for name in left if name.endswith("data/0"))]
    return packed(left)


@named("checkpoint-corrupt")
def a_storage_is_too_short() -> bytes:
    left = entries(good())
    name = next(name for name in left if name.endswith("data/0"))
    left[name] = left[name][:-4]
    return packed(left)


@named("checkpoint-corrupt")
def legacy_with_a_wrong_count() -> bytes:
    data = bytearray(good("2.13/legacy.pt"))
    data[-12 - 8 : -12] = (10**6).to_bytes(8, "little")
    return bytes(data)


@named("checkpoint-lfs-pointer")
def lfs_pointer() -> bytes:
    return (
        b"version https://git-lfs.github.com/spec/v1\noid "
        b"sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
        b"size 12345678\n"
    )


@named("checkpoint-other-format")
def a_tar_of_files() -> bytes:
    import tarfile

    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        archive.add(made.folder() / "2.13/state.pt", "state.pt")
    return target.getvalue()


@named("safetensors-header", "model.safetensors")
def safetensors_that_overlap() -> bytes:
    row = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return safetensors({"a": row, "b": row}, bytes(8))


@named("checkpoint-newer-format")
def archive_of_a_later_version() -> bytes:
    left = entries(good())
    left[next(name for name in left if name.endswith("/version"))] = b"11\n"
    return packed(left)


def python2_string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text


@named("checkpoint-hostile-archive")
def names_that_stand_twice() -> bytes:
    import warnings

    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(target, "w") as archive:
            for name, data in entries(good()).items():
                archive.writestr(name, data)
            archive.writestr("state/data.pkl", b"\x80\x02N.")
    return target.getvalue()


@named("checkpoint-hostile-archive")
def entries_that_overlap() -> bytes:
    """The second entry of the directory is made to begin in the middle of the first."""
    data = bytearray(good())
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    struct.pack_into("<L", data, second + 42, 40)
    return bytes(data)


@named("checkpoint-hostile-archive")
def a_bomb() -> bytes:
    """The pickle claims to unpack to four gigabytes of a few bytes."""
    data = bytearray(packed(entries(good()), zipfile.ZIP_DEFLATED))
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<L", data, at + 24, 0xFFFFFFF0)
    return bytes(data)


@named("checkpoint-corrupt")
def an_encrypted_entry() -> bytes:
    data = bytearray(good())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    return bytes(data)


# files of one expression: the rule, the name of the file, the bytes
FILES: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "zip_cut_in_half": ("checkpoint-truncated", "model.pt", lambda: good()[: len(good()) // 2]),
    "zip_without_its_last_bytes": ("checkpoint-truncated", "model.pt", lambda: good()[:-30]),
    "zip_cut_in_its_pickle": ("checkpoint-truncated", "model.pt", lambda: good()[:400]),
    "legacy_cut_in_a_storage": ("checkpoint-truncated", "model.pt", lambda: good("2.13/legacy.pt")[:-5]),
    "legacy_cut_in_the_pickle": ("checkpoint-truncated", "model.pt", lambda: good("2.13/legacy.pt")[:700]),
    "legacy_cut_behind_the_magic": ("checkpoint-truncated", "model.pt", lambda: good("1.4/state.pt")[:15]),
    "safetensors_cut_in_its_numbers": (
        "checkpoint-truncated",
        "model.safetensors",
        lambda: good("2.6/state.safetensors")[:-9],
    ),
    "safetensors_cut_in_its_table": (
        "checkpoint-truncated",
        "model.safetensors",
        lambda: good("2.6/state.safetensors")[:100],
    ),
    "no_bytes": ("checkpoint-empty-file", "model.pt", lambda: b""),
    "zeros_only": ("checkpoint-empty-file", "model.pt", lambda: bytes(100_000)),
    "random_bytes": (
        "checkpoint-corrupt",
        "model.pt",
        lambda: bytes((7 * one * one + 13) % 251 for one in range(5000)),
    ),
    "legacy_with_another_protocol": (
        "checkpoint-corrupt",
        "model.pt",
        lambda: good("1.4/state.pt").replace(pickle.dumps(1001, 2), pickle.dumps(1007, 2), 1),
    ),
    "lfs_pointer_of_safetensors": ("checkpoint-lfs-pointer", "model.safetensors", lambda: lfs_pointer()),
    "web_page": (
        "checkpoint-web-page",
        "model.pt",
        lambda: (
            b"<!DOCTYPE html>\n<html><head><title>Google Drive - Quota "
            b"exceeded</title></head><body>Sorry</body></html>"
        ),
    ),
    "error_of_a_storage_service": (
        "checkpoint-web-page",
        "model.pt",
        lambda: (
            b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>Access '
            b"Denied</Message></Error>"
        ),
    ),
    "refusal_in_json": ("checkpoint-other-format", "model.pt", lambda: b'{"error":"Repository not found"}'),
    "refusal_in_words": ("checkpoint-other-format", "model.pt", lambda: b"Invalid username or password."),
    "gguf": ("checkpoint-other-format", "model.bin", lambda: b"GGUF" + bytes(200)),
    "hdf5": ("checkpoint-other-format", "model.pt", lambda: b"\x89HDF\r\n\x1a\n" + bytes(200)),
    "packed_with_gzip": ("checkpoint-other-format", "model.pt", lambda: gzip.compress(good())),
    "encrypted_with_openssl": (
        "checkpoint-other-format",
        "model.pt",
        lambda: b"Salted__" + bytes(range(200)),
    ),
    "arrays_of_numpy": (
        "checkpoint-other-format",
        "model.pt",
        lambda: packed({"a.npy": b"\x93NUMPY", "b.npy": b"\x93NUMPY"}),
    ),
    "packed_again_in_a_zip": (
        "checkpoint-other-format",
        "model.pt",
        lambda: packed({"folder/model.pt": good()}),
    ),
    "unpacked_and_packed_again": (
        "checkpoint-other-format",
        "model.pt",
        lambda: packed({f"some/folder/{name}": data for name, data in entries(good()).items()}),
    ),
    "bare_pickle": ("checkpoint-other-format", "model.pt", lambda: pickle.dumps({"weight": [1.0, 2.0]}, 2)),
    "safetensors_with_a_gap": (
        "safetensors-header",
        "model.safetensors",
        lambda: safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}, bytes(12)),
    ),
    "safetensors_with_a_wrong_size": (
        "safetensors-header",
        "model.safetensors",
        lambda: safetensors({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, bytes(8)),
    ),
    "safetensors_with_more_behind": (
        "safetensors-header",
        "model.safetensors",
        lambda: good("2.6/state.safetensors") + b"more",
    ),
    "safetensors_that_is_no_json": (
        "safetensors-header",
        "model.safetensors",
        lambda: (20).to_bytes(8, "little") + b"{not json at all...}" + bytes(10),
    ),
    "safetensors_with_a_huge_length": (
        "safetensors-header",
        "model.safetensors",
        lambda: (1 << 60).to_bytes(8, "little") + b"{" + bytes(50),
    ),
    "python2_with_byte_strings": (
        "checkpoint-python2-pickle",
        "model.pkl",
        lambda: b"\x80\x02}" + python2_string(b"name") + python2_string("ä".encode("latin-1")) + b"s.",
    ),
    "names_that_lead_out": (
        "checkpoint-hostile-archive",
        "model.pt",
        lambda: packed({**entries(good()), "../../etc/cron.d/x": b"x"}),
    ),
}
for _name, (_rule, _file, _make) in FILES.items():
    BROKEN[_name] = (written(_file, _make), _rule)


# -- folders


@laid_out("checkpoint-shard-missing")
def a_shard_of_the_index(folder: Path) -> Path:
    (folder / "model-00001-of-00002.safetensors").write_bytes(tensors({"a": [2]}))
    index = folder / "model.safetensors.index.json"
    index.write_text(
        json.dumps(
            {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
        )
    )
    return folder


@laid_out("checkpoint-shard-missing")
def a_tensor_in_another_shard(folder: Path) -> Path:
    (folder / "one.safetensors").write_bytes(tensors({"a": [2]}))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}))
    return index


@laid_out("checkpoint-hostile-archive")
def an_index_that_leads_out(folder: Path) -> Path:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../../../etc/passwd"}}))
    return index


@laid_out("checkpoint-lfs-pointer")
def an_index_that_is_a_pointer(folder: Path) -> Path:
    index = folder / "pytorch_model.bin.index.json"
    index.write_bytes(lfs_pointer())
    return index


@laid_out("checkpoint-shard-missing")
def shards_without_an_index(folder: Path) -> Path:
    for number in (1, 3):
        (folder / f"pytorch_model-0000{number}-of-00003.bin").write_bytes(good())
    return folder


@laid_out("checkpoint-shard-missing")
def a_rank_of_deepspeed(folder: Path) -> Path:
    (folder / "latest").write_text("global_step10")
    inner = folder / "global_step10"
    inner.mkdir()
    (inner / "mp_rank_00_model_states.pt").write_bytes(good())
    for rank in (0, 2):
        (inner / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").write_bytes(good())
    return folder


@laid_out("checkpoint-shard-missing")
def the_step_that_deepspeed_names(folder: Path) -> Path:
    (folder / "latest").write_text("global_step20")
    (folder / "global_step10").mkdir()
    return folder


@laid_out("checkpoint-shard-missing")
def a_rank_of_megatron(folder: Path) -> Path:
    (folder / "latest_checkpointed_iteration.txt").write_text("100")
    for rank in (0, 1, 3):
        inner = folder / "iter_0000100" / f"mp_rank_0{rank}"
        inner.mkdir(parents=True)
        (inner / "model_optim_rng.pt").write_bytes(good())
    return folder


def copied(folder: Path, writer: str) -> Path:
    import shutil

    return Path(shutil.copytree(made.folder() / writer / "dcp", folder / "dcp"))


@laid_out("checkpoint-shard-missing")
def a_file_of_dcp(folder: Path) -> Path:
    target = copied(folder, "2.13")
    (target / "__0_0.distcp").unlink()
    return target


@laid_out("checkpoint-shard-missing")
def the_table_of_dcp(folder: Path) -> Path:
    target = copied(folder, "2.13")
    (target / ".metadata").unlink()
    return target


@laid_out("checkpoint-shard-missing")
def a_part_of_dcp_alone(folder: Path) -> Path:
    return the_table_of_dcp(folder) / "__0_0.distcp"


@laid_out("checkpoint-truncated")
def a_file_of_dcp_is_short(folder: Path) -> Path:
    part = copied(folder, "2.6") / "__0_0.distcp"
    os.truncate(part, part.stat().st_size // 2)
    return part.parent


@laid_out("checkpoint-empty-file")
def the_table_of_dcp_is_empty(folder: Path) -> Path:
    target = copied(folder, "2.13")
    (target / ".metadata").write_bytes(b"")
    return target


@laid_out("checkpoint-truncated")
def the_table_of_dcp_is_cut(folder: Path) -> Path:
    target = copied(folder, "2.13")
    os.truncate(target / ".metadata", 500)
    return target
