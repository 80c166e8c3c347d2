"""Rates and fingerprints: judged by the model's floor and by the other GPUs, with invented measurements."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from torchdoctor.model import Blame, Fact, Verdict
from torchdoctor.probes.machine import Json, Outcome
from torchdoctor.selftest import runner
from torchdoctor.selftest.batch import outcomes
from torchdoctor.selftest.forking import Forking
from torchdoctor.selftest.neighbours import Neighbours
from torchdoctor.selftest.registry import CHECKS, find
from torchdoctor.selftest.results import Case, Job, Judged, judge
from torchdoctor.selftest.session import explain
from torchdoctor.selftest.siblings import Siblings, same_bits
from torchdoctor.selftest.survey import DeviceError, Survey, devices, read
from torchdoctor.selftest.thresholds import absolute, model_of

H100 = "NVIDIA H100 80GB HBM3"


def rate(name: str, value: float, unit: str = "TFLOP/s") -> Outcome:
    line: dict[str, Json] = {
        "case": name, "verdict": "measured", "measured": f"{value:g} {unit}", "value": value, "unit": unit,
    }  # fmt: skip
    return Outcome(exit_code=0, lines=(line, {"done": True}))


def judged(name: str, values: list[float], gpus: tuple[str, ...], processors: int = 132) -> list[Judged]:
    check = find(name)
    assert check is not None
    ended = [(Job(check, f"cuda:{number}", 0), rate(name, value)) for number, value in enumerate(values)]
    siblings = Siblings(Survey("2.11", gpus, (processors,) * len(gpus)), ended)
    return [judge(job, outcome, lambda text: (), siblings.judge) for job, outcome in ended]


def test_a_gpu_a_quarter_slower_than_its_sibling_fails() -> None:
    good, slow = judged("gemm-rate", [797.0, 598.0], (H100, H100))
    assert (good.result.verdict, slow.result.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert (
        slow.result.observed
        == "gemm-rate: 598 TFLOP/s, 75% of the median of its siblings, expected at least 85% of it"
    )
    assert slow.result.blame is Blame.NODE


@pytest.mark.parametrize(
    ("value", "verdict"), [(797.0, Verdict.PASS), (645.0, Verdict.PASS), (598.0, Verdict.WARN)]
)
def test_one_gpu_is_judged_by_its_model(value: float, verdict: Verdict) -> None:
    (only,) = judged("gemm-rate", [value], (H100,))
    assert only.result.verdict is verdict


class Nvml:
    """A machine that is asked for nothing but its GPUs."""

    def __init__(self, neighbours: tuple[str, ...] | None) -> None:
        self.known = {"gpu.neighbours": neighbours, "gpu.uuids": ("GPU-AA", "GPU-bb")}

    def fetch(self, name: str) -> Fact:
        value = self.known[name]
        return Fact.absent(name, "NVML") if value is None else Fact.known(name, value, "NVML")

    def names(self) -> tuple[str, ...]:
        return tuple(self.known)


def beside(neighbours: tuple[str, ...] | None, uuids: tuple[str, ...]) -> Judged:
    check = find("hbm")
    assert check is not None
    survey = Survey("2.11", (H100,) * 2, (132,) * 2, uuids)
    ended = [
        (Job(check, f"cuda:{one}", 0), rate("hbm", speed, "GB/s")) for one, speed in enumerate((3000, 1500))
    ]
    measure = Neighbours(survey, lambda: nullcontext(Nvml(neighbours))).judge(Siblings(survey, ended).judge)
    job, outcome = ended[1]
    return judge(job, outcome, lambda text: (), measure)


def test_a_speed_beside_another_program_blames_no_hardware() -> None:
    # two H200, one with a program that multiplies: the gate said to drain the node and to reset the GPU
    who = "GPU 1: 1.1 of 140.0 GiB in use, 100 % busy: process 1125 (python of root, 0.0 h old)"
    slow = beside((who,), ("aa", "bb"))
    assert slow.result.verdict is Verdict.UNKNOWN
    assert f"beside another program: {who}" in slow.not_checked[0].reason
    # on the other GPU, in torch's numbers, or on none: the GPU is slow
    assert beside((who,), ("bb", "aa")).result.verdict is Verdict.FAIL
    assert beside(None, ("aa", "bb")).result.verdict is Verdict.FAIL


def test_an_unknown_model_alone_is_unknown_and_with_siblings_relative() -> None:
    (only,) = judged("hbm", [3000.0], ("NVIDIA H20",), 78)
    assert only.result.verdict is Verdict.UNKNOWN
    assert "no floor is known for NVIDIA H20" in only.not_checked[0].reason
    one, two = judged("hbm", [3000.0, 2990.0], ("NVIDIA H20", "NVIDIA H20"), 78)
    assert {one.result.verdict, two.result.verdict} == {Verdict.PASS}


def test_gpus_of_other_models_are_no_siblings() -> None:
    one, two = judged("gemm-rate", [797.0, 660.0], (H100, "NVIDIA H200"))
    assert {one.result.verdict, two.result.verdict} == {Verdict.PASS}


def test_a_model_is_told_by_name_and_processors() -> None:
    assert model_of(H100, 132) is not None
    assert model_of("NVIDIA H100 PCIe", 114) is None
    assert model_of("NVIDIA L40S", 142) is None
    assert model_of("NVIDIA H100 80GB HBM3", 78) is None


def test_a_rate_that_cannot_be_read_is_unknown() -> None:
    case = Case("hbm", "measured", "fast", unit="GB/s")
    assert absolute(case, H100, 132).verdict == "unknown"


def test_the_odd_one_is_named_by_the_majority() -> None:
    case = Case("matrix product, fingerprint", "measured", "aa")
    prints = {"cuda:0": "aa", "cuda:1": "bb", "cuda:2": "aa"}
    assert same_bits(case, "cuda:0", prints).verdict == "pass"
    odd = same_bits(replace(case, measured="bb"), "cuda:1", prints)
    assert (odd.verdict, odd.measured) == (
        "fail",
        "other bits than 2 of 3 GPUs: cuda:1 is the one that differs",
    )
    tie = same_bits(case, "cuda:0", {"cuda:0": "aa", "cuda:1": "bb"})
    assert (tie.verdict, tie.measured) == (
        "fail",
        "other bits than cuda:1; which one is right cannot be determined",
    )
    assert same_bits(case, "cuda:0", {"cuda:0": "aa"}).verdict == "measured"


TWO = Survey("2.11", (H100, H100), (132, 132))

NONE = Survey("2.11", no_gpu="torch sees no GPU")


@pytest.mark.parametrize(
    ("wanted", "survey", "chosen", "refused"),
    [
        (None, TWO, ("cuda:0", "cuda:1"), ""),
        (None, NONE, ("cpu",), ""),
        ("cuda", TWO, ("cuda:0", "cuda:1"), ""),
        ("cuda:1", TWO, ("cuda:1",), ""),
        ("cuda:2", TWO, ("cuda:2",), "torch sees 2 GPUs: cuda:0, cuda:1"),
        ("cuda", NONE, ("cuda",), "torch sees no GPU"),
        ("cpu", TWO, ("cpu",), ""),
    ],
)
def test_devices(wanted: str | None, survey: Survey, chosen: tuple[str, ...], refused: str) -> None:
    assert devices(wanted, survey) == (chosen, refused)


@pytest.mark.parametrize("wanted", ["gpu", "cuda:", "cuda:x", "cuda:-1", ""])
def test_what_is_no_device(wanted: str) -> None:
    with pytest.raises(DeviceError):
        devices(wanted, TWO)


def test_a_survey_that_hangs_on_the_gpu_still_tells_torch() -> None:
    lines: tuple[dict[str, Json], ...] = ({"name": "survey.torch", "value": "2.11"},)
    found = read(Outcome(timed_out=True, seconds=60, lines=lines, note="timed out"))
    assert (found.torch, found.gpus) == ("2.11", ())
    assert found.unanswered
    assert "no answer within 60 s" in found.no_gpu
    assert read(Outcome(exit_code=1, stderr="OSError: libcudart")).fault.endswith("OSError: libcudart")


@pytest.mark.parametrize(
    ("name", "sound", "low", "unit"),
    [("h2d", 55.0, 41.0, "GB/s"), ("d2h", 55.0, 41.0, "GB/s"), ("hbm", 3000.0, 2250.0, "GB/s"),
     ("gemm-rate", 790.0, 592.0, "TFLOP/s")],
)  # fmt: skip
def test_every_rate_passes_warns_fails_and_can_be_unreadable(
    name: str, sound: float, low: float, unit: str
) -> None:
    """A quarter slower is found: alone by the model's floor, among others by their median."""
    (alone,) = judged(name, [sound], (H100,))
    assert alone.result.verdict is Verdict.PASS
    (alone,) = judged(name, [low], (H100,))
    assert alone.result.verdict is Verdict.WARN
    *others, last = judged(name, [sound, sound, sound * 0.45], (H100,) * 3)
    assert [one.result.verdict for one in others] == [Verdict.PASS, Verdict.PASS]
    assert last.result.verdict is Verdict.FAIL
    (nameless,) = judged(name, [sound], ("NVIDIA Unheard",))
    assert nameless.result.verdict is Verdict.UNKNOWN
    check = find(name)
    assert check is not None
    unread = judge(Job(check, "cuda:0", 0), Outcome(exit_code=0, stdout="not a result"), lambda text: ())
    assert unread.result.verdict is Verdict.UNKNOWN


