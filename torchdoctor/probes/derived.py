"""Derived facts: claims made of other facts, UNKNOWN when one they need is unknown.

Each is a pure function of facts, so that the facts may come from this machine, a recording, or a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchdoctor.model import Fact, FactValue, Reason, State

Ask = Callable[[str], Fact]


class Unsure(Exception):
    """A claim cannot be made because a fact it needs is unknown."""

    def __init__(self, fact: Fact) -> None:
        super().__init__(fact.name)
        self.fact = fact


class NotApplicable(Exception):
    """The question does not arise here; the text says why."""


class CannotTell(Exception):
    """Every fact it needs is known, and they do not decide."""

    def __init__(self, detail: str, reason: Reason = Reason.UNPARSABLE) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Claim:
    """What a derivation found, and in words out of what."""

    value: FactValue
    because: str = ""


class Facts:
    """The facts a derivation may use: it stops at the first that is unknown."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def fact(self, name: str) -> Fact:
        """KNOWN or ABSENT. Raises Unsure when it is UNKNOWN."""
        fact = self._ask(name)
        if fact.state is State.UNKNOWN:
            raise Unsure(fact)
        return fact

    def get(self, name: str) -> FactValue:
        """The value, None when it is ABSENT. Raises Unsure."""
        return self.fact(name).value

    def maybe(self, name: str) -> FactValue:
        """The value, None when it is ABSENT or UNKNOWN."""
        fact = self._ask(name)
        return fact.value if fact.state is State.KNOWN else None

    def text(self, name: str) -> str:
        """As text, empty when it is ABSENT. Raises Unsure."""
        value = self.get(name)
        return "" if value is None else str(value)

    def items(self, name: str) -> tuple[FactValue, ...]:
        """A list, empty when it is ABSENT. Raises Unsure."""
        value = self.get(name)
        return value if isinstance(value, tuple) else ()

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(str(item) for item in self.items(name) if item is not None)

    def number(self, name: str, default: float = 0.0) -> float:
        value = self.get(name)
        return float(value) if isinstance(value, (int, float)) else default


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived fact: its name, the facts it asks for, and how it is made of them."""

    name: str
    needs: tuple[str, ...]
    make: Callable[[Facts], Claim]

    def tell(self, ask: Ask) -> Fact:
        """The claim as a fact. Never raises."""
        try:
            claim = self.make(Facts(ask))
        except Unsure as unsure:
            fact = unsure.fact
            detail = f"needs {fact.name}" + (f": {fact.detail}" if fact.detail else "")
            return Fact.unknown(self.name, fact.reason or Reason.UNPARSABLE, "derived", detail)
        except NotApplicable as reason:
            return Fact.absent(self.name, "derived", str(reason))
        except CannotTell as error:
            return Fact.unknown(self.name, error.reason, "derived", str(error))
        except ValueError as error:
            return Fact.unknown(self.name, Reason.UNPARSABLE, "derived", str(error))
        if claim.value is None:
            return Fact.absent(self.name, "derived", claim.because)
        return Fact.known(self.name, claim.value, "derived", claim.because)
