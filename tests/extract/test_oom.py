"""Memory reports of torch's allocators, version by version, and the claims that follow from their numbers."""

from __future__ import annotations

import pytest

from torchdoctor.extract import of_event, oom
from torchdoctor.model import (
    Event,
    EventKind,
    Fact,
    FactValue,
    Frame,
    Relation,
    RelationKind,
    State,
    Transcript,
)

MIB, GIB = 1024**2, 1024**3


def extract(text: str, before: tuple[str, ...] = (), frames: tuple[Frame, ...] = ()) -> dict[str, Fact]:
    events = [
        Event(number, EventKind.LOG, line, "run.log", number + 1, number + 1)
        for number, line in enumerate(before)
    ]
    last = Event(len(events), EventKind.EXCEPTION, text, "run.log", 90, 90, frames=frames)
    found = list(of_event("oom", last, Transcript(("run.log",), (*events, last))))
    assert {fact.name for fact in found} <= set(oom.FACTS)
    return {fact.name.removeprefix("oom."): fact for fact in found}


def values(text: str, before: tuple[str, ...] = ()) -> dict[str, FactValue]:
    return {name: fact.value for name, fact in extract(text, before).items() if fact.state is State.KNOWN}


HINT = (
    " If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


def new_report(
    want: str, total: str, free: str, own: str | None, allocated: str, rest: str, listed: str = ""
) -> str:
    self = f" Including non-PyTorch memory, this process has {own} memory in use." if own else ""
    return (
        f"CUDA out of memory. Tried to allocate {want}. GPU 0 has a total capacity of {total} of which "
        f"{free} is free.{listed}{self} Of the allocated memory {allocated} is allocated by PyTorch, and "
        f"{rest} is reserved by PyTorch but unallocated.{HINT}"
    )


@pytest.mark.parametrize(
    ("text", "want", "total", "free", "allocated", "unallocated", "gpu"),
    [
        (  # 1.0 to 1.3 print the free part of the cache
            "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.91 GiB total capacity; 9.90 GiB "
            "already allocated; 13.31 MiB free; 75.00 MiB cached)",
            20 * MIB, int(10.91 * GIB), int(13.31 * MIB), int(9.90 * GIB), 75 * MIB, 0,
        ),
        (  # 1.4 to 2.0 print the whole of it
            "CUDA out of memory. Tried to allocate 60.00 MiB (GPU 1; 11.00 GiB total capacity; 4.00 GiB "
            "already allocated; 12.50 MiB free; 5.00 GiB reserved in total by PyTorch)",
            60 * MIB, 11 * GIB, int(12.5 * MIB), 4 * GIB, GIB, 1,
        ),
        (  # torch_npu
            "NPU out of memory. Tried to allocate 896.00 MiB (NPU 3; 60.00 GiB total capacity; 58.00 "
            "GiB already "
            "allocated; 58.00 GiB current active; 622.00 MiB free; 59.00 GiB reserved in total by PyTorch)",
            896 * MIB, 60 * GIB, 622 * MIB, 58 * GIB, GIB, 3,
        ),
        (  # 2.1 misspelt it
            "CUDA out of memory. Tried to allocate 44.00 MiB. GPU 0 has a total capacty of 10.75 GiB of "
            "which 25.50 MiB is free. Including non-PyTorch memory, this process has 10.70 GiB memory in "
            "use. Of the allocated memory 10.00 GiB is allocated by PyTorch, and 17.00 MiB is reserved by "
            "PyTorch but unallocated.",
            44 * MIB, int(10.75 * GIB), int(25.5 * MIB), 10 * GIB, 17 * MIB, 0,
        ),
        (  # 2.2 and 2.3 left the number out
            "CUDA out of memory. Tried to allocate 336.00 MiB. GPU  has a total capacity of 79.00 GiB of "
            "which 141.25 MiB is free. Process 2109115 has 78.99 GiB memory in use. Of the allocated memory "
            "77.00 GiB is allocated by PyTorch, and 283.50 MiB is reserved by PyTorch but unallocated.",
            336 * MIB, 79 * GIB, int(141.25 * MIB), 77 * GIB, int(283.5 * MIB), None,
        ),
        (
            "HIP out of memory. Tried to allocate 978.00 MiB. GPU 2 has a total capacity of 16.00 GiB of "
            "which 630.00 MiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes "
            "is reserved by PyTorch but unallocated.",
            978 * MIB, 16 * GIB, 630 * MIB, 0, 0, 2,
        ),
        (  # cudaMallocAsync, over several lines
            "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently "
            "allocated     : 30.00 GiB\n"
            "Requested               : 150.00 GiB\nDevice limit            : 79.00 GiB\n"
            "Free (according to CUDA): 48.00 GiB\nPyTorch limit (set by user-supplied memory fraction)\n"
            "                        : 17179869184.00 GiB",
            150 * GIB, 79 * GIB, 48 * GIB, 30 * GIB, None, 0,
        ),
        (
            "MPS backend out of memory (MPS allocated: 11.00 GB, other allocations: 6.65 GB, max allowed: "
            "18.00 GB). Tried to allocate 375.00 MB on private pool. Use "
            "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable",
            375 * MIB, 18 * GIB, None, 11 * GIB, None, None,
        ),
    ],
)  # fmt: skip
def test_wordings(
    text: str,
    want: int,
    total: int,
    free: int | None,
    allocated: int,
    unallocated: int | None,
    gpu: int | None,
) -> None:
    found = values(text)
    assert (found["want_bytes"], found["total_bytes"], found.get("free_bytes")) == (want, total, free)
    assert (found["allocated_bytes"], found.get("unallocated_bytes")) == (allocated, unallocated)
    assert found.get("gpu") == gpu


def test_numbers_that_are_missing_are_absent_and_claims_are_not_made() -> None:
    found = extract("CUDA out of memory.")
    assert found["want_bytes"].state is State.ABSENT
    assert "fragmented" not in found
    assert "others_hold" not in found


@pytest.mark.parametrize("text", ["Tried to allocate", "out of coffee", "invalid argument", ""])
def test_other_messages_give_nothing(text: str) -> None:
    assert extract(text) == {}


def test_source_names_the_line() -> None:
    assert extract("CUDA out of memory. Tried to allocate 2.00 GiB")["want_bytes"].source == "text:run.log:90"


@pytest.mark.parametrize(
    ("text", "fragmented"),
    [
        (new_report("35.60 GiB", "79.33 GiB", "26.16 GiB", "53.16 GiB", "11.97 GiB", "40.69 GiB"), True),
        (new_report("22.78 GiB", "31.47 GiB", "12.73 GiB", "18.73 GiB", "9.08 GiB", "9.35 GiB"), False),
        # a few per cent of slack is normal, even if the request is smaller
        (new_report("2.00 MiB", "23.69 GiB", "1.94 MiB", "23.60 GiB", "22.90 GiB", "200.00 MiB"), False),
        (new_report("20.00 MiB", "31.36 GiB", "18.12 MiB", "31.33 GiB", "27.89 GiB", "2.84 GiB"), True),
    ],
)
def test_fragmented(text: str, fragmented: bool) -> None:
    assert values(text)["fragmented"] is fragmented


@pytest.mark.parametrize(
    ("text", "others"),
    [
        # named in the report
        (
            new_report("12.00 GiB", "79.18 GiB", "4.99 GiB", "518.00 MiB", "0 bytes", "0 bytes",
                       " Process 1512 has 73.66 GiB memory in use."),
            True,
        ),
        # the same process, seen through a PID namespace
        (
            new_report("1.00 GiB", "44.53 GiB", "301.00 MiB", None, "43.10 GiB", "512.40 MiB",
                       " Process 1877302 has 44.22 GiB memory in use."),
            False,
        ),
        # in a container, and another container's process beside it
        (
            new_report("1.00 GiB", "44.53 GiB", "301.00 MiB", None, "13.10 GiB", "512.40 MiB",
                       " Process 51 has 30.10 GiB memory in use. Process 77 has 14.12 GiB memory in use."),
            True,
        ),
        # the old report counts only the allocator's memory: a context of its own is no other process
        (
            "CUDA out of memory. Tried to allocate 82.00 MiB (GPU 0; 10.76 GiB total capacity; 9.77 GiB "
            "already allocated; 44.44 MiB free; 9.83 GiB reserved in total by PyTorch)",
            False,
        ),
        (
            "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 2.81 GiB "
            "already allocated; 25.38 MiB free; 3.06 GiB reserved in total by PyTorch)",
            True,
        ),
        # Windows and WSL print a process size that no machine has
        (
            new_report("768.00 MiB", "31.84 GiB", "0 bytes", "17179869184.00 GiB", "52.93 GiB", "32.88 MiB"),
            False,
        ),
    ],
)  # fmt: skip
def test_others_hold(text: str, others: bool) -> None:
    assert values(text)["others_hold"] is others


@pytest.mark.parametrize(
    ("want", "absurd", "exceeds", "dominates"),
    [
        ("17179869183.95 GiB", True, True, True),
        ("56124.49 GiB", True, True, True),
        ("200.00 GiB", False, True, True),
        ("12.00 GiB", False, False, True),
        ("1.00 GiB", False, False, False),
    ],
)
def test_size_of_the_request(want: str, absurd: bool, exceeds: bool, dominates: bool) -> None:
    found = values(new_report(want, "23.65 GiB", "18.80 GiB", "3.60 GiB", "3.15 GiB", "10.00 MiB"))
    assert (found["absurd"], found["exceeds_card"], found["request_dominates"]) == (
        absurd,
        exceeds,
        dominates,
    )


def test_more_than_an_exbibyte() -> None:
    assert values("CUDA out of memory. Tried to allocate more than 1EB memory.")["absurd"] is True


def test_a_limit_set_for_the_process_is_told() -> None:
    text = new_report("20.00 MiB", "79.18 GiB", "74.49 GiB", "4.68 GiB", "3.95 GiB", "4.30 MiB")
    assert values(text)["limited"] is False
    assert values(text.replace(" Of the allocated", " 3.96 GiB allowed; Of the allocated"))["limited"] is True


RISING = tuple(f"[Epoch 1/9][{n}00/900] loss 2.{n} gpu={5000 + 400 * n}MiB" for n in range(1, 8))
LEVEL = tuple(f"step {n} mem {18.0 + (n % 3) * 2:.1f} GB" for n in range(1, 8))


# one peak counter: warm-up, then level, then another phase that needs more
PHASES = tuple(
    f"step {step} [mem: {mem}]" for step, mem in enumerate(("1.48e+04", *["1.55e+04"] * 9, "4.01e+04"))
)


@pytest.mark.parametrize(
    ("before", "grew"), [(RISING, True), (LEVEL, False), (RISING[:2], None), ((), None), (PHASES, False)]
)
def test_growth_before_the_failure(before: tuple[str, ...], grew: bool | None) -> None:
    assert values("CUDA out of memory. Tried to allocate 2.00 MiB", before).get("grew") is grew


def test_epochs_before_the_failure_are_counted_by_number() -> None:
    before = ("Epoch 1/200 loss 2", "Epoch 1/200 loss 1.9", "Epoch 2/200 loss 1.8", "step_in_epoch: 5050")
    assert values("CUDA out of memory. Tried to allocate 2.00 MiB", before)["epochs_before"] == 2


VALIDATE = Frame("/home/u/main.py", 40, "validate", "out = net(x)")


@pytest.mark.parametrize(
    ("frames", "claim"),
    [
        ((VALIDATE,), True),
        ((Frame("/home/u/main.py", 40, "train_step"),), False),
        ((Frame("/e/torch/utils/_contextlib.py", 116, "decorate_context", package="torch"), VALIDATE), False),
        ((Frame("/e/transformers/trainer.py", 4100, "evaluation_loop", package="transformers"),), False),
        ((Frame("/e/torch/nn/functional.py", 4, "test_", package="torch"),), False),
    ],
)
def test_evaluation_with_gradients(frames: tuple[Frame, ...], claim: bool) -> None:
    found = extract("CUDA out of memory. Tried to allocate 2.00 MiB", frames=frames)
    assert found["evaluation_with_grad"].value is claim


def test_frames_of_the_wrapper_count() -> None:
    inner = Event(1, EventKind.EXCEPTION, "CUDA out of memory. Tried to allocate 2.00 MiB", "run.log", 9, 9)
    outer = Event(
        0, EventKind.EXCEPTION, "Caught RuntimeError in replica 0 on device 0.", "run.log", 1, 8,
        frames=(VALIDATE,), relations=(Relation(RelationKind.WRAPS, 1),),
    )  # fmt: skip
    found = {
        fact.name: fact.value for fact in of_event("oom", inner, Transcript(("run.log",), (outer, inner)))
    }
    assert found["oom.evaluation_with_grad"] is True


def test_restoring_a_checkpoint_shows_in_the_frames() -> None:
    frame = Frame("C:\\e\\torch\\serialization.py", 391, "_cuda_deserialize", package="torch")
    found = extract("CUDA out of memory. Tried to allocate 2.00 GiB", frames=(frame,))
    assert found["loading_checkpoint"].value is True


def test_free_memory_and_the_pieces_of_the_cache_add_up() -> None:
    text = new_report("6.91 GiB", "23.64 GiB", "4.88 GiB", "18.75 GiB", "11.52 GiB", "6.71 GiB")
    assert values(text)["fragmented"] is True
    assert values(text)["short"] is True
    assert (
        values(text + " 20.00 GiB allowed;")["fragmented"] is False
    )  # the card's free memory is out of reach


def test_more_free_than_asked_for_leaves_open_what_was_short() -> None:
    text = new_report("2.00 GiB", "39.39 GiB", "7.80 GiB", "31.58 GiB", "30.02 GiB", "0.85 GiB")
    short = extract(text)["short"]
    assert short.state is State.UNKNOWN
    assert short.detail.startswith("7.80 GiB were free and 2.00 GiB asked for")
