"""Planted torches: ``planted.cases`` holds what is installed, and the facts that are told of it.

``! torch VERSION CUDA`` begins the text of its ``__init__.py``, ``! NAME VERSION`` the requirements of
another package, ``! PATH`` the text of a file, or a folder where it ends in ``/``; ``! NAME=VALUE`` sets a
variable. Behind ``---`` stands a fact a line; ``~`` says that its value holds a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from case_files import table
from probe_machines import Environment

from torchdoctor.model import Fact, State
from torchdoctor.probes.source import ProbeSource


def install(environment: Environment, head: str, text: str, patch: pytest.MonkeyPatch) -> None:
    words = head.split(" ")
    if words[0] == "torch" and len(words) == 3:
        environment.plant(text, version=words[1], cuda=None if words[2] == "none" else words[2])
    elif len(words) == 2:
        environment.distribution(words[0], words[1], text)
    elif "=" in head:
        patch.setenv(*head.split("=", 1))
    else:
        path = Path(head.format(site=environment.site, work=environment.work))
        (path if head.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not head.endswith("/"):
            path.write_text(text, encoding="utf-8")


def told(fact: Fact, places: dict[str, str], holds: str) -> str:
    value = json.dumps(fact.value) if fact.state is State.KNOWN else ""
    for name, place in places.items():
        value = value.replace(place, name)
    if holds and holds in value:
        return f"{fact.name} ~ {holds}"
    if fact.state is State.KNOWN:
        return f"{fact.name} = {value}"
    return f"{fact.name} {fact.reason.value if fact.reason else 'absent'}"


CASES = table(Path(__file__).with_name("planted.cases"))


@pytest.mark.parametrize(("lines", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES])
def test_planted(
    lines: list[str], expected: list[str], environment: Environment, look: Callable[..., ProbeSource],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for part in "\n".join(["", *lines]).split("\n! ")[1:]:
        head, _, text = part.partition("\n")
        install(environment, head, text, monkeypatch)
    source = look(environment)
    names = tuple(line.split(" ")[0] for line in expected)
    source.start(names)
    places = {"{site}": str(environment.site), "{work}": str(environment.work)}
    found = zip(names, expected, strict=True)
    assert [told(source.fetch(name), places, line.partition(" ~ ")[2]) for name, line in found] == expected
