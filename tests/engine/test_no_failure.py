"""A run in which no failure was found: whether it earns the tick, and what is said of what it got over."""

from __future__ import annotations

from torchdoctor.catalog.ruleset import RuleSet
from torchdoctor.engine import FactBook, diagnose
from torchdoctor.intake import read_text
from torchdoctor.model import Outcome, Report

_STACK = """\
ERROR 03-0{day} 10:0{day}:12 [serve.py:8] Traceback (most recent call last):
ERROR 03-0{day} 10:0{day}:12 [serve.py:8]   File "/env/site-packages/servelib/check.py", line 41, in check
ERROR 03-0{day} 10:0{day}:12 [serve.py:8]     raise RequestError(
ERROR 03-0{day} 10:0{day}:12 [serve.py:8] servelib.errors.RequestError: {tokens} tokens, at most 4096 fit
"""
_SERVED = 'INFO:     10.0.0.7:5{day}318 - "POST /v1/completions HTTP/1.1" 200 OK\n'
_END = "INFO:     Application shutdown complete.\n"


def _refusals(*tokens: int) -> str:
    return "".join(
        _STACK.format(day=day, tokens=count) + _SERVED.format(day=day) for day, count in enumerate(tokens, 1)
    )


def _report(text: str, rules: RuleSet) -> Report:
    return diagnose(read_text(text), FactBook(None), rules)


def test_what_a_run_got_over_is_told_once_a_kind(rules: RuleSet) -> None:
    report = _report(_refusals(5418, 4400, 12297) + "Evaluation finished.\n", rules)
    assert (report.outcome, report.got_over) == (Outcome.NO_FAILURE, True)
    assert report.notes == (
        "servelib.errors.RequestError: 12297 tokens, at most 4096 fit (line 14, the last of "
        "3 such errors): the run continued after it",
    )


def test_a_request_that_a_server_answered_with_an_error_is_what_there_is_to_explain(rules: RuleSet) -> None:
    failed = _refusals(5418).replace("200 OK", "400 Bad Request")
    for end in ("", _END):
        report = _report(failed + 3 * _SERVED.format(day=4) + end, rules)
        assert report.outcome is Outcome.UNRECOGNISED
        assert report.suspect is not None
        assert report.suspect.message == "5418 tokens, at most 4096 fit"


def test_a_run_that_got_over_nothing_and_ended_well_earns_the_tick(rules: RuleSet) -> None:
    report = _report("epoch 1 loss 0.4\nepoch 2 loss 0.3\nTraining finished.\n", rules)
    assert (report.outcome, report.got_over, report.open_end) == (Outcome.NO_FAILURE, False, False)


def test_a_run_without_an_end_earns_none(rules: RuleSet) -> None:
    report = _report("epoch 1 loss 0.4\nepoch 2 loss 0.3\n", rules)
    assert (report.outcome, report.open_end) == (Outcome.NO_FAILURE, True)
    assert not _report("| NVIDIA-SMI 550.54 |\n", rules).open_end


def test_what_python_ignores_in_a_destructor_follows_from_the_failure(rules: RuleSet) -> None:
    library = "/env/lib/python3.12/site-packages/deepspeed/ops/adam/cpu_adam.py"
    text = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/env/lib/python3.12/site-packages/torch/utils/cpp_extension.py", line 21, in run\n'
        "[rank1]:     raise RuntimeError(message) from e\n"
        "[rank1]: RuntimeError: Error building extension 'cpu_adam'\n"
        "Exception ignored in: <function DeepSpeedCPUAdam.__del__ at 0x155470f83880>\n"
        f'Traceback (most recent call last):\n  File "{library}", line 102, in __del__\n'
        "    self.ds_opt_adam.destroy_adam(self.opt_id)\n"
        "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'\n"
        "srun: error: node44: task 1: Exited with exit code 1\n"
    )
    report = _report(text, rules)
    assert report.diagnoses[0].rule == "extension-compile-failed"
    assert not [note for note in report.notes if "line 9" in note]
