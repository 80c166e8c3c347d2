"""Logs made to slow the redactor down, or to carry a secret past it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from hostile.command import LIMIT_S, run

_N = 40_000
_HEADER = "-----BEGIN RSA PRIVATE KEY-----"
_KEY = "MIIEowIBAAKCAQEAw7Jd0Zb1uJ8mQ2hXkq4s5vY6t3R9pLcN0aFgHiKjMnOpQrSt"
_TOKEN = "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"


def _failed(message: str) -> str:
    """A log whose verdict has to quote the message."""
    return (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in step\n    go()\n'
        f"proj.Failed: cannot go on: {message}\n"
    )


# what is in the message or before it -> a log that costs more than it should, where something is not linear
_FLOODS = {
    "key headers in one line": _failed(_HEADER * (_N // 10)),
    "key headers in many lines": _failed("\n".join([_HEADER] * (_N // 4))),
    "key headers and ends out of order": _failed(f"-----END RSA PRIVATE KEY-----{_HEADER}" * (_N // 10)),
    "empty lines in a message": _failed("\n " * _N + "end"),
    "names of passwords": _failed("password=" * (_N // 4)),
    "underscores": _failed("_" * _N),
    "cookies": _failed("Cookie: a=" * (_N // 4)),
    "mysql without a password": _failed("mysql " * (_N // 4)),
}
_SLOW_BEFORE = {"key headers in many lines", "empty lines in a message"}


def _marked(names: Iterable[str], failed: set[str]) -> list[ParameterSet]:
    return [pytest.param(name, marks=[] if name in failed else [pytest.mark.held_before]) for name in names]


@pytest.mark.parametrize("name", _marked(_FLOODS, _SLOW_BEFORE))
def test_a_flood_costs_little(name: str, tmp_path: Path) -> None:
    """``rules new`` redacts the whole log, not what a report quotes of it."""
    log = tmp_path / "logs" / "run.log"
    log.parent.mkdir()
    log.write_text(_FLOODS[name], encoding="utf-8")
    started = time.monotonic()
    done = run(
        ["rules", "new", "some-rule", "--from", "run.log", "--rules", "mine", "--line", "4"], log.parent
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < LIMIT_S


def test_every_host_of_a_large_job_is_replaced_in_time(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "run.log"
    log.parent.mkdir()
    hosts = [
        f"srun: error: cn{number:05}x: task {number}: Exited with exit code 1\n" for number in range(20_000)
    ]
    log.write_text("".join(hosts) + _failed("see above"), encoding="utf-8")
    started = time.monotonic()
    done = run(["explain", "--offline", "--redact", "--format", "json", "run.log"], log.parent)
    assert done.returncode == 0
    assert time.monotonic() - started < LIMIT_S
    assert b"cn00000x" not in done.stdout


# the message, and what of it nobody else may read
_CARRIED = {
    "a key without its end": (f"{_HEADER}\n  {_KEY}\n  {_KEY}", _KEY),
    "a key in one line": (f'"{_HEADER}\\n{_KEY}\\n-----END RSA PRIVATE KEY-----\\n"', _KEY),
    "a key after a header without one": (f"{_HEADER} {_HEADER}\\n{_KEY}\\n", _KEY),
    "a token in colours": (_TOKEN[:9] + "\x1b[31m" + _TOKEN[9:], _TOKEN[9:]),
    "a token beside brackets": (f"<({_TOKEN})>", _TOKEN),
    "the second of two cookies": ("Cookie: lang=en; session=q9Wm2Xc7Lk4T", "q9Wm2Xc7Lk4T"),
    "a password of marks": ("DB_PASSWORD=$q(9<W/m", "q(9<W/m"),
    "a password in quotes of the other kind": ("password='a\"b$9c'", "b$9c"),
    "a password after a letter": ("mysql -u root -pq9Wm2Xc7 -h db", "q9Wm2Xc7"),
    "a password with a comma": ("connect(password=q9,Wm2,Xc7, port=1)", "q9,Wm2"),
    "a name of marks": ("open('/home/a(b|c)+[d/x.pt') failed", "b|c"),
    "a name beside a stand-in": ("/home/user1/x and /home/bkowalski/y", "bkowalski"),
    "a token that nobody knows": ("bad key qW3eR7tY1uI9oP5aS2dF8gH", "qW3eR7tY1uI9"),
}
_LEFT_BEFORE = {
    "the second of two cookies",
    "a password of marks",
    "a password in quotes of the other kind",
    "a password after a letter",
    "a password with a comma",
    "a token that nobody knows",
}


@pytest.mark.parametrize("name", _marked(_CARRIED, _LEFT_BEFORE))
def test_a_secret_stays_here(name: str, tmp_path: Path) -> None:
    message, secret = _CARRIED[name]
    log = tmp_path / "logs" / "run.log"
    log.parent.mkdir()
    log.write_text(_failed(message), encoding="utf-8")
    done = run(["explain", "--offline", "--format", "markdown", "run.log"], log.parent)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert "cannot go on" in shown
    assert secret not in shown
