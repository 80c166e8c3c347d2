"""Rank, local rank and host by how the names of all inputs vary.

No list of launchers' layouts stands behind it. The numbers in the names that differ from file to file are
columns; what a column counts is told by the ranks that the files' own text names, then by the word before
the number, then by how its values are spread (each file another one, dense from zero: a rank; the same
small range again under every other value: a local rank under a node).
"""

from __future__ import annotations

from collections.abc import Sequence

from torchdoctor.patterns import pattern
from torchdoctor.records import Record, record


@record(frozen=True, slots=True)
class Place(Record):
    """What a file's name says of the process that wrote it; None where it says nothing."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None


@record(frozen=True, slots=True)
class Ranks(Record):
    """What a file's own text says: the one rank that speaks in it, or that several do."""

    rank: int | None = None
    several: bool = False


# What stands before a number that counts them. "t" is srun's %t, "worker" the pods of a training job.
_RANK_WORDS = frozenset(
    ("rank", "globalrank", "grank", "r", "task", "taskid", "t", "proc", "process", "procid", "worker", "w",
     "trainer", "replica", "p", "pe")
)  # fmt: skip
_LOCAL_WORDS = frozenset(("localrank", "lrank", "local", "gpu", "device", "cuda", "default"))
_NODE_WORDS = frozenset(
    ("node", "host", "machine", "server", "nid", "gn", "cn", "dgx", "hgx", "n", "compute", "ip", "box",
     "agent", "noderank")
)  # fmt: skip
_NO_RANK_WORDS = frozenset(("attempt", "restart", "try", "job", "run", "version", "v", "epoch", "step"))
# a training job's first pod has another name than the others; its process is rank 0
_FIRST_PODS = ("master", "chief")
_STREAM_NAMES = r"(?i)(?<![a-z])(?:stdout|stderr|out|err|output|error|log|txt|json)(?![a-z])"


@record(frozen=True, slots=True)
class _Column(Record):
    """One number of the names of a group, or one whole folder name, that differs between its files."""

    values: tuple[int | str, ...]
    word: str
    texts: tuple[str, ...]  # the number with the word before it, as a host is named

    @property
    def numbers(self) -> list[int]:
        return [value for value in self.values if isinstance(value, int)]

    @property
    def numeric(self) -> bool:
        return all(isinstance(value, int) for value in self.values)


def places(names: Sequence[str], speech: Sequence[Ranks]) -> list[Place]:
    """The place of each named file. ``speech`` says, for each, what its own text tells."""
    result = [Place() for _ in names]
    groups: dict[tuple[str, int], list[int]] = {}
    paths = [name.replace("\\", "/") for name in names]
    for index, path in enumerate(paths):
        parts = path.split("/")
        groups.setdefault((_skeleton(parts[-1]), len(parts)), []).append(index)
    pods = {_pod(path)[0] for path in paths}
    for members in groups.values():
        twins: dict[str, list[int]] = {}  # standard output and standard error of one process
        for index in members:
            twins.setdefault(_without_stream(paths[index]), []).append(index)
        said = [_together([speech[index] for index in group]) for group in twins.values()]
        speakers = [one.rank for one in said if one.rank is not None]
        # in a job's only file one rank may speak because it alone failed: that makes it no file of a rank
        of_ranks = len(speakers) > 1 and len(set(speakers)) == len(speakers)
        # of one file alone only its own name counts: folders may be called after anything
        columns = _columns(list(twins) if len(twins) > 1 else [next(iter(twins)).rpartition("/")[2]])
        found = _judge(columns, said)
        for name, group, place, one in zip(twins, twins.values(), found, said, strict=True):
            pod = _as_pod(place, name, pods, one, columns)
            if one.rank is not None and of_ranks:
                pod = Place(one.rank, pod.local_rank, pod.host)
            for index in group:
                result[index] = pod
    return result


def _together(speech: list[Ranks]) -> Ranks:
    ranks = {one.rank for one in speech if one.rank is not None}
    if len(ranks) > 1 or any(one.several for one in speech):
        return Ranks(None, True)
    return Ranks(ranks.pop() if ranks else None)


# ---------------------------------------------------------------- columns


