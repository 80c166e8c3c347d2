"""No input makes the intake raise, and none makes it slow."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdoctor.intake import read, read_text
from torchdoctor.model import Transcript

TRACE = (
    'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\nRuntimeError: CUDA error: '
    "x\nFor debugging consider y\n"
)
SAMPLES = (
    TRACE,
    "".join(f"[rank{n}]: {line}\n" for line in TRACE.splitlines() for n in (0, 1)),
    f"{TRACE}\nDuring handling of the above exception, another exception occurred:\n\n{TRACE}",
    "KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call "
    'last):\n  File "a.py", line 1, in f\nKeyError: 1\n',
    '  + Exception Group Traceback (most recent call last):\n  |   File "a.py", line 1, in f\n  | '
    "ExceptionGroup: e (1 sub-exception)\n"
    "  +-+---------------- 1 ----------------\n    | ValueError: 1\n    "
    "+------------------------------------\n",
    "ValueError                                Traceback (most recent call last)\nCell In[3], line "
    "1\n----> 1 f()\n\nValueError: x\n",
    "╭──── Traceback (most recent call last) ────╮\n│ /a.py:41 in f  │\n│ ❱ 41 │ g()  "
    "│\n╰───────────╯\nValueError: x\n",
    f"torch.x.ChildFailedError: \n{'=' * 40}\na.py FAILED\n{'-' * 40}\nRoot Cause (first observed "
    f"failure):\n[0]:\n"
    f"  time      : 2026-11-27_23:48:32\n  rank      : 8 (local_rank: 0)\n  traceback : {TRACE}{'=' * 40}\n",
    'Fatal Python error: Aborted\n\nCurrent thread 0x00007f (most recent call first):\n  File "a.py", line '
    "3 in f\n",
    'Thread 3510 (idle): "MainThread"\n    wait (threading.py:359)\n#0  0x7f in poll () from /lib/libc.so\n',
    "/a.py:3: UserWarning: text\n  warnings.warn(\n[W1127 23:48:32.2 a.cpp:1] Warning: x\nframe #0: x + "
    "0x1 (0x7f in /lib/y)\n",
    "/p/Loss.cu:2: f: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0` failed.\nterminate called\n  "
    "what():  x\n",
    '{"log":"Traceback (most recent call last):\\n","stream":"stderr","time":"2024-01-01T10:00:00.1Z"}\n',
    "2024-01-01T00:00:00Z [1,0]<stderr>:(a pid=1) ERROR 01-02 03:04:05 [core.py:390] x\nOct 04 15:02:41 h "
    "p[3]: y\n[  1.234567] NVRM: z\n",
    "usage: a\n  --x y\n| a | b |\n```\n[10:02] mira: hello\n# head\ndef f(x):\n    return x\n",
    " 3%|#3  | 13/412 [00:04<01:58,  3.36it/s]\r 4%|#3  | 14/412 [00:04<01:58,  "
    "3.36it/s]\x1b[A\x1b[0m\x08\x08\n",
)
PIECES = [line for sample in SAMPLES for line in sample.splitlines()]
LINE = st.one_of(st.sampled_from(PIECES), st.text(max_size=60))
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def sound(transcript: Transcript) -> None:
    count = len(transcript.events)
    for number, event in enumerate(transcript.events):
        assert event.id == number
        assert 1 <= event.line <= event.end_line
        assert event.count >= 1
        assert len(event.text) <= 33_000
        assert not any(char in event.text for char in "\x1b\x00\r\x9b\u202e")
        for relation in event.relations:
            assert 0 <= relation.event < count
            assert relation.event != number
    assert [event.line for event in transcript.events] == sorted(event.line for event in transcript.events)


@QUICK
@given(st.lists(LINE, max_size=60))
def test_any_mixture_of_lines(lines: list[str]) -> None:
    sound(read_text("\n".join(lines)))


@QUICK
@given(st.sampled_from(SAMPLES), st.integers(0, 2_000), st.integers(0, 2_000), st.sampled_from(SAMPLES))
def test_cut_and_joined_samples(first: str, start: int, end: int, second: str) -> None:
    sound(read_text(first[start % (len(first) + 1) :] + second[: end % (len(second) + 1)] + first))


@QUICK
@given(st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 255)), max_size=40))
def test_flipped_bytes(sample: str, flips: list[tuple[int, int]]) -> None:
    data = bytearray(sample.encode())
    for at, value in flips:
        data[at % len(data)] = value
    sound(read(["-"], io.BytesIO(bytes(data))))


@QUICK
@given(st.binary(max_size=3_000))
def test_any_bytes(data: bytes) -> None:
    sound(read(["-"], io.BytesIO(data)))


@QUICK
@given(st.lists(st.sampled_from(SAMPLES), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_interleaved_samples(samples: list[str], random: object) -> None:
    queues = [sample.splitlines() for sample in samples]
    lines: list[str] = []
    while any(queues):
        queue = random.choice([queue for queue in queues if queue])  # type: ignore[attr-defined]
        lines.append(queue.pop(0))
    sound(read_text("\n".join(lines)))


@pytest.mark.parametrize(
    "unit",
    ["(", "[", "a.", ": ", "|", "`", "\\n", "\x1b[", "\x1b]", "1:", "'\"", "[rank3]: ", "RuntimeError: ",
        "Traceback (most recent call last):\n",
     "foo: Traceback (most recent call last):\n", '  File "x.py", line 1, in f\n',
         "  + Exception Group Traceback (most recent call last):\n",
     "x.cu:1: f: block: [0,0,0], "
     "thread: [0,0,0] Assertion `a", "(a pid=1) ", "2024-01-01 00:00:00 - ", "/a.py:1: UserWarning: x\n",
     "\r10%|#| 1/2 [00:00<00:01, 1.2it/s]", "from user code:\n", '"""\n', "E   x\n", "> ", "é"],
)  # fmt: skip
def test_time_is_linear(unit: str) -> None:
    """Twenty times the input takes about twenty times as long; the bound is wide, a square would be 400."""
    small = unit * (10_000 // len(unit))
    read_text(small)
    start = time.process_time()
    read_text(small)
    one = time.process_time() - start
    start = time.process_time()
    read_text(small * 20)
    twenty = time.process_time() - start
    assert twenty < 20 * max(one, 0.004) * 4
