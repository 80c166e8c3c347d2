"""Frozen, slotted dataclasses that cost little to define: every run of the command pays for that.

``dataclasses`` compiles three functions for each such class when its module is imported. Here all classes
share what makes them frozen, and each compiles its ``__init__`` when the first of its objects is made.
Nothing else differs: ``fields``, ``replace``, ``copy``, ``pickle`` and type checkers see a dataclass.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any

__all__ = ["Record", "record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen: bool, slots: bool):
        """For subclasses of Record, as ``@record(frozen=True, slots=True)``.

        Raises TypeError for other options, and for a default that is made anew for each object.
        """
        if not (frozen and slots):
            raise TypeError("a record is frozen and has slots")

        def make(cls: type) -> type:
            made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
            made.__dataclass_params__.frozen = True  # as far as dataclasses asks, of subclasses
            if any(field.default_factory is not MISSING for field in fields(made)):
                raise TypeError(f"{cls.__name__}: a record takes no default_factory")

            def first(self: Any, *values: object, **named: object) -> None:
                made.__init__ = _init_of(made)
                made.__init__(self, *values, **named)

            made.__init__ = first
            return made

        return make


def _init_of(cls: Any) -> Any:
    """The function that dataclasses would have written."""
    defaults = {f"_of_{field.name}": field.default for field in fields(cls)}
    arguments = [
        field.name if field.default is MISSING else f"{field.name}=_of_{field.name}" for field in fields(cls)
    ]
    body = [f" _set(self, {field.name!r}, {field.name})" for field in fields(cls)]
    space: dict[str, Any] = {"_set": object.__setattr__, **defaults}
    exec("\n".join([f"def __init__(self, {', '.join(arguments)}):", *(body or [" pass"])]), space)
    init = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


class Record:
    """What records share: equality, hash and text from their fields, and that nobody changes them."""

    __slots__ = ()

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return list(self._values())

    def __setstate__(self, state: list[object]) -> None:
        for name, value in zip(self.__dataclass_fields__, state, strict=True):  # type: ignore[attr-defined]
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return isinstance(other, Record) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.__class__, self._values()))

    def __repr__(self) -> str:
        named = zip(self.__dataclass_fields__, self._values(), strict=True)  # type: ignore[attr-defined]
        return f"{self.__class__.__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"
