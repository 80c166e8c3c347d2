"""The zip archive that ``torch.save`` writes since torch 1.6, and other zip archives by what they are."""

from __future__ import annotations

from typing import Final

from torchdoctor.checkpoint import pickle_machine, zip_directory
from torchdoctor.checkpoint.contents import Contents
from torchdoctor.checkpoint.stretch import Stretch
from torchdoctor.checkpoint.taking import ATOMIC, DOWNLOAD, took
from torchdoctor.checkpoint.tensors import WIDTHS, Workshop
from torchdoctor.checkpoint.zip_directory import Directory, Entry, ZipError
from torchdoctor.model import Fix, counted

# caffe2/serialize/versions.h, kMaxSupportedFileFormatVersion: 10 in torch 1.6 to 2.13
NEWEST_VERSION: Final = 10


def read_archive(source: Stretch, contents: Contents) -> None:
    """Fill in what a zip archive holds, of torch.save, of TorchScript, or of something else."""
    try:
        found = zip_directory.directory(source)
    except ZipError as error:
        _without_directory(source, contents, error)
        return
    for words in found.hostile[:8]:
        contents.found("checkpoint-hostile-archive", words)
    for words in found.damaged[:8]:
        contents.found("checkpoint-corrupt", words, fixes=(DOWNLOAD,))
    if found.shifted:
        contents.notes.append(f"{counted(found.shifted, 'byte')} stand before the archive")
    names = {entry.name: entry for entry in found.entries}
    top = next(
        (name[: -len("data.pkl")] for name in names if name.endswith("/data.pkl") and name.count("/") == 1),
        "",
    )
    if not top:
        _other_archive(found, contents)
        return
    contents.format = "torch zip archive"
    if f"{top}constants.pkl" in names or any(name.startswith(f"{top}code/") for name in names):
        contents.format = "TorchScript archive"
    _small_records(source, names, top, contents)
    workshop = Workshop()
    entry = names[f"{top}data.pkl"]
    try:
        data = zip_directory.content(source, entry)
    except ZipError as error:
        _unreadable(contents, entry, error)
        return
    if entry.size <= zip_directory.MAX_UNPACKED and not zip_directory.checksum_is_right(source, entry):
        contents.found(
            "checkpoint-corrupt", f"{entry.name}: its bytes do not give its checksum", fixes=(DOWNLOAD,)
        )
    pickle = pickle_machine.read(data, 0, workshop.rebuild, workshop.resolve)
    took(contents, pickle, workshop, entry.name)
    _archive_storages(source, names, top, contents)


def _unreadable(contents: Contents, entry: Entry, error: ZipError) -> None:
    if entry.method == 8 and entry.size > zip_directory.MAX_UNPACKED:
        contents.not_read.append(str(error))
    else:
        contents.found("checkpoint-corrupt", str(error), fixes=(DOWNLOAD,))


def _small_records(source: Stretch, names: dict[str, Entry], top: str, contents: Contents) -> None:
    """Version, order of bytes, and what tells which torch wrote the archive."""

    def text(name: str) -> str:
        entry = names.get(top + name)
        if entry is None or entry.size > 4096:
            return ""
        try:
            record = zip_directory.content(source, entry, 4096)
        except ZipError:
            return ""
        return record.read(0, record.size).decode("ascii", "replace").strip()

    contents.version = text("version") or text(".data/version")
    if contents.version.isdigit() and int(contents.version) > NEWEST_VERSION:
        contents.found(
            "checkpoint-newer-format",
            f"the archive has version {contents.version[:20]}; torch up to 2.13 reads versions up to "
            f"{NEWEST_VERSION}",
        )
    contents.big_endian = text("byteorder") == "big"
    if contents.big_endian:
        contents.notes.append("written on a big-endian machine")
    if contents.format.startswith("TorchScript"):
        contents.writer = "torch.jit.save"
        return
    # seen in archives of torch 1.13, 2.1, 2.6, 2.9 and 2.13
    if top + ".format_version" in names:
        contents.writer = "torch later than 2.6"
    elif top + "byteorder" in names:
        contents.writer = (
            "torch 2.1 to 2.6" if top + ".data/serialization_id" in names else "torch 2.0 or 2.1"
        )
    else:
        contents.writer = "torch 1.6 to 2.0 (or 1.4 and 1.5 with the new format asked for)"