def of_all(name: str, cases: list[tuple[str, float]], gpus: tuple[str, ...] = (H100, H100)) -> Judged:
    check = find(name)
    assert check is not None
    lines: list[dict[str, Json]] = [
        {"case": case, "verdict": "measured", "measured": f"{value:g} GB/s", "value": value, "unit": "GB/s"}
        for case, value in cases
    ]
    lines += [{"case": "bytes", "verdict": "pass", "measured": "0 wrong"}, {"done": True}]
    job = Job(check, "cuda", 0)
    outcome = Outcome(exit_code=0, lines=tuple(lines))
    survey = Survey("2.11", gpus, (132,) * len(gpus))
    return judge(job, outcome, lambda text: (), Siblings(survey, [(job, outcome)]).judge)


def test_collectives_of_gpus_fail_and_pass() -> None:
    case = "all-reduce, 2 GPUs, 256 MiB"
    assert of_all("nccl", [(case, 285.0)]).result.verdict is Verdict.PASS
    assert of_all("nccl", [(case, 214.0)]).result.verdict is Verdict.WARN
    # a number that nothing is known of is told, and no lack
    unknown = of_all("nccl", [(case, 214.0)], ("NVIDIA Unheard",) * 2)
    assert (unknown.result.verdict, unknown.not_checked) == (Verdict.PASS, ())
    check = find("nccl")
    assert check is not None
    wrong: dict[str, Json] = {
        "case": "nccl all_reduce",
        "verdict": "fail",
        "measured": "1 wrong: 1 on rank 1",
    }
    found = judge(Job(check, "cuda", 0), Outcome(exit_code=0, lines=(wrong, {"done": True})), lambda text: ())
    assert (found.result.verdict, found.result.blame) == (Verdict.FAIL, Blame.FABRIC)


