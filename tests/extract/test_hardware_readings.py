"""What questions show of GPUs at work, of memory that is held or grows, of single calls that take long."""

from __future__ import annotations

from importlib import import_module

import pytest

from torchdoctor.engine.listed_frames import listed_frame
from torchdoctor.extract.readings.figures import seconds, sizes
from torchdoctor.extract.readings.passage import Passage, Voice
from torchdoctor.extract.readings.tables import tables
from torchdoctor.intake.voice import hear
from torchdoctor.model import Event, EventKind, Evidence, FactValue, Form, Transcript


def transcript(text: str) -> Transcript:
    lines = text.strip("\n").split("\n")
    events = tuple(
        Event(number, EventKind.LOG, line, "question.txt", number + 1, number + 1)
        for number, line in enumerate(lines)
        if line.strip()
    )
    return Transcript(
        ("question.txt",), events, speech=hear([line for line in lines if line.strip()], Form.LOG)
    )


def facts(namespace: str, text: str) -> dict[str, FactValue]:
    module = import_module(f"torchdoctor.extract.readings.{namespace}")
    found = list(module.read(Passage(transcript(text))))
    assert {fact.name for fact in found} <= set(module.FACTS)
    return {fact.name.partition(".")[2]: fact.value for fact in found}


@pytest.mark.parametrize(
    ("text", "head", "rows"),
    [
        ("| node | temp |\n|---|---|\n| n1 | 62 C |\n| n2 | 88 C |", ("node", "temp"), 2),
        ("index, clocks.sm [MHz]\n0, 1410 MHz\n1, 795 MHz", ("index", "clocks.sm [MHz]"), 2),
        ("$ nvidia-smi --query-gpu=index,pstate --format=csv,noheader\n0, P2", ("index", "pstate"), 1),
        ("Minute    it/s\n  1       6.81\n  21      1.12", ("Minute", "it/s"), 2),
        ("mine: name, watts\n  yours: 3, 12 W", ("name", "watts"), 1),
    ],
)
def test_tables_are_read_however_their_cells_are_parted(text: str, head: tuple[str, ...], rows: int) -> None:
    found = list(tables(Passage(transcript(text)).lines))
    assert [(table.head, len(table.rows)) for table in found] == [(head, rows)]


@pytest.mark.parametrize(
    ("text", "value"), [("3,2 ms", 0.0032), ("8.3 ms", 0.0083), ("12 \u043c\u0441", 0.012), ("1,5 s", 1.5)]
)
def test_times_with_decimal_commas(text: str, value: float) -> None:
    assert [figure.value for figure in seconds(text)] == [pytest.approx(value)]


@pytest.mark.parametrize(
    ("text", "gib"), [("3,1 Go", 3.1), ("0.91G", 0.91), ("19 \u0413\u0411", 19), ("from 4 to 19 GB", 19)]
)
def test_sizes_in_other_languages(text: str, gib: float) -> None:
    assert [figure.value / 2**30 for figure in sizes(text)] == [pytest.approx(gib)]


CLOCKS = """Why is my training {word}, 2.1 it/s instead of 4?
index, clocks.sm, clocks.max.sm, temperature.gpu, power.draw, power.limit, utilization.gpu
0, {clock} MHz, 1980 MHz, 88, 180 W, 400 W, {load} %
"""


def test_a_busy_card_below_half_its_clock() -> None:
    assert "held_down" in facts("gpu_clocks", CLOCKS.format(word="slow", clock=705, load=99))


@pytest.mark.parametrize(("clock", "load"), [(1950, 99), (210, 0)])
def test_full_clock_or_idle_is_nothing(clock: int, load: int) -> None:
    assert facts("gpu_clocks", CLOCKS.format(word="slow", clock=clock, load=load)) == {}


MASK = """Why is it slow for me?
index, clocks.sm, clocks.max.sm, clocks_event_reasons.active
0, {clock} MHz, 2100 MHz, {mask}
"""


@pytest.mark.parametrize(("clock", "mask"), [(810, "0x0000000000000060"), (420, "0x0000000000000004")])
def test_reasons_in_the_mask(clock: int, mask: str) -> None:
    assert "held_down" in facts("gpu_clocks", MASK.format(clock=clock, mask=mask))


def test_the_power_cap_alone_is_ordinary() -> None:
    assert facts("gpu_clocks", MASK.format(clock=1845, mask="0x0000000000000004")) == {}


LINK = """My copies to the GPU are slow, {told}
pstate, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max
{row}
"""


@pytest.mark.parametrize(
    ("row", "narrow"),
    [
        ("P2, 4, 4, 4, 16", "x4 of x16"),
        ("P0, 1, 4, 16, 16", "generation 1 of 4 under load"),
        ("P8, 1, 4, 16, 16", None),
    ],
)
def test_lanes_and_generation(row: str, narrow: str | None) -> None:
    assert facts("pcie_link", LINK.format(told="1.5 GB/s.", row=row)).get("narrow") == narrow


def test_a_narrow_link_without_effect_is_nothing() -> None:
    assert (
        facts("pcie_link", LINK.format(told="but training runs at the same speed.", row="P2, 4, 4, 8, 16"))
        == {}
    )


