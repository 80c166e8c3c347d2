"""The user's frame: through wrappers, chains, helper threads, printed stacks and lines without frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet, load
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.evaluate import Evaluation, Result, cases
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake import read, read_text
from torchdoctor.model import Frame, Report

FIXTURES = Path(__file__).parents[2] / "fixtures"
PACKAGES = "/opt/venv/lib/python3.11/site-packages"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    "15.77 GiB of which 1.02 GiB is free."
)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load()


def _frame(text: str, rules: RuleSet) -> Frame | None:
    report = diagnose(read_text(text), FactBook(None), rules)
    assert report.diagnoses, report.outcome
    return report.diagnoses[0].frame


def _place(text: str, rules: RuleSet) -> str | None:
    frame = _frame(text, rules)
    return f"{frame.file}:{frame.line}" if frame else None


def test_nearly_all_labelled_fixtures_show_the_labelled_frame(rules: RuleSet) -> None:
    results = [
        Result(case, _report(case.paths[0], rules), "", False)
        for case in cases(str(FIXTURES))
        if case.user_frame and case.machine is None
    ]
    share = Evaluation(tuple(results)).user_frames
    assert share.of >= 800
    wrong = [f"{item.case.name}: {item.differences}" for item in results if not item.user_frame_right]
    assert share.right >= 0.99 * share.of, "\n".join(wrong)


def _report(path: str, rules: RuleSet) -> Report:
    return diagnose(read([path]), FactBook(None), rules)


def test_a_worker_without_own_frames_points_at_the_loop_that_started_it(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/srv/p/train.py", line 15, in main
    for x in loader:
  File "{PACKAGES}/torch/_utils.py", line 733, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "{PACKAGES}/torch/utils/data/_utils/collate.py", line 273, in collate_tensor_fn
    return torch.stack(batch, 0, out=out)
RuntimeError: stack expects each tensor to be equal size, but got [3, 8] at entry 0 and [3, 9] at entry 1
"""
    assert _place(text, rules) == "/srv/p/train.py:15"


def test_own_code_under_a_worker_comes_before_the_loop(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/srv/p/train.py", line 15, in main
    for x in loader:
  File "{PACKAGES}/torch/_utils.py", line 733, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "{PACKAGES}/torch/utils/data/_utils/fetch.py", line 54, in fetch
    return self.collate_fn(data)
  File "/srv/p/data.py", line 40, in collate
    return torch.stack(batch)
RuntimeError: stack expects each tensor to be equal size, but got [3, 8] at entry 0 and [3, 9] at entry 1
"""
    assert _place(text, rules) == "/srv/p/data.py:40"


def test_a_line_without_frames_takes_those_of_the_exception_before_it(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "/srv/p/loop.py", line 74, in step
    opt.step()
  File "{PACKAGES}/torch/optim/adam.py", line 20, in step
    loss = None
RuntimeError: CUDA error: unknown error
nvidia-smi: Unable to determine the device handle for GPU 0000:0A:00.0: GPU is lost.  Reboot the system to \
recover this GPU
"""
    assert _place(text, rules) == "/srv/p/loop.py:74"


def test_the_place_of_a_pytest_line(rules: RuleSet) -> None:
    text = "src/head.py:14: RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)\n"
    assert _place(text, rules) == "src/head.py:14"


def test_short_tracebacks_of_pytest(rules: RuleSet) -> None:
    text = f"""\
___ test_size ___
tests/test_eval.py:9: in test_size
    run(net)
src/head.py:8: in forward
    return self.fc(x)
{PACKAGES}/torch/nn/modules/linear.py:134: in forward
    return F.linear(input, self.weight, self.bias)
E   RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)
"""
    frame = _frame(text, rules)
    assert frame is not None
    assert (frame.file, frame.line, frame.function, frame.package) == ("src/head.py", 8, "forward", "")


def test_without_own_frames_the_outermost_package_is_named(rules: RuleSet) -> None:
    text = f"""\
Traceback (most recent call last):
  File "{PACKAGES}/typing_extensions.py", line 3004, in wrapper
    return arg(*args, **kwargs)
  File "{PACKAGES}/axo/train.py", line 20, in main
    trainer.train()
  File "{PACKAGES}/transformers/trainer.py", line 2245, in train
    return inner_training_loop(
  File "{PACKAGES}/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
{OOM}
"""
    frame = _frame(text, rules)
    assert frame is not None
    assert (frame.package, frame.line) == ("axo", 20)


def test_a_stack_printed_under_a_record_belongs_to_it(rules: RuleSet) -> None:
    head = "W1128 00:50:25.732000 13020 torch/_dynamo/convert_frame.py:1994] [0/8]"
    text = "\n".join(
        (
            f"{head} torch._dynamo hit config.recompile_limit (8)",
            f"{head}    function: 'run' (/srv/p/net.py:14)",
            f"{head} User stack trace:",
            f'{head}   File "/srv/p/net.py", line 16, in run',
            f"{head}     return block(x)",
            f'{head}   File "/srv/p/net.py", line 10, in forward',
            f"{head}     return self.fc(x)",
            "",
        )
    )
    assert _place(text, rules) == "/srv/p/net.py:10"


def test_the_suspect_of_a_pool_is_the_exception_of_its_worker(rules: RuleSet) -> None:
    report = _report(str(FIXTURES / "unknown" / "neg-018" / "input.txt"), rules)
    assert report.suspect is not None
    assert report.suspect.type == "KeyError"
    assert report.suspect.frame is not None
    assert (report.suspect.frame.file, report.suspect.frame.line) == ("tally.py", 7)
