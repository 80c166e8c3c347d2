"""A suite of incidents of known first failure, written as the files that a cluster would leave behind."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from incidents.world import KINDS, Incident, World, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Writer = Callable[[Incident, Path, World, random.Random], list[str]]

SIZES = ((4, 2), (4, 4), (8, 4), (8, 8), (16, 8), (16, 4), (32, 8), (64, 8))
RANK_NAMES = (
    "rank_{rank}.log", "rank{rank:02d}.txt", "slurm-812{job}_{rank}.out", "{host}_rank{rank}.log",
    "{host}/gpu{local}.err", "worker-{rank}.log", "out.{rank}", "run-2026-03-09-14-00/{rank}.log",
    "log.{job}.{rank:03d}.txt", "{host}-r{rank}.stderr",
)  # fmt: skip


@dataclass(frozen=True)
class Label:
    """One incident as files, and what is right to say of it."""

    name: str
    kind: str
    layout: str
    files: tuple[str, ...]
    rank: int | None
    tie: tuple[int, ...]

    def judged(self, rank: int | None, tie: list[int] | tuple[int, ...]) -> bool:
        """A tie must be said to be one, of exactly these ranks; else the rank must be named alone."""
        if self.kind == "limit":  # no rank failed
            return rank is None or sorted(tie) == list(self.tie)
        if self.tie:
            return sorted(tie) == list(self.tie)
        return rank == self.rank and not tie


def build(folder: Path, count: int, seed: int = 20261128) -> list[Label]:
    """Write ``count`` incidents below ``folder``, all kinds, sizes and layouts in turn."""
    labels: list[Label] = []
    writers = (rank_files, node_files, one_file, torchrun_folders, pods)
    chance = random.Random(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        ranks, per_host = chance.choice(SIZES)
        writer = writers[(number // len(KINDS) + number) % len(writers)]
        if writer is pods:
            per_host = 1
            ranks = min(ranks, 16)
        if kind == "at-once" and ranks <= per_host:
            per_host = ranks // 2
        name = f"{number:03d}-{kind}"
        world = World(name, seed + number, ranks, per_host)
        case = world.incident(kind)
        place = folder / name
        files = writer(case, place, world, random.Random(seed * 7 + number))
        labels.append(Label(name, kind, writer.__name__, tuple(files), case.rank, case.tie))
    return labels


def write(place: Path, contents: dict[str, list[str]]) -> list[str]:
    names = []
    for name, lines in contents.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        names.append(str(path))
    return sorted(names)


def rank_files(case: Incident, place: Path, world: World, chance: random.Random) -> list[str]:
    """One file a rank, named in one of many ways; the launchers' own lines in a file of each machine."""
    name = chance.choice(RANK_NAMES)
    if len(case.hosts) == 1 and "{rank" not in name:
        name = "gpu{local}.err"
    job = chance.randrange(100)

    def file_of(rank: int) -> str:
        return name.format(rank=rank, host=world.host(rank), local=rank % world.per_host, job=job)

    contents: dict[str, list[str]] = {file_of(rank): [] for rank in range(case.ranks)}  # some stay empty
    for line in case.lines:
        if line.rank is None:
            contents.setdefault(f"launcher-{line.host}.log", []).append(line.text)
        else:
            contents[file_of(line.rank)].append(line.text)
    return write(place, contents)


def _tagged(line: Written, style: str, world: World) -> str:
    if line.rank is None:
        return line.text
    if style == "srun":
        return f"{line.rank}: {line.text}"
    if style == "default":
        return f"[default{line.rank % world.per_host}]:{line.text}"
    if style == "mpi":
        return f"[1,{line.rank}]<{'stderr' if line.error else 'stdout'}>:{line.text}"
    return line.text if line.text.startswith("[rank") else f"[rank{line.rank}]: {line.text}"