def _archive_storages(source: Stretch, names: dict[str, Entry], top: str, contents: Contents) -> None:
    """Bind each storage to its record; one that is missing or of another size is damage."""
    absent: list[str] = []
    wrong: list[str] = []
    if any(f"{top}tensors/{key}" in names for key in contents.storages):
        contents.writer = "torch 1.4 or 1.5"
        contents.found(
            "checkpoint-other-format",
            "it is the archive that torch 1.4 and 1.5 wrote on demand (numbers under tensors/), which "
            "later ones do not read",
            fixes=(
                Fix("Load it with torch 1.4 or 1.5, and save it there with the default of that version."),
            ),
        )
        return
    for storage in contents.storages.values():
        entry = names.get(f"{top}data/{storage.key}") or names.get(f"{top}{storage.key}")
        if entry is None:
            if storage.count:
                absent.append(storage.key)
            continue
        if entry.size != storage.nbytes and storage.dtype in WIDTHS:
            wrong.append(
                f"{entry.name[:120]} has {counted(entry.size, 'byte')}, its tensors ask for "
                f"{storage.nbytes:,}"
            )
            continue
        try:
            storage.data = zip_directory.content(source, entry)
        except ZipError as error:
            if entry.method == 8 and entry.size > zip_directory.MAX_UNPACKED:
                contents.not_read.append(str(error))
            else:
                wrong.append(str(error))
    if absent:
        contents.found(
            "checkpoint-corrupt", f"the numbers of {len(absent):,} of "
                                  f"{counted(len(contents.storages), 'storage')} "
                                  "are missing: "
            f"data/{', data/'.join(absent[:6])}", fixes=(DOWNLOAD,),
        )  # fmt: skip
    for words in wrong[:8]:
        contents.found("checkpoint-corrupt", words, fixes=(DOWNLOAD,))


def _without_directory(source: Stretch, contents: Contents, error: ZipError) -> None:
    """An archive whose end is missing: its first record still says what there should be."""
    contents.format = "torch zip archive"
    head = source.read(0, 30)
    says = [f"the archive is cut off: {error}"] if error.cut_off else [f"the archive is damaged: {error}"]
    if len(head) == 30:
        begin = 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        name = source.read(30, int.from_bytes(head[26:28], "little"))
        if name.endswith(b"/data.pkl"):
            workshop = Workshop()
            pickle = pickle_machine.read(source, begin, workshop.rebuild, workshop.resolve)
            contents.root, contents.storages = pickle.value, workshop.storages
            contents.imports.extend(pickle.imports)
            contents.codes |= pickle.codes
            contents.protocol = pickle.protocol
            whole = sum(one.nbytes for one in workshop.storages.values())
            if pickle.fault:
                says.append("not even its list of tensors is whole")
            elif whole + begin > source.size:
                says.append(
                    f"its tensors alone take {counted(whole, 'byte')}, and the file has {source.size:,}"
                )
            else:
                says.append("all its tensors may be there, only the table of contents behind them is missing")
    rule = "checkpoint-truncated" if error.cut_off else "checkpoint-corrupt"
    contents.found(rule, *says, fixes=(DOWNLOAD, ATOMIC))


def _other_archive(found: Directory, contents: Contents) -> None:
    names = [entry.name for entry in found.entries]
    contents.format = "zip archive"
    kind = "a zip archive that torch.save did not write"
    inner = [name for name in names if name.endswith((".pt", ".pth", ".ckpt", ".bin", ".safetensors"))]
    if names and all(name.endswith(".npy") for name in names):
        kind = "an archive of NumPy arrays (.npz)"
    elif "config.json" in names and any(name.endswith(".h5") for name in names):
        kind = "a Keras model (.keras)"
    elif any(name.endswith("data.pkl") for name in names):
        kind = "a zip archive with a checkpoint that was unpacked and packed again"
    do = "Read it with the program that wrote it."
    if inner:
        do = f"Unpack it, and load the checkpoint inside: {inner[0][:120]}."
    elif not names:
        kind = "an empty zip archive"
    contents.found("checkpoint-other-format", f"it is {kind}", fixes=(Fix(do),))
