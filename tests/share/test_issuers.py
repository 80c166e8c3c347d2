"""The list that was fixed before the redactor was changed, and the table of rules that came with it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from share.planted_issuers import FORMS, planted
from torchdoctor.share import issuer_rules
from torchdoctor.share.redaction import redact

try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as parser

_LEAST = 0.97


def test_of_three_hundred_from_the_issuers_documentation_none_is_left() -> None:
    """The unchanged redactor left 132 of them on first sight; the aim is 3 in a hundred."""
    lines = planted()
    assert len(lines) == 300
    assert len({item.kind for item in lines}) == len(FORMS) >= 60
    left = [(item.line, pieces) for item in lines if (pieces := item.left(redact(item.line).text))]
    assert left == []


@pytest.mark.parametrize("seed", [1, 2])
def test_other_values_of_the_same_formats_go_too(seed: int) -> None:
    lines = planted(seed=seed)
    left = [(item.line, pieces) for item in lines if (pieces := item.left(redact(item.line).text))]
    assert 1 - len(left) / len(lines) >= _LEAST, left


def test_what_is_redacted_stays_as_it_is() -> None:
    once = [redact(item.line).text for item in planted()]
    assert [(text, redact(text).text) for text in once if redact(text).text != text] == []


def test_every_repeat_of_a_rule_has_a_bound() -> None:
    """So that the cost of a rule is linear in the text."""
    assert len(issuer_rules.rules()) > 200
    unbounded = [
        rule.id
        for rule in issuer_rules.rules()
        for most in _repeats(parser.parse(rule.expression, re.ASCII))
        if most == parser.MAXREPEAT
    ]
    assert unbounded == []


def _repeats(node: object) -> Iterator[int]:
    """The upper bounds of all repeats within a parsed expression."""
    if isinstance(node, (parser.SubPattern, list)):
        for item in node:
            yield from _repeats(item)
    elif isinstance(node, tuple):
        if node and str(node[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
            yield int(node[1][1])
        for item in node:
            yield from _repeats(item)


def test_no_rule_is_slow_on_its_own_keywords() -> None:
    def cost(length: int) -> float:
        started = time.process_time()
        for text in floods:
            issuer_rules.take_out((text * length)[:length], lambda: "", "REDACTED")
        return time.process_time() - started

    floods = [
        keyword + end for rule in issuer_rules.rules()[::4] for keyword in rule.keywords for end in "= a"
    ]
    cost(10)  # compiles
    assert any(cost(4000) / cost(2000) < 2**1.2 for _ in range(3))


def test_the_rules_say_where_they_come_from_and_under_which_license() -> None:
    table = Path(issuer_rules.TABLE)
    head = table.read_text(encoding="utf-8").splitlines()[:2]
    assert re.match(r"# Rules of gitleaks \d+\.\d+\.\d+ \(MIT", head[0])
    notice = table.with_suffix(".LICENSE").read_text(encoding="utf-8")
    assert "Copyright (c) 2019 Zachary Rice" in notice
    assert "The above copyright notice and this permission notice shall be included" in notice


def test_the_rules_are_read_only_when_something_is_redacted() -> None:
    code = (
        "import sys, torchdoctor.cli.main, torchdoctor.cli.explain\n"
        "print(*[name for name in sys.modules if name.startswith('torchdoctor.share')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == ""


@pytest.mark.parametrize(
    "text",
    [
        "password=os.environ['PW'] token=get_token(3) secret=${SECRET} passwd=$(pass show x)",
        'password: "" secret: <your secret> api_key=[hidden] token={token}',
        "PWD=/data OLDPWD=/opt/x key : shape=(1, 3952, 10, 64) (torch.float16)",
        "undefined symbol: _ZN2at4_ops9fft_irfft4callERKNS_6TensorESt8optionalIN3c106SymIntEElS5_",
        "0x1 in c10::RegisterOperators (__ZN3c1017RegisterOperatorsD1Ev)",
        "WARNING: Ignoring invalid distribution ~orch (/usr/lib/python3.11/site-packages)",
        "/data/imagenet/train/n01440764/x.JPEG /data/train/a.bin /nfs/datasets/coco/b.json",
        "chown: changing ownership of 'x': Operation not permitted",
        "python -u train.py -p 3 -u 2",
        "Cijk_Ailk_Bljk_BBH_MT128x128x32_SE_1LDSB0_APM1_ABV0_ACED0_AF0EM8",
        "git commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 sha256:ab12",
        "[core.py:58] Initializing, [W socket.cpp:663] x, [rank0:12] y",
        "attn = q@k : x@weight and 1234.5678.9012",
        "the box is large: bounding box",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "srun: error: nautilus: task 3: Killed\nnautilus is down",
            "srun: error: node1: task 3: Killed\nnode1 is down",
        ),
        ("user@box:~/x$ ls\nthe bounding box", "user@node1:~/x$ ls\nthe bounding box"),
        ("/data/alice7/x and alice7", "/data/user1/x and alice7"),
        ("/home/alice7/x and alice7", "/home/user1/x and user1"),
        ("Cookie: a=1; b=c2d3e4f5g6", "Cookie: REDACTED"),
        ("MAC 3cec.ef1a.2b3c, 3cec.ef1a.2b3d", "MAC 0200.00ff.0001, 0200.00ff.0002"),
        ("FTP_PASS=q9&more forward_pass=12.5", "FTP_PASS=REDACTED forward_pass=12.5"),
        ("/scratch/project_4650/okafor/x", "/scratch/project_4650/user1/x"),
        ("salloc: Nodes gpu-a[001-004] are ready for job", "salloc: Nodes node1 are ready for job"),
        ("ssh: connect to host titan port 22: refused", "ssh: connect to host node1 port 22: refused"),
        ("Node kappa status is now: NodeNotReady", "Node node1 status is now: NodeNotReady"),
        ("worker-7: [2026-01-01 10:00:00] [INFO] x", "node1: [2026-01-01 10:00:00] [INFO] x"),
        ("DESKTOP-9AB3KQ2\\okafor logged on", "node1\\user1 logged on"),
        ("docker login -u ci -p 'a$(b' reg.example", "docker login -u ci -p 'REDACTED' reg.example"),
    ],
)
def test_taken_out_so(text: str, expected: str) -> None:
    assert redact(text).text == expected
