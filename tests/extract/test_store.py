"""Whether a wait at the store was that for the ranks to meet."""

from __future__ import annotations

import pytest

from torchdoctor.extract import of_event, store
from torchdoctor.model import Event, EventKind, Frame, State, Transcript

SOCKET = (
    "[c10d] waitForInput: socket SocketImpl(fd=61, addr=[a]:41022, remote=[b]:29500) timed out after 6000ms"
)


def waits_for(*texts: str, frames: tuple[Frame, ...] = ()) -> tuple[State, object]:
    """What is told of the first line that comes from the socket, else of the last line."""
    events = tuple(
        Event(number, EventKind.LOG, text, "job.log", number + 1, number + 1, frames=frames)
        for number, text in enumerate(texts)
    )
    asked = next((event for event in events if "waitForInput" in event.text), events[-1])
    (fact,) = of_event("store", asked, Transcript(("job.log",), events))
    assert set(store.FACTS) == {fact.name}
    return fact.state, fact.value


def test_a_line_of_the_socket_alone_tells_nothing() -> None:
    assert waits_for("starting up", SOCKET) == (State.UNKNOWN, None)


@pytest.mark.parametrize(
    "beside",
    [
        "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0",
        "Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
    ],
)
def test_the_start_is_named_beside_it(beside: str) -> None:
    assert waits_for(SOCKET, beside) == (State.KNOWN, "the ranks")


def test_the_start_is_named_in_a_stack() -> None:
    frames = (Frame("/opt/torch/distributed/distributed_c10d.py", 1710, "init_process_group", "", "torch"),)
    assert waits_for(SOCKET, frames=frames) == (State.KNOWN, "the ranks")


@pytest.mark.parametrize("step", ["step 1200 loss 2.31", "Epoch 3:  12%| 120/1000 [1:02<7:01, 2.1it/s]"])
def test_a_run_that_made_steps_is_past_the_start(step: str) -> None:
    assert waits_for(step, SOCKET) == (State.KNOWN, "something later")


def test_other_messages_speak_of_the_start_themselves() -> None:
    assert waits_for("The client socket has timed out after 900s") == (State.KNOWN, "the ranks")


def test_the_id_of_nccl_is_asked_for_after_the_start() -> None:
    line = "[9] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store"
    assert waits_for(line) == (State.KNOWN, "something later")
