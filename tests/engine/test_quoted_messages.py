"""Messages of every kind of event: confirmed where a run prints them, not where a text only holds them."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.intake import read_text
from torchdoctor.model import Diagnosis, Severity, Standing

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