HELD = """I killed my training and the memory is not free again.
>>> torch.cuda.mem_get_info()
({free}, 25438126080)
$ ps -eo pid,ppid,stat,etime,cmd
{process}
"""
ORPHAN = "90211 1 Sl 05:41:08 python -u pretrain.py"


def test_an_orphan_that_holds_memory() -> None:
    found = facts("held_memory", HELD.format(free=4520411136, process=ORPHAN))
    assert found["pid"] == 90211


@pytest.mark.parametrize(
    ("free", "process"),
    [(25000000000, ORPHAN), (4520411136, "90211 881 R+ 00:41:08 python -u pretrain.py")],
)
def test_an_empty_card_or_a_running_child_is_nothing(free: int, process: str) -> None:
    assert facts("held_memory", HELD.format(free=free, process=process)) == {}


def test_fewer_multiprocessors_than_the_card_has() -> None:
    text = "Why is my A100 so slow?\nDevice(name='NVIDIA A100-SXM4-40GB', multi_processor_count={})"
    assert "name" in facts("gpu_slice", text.format(42))
    assert facts("gpu_slice", text.format(108)) == {}


GROWS = """Why does the memory of my GPU grow?
| epoch | memory (GB) |
|---|---|
{rows}

loss.backward()
{kept}
"""
RISING = "\n".join(f"| {step} | {2 + step}.1 |" for step in range(1, 6))
LEVEL = "\n".join(f"| {step} | 3.1 |" for step in range(1, 6))


def test_memory_that_rises_in_a_table() -> None:
    assert (
        facts("gpu_growth", GROWS.format(rows=RISING, kept="losses.append(loss)"))["kept"]
        == "losses.append(loss)"
    )


@pytest.mark.parametrize(
    ("rows", "kept"), [(LEVEL, "losses.append(loss)"), (RISING, "losses.append(loss.item())")]
)
def test_level_memory_or_numbers_are_nothing(rows: str, kept: str) -> None:
    assert facts("gpu_growth", GROWS.format(rows=rows, kept=kept)) == {}


SPIKES = "Why do single calls of my model take so long? ms per call, same tensor: {}"


def test_times_of_calls_in_a_row() -> None:
    usual = ["1.31"] * 6
    text = SPIKES.format(" ".join([*usual, "38.7", *usual, "41.2", *usual]))
    assert facts("latency", text)["tail"] > 20
    assert facts("latency", SPIKES.format(" ".join(["840.0", "41.2", *usual, *usual]))) == {}


LISTING = """My validation takes 19 GB and training only 6 GB.
    valid.py
    18      net.eval()
    19      for img, mask in loader:
    22          out = net(img)
"""


def test_a_numbered_listing_is_code_and_its_line_is_the_frame() -> None:
    read = transcript(LISTING)
    assert [line.text.strip() for line in Passage(read).of(Voice.CODE)][-1] == "out = net(img)"
    frame = listed_frame([Evidence("", "question.txt", 5)], read)
    assert frame is not None
    assert (frame.file, frame.line) == ("valid.py", 22)
    assert "recorded" in facts("eval_memory", LISTING)


def test_no_grad_in_the_listing_is_nothing() -> None:
    assert (
        facts("eval_memory", LISTING.replace("net.eval()", "net.eval(); torch.set_grad_enabled(False)")) == {}
    )


def test_a_process_that_is_listed_and_gone() -> None:
    text = (
        "I killed my training, and the memory is not released:\n"
        "$ nvidia-smi --query-compute-apps=pid,used_memory --format=csv\n"
        "pid, used_gpu_memory [MiB]\n"
        "41273, 38842 MiB\n"
        "$ sudo kill -9 41273\n"
        "kill: (41273): No such process\n"
    )
    found = facts("held_memory", text)
    assert found["holder"] == "none any more, 41273 is gone"
    assert "pid" not in found
    assert facts("held_memory", text + "It runs in a docker container.") == {}


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("My calls vary.\nprint(np.percentile(dt, [50, 90, 99]) * 1e3)\n[ 3.92  4.05 61.31]", 15.6),
        ("My calls vary.\nprint(np.quantile(dt, [0.5, 0.99]))\n[4.0 41.0]", 10.2),
        ("My calls vary.\nprint(np.percentile(latency, [50, 95, 99]))\n[ 4.1  4.6  5.3]", None),
    ],
)
def test_percentiles_that_numpy_computed(text: str, tail: float | None) -> None:
    assert facts("latency", text + "\nMy model takes the same input each time.").get("tail") == tail


def test_a_process_with_equal_memory_on_two_gpus() -> None:
    row = "|    {}   N/A  N/A     41273      C   python                          512MiB |\n"
    text = "Why is my process on both?\n" + row.format(0) + row.format(1)
    assert "strays" not in facts("gpu_rows", text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I killed the run, nvidia-smi shows no process, but 20 GB of GPU memory are still occupied.", True),
        ("My python run died: it disappears from nvidia-smi but still holds GPU memory.", True),
        ("I killed the old run, nvidia-smi shows no process and the GPU memory is free.", False),
        ("My python process still uses 3 GB of GPU memory after empty_cache().", False),
    ],
)
def test_memory_without_an_owner_in_words(text: str, told: bool) -> None:
    assert ("told" in facts("held_memory", text)) is told
