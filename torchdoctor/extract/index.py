"""What an index that is out of range stands for: the operation and the frames decide.

An embedding looks up ids of tokens, positions or categories; one_hot, losses and metrics take class labels; a
sampler counts its own steps. A GPU's assertion has no frames: those of the exceptions beside it count, and
show the program rather than the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text
from torchdoctor.model import Event, EventKind, Frame, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "index.what": "text: token, position, row (of another embedding), label, node, step, or made (by the "
    "program, in the lines shown); else absent",
    "index.served": "bool: a server's frames, or its line for a request, are in the text",
    "index.length": "int: the length of the inputs in tokens, where the tokenizer warned of it",
    "index.positions": "int: how many positions the model has, by the same warning",
}

_ONE_HOT = r"(?i)\bone_?hot\b|to_one_?hot|one_?hot_(?:encod|y\b)"
_LOSS = (
    r"(?:^|[/_.])(?:loss(?:es)?|metrics?|criterion|dice|iou|miou|cross_entropy|nll_loss|confusion_matrix)"
    r"(?:[/_.(]|$)"
)
_STEPS = r"\b(?:sigmas?|timesteps?|alphas?_cumprod|betas)\w*\[|\bstep_index\b"
_POSITION = r"(?i)(?:^|[^a-z])(?:w?pe|pos|position)(?:[^a-z]|$)|position|pos_emb"
_TOKEN = r"(?i)input_ids|token|word_?emb|(?:^|\W)wte\b|vocab"
# a line that makes an index, and does not look something up by one
_MAKES = r"(?i)^\s*(?:\w+, )?(?:\w+_)?(?:idx|inds?|index|indices)(?:_\w+|\d)?(?:, \w+)? ?=(?!=)"
_OF_LABELS = r"(?i)label|target|\by(?:_true)?\b|class"
_LANGUAGE = r"transformers/generation/|/(?:vllm|sglang|tokenizers|text_generation_server)/"
_GRAPHS = frozenset({"torch_geometric", "torch_scatter", "torch_sparse", "torch_cluster", "dgl"})
_LOOKUPS = ("srcIndex < srcSelectDimSize", "Embedding", "embedding")
_SCATTER = ("ScatterGather", "idx_dim", "indexValue")
_TOO_LONG = (
    r"sequence length is longer than the specified maximum sequence length for this model "
    r"\((\d{1,9}) > (\d{1,9})\)"
)
_SERVED = r"\" HTTP/[12](?:\.\d)?\"? [1-5]\d\d\b|Exception (?:on /|in ASGI application)"
_SERVERS = frozenset({
    "flask", "werkzeug", "uvicorn", "fastapi", "starlette", "gunicorn", "aiohttp", "tornado", "gradio", "ray",
})  # fmt: skip
_MOST = 400  # events whose frames are looked at


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one message on an index that is out of range."""
    length = _too_long(transcript)
    yield "length", length[0] if length else None
    yield "positions", length[1] if length else None
    own = event.frames or _wrapped(event, transcript)
    yield "served", _served(transcript)
    yield "what", _what(event, own) if own else _beside(event, transcript, length is not None)


def _what(event: Event, frames: tuple[Frame, ...]) -> str | None:
    if "Class values must be" in event.text or _said(_ONE_HOT, frames):
        return "label"
    last = frames[-1]
    if last.function.endswith("step") and pattern(_STEPS).search(last.code):
        return "step"
    if any(frame.package == "torch" and frame.function.startswith("embedding") for frame in frames[-2:]):
        return _looked_up(frames)
    if _path(last).endswith("torch/nn/modules/sparse.py"):
        return _looked_up(frames)
    if _of_graph(frames):
        return "node"
    if "scatter" in last.code or "gather" in last.code or last.package:
        return "label" if _said(_LOSS, frames) else None
    return None


def _looked_up(frames: tuple[Frame, ...]) -> str | None:
    """What the embedding's own caller passes to it."""
    caller = next((frame for frame in reversed(frames) if frame.package != "torch"), frames[-1])
    if pattern(_POSITION).search(caller.code):
        return "position"
    if pattern(_TOKEN).search(caller.code) or any(pattern(_LANGUAGE).search(_path(one)) for one in frames):
        return "token"
    return "row"


def _beside(event: Event, transcript: Transcript, too_long: bool) -> str | None:
    """For a line without frames: what the program around it works on."""
    if "Class values must be" in event.text:
        return "label"
    frames = _of_text(transcript)
    if _of_graph(frames):
        return "node"
    if any(sign in event.text for sign in _SCATTER):
        told = _said(_ONE_HOT, frames) or _one_hot(transcript) or _said(_LOSS, frames)
        return "label" if told else None
    if any(sign in event.text for sign in _LOOKUPS):
        if too_long:
            return "position"
        language = any(pattern(_LANGUAGE).search(_path(one)) for one in frames)
        return "token" if language or any("input_ids" in one.code for one in frames) else None
    makes = any(not one.package and pattern(_MAKES).search(one.code) for one in frames)
    return "made" if makes and not _said(_OF_LABELS, frames) else None


def _said(form: str, frames: tuple[Frame, ...]) -> bool:
    said = pattern(form)
    return any(said.search(text) for one in frames for text in (one.code, one.function, _path(one)))


def _of_graph(frames: tuple[Frame, ...]) -> bool:
    return any(frame.package in _GRAPHS or "edge_index" in frame.code for frame in frames)


def _path(frame: Frame) -> str:
    return frame.file.replace("\\", "/")


def _wrapped(event: Event, transcript: Transcript) -> tuple[Frame, ...]:
    """The frames of the first exception that this one wraps or chains, if it has none itself."""
    for relation in event.relations:
        if 0 <= relation.event < len(transcript.events) and transcript.events[relation.event].frames:
            return transcript.events[relation.event].frames
    return ()


@once_a_text
def _of_text(transcript: Transcript) -> tuple[Frame, ...]:
    stacks = [one for one in transcript.events if one.kind is EventKind.EXCEPTION and one.frames]
    return tuple(frame for one in stacks[:_MOST] for frame in one.frames)


@once_a_text
def _served(transcript: Transcript) -> bool:
    if any(frame.package in _SERVERS for frame in _of_text(transcript)):
        return True
    return any(pattern(_SERVED).search(one.text[:2_000]) for one in transcript.events[-4_000:])


@once_a_text
def _one_hot(transcript: Transcript) -> bool:
    """Does a warning or a line of the program name a one-hot encoding?"""
    return any(pattern(_ONE_HOT).search(one.text[:2_000]) for one in transcript.events[:4_000])


@once_a_text
def _too_long(transcript: Transcript) -> tuple[int, int] | None:
    for one in transcript.events:
        if "maximum sequence length" in one.text:
            found = pattern(_TOO_LONG).search(one.text)
            if found is not None:
                return int(found[1]), int(found[2])
    return None
