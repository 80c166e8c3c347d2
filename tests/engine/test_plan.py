"""Which torch is proposed for a machine, and that the tables can be trusted to say what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from probe_machines import stated

from torchdoctor.engine import FactBook
from torchdoctor.engine.plan import lines, plan, to_json
from torchdoctor.model import Fact, FactValue
from torchdoctor.probes import FACTS
from torchdoctor.probes.compatibility import (
    compiler_below,
    parse,
    table,
    torch_for_numpy,
    vision_of,
)

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
