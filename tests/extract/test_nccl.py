"""NCCL messages of several versions and forms into facts."""

from __future__ import annotations

import pytest

from torchdoctor.extract import nccl, nccl_ranks, of_event
from torchdoctor.model import Event, EventKind, FactValue, Frame, State, Transcript


def transcript(*texts: str | tuple[int | None, str]) -> Transcript:
    events = []
    for number, item in enumerate(texts):
        rank, text = item if isinstance(item, tuple) else (None, item)
        events.append(Event(number, EventKind.LOG, text, "job.log", number + 1, number + 1, rank=rank))
    return Transcript(("job.log",), tuple(events))


def facts(text: Transcript, event: int) -> dict[str, FactValue]:
    found = list(of_event("nccl", text.events[event], text))
    assert {fact.name for fact in found} <= set(nccl.FACTS)
    return {fact.name: fact.value for fact in found if fact.state is State.KNOWN}


def watchdog(rank: int, seq: int, op: str = "ALLREDUCE", numel: int = 4096, ran: int = 600_050) -> str:
    return (
        f"[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, "
        f"NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for {ran} milliseconds before timing out"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLGATHER, "
            "NumelIn=2048, NumelOut=4096, Timeout(ms)=25000) ran for 25089 milliseconds before timing out.",
            {"nccl.seq": 4, "nccl.op": "ALLGATHER", "nccl.timeout_ms": 25000},
        ),
        (  # torch 1.8: no number, a shape
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, "
            "TensorShape=[3, 5], Timeout(ms)=1800000) ran for 1800116 milliseconds before timing out.",
            {"nccl.op": "BROADCAST", "nccl.timeout_ms": 1800000},
        ),
        (  # torch 2.0: neither shape nor count
            "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7559, "
            "OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1806456 milliseconds before timing out.",
            {"nccl.seq": 7559, "nccl.op": "_ALLGATHER_BASE", "nccl.timeout_ms": 1800000},
        ),
    ],
)
def test_timeout_of_each_version(text: str, expected: dict[str, FactValue]) -> None:
    found = facts(transcript(text), 0)
    assert {name: found[name] for name in expected} == expected
    assert ("nccl.seq" in found) == ("nccl.seq" in expected)


def test_a_shape_counts_the_elements() -> None:
    text = (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, "
        "TensorShape=[3, 5], Timeout(ms)=1800000) ran for 1800116 milliseconds before timing out."
    )
    (timeout,) = nccl_ranks.timeouts_in(transcript(text).events[0])
    assert (timeout.numel_in, timeout.elapsed_ms) == (15, 1800116)


def test_line_cut_short_keeps_what_it_has() -> None:
    text = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLRED"
    found = facts(transcript(text), 0)
    assert found["nccl.seq"] == 12
    assert "nccl.timeout_ms" not in found


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "NCCL error in: /pytorch/torch/lib/c10d/x.cpp:784, unhandled system error, NCCL version 2.7.8",
            "ncclSystemError",
        ),
        ("NCCL Error 1: unhandled cuda error", "ncclUnhandledCudaError"),
        ("NCCL error: internal error - please report this issue to", "ncclInternalError"),
        (
            "NCCL error in: ../torch/csrc/c10d/NCCLUtils.hpp:317, invalid usage, NCCL version 2.21.5\n"
            "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
            "ncclInvalidUsage",
        ),
        ("NCCL version 2.21.5+cuda12.4", None),
    ],
)
def test_class(text: str, named: str | None) -> None:
    assert facts(transcript(text), 0).get("nccl.error_class") == named


def test_last_error_within_the_message() -> None:
    text = (
        "NCCL error in: x.hpp:268, unhandled cuda error, NCCL version 2.21.5\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'\n"
        "Exception raised from create at x.hpp:268"
    )
    found = facts(transcript(text), 0)
    assert found["nccl.last_error"] == "Cuda failure 2 'out of memory'"
    assert found["nccl.out_of_memory"] is True
    assert found["nccl.shm"] is False


def test_last_error_in_the_lines_that_follow() -> None:
    text = transcript(
        "train - ERROR - NCCL error in: x.hpp:268, unhandled cuda error, NCCL version 2.21.5",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
        "Last error:",
        "Cuda failure 999 'unknown error'",
        "wandb: syncing",
    )
    assert facts(text, 0)["nccl.last_error"] == "Cuda failure 999 'unknown error'"
    assert facts(text, 0)["nccl.cuda_unknown"] is True


def test_no_last_error_is_absent_and_gives_no_reason() -> None:
    text = transcript("NCCL error in: x.cpp:784, unhandled system error, NCCL version 2.7.8")
    states = {fact.name: fact.state for fact in of_event("nccl", text.events[0], text)}
    assert states["nccl.reason"] is State.ABSENT
    assert "nccl.shm" not in states
    healthy = transcript("NCCL error: unhandled system error", "epoch 1 loss 0.3")
    assert "nccl.last_error" not in facts(healthy, 0)


