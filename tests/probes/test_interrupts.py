"""A signal ends what is inside, wherever its exception surfaces."""

from __future__ import annotations

import os
import signal
import time
import weakref
from collections.abc import Callable

import pytest

from torchdoctor.probes.interrupts import ended_by_signals

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals to itself")


def told(number: int = signal.SIGHUP, wait: float = 0.01) -> None:
    os.kill(os.getpid(), number)
    time.sleep(wait)  # the handler runs at the next instruction


class Named:
    def __set_name__(self, owner: type, name: str) -> None:
        told()


def in_a_class_body() -> None:
    type("Owner", (), {"field": Named()})  # Python 3.10 and 3.11 make a RuntimeError of it


def in_a_callback() -> None:
    class Target: ...

    target = Target()
    seen = weakref.ref(target, lambda _: told())
    del target
    assert seen() is None
    time.sleep(5)


def in_a_destructor() -> None:
    class Target:
        def __del__(self) -> None:
            told()

    Target()
    time.sleep(5)


def in_a_guard() -> None:
    try:
        in_a_class_body()
    except Exception:
        return


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_each_signal_ends_it(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        told(number, 5)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("place", [in_a_class_body, in_a_callback, in_a_destructor, in_a_guard])
def test_it_is_not_lost(place: Callable[[], None], capfd: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        place()
    assert time.monotonic() - begun < 2
    assert capfd.readouterr().err == ""


def test_a_failure_stays_one() -> None:
    with pytest.raises(ZeroDivisionError), ended_by_signals():
        print(1 // 0)
