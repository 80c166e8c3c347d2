"""A small world in which jobs fail: machines with clocks of their own, ranks that train in step and die.

The world decides what happens when; the texts are what real ranks printed in such cases. Nothing in here
knows how the answer is looked for: the label of an incident is what was done to it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

from incidents import texts
from incidents.texts import EPOCH

KINDS = (
    "oom", "assert", "dataset", "user", "ecc", "sigkill", "sigsegv", "branch", "uneven", "slow", "limit",
    "two-causes", "steps-apart", "stuck", "same-on-all", "at-once", "half-and-half",
    "late",
)  # fmt: skip
_STAMPS = (
    "{at:%Y-%m-%d %H:%M:%S},{ms:03d} INFO trainer: {text}",
    "[{at:%Y-%m-%d %H:%M:%S},{ms:03d}][train][INFO] - {text}",
    "{at:%Y-%m-%d %H:%M:%S} | INFO | {text}",
    "[{at:%m/%d %H:%M:%S}.{ms:03d}] {text}",
    "{text}",
)
_STEPS = (
    "epoch 3 step {step}/2000 loss {loss:.4f}",
    "step={step} loss={loss:.4f} lr=3e-4",
    "iter {step}: loss {loss:.3f}",
)


@dataclass
class Written:
    """One line: when in truth, by whom, to which stream."""

    at: float
    rank: int | None
    host: str
    text: str
    error: bool = True


@dataclass
class Incident:
    """What happened, and who is to be named. ``rank`` is None where no rank failed by itself."""

    name: str
    kind: str
    ranks: int
    hosts: list[str]
    lines: list[Written]
    rank: int | None
    tie: tuple[int, ...] = ()


class World:
    """A job of ``ranks`` processes on machines of ``per_host``; clocks are wrong by ``skew_s`` at most."""

    def __init__(self, name: str, seed: int, ranks: int, per_host: int, skew_s: float = 1.0) -> None:
        self.random = random.Random(seed)
        self.name = name
        self.ranks = ranks
        self.per_host = per_host
        word = self.random.choice(["node{:02d}", "gpu-{:03d}", "hgx{}", "cn-{:04d}"])
        base = self.random.choice([0, 1, 7, 31])
        self.hosts = [word.format(base + i) for i in range((ranks + per_host - 1) // per_host)]
        self.skew = {host: self.random.uniform(-skew_s, skew_s) for host in self.hosts}
        self.lines: list[Written] = []
        self.stamp = self.random.choice(_STAMPS)
        self.step_text = self.random.choice(_STEPS)
        self.pace = self.random.choice([0.4, 1.1, 2.7])
        self.every = self.random.choice([1, 5, 10])
        self.only_zero = self.random.random() < 0.3
        self.prefix = self.random.random() < 0.7
        self.agents = True
        self.ended: dict[int, tuple[int, float]] = {}  # rank -> exit code, true time

    def host(self, rank: int) -> str:
        return self.hosts[rank // self.per_host]

    def clock(self, rank: int, at: float) -> float:
        """What the clock of the rank's machine shows at a true time."""
        return at + self.skew[self.host(rank)]

    def say(self, rank: int, at: float, lines: str | list[str], error: bool = True) -> None:
        for offset, text in enumerate([lines] if isinstance(lines, str) else lines):
            self.lines.append(Written(at + offset * 1e-5, rank, self.host(rank), text, error))

    def log(self, rank: int, at: float, text: str) -> None:
        shown = EPOCH + timedelta(seconds=self.clock(rank, at))
        self.say(rank, at, self.stamp.format(at=shown, ms=shown.microsecond // 1000, text=text), error=False)

    def train(self, steps: int, without: dict[int, int] | None = None) -> float:
        """All ranks train in step; ``without`` says after which step a rank stops. Returns the true time."""
        start = 20.0
        for rank in range(self.ranks):
            self.log(rank, 3.0 + self.random.uniform(0, 2), f"rank {rank} of {self.ranks} is ready")
        for step in range(1, steps + 1):
            at = start + step * self.pace
            for rank in range(self.ranks):
                if without and step > without.get(rank, steps):
                    continue
                if step % self.every == 0 and not (self.only_zero and rank):
                    loss = 4.0 / (1 + 0.01 * step)
                    text = self.step_text.format(step=step, loss=loss)
                    self.log(rank, at + self.random.uniform(0.0, 0.02), text)
        return start + steps * self.pace + self.pace * 0.5

    # ------------------------------------------------------------ what goes wrong on a rank

    def fail(self, rank: int, kind: str, at: float) -> None:
        """The rank's own failure."""
        shown = self.clock(rank, at)
        code = 1
        if kind == "oom":
            self.say(rank, at, texts.out_of_memory(rank, self.prefix))
        elif kind == "assert":
            self.say(rank, at, texts.label_range(rank, shown))
            code = -6
        elif kind == "dataset":
            self.say(rank, at, texts.dataset_error(rank))
        elif kind == "user":
            name = self.random.choice(["proj.quota.QuotaSpent", "proj.errors.EmptyShard", "AssertionError"])
            self.say(rank, at, texts.own_exception(rank, self.prefix, name, "batch 1203 has 0 tokens"))
        elif kind == "ecc":
            self.say(rank, at, texts.memory_fault(rank))
        elif kind == "illegal":
            self.say(rank, at, texts.illegal_access(rank, self.prefix))
        elif kind == "sigsegv":
            self.say(rank, at, texts.segmentation_fault())
            code = -11
        elif kind == "sigkill":
            code = -9
        self.ended[rank] = (code, at)

    def echo(self, dead: set[int], at: float, seq: int) -> None:
        """The other ranks notice: some give up after minutes, some lose the connection, some are ended."""
        way = self.random.choice(["closed", "remote", "watchdog", "terminated"])
        silent = self.random.random() < 0.3
        for rank in range(self.ranks):
            if rank in dead or rank in self.ended:
                continue
            later = at + self.random.uniform(0.3, 2.5)
            if way == "watchdog":
                later = at + 600 + self.random.uniform(0.0, 0.4)
                self.give_up(rank, later, seq, "ALLREDUCE", 26214400)
            elif way == "terminated" or (silent and self.random.random() < 0.5):
                self.ended[rank] = (-15, later)
            else:
                say = texts.peer_closed if way == "closed" else texts.nccl_remote
                self.say(rank, later, say(rank, self.prefix))
                self.ended[rank] = (1, later)

    def give_up(self, rank: int, at: float, seq: int, op: str, numel: int) -> None:
        """After ten minutes in one collective the rank's watchdog ends its process."""
        self.say(rank, at, texts.watchdog(rank, self.clock(rank, at), seq, op, numel, 600))
        self.ended[rank] = (-6, at + 66)

    def agents_report(self) -> None:
        """Every machine's launcher sums up its own processes, with its own clock and its own root cause."""
        if not self.agents:
            return
        for number, host in enumerate(self.hosts):
            members = [rank for rank in range(self.ranks) if self.host(rank) == host and rank in self.ended]
            if not members:
                continue
            seen = {rank: self.ended[rank][1] for rank in members}
            first = min(seen.values())
            # the agent looks several times a second; what ended since then looks alike
            skew, base = self.skew[host], number * self.per_host
            ends = [
                (rank, rank - base, self.ended[rank][0], float(int(max(seen[rank], first + 0.1) + skew)))
                for rank in members
            ]
            last = max(seen.values()) + 1.0
            failed = min(ends, key=lambda end: (end[3], end[1]))
            lines = [
                texts.agent("sigterm", last + skew, 4000 + rank, rank - base)
                for rank in members
                if self.ended[rank][0] == -15
            ]
            lines.append(texts.agent("failed", last + skew, 4000 + failed[0], failed[1], failed[2]))
            lines += texts.box(ends, host)
            for offset, text in enumerate(lines):
                self.lines.append(Written(last + offset * 1e-5, None, host, text))

    def srun_reports(self, cancels: bool) -> None:
        """srun tells the ends of tasks that are ranks; the first bad one may end all others."""
        first = min(self.ended, key=lambda rank: self.ended[rank][1])
        code, at = self.ended[first]
        if cancels:
            for rank in self.ended:
                if self.ended[rank][1] > at:
                    self.ended[rank] = (-15, at + 1.0)
            self.lines = [line for line in self.lines if line.rank == first or line.at <= at + 1.0]
            for rank in set(range(self.ranks)) - set(self.ended):
                self.ended[rank] = (-15, at + 1.0)
        told: dict[tuple[str, int], list[int]] = {}
        for rank, (how, _) in self.ended.items():
            if rank != first:
                told.setdefault((self.host(rank), how), []).append(rank)

        def tell(after: float, text: str) -> None:
            self.lines.append(Written(after, None, self.hosts[0], text))

        tell(at + 0.2, texts.step_ended(self.host(first), [first], code))
        if cancels:
            tell(at + 0.3, "srun: Terminating StepId=81234.0")
            tell(at + 0.4, texts.step_cancelled(self.hosts[0], self.clock(0, at + 0.4)))
        for (host, how), ranks in told.items():
            tell(max(self.ended[rank][1] for rank in ranks) + 0.5, texts.step_ended(host, ranks, how))

    # ------------------------------------------------------------ incidents

    def incident(self, kind: str) -> Incident:
        """Let one incident of this kind happen. A world is good for one."""
        build = getattr(self, "_" + kind.replace("-", "_"), None)
        victim = self.random.randrange(self.ranks)
        steps = self.random.randrange(40, 90)
        if build is None:
            at = self.train(steps)
            self.fail(victim, kind, at)
            self.echo({victim}, at, 4 * steps)
            self.agents_report()
            return self._made(kind, victim)
        return build(victim, steps)

    def _made(self, kind: str, rank: int | None, tie: tuple[int, ...] = ()) -> Incident:
        self.lines.sort(key=lambda line: line.at)
        return Incident(self.name, kind, self.ranks, self.hosts, self.lines, None if tie else rank, tie)

    def _collective(self, ranks: list[int], at: float, seq: int, op: str, numel: int) -> None:
        for rank in ranks:
            self.give_up(rank, at + 600 + self.random.uniform(0.0, 0.4), seq, op, numel)

    def _branch(self, victim: int, steps: int) -> Incident:
        """One rank calls a collective of its own under a test of its rank."""
        at = self.train(steps)
        others = [rank for rank in range(self.ranks) if rank != victim]
        self._collective([victim], at, 4 * steps, "BROADCAST", 5)
        self._collective(others, at, 4 * steps, "ALLREDUCE", 26214400)
        self.agents_report()
        return self._made("branch", victim)

    def _uneven(self, victim: int, steps: int) -> Incident:
        """One rank has fewer batches, ends its epoch and waits at a barrier."""
        self.only_zero = False
        short = steps - self.random.randrange(3, 12)
        at = self.train(steps - 1, dict.fromkeys(range(self.ranks), short))
        self.log(victim, at, "end of epoch 3, validating")
        others = [rank for rank in range(self.ranks) if rank != victim]
        self._collective([victim], at, 4 * short + 1, "ALLREDUCE", 1)
        self._collective(others, at, 4 * short + 1, "ALLREDUCE", 26214400)
        self.agents_report()
        return self._made("uneven", victim)

    def _slow(self, victim: int, steps: int) -> Incident:
        """One rank is busy with something long; the others give up waiting for it."""
        at = self.train(steps)
        others = [rank for rank in range(self.ranks) if rank != victim]
        self._collective(others, at, 4 * steps, "ALLREDUCE", 26214400)
        later = at + 601
        if self.random.random() < 0.5:
            self.say(victim, later, texts.told(victim, self.clock(victim, later), others[0], 4 * steps - 1))
        self.ended[victim] = (-15, later + 67)
        self.agents_report()
        return self._made("slow", victim)

    def _limit(self, victim: int, steps: int) -> Incident:
        """The scheduler ends the job."""
        at = self.train(steps)
        for host in self.hosts[:1]:
            for offset, text in enumerate(texts.time_limit(host, at + self.skew[host])):
                self.lines.append(Written(at + offset * 1e-5, None, host, text))
        return self._made("limit", None, tuple(range(self.ranks)))

    def _two_causes(self, victim: int, steps: int) -> Incident:
        """Two ranks fail of their own, one plainly later than the other."""
        while self.stamp == "{text}":
            self.stamp = self.random.choice(_STAMPS)
        self.only_zero, self.every = False, 1
        second = self.random.choice([rank for rank in range(self.ranks) if rank != victim])
        gap = self.random.uniform(12.0, 40.0)
        # a rank that waits for nobody goes on for a while, as in evaluation or with gradients accumulated
        extra = int(gap / self.pace)
        at = self.train(steps + extra, {victim: steps})
        self.fail(victim, self.random.choice(["oom", "user", "assert"]), 20.0 + (steps + 0.4) * self.pace)
        self.fail(second, self.random.choice(["dataset", "user", "ecc"]), at)
        self.echo({victim, second}, at, 4 * steps)
        if self.random.random() < 0.5:
            self.agents_report()
        return self._made("two-causes", victim)

    def _steps_apart(self, victim: int, steps: int) -> Incident:
        """Two ranks fail of their own within less than the clocks are sure of, but some steps apart."""
        self.only_zero, self.every, self.pace = False, 1, 0.4
        second = self.random.choice([rank for rank in range(self.ranks) if rank != victim])
        late = self.random.randrange(2, 4)
        at = self.train(steps + late, {victim: steps})
        self.fail(victim, self.random.choice(["oom", "user"]), 20.0 + (steps + 0.4) * self.pace)
        self.fail(second, self.random.choice(["oom", "user"]), at)
        self.echo({victim, second}, at, 4 * steps)
        return self._made("steps-apart", victim)

    def _stuck(self, victim: int, steps: int) -> Incident:
        """Nothing fails: one rank hangs in its own code, and somebody takes the stacks of all of them."""
        at = self.train(steps)
        for rank in range(self.ranks):
            self.say(rank, at + 300, texts.stack_of(rank == victim))
        return self._made("stuck", victim)

    def _same_on_all(self, victim: int, steps: int) -> Incident:
        """A fault of the program that all ranks meet at once."""
        for rank in range(self.ranks):
            at = 5.0 + self.random.uniform(0.0, 0.3)
            self.say(rank, at, texts.own_exception(rank, self.prefix, "KeyError", "'width'"))
            self.ended[rank] = (1, at + 0.1)
        self.agents_report()
        return self._made("same-on-all", None, tuple(range(self.ranks)))

    def _missing(self, victim: int, steps: int) -> Incident:
        """A file that no rank finds."""
        for rank in range(self.ranks):
            at = 5.0 + self.random.uniform(0.0, 0.3)
            self.say(rank, at, texts.missing_file(rank, self.prefix))
            self.ended[rank] = (1, at + 0.1)
        return self._made("missing", None, tuple(range(self.ranks)))

    def _late(self, victim: int, steps: int) -> Incident:
        """One rank is busy for eleven minutes, then goes on alone; its watchdog ends it after the others."""
        at = self.train(steps)
        others = [rank for rank in range(self.ranks) if rank != victim]
        self._collective(others, at, 4 * steps, "ALLREDUCE", 26214400)
        later = at + 660 + self.random.uniform(0.0, 60.0)
        self._collective([victim], later, 4 * steps + self.random.randrange(1, 4), "ALLREDUCE", 26214400)
        return self._made("late", victim)

    def _at_once(self, victim: int, steps: int) -> Incident:
        """Two machines meet the same fault in the same moment; their clocks are no help."""
        at = self.train(steps)
        second = (victim + self.per_host) % (self.per_host * len(self.hosts))
        if second >= self.ranks or self.host(second) == self.host(victim):
            second = 0 if self.host(0) != self.host(victim) else self.ranks - 1
        for rank in (victim, second):
            self.fail(rank, "assert", at + self.random.uniform(0.0, 0.05))
        self.echo({victim, second}, at, 4 * steps)
        return self._made("at-once", None, tuple(sorted((victim, second))))

    def _half_and_half(self, victim: int, steps: int) -> Incident:
        """Half of the ranks take one branch, half the other: none is the one that differs out."""
        at = self.train(steps)
        half = self.ranks // 2
        self._collective(list(range(half)), at, 4 * steps, "ALLGATHER", 4096)
        self._collective(list(range(half, 2 * half)), at, 4 * steps, "ALLREDUCE", 26214400)
        return self._made("half-and-half", None, tuple(range(2 * half)))
