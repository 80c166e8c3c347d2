"""Which labelled inputs are worth keeping: chooses them from one tree and writes another.

    python benchmarks/select_cases.py OLD_FIXTURES NEW_FIXTURES [--changes FILE.tsv] [--report FILE.tsv]

Kept are what the tests name, real captures and reports, and of the others, where the engine of this checkout
answers as the label says, one for each decisive shape that no case before it has. Healthy inputs and near
misses stay where they are logs; of texts that people wrote, ``--texts`` are put into ``texts.cases``. A real
log that is no longer answered as its label says is told with its answer, and left out until ``--changes``
says ``ID/NAME<TAB>RULE, "standing=…", "keep" or "drop"<TAB>why``. At the end all bytes are compared.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from torchdoctor import catalog  # noqa: E402  from this checkout
from torchdoctor.model import Outcome  # noqa: E402
from torchdoctor.workbench.blocks import SUFFIX, written  # noqa: E402
from torchdoctor.workbench.case import CLEAN, NONE, ORIGINS, TEXTS, UNKNOWN, UNRECOGNISED, Case  # noqa: E402
from torchdoctor.workbench.cases import read_all, stow  # noqa: E402
from torchdoctor.workbench.evaluate import Result, judge  # noqa: E402
from torchdoctor.workbench.golden import Answer  # noqa: E402
from torchdoctor.workbench.lint import fault_of  # noqa: E402
from torchdoctor.workbench.shape import key  # noqa: E402

VARIANT = "/variants/none/"  # among them are failures that no rule knows
HUGE = 200_000  # a real case of this many bytes is left out where a smaller one has its shape
LOOKED_AT = 30_000
# what only a program prints: frames, exception kinds, clocks, levels, ranks, bars, steps, compilers' heads
PRINTED = re.compile(
    r"""(?mx)
    ^.{0,60}?Traceback\ \(most\ recent | ^\W{0,4}File\ ".*",\ line\ \d
    | ^[\w.\[\]: ]{0,40}?\b\w*(?:Error|Exception|Warning|Interrupt)\b:?\s
    | \d{4}-\d\d-\d\d[T ]\d\d:\d\d | \d\d:\d\d:\d\d[.,]\d | ^\W{0,3}\[?[EWIF]\d{4}\  | ^\[[^\]]*\d[^\]]*\]
    | \b(?:INFO|ERROR|WARN|WARNING|DEBUG|CRITICAL)\b | \d+%\| | \d+/\d+\ \[ | \bloss[=:]?\ *\d
    | ^(?:Epoch|epoch|step|Step|iter)\W{0,3}\d | (?:error|warning):\  | \berror\ [A-Z]+\d+ | ^\$[ ]
    """
)
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:?!…)]*")


@dataclass(frozen=True, slots=True)
class Answered:
    """A case with what the engine of this checkout says of it."""

    case: Case
    fault: str | None  # what the lint says of the answer
    top: str
    key: tuple[object, ...]
    data: bytes

    @property
    def right(self) -> bool:
        return self.fault is None

    @property
    def real(self) -> bool:
        return self.case.origin != "reconstructed"

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Real ones first, then those whose label says most, then the short ones."""
        case = self.case
        said = sum(bool(item) for item in (case.rank is not None, case.standing, case.suspect, case.frame))
        return ORIGINS.index(case.origin), -said, len(self.data), case.name


def is_sentence(line: str) -> bool:
    """Is a line mostly words, as people write it? One of another script counts by its letters."""
    words = line.split()
    letters = [letter for letter in line if letter.isalpha()]
    if len(words) < 4:
        return len(letters) > 8 and sum(letter > "\u2e7f" for letter in letters) * 2 > len(letters)
    plain = sum(bool(WORD.fullmatch(word.strip("\"'“”«»(*_`"))) for word in words)
    return plain >= 0.8 * len(words)


def is_log(case: Case, data: bytes) -> bool:
    """Did a program print this? A healthy text with a quarter of sentences in it was written by somebody."""
    text = data[:LOOKED_AT].decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    sentences = sum(map(is_sentence, lines)) / max(len(lines), 1)
    if case.of == CLEAN:
        return sentences < 0.25
    return sentences < 0.5 or PRINTED.search(text) is not None


def moved(case: Case, result: Result, later: Collection[str]) -> Case:
    """The case with the label that what was learnt since gives it: a rule for what none knew.

    A failure that no rule knew may be one of ``later``; among healthy inputs lie failures that none knows.
    """
    top = result.got[0].rule if result.got else ""
    if top in later and (case.of == UNKNOWN or (case.near and case.rule == NONE)):
        return replace(case, rule=top, of=top if case.of == UNKNOWN else case.of)
    if case.of == CLEAN and VARIANT in case.place and result.report.outcome is Outcome.UNRECOGNISED:
        return replace(case, of=UNKNOWN, rule=UNRECOGNISED)
    return case


def answered(cases: Iterable[Case], later: Collection[str]) -> list[Answered]:
    """Every case judged by the rules and the engine of this checkout; about 100 cases a second."""
    rules = catalog.load()
    found: list[Answered] = []
    names: set[str] = set()
    for case in cases:
        result = judge(case, rules)
        case = moved(case, result, later)
        result = replace(result, case=case)
        top = result.got[0].rule if result.got else result.report.outcome.value
        fault = fault_of(Answer(case, result.report))
        if fault is None and case.of in (CLEAN, UNKNOWN) and (result.doubted or not result.right_within(1)):
            fault = f"expected {case.rule}, got {top}"
        if case.id in names:
            case = replace(case, name=f"{case.name}-other")
        names.add(case.id)
        found.append(Answered(case, fault, top, key(case, result.report), case.input()))
    return found


def named_by_tests(cases: Iterable[Case]) -> set[str]:
    """The cases that a file of the tests, the benchmarks or the README names."""
    places = [ROOT / "README.md", *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in places)
    mentioned = set(re.findall(r"[\w-]+/[\w.+-]+", text))
    return {case.id for case in cases if case.id in mentioned}


def choose(found: Sequence[Answered], needed: set[str], kept_anyway: set[str]) -> dict[str, str]:
    """The id of every case that is kept, with the reason."""
    kept: dict[str, str] = {}
    shapes: set[tuple[object, ...]] = set()
    wanted = {**dict.fromkeys(kept_anyway, "kept by hand"), **dict.fromkeys(needed, "named by a test")}
    for item in sorted(found, key=lambda item: (item.case.id not in wanted and not item.real, item.order)):
        case, fresh = item.case, item.key not in shapes
        reason = ""
        if case.id in wanted:
            reason = wanted[case.id]
        elif not item.right:
            continue
        elif item.real:
            reason = "real" if fresh or len(item.data) < HUGE else ""
            if case.origin == "reported" and not is_log(case, item.data):
                reason = ""
        elif is_log(case, item.data) and fresh:
            reason = "a shape of its own"
        if reason:
            kept[case.id] = reason
            shapes.add(item.key)
    return {**kept, **_last_ones(found, kept)}


def _last_ones(found: Sequence[Answered], kept: Mapping[str, str]) -> dict[str, str]:
    """The best positive and near miss of every rule that would be left without one."""
    there = {(item.case.of, item.case.near) for item in found if item.case.id in kept}
    more: dict[str, str] = {}
    for item in sorted(found, key=lambda item: item.order):
        place = item.case.of, item.case.near
        if item.right and place not in there and item.case.of not in (CLEAN, UNKNOWN):
            there.add(place)
            more[item.case.id] = "the last of its rule"
    return more


def texts(found: Sequence[Answered], kept: Mapping[str, str], count: int) -> list[Case]:
    """Written texts at even steps, whatever the engine says of them, as the file of non-logs."""
    written_ones = [
        item.case
        for item in sorted(found, key=lambda item: item.case.name)
        if item.case.of == CLEAN and item.case.id not in kept and not is_log(item.case, item.data)
    ]
    step = max(len(written_ones) / count, 1.0) if count else 1.0
    chosen = [written_ones[int(number * step)] for number in range(min(count, len(written_ones)))]
    return [replace(case, of=TEXTS, rule=NONE, also=()) for case in chosen]


def write(cases: Sequence[Case], target: Path) -> None:
    """The tree of files; positives before near misses, real ones first."""
    files: defaultdict[str, list[Case]] = defaultdict(list)
    for case in sorted(cases, key=lambda case: (case.near, ORIGINS.index(case.origin), case.name)):
        files[case.of].append(case)
    for of, members in sorted(files.items()):
        stored = [stow(str(target), case) for case in members]
        (target / (of + SUFFIX)).write_bytes(written(stored))


def compare(cases: Sequence[Case], target: Path) -> list[str]:
    """What the new tree holds otherwise than it should, byte for byte and label by label."""
    there, problems = read_all(str(target))
    new = {case.id: case for case in there}
    problems += [f"{name}: nobody asked for it" for name in {*new} - {case.id for case in cases}]
    for case in cases:
        one = new.get(case.id)
        if one is None:
            problems.append(f"{case.id}: is not there")
        elif one.input() != case.input():
            problems.append(f"{case.id}: other bytes")
        elif _label(one) != _label(case):
            problems.append(f"{case.id}: another label: {_label(one)}, was {_label(case)}")
    return problems


def _label(case: Case) -> tuple[object, ...]:
    note = "\n".join(line.rstrip() for line in case.note.splitlines())
    said = (case.standing, case.rank, case.suspect, case.frame, case.torch)
    return (case.rule, case.origin, case.also, *said, note)


def read_changes(path: Path | None) -> dict[str, tuple[str, str]]:
    """By case the new label, "keep" or "drop", and why."""
    if path is None:
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {name: (label, why) for name, label, why in rows}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, help="is made; must not be there")
    parser.add_argument("--changes", type=Path, help="labels that are changed, kept or dropped by hand")
    parser.add_argument(
        "--later", default="", help="rules made since, which failures without one may be, a,b"
    )
    parser.add_argument("--texts", type=int, default=60, help="how many inputs that are no logs are kept")
    parser.add_argument("--report", type=Path, help="a line for each case: id, kept or not, answer, shape")
    args = parser.parse_args()
    if args.new.exists():
        parser.error(f"{args.new} is there already")
    cases, problems = read_all(str(args.old))
    changes = read_changes(args.changes)
    for number, case in enumerate(cases):
        label, why = changes.get(case.id, ("", ""))
        if label.startswith("standing="):
            cases[number] = replace(case, standing=label.partition("=")[2] or None)
        elif label not in ("", "keep", "drop"):
            cases[number] = replace(case, rule=label, note=f"{case.note}\n{why}".strip())
    found = [
        item
        for item in answered(cases, args.later.split(","))
        if changes.get(item.case.id, ("",))[0] != "drop"
    ]
    by_hand = {name for name, (label, _) in changes.items() if label == "keep"}
    kept = choose(found, named_by_tests(cases), by_hand)
    chosen = [item.case for item in found if item.case.id in kept]
    chosen += texts(found, kept, args.texts)
    args.new.mkdir(parents=True)
    for folder in ("machines", "samples"):
        if (args.old / folder).is_dir():
            shutil.copytree(args.old / folder, args.new / folder)
    write(chosen, args.new)
    problems += compare(chosen, args.new)
    if args.report:
        _report(args.report, found, kept)
    print("\n".join([*problems, *_told(found, kept), *_figures(chosen, args.new)]))
    return 1 if problems else 0