def test_warnings_of_the_text_are_the_reason_and_harmless_ones_are_not() -> None:
    text = transcript(
        "node:1:1 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
        "node:1:1 [0] NCCL WARN Error: failed to extend /dev/shm/nccl-Ub to 9637892 bytes",
        "NCCL error in: x.cpp:784, unhandled system error, NCCL version 2.14.3",
    )
    found = facts(text, 2)
    assert found["nccl.reason"] == "Error: failed to extend /dev/shm/nccl-Ub to 9637892 bytes"
    assert found["nccl.shm"] is True
    assert found["nccl.infiniband"] is False


def test_a_barrier_is_another_call_than_the_sum_of_gradients() -> None:
    found = facts(transcript(watchdog(0, 4032, numel=1), watchdog(1, 4032, "ALLREDUCE")), 1)
    assert found["nccl.ops_differ"] is True
    assert found["nccl.seqs_differ"] is False


def test_ranks_at_different_calls() -> None:
    text = transcript(watchdog(0, 7559, "_ALLGATHER_BASE"), watchdog(1, 7561, "_ALLGATHER_BASE"))
    found = facts(text, 1)
    assert found["nccl.ranks_timed_out"] == (0, 1)
    assert found["nccl.seqs_differ"] is True
    assert found["nccl.ops_differ"] is False
    assert found["nccl.numel_differ"] is False
    assert found["nccl.at_epoch_end"] is False
    assert "nccl.same_group" not in found


def test_only_the_first_timeout_of_a_rank_counts() -> None:
    text = transcript(
        (0, watchdog(0, 9)), (1, watchdog(1, 9)), (0, watchdog(0, 10)), (0, "what(): " + watchdog(0, 9))
    )
    assert facts(text, 0)["nccl.seqs_differ"] is False


def test_one_rank_alone_decides_nothing() -> None:
    found = facts(transcript(watchdog(2, 9)), 0)
    assert "nccl.seqs_differ" not in found
    assert "nccl.same_group" not in found


def test_two_timeouts_in_one_garbled_line() -> None:
    text = transcript((4, watchdog(4, 88) + watchdog(5, 89)))
    found = facts(text, 0)
    assert found["nccl.ranks_timed_out"] == (4, 5)
    assert found["nccl.seqs_differ"] is True


def test_prefix_counts_more_than_the_rank_in_the_group() -> None:
    text = transcript((8, watchdog(0, 88)), (9, watchdog(1, 88)))
    assert facts(text, 0)["nccl.ranks_timed_out"] == (8, 9)


def test_process_groups_are_not_compared_with_each_other() -> None:
    def detected(rank: int, guid: int, seq: int) -> str:
        return (
            f"[PG ID 1 PG GUID {guid}(tp) Rank {rank}] failure detected by watchdog at work sequence id: "
            f"{seq} PG status: last enqueued work: {seq}, last completed work: {seq - 1}"
        )

    apart = transcript(
        (0, watchdog(0, 5)), (0, detected(0, 3, 5)), (2, watchdog(0, 900)), (2, detected(0, 4, 900))
    )
    found = facts(apart, 0)
    assert found["nccl.same_group"] is False
    assert "nccl.seqs_differ" not in found
    together = transcript(
        (0, watchdog(0, 5)), (0, detected(0, 3, 5)), (1, watchdog(1, 7)), (1, detected(1, 3, 7))
    )
    found = facts(together, 0)
    assert found["nccl.same_group"] is True
    assert found["nccl.seqs_differ"] is True


def test_epoch_end() -> None:
    bar = "Epoch 4: 100%|##########| 1250/1250 [10:02<00:00,  2.08it/s]"
    one, other = (0, watchdog(0, 5004, "ALLGATHER", 1)), (1, watchdog(1, 5004, "ALLREDUCE", 25_557_032))
    assert facts(transcript((0, bar), one, other), 1)["nccl.at_epoch_end"] is True
    half = (0, bar.replace("100%", " 51%").replace("1250/", "640/"))
    assert facts(transcript(half, one, other), 1)["nccl.at_epoch_end"] is False
    # nobody averages gradients: rank 0 evaluates alone while the others wait at a barrier
    barrier, alone = (1, watchdog(1, 5004, "ALLREDUCE", 1)), (0, watchdog(0, 5004, "BROADCAST", 77))
    assert facts(transcript((0, bar), alone, barrier), 1)["nccl.at_epoch_end"] is False
    # the bar of a model that is loaded is no epoch
    loading = (0, "Loading checkpoint shards: 100%|##########| 12/12 [00:42<00:00,  3.52s/it]")
    assert facts(transcript(loading, one, other), 1)["nccl.at_epoch_end"] is False


