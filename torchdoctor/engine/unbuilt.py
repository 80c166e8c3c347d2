"""Modules that are missing because pip or uv failed to install them above: what ended that is the cause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.engine.build_reading import ANNOUNCED, is_of_installer
from torchdoctor.engine.context import OWN_CODE
from torchdoctor.engine.finding import Finding
from torchdoctor.extract import once_a_text
from torchdoctor.model import EventKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.model import Event, Transcript

WHY = "the installation of that module failed above"
_MISSING = r"^No module named '?(?P<name>\w+)"
# what pip says that it installs: a name, a folder, an address, all of which hold the name of the package
_ASKED = (
    r"(?:^|\s)(?:Obtaining|Collecting|Processing|for|build|install)[ `'][^\n]{0,200}?(?<![\w.])NAME(?![\w.])"
)
_INSTALLED = r"Successfully installed [^\n]{0,4000}?(?<![\w-])NAME-\d"


def is_unbuilt(event: Event, transcript: Transcript) -> bool:
    """Is a module not there whose installation pip or uv gave up above, and did not make good since?"""
    if event.kind is not EventKind.EXCEPTION or not (event.type or "").endswith(
        ("NotFoundError", "ImportError")
    ):
        return False
    missing = pattern(_MISSING).match(event.text[:400])
    if missing is None:
        return False
    last = max((number for number in _given_up(transcript) if number < event.id), default=-1)
    name = re.escape(missing["name"]).replace("_", "[-_.]")
    for other in reversed(transcript.events[: event.id] if last >= 0 else ()):
        text = other.text[:4_000]
        if "Successfully installed" in text and re.search(_INSTALLED.replace("NAME", name), text):
            return False
        if other.id <= last and re.search(_ASKED.replace("NAME", name), text):
            return True
    return False


@once_a_text
def _given_up(transcript: Transcript) -> tuple[int, ...]:
    """The events by which pip or uv says that it could not install something."""
    return tuple(
        event.id
        for event in transcript.events
        if pattern(ANNOUNCED).match(event.text[:4_000]) is not None or is_of_installer(event)
    )


def without_unbuilt(live: list[Finding], transcript: Transcript) -> tuple[list[Finding], list[Finding]]:
    """The findings, less that the reader's own line asked for such a module; and what was left out."""
    own = next((one for one in live if one.rule.id == OWN_CODE), None)
    if own is None:
        return live, []
    apart = [one for one in own.occurrences if is_unbuilt(one.event, transcript)]
    if not apart:
        return live, []
    left = [one for one in own.occurrences if one not in apart]
    rest = [one for one in live if one is not own]
    return [*rest, *([Finding(own.rule, left)] if left else [])], [Finding(own.rule, apart)]
