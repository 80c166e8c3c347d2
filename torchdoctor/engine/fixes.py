"""What a rule advises this reader: gated and ordered by his surroundings, with the values of the message."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from torchdoctor.engine import commands, launch, releases, surroundings
from torchdoctor.engine.conditions import as_text, holds
from torchdoctor.engine.wording import COMMANDS, asked, filled, first_known, of_program, to_put_in
from torchdoctor.model import Fact, Fix, State
from torchdoctor.patterns import search
from torchdoctor.records import replace
from torchdoctor.typed import is_python

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torchdoctor.catalog.rule import Condition, Rule, RuleText
    from torchdoctor.engine.factbook import TextFacts
    from torchdoctor.engine.finding import Finding, Occurrence
    from torchdoctor.engine.surroundings import Surroundings

_PLACES = 8
_INDEXED = ("index-url", "--torch-backend", "-f http", "://")
# what rules write for a thing of the reader's, and the fact that names it
_NAMED = (
    ("MAIN_PID", "ps.dumped"),
    ("WORKER_PID", "ps.child"),
    ("CONTAINER", "context.container"),
)
_INSTALLERS = r"\b(?:pip install|uv|conda|apt-get)\b"
_CONTAINERS = frozenset({"docker", "podman", "kubernetes"})
# where a .sif has the Python of its own; a user's lies in a folder that is bound
_OF_IMAGE = r"/(?:usr|opt|root|venv|app|workspace|env)/"
_INTO = r"\bpip (?:un)?install\b"
_IMAGE = r"\b(?:images?|Dockerfile)\b"
# a container's own program never ran: there is no Python in which a check could
_NOT_STARTED = r"Error response from daemon: |OCI runtime create failed|nvidia-container-cli: "


class Advice:
    """The words of one rule for one finding. Asks the machine only for what the text does not tell."""

    def __init__(self, best: Occurrence, head: Finding, facts: TextFacts) -> None:
        self._facts = facts
        self._rule = head.rule
        self._places = _places(best, head)
        self._seen: Surroundings = surroundings.of_event(best.event, facts.transcript, self._ask(best))
        script = self._ask(best)("context.script")
        self._script = str(script.value) if script.state is State.KNOWN else None
        interpreter = self._ask(best)("context.interpreter")
        self._interpreter = commands.plain(interpreter.value if interpreter.state is State.KNOWN else "")
        apptainer = "apptainer" in self._seen.get("runtime", frozenset())
        self._sealed = apptainer and (
            not self._interpreter or bool(search(rf"^{_OF_IMAGE}", self._interpreter, "/"))
        )
        if self._sealed:  # the host has no such path
            self._interpreter = ""
        elif not self._interpreter and commands.run_by_uv(as_text(self._ask(best)("log.text"))):
            self._interpreter = commands.BY_UV

    def _ask(self, place: Occurrence) -> Callable[[str], Fact]:
        return partial(self._facts.fact, event=place.event, captures=place.captures)

    def fixes(self, words: RuleText) -> tuple[Fix, ...]:
        """The ways out that neither a known fact nor the surroundings rule out, the fitting ones first."""
        sizes = _size_holes(self._rule)
        found: list[tuple[float, Fix]] = []
        for conditional in words.fixes:
            with self._facts.guard(self._rule.id):
                rank = surroundings.place(conditional, self._seen)
                told = [self._told(condition) for condition in conditional.when]
                if rank is None or False in told or not commands.fits(conditional.fix.run or "", self._seen):
                    continue
                new = releases.too_new(conditional.fix.do, self._ask(self._places[0]))
                shown = self._was_run(conditional.fix.run)
                if new or shown or not commands.speaks(conditional.fix.do, self._seen):
                    rank = 2  # only where there is no other
                texts = (filled(conditional.fix, self._values(item), sizes) for item in self._places)
                fix = next(filter(None, texts), None) or self._without_command(conditional.fix, sizes)
                if fix is not None and (bounded := self._bounded(fix.run)) != fix.run:
                    fix, rank = replace(fix, run=bounded), rank if bounded else 2
                if fix is not None:
                    others = rank == 1 and commands.is_for_others(fix.risk, self._seen)
                    found.append((1.5 if others else rank, self._adapted(fix)))
        last = 1.5 if any(order < 2 for order, _ in found) else 2
        found.sort(key=lambda item: item[0])
        apart: dict[str, Fix] = {}  # one command is one way out
        for order, fix in found:
            if order <= last:
                apart.setdefault(fix.run or fix.do, fix)
        return tuple(apart.values())

    def _without_command(self, fix: Fix, sizes: frozenset[str]) -> Fix | None:
        """The advice alone, where only the reader can write its command: his torch, all of his mpirun."""
        own = fix.run == "{outputs.each_rank}" and self._launch.option
        if not (fix.run or "").startswith("{install.same}") and not own:
            return None
        do = f"{fix.do} Add {own} to your own command." if own else fix.do
        alone = Fix(do, None, fix.risk)
        return next(filter(None, (filled(alone, self._values(item), sizes) for item in self._places)), None)

    def _bounded(self, command: str | None) -> str | None:
        """A command that bounds torch, from the index of this reader's build; None where it has no wheel."""
        if not command or "pip install" not in command:
            return command
        from torchdoctor.engine import install, wheels

        ask = self._ask(self._places[0])
        release = wheels.newest(command, self._seen, ask)
        if not release:
            return None if release is None else command
        if any(option in command for option in _INDEXED):
            return command
        index = install.index_for(release, self._seen, ask)
        if index is None:
            return None
        return f"{command} --index-url {index}" if index else command

    def _told(self, condition: Condition) -> bool | None:
        """Does a condition of a fix hold? ``known`` asks for a value, which what cannot be told has not."""
        fact = self._known(condition.fact)
        return fact.state is State.KNOWN if condition.word == "known" else holds(condition, fact)

    def _known(self, name: str) -> Fact:
        if name.startswith(COMMANDS):
            return self._values(self._places[0])(name)
        return first_known(name, self._places, self._facts)

    def _values(self, place: Occurrence) -> Callable[[str], Fact]:
        return partial(asked, seen=self._seen, ask=self._ask(place))

    def _adapted(self, fix: Fix) -> Fix:
        run = self.command(fix.run)
        where = launch.where(run, fix.do, self._seen, lambda: self._launch) if run else ""
        blanks = "" if is_python(run or "") else to_put_in(run, f"{fix.do} {self.program}", "")
        do = commands.of_program(launch.local_rank(fix.do, lambda: self._launch), self._seen)
        do += where or restarts(fix.do, run or "") or lasts(fix.do, run or "", self._seen)
        if (
            self._sealed
            and fix.run
            and run is None
            and search(_INSTALLERS, fix.run, "pip", "uv", "conda", "apt")
        ):
            do += " It belongs into the definition file of the image: a .sif is read-only."
        if where and launch.of_image(run or "", self._seen) and not self._known("context.container").value:
            run = None  # the text shows no shell inside
        has_rights = fix.risk == "needs-root" and self._is_root and "sudo " not in (run or "")
        risk = "changes-environment" if has_rights else fix.risk
        return replace(fix, do=" ".join(filter(None, (do, blanks))), run=run, risk=risk)

    def decides(self, words: RuleText) -> str | None:
        """The command that settles the cause, with the values of the message; None where one is unknown."""
        command: str | None = commands.for_a_user(words.decide_with or "", self._seen)
        if self._was_run(command) or False in [self._told(condition) for condition in words.decide_when]:
            return None
        if command and search(
            _NOT_STARTED, self._places[0].event.text[:400], "daemon", "OCI", "nvidia-container"
        ):
            command = commands.of_host(command)
        fix = filled(Fix("", command, "safe"), self._values(self._places[0])) if command else None
        return self.command(fix.run) if fix is not None else None

    def _was_run(self, command: str | None) -> bool:
        """Would a command do no more than the run that the text is of: NCCL tells all, a variable is set?"""
        if (command or "").startswith("NCCL_DEBUG=INFO torchrun "):
            return " NCCL INFO " in str(self._ask(self._places[0])("log.text").value or "")
        wanted = commands.settings_of(command or "")
        events = self._facts.transcript.events if wanted else ()
        return bool(wanted) and all(
            any(commands.sets(event.text, *one) for event in events) for one in wanted
        )

    def command(self, command: str | None) -> str | None:
        """A command of the rule in this reader's shell; None where it is not for his platform."""
        if not command or not commands.fits(command, self._seen) or self._is_frozen(command):
            return None
        if releases.too_new(command, self._ask(self._places[0])):
            return None
        if "sudo " in command and self._is_root:
            command = commands.for_root(command)
            if not _CONTAINERS & self._seen.get("runtime", frozenset()):  # whose host may be another's
                command = command.replace("sudo ", "")
        if any(word in command for word in ("pip", "PACKAGE", " setup.py")):
            from torchdoctor.engine import packages

            command = packages.named(command, self._ask(self._places[0]))
        if "FILE" in command:
            from torchdoctor.engine import log_file

            command = log_file.named(command, self._places[0].event, self._facts.transcript.events)
        command = self.numbered(command)
        if is_python(command):
            ask = self._ask(self._places[0])
            command = of_program(command, as_text(ask("event.code")), as_text(ask("call.copy")))
        if " train.py" not in command:
            return commands.adapted(command, self._seen, self._script, self._interpreter, self._shell)
        parts = launch.apart(command)
        told = [self._launched(part, alone=len(parts) == 1) for part in parts]
        return "; ".join(filter(None, told)) or None

    def numbered(self, command: str) -> str:
        """The words of a rule with the processes or the container that the text names in them."""
        for blank, name in _NAMED:
            if blank in command and (number := as_text(self._ask(self._places[0])(name))):
                command = command.replace(blank, number)
        return command

    def _launched(self, command: str, *, alone: bool) -> str | None:
        """A command that may start the program, as this reader starts it; a setting is no part of several."""
        started = launch.started(command, self._launch, self._places[0].event.rank is not None)
        if not alone and started is not None and started.startswith(("export ", "printf ")):
            started = command
        if started is None:
            return None
        if self._launch.own and self._launch.own in started:  # as he wrote it
            return commands.adapted(started, self._seen, None, shell=self._shell)
        return commands.adapted(started, self._seen, self._script, self._interpreter, self._shell)

    @cached_property
    def _shell(self) -> str:
        if "windows" not in self._seen.get("system", ()):
            return ""
        texts = (event.text for event in self._facts.transcript.events)  # a prompt's line is written
        return next(filter(None, map(commands.shell_of, texts)), "")

    @cached_property
    def _is_root(self) -> bool:
        """Does the program run as root, as in a container, where sudo is mostly missing?"""
        return self._ask(self._places[0])("context.root").state is State.KNOWN

    def _is_frozen(self, command: str) -> bool:
        """Would it install into an image of Apptainer's or the store of Nix, which only builds write?"""
        frames = self._ask(self._places[0])("event.frames")
        store = self._sealed or (frames.state is State.KNOWN and "/nix/store/" in str(frames.value))
        return store and search(_INSTALLERS, command, "pip", "uv", "conda", "apt") is not None

    @property
    def program(self) -> str:
        """The script or command that was started; "" where the text shows neither."""
        return self._script or as_text(self._ask(self._places[0])("launcher.command"))

    @cached_property
    def _launch(self) -> launch.Launch:
        return launch.of(self._seen, self._ask(self._places[0]), self._script)