def tokenizer(done: int, clock: str) -> str:
    bar = f"{done}/3634744 [{clock}<03:52, 1877.07 examples/s]"
    return f"Running tokenizer on dataset (num_proc=64):  88%|####8 | {bar}"


STORE = (
    "[{0}] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by "
    "key '0', but store->get('0') got error: Socket Timeout"
)


def test_work_that_goes_on_while_others_wait() -> None:
    text = transcript(tokenizer(3198000, "30:00"), STORE.format(6), tokenizer(3203000, "30:03"))
    assert facts(text, 1)["nccl.progress_during_timeout"] is True


def test_work_that_took_as_long_as_the_timeout() -> None:
    text = transcript(tokenizer(3198000, "10:01"), (3, watchdog(3, 1)))
    assert facts(text, 1)["nccl.progress_during_timeout"] is True
    short = transcript(tokenizer(3198000, "00:12"), (3, watchdog(3, 1)))
    assert facts(short, 1)["nccl.progress_during_timeout"] is False


def test_a_rank_that_gave_up_itself_was_not_busy() -> None:
    text = transcript(
        (0, tokenizer(3198000, "10:01")),
        (0, watchdog(0, 1)),
        (0, tokenizer(3203000, "10:03")),
        (1, watchdog(1, 1)),
    )
    assert facts(text, 1)["nccl.progress_during_timeout"] is False


def test_training_steps_are_no_work_beside_the_others() -> None:
    bar = "Epoch 1:  40%|####  | {0}/1250 [10:02<09:00,  2.08it/s, loss=0.31]"
    text = transcript(bar.format(500), (3, watchdog(3, 1)), bar.format(501))
    assert facts(text, 1)["nccl.progress_during_timeout"] is False


def test_nothing_is_told_of_other_messages() -> None:
    text = transcript("Epoch 3: loss 0.1", "Timed out", "TimeoutError: The read operation timed out")
    assert all(not list(of_event("nccl", event, text)) for event in text.events)


def test_exhausted_inputs_say_themselves_that_the_epoch_ended() -> None:
    text = transcript("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
    assert facts(text, 0) == {"nccl.at_epoch_end": True}


def test_picture_follows_the_transcript_that_is_asked_for() -> None:
    one = transcript(watchdog(0, 1), watchdog(1, 2))
    other = transcript(watchdog(0, 1), watchdog(1, 1))
    assert nccl_ranks.picture(one).seqs_differ is True
    assert nccl_ranks.picture(other).seqs_differ is False
    assert nccl_ranks.picture(one).seqs_differ is True


def stack(number: int, *frames: tuple[str, str, int]) -> Event:
    c10d = "/venv/torch/distributed/distributed_c10d.py"
    made = [Frame(c10d if file == "c10d" else file, line, name, "", "torch" if file == "c10d" else "")
            for file, name, line in frames]  # fmt: skip
    text = f'Thread {number} (idle): "MainThread"'
    return Event(number, EventKind.STACK, text, "dump.txt", number + 1, number + 9, frames=tuple(made))


BARRIER = (
    ("train.py", "<module>", 120),
    ("train.py", "main", 90),
    ("c10d", "wrapper", 75),
    ("c10d", "barrier", 3703),
)
EVALUATION = (("train.py", "<module>", 120), ("train.py", "evaluate", 80), ("c10d", "all_reduce", 2050))
LOADING = (("train.py", "<module>", 120), ("data.py", "__getitem__", 7))


def test_stacks_at_different_calls() -> None:
    text = Transcript(("dump.txt",), (stack(0, *BARRIER), stack(1, *EVALUATION)))
    assert facts(text, 0) == {"nccl.stacks_differ": True}


def test_stacks_at_one_call_and_outside_of_any() -> None:
    same = Transcript(("dump.txt",), (stack(0, *BARRIER), stack(1, *BARRIER)))
    assert facts(same, 0)["nccl.stacks_differ"] is False
    busy = Transcript(("dump.txt",), (stack(0, *BARRIER), stack(1, *LOADING)))
    assert facts(busy, 0) == facts(busy, 1) == {}


def test_a_bar_that_is_still_open_where_another_rank_gives_up() -> None:
    bar = tokenizer(3198000, "02:32")
    text = transcript((None, bar + watchdog(2, 1)), (3, watchdog(3, 1)))
    assert facts(text, 1)["nccl.progress_during_timeout"] is True
    done = transcript((None, tokenizer(3634744, "02:32") + watchdog(2, 1)), (3, watchdog(3, 1)))
    assert facts(done, 1)["nccl.progress_during_timeout"] is False
    steps = "Epoch 1:  40%|####  | 500/1250 [10:02<09:00,  2.08it/s]"
    trained = transcript((None, steps + watchdog(2, 1)), (3, watchdog(3, 1)))
    assert facts(trained, 1)["nccl.progress_during_timeout"] is False
