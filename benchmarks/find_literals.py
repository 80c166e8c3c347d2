"""Where the literals of the catalog's templates come from: searched in programs, kept in rules/literals.tsv.

    python benchmarks/find_literals.py [--fresh] [--by-hand] SOURCE…

A SOURCE is a wheel, a source distribution (.tar.gz) or a Debian package (.deb), searched without unpacking,
the .dist-info folder of an installed distribution, or ``python`` for the interpreter that runs this.
``pypi:NAME==VERSION`` and ``debian:PACKAGE`` are downloaded for the search and removed after it;
``pypi:NAME==VERSION@38`` asks for the wheel of that Python, ``…@38,win_amd64`` of that platform too.
``@FILE`` stands for the sources listed in a file, one a line: benchmarks/literal_sources.txt is the list the
index was made from. Sources named first are preferred.

What is found is recorded as ``NAME VERSION: FILE``. A literal whose pieces stand in different texts, of one
program or of several, is recorded as ``joined: PIECE (NAME VERSION: FILE) + PIECE (NAME VERSION: FILE)``; all
its pieces must be found in one run. What is not found keeps an earlier find, which ``--fresh`` forgets.
What is written by hand, ``historic: …`` and ``other program: …``, is kept; ``--by-hand`` looks for it too,
for a reader to judge: a large program holds short texts, and other programs' messages, that it never prints.
Prints the literals that nothing accounts for; exit code 1 when there are any.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from literal_joints import Joints
from literal_programs import FORMAT, HOLE, Texts, listed, members

from torchdoctor import catalog
from torchdoctor.workbench.literals import (
    BY_HAND,
    JOINED,
    PLACE,
    PRINTED,
    every_literal,
    read_recorded,
    recorded_text,
)

_LEAST_SEGMENT = 10
_LEAST_PIECE = 6
_LEAST_END = 16  # of a literal that begins or ends within a text, next to a value
_LEAST_JOINED = 24  # the halves of anything shorter stand somewhere in any large program


def search(texts: Texts, wanted: set[str]) -> dict[str, str]:
    """literal -> file, for those that stand in one of the files."""
    found: dict[str, str] = {}
    for literal in wanted:
        # a hole's neighbour may be a space
        position = texts.find(literal.strip())
        if position >= 0:
            found[literal] = texts.name_at(position)
    found.update(_with_values(texts.whole, wanted - set(found), texts.name_at))
    found.update(_in_two_pieces(texts.whole, wanted - set(found), texts.name_at))
    return found


def _in_two_pieces(whole: str, wanted: set[str], name_at: Callable[[int], str]) -> dict[str, str]:
    """Literals that a program joins: a text of it ends with the head, another begins with the tail."""
    splits: list[tuple[str, str, str]] = []
    for literal in (item for item in wanted if len(item.strip()) >= _LEAST_JOINED):
        for gap in re.finditer(r"\s+|(?<=\W)(?=\w)|(?<=\w)(?=\W)", literal):
            head, tail = literal[: gap.start()].strip(), literal[gap.end() :].strip()
            short, long = sorted((len(head), len(tail)))
            if short >= _LEAST_PIECE and long >= max(_LEAST_SEGMENT, len(literal) // 2):
                splits.append((literal, head, tail))
    heads = {head[-_LEAST_PIECE:] for _, head, _ in splits}
    tails = {tail[:_LEAST_PIECE] for _, _, tail in splits}
    ending: dict[str, list[tuple[str, int]]] = {}
    beginning: dict[str, list[tuple[str, int]]] = {}
    position = 0
    for line in whole.split("\n"):
        shown = line[:2000]
        if "%" in shown or "{" in shown:
            shown = FORMAT.sub(HOLE, shown)
        for text in map(str.strip, shown.split(HOLE)):
            if text[-_LEAST_PIECE:] in heads:
                ending.setdefault(text[-_LEAST_PIECE:], []).append((text, position))
            if text[:_LEAST_PIECE] in tails:
                beginning.setdefault(text[:_LEAST_PIECE], []).append((text, position))
        position += len(line) + 1
    found: dict[str, str] = {}
    for literal, head, tail in splits:
        lefts = ending.get(head[-_LEAST_PIECE:], ())
        rights = beginning.get(tail[:_LEAST_PIECE], ())
        first = next((at for text, at in lefts if text.endswith(head)), None)
        second = next((at for text, at in rights if text.startswith(tail)), None)
        if first is not None and second is not None:
            place = name_at(first if len(head) >= len(tail) else second)
            found.setdefault(literal, f"{place} (in two pieces)")
    return found


def _with_values(whole: str, wanted: set[str], name_at: Callable[[int], str]) -> dict[str, str]:
    """Literals that a format string gives once its values are filled in."""
    found: dict[str, str] = {}
    together = "\n".join(wanted)
    ends = _Ends(wanted)
    position = 0
    for line in whole.split("\n"):
        if HOLE in line or "%" in line or "{" in line:
            parts = [part.strip() for part in FORMAT.sub(HOLE, line[:2000]).split(HOLE)]
            if len(parts) > 1:
                long = [part for part in parts if len(part) >= _LEAST_SEGMENT and part in together]
                covered = ends.covered(parts)
                for literal in (wanted if long else set(covered)) - set(found):
                    length = covered.get(literal, 0) + sum(len(part) for part in long if part in literal)
                    if length >= 0.6 * len(literal):
                        found[literal] = f"{name_at(position)} (values filled in)"
        position += len(line) + 1
    return found


class _Ends:
    """Literals that begin within the text before a value, or end within the text after one."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._heads: dict[str, list[tuple[str, str]]] = {}
        self._tails: dict[str, list[tuple[str, str]]] = {}
        for literal in literals:
            text = literal.strip()
            for cut in range(_LEAST_END, len(text)):
                self._heads.setdefault(text[cut - _LEAST_END : cut], []).append((literal, text[:cut]))
                tail = text[-cut:]
                self._tails.setdefault(tail[:_LEAST_END], []).append((literal, tail))

    def covered(self, parts: list[str]) -> dict[str, int]:
        """How much of a literal the texts around the values of a format cover, other than whole parts."""
        found: dict[str, int] = {}
        for before, after in pairwise(parts):
            for literal, head in self._heads.get(before[-_LEAST_END:], ()):
                if before.endswith(head) and before != head:
                    found[literal] = max(found.get(literal, 0), len(head))
            for literal, tail in self._tails.get(after[:_LEAST_END], ()):
                if after.startswith(tail) and after != tail:
                    found[literal] = max(found.get(literal, 0), len(tail))
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sources", nargs="*", metavar="SOURCE")
    parser.add_argument("--fresh", action="store_true", help="forget earlier finds")
    parser.add_argument("--by-hand", action="store_true", help="look for what is recorded by hand too")
    options = parser.parse_args()
    directory = catalog.rules_directory()
    literals = every_literal(catalog.load())
    recorded = read_recorded(directory)
    kept = {
        literal: where
        for literal, where in recorded.items()
        if literal in literals and (not options.fresh or where.startswith((*BY_HAND, PRINTED)))
    }
    again = (*BY_HAND, JOINED) if options.by_hand else JOINED
    pending = {literal for literal in literals if literal not in kept or kept[literal].startswith(again)}
    joints = Joints(literal for literal in literals if literal not in kept)
    for source in listed(options.sources):
        try:
            for program, files in members(source):
                texts = Texts(files)
                found = search(texts, pending)
                joints.read(program, texts)
                print(f"{program}: {len(found)} literals", flush=True)
                kept.update((literal, f"{program}: {where}") for literal, where in found.items())
                pending -= set(found)
                Path(directory, PLACE).write_text(recorded_text(kept), encoding="utf-8")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{source}: not searched, {error}", flush=True)
    kept.update(
        (literal, f"{JOINED}{where}") for literal, where in joints.found().items() if literal in pending
    )
    Path(directory, PLACE).write_text(recorded_text(kept), encoding="utf-8")
    missing = sorted(set(literals) - set(kept))
    for literal in missing:
        print(f"not found: {literal!r} of {', '.join(literals[literal])}")
    print(f"{len(kept)} of {len(literals)} literals recorded", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
