"""What tells who and where leaves a log; what tells why stays."""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pace import bounded

from share.planted_kinds import KINDS
from share.planted_secrets import planted
from torchdoctor import catalog
from torchdoctor.share import secrets
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