def node_files(case: Incident, place: Path, world: World, chance: random.Random) -> list[str]:
    """One file a machine, its ranks interleaved behind a prefix."""
    style = chance.choice(["srun", "default", "rank", "mpi"])
    contents: dict[str, list[str]] = {f"{host}.log": [] for host in case.hosts}
    for line in case.lines:
        contents[f"{line.host}.log"].append(_tagged(line, style, world))
    return write(place, contents)


def one_file(case: Incident, place: Path, world: World, chance: random.Random, style: str = "") -> list[str]:
    """All ranks in one file, in the order in which the lines came."""
    style = style or chance.choice(["srun", "rank", "mpi"])
    return write(place, {"job.log": [_tagged(line, style, world) for line in case.lines]})


def torchrun_folders(case: Incident, place: Path, world: World, chance: random.Random) -> list[str]:
    """``torchrun --log-dir`` of every machine, with the agent's own output beside it."""
    letters = "abcdefghijkmnpqrstuvwxyz_0123456789"
    runs = {host: "none_" + "".join(chance.choice(letters) for _ in range(8)) for host in case.hosts}
    contents: dict[str, list[str]] = {}
    for rank in range(case.ranks):
        host = world.host(rank)
        for stream in ("stdout", "stderr"):
            contents[f"{host}/{runs[host]}/attempt_0/{rank % world.per_host}/{stream}.log"] = []
    for line in case.lines:
        if line.rank is None:
            contents.setdefault(f"{line.host}/agent.log", []).append(line.text)
        else:
            stream = "stderr" if line.error else "stdout"
            contents[
                f"{line.host}/{runs[line.host]}/attempt_0/{line.rank % world.per_host}/{stream}.log"
            ].append(line.text)
    return write(place, contents)


def pods(case: Incident, place: Path, world: World, chance: random.Random) -> list[str]:
    """One pod a rank, as a training operator names them: a master, and workers counted from zero."""
    job = chance.choice(["llm-pretrain", "resnet", "exp-17-ddp"])
    contents: dict[str, list[str]] = {}

    def name(rank: int) -> str:
        return f"{job}-master-0.log" if rank == 0 else f"{job}-worker-{rank - 1}.log"

    for rank in range(case.ranks):
        contents[name(rank)] = []
    for line in case.lines:
        rank = line.rank if line.rank is not None else case.hosts.index(line.host)
        contents[name(rank)].append(line.text)
    return write(place, contents)


@dataclass
class Score:
    """How many incidents were judged rightly, and which were not."""

    right: Counter[str]
    all: Counter[str]
    wrong: list[tuple[Label, object, list[int], str]]

    @property
    def share(self) -> float:
        """Of the incidents in which one rank failed first, the share in which it was named."""
        return self._share(lambda kind: kind == "rank")

    @property
    def ties(self) -> float:
        """Of the ties, the share that was said to be one."""
        return self._share(lambda kind: kind == "tie")

    def _share(self, wanted: Callable[[str], bool]) -> float:
        total = sum(count for kind, count in self.all.items() if wanted(kind))
        return sum(count for kind, count in self.right.items() if wanted(kind)) / total if total else 1.0


def score(labels: list[Label]) -> Score:
    """Explain every incident and compare the first failing rank."""
    result = Score(Counter(), Counter(), [])
    for label, rank, tie, by in told(labels):
        group = "tie" if label.tie and label.kind != "limit" else "none" if label.kind == "limit" else "rank"
        result.all[group] += 1
        if label.judged(rank, tie):
            result.right[group] += 1
        else:
            result.wrong.append((label, rank, tie, by))
    return result


def told(labels: list[Label]) -> Iterator[tuple[Label, int | None, list[int], str]]:
    from torchdoctor.catalog import load
    from torchdoctor.engine import FactBook
    from torchdoctor.engine.incident import explain

    rules = load()
    for label in labels:
        first = explain(label.files, FactBook(), rules).report.first_failure
        if first is None:
            yield label, None, [], "nothing"
        else:
            yield label, first.rank, list(first.tie), first.decided_by
