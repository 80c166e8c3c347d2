"""The machine this runs on: the operations that look at it, and the programs that it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchdoctor.model import Reason
from torchdoctor.probes import operations
from torchdoctor.probes.machine import Command, Json, Machine, Memory, Outcome, Unreadable

if TYPE_CHECKING:
    from torchdoctor.probes.spawn import Running

NO_PROGRAMS = "no program is run for a log without --here or --python"


@dataclass(slots=True)
class LiveMachine(Machine):
    """This machine, now. Each answer is asked once. Without ``programs`` it reads files, and runs nothing."""

    programs: bool = True
    _answers: dict[tuple[str, str], Json | Unreadable] = field(default_factory=dict)
    _running: dict[str, Running] = field(default_factory=dict)
    _ended: dict[str, Outcome] = field(default_factory=dict)

    def answer(self, operation: str, subject: str) -> Json:
        key = (operation, subject)
        if key not in self._answers:
            try:
                self._answers[key] = operations.look(operation, subject)
            except Unreadable as error:
                self._answers[key] = error
        found = self._answers[key]
        if isinstance(found, Unreadable):
            raise found
        return found

    def start(self, command: Command) -> None:
        if not self.programs:
            raise Unreadable(command.label, Reason.NOT_ASKED, NO_PROGRAMS)
        if command.label not in self._running:
            from torchdoctor.probes.spawn import Running  # with subprocess, which most calls can do without

            self._running[command.label] = Running(command)

    def running(self, label: str) -> bool:
        return label in self._running

    def finish(self, command: Command) -> Outcome:
        if command.label not in self._ended:
            self.start(command)
            self._ended[command.label] = self._running[command.label].finish()
        return self._ended[command.label]

    def close(self) -> None:
        """End every program that still runs; their outcome is lost."""
        for label, running in self._running.items():
            if label not in self._ended:
                running.stop()

    def remembered(self) -> Memory:
        return dict(self._answers), dict(self._ended)