def _report(path: Path, found: Sequence[Answered], kept: Mapping[str, str]) -> None:
    rows = [
        "\t".join((item.case.id, item.case.origin, kept.get(item.case.id, "-"), item.case.rule, item.top,
                   str(item.key[-1]).partition("\n")[0]))
        for item in found
    ]  # fmt: skip
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def _told(found: Sequence[Answered], kept: Mapping[str, str]) -> list[str]:
    """What somebody should look at: real cases answered otherwise, and needed ones."""
    return [
        f"{item.case.id} ({item.case.origin}): {item.fault}"
        f"{'; ' + kept[item.case.id] if item.case.id in kept else ''}"
        for item in found
        if not item.right and (item.real or item.case.id in kept)
    ]


def _figures(chosen: Sequence[Case], target: Path) -> list[str]:
    kinds = Counter(
        (case.of if case.of in (CLEAN, UNKNOWN, TEXTS) else "near" if case.near else "positive", case.origin)
        for case in chosen
    )
    paths = [path for path in target.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in paths)
    lines = [f"{kind:9} {origin:14} {count:5}" for (kind, origin), count in sorted(kinds.items())]
    return [*lines, f"{len(chosen)} cases, {len(paths)} files, {size / 1e6:.2f} MB"]


if __name__ == "__main__":
    sys.exit(main())