def lasts(do: str, run: str, seen: Mapping[str, frozenset[str]]) -> str:
    """Where to install what a container needs: what is installed inside one goes with it."""
    if not _CONTAINERS & seen.get("runtime", frozenset()) or search(_IMAGE, do, "image", "Dockerfile"):
        return ""
    return " To make it last, put it in the image's Dockerfile." if search(_INTO, run, "pip ") else ""


def restarts(do: str, run: str) -> str:
    """What a notebook or an image needs besides: what is read once, at the start, is set before it."""
    if run.startswith("ENV ") and "Dockerfile" not in do:
        return " It belongs into the Dockerfile, before that step."
    if run.startswith("RUN TORCH_CUDA_ARCH_LIST=8.6 "):
        return " Put in your card's number: 8.6 is an RTX 30, and the build sees no GPU."
    if run.startswith(("%env ", "import os; os.environ[")):
        return " Restart the kernel first."
    if run.startswith("%pip install ") and "estart" not in do:
        return " Restart the session afterwards."
    if commands.starts_jupyter(run):
        return ' Do it before jupyter starts, or under "env" in the kernel\'s kernel.json.'
    return ""


def _places(best: Occurrence, head: Finding) -> Sequence[Occurrence]:
    """Where the values of the fixes are read: the place that is reported, then the rule's others.

    A launcher says in one line that a child failed and in the next which one. Another rank's are left out,
    and where no words of the message were matched, exceptions of another class: they are of something else.
    """
    rank, kind = best.event.rank, None if best.snippet else best.event.type
    others = (
        item
        for item in head.occurrences
        if (rank is None or item.event.rank in (None, rank))
        and (kind is None or item.event.type in (None, kind))
    )
    return [best, *[item for item in others if item is not best][:_PLACES]]


def _size_holes(rule: Rule) -> frozenset[str]:
    holes = (hole for match in rule.matches for pattern in match.patterns for hole in pattern.holes)
    return frozenset(f"match.{name}" for name, kind in holes if kind == "size")
