"""Folders and indexes: which parts a sharded checkpoint has, and which are missing.

Hugging Face's index files name each shard; the numbers in names as ``model-00001-of-00003`` say how many
there should be; DeepSpeed and Megatron number by rank; DCP has a ``.metadata`` that says what lies where.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from torchdoctor import json_text
from torchdoctor.checkpoint.contents import Contents, Finding
from torchdoctor.checkpoint.stretch import CheckpointError, OpenFile
from torchdoctor.model import Fix, Record, counted
from torchdoctor.records import record

ENDINGS: Final = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".distcp", ".pkl", ".pickle", ".tar", ".th")
MAX_FILES: Final = 4096
MAX_INDEX: Final = 32 << 20
_OF: Final = re.compile(r"^(.*?)(\d{1,6})-of-(\d{1,6})(.*)$")
# names that number the ranks: DeepSpeed's states, Megatron's folders, DCP's files; group 1 is the family
_RANKED: Final = (
    re.compile(r"^((?:bf16_|fp16_)?zero_pp_rank_)(\d{1,6})(_mp_rank_\d+_(?:optim|model)_states\.pt)$"),
    re.compile(r"^((?:bf16_|fp16_)?zero_pp_rank_\d+_mp_rank_)(\d{1,6})(_(?:optim|model)_states\.pt)$"),
    re.compile(r"^(mp_rank_)(\d{1,6})(_model_states\.pt)$"),
    re.compile(r"^(layer_)(\d{1,6})(-model_\d+-model_states\.pt)$"),
    re.compile(r"^(layer_\d+-model_)(\d{1,6})(-model_states\.pt)$"),
    re.compile(r"^(mp_rank_)(\d{1,6})()$"),
    re.compile(r"^(mp_rank_)(\d{1,6})(_\d{1,6})$"),
    re.compile(r"^(__)(\d{1,6})(_\d+\.distcp)$"),
    re.compile(r"^(consolidated\.)(\d{1,6})(\.(?:pth|safetensors))$"),
)
_FETCH: Final = Fix(
    "Fetch the missing parts again from where the others came from, or take the checkpoint before it."
)


@record(frozen=True, slots=True)
class Layout(Record):
    """What a folder or an index is, the files of it to be read, and what is wrong with the whole."""

    kind: str
    files: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    metadata: str = ""  # the .metadata of DCP


def lay_out(path: str) -> Layout:
    """The files to read for a path. Raises CheckpointError for what is not there, or holds no checkpoint."""
    if os.path.isdir(path):
        return _folder(path)
    if not os.path.exists(path):
        raise CheckpointError(f"{path}: no such file or folder")
    name = os.path.basename(path)
    if name.endswith(".index.json"):
        return _index(path)
    beside = os.path.join(os.path.dirname(path), ".metadata")
    if name == ".metadata":
        return _distributed(os.path.dirname(path) or ".", "", path)
    if name.endswith(".distcp"):
        if os.path.isfile(beside):
            return _distributed(os.path.dirname(path) or ".", name, beside)
        return _without_table(path)
    return Layout("file", (path,))


def _folder(path: str) -> Layout:
    names = _names(path)
    if ".metadata" in names:
        return _distributed(path, "", os.path.join(path, ".metadata"))
    if any(name.endswith(".distcp") for name in names):
        return _without_table(path)
    indexes = [name for name in names if name.endswith(".index.json")]
    if indexes:
        chosen = sorted(indexes, key=lambda name: ("safetensors" not in name, name))[0]
        return _index(os.path.join(path, chosen))
    pointed = _pointed(path, names)
    if pointed is not None:
        return pointed
    files = [os.path.join(path, name) for name in names if name.endswith(ENDINGS)]
    inner = [name for name in names if re.fullmatch(r"mp_rank_\d{1,6}(_\d{1,6}){0,2}", name)]
    for name in inner:
        below = _names(os.path.join(path, name))
        files += [os.path.join(path, name, one) for one in below if one.endswith(ENDINGS)]
    if not files:
        raise CheckpointError(f"{path}: no checkpoint in this folder ({', '.join(ENDINGS[:6])}, .index.json)")
    kind = "Megatron" if inner else "DeepSpeed" if any("model_states" in name for name in names) else "folder"
    findings = (*_missing_numbers(path, names), *_unequal(path, inner))
    return Layout(kind, tuple(files[:MAX_FILES]), findings, _left_out(files))


def _left_out(files: Sequence[str]) -> tuple[str, ...]:
    return (f"{len(files) - MAX_FILES:,} further files were not read",) if len(files) > MAX_FILES else ()


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None


def _pointed(path: str, names: Sequence[str]) -> Layout | None:
    """A folder of saves with a file that names the last one: DeepSpeed's ``latest``, Megatron's tracker."""
    for pointer, form in (("latest", "{}"), ("latest_checkpointed_iteration.txt", "iter_{:0>7}")):
        if pointer not in names:
            continue
        try:
            with OpenFile(os.path.join(path, pointer)) as source:
                tag = source.read(0, 256).decode("utf-8", "replace").strip()
        except CheckpointError:
            continue
        folder = form.format(tag)
        if tag == "release":
            folder = tag
        if not tag or "/" in folder or folder in ("..", "."):
            continue
        inner = os.path.join(path, folder)
        if os.path.isdir(inner):
            found = _folder(inner)
            return Layout(
                found.kind,
                found.files,
                found.findings,
                (*found.notes, f"{pointer} names {tag}"),
                found.metadata,
            )
        says = (f"{pointer} names {tag}, and there is no folder {folder}",)
        fixes = (
            _FETCH,
            Fix(f"Or write the name of a folder that is there into {pointer}.", None, "loses-work"),
        )
        missing = Finding("checkpoint-shard-missing", says, fixes=fixes, file=os.path.join(path, pointer))
        return Layout("DeepSpeed" if pointer == "latest" else "Megatron", (), (missing,))
    return None


def _missing_numbers(path: str, names: Sequence[str]) -> Iterator[Finding]:
    """Gaps in numbered names. How many ranks there were nobody says: a gap before the last is sure."""
    sets: dict[tuple[str, str, str], set[int]] = {}
    ranks: dict[tuple[str, str], set[int]] = {}
    for name in names:
        found = _OF.match(name)
        if found and name.endswith(ENDINGS):
            sets.setdefault((found[1], found[3], found[4]), set()).add(int(found[2]))
            continue
        for pattern in _RANKED:
            ranked = pattern.match(name)
            if ranked:
                ranks.setdefault((ranked[1], ranked[3]), set()).add(int(ranked[2]))
    for (head, total, tail), seen in sets.items():
        first = 0 if 0 in seen else 1
        wanted = range(first, first + min(int(total), 100_000))
        gaps = [f"{head}{number:0{len(total)}d}-of-{total}{tail}" for number in wanted if number not in seen]
        yield from _gap(path, gaps, len(wanted))
    for (head, tail), seen in ranks.items():
        gaps = [f"{head}{number}{tail}" for number in range(max(seen) + 1) if number not in seen]
        if "layer_" not in head:  # layers without parameters have no file
            yield from _gap(path, gaps, max(seen) + 1)


def _gap(path: str, gaps: Sequence[str], total: int) -> Iterator[Finding]:
    if gaps:
        listed = ", ".join(gaps[:6]) + (f" and {len(gaps) - 6:,} more" if len(gaps) > 6 else "")
        yield Finding(
            "checkpoint-shard-missing",
            (f"{len(gaps):,} of {counted(total, 'part')} are not there: {listed}",),
            fixes=(_FETCH,),
            file=path,
        )


def _unequal(path: str, folders: Sequence[str]) -> Iterator[Finding]:
    """Megatron's folders hold the same files on every rank of the model."""
    held = {
        name: {one for one in _names(os.path.join(path, name)) if one.endswith(ENDINGS)} for name in folders
    }
    every = set().union(*held.values()) if held else set()
    for name, files in held.items():
        common = {one for one in every if sum(one in other for other in held.values()) > len(held) / 2}
        lacking = sorted(common - files)
        if lacking:
            yield Finding(
                "checkpoint-shard-missing", (f"{name} has no {', '.join(lacking[:4])}, which the other "
                                             "ranks have",),
                fixes=(_FETCH,), file=os.path.join(path, name),
            )  # fmt: skip


