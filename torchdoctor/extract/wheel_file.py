"""For which Python and system a wheel is made, by the tags in its name (PEP 425, PEP 427)."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "wheel.package": "text: the package of the first wheel that a message names",
    "wheel.python": "text: the CPython that it is made for, as 3.10; absent for one of several",
    "wheel.platform": "text: the system and processor that it is made for, as Linux aarch64",
    "wheel.glibc": "text: least glibc of the wheels for this processor, where uv sees an older one here",
    "wheel.glibc_here": "text: the glibc that uv takes this system to have, in such a message",
}

_NAMED = r"(?:^|[\s/'\"(])(?P<file>[A-Za-z][\w.!+-]{1,200}\.whl)\b"
# "You're on Linux (`manylinux_2_27_x86_64`), but `torch` (v2.7.0) only has wheels for the following …"
_HERE = r"You're on [^(\n]{1,40}\(`manylinux_(\d)_(\d{1,2})_(\w{1,20})`\), but .{1,200} only has wheels"
_MADE = r"`manylinux_(\d)_(\d{1,2})_(\w{1,20})`"
_SYSTEMS = {"win": "Windows", "macosx": "macOS", "linux": "Linux", "manylinux": "Linux", "musllinux": "Linux"}


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The facts of a message that names a wheel; nothing for another one."""
    del transcript
    text = event.text[:2_000]
    yield from _by_glibc(text)
    found = pattern(_NAMED).search(text) if ".whl" in text else None
    if found is None:
        return
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        name, _, _, tags = parse_wheel_filename(found["file"])
    except InvalidWheelFilename:
        return
    yield "package", name
    pythons = {one.interpreter for one in tags}
    made = pattern(r"cp(3)(\d{1,2})").fullmatch(min(pythons)) if len(pythons) == 1 else None
    yield "python", None if made is None or min(one.abi for one in tags) == "abi3" else f"{made[1]}.{made[2]}"
    systems = {_in_words(one.platform) for one in tags} - {None}
    yield "platform", min(systems, key=str) if len(systems) == 1 else None


def _by_glibc(text: str) -> Iterator[Found]:
    """Both versions, where a hint of uv lists wheels for this processor that all want a newer glibc."""
    here = pattern(_HERE).search(text) if "only has wheels" in text else None
    if here is None:
        return
    found = pattern(_MADE).findall(text, here.end())
    made = [(int(major), int(minor)) for major, minor, processor in found if processor == here[3]]
    own = (int(here[1]), int(here[2]))
    if made and own < min(made) and f"`linux_{here[3]}`" not in text:
        yield "glibc", "{}.{}".format(*min(made))
        yield "glibc_here", "{}.{}".format(*own)


def _in_words(tag: str) -> str | None:
    """``manylinux_2_28_aarch64`` -> ``Linux aarch64``; None for ``any`` and for rare systems."""
    found = pattern(
        r"(win|macosx|linux|manylinux|musllinux)(?:\d*_\d+)*_?(amd64|arm64|x86_64|i686|aarch64|universal2)"
    ).fullmatch(tag)
    if found is None:
        return None
    processor = found[2].replace("amd64", "x86_64")
    return _SYSTEMS[found[1]] if processor == "universal2" else f"{_SYSTEMS[found[1]]} {processor}"
