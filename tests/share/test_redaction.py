"""What tells who and where leaves a log; what tells why stays."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pace import bounded
from share import planted_issuers
from share.planted_issuers import FORMS
from share.planted_kinds import KINDS
from share.planted_secrets import planted

from torchdoctor import catalog
from torchdoctor.share import issuer_rules, secrets
from torchdoctor.share.redaction import redact
from torchdoctor.workbench.literals import every_literal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/alice/train.py by alice", "/home/user1/train.py by user1"),
        ("/Users/bob.b/x /home/carol/y", "/Users/user1/x /home/user2/y"),
        ("C:\\Users\\Dave\\train.py", "C:\\Users\\user1\\train.py"),
        ("C:\\\\Users\\\\Dave\\\\train.py", "C:\\\\Users\\\\user1\\\\train.py"),
        ("erin@gpu-17:~$ python train.py on gpu-17", "user1@node1:~$ python train.py on node1"),
        ("mail frank@corp.example.com now", "mail person1@example.org now"),
        ("tcp://10.1.2.3:29500 and 10.1.2.3, 10.1.2.4", "tcp://192.0.2.1:29500 and 192.0.2.1, 192.0.2.2"),
        (
            "connect to 131.5.6.7 failed; peer 131.5.6.7:443",
            "connect to 192.0.2.1 failed; peer 192.0.2.1:443",
        ),
        ("master node12.cluster.internal is gone", "master node1 is gone"),
        ("inet6 fe80::1ff:fe23:4567:890a up", "inet6 2001:db8::1 up"),
        ("ether aa:bb:cc:dd:ee:ff", "ether 02:00:00:00:00:01"),
        ("GPU-8a1b2c3d-1111-2222-3333-444455556666", "GPU-00000000-0000-0000-0000-000000000001"),
        ("--token hf_abcdefghijklmnopqrst", "--token REDACTED"),
        ("WANDB_API_KEY=0123456789abcdef0123", "WANDB_API_KEY=REDACTED"),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer REDACTED"),
        ('"password": "hunter22"', '"password": "REDACTED"'),
        ("https://me:s3cret@git.example.org/x", "https://REDACTED@git.example.org/x"),
        ("GET https://x.org/f?X-Amz-Signature=ab12&n=1", "GET https://x.org/f?X-Amz-Signature=REDACTED&n=1"),
        ("AKIAIOSFODNN7EXAMPLE", "REDACTED"),
    ],
)
def test_taken_out(text: str, expected: str) -> None:
    assert redact(text).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-cublas-cu12 12.4.5.8 is installed, libcudnn 9.1.0.70",
        "torch 2.4.1+cu121 on cuda:0, 127.0.0.1:29500, 0.0.0.0",
        "max_tokens=2048 pad_token_id: 50256 token = tokenizer(text1)",
        "RuntimeError: Target 11 is out of bounds. @record def main(): x = a @ b",
        "/root/train.py /home/user/x /usr/lib/python3.11/site-packages/torch/nn/modules/module.py",
        "ValueError: invalid token: expected 3 got 4",
        "2024-05-01 12:00:01.123 [rank0]: step 10: loss 1.5e-3 (12:34:56)",
        "node3:123:456 [0] NCCL INFO Bootstrap",
        "torch.distributed.elastic.local and module.internal_loss",
        "ipv6 ::1 and std::vector<at::Tensor>::operator",
        "[default0]:2026-11-27 23:45:03 INFO x\n[rank1]:23:45:04 INFO y",
    ],
)
def test_left_alone(text: str) -> None:
    assert redact(text).text == text


def test_hosts_that_the_reading_found_are_replaced_everywhere() -> None:
    found = redact("n17:1:2 [0] NCCL INFO x\nhost n17 and n171", ["n17", "localhost"])
    assert found.text == "node1:1:2 [0] NCCL INFO x\nhost node1 and n171"
    assert found.replaced == ("hosts (2)",)


def test_a_redacted_text_stays_as_it_is() -> None:
    text = "alice@gpu-17:~$ x --token hf_abcdefghijklmnopqrst 10.0.0.1:80 /home/alice/a mail z@y.org\n"
    once = redact(text).text
    assert redact(once).text == once


# fmt: off
_FLOODS = [
    "a", "1.", "/home/", "a.b", "x@", "ab:", "token=", "://a:", "0a:", "A-", "_", " ", "\n", "\t", "\\",
    "token='", "http://a:", "/data/a", "a@b", "eyJ.", "aB1", "Cookie: a=", "mysql ", "docker login ", "[a:1",
    "ip-1-", "3cec.", "Ab Cd ", "Ab <x@", "-----BEGIN RSA PRIVATE KEY-----\n", "-----END PRIVATE KEY-----",
    "srun: error: a",
]

# fmt: on


@pytest.mark.parametrize("seed", _FLOODS)
def test_hostile_texts_cost_little(seed: str) -> None:
    text = (seed * 40_000)[:40_000]
    bounded(2.0, lambda: redact(text))


def test_forty_thousand_key_headers_cost_little() -> None:
    text = "-----BEGIN RSA PRIVATE KEY-----\n" * 40_000
    bounded(3.0, lambda: secrets.take_out(text, lambda: "REDACTED"))


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: cn{}x: task 3: Exited\n",
        "/home/u{}z/x at 10.{}.1.2\n",
        "GPU-{:08x}-1111-2222-3333-444455556666\n",
        "-----BEGIN PRIVATE KEY----- {}\n",
        "DB_PASSWORD=q{}!x\n",
    ],
)
def test_cost_grows_with_the_text_and_not_with_the_number_of_names(line: str) -> None:
    def cost(count: int) -> float:
        text = "".join(line.format(number, number % 250) for number in range(count))
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    assert any(cost(2000) / cost(1000) < 2**1.2 for _ in range(3))


def test_of_two_hundred_planted_secrets_none_leaks() -> None:
    lines = planted()
    assert len(lines) == 200
    whole = redact("\n".join(line for line, _ in lines)).text
    leaks = [
        (piece, line, alone)
        for line, pieces in lines
        for alone in [redact(line).text]
        for piece in pieces
        if piece in alone or piece in whole
    ]
    assert leaks == []


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="reads torch's own sources")
def test_what_torch_says_itself_is_left_alone() -> None:
    texts = sorted(set(_texts_of_torch()))
    assert len(texts) > 3000
    edited = [(text, redact(text).text) for text in texts if redact(text).text != text]
    assert len(edited) <= len(texts) // 1000, edited[:20]


def test_what_a_template_of_the_catalog_holds_is_left_alone() -> None:
    literals = sorted(every_literal(catalog.load()))
    edited = [(text, redact(text).text) for text in literals if redact(text).text != text]
    assert edited == []


def _texts_of_torch() -> Iterator[str]:
    """What torch raises and warns: the constant strings of its raise statements and calls of warn."""
    (folder,) = importlib.util.find_spec("torch").submodule_search_locations  # type: ignore[union-attr, misc]
    for name in ("nn", "distributed", "utils", "optim", "autograd", "cuda", "_dynamo", "_inductor", "fx"):
        for path in sorted(Path(folder, name).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                call = node.exc if isinstance(node, ast.Raise) else node
                if isinstance(call, ast.Call) and (
                    isinstance(node, ast.Raise) or "warn" in ast.unparse(call.func)
                ):
                    for argument in call.args:
                        yield from (
                            piece.value
                            for piece in ast.walk(argument)
                            if isinstance(piece, ast.Constant) and isinstance(piece.value, str)
                        )


@pytest.mark.parametrize(("line", "pieces"), [kind[1:] for kind in KINDS], ids=[kind[0] for kind in KINDS])
def test_a_kind_of_secret_or_name_leaves_the_log(line: str, pieces: tuple[str, ...]) -> None:
    once = redact(line).text
    assert [piece for piece in pieces if piece in once] == []
    assert redact(once).text == once


# The list that was fixed before the redactor was changed, and the table of rules that came with it
try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as parser

_LEAST = 0.97


def test_of_three_hundred_from_the_issuers_documentation_none_is_left() -> None:
    """The unchanged redactor left 132 of them on first sight; the aim is 3 in a hundred."""
    lines = planted_issuers.planted()
    assert len(lines) == 300
    assert len({item.kind for item in lines}) == len(FORMS) >= 60
    left = [(item.line, pieces) for item in lines if (pieces := item.left(redact(item.line).text))]
    assert left == []


@pytest.mark.parametrize("seed", [1, 2])
def test_other_values_of_the_same_formats_go_too(seed: int) -> None:
    lines = planted_issuers.planted(seed=seed)
    left = [(item.line, pieces) for item in lines if (pieces := item.left(redact(item.line).text))]
    assert 1 - len(left) / len(lines) >= _LEAST, left


def test_what_is_redacted_stays_as_it_is() -> None:
    once = [redact(item.line).text for item in planted_issuers.planted()]
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
