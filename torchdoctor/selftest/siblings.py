"""GPUs of one model beside each other: the rates' median, and who does not compute the same bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from torchdoctor.model import counted
from torchdoctor.number import count
from torchdoctor.probes.machine import Outcome
from torchdoctor.selftest.results import Case, Job, cases_of
from torchdoctor.selftest.survey import Survey
from torchdoctor.selftest.thresholds import absolute, relative

FINGERPRINT = ", fingerprint"
SOURCE = "GPUs of one model with one torch"


class Siblings:
    """All that was measured on all GPUs, to judge each by."""

    def __init__(self, survey: Survey, ended: Sequence[tuple[Job, Outcome]]) -> None:
        self._survey = survey
        self._measured: dict[tuple[str, str], dict[str, Case]] = {}
        for job, outcome in ended:
            for case in cases_of(outcome.lines):
                if case.verdict == "measured":
                    self._measured.setdefault((self.model(job.device), case.name), {})[job.device] = case

    def model(self, device: str) -> str:
        number = count(device.removeprefix("cuda:"))
        if number is None or number >= len(self._survey.gpus):
            return device
        return self._survey.gpus[number]

    def _between(self, job: Job, case: Case) -> Case:
        """A speed between GPUs: by its model where all are of one, and by that of the other pairs."""
        models = set(self._survey.gpus)
        judged = case
        if len(models) == 1 and len(set(self._survey.processors)) == 1:
            judged = absolute(case, models.pop(), self._survey.processors[0])
        kind = case.name.partition(",")[0]
        others = [
            one.value
            for (_, name), found in self._measured.items()
            for one in found.values()
            if name != case.name and name.partition(",")[0] == kind and one.value and one.unit == case.unit
        ]
        judged = relative(judged, others)
        # many machines have no floor here, and that is no lack of theirs
        return case if judged.verdict == "unknown" else judged

    def judge(self, job: Job, case: Case) -> Case:
        """A measured case with its verdict, where siblings or a table give it one."""
        model = self.model(job.device)
        same = self._measured.get((model, case.name), {})
        if case.name.endswith(FINGERPRINT):
            return same_bits(case, job.device, {device: one.measured for device, one in same.items()})
        if case.unit and job.device == "cuda":
            return self._between(job, case)
        if not case.unit or not job.device.startswith("cuda:"):
            return case
        number = int(job.device.removeprefix("cuda:"))
        processors = self._survey.processors[number] if number < len(self._survey.processors) else 0
        others = [one.value for device, one in same.items() if one.value and device != job.device]
        return relative(absolute(case, model, processors), others)


def same_bits(case: Case, device: str, prints: Mapping[str, str]) -> Case:
    """The majority is right; where there is none, all that differ are named and none is called odd."""
    if len(prints) < 2:
        return case
    (common, count), *rest = Counter(prints.values()).most_common()
    name = case.name.removesuffix(FINGERPRINT) + ", siblings"
    if not rest:
        return replace(
            case, name=name, verdict="pass", measured="the same bits", expected="the same bits", source=SOURCE
        )
    others = ", ".join(one for one, bits in prints.items() if bits != case.measured)
    if rest[0][1] == count:
        return replace(
            case, name=name, verdict="fail", expected="the same bits", source=SOURCE,
            measured=f"other bits than {others}; which one is right cannot be determined",
        )  # fmt: skip
    odd = case.measured != common
    told = (
        f"other bits than {count} of {counted(len(prints), 'GPU')}: {device} is the one that differs"
        if odd
        else "the same bits"
    )
    return replace(
        case,
        name=name,
        verdict="fail" if odd else "pass",
        measured=told,
        expected="the same bits",
        source=SOURCE,
    )