def _index(path: str) -> Layout:
    """``*.index.json``: {"metadata": {"total_size": …}, "weight_map": {name: file}}."""
    folder = os.path.dirname(path) or "."
    with OpenFile(path) as source:
        text = source.read(0, MAX_INDEX)
        if source.size > MAX_INDEX:
            return Layout("index", (), notes=(f"{path} has {counted(source.size, 'byte')} and was not read",))
    try:
        placed = _weight_map(text)
        names = sorted({str(name) for name in placed.values()})
    except json_text.JsonTooLarge as error:
        return Layout("index", (), notes=(f"{path}: {error}",))
    except (ValueError, TypeError, KeyError) as error:
        from torchdoctor.checkpoint import sniff

        contents = Contents(path, len(text))
        with OpenFile(path) as source:
            if not sniff.identify(source, contents):
                contents.findings.clear()
        if not contents.findings or contents.findings[0].rule == "checkpoint-other-format":
            contents.findings.clear()
            contents.found(
                "checkpoint-corrupt",
                f"the index cannot be read: {type(error).__name__}: {str(error)[:120]}",
                fixes=(_FETCH,),
            )
        return Layout("index", (), tuple(contents.findings))
    outside = [name for name in names if os.path.isabs(name) or ".." in name.replace("\\", "/").split("/")]
    findings: list[Finding] = []
    if outside:
        findings.append(
            Finding(
                "checkpoint-hostile-archive",
                (f"the index names a file outside of its folder: {outside[0][:120]}",),
                file=path,
            )
        )
    inside = [name for name in names if name not in outside]
    absent = [name for name in inside if not os.path.exists(os.path.join(folder, name))]
    if absent:
        lost = sum(name in absent for name in placed.values())
        listed = ", ".join(absent[:6]) + (f" and {len(absent) - 6:,} more" if len(absent) > 6 else "")
        findings.append(Finding(
            "checkpoint-shard-missing",
            (f"{len(absent):,} of {counted(len(names), 'shard')} are not there: "
             f"{listed}", f"{lost:,} of {counted(len(placed), 'tensor')} stand in them"),
            fixes=(_FETCH,), file=path,
        ))  # fmt: skip
    files = tuple(os.path.join(folder, name) for name in inside if name not in absent)
    return Layout("index", files[:MAX_FILES], tuple(findings), _left_out(files))


