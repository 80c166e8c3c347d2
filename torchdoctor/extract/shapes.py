"""What the shapes in a message show: the axis in which alone they differ, or that has the wanted size."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import search

FACTS: dict[str, str] = {
    "shapes.channels_of": "text: sound or picture, where two samples differ in the number of channels alone",
    "shapes.channel_axis": "int: the axis of these channels, 0 or -1",
    "shapes.wanted_axis": "int: an axis between first and last that has the size that the last should have",
}

_STACKED = r"but got \[([\d, ]{1,80})\] at entry 0 and \[([\d, ]{1,80})\] at entry \d"
_NORMED = (
    r"Given normalized_shape=\[(\d{1,9})\], expected input with shape \[.{1,40}?, but got input of size ?"
    r"\[([\d, ]{1,80})\]"
)
# grey, RGB, RGBA; mono, stereo, four microphones, 5.1
_PICTURE = frozenset({(1, 3), (1, 4), (3, 4)})
_SOUND = frozenset({(1, 2), (1, 4), (1, 6), (2, 6)})
# below these it may be boxes, points, words: a picture has more rows and columns, a recording more samples
_LEAST_SIDE = 8
_LEAST_SAMPLES = {-1: 1_000, 0: 8_000}  # [1, 768] may be one vector of many, too


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of a message that shows the shapes of two samples, or what layer norm wanted and got."""
    del transcript
    text = event.text[:600]
    if (found := search(_STACKED, text, "at entry 0")) is not None:
        what, axis = _channels(_sizes(found[1]), _sizes(found[2]))
        yield "channels_of", what
        yield "channel_axis", axis
    if (found := search(_NORMED, text, "normalized_shape")) is not None:
        inner = _sizes(found[2])[1:-1]
        wanted = int(found[1])
        yield "wanted_axis", inner.index(wanted) + 1 if wanted in inner else None


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _channels(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[str, int] | tuple[None, None]:
    """What has these channels, and their axis; nothing where more than one axis, or another, differs."""
    if len(one) != len(other) or len(one) not in (2, 3):
        return None, None
    for axis, rest, other_rest in ((0, one[1:], other[1:]), (-1, one[:-1], other[:-1])):
        counts = tuple(sorted((one[axis], other[axis])))
        if rest != other_rest:
            continue
        if len(one) == 3 and counts in _PICTURE and min(rest) >= _LEAST_SIDE:
            return "picture", axis
        if len(one) == 2 and counts in _SOUND and rest[0] >= _LEAST_SAMPLES[axis]:
            return "sound", axis
    return None, None
