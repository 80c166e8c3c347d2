"""The inventory of messages: what is collected, and the shares that its table may show."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
inventory_native, inventory_python, inventory_table, inventory_judge, inventory_message = (
    importlib.import_module(f"inventory_{part}") for part in ("native", "python", "table", "judge", "message")
)
Row, Message = inventory_table.Row, inventory_message.Message

SOURCE = '''
class Knob:
    def __init__(self, size):
        if size < 0:
            raise ValueError(f"size must be positive, got {size}")
        self._turn("%s of %d" % (size, 3))

    def turn(self):
        self._turn(1)

    def _turn(self, by):
        message = "cannot turn by {}, use {way:>3}".format(by, way="left")
        try:
            raise KeyError("found no way")
        except KeyError:
            pass
        assert by, "no turn: " + str(by)
        raise RuntimeError(message)

    def reset(self):
        """Later."""
        raise NotImplementedError("reset is not there")
'''
LIBRARY = b"""torchCheckFail
grid(): expected grid to have size |
 in its last dimension, but got grid with sizes |
_grid_2d
/src/aten/native/Grid.cpp
only bilinear mode is supported
%s(): argument must be %s, not %s
x > 0 INTERNAL ASSERT FAILED at "/src/aten/native/Grid.cpp":4, please report
aten::grid(Tensor x) -> Tensor
A table of names
""".replace(b"|\n", b"\0").replace(b"\n", b"\0")


def sites() -> list[Any]:
    return list(inventory_python.messages("knobs", "knobs/knob.py", SOURCE, inventory_python.Callers()))


def test_what_python_raises() -> None:
    assert [(one.kind, one.filled("value")) for one in sites()] == [
        ("ValueError", "size must be positive, got 3"),
        ("KeyError", "found no way"),
        ("AssertionError", "no turn: value"),
        ("RuntimeError", "cannot turn by value, use value"),
        ("NotImplementedError", "reset is not there"),
    ]
    assert [one.caught for one in sites()] == [False, True, False, False, False]
    assert [one.abstract for one in sites()] == [False, False, False, False, True]


def test_a_private_function_is_called_by_a_public_one() -> None:
    callers = inventory_python.Callers()
    found = list(inventory_python.messages("knobs", "knobs/knob.py", SOURCE, callers))
    assert [place.function for place in callers.path(found[3].places[0])] == ["turn", "_turn"]


def test_what_a_library_prints() -> None:
    found = list(inventory_native.messages("torch", "torch/lib/libtorch_cpu.so", LIBRARY))
    assert [one.template.partition(" INTERNAL")[0] for one in found] == [
        "grid(): expected grid to have size {} in its last dimension, but got grid with sizes {}",
        "only bilinear mode is supported",
        "{}(): argument must be {}, not {}",
        "x > 0",
    ]
    assert {one.file for one in found} == {"torch/lib/libtorch_cpu.so:/src/aten/native/Grid.cpp"}


def test_what_a_source_of_cpp_prints() -> None:
    source = 'TORCH_CHECK(x.dim() == 2, "x must be 2-D, got ", x.dim(), "-D");\nTORCH_CHECK(y);\n'
    found = list(inventory_native.messages("knobs", "csrc/knob.cpp", source.encode()))
    assert [one.template for one in found] == ["x must be 2-D, got {}-D"]


def test_the_classes_of_messages() -> None:
    judge = inventory_judge.Judge()
    place = "torch/lib/a.so:/src/aten/a.cpp"
    oom, other = (
        Message("torch", place, 0, "RuntimeError", (text,), voice="check")
        for text in ("CUDA error: out of memory", "only frobs frob")
    )
    classes = {one.filled("value"): judge.answer(one).kind for one in (*sites(), oom, other)}
    assert classes == {
        "size must be positive, got 3": "read",
        "found no way": "internal",
        "no turn: value": "internal",
        "cannot turn by value, use value": "open",
        "reset is not there": "internal",
        "CUDA error: out of memory": "told",
        "only frobs frob": "by line",
    }


def test_an_open_share_does_not_grow() -> None:
    before = [
        Row("knobs", "1.9", "python", 100, 0, 50, 20, 0, 30, 0),
        Row("knobs", "1.10", "python", 10, 0, 9, 0, 0, 1, 0),
    ]
    worse = Row("knobs", "2.0", "python", 10, 0, 8, 0, 0, 2, 0)
    assert inventory_table.grown(before, [worse]) == ["knobs 2.0 python: 20.0 % open, it was 10.0 % of 1.10"]
    assert inventory_table.grown(before, [before[0]]) == []


def test_the_table_adds_up_and_has_no_tick() -> None:
    for row in inventory_table.read():
        assert row.messages == row.internal + row.told + row.read + row.by_line + row.open + row.tick, row
        assert row.tick == 0, row


def test_the_open_part_of_each_package() -> None:
    totals = inventory_table.packages(inventory_table.read())
    assert {"torch 2.15.0", "torch 1.13.1"} <= set(totals)
    over = {
        name: share for name, share in totals.items() if share > (25 if name.startswith("torch ") else 50)
    }
    assert over == {}