def _weight_map(text: bytes) -> dict[str, object]:
    """Name of a tensor -> file. Raises ValueError, TypeError and KeyError for anything else."""
    table = json_text.parse(text)
    placed = table["weight_map"] if isinstance(table, dict) else None
    if not isinstance(placed, dict):
        raise TypeError("it has no weight_map")
    return placed


def check_index(path: str, read: dict[str, Contents]) -> Iterator[Finding]:
    """Are the tensors that the index names in the shards it names? ``read`` has the shards by their paths."""
    with OpenFile(path) as source:
        try:
            placed = _weight_map(source.read(0, MAX_INDEX)).items()
        except (ValueError, TypeError, KeyError):
            return
    folder = os.path.dirname(path) or "."
    strange: list[str] = []
    for name, file in placed:
        contents = read.get(os.path.join(folder, str(file)))
        if contents is None or contents.broken or contents.not_read:
            continue
        if not any(name in state.tensors for state in contents.states):
            strange.append(f"{name} is not in {file}")
    if strange:
        yield Finding(
            "checkpoint-shard-missing",
            (f"{counted(len(strange), 'tensor')} are not where the index says", *strange[:6]),
            fixes=(_FETCH,),
            file=path,
        )


def _without_table(path: str) -> Layout:
    """Parts of DCP alone: without the table nobody knows what stands where in them."""
    says = (
        "the table of the checkpoint, .metadata, is not beside it: it is written last, by one rank, when "
        "all others are done",
    )
    fixes = (_FETCH, Fix("Without it the save never ended: take the checkpoint before it."))
    return Layout("DCP", (), (Finding("checkpoint-shard-missing", says, fixes=fixes, file=path),))


def _distributed(folder: str, only: str, metadata: str) -> Layout:
    """DCP: its files are read through ``.metadata`` (``torchdoctor.checkpoint.dcp``)."""
    names = [name for name in _names(folder) if name.endswith(".distcp")]
    files = [os.path.join(folder, name) for name in names if not only or name == only]
    findings = () if only else tuple(_missing_numbers(folder, names))
    return Layout("DCP", tuple(files[:MAX_FILES]), findings, _left_out(files), metadata)
