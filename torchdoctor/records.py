"""Frozen, slotted dataclasses that cost little to define: every run of the command pays for that.

``dataclasses`` makes each class twice and compiles functions for it when its module is imported. Here all
classes share what makes and freezes their objects, and what ``dataclasses`` wants to know of one is worked
out when it asks. ``fields``, ``replace``, ``copy``, ``pickle`` and type checkers see a dataclass.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

__all__ = ["Record", "record", "replace"]

if TYPE_CHECKING:
    from dataclasses import Field, replace
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool):
        """Says what a subclass of Record is to those who read it: ``@record(frozen=True, slots=True)``.

        Raises TypeError for other options.
        """
        if not (frozen and slots):
            raise TypeError("a record is frozen and has slots")
        return lambda made: made

    def replace(known, /, **changes):
        """A copy with other values in some fields. Raises TypeError for names that are no fields."""
        made = type(known)
        values = [changes.pop(name) if name in changes else getattr(known, name) for name in made._fields]
        return made(*values, **changes)  # what is left names no field


_NONE = object()  # no default


class _Kind(type):
    """The type of all records. The annotations of a class become its slots, their values its defaults.

    Raises TypeError for a default that all objects would share and could change, for a field without one
    behind a field with one, and for a class that adds fields to those of a record that it inherits from.
    """

    _fields: dict[str, object]  # with their defaults
    _needed: tuple[str, ...]  # those without one
    _puts: tuple[Any, ...]  # what sets each field

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> _Kind:
        if bases and bases != (Record,):
            if "__annotations__" in space or len(bases) > 1:
                raise TypeError(f"{name}: what inherits from a record adds methods to it and nothing else")
            space["__slots__"] = ()
            return super().__new__(mcs, name, bases, space)
        fields = {field: space.pop(field, _NONE) for field in space.get("__annotations__", ())}
        optional = False
        for field, value in fields.items():
            if value.__class__.__hash__ is None or value.__class__.__module__ == "dataclasses":
                raise TypeError(f"{name}: the default of {field} must be a value that nobody can change")
            if optional and value is _NONE:
                raise TypeError(f"{name}: {field} has no default and stands behind a field that has one")
            optional = value is not _NONE
        space["__slots__"] = space["__match_args__"] = tuple(fields)
        made = super().__new__(mcs, name, bases, space)
        made._fields = fields
        made._needed = tuple(field for field, value in fields.items() if value is _NONE)
        made._puts = tuple(made.__dict__[field].__set__ for field in fields)
        return made


class _DataclassFields:
    """``__dataclass_fields__`` of a record, made when somebody asks."""

    def __get__(self, _: object, made: _Kind) -> dict[str, Field[Any]]:
        return _dataclass_fields(made)


@cache
def _dataclass_fields(made: _Kind) -> dict[str, Field[Any]]:
    import dataclasses

    rows: list[tuple[str, str, Any]] = []
    for name, value in made._fields.items():
        default: Any = dataclasses.MISSING if value is _NONE else value
        rows.append((name, made.__annotations__[name], dataclasses.field(default=default)))
    shadow: Any = dataclasses.make_dataclass(made.__name__, rows)
    return dict(shadow.__dataclass_fields__)


class Record(metaclass=_Kind):
    """What records share: how they are made, equality, hash and text from their fields, and that nobody
    changes them."""

    __dataclass_fields__ = _DataclassFields()

    def __init__(self, *values: object, **named: object) -> None:
        made = self.__class__
        if named or len(values) != len(made._puts):
            values = _completed(made, values, named)
        for put, value in zip(made._puts, values, strict=True):
            put(self, value)

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__class__._fields)

    def __setattr__(self, name: str, value: object) -> None:
        _frozen(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        _frozen(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return list(self._values())

    def __setstate__(self, state: list[object]) -> None:
        for put, value in zip(self.__class__._puts, state, strict=True):
            put(self, value)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return isinstance(other, Record) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.__class__, self._values()))

    def __repr__(self) -> str:
        named = zip(self.__class__._fields, self._values(), strict=True)
        return f"{self.__class__.__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"


def _completed(made: _Kind, values: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
    """The values of all fields in order. Raises TypeError as a function of these arguments would."""
    fields = made._fields
    if len(values) > len(fields):
        raise TypeError(f"{made.__qualname__}.__init__() got more values than fields: {len(values)}")
    given = dict(zip(fields, values, strict=False))
    for name in named:
        if name not in fields:
            raise TypeError(f"{made.__qualname__}.__init__() got an unexpected keyword argument {name!r}")
        if name in given:
            raise TypeError(f"{made.__qualname__}.__init__() got multiple values for argument {name!r}")
    complete = {**fields, **given, **named}
    for name in made._needed:
        if complete[name] is _NONE:
            raise TypeError(f"{made.__qualname__}.__init__() missing a value for {name!r}")
    return tuple(complete.values())


def _frozen(what: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(what)
