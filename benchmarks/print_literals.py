"""Literals that no file of a program holds whole, because it joins them as it prints: found by running it.

    python benchmarks/print_literals.py [--check]

Runs the calls of ``printed_calls.txt``, looks for the literals of the catalog in what each raises and warns
of, and records in rules/literals.tsv those that nothing else accounts for, as ``printed: NAME VERSION: the
call``. ``--check`` writes nothing. Exit code 1 when a literal recorded so is printed no more.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from torchdoctor import catalog
from torchdoctor.workbench.literals import (
    PLACE,
    PRINTED,
    every_literal,
    read_recorded,
    recorded_text,
)

# one call after each empty line
CALLS = (Path(__file__).resolve().parent / "printed_calls.txt").read_text(encoding="utf-8")


def printed(call: str) -> str:
    """What a call raises or warns of, without the frames, in which source code is quoted."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(call, {"__name__": "call"})
        except Exception as error:
            texts = traceback.format_exception_only(error)
    texts.extend(str(item.message) for item in caught)
    return " ".join(" ".join(texts).split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    directory = catalog.rules_directory()
    literals = every_literal(catalog.load())
    recorded = read_recorded(directory)
    kept = {literal: where for literal, where in recorded.items() if literal in literals}
    open_ones = [literal for literal in literals if literal not in kept or kept[literal].startswith(PRINTED)]
    found: dict[str, str] = {}
    calls = CALLS.strip().split("\n\n")
    for call in calls:
        text = printed(call)
        program = (
            f"torch {torch.__version__}"
            if "torch" in call
            else f"python {sys.version_info.major}.{sys.version_info.minor}"
        )
        for literal in open_ones:
            if " ".join(literal.split()) in text:
                found.setdefault(literal, f"{PRINTED}{program}: {'; '.join(call.splitlines())}")
    gone = [literal for literal, where in kept.items() if where.startswith(PRINTED) and literal not in found]
    for literal in gone:
        print(f"printed no more: {literal!r}, {kept[literal]}")
    if not check:
        kept.update(found)
        Path(directory, PLACE).write_text(recorded_text(kept), encoding="utf-8")
    print(f"{len(found)} literals printed by {len(calls)} calls")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
