"""Which rank failed first, where a scheduler counts tasks and ranks print their own lines."""

from __future__ import annotations

import pytest

from torchdoctor.catalog import RuleSet
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.match import Haystack
from torchdoctor.intake import read_text

LOST = (
    "[rank5]:[W108 20:01:12.118220041 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=82, "
    "addr=[gpu-b]:41022, remote=[gpu-a]:29500): Failed to recv, got 0 bytes. Connection was likely closed. "
    "Did the remote server shutdown or crash?\n"
)


@pytest.mark.parametrize(
    ("end", "rank"),
    [
        # the task is a launcher of several ranks: as a rank it would have printed its exception
        ("srun: error: gpu-b: task 1: Exited with exit code 1", 5),
        ("srun: error: gpu-b: task 1: Killed", 1),
        ("srun: error: gpu-b: task 1: Exited with exit code 137", 1),
    ],
)
def test_a_task_of_srun_that_left_by_itself_and_printed_nothing_is_no_rank(
    end: str, rank: int, rules: RuleSet
) -> None:
    report = diagnose(read_text(f"{LOST}{end}\n"), FactBook(None), rules)
    assert report.first_failure is not None
    assert report.first_failure.rank == rank


def test_of_two_ranks_the_one_that_says_it_once_among_many_is_judged() -> None:
    """The literal stands in more events than are looked at, and all but one are of rank 0."""
    again = [f"[rank0]: RuntimeError: CUDA out of memory. Tried to allocate {n}.00 MiB" for n in range(90)]
    once = "[rank1]: RuntimeError: CUDA out of memory. Tried to allocate 7.00 GiB"
    lines = [*again[:60], once, *again[60:]]
    haystack = Haystack(read_text("\n".join(f"{line}\n[rank0]: step" for line in lines)))
    found = [haystack.events[number].rank for number in haystack.events_with("CUDA out of memory")]
    assert len(found) < len(haystack.events)
    assert found.count(1) == 1
