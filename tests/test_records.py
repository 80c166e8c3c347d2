"""Records are frozen dataclasses in all that dataclasses, copy and pickle ask of one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, cast

import pytest

from torchdoctor.model import Fact, Fix, Reason, State
from torchdoctor.records import Record, record


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


@pytest.mark.parametrize("wrong", [{}, {"x": 1, "z": 2}])
def test_wrong_arguments_are_told_with_their_names(wrong: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) (?:missing.* 'x'|got an unexpected .* 'z')"):
        Point(**cast("Any", wrong))


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
    assert dataclasses.replace(point, y=7) == Point(1, 7, "a")
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "name": "a"}
    assert copy.deepcopy(point) == copy.copy(point) == point
    fact = Fact("a.b", State.UNKNOWN, None, Reason.TIMED_OUT, "here")
    assert pickle.loads(pickle.dumps((point, fact))) == (point, fact)
    assert Point.__match_args__ == ("x", "y", "name")


def test_a_frozen_dataclass_may_inherit_from_it() -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(Fix):
        more: int = 3

    assert (Named("do", more=4).do, Named("do", more=4).more) == ("do", 4)


def test_what_it_cannot_be_is_refused() -> None:
    made = cast("Any", record)
    with pytest.raises(TypeError, match="frozen"):
        made(frozen=False, slots=True)

    class Grown(Record):
        items: list[int] = dataclasses.field(default_factory=list)

    with pytest.raises(TypeError, match="Grown: a record takes no default_factory"):
        made(frozen=True, slots=True)(Grown)
