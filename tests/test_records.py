"""Records are frozen dataclasses in all that dataclasses, copy and pickle ask of one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from torchdoctor.model import Fact, Fix, Reason, State
from torchdoctor.records import Record, record, replace

ROOT = Path(__file__).parents[1]


@record(frozen=True, slots=True)
class Point(Record):
    """A place."""

    x: int
    y: int = 2
    name: str = ""


def test_it_is_made_as_a_dataclass_is() -> None:
    assert (Point(1).x, Point(1).y, Point(1, name="a").name) == (1, 2, "a")
    assert Point(1, 2) == Point(x=1)
    assert Point(1) != Point(3)
    assert Point(1) != (1, 2, "")
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert repr(Point(1, 5, "b")) == "Point(x=1, y=5, name='b')"
    assert Point.__doc__ == "A place."


@pytest.mark.parametrize(
    ("values", "named", "told"),
    [
        ((), {}, "missing a value for 'x'"),
        ((1,), {"z": 2}, "got an unexpected keyword argument 'z'"),
        ((1,), {"x": 2}, "got multiple values for argument 'x'"),
        ((1, 2, "", 4), {}, "got more values than fields: 4"),
    ],
)
def test_wrong_arguments_are_told_with_their_names(
    values: tuple[object, ...], named: dict[str, int], told: str
) -> None:
    with pytest.raises(TypeError, match=rf"^Point\.__init__\(\) {told}$"):
        cast("Any", Point)(*values, **named)


def test_nobody_changes_it() -> None:
    point = Point(1)
    for name in ("x", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(point, name, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(point, "x")
    assert not hasattr(point, "__dict__")
    assert point.x == 1


def test_dataclasses_copy_and_pickle_know_it() -> None:
    point = Point(1, name="a")
    assert [field.name for field in dataclasses.fields(point)] == ["x", "y", "name"]
    assert dataclasses.fields(Point)[0] is dataclasses.fields(point)[0]  # worked out once
    assert dataclasses.replace(point, y=7) == Point(1, 7, "a")
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "name": "a"}
    assert copy.deepcopy(point) == copy.copy(point) == point
    fact = Fact("a.b", State.UNKNOWN, None, Reason.TIMED_OUT, "here")
    assert pickle.loads(pickle.dumps((point, fact))) == (point, fact)
    assert Point.__match_args__ == ("x", "y", "name")


def test_wrong_changes_are_told() -> None:
    assert replace(Point(1), y=7, name="a") == Point(1, 7, "a")
    with pytest.raises(TypeError, match=r"unexpected .* 'z'"):
        replace(Point(1), **cast("Any", {"z": 1}))


def test_what_it_cannot_be_is_refused() -> None:
    made = cast("Any", record)
    with pytest.raises(TypeError, match="frozen"):
        made(frozen=False, slots=True)
    with pytest.raises(TypeError, match="Grown: the default of items must be a value"):

        class Grown(Record):
            items: list[int] = dataclasses.field(default_factory=list)

    with pytest.raises(TypeError, match="Shared: the default of items must be a value"):

        class Shared(Record):
            items: list[int] = []  # noqa: RUF012  what is tested

    with pytest.raises(TypeError, match="Late: y has no default and stands behind"):

        class Late(Record):
            x: int = 1
            y: int

    with pytest.raises(TypeError, match="Named: what inherits from a record adds methods"):

        class Named(Fix):
            more: int = 3


def test_a_class_with_more_methods_is_the_same_record() -> None:
    class Loud(Point):
        def shout(self) -> str:
            return f"{self.x}!"

    assert (Loud(1).shout(), Loud(1), Loud(1) == Point(1)) == ("1!", Loud(1), False)
    assert dataclasses.replace(Loud(1), y=5).y == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        Loud(1).x = 2  # type: ignore[misc]


def test_defining_one_takes_no_dataclasses() -> None:
    code = "import sys, torchdoctor.model, torchdoctor.catalog.rule; sys.exit('dataclasses' in sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd=ROOT)
