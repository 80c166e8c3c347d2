"""Recordings with readings of any form, and programs that report anything: no probe may fail on them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from torchdoctor.model import Fact, State
from torchdoctor.probes.recording import RecordedSource

MACHINES = Path(__file__).parents[2] / "fixtures" / "machines"
# What a file of /proc, a listing or a tool may hold instead of what it should.
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**70,
    "",
    " ",
    "\x00",
    "a:b:c\nd\n",
    "max",
    "9" * 400,
    "é\udcff",
    "0::",
    ":::\n:",
    [],
    [[]],
    [None],
    ["a", 1],
    [["a"]],
    [[1, 2, 3]],
    {},
    {"total": "x"},
    {"pids": 3},
    {"needed": [1]},
    {"libcuda.so.1": 7},
)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_recordings(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    name = chance.choice(("h100", "laptop-cpu", "workstation-cuda-no-gpu"))
    data = json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    del data["facts"]
    keys = sorted(data["reads"])
    for key in chance.sample(keys, 25):
        data["reads"][key] = chance.choice(
            [
                {"is": chance.choice(ODD)},
                {"missing": True},
                {"refused": "not-permitted"},
                {"refused": "crashed"},
            ]
        )
    for key in chance.sample(keys, 5):
        data["reads"].pop(key, None)
    for program in data["programs"].values():
        lines = program.get("lines", [])
        for line in lines:
            if chance.random() < 0.3:
                line[chance.choice(("name", "value", "state", "reason", "detail", "stage"))] = chance.choice(
                    ODD
                )
        if chance.random() < 0.3:
            program["lines"] = lines[: chance.randrange(len(lines) + 1)]
            program["signal"] = chance.choice((6, 9, 11, 77))
            program.pop("exit_code", None)
        if "stdout" in program and chance.random() < 0.5:
            text = program["stdout"]
            at = chance.randrange(len(text) + 1)
            program["stdout"] = (
                text[:at] + chance.choice(("", "\x00", " : ", "\n\n", "N/A")) + text[at + 20 :]
            )
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    source = RecordedSource(str(path))
    facts = source.all()
    assert source.faults == []
    for fact in facts:
        assert isinstance(fact, Fact)
        assert (fact.reason is not None) == (fact.state is State.UNKNOWN), fact
        assert fact.state is State.KNOWN or fact.value is None, fact
        assert fact.state is not State.KNOWN or fact.value is not None, fact
