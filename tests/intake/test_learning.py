"""Prefixes that no list knows."""

from torchdoctor.intake import read_text
from torchdoctor.intake.learning import common_shape, shape_of
from torchdoctor.model import EventKind

BODIES = [
    "loading weights",
    "step 1 loss 2.5",
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 7, in <module>',
    "    main()",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "[main] shutting down",
]


def test_shape_generalises_numbers() -> None:
    shape = shape_of("<job-12/3> ")
    assert shape.pattern.match("<job-7/44> hello")
    assert not shape.pattern.match("<task-7/44> hello")


def test_common_shape_finds_what_every_line_begins_with() -> None:
    shape = common_shape([f"trainer_{i % 2}> {body}" for i, body in enumerate(BODIES)])
    assert shape is not None
    head = shape.pattern.match("trainer_9> hello")
    assert head is not None
    assert head[0] == "trainer_9> "


def test_common_shape_of_indented_paste() -> None:
    shape = common_shape(["    " + body for body in BODIES])
    assert shape is not None
    assert shape.tag is False
    head = shape.pattern.match("    Traceback")
    assert head is not None
    assert head[0] == "    "


def test_no_shape_for_logs_that_repeat_a_word() -> None:
    assert common_shape([f"Epoch {i}: loss {i / 7:.3f}" for i in range(30)]) is None
    assert common_shape(BODIES) is None
    assert common_shape(["x> one", "x> two"]) is None


def test_identity_keeps_names_and_drops_counters() -> None:
    shape = shape_of("[w1] ")
    assert shape.identity("[w1] ") == "w1"
    assert shape.identity("[w2] ") == "w2"
    counter = shape_of("[line 1] ")
    names = {counter.identity(f"[line {i}] ") for i in range(1000)}
    assert len(names) <= 81  # until then they may be as many ranks in their order
    scattered = shape_of("[request 1] ")
    names = {scattered.identity(f"[request {i * 7919 % 100_003}] ") for i in range(100)}
    assert len(names) < 12
    ranks = shape_of("<r1> ")
    assert {ranks.identity(f"<r{i % 64}> ") for i in range(1000)} == {f"r{i}" for i in range(64)}


def test_traceback_behind_unknown_prefix_comes_out_whole() -> None:
    text = "\n".join(f"<job-{i % 2}/k8> {body}" for body in BODIES for i in range(2))
    events = [e for e in read_text(text).events if e.kind is EventKind.EXCEPTION]
    assert {e.text for e in events} == {"CUDA error: an illegal memory access was encountered"}
    assert all([f.line for f in e.frames] == [7] for e in events)


def test_long_indented_messages_are_no_indented_paste() -> None:
    frames = ['  File "/app/train.py", line 7, in <module>', "    main()"] * 3
    keys = [f"  size of layer.{n} differs" for n in range(40)]
    lines = ["Traceback (most recent call last):", *frames, "RuntimeError: bad keys", *keys]
    assert common_shape(lines) is None
    (event,) = read_text("\n".join(lines)).events
    assert event.text.split("\n") == ["bad keys", *keys]
    assert event.end_line == len(lines)
