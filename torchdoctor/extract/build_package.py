"""Which package pip or uv was building, what they were asked for, and which ready wheel setup.py fetches."""

from __future__ import annotations

import re

from torchdoctor.extract import once_a_text
from torchdoctor.extract.torch_extensions import normal
from torchdoctor.model import Event, Fact, Transcript
from torchdoctor.patterns import pattern

# a line that pip prints, with the seconds that BuildKit puts before it in its summary of a step
_START = r"(?:^|\n)(?:\d{1,5}\.\d{1,3} )?\s*"
_PACKAGE = (
    r"Failed to build `(?P<built>[A-Za-z][\w.-]*?)(?:[=@ ]\S*)?`"
    # pip -v, of the folder in which it ran what failed
    r"|(?:^|\n)\s*cwd: \S{0,200}/pip-install-\w{1,20}/(?P<unpacked>[A-Za-z][\w.-]*?)"
    r"(?:_[0-9a-f]{16,40})?/?(?:\s|$)"
    rf"|{_START}Collecting "
    r"(?:git\+https?://\S{1,200}/(?P<repository>[\w.-]+?)(?:\.git)?(?:@\S*)?(?:\s|$)"
    r"|(?P<collected>[A-Za-z][\w.-]*)(?![\w+:]))"
    r"|Getting requirements to build wheel|Preparing metadata "
)
# a name with its bounds, or an address; what stands in parentheses is who wanted it
_COLLECTED = (
    rf"{_START}Collecting "
    r"(?:(?P<name>[A-Za-z][\w.-]*)(?P<extras>\[[\w,.-]+\])?(?![\w+:])"
    r"(?P<bounds>(?:[<>=!~]=?=?[\w.*!+-]+,?)*)\s?(?:@ ?)?)?(?P<address>(?:git\+)?https?://[^\s)]+)?"
)
# pip install -e FOLDER
_OWN_FOLDER = r"\s*Obtaining file://(/[\w./+-]{1,200})"
# the package that they gave up: by its name, or the last one whose metadata was asked for
_GIVEN_UP = (
    r"(?:Failed building (?:editable |wheel )?for |Failed to build ['`]?|Could not build wheels for )"
    r"(?P<failed>[A-Za-z][\w.-]*)(?P<release>==[\w.+!-]+)?"
    r"|(?:egg_info|Getting requirements to build \w+|[Mm]etadata \S+) did not run successfully"
    r"|metadata-generation-failed|egg_info\"? (?:Check|failed)"
)
# ~/.cache/torch_extensions/py310_cu118/NAME
_EXTENSION = r"/\.cache/torch_extensions/(py\d{2,3}_\w{1,10}/[\w.-]{1,80})(?=[/\s'\"]|$)"
# torch's load(), where it writes what ninja is to build, and which extension it could not
_NINJA_FILE = r"Emitting ninja build file (?P<folder>/[\w./@+-]{1,300}/(?P<name>[\w.-]{1,80}))/build\.ninja"
_NOT_LOADED = r"Error building extension '(?P<name>[\w.-]{1,80})'"
# flash-attn's setup.py, and those that were made after it
_WHEEL = r"(?i)\bwheel URL:?\s{1,3}(https://[^\s'\"<>]{1,300}\.whl)\b"


@once_a_text
def facts(transcript: Transcript) -> tuple[Fact, ...]:
    """``build.package``, ``build.requirement`` and ``build.ready_wheel``, as far as the text tells them."""
    named = _package(transcript)
    place, name = (named[0].place(), named[1]) if named is not None else ("text", "")
    told = {
        "package": name,
        "requirement": _requirement(transcript) or name,
        "ready_wheel": _ready_wheel(transcript),
        "extension_folder": _extension_folder(transcript),
        "ninja_folder": _ninja_folder(transcript),
    }
    return tuple(Fact.known(f"build.{key}", value, place) for key, value in told.items() if value)


def _package(transcript: Transcript) -> tuple[Event, str] | None:
    """What pip or uv say that they did not build, else what pip collected last before it asked how to."""
    collected: tuple[Event, str] | None = None
    asks = False
    for event in transcript.events:
        found = None if event.quoted else pattern(_PACKAGE).search(event.text[:600])
        if found is None:
            continue
        if named := found["built"] or found["unpacked"]:
            return event, named
        name = found["collected"] or found["repository"]
        asks = asks or not name
        if name and not asks:
            collected = event, name
    return collected


def _requirement(transcript: Transcript) -> str:
    """What pip was asked for, with its bounds, of the package it could not build: a word of a command."""
    asked: dict[str, str] = {}
    for event in transcript.events:
        if event.quoted or not any(
            word in event.text for word in ("ollecting ", "btaining ", "uild", "etadata", "egg_")
        ):
            continue
        text = event.text[:2_000]
        if (folder := pattern(_OWN_FOLDER).match(text)) is not None:
            asked[folder[1]] = f"-e {folder[1]}"
        elif (got := pattern(_COLLECTED).search(text)) is not None:
            name = normal(got["name"] or "")
            asked.pop(name, None)
            asked[name] = _as_word(got)
        elif (gone := pattern(_GIVEN_UP).search(text)) is not None:
            if gone["release"]:
                return f"{gone['failed']}{gone['release']}"
            last = next(reversed(asked.values()), "")
            return asked.get(normal(gone["failed"]), "") if gone["failed"] else last
    return ""


def _as_word(got: re.Match[str]) -> str:
    """The argument of pip that a line of pip names."""
    if got["address"]:
        return got["address"]
    word = f"{got['name'] or ''}{got['extras'] or ''}{got['bounds'] or ''}".rstrip(",")
    return f'"{word}"' if any(sign in word for sign in "<>[!*") else word


def _extension_folder(transcript: Transcript) -> str:
    """The one folder of an extension that torch builds, below ~/.cache; "" where several are named."""
    found = {
        match[1]
        for event in transcript.events
        if "torch_extensions/" in event.text
        for match in pattern(_EXTENSION).finditer(event.text[:4_000])
    }
    return found.pop() if len(found) == 1 else ""


def _ninja_folder(transcript: Transcript) -> str:
    """The folder in which torch's load() built the one extension that failed; "" where it is not told."""
    folders: dict[str, str] = {}
    failed: set[str] = set()
    for event in transcript.events:
        if "Emitting ninja" in event.text:
            folders.update((one["name"], one["folder"]) for one in pattern(_NINJA_FILE).finditer(event.text))
        elif "Error building ext" in event.text:
            failed.update(pattern(_NOT_LOADED).findall(event.text[:4_000]))
    return folders.get(failed.pop(), "") if len(failed) == 1 else ""


def _ready_wheel(transcript: Transcript) -> str:
    """The address of the wheel that a setup.py looks for before it compiles; "" where it tells none."""
    for event in transcript.events:
        found = pattern(_WHEEL).search(event.text[:4_000]) if ".whl" in event.text else None
        if found is not None and not event.quoted:
            return found[1]
    return ""
