"""What published packages can print when they fail, and what torchdoctor says of each message.

    python benchmarks/inventory.py [--accept] [--open FILE] SOURCE…

A SOURCE is a wheel, a source distribution or a Debian package, a folder of them, or what find_literals.py
takes: ``pypi:NAME==VERSION@PYTHON``, ``debian:NAME``, ``@FILE``; benchmarks/inventory_packages.txt is the
list the table was made from. Archives are read in place; nothing is installed or run, save that pip asks a
source distribution that it downloads for its metadata. A source that cannot be had is named, and left out.

Collected are, of Python, the ``raise`` and ``assert`` sites whose message holds a word, what is logged as
an error right before an exit, and what ``sys.exit`` says; of shared libraries, the texts with the form of a
refusal, in the voice of the library (TORCH_CHECK, NCCL WARN, …); of C++ sources, the literals of TORCH_CHECK.
Each goes through the engine as the end of the least log that it can stand in, with values in its holes. It is

    internal   not seen by users, for a reason of form: inventory_judge.why_internal
    told       by a rule
    read       by the second tier: which package, and its function or what it wants
    by line    the same, where only the user's own line can name the function, as for what C++ raises
    open       none of these
    tick       answered as if nothing had failed, which no message may be

The table goes to benchmarks/inventory.tsv. An open share larger than the one there is not written without
``--accept``. ``--open FILE`` lists the open messages. Exit code 1 when a share grew or a message got a tick.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import inventory_native
import inventory_python
import inventory_table
from inventory_judge import OPEN, TICK, Answer, Judge
from inventory_message import Message
from inventory_table import Row
from literal_programs import Member, listed, members

# what tests and measures the package: no user runs it
_TEST = re.compile(
    r"(?:^|/)(?:testing|tests?|_?benchmarks?|examples?)/|(?:^|/)(?:test_\w+|conftest)\.py$|_test\.py$"
)
_ARCHIVES = (".whl", ".tar.gz", ".deb")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--accept", action="store_true", help="write a larger open share too")
    parser.add_argument("--open", metavar="FILE", help="list the open messages there")
    options = parser.parse_args()
    # what this machine may install is no matter here: nothing is
    os.environ["PIP_CONSTRAINT"] = os.devnull
    judge = Judge()
    gc.freeze()  # the catalog stays; syntax trees come and go by the million
    gc.set_threshold(100_000)
    left: list[Answer] = []
    worse = False
    for source in _archives(options.sources):
        try:
            for program, files in members(source):
                found = _rows(program, files, judge, left)
                print("\n".join(inventory_table.shown(found).splitlines()[1:]), flush=True)
                worse |= _kept(found, options.accept)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{source}: could not be had, {error}", flush=True)
        if options.open:
            Path(options.open).write_text("".join(map(_line, left)), encoding="utf-8")
    return 1 if worse else 0


def _archives(sources: list[str]) -> Iterator[str]:
    """The sources, of a folder the archives in it."""
    for source in listed(sources):
        folder = Path(source)
        if folder.is_dir() and folder.suffix != ".dist-info":
            yield from sorted(str(path) for path in folder.iterdir() if path.name.endswith(_ARCHIVES))
        else:
            yield source


def _rows(program: str, files: Iterable[Member], judge: Judge, left: list[Answer]) -> list[Row]:
    """The rows of a program; what is open goes to ``left``."""
    name, _, version = program.partition(" ")
    rows = []
    for (package, part), messages in sorted(_messages(name, files).items()):
        answers = [judge.answer(one) for one in messages]
        left += [one for one in answers if one.kind in (OPEN, TICK)]
        shown = re.sub(r"[-_.]+", "-", package).lower()
        of = version if package == name else f"{version} in {name}"
        rows.append(inventory_table.row(shown, of, part, (one.kind for one in answers)))
    return rows


def _messages(name: str, files: Iterable[Member]) -> dict[tuple[str, str], list[Message]]:
    """The messages of a program by package and part, each once."""
    found: dict[tuple[str, str], dict[tuple[str, str], Message]] = defaultdict(dict)
    callers = inventory_python.Callers()
    for file, read in files:
        if _TEST.search(file):
            continue
        texts: Iterable[Message] = ()
        if file.endswith(".py"):
            texts = inventory_python.messages(name, file, read().decode("utf-8", "replace"), callers)
        elif inventory_native.speaks(file):
            texts = inventory_native.messages(name, file, read())
        for one in texts:
            found[one.package, "python" if one.places else "native"].setdefault(one.key, one)
    return {
        part: [
            replace(one, places=callers.path(one.places[0])) if one.places else one for one in all_of.values()
        ]
        for part, all_of in found.items()
    }


def _line(answer: Answer) -> str:
    message = answer.message
    place = f"{message.file}:{message.line}" if message.line else message.file
    shown = " ".join(message.template.split())[:300]
    return "\t".join((message.package, answer.kind, message.kind, place, shown)) + "\n"


def _kept(rows: list[Row], accept: bool) -> bool:
    """Write the rows into the table, in the place of its own of the same versions. Is anything worse?"""
    before = inventory_table.read()
    grown = inventory_table.grown(before, rows)
    ticks = [f"{one.package} {one.version}: {one.tick} answered with a tick" for one in rows if one.tick]
    for line in (*grown, *ticks):
        print(line)
    if grown and not accept:
        print(f"{inventory_table.PLACE.name} is not written; --accept writes it")
        return True
    new = {(one.package, one.version) for one in rows}
    kept = [one for one in before if (one.package, one.version) not in new]
    inventory_table.PLACE.write_text(inventory_table.text([*kept, *rows]), encoding="utf-8")
    return bool(grown or ticks)


if __name__ == "__main__":
    sys.exit(main())
