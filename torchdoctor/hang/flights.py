"""Flight records that a job has written while it waits, read where they lie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from torchdoctor.hang import procfs
from torchdoctor.hang.look import Seen
from torchdoctor.model import Diagnosis

MAX_FILES: Final = 64
# torch/csrc/distributed/c10d/FlightRecorder.cpp: a prefix, and the rank behind it
_VARIABLES: Final = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DEFAULT: Final = "/tmp/nccl_trace_rank_"


def files(seen: Sequence[Seen]) -> list[str]:
    """Those of the ranks looked at, written since their processes began."""
    found = []
    for one in seen:
        if one.rank is None:
            continue
        prefixes = [one.second.variable(name) for name in _VARIABLES]
        for prefix in [prefix for prefix in prefixes if prefix.startswith("/")] or [_DEFAULT]:
            path = f"{prefix}{one.rank}"
            try:
                written = os.stat(path).st_mtime
            except OSError:
                continue
            begun = procfs.began(one.second)
            if os.path.isfile(path) and begun is not None and written >= begun:
                found.append(path)
    return list(dict.fromkeys(found))[:MAX_FILES]


def read(paths: Sequence[str]) -> list[Diagnosis]:
    """What the records say together, by the rules for logs; nothing in them is run."""
    if not paths:
        return []
    from torchdoctor import catalog
    from torchdoctor.engine import FactBook, diagnose
    from torchdoctor.intake import IntakeError, read

    try:
        transcript = read(paths)
    except IntakeError:
        return []
    return list(diagnose(transcript, FactBook(None), catalog.load()).diagnoses)
