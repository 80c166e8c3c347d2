"""The verdicts of all nodes of a job as one: a table, what differs between nodes, and whom to leave out.

Every node writes its own file; nothing here talks to a node. A node whose file is missing, old or broken is
named, and counts as not told: silence is no health.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torchdoctor.gate import pairs, verdict_file
from torchdoctor.gate.finding import EXIT, Verdict
from torchdoctor.gate.hostlist import fold
from torchdoctor.model import Record, TorchdoctorError, counted
from torchdoctor.records import record, replace

_MOST_FILES = 100_000
_LEAST_NODES = 3  # of two that differ nobody is the one that differs
_ABSENT = "no verdict"
_ORDER = (Verdict.UNFIT, Verdict.ENVIRONMENT, Verdict.INCONCLUSIVE, Verdict.FIT)


class FleetError(TorchdoctorError):
    """A folder without verdicts."""


@record(frozen=True, slots=True)
class Node(Record):
    """What one node said; ``verdict`` is None for one that said nothing that can be used, ``reason`` why."""

    name: str
    verdict: Verdict | None
    reason: str
    tier: str = ""
    seconds: float | None = None
    time_s: float = 0.0
    file: str = ""
    marks: tuple[tuple[str, str], ...] = ()  # the worst of each check that did not just pass: ✗, ! or ?
    fingerprint: Mapping[str, Any] | None = None


@record(frozen=True, slots=True)
class Odd(Record):
    """A value that most nodes share and these do not."""

    what: str
    usual: str
    nodes: tuple[tuple[str, str], ...]


@record(frozen=True, slots=True)
class Fleet(Record):
    """All nodes, worst first."""

    nodes: tuple[Node, ...]
    odd: tuple[Odd, ...] = ()
    notes: tuple[str, ...] = ()
    fabric: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst one; a node that said nothing, or a fault of the fabric, makes it inconclusive."""
        found = {node.verdict or Verdict.INCONCLUSIVE for node in self.nodes}
        if self.fabric:
            found.add(Verdict.INCONCLUSIVE)
        return next(one for one in _ORDER if one in found)

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]

    @property
    def exclude(self) -> tuple[str, ...]:
        """The nodes to leave out: those that are to blame themselves, nobody else."""
        return tuple(node.name for node in self.nodes if node.verdict is Verdict.UNFIT)


def merge(
    folder: str,
    expected: Sequence[str] = (),
    newer_than_s: float = 0.0,
    switches: Mapping[str, str] | None = None,
) -> Fleet:
    """Read every ``*.json`` of a folder. ``expected`` are nodes that must be there.

    Files written before ``newer_than_s`` (seconds since the epoch) are of an earlier job and count as
    missing. Of several verdicts on one node the newest holds. ``switches`` is for tests of pairs that lie
    there too. Raises FleetError, PairError.
    """
    try:
        names = sorted(
            name
            for name in os.listdir(folder)
            if name.endswith(".json") and not name.startswith(".") and not name.endswith(pairs.ENDING)
        )
    except OSError as error:
        raise FleetError(f"{folder}: {error.strerror}; name the folder that the nodes wrote to") from None
    if not names and not expected:
        raise FleetError(f"{folder}: holds no verdict (*.json, as torchdoctor gate -o writes them)")
    found: dict[str, Node] = {}
    notes: list[str] = []
    for name in names[:_MOST_FILES]:
        node = _read(os.path.join(folder, name), name.removesuffix(".json"))
        if node.verdict is not None and node.time_s < newer_than_s:
            notes.append(f"{name}: from an earlier run, ignored")
            continue
        held = found.get(node.name)
        if held is not None:
            notes.append(f"{node.name}: several verdicts; the newest counts")
        if held is None or node.time_s >= held.time_s:
            found[node.name] = node
    for name in expected:
        if name not in found:
            found[name] = Node(name, None, _ABSENT)
    isolation = _of_pairs(folder, found, switches)
    notes += isolation.notes
    ranked = sorted(found.values(), key=_rank)
    notes += _shared_caches(found)
    return Fleet(tuple(ranked), _odd_ones(found), tuple(dict.fromkeys(notes)), isolation.fabric)


def _of_pairs(folder: str, found: dict[str, Node], switches: Mapping[str, str] | None) -> pairs.Isolation:
    """Tests of pairs that lie there too: who is to blame after them is unfit, whatever it says of itself."""
    tests = pairs.read(folder)
    isolation = pairs.isolate(sorted({node for one in tests for node in one.nodes}), tests, switches)
    for name, why in isolation.blamed:
        node = found.get(name, Node(name, None, ""))
        if node.verdict is not Verdict.UNFIT:
            found[name] = replace(node, verdict=Verdict.UNFIT, reason=f"td:pair {why}")
    return isolation


def _rank(node: Node) -> tuple[int, list[int | str]]:
    parts: list[int | str] = []
    for part in re.split(r"(\d+)", node.name):
        parts.extend((1, int(part[:18])) if part.isdecimal() else (0, part))
    return _ORDER.index(node.verdict or Verdict.INCONCLUSIVE), parts


