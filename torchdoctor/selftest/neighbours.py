"""Other programs on the GPUs: a speed measured beside one says nothing of the hardware.

NVML is asked only once a speed is low, after the checks have ended, when nothing of ours is on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property

from torchdoctor.model import FactSource, TorchdoctorError
from torchdoctor.selftest.results import Case, Job, Measure
from torchdoctor.selftest.survey import Survey

_NAMES = ("gpu.neighbours", "gpu.uuids")


class Neighbours:
    """Who uses the GPUs that torch sees; ``machine`` opens the facts of the machine."""

    def __init__(self, survey: Survey, machine: Callable[[], AbstractContextManager[FactSource]]) -> None:
        self._survey = survey
        self._machine = machine

    @cached_property
    def _by_uuid(self) -> dict[str, str]:
        """The words on the neighbour of each GPU that has one; nothing where NVML does not say."""
        try:
            with self._machine() as source:
                told, uuids = (source.fetch(name).value for name in _NAMES)
        except (ImportError, TorchdoctorError):  # an interpreter without what the probes need
            return {}
        if not isinstance(told, tuple) or not isinstance(uuids, tuple):
            return {}
        words = {str(one).partition(":")[0]: str(one) for one in told}
        return {
            _plain(str(uuid)): words[f"GPU {number}"]
            for number, uuid in enumerate(uuids)
            if f"GPU {number}" in words
        }

    def on(self, device: str) -> str:
        """Who is on a device, or on any where it stands for all; "" for nobody."""
        seen = [_plain(uuid) for uuid in self._survey.uuids]
        if device.startswith("cuda:"):
            number = int(device.removeprefix("cuda:"))
            seen = seen[number : number + 1]
        return next((self._by_uuid[uuid] for uuid in seen if uuid in self._by_uuid), "")

    def judge(self, measure: Measure) -> Measure:
        """``measure``, but for low speeds beside a neighbour, which nobody can judge."""

        def judged(job: Job, case: Case) -> Case:
            found = measure(job, case)
            if found.verdict not in ("fail", "warn") or not found.unit or not job.device.startswith("cuda"):
                return found
            who = self.on(job.device)
            if not who:
                return found
            return replace(
                found, verdict="unknown", measured=f"{found.measured}, beside another program: {who}"
            )

        return judged


def _plain(uuid: str) -> str:
    """As both torch and NVML have it: only NVML writes GPU- in front."""
    return uuid.lower().removeprefix("gpu-")
