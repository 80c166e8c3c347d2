"""What questions tell rank by rank and replica by replica, each with the same text made harmless."""

from __future__ import annotations

from importlib import import_module

import pytest

from torchdoctor.extract.readings import stall
from torchdoctor.extract.readings.passage import Passage
from torchdoctor.extract.readings.rank_figures import number, series
from torchdoctor.extract.readings.shown_code import statements
from torchdoctor.intake.voice import hear
from torchdoctor.model import Event, EventKind, FactValue, Form, Transcript


def passage(text: str) -> Passage:
    lines = text.strip("\n").split("\n")
    events = tuple(
        Event(number, EventKind.LOG, line, "question.txt", number + 1, number + 1)
        for number, line in enumerate(lines)
        if line.strip()
    )
    return Passage(Transcript(("question.txt",), events, speech=hear([e.text for e in events], Form.LOG)))


def facts(namespace: str, text: str) -> dict[str, FactValue]:
    module = import_module(f"torchdoctor.extract.readings.{namespace}")
    found = list(module.read(passage(text)))
    assert {fact.name for fact in found} <= set(module.FACTS)
    return {fact.name.partition(".")[2]: fact.value for fact in found}


@pytest.mark.parametrize(
    ("text", "value"),
    [("3,912", 3912.0), ("21 983", 21983.0), ("35,9", 35.9), ("0.412", 0.412), ("15.3", 15.3), ("7", 7.0)],
)
def test_figures_as_people_write_them(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "| rank | files | batches |\n|---|---|---|\n| 0 | 9 | 412 |\n| 1 | 9 | 413 |",
        "rank,batches\n0,412\n1,413",
        "Rang   Batches\n0      412\n1      413",
        "rank 0: 412 batches\nrank 1: 413 batches",
        "my rank 0 has 412 batches and rank 1 has 413 batches",
        "batches per rank: [412, 413]",
    ],
)
def test_the_figures_of_ranks(text: str) -> None:
    assert {0: 412.0, 1: 413.0} in [one.values for one in series(passage(text))]


def test_a_table_of_several_steps_is_read_step_by_step() -> None:
    found = [one.values for one in series(passage("step,rank,norm\n1,0,5.5\n1,1,5.5\n2,0,6.5\n2,1,7.5"))]
    assert {0: 5.5, 1: 5.5} in found
    assert {0: 6.5, 1: 7.5} in found


@pytest.mark.parametrize(
    "text",
    [
        "if rank == 0:\n    dist.barrier()",
        " 12  if rank == 0:\n 13      dist.barrier()",
        "It is my code `if rank == 0: dist.barrier()` here",
    ],
)
def test_code_however_it_is_shown(text: str) -> None:
    test, call = statements(passage(text))
    assert (test.text, call.text) == ("if rank == 0:", "dist.barrier()")
    assert call.indent > test.indent


HANGS = "My DDP training on 2 GPUs hangs for ever. Why?\n"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def save():\n    if rank != 0:\n        return\n    torch.save(m, p)\n    dist.barrier()", True),
        ("def save():\n    if rank != 0:\n        return\n    torch.save(m, p)", False),
        ("def ev(m):\n    dist.all_reduce(m)\n    return m\nif rank == 0:\n    a = ev(x)", True),
        ("def ev(m):\n    return m.sum()\nif rank == 0:\n    a = ev(x)", False),
        ("if rank == 0:\n    acc = evaluate(model, loader)", True),
        ("if rank == 0:\n    acc = evaluate(model.module, loader)", False),
        ("if rank == 0:\n    work()\n    dist.barrier()\nelse:\n    dist.barrier()", False),
    ],
)
def test_collectives_of_some_ranks(code: str, told: bool) -> None:
    assert ("call" in facts("rank_branch", HANGS + code)) is told


def test_what_was_solved_hangs_no_more() -> None:
    assert stall.told(passage(HANGS)) is not None
    assert stall.told(passage(HANGS + "It turned out that my disk was full.")) is None
    assert stall.told(passage("My run never hangs, why?")) is None


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ("rank 0: 686 batches\nrank 1: 687 batches", True),
        ("rank 0: 687 batches\nrank 1: 687 batches", False),
        ("rank 0 step 686 done\nrank 1 step 687 done", False),
        ("rank 0 batch size 32\nrank 1 batch size 33", False),
        ("rank 0 left the loop\nrank 1 step 687 forward", True),
        ("rank 0 left the loop\nrank 1 step 0 forward", False),
    ],
)
def test_batches_of_ranks(figures: str, told: bool) -> None:
    assert ("told" in facts("uneven_loops", HANGS + figures)) is told


