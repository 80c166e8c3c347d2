"""Where an input is parted into runs, and where it is not; the last run is judged."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text

FRAMES = 'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    main(cfg)\n'
KEY = f"{FRAMES}KeyError: 'lr'\n"
FULL = f"{FRAMES}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total \
capacity of 79.18 GiB of which 38.66 GiB is free.\n"
BANNER = "Namespace(lr=0.1, epochs=3)\nloading dataset from /data/x\nmodel has 12 M parameters\n"
STEPS = "epoch 1 step 10 loss 2.1\nepoch 1 step 20 loss 2.0\nepoch 1 step 30 loss 1.9\n"
DONE = "Training finished.\n"
AGENT = "0309 14:00:09.500 639 torch/distributed/elastic/"
FAILED = (
    f"E{AGENT}multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 0 (pid: 4001) of binary: python\n"
)
AGAIN = f"I{AGENT}agent/server/api.py:900] [default] Worker group FAILED. will restart worker group\n"
OOM, OWN = "cuda-oom-too-big", "own-code-error"
CANCELLED = "slurmstepd: error: *** JOB {} ON n1 CANCELLED AT 2026-03-09T01:00:00 ***\n"
LSF = (
    f"\n{'-' * 60}\nSender: LSF System <lsf@n1>\nSubject: Job {{}}: <train> in cluster <c> Exited\n\n"
    "Exited with exit code 1.\n\nThe output (if any) is above this job summary.\n\n"
)


def of_rank(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        (f"$ python train.py\n{BANNER}{KEY}$ python train.py\n{BANNER}{STEPS}{DONE}", [OWN, None]),
        (f"{BANNER}{STEPS}{FULL}{BANNER}{STEPS}{KEY}", [OOM, OWN]),
        (f"SLURM_JOB_ID: 81234\n{BANNER}{FULL}SLURM_JOB_ID: 81235\n{BANNER}{STEPS}{DONE}", [OOM, None]),
        (f"nohup: ignoring input\n{BANNER}{FULL}nohup: ignoring input\n{BANNER}{STEPS}", [OOM, None]),
        (of_rank(0, FULL) + FAILED + AGAIN + of_rank(0, f"{STEPS}{STEPS}{KEY}") + FAILED, [OOM, OWN]),
        (f"{STEPS}{CANCELLED.format(81234)}{STEPS}{CANCELLED.format(81240)}", ["job-preempted"] * 2),
        (f"{BANNER}{STEPS}{CANCELLED.format(81234)}{STEPS * 30}{BANNER}{STEPS}", ["job-preempted", None]),
        (f"{KEY}{LSF.format(81234)}{FULL}{LSF.format(81240)}", [OWN, OOM]),
    ],
    ids=["prompt", "banner", "job", "nohup", "attempt", "two jobs", "another job's banner", "LSF"],
)  # fmt: skip
def test_a_sign_of_a_start_behind_an_end_parts_runs(
    text: str, answers: list[str | None], rules: RuleSet
) -> None:
    report = diagnose(read_text(text), FactBook(), rules)
    assert [run.rule for run in report.runs] == answers
    assert (report.diagnoses[0].rule if report.diagnoses else None) == answers[-1]


@pytest.mark.parametrize(
    "text",
    [
        f"{BANNER}{STEPS}{BANNER}{STEPS}{KEY}",  # no end of its own
        "[INFO] epoch 0\n[INFO] evaluation\nval done.\n[INFO] epoch 1\n[INFO] evaluation\nval done.\n" + KEY,
        # workers load what the main process loaded first
        f"loading faiss\nloaded faiss\n{BANNER}INFO:root:Done.\nloading faiss\nloaded faiss\n{KEY}",
        f"{BANNER}{STEPS}{CANCELLED.format(81234)}{CANCELLED.format(81234)}",
        f"{BANNER}epoch 1 step 1 loss 2\nepoch 1 step 2 loss 2\nepoch 2 step 1 loss 2\n{KEY}",
        "2026-03-09 01:00:00 INFO t: step 1 loss 2\n2026-03-09 09:00:00 INFO t: step 2 loss 2\n" + KEY,
        of_rank(0, "01:00:05 step 1 loss 2") + of_rank(1, f"01:00:01 step 1 loss 2\n{KEY}") + of_rank(0, KEY),
        "".join(f"[default{n}]:{line}\n" for n in (0, 2) for line in (KEY + FULL).splitlines()),
    ],
    ids=[
        "unfinished",
        "epochs that end well",
        "workers",
        "one job twice",
        "epochs",
        "pause",
        "time runs back",
        "local ranks",
    ],
)
def test_what_parts_nothing(text: str, rules: RuleSet) -> None:
    report = diagnose(read_text(text), FactBook(), rules)
    assert report.runs == ()
    assert report.diagnoses


def test_a_run_that_is_cut_says_where(rules: RuleSet) -> None:
    cut = "No failure in what is here; the log ends at epoch 1 step 30 without an end"
    assert diagnose(read_text(BANNER + STEPS), FactBook(), rules).notes == (cut,)
    assert diagnose(read_text(BANNER + STEPS + DONE), FactBook(), rules).notes == ()


def test_a_banner_whose_first_line_the_message_before_took_is_known_by_the_rest(rules: RuleSet) -> None:
    head = ">>>>start: run_{0}>>>>\ntrain 1822{0}\nval 253{0}\ntest 516{0}\nlr of the model: 0.0003\n"
    inner = '  File "/v/lib/python3.9/site-packages/torch/nn/modules/module.py", line 1102, in _call_impl\n'
    shape = f"{FRAMES}{inner}RuntimeError: shape '[8, -1, 256]' is invalid for input of size 1310720\n"
    text = f"{head.format(1)}{STEPS}{shape}{head.format(2)}{STEPS}Killed\n"
    report = diagnose(read_text(text), FactBook(), rules)
    assert [run.rule for run in report.runs] == ["view-invalid-shape", "host-oom-killed"]
