"""Incidents of one cause each, in the four ways in which the output of ranks is kept."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from incidents.suite import Label, node_files, one_file, rank_files, write
from incidents.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from incidents.suite import Writer
    from incidents.world import Incident

SIZES = ((4, 4), (4, 2), (8, 8), (8, 4), (16, 8), (32, 8), (64, 8), (64, 4))
SKEWS_S = (0.0, 0.5, 1.0, 15.0, 120.0)
# what happens, and the rules that are right
CAUSES = {
    "oom": ("cuda-oom-too-big",),
    "assert": ("cuda-assert-label-range",),
    "dataset": ("dataloader-worker-error",),
    "ecc": ("ecc-uncorrectable",),
    "sigkill": ("host-oom-killed",),
    "illegal": ("cuda-illegal-access",),
    "branch": ("collective-rank-branch",),
    "missing": ("own-code-error",),
}


def srun_labels(case: Incident, place: Path, world: World, _: random.Random) -> list[str]:
    """``srun -l``: each line behind the padded number of its task, which is a rank, or a node's launcher."""
    width = len(str(case.ranks - 1))
    lines = []
    for line in case.lines:
        task, text = line.rank or 0, line.text
        if world.agents:
            task = case.hosts.index(line.host)
            text = text if line.rank is None or text.startswith("[rank") else f"[rank{line.rank}]: {text}"
        lines.append(text if text.startswith("srun: ") else f"{task:{width}d}: {text}")
    return write(place, {"job.log": lines})


LAYOUTS: dict[str, Writer] = {
    "rank prefix": partial(one_file, style="rank"),
    "files": rank_files,
    "node files": node_files,
    "srun -l": srun_labels,
}


def build(folder: Path, count: int, seed: int) -> list[Label]:
    """Write ``count`` incidents below ``folder``, all causes and layouts in turn."""
    chance = random.Random(seed)
    labels: list[Label] = []
    for number in range(count):
        kind = list(CAUSES)[number % len(CAUSES)]
        layout = list(LAYOUTS)[(number + number // len(CAUSES)) % len(LAYOUTS)]
        ranks, per_host = chance.choice(SIZES)
        name = f"{number:03d}-{kind}"
        world = World(name, seed * 1000 + number, ranks, per_host, chance.choice(SKEWS_S))
        # where nothing reports the ends of processes, nothing tells of one that was killed
        how = chance.choice(["boxes", "srun", "srun -K", *(["nothing"] if kind != "sigkill" else [])])
        world.agents = how == "boxes"
        case = world.incident(kind)
        if how.startswith("srun"):
            world.srun_reports(how == "srun -K")
            case.lines = sorted(world.lines, key=lambda line: line.at)
        files = LAYOUTS[layout](case, folder / name, world, random.Random(seed * 7 + number))
        labels.append(Label(name, kind, layout, tuple(files), case.rank, case.tie))
    return labels


class Score(NamedTuple):
    """How many ranks were named, ties told and causes found, of how many; what was wrong."""

    decidable: int
    ranks: int
    tied: int
    ties: int
    causes: int
    wrong: list[str]


def score(labels: list[Label]) -> Score:
    """Explain every incident and compare the first failing rank and the cause."""
    from torchdoctor.catalog import load
    from torchdoctor.engine import FactBook
    from torchdoctor.engine.incident import explain

    rules = load()
    counts = dict.fromkeys(("ranks", "ties", "causes"), 0)
    wrong = []
    for label in labels:
        report = explain(label.files, FactBook(), rules).report
        first = report.first_failure
        rank, tie = (first.rank, first.tie) if first is not None else (None, ())
        rule = report.diagnoses[0].rule if report.diagnoses else ""
        placed, known = label.judged(rank, tie), rule in CAUSES[label.kind]
        counts["ties" if label.tie else "ranks"] += placed
        counts["causes"] += known
        if not placed or not known:
            told = f"tie {list(tie)}" if tie else f"rank {rank}"
            by = first.decided_by if first is not None else ""
            wanted = "a tie of all" if label.tie else f"rank {label.rank}"
            wrong.append(f"{label.name} ({label.layout}): wanted {wanted}, told {told}: {by}; {rule}")
    tied = sum(bool(label.tie) for label in labels)
    return Score(len(labels) - tied, counts["ranks"], tied, counts["ties"], counts["causes"], wrong)