def test_a_slow_way_between_gpus_is_named() -> None:
    ways = [("p2p, 0 to 1", 390.0), ("p2p, 1 to 0", 390.0), ("p2p, 0 to 2", 180.0), ("p2p, 2 to 0", 390.0)]
    slow = of_all("p2p", ways, (H100,) * 3)
    assert slow.result.verdict is Verdict.FAIL
    assert (slow.result.observed or "").startswith("p2p, 0 to 2: 180 GB/s, 46% of the median")
    assert of_all("p2p", ways[:2]).result.verdict is Verdict.PASS


# Checks that share a process: each keeps its own verdict, and one that breaks takes no other along
NAMES = ("lstsq-rank", "fft", "graphs")


def run(
    executor: Forking,
    programs: runner.Programs,
    faults: dict[str, str],
    limits: dict[str, float] | None = None,
) -> tuple[dict[str, tuple[Verdict, str]], list[list[str]]]:
    """The verdict and reason of each check, and which of them were begun together."""
    jobs = [Job(check, "cpu", 0) for name in NAMES if (check := find(name)) is not None]
    ended: dict[str, Outcome] = {}
    together: list[list[str]] = [[]]

    def argv(job: Job) -> tuple[tuple[str, ...], float]:
        name = job.check.name
        limit_s = (limits or {}).get(name, 60.0)
        path = programs.path(job.check.file)
        return runner.arguments(job, path, "standard", limit_s, faults.get(name, "")), limit_s

    def begun(job: Job) -> None:
        if job.check.name in together[-1]:
            together.append([])
        together[-1].append(job.check.name)

    runner.run_lanes(
        [[jobs]], executor, argv, begun, lambda job, outcome: ended.update({job.id: outcome}), lambda: False
    )
    judged = {job.check.name: judge(job, ended[job.id], explain).result for job in jobs}
    return {name: (one.verdict, one.reason or "") for name, one in judged.items()}, together


