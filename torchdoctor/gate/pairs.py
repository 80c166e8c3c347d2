"""Which of several nodes breaks a job that fails only across nodes: found by testing them in pairs.

A failed pair proves nothing of either node. Its halves are tested again, each with a partner that has worked
with somebody; only who fails with two different partners that work is to blame. Where everything fails that
crosses one switch or one rail, the fabric is to blame and no node is. What was tested comes as files, what to
test next goes out as names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any

from torchdoctor.gate.finding import EXIT, Verdict
from torchdoctor.model import Record, TorchdoctorError, counted
from torchdoctor.records import record, replace

SCHEMA = "torchdoctor.pair/1"
ENDING = ".pair.json"
_MOST_TRIES = 3  # the first pair, and two partners that work
_PARTNERS = 2  # so many that work must fail with a node before it is to blame
_SLOW_SHARE = 0.7  # of the median of the other pairs; a working pair stays above nine tenths of it
_ON_PROCESSORS = "gloo"
_MOST_BYTES = 1 << 20
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child", "pair.py")


class PairError(TorchdoctorError):
    """A file that is no result of a pair, or a list of switches that cannot be read."""


@record(frozen=True, slots=True)
class Trial(Record):
    """One test over nodes. ``passed`` is None where it could not be made: no guilt of anybody.

    ``bandwidth`` is the bus bandwidth in GB/s, 0 where it was not measured. More than two nodes are all of
    them. ``backend`` is that of torch.distributed.
    """

    nodes: tuple[str, ...]
    passed: bool | None
    reason: str = ""
    bandwidth: float = 0.0
    rail: str = ""
    backend: str = ""


@record(frozen=True, slots=True)
class Isolation(Record):
    """Who works, who is to blame and why, what the fabric is to blame for, and of whom nothing is known."""

    working: tuple[str, ...]
    blamed: tuple[tuple[str, str], ...]
    fabric: tuple[str, ...]
    untold: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if self.blamed:
            return Verdict.UNFIT
        return Verdict.INCONCLUSIVE if self.fabric or self.untold else Verdict.FIT

    @property
    def exit_code(self) -> int:
        return EXIT[self.verdict]


def next_round(nodes: Sequence[str], tests: Iterable[Trial]) -> tuple[tuple[str, str], ...]:
    """The pairs to test next, side by side; empty when nothing more can be learned.

    A round uses each node once. Two or three rounds do, however many nodes there are.
    """
    pairs = [one for one in judged(tests) if len(one.nodes) == 2]
    tried = {node: [_other(one, node) for one in pairs if node in one.nodes] for node in nodes}
    if not any(tried.values()):
        return tuple((nodes[at], nodes[at + 1]) for at in range(0, len(nodes) - 1, 2))
    working = _working(pairs)
    suspects = [
        node
        for node in nodes
        if node not in working
        and len(tried[node]) < _MOST_TRIES
        and len(_failed_with(node, pairs, working)) < _PARTNERS
    ]
    free = sorted((node for node in nodes if node in working), key=lambda node: len(tried[node]))
    if not free:  # nobody works with anybody yet: the suspects change their partners
        free = list(suspects)
    found: list[tuple[str, str]] = []
    taken: set[str] = set()
    for node in suspects:
        partner = next(
            (one for one in free if one not in taken and one != node and one not in tried[node]), None
        )
        if partner is not None and node not in taken:
            found.append((node, partner))
            taken |= {node, partner}
    return tuple(found)


def isolate(
    nodes: Sequence[str], tests: Iterable[Trial], switches: Mapping[str, str] | None = None
) -> Isolation:
    """What the tests say of the nodes. ``switches`` names the switch of each node, where that is known."""
    every = judged(tests)
    fabric, rest = _without_bad_rails([one for one in every if len(one.nodes) == 2])
    working = _working(rest)
    failed = [one for one in rest if one.passed is False]
    if failed and not working:
        said = "no pair works: the network, or something all nodes share"
        return Isolation((), (), (*fabric, said), tuple(nodes))
    switch_findings, spared = _bad_switches(rest, switches or {})
    fabric += switch_findings
    blamed = []
    for node in nodes:
        with_whom = _failed_with(node, rest, working)
        if node not in working and node not in spared and len(with_whom) >= _PARTNERS:
            last = next(one.reason for one in reversed(failed) if node in one.nodes)
            words = f"fails with {', '.join(sorted(with_whom))}, which work with others"
            blamed.append((node, f"{words}{': ' + last if last else ''}"))
    known = {*working, *spared, *(name for name, _ in blamed)}
    notes = [
        f"{one.nodes[0]} and {one.nodes[1]} failed together and work with others: their path, or chance"
        for one in failed
        if all(node in working for node in one.nodes)
    ]
    notes += [
        f"{' and '.join(one.nodes)}: {words}; not judged: over gloo it also depends on busy CPUs"
        for at, one in enumerate(every)
        if one.backend == _ON_PROCESSORS and (words := _slow(at, every))
    ]
    untold = tuple(node for node in nodes if node not in known)
    gang = [one for one in every if len(one.nodes) > 2]
    if gang and gang[-1].passed is False and not blamed and not untold:
        why = f": {gang[-1].reason}" if gang[-1].reason else ""
        everybody = counted(len(gang[-1].nodes), "node")
        fabric.append(f"every pair works, but all {everybody} together do not{why}")
    return Isolation(
        tuple(node for node in nodes if node in working), tuple(blamed), tuple(fabric), untold, tuple(notes)
    )


def judged(tests: Iterable[Trial]) -> list[Trial]:
    """The tests, those that are much slower than the others of their kind counted as failed.

    Sums over gloo are not counted so: their speed is that of processors, which other programs use as well.
    """
    found = list(tests)
    for at, one in enumerate(found):
        if one.backend != _ON_PROCESSORS and (words := _slow(at, found)):
            found[at] = replace(one, passed=False, reason=words)
    return found


def _slow(at: int, tests: Sequence[Trial]) -> str:
    """What is said of a test that passed and was much slower than the others of its kind."""
    one = tests[at]
    others = [
        other.bandwidth
        for number, other in enumerate(tests)
        if number != at
        and other.bandwidth
        and (len(other.nodes), other.rail, other.backend) == (len(one.nodes), one.rail, one.backend)
    ]
    if not (one.passed and one.bandwidth and others and one.bandwidth < _SLOW_SHARE * median(others)):
        return ""
    return f"{one.bandwidth:.4g} GB/s, {median(others):.4g} GB/s between others"


def _other(one: Trial, node: str) -> str:
    return one.nodes[0] if one.nodes[1] == node else one.nodes[1]


def _working(pairs: Iterable[Trial]) -> set[str]:
    return {node for one in pairs if one.passed for node in one.nodes}


def _failed_with(node: str, pairs: Iterable[Trial], working: set[str]) -> set[str]:
    """The partners that failed with this node and work with others."""
    failed = {_other(one, node) for one in pairs if node in one.nodes and one.passed is False}
    return failed & working


def _without_bad_rails(pairs: list[Trial]) -> tuple[list[str], list[Trial]]:
    """Rails on which nothing works while another one does; and the tests without them."""
    by_rail = {
        rail: list(found)
        for rail, found in groupby(sorted(pairs, key=lambda one: one.rail), key=lambda one: one.rail)
    }
    some_work = any(one.passed for one in pairs)
    bad = [
        rail
        for rail, found in by_rail.items()
        if rail
        and some_work
        and _all_failed(found)
        and len({node for one in found for node in one.nodes}) > 2
    ]
    said = [f"no pair works over rail {rail}" for rail in bad]
    return said, [one for one in pairs if one.rail not in bad]


def _bad_switches(pairs: list[Trial], switches: Mapping[str, str]) -> tuple[list[str], set[str]]:
    """Switches none of whose nodes works with anybody, and these nodes: nobody of them is to blame."""
    said: list[str] = []
    spared: set[str] = set()
    for switch in sorted(set(switches.values())):
        behind = {node for node, of in switches.items() if of == switch}
        found = [one for one in pairs if behind & set(one.nodes)]
        concerned = {node for one in found for node in one.nodes} & behind
        if len(concerned) > 1 and _all_failed(found):
            said.append(
                f"no node behind switch {switch} works with any other node: {', '.join(sorted(concerned))}"
            )
            spared |= concerned
    return said, spared


def _all_failed(found: list[Trial]) -> bool:
    told = [one for one in found if one.passed is not None]
    return bool(told) and not any(one.passed for one in told)


def read(folder: str) -> tuple[Trial, ...]:
    """The results in a folder, oldest first. Raises PairError for a folder or a file that cannot be read."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(ENDING) and name[0] != ".")
    except OSError as error:
        raise PairError(f"{folder}: {error.strerror}; name the folder with the pairs' results") from None
    found = [_read(os.path.join(folder, name)) for name in names]
    return tuple(one for _, one in sorted(found, key=lambda item: item[0]))