def _skeleton(name: str) -> str:
    """The name without numbers, and without the word that tells standard output from standard error."""
    return str(pattern(r"\d+").sub("#", _without_stream(_unhashed(name))))


def _unhashed(name: str) -> str:
    """The name without identifiers that nobody counts, as Ray gives its workers."""
    return str(pattern(r"(?<![A-Za-z0-9])(?=[a-f]*\d)[0-9a-f]{12,}(?![A-Za-z0-9])").sub("x", name))


def _without_stream(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return folder + slash + str(pattern(_STREAM_NAMES).sub("@", name))


def _columns(paths: list[str]) -> list[_Column]:
    """What differs between the names: numbers where the words around them agree, else whole folders."""
    rows = [path.split("/") for path in paths]
    columns: list[_Column] = []
    for level in range(len(rows[0])):
        cells = [_unhashed(row[level]) for row in rows]
        if len({_skeleton(cell) for cell in cells}) > 1:
            if level + 1 < len(rows[0]):
                columns.append(_Column(tuple(cells), "", tuple(cells)))
            continue
        above = [row[level - 1] if level else "" for row in rows]
        for number in range(len(pattern(r"\d+").findall(cells[0]))):
            found = [list(pattern(r"([A-Za-z][A-Za-z.-]*[_-]?)?(\d+)").finditer(cell)) for cell in cells]
            if any(len(one) <= number for one in found):
                break
            hits = [one[number] for one in found]
            word = _word(cells[0], hits[0].start(2))
            if not word and hits[0].start() == 0:  # a folder "ranks" counts what lies in it
                folder = above[0].lower().removesuffix("s")
                word = folder if folder in _RANK_WORDS | _LOCAL_WORDS | _NODE_WORDS else ""
            columns.append(
                _Column(tuple(int(hit[2][:15]) for hit in hits), word, tuple(hit[0] for hit in hits))
            )
    return columns


def _word(cell: str, at: int) -> str:
    """The word right before a number, ``local_rank`` as one word."""
    found = pattern(r"(?i)((?:local|global|node)[_-]?)?([a-z]+)[_.=-]*$").search(cell[:at])
    return str((found[1] or "") + found[2]).replace("_", "").replace("-", "").lower() if found else ""


# ---------------------------------------------------------------- judgement


def _judge(columns: list[_Column], speech: list[Ranks]) -> list[Place]:
    size = len(speech)
    said = {index: one.rank for index, one in enumerate(speech) if one.rank is not None}
    several = any(one.several for one in speech)
    numeric = [column for column in columns if column.numeric and column.word not in _NO_RANK_WORDS]
    node = _node(columns, size, several)
    hosts: tuple[str | None, ...] = node.texts if node is not None else (None,) * size
    if several:
        return [Place(None, None, host) for host in hosts]
    for column in numeric:  # the text's own word counts most
        shift = {rank - column.numbers[index] for index, rank in said.items()}
        varies = len(set(column.values)) > 1
        if column is not node and len(shift) == 1 and (varies or column.word in _RANK_WORDS):
            offset = shift.pop()
            if offset >= 0 and (varies or offset == 0) and (len(said) > 1 or offset == 0):
                return [Place(number + offset, None, host) for number, host in _rows(column, hosts)]
    local = _local(numeric, node, size)
    ranks: list[int | None] = [None] * size
    named = [column for column in numeric if column is not node and column is not local]
    # the name of a folder that all files share may speak of ranks as well
    worded = [c for c in reversed(named) if c.word in _RANK_WORDS and len(c.word) > 1 and not said]
    best = next((c for c in worded if size == 1 or len(set(c.values)) > 1), None)
    best = best or next((c for c in named if not said and _counts_files(c, size)), None)
    if best is not None:
        ranks = list(best.numbers)
    elif local is not None and not said:
        ranks = _global(local, node)
    locals_ = local.numbers if local is not None else [None] * size
    return [Place(*row) for row in zip(ranks, locals_, hosts, strict=True)]


def _rows(column: _Column, hosts: tuple[str | None, ...]) -> list[tuple[int, str | None]]:
    return list(zip(column.numbers, hosts, strict=True))


def _node(columns: list[_Column], size: int, several: bool) -> _Column | None:
    """The column that names the machine."""
    named = [column for column in columns if column.word in _NODE_WORDS]
    differ = [column for column in named if len(set(column.values)) > 1]
    if differ:
        return differ[-1]
    folders = [column for column in columns if not column.numeric]
    if folders and size > 1:
        # a run's random folder lies in that of a machine, whose number names the machine better
        alike = [column for column in columns if column.numeric and _go_together(column, folders[-1])]
        return alike[0] if alike else folders[-1]
    varying = [c for c in columns if len(set(c.values)) > 1 and c.word not in _NO_RANK_WORDS]
    if several and varying:
        return varying[-1]
    numeric = [c for c in varying if c.numeric and (c.word not in _RANK_WORDS or len(c.word) == 1)]
    if len(varying) == 2 and numeric and numeric[0] is varying[0] and _dense_under(varying[1], varying[0]):
        return numeric[0]
    return next((column for column in reversed(named) if len(column.word) > 2), None)


def _go_together(column: _Column, other: _Column) -> bool:
    """True when two columns split the files in the same way."""
    pairs = set(zip(column.values, other.values, strict=True))
    return len(pairs) == len(set(column.values)) == len(set(other.values)) > 1


def _counts_files(column: _Column, size: int) -> bool:
    """True when every file has another value, from zero on, without a wide gap."""
    values = set(column.numbers)
    return len(values) == size > 1 and min(values) == 0 and max(values) < 2 * size


def _dense_under(column: _Column, above: _Column) -> bool:
    under: dict[int | str, set[int]] = {}
    if not column.numeric or len(set(column.values)) < 2:
        return False
    for value, number in zip(above.values, column.numbers, strict=False):
        under.setdefault(value, set()).add(number)
    return len(under) > 1 and all(min(s) == 0 and max(s) < len(s) + 2 for s in under.values())


def _local(columns: list[_Column], node: _Column | None, size: int) -> _Column | None:
    """The column that counts the processes of one machine."""
    for column in columns:
        if column.word in _LOCAL_WORDS and column is not node:
            under = [column] if node is None else [node, column]
            alone = size == 1 and column.word != "cuda"  # cuda10 in one file's name is a release
            if min(column.numbers) == 0 or alone or _dense_under(under[-1], under[0]):
                return column
    for column in columns:
        if column is node or (column.word in _RANK_WORDS and len(column.word) > 1):
            continue
        if node is not None and len(set(column.values)) < size and _dense_under(column, node):
            return column
    return None


def _global(local: _Column, node: _Column | None) -> list[int | None]:
    """Ranks of local ranks: machines count in the order of their names; alone, a local rank is the rank."""
    if node is None:
        return list(local.numbers)
    if len(set(node.values)) == 1:
        return list(local.numbers)
    order = sorted(set(node.values), key=natural)
    width = max(local.numbers) + 1
    return [
        order.index(value) * width + number for value, number in zip(node.values, local.numbers, strict=True)
    ]


def natural(value: int | str) -> tuple[int, str]:
    return (value, "") if isinstance(value, int) else (0, value)


# ---------------------------------------------------------------- pods


def _pod(path: str) -> tuple[str, str, int] | tuple[None, None, None]:
    found = pattern(r"(?:^|/)((?:[a-z0-9]+-)*?)(master|chief|worker|launcher)-(\d+)(?=[._/-]|$)").search(path)
    return (found[1] + found[2], found[2], int(found[3])) if found else (None, None, None)


def _as_pod(place: Place, path: str, pods: set[str | None], said: Ranks, columns: list[_Column]) -> Place:
    """Pods of a training job: the first has a name of its own, so the others count from one."""
    stem, role, number = _pod(path)
    if stem is None or role is None or number is None:
        return place
    host = f"{stem}-{number}"
    if role == "launcher" or said.several:
        return Place(None, place.local_rank, host)
    if said.rank is not None:
        return Place(said.rank, place.local_rank, host)
    if role in _FIRST_PODS:
        return Place(0 if place.rank is None else place.rank, place.local_rank, host)
    base = stem.removesuffix(role)
    first = any(base + other in pods for other in _FIRST_PODS)
    if len([c for c in columns if len(set(c.values)) > 1]) > 1:
        return Place(place.rank, place.local_rank, host)
    return Place(number + 1 if first else number, place.local_rank, host)
