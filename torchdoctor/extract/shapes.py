"""What the shapes in a message show: the axes in which alone they differ, or that has the wanted size."""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.patterns import search

FACTS: dict[str, str] = {
    "shapes.channels_of": "text: sound or picture, where two samples differ in the number of channels alone",
    "shapes.channel_axis": "int: the axis of these channels, 0 or -1",
    "shapes.wanted_axis": "int: an axis between first and last that has the size that the last should have",
    "shapes.prediction": "text: the sizes of what a loss got as prediction, as 8, 1, 42, 42",
    "shapes.target": "text: the sizes of its target",
    "shapes.one_shape": "text: the call that gives both one shape, where they differ in axes of size 1 alone",
    "shapes.loss_differs": "text: picture, rows, outputs, classes or other: in what else they differ",
    "shapes.outputs": "int: the size of the target's axis 1, where they differ in that alone",
    "shapes.grey_batch": "int: how many pictures of one channel came at once to an own layer for three",
}

_STACKED = r"but got \[([\d, ]{1,80})\] at entry 0 and \[([\d, ]{1,80})\] at entry \d"
_NORMED = (
    r"Given normalized_shape=\[(\d{1,9})\], expected input with shape \[.{1,40}?, but got input of size ?"
    r"\[([\d, ]{1,80})\]"
)
_SIZES = r"\(torch\.Size\(\[([\d, ]{0,80})\]\)\)"
_LOSS = rf"[Tt]arget size {_SIZES} (?:that is different to the|must be the same as) input size {_SIZES}"
_WARNED = 12  # events between the loss's warning and the broadcast that fails behind it
_GREY = r"expected input\[(\d{1,9}), 1, \d{1,9}, \d{1,9}\] to have 3 channels"
# grey, RGB, RGBA; mono, stereo, four microphones, 5.1
_PICTURE = frozenset({(1, 3), (1, 4), (3, 4)})
_SOUND = frozenset({(1, 2), (1, 4), (1, 6), (2, 6)})
# below these it may be boxes, points, words: a picture has more rows and columns, a recording more samples
_LEAST_SIDE = 8
_LEAST_SAMPLES = {-1: 1_000, 0: 8_000}  # [1, 768] may be one vector of many, too


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of a message that shows two shapes, or the one that an operation wanted and got."""
    text = event.text[:600]
    if (found := search(_STACKED, text, "at entry 0")) is not None:
        what, axis = _channels(_sizes(found[1]), _sizes(found[2]))
        yield "channels_of", what
        yield "channel_axis", axis
    if (found := search(_NORMED, text, "normalized_shape")) is not None:
        inner = _sizes(found[2])[1:-1]
        wanted = int(found[1])
        yield "wanted_axis", inner.index(wanted) + 1 if wanted in inner else None

    if (found := search(_GREY, event.text[:20_000], "expected input[")) is not None:
        caller = next((one for one in reversed(event.frames) if one.package not in ("torch", "python")), None)
        own = caller is not None and not caller.package
        # one picture by itself may be an odd one
        yield "grey_batch", int(found[1]) if own and int(found[1]) > 1 else None
    yield from _loss(event, transcript)


def _loss(event: Event, transcript: Transcript) -> Iterator[Found]:
    """The sizes of a loss, of its message or of its warning right above the message."""
    near = [event]
    if "must match the size of tensor b" in event.text[:200]:
        near += reversed(transcript.events[max(0, event.id - _WARNED) : event.id])
    found = next((one for other in near if (one := search(_LOSS, other.text[:2_000], "arget size"))), None)
    if found is None:
        return
    target, prediction = _sizes(found[1]), _sizes(found[2])
    yield "target", ", ".join(map(str, target))
    yield "prediction", ", ".join(map(str, prediction))
    if prediction == target:
        return
    call = _one_shape(prediction, target)
    yield "one_shape", call
    differs = None if call else _differs(prediction, target)
    yield "loss_differs", differs
    yield "outputs", target[1] if differs == "outputs" else None


def _one_shape(prediction: tuple[int, ...], target: tuple[int, ...]) -> str | None:
    """The call that gives both one shape, where they differ in axes of size 1 alone."""
    for name, longer, shorter in (("pred", prediction, target), ("target", target, prediction)):
        axes = [at for at, size in enumerate(longer) if size == 1]
        fitting = (at for at in reversed(axes) if longer[:at] + longer[at + 1 :] == shorter)
        if (axis := next(fitting, None)) is not None:
            return f"{name}.squeeze({axis})"
    alike = [size for size in prediction if size != 1] == [size for size in target if size != 1]
    return "target.view_as(pred)" if alike else None


def _differs(prediction: tuple[int, ...], target: tuple[int, ...]) -> str:
    if len(prediction) == len(target):
        axes = [at for at, (one, other) in enumerate(zip(prediction, target, strict=True)) if one != other]
        if axes in ([0], [1]):
            return ("rows", "outputs")[axes[0]]
        return "picture" if len(target) == 4 and min(axes) > 1 else "other"
    return "classes" if len(prediction) > 1 and prediction[:1] + prediction[2:] == target else "other"


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
