"""The table of the inventory: benchmarks/inventory.tsv, whose open shares only shrink."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PLACE = Path(__file__).resolve().parent / "inventory.tsv"
_COLUMNS = ("package", "version", "part", "messages", "internal", "told", "read", "by line", "open", "tick")
_HEAD = """# What published packages can print, and what is said of it: benchmarks/inventory.py writes it.
# internal: no user sees it; told: by a rule; read: package and function, or what it wants; by line: only
# the user's own line has the function; open: the rest; tick: answered as if nothing had failed.
"""


# of 299 real tracebacks that end in C++ below a line of the user's, that line names no function of 87
UNNAMED = 87 / 299


@dataclass(frozen=True, slots=True)
class Row:
    """The messages of one part, Python or native, of a version of a package, by class."""

    package: str
    version: str
    part: str
    messages: int
    internal: int
    told: int
    read: int
    by_line: int
    open: int
    tick: int

    @property
    def seen(self) -> int:
        """Messages that a user can see."""
        return self.messages - self.internal

    @property
    def unread(self) -> float:
        """How many of them are open, those whose function no line names among them."""
        return self.open + self.tick + UNNAMED * self.by_line

    @property
    def share(self) -> float:
        """How many percent of what users see is open."""
        return 100 * self.unread / self.seen if self.seen else 0.0


def row(package: str, version: str, part: str, kinds: Iterable[str]) -> Row:
    """The row of the classes of its messages."""
    count = Counter(kinds)
    return Row(package, version, part, sum(count.values()), *(count[name] for name in _COLUMNS[4:]))


def read(place: Path = PLACE) -> list[Row]:
    """The rows of the file; none where there is no file."""
    if not place.exists():
        return []
    lines = [line for line in place.read_text("utf-8").splitlines() if line and line[0] != "#"]
    cells = [line.split("\t") for line in lines[1:]]
    return [Row(one[0], one[1], one[2], *map(int, one[3:])) for one in cells]


def text(rows: Iterable[Row]) -> str:
    """The file of these rows."""
    lines = ["\t".join(_COLUMNS)]
    for one in sorted(rows, key=lambda one: (one.package, one.part, _number(one.version))):
        counts = (one.messages, one.internal, one.told, one.read, one.by_line, one.open, one.tick)
        lines.append("\t".join((one.package, one.version, one.part, *map(str, counts))))
    return _HEAD + "\n".join(lines) + "\n"


def grown(before: Iterable[Row], now: Iterable[Row]) -> list[str]:
    """Where the open share is larger than it was, of that version or else of the newest before it."""
    known: dict[tuple[str, str], list[Row]] = {}
    for one in before:
        known.setdefault((one.package, one.part), []).append(one)
    found = []
    for one in now:
        earlier = sorted(known.get((one.package, one.part), ()), key=lambda old: _number(old.version))
        same = [old for old in earlier if old.version == one.version] or earlier
        if same and one.share > same[-1].share + 0.05:
            was = f"{same[-1].share:.1f} % of {same[-1].version}"
            found.append(f"{one.package} {one.version} {one.part}: {one.share:.1f} % open, it was {was}")
    return found


def packages(rows: Iterable[Row]) -> dict[str, float]:
    """How many percent of what users see is open, by package and version, its parts together."""
    seen: Counter[str] = Counter()
    left: dict[str, float] = defaultdict(float)
    for one in rows:
        seen[f"{one.package} {one.version}"] += one.seen
        left[f"{one.package} {one.version}"] += one.unread
    return {name: 100 * left[name] / count for name, count in seen.items() if count}


def shown(rows: Iterable[Row]) -> str:
    """The rows for a reader, with the share of each class in what users see."""
    head = f"{'package':<34}{'part':<8}{'all':>7}{'internal':>10}{'seen':>7}"
    lines = [f"{head}  told  read  line  open"]
    for one in sorted(rows, key=lambda one: (one.package, one.part, _number(one.version))):
        shares = (100 * count / max(one.seen, 1) for count in (one.told, one.read, one.by_line))
        percent = "".join(f"{share:5.0f}%" for share in (*shares, one.share))
        ticks = f"  {one.tick} answered with a tick" if one.tick else ""
        name = f"{one.package} {one.version}"
        lines.append(
            f"{name:<34}{one.part:<8}{one.messages:>7}{one.internal:>10}{one.seen:>7}{percent}{ticks}"
        )
    return "\n".join(lines)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdecimal())
