"""What the readers of all formats share: the advice for damaged files, and what is kept of a pickle."""

from __future__ import annotations

from typing import Final

from torchdoctor.checkpoint.contents import Contents
from torchdoctor.checkpoint.pickled import Pickle
from torchdoctor.checkpoint.tensors import Workshop
from torchdoctor.model import Fix

DOWNLOAD: Final = Fix(
    "Fetch the file again and compare its size, or better its checksum, with the source. A file of your own "
    "was cut off while it was written (killed, disk full, two ranks writing): take the one before."
)
ATOMIC: Final = Fix(
    "In future write to a temporary name and rename, on rank 0 only: "
    "torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path)."
)


def took(contents: Contents, pickle: Pickle, workshop: Workshop, what: str) -> None:
    """Keep what a pickle told; a fault of it is a finding."""
    contents.root = pickle.value
    contents.storages = workshop.storages
    contents.nested = workshop.nested
    contents.array_types = workshop.array_types
    contents.sources = workshop.with_sources
    contents.imports.extend(pickle.imports)
    contents.codes |= pickle.codes
    contents.protocol = max(contents.protocol, pickle.protocol)
    contents.byte_strings += pickle.byte_strings
    if pickle.spent:
        contents.not_read.append(f"{what} was not read to its end: {pickle.fault}")
    elif pickle.cut_off:
        contents.found("checkpoint-truncated", f"{what} is cut off: {pickle.fault}", fixes=(DOWNLOAD, ATOMIC))
    elif pickle.fault:
        contents.found("checkpoint-corrupt", f"{what} is damaged: {pickle.fault}", fixes=(DOWNLOAD,))
