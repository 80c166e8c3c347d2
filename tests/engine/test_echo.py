"""Ranks: which failed first, and one that reports the loss of another is never the cause."""

from __future__ import annotations

import pytest
from pace import bounded

from torchdoctor.catalog import RuleSet, rules_directory
from torchdoctor.catalog.loader import read_groups
from torchdoctor.engine.diagnose import diagnose
from torchdoctor.engine.echo import KILLED, PEER_DEATH, WORKER_DEATH, mark_own_ends
from torchdoctor.engine.factbook import FactBook
from torchdoctor.engine.finding import Finding, Occurrence
from torchdoctor.engine.match import Haystack
from torchdoctor.intake import read_text
from torchdoctor.model import Event, EventKind, Frame, Report, Role, Transcript

PACKAGES = "/opt/venv/lib/python3.11/site-packages"

C10D = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d"

OWN = """\
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/ml/sft/sft.py", line 17, in <module>
[rank2]:     main()
[rank2]:   File "/home/ml/sft/sft.py", line 8, in tokenise
[rank2]:     return [ord(c) % 50 for c in row["text"]]
[rank2]: KeyError: 'text'
"""

STACK = f"""\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/ml/sft/sft.py", line 14, in main
[rank0]:     net(x).sum().backward()
[rank0]:   File "{PACKAGES}/torch/distributed/distributed_c10d.py", line 2810, in all_reduce
[rank0]:     work = group.allreduce([tensor], opts)
"""

ECHOES = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:3021",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:598] Read error [127.0.0.1]:911: "
    "Connection reset by peer",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Application timeout caused "
    "pair closure",
    f"{C10D}/ProcessGroupNCCL.cpp:1970, "
    "remote process exited or there was a network error, NCCL version 2.21.5",
    f"{C10D}/ProcessGroupNCCL.cpp:2219, "
    "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
    "[rank0]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed. \n"
    "[rank0]: Last error:\n"
    "[rank0]: socketProgressOpt: Call to recv from 10.0.0.4<41235> failed : Connection reset by peer",
    "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. "
    "Did the remote server shutdown or crash?",
    "RuntimeError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-"
    "value store by key '0', but store->get('0') got error: Connection reset by peer",
)

LATER = (
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: "
    "store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)",
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.",
)


def _report(text: str, rules: RuleSet) -> Report:
    return diagnose(read_text(text), FactBook(None), rules)


def _echo(message: str) -> str:
    return f"{STACK}[rank0]: {message}\n"


def test_the_groups_are_those_of_the_catalog() -> None:
    groups = read_groups(rules_directory(), [])
    assert set(groups["peer-death"]) == PEER_DEATH
    assert set(groups["worker-death"]) == WORKER_DEATH


@pytest.mark.parametrize("message", ECHOES)
@pytest.mark.parametrize("first", [True, False])
def test_an_unknown_exception_of_another_rank_sets_the_echo_aside(
    message: str, first: bool, rules: RuleSet
) -> None:
    report = _report(OWN + _echo(message) if first else _echo(message) + OWN, rules)
    assert [(item.rule, item.rank) for item in report.diagnoses] == [("own-code-error", 2)], report.notes
    assert report.first_failure.rank == 2


@pytest.mark.parametrize("message", LATER)
def test_ranks_that_waited_for_a_dead_one_are_set_aside(message: str, rules: RuleSet) -> None:
    report = _report(OWN + _echo(message), rules)
    assert [item.rule for item in report.diagnoses] == ["own-code-error"], report.notes


@pytest.mark.parametrize("message", ECHOES)
def test_a_lost_peer_is_never_the_cause(message: str, rules: RuleSet) -> None:
    report = _report(_echo(message), rules)
    assert report.diagnoses, report.outcome
    assert report.diagnoses[0].role is Role.CONSEQUENCE


def test_of_two_ranks_the_one_that_says_it_once_among_many_is_judged() -> None:
    """The literal stands in more events than are looked at, and all but one are of rank 0."""
    again = [f"[rank0]: RuntimeError: CUDA out of memory. Tried to allocate {n}.00 MiB" for n in range(90)]
    once = "[rank1]: RuntimeError: CUDA out of memory. Tried to allocate 7.00 GiB"
    lines = [*again[:60], once, *again[60:]]
    haystack = Haystack(read_text("\n".join(f"{line}\n[rank0]: step" for line in lines)))
    found = [haystack.events[number].rank for number in haystack.events_with("CUDA out of memory")]
    assert len(found) < len(haystack.events)
    assert found.count(1) == 1


def test_a_kill_behind_thousands_of_exceptions_costs_no_more_for_each(rules: RuleSet) -> None:
    frame = (Frame("/home/ml/serve.py", 3, "answer"),)
    events = [
        Event(n, EventKind.EXCEPTION, "no such key", "log", n + 1, n + 1, type="ValueError", frames=frame)
        if n % 3 == 0
        else Event(n, EventKind.LOG, f"request {n} was dropped", "log", n + 1, n + 1)
        for n in range(9_000)
    ]
    killed = Event(len(events), EventKind.CRASH, "Killed", "log", len(events) + 1, len(events) + 1)
    finding = Finding(rules.rule(KILLED), [Occurrence(killed, {}, "Killed", 0, 6, 6)])
    bounded(0.5, lambda: mark_own_ends([finding], Transcript(("log",), (*events, killed))))
    assert finding.role is Role.CONSEQUENCE