def _read(path: str, name: str) -> Node:
    try:
        data = verdict_file.read(path)
        seconds = data.get("seconds", {}).get("total")
        fingerprint = data.get("fingerprint")
        return Node(
            name,
            Verdict(data["verdict"]),
            " ".join(str(data.get("reason", "")).split()),
            str(data.get("tier", "")),
            float(seconds) if isinstance(seconds, (int, float)) else None,
            float(data.get("time_s") or 0.0),
            path,
            _marks(data),
            fingerprint if isinstance(fingerprint, dict) else None,
        )
    except verdict_file.VerdictError as error:
        return Node(name, None, str(error), file=path)
    except (ValueError, TypeError, AttributeError):
        return Node(name, None, "is broken", file=path)


def _marks(data: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    said = [(one, "?") for one in verdict_file.objects(data, "not_checked")]
    said += [
        (one, "✗" if one.get("weight") == "fail" and not one.get("suppressed") else "!")
        for one in verdict_file.objects(data, "findings")
        if one.get("weight") in ("fail", "warn")
    ]
    for one, mark in said:
        check = sys.intern(str(one.get("check")))
        found[check] = min(mark, found.get(check, mark), key="✗!?".index)
    return tuple(sorted(found.items()))


def _odd_ones(found: Mapping[str, Node]) -> tuple[Odd, ...]:
    """Versions and settings in which a minority differs from most: a job wants them the same everywhere.

    What a node did not say is no difference; a name that only some nodes set is one.
    """
    values: dict[str, dict[str, str]] = {}
    for name, node in found.items():
        for key, value in (node.fingerprint or {}).items():
            if isinstance(value, dict):
                values.setdefault(key, {})[name] = _ABSENT
                for inner, one in value.items():
                    values.setdefault(f"{key}.{inner}", {})[name] = json.dumps(one, sort_keys=True)
            elif value not in (None, "", []):
                values.setdefault(key, {})[name] = json.dumps(value, sort_keys=True)
    odd: list[Odd] = []
    for key, told in sorted(values.items()):
        of_group = values.get(key.partition(".")[0], {}) if "." in key else told
        by_node = {name: told.get(name, "not set") for name in of_group}
        (usual, count), *others = Counter(by_node.values()).most_common()
        if others and len(by_node) >= _LEAST_NODES and count * 2 > len(by_node):
            minority = tuple(
                (name, _plain(value)) for name, value in sorted(by_node.items()) if value != usual
            )
            odd.append(Odd(key, _plain(usual), minority))
    return tuple(odd)


def _shared_caches(found: Mapping[str, Node]) -> list[str]:
    """Caches on a network's disk that nodes with different GPUs share: they build over each other there."""
    users: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, node in found.items():
        shared = (node.fingerprint or {}).get("shared_caches")
        arches = (node.fingerprint or {}).get("architectures")
        if isinstance(shared, dict) and isinstance(arches, list) and arches:
            for what, share in shared.items():
                kind = ", ".join(f"sm_{str(one).replace('.', '')}" for one in arches)
                users.setdefault((str(what), str(share)), {}).setdefault(kind, []).append(name)
    return [
        f"the cache of {what} ({share}) is shared by different GPUs: "
        + "; ".join(f"{kind} on {', '.join(sorted(names)[:4])}" for kind, names in sorted(kinds.items()))
        for (what, share), kinds in sorted(users.items())
        if len(kinds) > 1 and what != "temporary"
    ]


def _plain(value: str) -> str:
    return value.strip('"')


def told(node: Node) -> str:
    """Its verdict in a word."""
    return node.verdict.value if node.verdict is not None else "undetermined"


def table(fleet: Fleet, width: int = 100) -> list[str]:
    """The table for people: node, verdict, seconds, reason; then what differs, and whom to leave out."""
    column = max(len("node"), *(len(node.name) for node in fleet.nodes))
    lines = [f"{'node':{column}}  verdict       seconds  reason"]
    for node in fleet.nodes:
        seconds = f"{node.seconds:7.1f}" if node.seconds is not None else f"{'-':>7}"
        lines.append(
            f"{node.name:{column}}  {told(node):12}  {seconds}  {node.reason}"[: max(width, 60)].rstrip()
        )
    counts = Counter(map(told, fleet.nodes))
    summary = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    lines += ["", f"{counted(len(fleet.nodes), 'node')}: {summary}"]
    for odd in fleet.odd:
        others = ", ".join(f"{name} {value}" for name, value in odd.nodes[:6])
        more = f" and {len(odd.nodes) - 6} more" if len(odd.nodes) > 6 else ""
        lines.append(f"{odd.what} is {odd.usual} on most, but: {others}{more}")
    lines += [f"the fabric: {one}" for one in fleet.fabric]
    lines.extend(fleet.notes)
    if fleet.exclude:
        lines += ["", f"--exclude={fold(fleet.exclude)}"]
    return lines


def to_json(fleet: Fleet) -> str:
    """One line of ASCII JSON."""
    data = {
        "schema": "torchdoctor.fleet/1",
        "verdict": fleet.verdict.value,
        "exit_code": fleet.exit_code,
        "exclude": list(fleet.exclude),
        "nodes": [
            {
                "node": node.name,
                "verdict": node.verdict.value if node.verdict is not None else None,
                "reason": node.reason,
                "tier": node.tier or None,
                "seconds": node.seconds,
                "file": node.file or None,
            }
            for node in fleet.nodes
        ],
        "odd": [{"what": odd.what, "usual": odd.usual, "nodes": dict(odd.nodes)} for odd in fleet.odd],
        "fabric": list(fleet.fabric),
        "notes": list(fleet.notes),
    }
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