def _read(path: str) -> tuple[float, Trial]:
    try:
        with open(path, "rb") as stream:
            data: Any = json.loads(stream.read(_MOST_BYTES))
        if data["schema"] != SCHEMA or data["passed"] not in (True, False, None):
            raise ValueError("a different schema")
        nodes = tuple(str(one) for one in data["nodes"])
        if len(nodes) < 2 or len(set(nodes)) != len(nodes):
            raise ValueError("not two nodes")
        bandwidth = float(data.get("bandwidth") or 0.0)
        reason = " ".join(str(data.get("reason") or "").split())[:300]
        rail, backend = str(data.get("rail") or ""), str(data.get("backend") or "")
        tested = Trial(nodes, data["passed"], reason, bandwidth, rail, backend)
        return float(data.get("time_s") or 0.0), tested
    except OSError as error:
        raise PairError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PairError(f"{path}: no result of schema {SCHEMA}: {error}") from None


def switches_of(path: str) -> dict[str, str]:
    """The switch of each node: a line ``switch: nodes`` each, or Slurm's topology.conf. Raises PairError."""
    import re

    from torchdoctor.gate.hostlist import hosts_of

    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PairError(f"{path}: cannot be read: {error}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.split("#")[0].strip()
        slurm = re.match(r"SwitchName=(\S+)\s+(?:.*\s)?Nodes=(\S+)", text, re.IGNORECASE)
        switch, colon, nodes = (slurm[1], ":", slurm[2]) if slurm else text.partition(":")
        if not text or (text.lower().startswith("switchname=") and not slurm):
            continue  # a switch of switches
        if not colon or not nodes.strip():
            raise PairError(
                f"{path}:{number}: expected 'switch: nodes' or SwitchName=… Nodes=…, found {text!r}"
            )
        found |= dict.fromkeys(hosts_of(nodes.strip()), switch.strip())
    return found


def to_text(found: Isolation) -> list[str]:
    """For people: who is to blame first."""
    lines = [f"x {node}: {why}" for node, why in found.blamed]
    lines += [f"x the fabric: {words}" for words in found.fabric]
    lines += [f"? {node}: undetermined, no working node was free to test it" for node in found.untold]
    lines += [f"! {words}" for words in found.notes]
    works = counted(len(found.working), "node works", "nodes work")
    lines.append(f"{works}, {counted(len(found.blamed), 'is to blame', 'are to blame')}")
    if found.blamed:
        lines += ["", f"--exclude={','.join(node for node, _ in found.blamed)}"]
    return lines


def to_json(found: Isolation) -> str:
    """One line of ASCII JSON."""
    data = {
        "schema": "torchdoctor.pairs/1",
        "verdict": found.verdict.value,
        "exit_code": found.exit_code,
        "exclude": [node for node, _ in found.blamed],
        "working": list(found.working),
        "blamed": dict(found.blamed),
        "fabric": list(found.fabric),
        "untold": list(found.untold),
        "notes": list(found.notes),
    }
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))