def test_all_in_one_process(executor: Forking, programs: runner.Programs) -> None:
    found, together = run(executor, programs, {})
    assert {verdict for verdict, _ in found.values()} == {Verdict.PASS}
    assert together == [list(NAMES)]


def test_a_wrong_result_stays_with_its_check(executor: Forking, programs: runner.Programs) -> None:
    found, _ = run(executor, programs, {"fft": "one-element"})
    assert [found[name][0] for name in NAMES] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        ("crash", Verdict.FAIL, "crashed: ended by SIGSEGV"),
        ("killed", Verdict.UNKNOWN, "ended from outside by SIGKILL"),
        ("exit-3", Verdict.UNKNOWN, "ended without a result, exit code 3"),
        ("garbage", Verdict.UNKNOWN, "ended without a result"),
        ("cuda-error", Verdict.FAIL, "1 of 1 case failed"),
        ("flood", Verdict.UNKNOWN, "ended by us: it printed more than 64 MiB"),
    ],
)
def test_one_that_breaks_takes_no_other_along(
    executor: Forking, programs: runner.Programs, fault: str, verdict: Verdict, reason: str
) -> None:
    found, _ = run(executor, programs, {"fft": fault})
    assert found["fft"][0] is verdict
    assert found["fft"][1].startswith(reason)
    assert (found["lstsq-rank"][0], found["graphs"][0]) == (Verdict.PASS, Verdict.PASS)


def test_each_has_its_own_time_limit(executor: Forking, programs: runner.Programs) -> None:
    found, _ = run(executor, programs, {"fft": "hang"}, {"fft": 3.0})
    assert found["fft"][0] is Verdict.FAIL
    assert found["fft"][1].startswith("stuck: no further output for")
    assert (found["lstsq-rank"][0], found["graphs"][0]) == (Verdict.PASS, Verdict.PASS)


def test_a_process_that_never_began_is_the_end_of_the_first() -> None:
    (only,) = outcomes(Outcome(exit_code=1, stderr="no"), [], lambda path, limit, tail: "")
    assert (only.exit_code, only.stderr, only.lines) == (1, "no", ())


def test_what_needs_a_clean_process_has_one() -> None:
    assert {check.name for check in CHECKS if check.shares}.isdisjoint(
        {"memory", "device-assert", "compile", "extension", "nccl", "gloo", "dataloader", "fork-spawn"}
    )
