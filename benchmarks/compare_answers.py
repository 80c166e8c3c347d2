"""What two checkouts answer to the same inputs, case by case: the table a change of the engine is judged by.

    python benchmarks/compare_answers.py OLD_TREE NEW_TREE FOLDER [--origin captured,reported] [--only 'ag-*']
    python benchmarks/compare_answers.py OLD.jsonl NEW_TREE FOLDER    # answers kept by an earlier --keep DIR

FOLDER is a tree of cases, a folder with ``labels.tsv``, or any folder of inputs. Compared are outcome,
rule, standing, frame, rank, first failing rank, ``leads_to``, evidence, further diagnoses and suspect. Each
tree answers in one process of its own, without facts of this machine. Exits with 1 when answers differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
NO_RULE = "none"
NO_LABEL = "-"
FIELDS = (
    "outcome",
    "rule",
    "standing",
    "frame",
    "rank",
    "first_rank",
    "leads_to",
    "evidence",
    "others",
    "suspect",
    "fault",
)
MAX_SHOWN = 150  # characters of one value in the table

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Input:
    """One input with its label; ``expected`` is empty where nothing is said of it."""

    name: str
    path: str
    origin: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A case whose answer is another one: the fields that differ, and whether the top rule is now right."""

    case: Input
    old: Answer
    new: Answer
    fields: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``other`` by the label; ``same-rule`` where the rule stayed."""
        if "rule" not in self.fields and "outcome" not in self.fields:
            return "same-rule"
        if not self.case.expected:
            return "other"
        was, now = _right(self.case, self.old), _right(self.case, self.new)
        return "other" if was == now else "better" if now else "worse"


def _right(case: Input, answer: Answer) -> bool:
    if NO_RULE in case.expected and answer["severity"] != "fatal":
        return True
    return answer["rule"] in case.expected or answer["outcome"] in case.expected


def inputs(folder: Path, scratch: Path) -> list[Input]:
    """Every input below the folder, with its label, by name; cases are written to ``scratch``."""
    if (folder / "labels.tsv").exists():
        found = list(_labelled(folder))
    elif next(folder.glob("*.cases"), None) is not None:
        found = list(_cases(folder, scratch))
    elif next(folder.rglob("about.toml"), None) is not None:
        found = list(_tree(folder))
    else:
        found = [
            Input(path.relative_to(folder).as_posix(), str(path), NO_LABEL, ())
            for path in folder.rglob("*")
            if path.is_file()
        ]
    return sorted(found, key=lambda item: item.name)


def _labelled(folder: Path) -> Iterator[Input]:
    header, *rows = (
        line.split("\t") for line in (folder / "labels.tsv").read_text(encoding="utf-8").splitlines() if line
    )
    for row in rows:
        values = dict(zip(header, row, strict=False))
        also = [item.strip() for item in values.get("also", "").split(",") if item.strip()]
        cause = values["cause"].replace("none-of-the-above", NO_RULE)
        yield Input(
            values["case"],
            str(folder / values["case"]),
            values.get("source") or values["case"].partition("-")[0],
            (cause, *also),
        )


def _cases(folder: Path, scratch: Path) -> Iterator[Input]:
    sys.path.insert(0, str(ROOT))
    from torchdoctor.workbench.cases import read_all

    cases, problems = read_all(str(folder))
    if problems:
        raise SystemExit(problems[0])
    for number, case in enumerate(cases):
        # of the same name as a fixture's input, so that no tree reads ranks or hosts out of it
        path = scratch / str(number) / ("input.tar.gz" if case.several_files else "input.txt")
        path.parent.mkdir()
        path.write_bytes(case.input())
        yield Input(case.id, str(path), case.origin, (case.rule, *case.also))


def _tree(folder: Path) -> Iterator[Input]:
    for about in folder.rglob("about.toml"):
        label = tomllib.loads(about.read_text(encoding="utf-8"))
        name = about.parent.relative_to(folder).as_posix()
        expected = "unrecognised" if name.startswith("unknown/") else label["rule"]
        yield Input(
            name,
            str(about.parent / "input.txt"),
            label["origin"],
            (expected, *label.get("also", ())),
        )


def answer_all(tree: str, listing: str) -> None:
    """One line of JSON for each path of the listing; runs in a process of its own, the tree on its path."""
    import torchdoctor
    from torchdoctor import catalog
    from torchdoctor.engine import FactBook, diagnose
    from torchdoctor.intake import read
    from torchdoctor.render.json import to_json

    if not os.path.samefile(os.path.dirname(os.path.dirname(torchdoctor.__file__)), tree):
        sys.exit(f"{tree}: this interpreter takes torchdoctor from {torchdoctor.__file__}")
    rules = catalog.load()
    for path in json.loads(Path(listing).read_text(encoding="utf-8")):
        try:
            found = _answer(json.loads(to_json(diagnose(read([path]), FactBook(None), rules))), path)
        except Exception as error:  # a tree under work may break on one input; the others are still told
            found = {**dict.fromkeys(FIELDS), "severity": None, "fault": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


def _answer(report: Mapping[str, Any], path: str) -> dict[str, Any]:
    first, *others = report["diagnoses"] or [None]
    suspect = report["suspect"]
    evidence = (first or suspect or {}).get("evidence", ())
    return {
        "outcome": report["outcome"],
        "rule": first["rule"] if first else NO_RULE,
        "severity": first["severity"] if first else None,
        "standing": first["standing"] if first else None,
        "frame": _frame((first or suspect or {}).get("frame")),
        "rank": first["rank"] if first else None,
        "first_rank": [report["first_failure"]["rank"], report["first_failure"]["tie"]],
        "leads_to": [item["rule"] for item in first["leads_to"]] if first else [],
        "evidence": [f"{item['line']}: {item['text']}".replace(path, "") for item in evidence],
        "others": [item["rule"] for item in others],
        "suspect": f"{suspect['type']}: {suspect['message']}" if suspect else None,
        "fault": None,
    }


def _frame(frame: Mapping[str, Any] | None) -> str | None:
    return f"{frame['file']}:{frame['line']} in {frame['function']}" if frame else None


def answers(tree: Path, paths: Sequence[str], python: str) -> list[Answer]:
    """What the tree answers to each path, in their order."""
    with tempfile.TemporaryDirectory() as scratch:
        listing = os.path.join(scratch, "paths.json")
        Path(listing).write_text(json.dumps(paths), encoding="utf-8")
        place = {**os.environ, "PYTHONPATH": str(tree.resolve())}
        command = [python, os.path.abspath(__file__), "--answer", str(tree), listing]
        done = subprocess.run(command, env=place, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(2)  # the child has said why
    return [json.loads(line) for line in done.stdout.splitlines()]


def _answers_of(given: str, cases: Sequence[Input], python: str) -> dict[str, Answer]:
    """By name of the case: computed by a tree, or read from a file that an earlier run kept."""
    if given.endswith(".jsonl"):
        rows = [json.loads(line) for line in Path(given).read_text(encoding="utf-8").splitlines()]
        return {row["case"]: row["answer"] for row in rows}
    found = answers(Path(given), [case.path for case in cases], python)
    return {case.name: answer for case, answer in zip(cases, found, strict=True)}


def compare(
    cases: Iterable[Input], old: Mapping[str, Answer], new: Mapping[str, Answer], fields: Sequence[str]
) -> list[Change]:
    """The cases whose answers differ in one of the fields; those that one side does not have are left out."""
    found: list[Change] = []
    for case in cases:
        if case.name not in old or case.name not in new:
            continue
        was, now = old[case.name], new[case.name]
        differing = tuple(field for field in fields if was[field] != now[field])
        if differing:
            found.append(Change(case, was, now, differing))
    return found


def summary(cases: Sequence[Input], changes: Sequence[Change], fields: Sequence[str]) -> list[str]:
    """A line an origin: how many cases, how many keep all, keep outcome and rule, and what changed."""
    head = ("origin", "cases", "same", "rule kept", "better", "worse", "other")
    lines = ["{:14} {:>6} {:>6} {:>16} {:>7} {:>6} {:>6}  changed".format(*head)]
    for origin in [*sorted({case.origin for case in cases}), "all"]:
        of = sum(origin in (case.origin, "all") for case in cases)
        here = [item for item in changes if origin in (item.case.origin, "all")]
        verdicts = Counter(item.verdict for item in here)
        kept = of - len(here) + verdicts["same-rule"]
        counts = Counter(field for item in here for field in item.fields)
        told = " ".join(f"{field} {counts[field]}" for field in fields if counts[field])
        lines.append(
            f"{origin:14} {of:6} {of - len(here):6} {kept:6} {100 * kept / max(of, 1):7.2f} %"
            f" {verdicts['better']:7} {verdicts['worse']:6} {verdicts['other']:6}  {told}"
        )
    return lines


def moves(changes: Sequence[Change]) -> list[str]:
    """The moves from one top rule or outcome to another, the most frequent first."""
    counts = Counter(
        (_top(item.old), _top(item.new)) for item in changes if {"rule", "outcome"} & set(item.fields)
    )
    return [f"{count:5} {was} -> {now}" for (was, now), count in counts.most_common()]


def _top(answer: Answer) -> str:
    return str(answer["rule"] if answer["rule"] not in (None, NO_RULE) else answer["outcome"] or "fault")


def table(changes: Sequence[Change]) -> Iterator[str]:
    """Tab-separated: verdict, origin, case, label, field, old value, new value; a line for each field."""
    yield "verdict\torigin\tcase\tlabel\tfield\told\tnew"
    for item in changes:
        for field in item.fields:
            was, now = _shown(item.old[field], item.new[field]), _shown(item.new[field], item.old[field])
            label = ",".join(item.case.expected) or NO_LABEL
            yield "\t".join((item.verdict, item.case.origin, item.case.name, label, field, was, now))


def _shown(value: object, beside: object) -> str:
    """A value in one line; of two lists only what the other does not have, where that says it all."""
    if isinstance(value, list) and isinstance(beside, list):
        value = [item for item in value if item not in beside] or ("same in another order" if value else "-")
    text = " ".join(("-" if value is None else str(value)).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _keep(folder: Path, name: str, cases: Sequence[Input], found: Mapping[str, Answer]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = (json.dumps({"case": case.name, "answer": found[case.name]}) for case in cases)
    (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def main() -> int:
    if sys.argv[1:2] == ["--answer"]:
        answer_all(*sys.argv[2:4])
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="a checkout, or OLD.jsonl of an earlier --keep")
    parser.add_argument("new", help="a checkout, or NEW.jsonl of an earlier --keep")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--origin", default="", help="only these, with commas: captured,reported,reconstructed"
    )
    parser.add_argument("--only", default="*", help="only cases whose name one of these patterns matches")
    parser.add_argument("--fields", default=",".join(FIELDS), help="compare only these, with commas")
    parser.add_argument(
        "--keep", type=Path, help="write old.jsonl and new.jsonl, the answers, into this folder"
    )
    parser.add_argument("--table", type=Path, help="write the table into this file instead of printing it")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs both trees")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return _compared(args, inputs(args.folder, Path(scratch)))


def _compared(args: argparse.Namespace, found: Sequence[Input]) -> int:
    origins, patterns, fields = args.origin.split(","), args.only.split(","), args.fields.split(",")
    cases = [
        case
        for case in found
        if (not args.origin or case.origin in origins)
        and any(fnmatchcase(case.name, pattern) for pattern in patterns)
    ]
    old = _answers_of(args.old, cases, args.python)
    new = _answers_of(args.new, cases, args.python)
    if args.keep:
        _keep(args.keep, "old.jsonl", cases, old)
        _keep(args.keep, "new.jsonl", cases, new)
    cases = [case for case in cases if case.name in old and case.name in new]
    changes = compare(cases, old, new, fields)
    lines = "\n".join(table(changes))
    if args.table:
        args.table.write_text(lines + "\n", encoding="utf-8")
    elif changes:
        print(lines, end="\n\n")
    print("\n".join([*moves(changes), "", *summary(cases, changes, fields)]))
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
