"""What the examined interpreter's torch is and which devices it sees, asked in a child."""

from __future__ import annotations

from dataclasses import dataclass

from torchdoctor.model import TorchdoctorError, counted
from torchdoctor.number import count
from torchdoctor.probes.machine import Outcome
from torchdoctor.probes.probe import failure

SURVEY_S = 120.0


class DeviceError(TorchdoctorError):
    """A device that was asked for and is no device's name."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found. ``processors`` are the multiprocessors of each GPU, ``uuids`` their UUIDs.

    ``fault`` says why torch cannot be used at all, ``no_gpu`` why no GPU can; ``unanswered`` where that is
    because the question itself ended torch or raised.
    """

    torch: str = ""
    gpus: tuple[str, ...] = ()
    processors: tuple[int, ...] = ()
    uuids: tuple[str, ...] = ()
    cpu: str = ""
    mps: bool = False
    fault: str = ""
    no_gpu: str = ""
    unanswered: bool = False
    stderr: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """Each GPU by its name and, where torch tells it, its UUID; the CPU where there is no GPU."""
        if not self.gpus:
            return (self.cpu,)
        uuids = (*self.uuids, *[""] * len(self.gpus))
        return tuple(f"{name} {uuid}".strip() for name, uuid in zip(self.gpus, uuids, strict=False))


def read(outcome: Outcome) -> Survey:
    """The survey out of what its program wrote and how it ended."""
    found = {str(line.get("name")): line.get("value") for line in outcome.lines}
    if "survey.torch" not in found:
        _, words = failure(outcome)
        return Survey(fault=f"torch cannot be imported: {words}", stderr=outcome.stderr)
    gpus = found.get("survey.gpus")
    if not isinstance(gpus, list):
        _, words = failure(outcome)
        return Survey(
            str(found["survey.torch"]),
            no_gpu=f"asking torch for its GPUs did not end well: {words}",
            unanswered=True,
            stderr=outcome.stderr,
        )
    names = tuple(str(name) for name in gpus)
    why = str(found.get("survey.why") or "")
    if not names and not why:
        why = "torch sees no GPU" if found.get("survey.built") else "this torch is built for CPU only"
    counts = found.get("survey.processors")
    processors = tuple(one for one in counts if isinstance(one, int)) if isinstance(counts, list) else ()
    cpu = str(found.get("survey.cpu") or "")
    known = found.get("survey.uuids")
    uuids = tuple(str(one) for one in known) if isinstance(known, list) else ()
    mps = bool(found.get("survey.mps"))
    return Survey(str(found["survey.torch"]), names, processors, uuids, cpu, mps, no_gpu="" if names else why)


def devices(wanted: str | None, survey: Survey) -> tuple[tuple[str, ...], str]:
    """The devices to test, and why one that was asked for cannot be. Raises DeviceError.

    Nothing asked for means all GPUs, or the CPU where there are none: not where the GPUs do not answer.
    """
    numbered = tuple(f"cuda:{index}" for index in range(len(survey.gpus)))
    if wanted is None:
        if numbered:
            return numbered, ""
        return (("mps",) if survey.mps else ("cpu",)), survey.no_gpu if survey.unanswered else ""
    if wanted == "cpu":
        return ("cpu",), ""
    if wanted == "mps":
        return ("mps",), "" if survey.mps else "torch sees no GPU of Apple's"
    if wanted == "cuda":
        return numbered or ("cuda",), "" if numbered else survey.no_gpu
    number = wanted.removeprefix("cuda:")
    if number == wanted or count(number) is None:
        raise DeviceError(f"--device {wanted}: no such kind of device; there are cpu, cuda, cuda:0, mps")
    if wanted in numbered:
        return (wanted,), ""
    return (wanted,), survey.no_gpu or f"torch sees {counted(len(numbered), 'GPU')}: {', '.join(numbered)}"