@pytest.mark.parametrize(
    ("lines", "fact"),
    [
        ("cuda:0 imgs: 16 texts: 32\ncuda:1 imgs: 16 texts: 32", "whole"),
        ("cuda:0 imgs: 16 texts: 16\ncuda:1 imgs: 16 texts: 16", None),
        ("cuda:0 (2, 640, 480)\ncuda:1 (1, 640, 480)", "channels"),
        ("cuda:0 (32, 3, 640, 480)\ncuda:1 (32, 3, 640, 480)", None),
        ("in (64, 3) out (32, 10)", "lost"),
        ("in (64, 3) out (64, 10)", None),
        ("cuda:0 x (32, 3) w (5,) of (10,)\ncuda:1 x (32, 3) w (5,) of (10,)", "cut"),
    ],
)
def test_parts_of_replicas(lines: str, fact: str | None) -> None:
    found = facts("replica_parts", f"Why is my nn.DataParallel result wrong?\n{lines}")
    assert set(found) == ({fact, "puzzled"} if fact else set())


LOADED = "DDP, 4 ranks. Why?\n{}\nstate = torch.load(path{})"


@pytest.mark.parametrize(
    ("figures", "load", "told"),
    [
        ("GPU 0 takes 30.2 GB and the others 21.4 GB.", "", True),
        ("GPU 0 takes 21.4 GB and the others 21.4 GB.", "", False),
        ("GPU 0 takes 30.2 GB and the others 21.4 GB.", ", map_location='cpu'", False),
        ("rank  used GB\n0  35.9\n1  15.3\n2  15.3", "", True),
        ("rank  used GB\n0  15.3\n1  15.3\n2  15.3", "", False),
    ],
)
def test_gpu_0_and_what_fills_it(figures: str, load: str, told: bool) -> None:
    found = facts("stray_contexts", LOADED.format(figures, load))
    assert ({"heavier", "reason", "ranks"} <= set(found)) is told


def test_processes_of_a_table_with_memory_on_two_gpus() -> None:
    rows = "0 811 C 9822 python\n0 812 C {} python\n1 812 C {} python"
    table = f"Why is that with torchrun?\n# gpu  pid  type  fb  command\n{rows}"
    assert facts("stray_contexts", table.format(503, 9820))["rows"] == 1
    assert "rows" not in facts("stray_contexts", table.format(9800, 9820))


SUMS = "I compared my ranks (DDP)\nrank   sum of weights\n0      81.25\n1      {}\n"


def test_checksums_in_a_table() -> None:
    assert "differ" in facts("replica_weights", SUMS.format("81.50"))
    assert facts("replica_weights", SUMS.format("81.25")) == {}
    assert facts("replica_weights", SUMS.format("81.50") + "model = FSDP(model)") == {}


@pytest.mark.parametrize(
    ("text", "slower"),
    [
        ("torchrun:\n  collate 600 ms | step 60 ms\nplain python:\n  collate 30 ms | step 60 ms", 20.0),
        ("torchrun:\n  collate 30 ms | step 60 ms\nplain python:\n  collate 30 ms | step 60 ms", None),
        ("| run | OMP_NUM_THREADS | time |\n|---|---|---|\n| a | 1 | 4 s |\n| b | unset | 1 s |", 4.0),
        (
            "| r | OMP_NUM_THREADS | t |\n|---|---|---|\n| a | 1 | 4 s |\n| b | 2 | 2 s |\n| c | 4 | 1 s |",
            None,
        ),
    ],
)
def test_runs_that_a_head_or_a_table_names(text: str, slower: float | None) -> None:
    question = f"Why is my CPU preprocessing slow? OMP_NUM_THREADS=1 is in the environ.\n{text}"
    assert facts("threads", question).get("slower") == slower


def test_devices_that_stand_behind_the_shapes_of_forward() -> None:
    text = (
        "Why is my nn.DataParallel result wrong?\n"
        "train loop   torch.Size([2, 6120]) torch.Size([3058, 44]) cuda:0\n"
        "forward      torch.Size([{0}]) torch.Size([1529, 44]) cuda:0\n"
        "forward      torch.Size([{0}]) torch.Size([1529, 44]) cuda:1\n"
    )
    assert facts("replica_parts", text.format("1, 6120"))["cut"] == "(1, 6120) of (2, 6120)"
    even = text.replace("3058, 44", "2, 44").replace("1529, 44", "1, 44")
    assert facts("replica_parts", even.format("1, 6120")) == {}
