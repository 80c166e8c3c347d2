"""Messages that a text only holds, and causes that only a warning names: none is confirmed."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake import read, read_text
from torchdoctor.model import Diagnosis, Outcome, Report, Severity, Standing

MESSAGES = (
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x512 and 800x120)",
    "IndexError: Target 10 is out of bounds.",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: DataLoader worker (pid 3316) is killed by signal: Killed.",
    "NVRM: No NVIDIA GPU found.",
    "[ 202219.693159] NVRM: Xid (PCI:0000:41:00): 79, pid=812, GPU has fallen off the bus.",
    "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
    "[W socket.cpp:401] [c10d] The server socket has failed to listen on [::]:47531 (errno: 98 - Address "
    "already in use).",
    "ERROR: Could not find a version that satisfies the requirement torch==2.1.2+cpu (from versions: none)",
    "Failed to initialize NVML: Unknown Error",
)

HOLDING = {
    "comment": "import torch\n\n# {}\nx = torch.rand(3)\nprint(x)\n",
    "comment behind code": "import os\n\ndef f(x):\n    return x  # {}\n",
    "list": 'KNOWN = [\n    "{}",\n    "other text",\n]\n',
    "exception in a program": (
        'def check(x):\n    if x is None:\n        raise RuntimeError("{}")\n    return x\n'
    ),
    "logging in a program": 'import logging\n\ndef f():\n    log.error("{}")\n',
    "C++": '#include <torch/extension.h>\n\n// {0}\nvoid f() {{\n  TORCH_CHECK(false, "{0}");\n}}\n',
    "shell": '#!/bin/bash\nset -e\nif grep -q "{}" log; then\n  exit 3\nfi\n',
    "YAML": 'watch:\n  patterns:\n    - "{}"\n    - "other"\n  action: restart\n',
    "TOML": '[watch]\npattern = "{}"\naction = "restart"\n',
    "JSON": '{{\n  "patterns": [\n    "{}"\n  ],\n  "max": 3\n}}\n',
    "help": 'usage: job [-h] [--on TEXT]\n\noptions:\n  -h, --help   show help\n  --on TEXT    e.g. "{}"\n',
    "Markdown head": (
        "# Trouble\n\nThis page lists what can go wrong.\n\n## {}\n\nThe setup is wrong then. Mend it.\n"
    ),
    "Markdown list": (
        "# Trouble\n\nThis page lists what can go wrong and why.\n\n- `{}`: check the setup.\n- Other: ask.\n"
    ),
    "expected failure": (
        "XFAIL tests/t.py::test_a - RuntimeError: {}\n==== 3 passed, 1 xfailed in 0.1s ====\n"
    ),
    "name of a test": "tests/t.py::test_it[{}] PASSED\ntests/t.py::test_b PASSED\n2 passed in 0.1s\n",
    "search": '$ grep -rn text src\nsrc/a.py:14:    "{0}": 3,\nsrc/b.cpp:20:  TORCH_CHECK(ok, "{0}");\n',
    "patch": "diff --git a/x.md b/x.md\n--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,3 @@\n # FAQ\n+{}\n+Lower it.\n",
    "commit": 'commit 0d3c1b2a\nAuthor: A <a@example.org>\n\n    Fix "{}"\n\n    It came from the loader.\n',
    "changes": '## 1.4.2\n\n- Fixed "{}" in eval.\n- Faster start.\n\n## 1.4.1\n\n- First release with it.\n',
}

PRINTING = {
    "alone": "{}\n",
    "behind steps": "epoch 0 loss 2.3\nepoch 1 loss 2.2\n{}\n",
    "docker compose": "worker-1  | epoch 0 loss 2.3\nworker-1  | {}\nworker-1 exited with code 1\n",
    "rank": "[rank1]: {}\n",
    "between prompts": "$ python train.py\n{}\n$ \n",
    "in a report": "I get this error in my job:\n\n```\n{}\n```\n\nWhat does it mean? I have no idea.\n",
}


def _found(text: str, rules: RuleSet) -> tuple[Diagnosis, ...]:
    return diagnose(read_text(text), FactBook(None), rules).diagnoses


# an exception's class at the head of an item is an anchor
LISTS = ("YAML", "Markdown list")

SOURCES = ("comment", "comment behind code", "exception in a program", "logging in a program")


@pytest.mark.parametrize("name", SOURCES)
def test_source_code_gives_no_diagnosis(name: str, rules: RuleSet) -> None:
    found = {message: _found(HOLDING[name].format(message), rules) for message in MESSAGES}
    assert not any(found.values()), {message: one[0].rule for message, one in found.items() if one}


def _held(name: str) -> list[str]:
    return [message for message in MESSAGES if name not in LISTS or "Error: " not in message[:20]]


@pytest.mark.parametrize("name", HOLDING)
def test_what_a_text_only_holds_is_never_confirmed(name: str, rules: RuleSet) -> None:
    sure = {}
    for message in _held(name):
        for item in _found(HOLDING[name].format(message), rules):
            if item.standing is Standing.CONFIRMED and item.severity is Severity.FATAL:
                sure[message] = item.rule
    assert sure == {}


@pytest.mark.parametrize("name", HOLDING)
def test_what_a_text_only_holds_says_nothing_beside_a_failure(name: str, rules: RuleSet) -> None:
    failure = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nKeyError: 3\n'
    for message in _held(name):
        found = _found(HOLDING[name].format(message) + failure, rules)
        assert [item.rule for item in found] == ["own-code-error"], message


@pytest.mark.parametrize("name", PRINTING)
def test_a_run_that_prints_a_message_gives_one(name: str, rules: RuleSet) -> None:
    missed = [message for message in MESSAGES if not _found(PRINTING[name].format(message), rules)]
    assert not missed


def test_a_logger_prints_class_and_message(rules: RuleSet) -> None:
    text = "2025-03-02 10:11:12,345 ERROR trainer: IndexError: Target 10 is out of bounds.\n"
    assert [item.rule for item in _found(text, rules)] == ["cuda-assert-label-range"]


# Texts that are no logs: sources, rules, pages. Possible at most, and seldom that
ROOT = Path(__file__).resolve().parents[2]

# a page that shows a program's output in a fence is what a pasted issue is
SHOWS_OUTPUT = re.compile(r"^```(?:(?!^```).)*^\w+Error: ", re.DOTALL | re.MULTILINE)

MANY = 60

MOST_ALARMS = 0.2


def _own_files() -> list[Path]:
    """Pages, programs, tests, scripts and rules of this repository: they are full of error messages."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*/*.md")]
    pages = [path for path in pages if not SHOWS_OUTPUT.search(path.read_text(encoding="utf-8"))]
    others = [*ROOT.glob("torchdoctor/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("rules/*/*.toml")]
    others += ROOT.glob("deploy/*/*.sh")
    chosen = random.Random(9).sample(sorted(others), MANY - min(len(pages), 20))
    return [*sorted(pages)[:20], *chosen]


def test_texts_that_are_no_logs(rules: RuleSet) -> None:
    alarms: dict[str, Standing] = {}
    for path in _own_files():
        found = diagnose(read([str(path)]), FactBook(), rules).diagnoses
        fatal = [item for item in found if item.severity is Severity.FATAL]
        if fatal:
            alarms[str(path.relative_to(ROOT))] = fatal[0].standing
    assert Standing.CONFIRMED not in alarms.values(), alarms
    assert len(alarms) <= MOST_ALARMS * MANY, alarms


# Causes that only a warning or a line of a log names, beside a failure
DRIVER = (
    "/v/lib/python3.10/site-packages/torch/cuda/__init__.py:141: UserWarning: CUDA initialization: Found no "
    "NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver\n"
    "  return torch._C._cuda_getDeviceCount() > 0\n"
)

NVIDIA_SMI = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"

STEPS = "epoch 0 loss 1.09\nepoch 1 loss 0.94\n"

RAISED = 'Traceback (most recent call last):\n  File "/w/run.py", line 66, in <module>\n    go()\n'

SHAPE = f"{RAISED}RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x300 and 384x128)\n"

NO_GPU = f"{RAISED}RuntimeError: No CUDA GPUs are available\n"

STRANGE = (
    f'{RAISED}  File "/v/lib/python3.11/site-packages/tracker/core.py", line 8, in put\n    raise Lost(key)\n'
    "tracker.core.LostError: no such series\n"
)


def _report(text: str, rules: RuleSet) -> Report:
    return diagnose(read_text(text), FactBook(None), rules)


@pytest.mark.parametrize("said", [DRIVER, NVIDIA_SMI])
def test_a_failure_of_another_cause_comes_before_what_was_only_said(said: str, rules: RuleSet) -> None:
    assert _report(said + SHAPE, rules).diagnoses[0].rule == "matmul-shape"


@pytest.mark.parametrize("said", [DRIVER, NVIDIA_SMI])
def test_a_failure_that_follows_from_it_stands_under_it(said: str, rules: RuleSet) -> None:
    (only,) = _report(said + NO_GPU, rules).diagnoses
    assert (only.rule, [link.rule for link in only.leads_to]) == ("driver-not-found", ["no-cuda-gpus"])


def test_a_run_that_trained_on_failed_of_what_no_rule_knows(rules: RuleSet) -> None:
    report = _report(DRIVER + STEPS + STRANGE, rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert report.suspect.type == "tracker.core.LostError"
    assert any("driver-not-found" in note for note in report.notes)


def test_a_warning_without_a_link_to_the_end_is_not_why(rules: RuleSet) -> None:
    report = _report(DRIVER + STRANGE, rules)
    assert report.outcome is Outcome.UNRECOGNISED
    assert any("driver-not-found" in note for note in report.notes)


def test_what_was_raised_comes_before_a_warning_of_a_library(rules: RuleSet) -> None:
    scheduler = (
        "/v/torch/optim/lr_scheduler.py:134: UserWarning: "
        "Detected call of `lr_scheduler.step()` before `optimizer.step()`.\n"
    )
    aborted = f"{RAISED}RuntimeError: NCCL communicator was aborted on rank 19.\n"
    box = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 8851) "
        "of binary: python\n"
    )
    assert [item.rule for item in _report(scheduler + aborted, rules).diagnoses] == [
        "nccl-aborted",
        "scheduler-order",
    ]
    assert _report(scheduler + box, rules).diagnoses[0].rule == "scheduler-order"


def test_bitsandbytes_without_a_driver(rules: RuleSet) -> None:
    warned = (
        "/v/lib/python3.10/site-packages/bitsandbytes/cextension.py:34: UserWarning: The installed version "
        "of bitsandbytes was compiled without GPU support. 8-bit optimizers are unavailable.\n"
    )
    (only,) = _report(warned + NO_GPU + NVIDIA_SMI, rules).diagnoses
    assert only.rule == "driver-not-found"
