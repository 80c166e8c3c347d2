"""Facts out of the report of Module.load_state_dict: which names and shapes differ, and by what.

The two lists of names are compared before anything is claimed: a wrapper (DataParallel, torch.compile,
Lightning, FSDP) puts one word in front of every name and changes nothing else, another architecture
changes names and shapes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchdoctor.extract import Found
from torchdoctor.model import Event, Transcript
from torchdoctor.number import number
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "state_dict.model": "str: class of the model that was loaded into",
    "state_dict.missing_count": "int: names that the model has and the checkpoint lacks, as far as printed",
    "state_dict.mismatch_count": "int: parameters whose shapes differ, as far as printed",
    "state_dict.missing": "list: the first missing names",
    "state_dict.unexpected": "list: the first unexpected names",
    "state_dict.prefix": "str: what stands before the names on one side only (module.)",
    "state_dict.prefix_on": "str: checkpoint or model, the side on which the prefix stands",
    "state_dict.prefix_only": "bool: the two lists of names are the same once the prefix is taken off",
    "state_dict.prefix_share": "float: share of the missing names that the prefix explains, 0 to 1",
    "state_dict.lacks": "text: some missing names, and how many there are besides",
    "state_dict.has": "text: some unexpected names, and how many there are besides",
    "state_dict.model_parts": "text: first words of the model's names, where the file is of another model",
    "state_dict.file_parts": "text: first words of the names of a checkpoint of another model",
    "state_dict.file_goes_on": "str: the block behind the last one of both, where the checkpoint is deeper",
    "state_dict.model_goes_on": "str: the block behind the last one of both, where the model is deeper",
    "state_dict.file_extra": "str: the only part in which the unexpected names are",
    "state_dict.model_extra": "str: the only part in which the missing names are",
    "state_dict.wrapped_in": "str: entry of the file that holds the weights, where all of it was passed",
    "state_dict.other_architecture": "bool: names differ beyond a prefix, and shapes differ too",
    "state_dict.mismatch_first_dim": "bool: all shapes that differ do so in their first dimension only",
    "state_dict.mismatch_embedding": "bool: what differs is embeddings or a language-model head",
    "state_dict.mismatch_computed": "bool: what differs are rows of one length, no weight or bias among them",
    "state_dict.adapter_rank_same": "bool: what differs is LoRA's, and not in the rank",
}

KEEP = 20
TOLD = 4  # of a list in a sentence; the message has them all
# events looked at on either side for the other half of a report
NEIGHBOURS = 12
# prefixes tried before the search gives up: names such as "weight" suggest one for every layer
TRIED = 50

# what wrappers put into parameter names: DataParallel and DDP, torch.compile, Lightning's Fabric, FSDP,
# fairscale and torch's activation checkpointing
_WRAPPERS = (
    "module", "_orig_mod", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module",
    "_fpw_module",
)  # fmt: skip
# classes whose own names begin with "module."
_PARALLEL = ("DataParallel", "DistributedDataParallel")
# the attribute in which a trainer class keeps the network
_HOLDERS = (*_WRAPPERS, "model", "net", "network")
# entries of a training checkpoint that hold the weights, the likeliest first
_CONTAINERS = (
    "state_dict", "model_state_dict", "model_state", "model", "net", "params_ema", "params", "module",
    "weights", "network", "ema", "student", "teacher",
)  # fmt: skip
_EMBEDDINGS = ("embed", "wte", "lm_head", "word_emb", "shared.weight")

_OLD_MISMATCH = "While copying the parameter named"
_HEADINGS = ("Missing key(s) in state_dict:", "Unexpected key(s) in state_dict:")

_SOURCES = {
    "model": r"Error\(s\) in loading state_dict for ([\w.\[\]]{1,100})",
    "key": r'"([^"]{1,300})"',
    # torch 0.3: KeyError: 'unexpected key "module.conv1.weight" in state_dict'
    "old-unexpected": r'unexpected key "([^"]{1,300})" in state_dict',
    # torch 0.3: KeyError: 'missing keys in state_dict: "{\'a\', \'b\'}"'
    "old-missing": r"missing keys in state_dict: [\"'\\]{0,4}\{([^}]*)\}",
    "old-key": r"\\?'([\w.]{1,300})\\?'",
    # torch 1.0 and later "with shape … the shape in current model is"; 0.4.1 "of … where the shape is"
    "mismatch": r"size mismatch for ([^\s:]{1,300}): copying a param (?:with shape|of)"
    r"\s+torch\.Size\(\[([\d, ]*)\]\)\s+from\s+checkpoint,\s+"
    r"(?:the\s+shape\s+in\s+current\s+model\s+is|where\s+the\s+shape\s+is)"
    r"\s+torch\.Size\(\[([\d, ]*)\]\)",
    # torch 0.1 to 0.4.0
    "old-mismatch": r"While copying the parameter named [\"']?([^\s\"',]{1,300})[\"']?,?"
    r"\s+whose\s+dimensions\s+in\s+the\s+model\s+are\s+torch\.Size\(\[([\d, ]*)\]\)"
    r"\s+and\s+whose\s+dimensions\s+in\s+the\s+checkpoint\s+are\s+torch\.Size\(\[([\d, ]*)\]\)",
}
_PATTERNS = Patterns(_SOURCES)

Shapes = tuple[str, tuple[int, ...], tuple[int, ...]]  # name, in the checkpoint, in the model


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one load_state_dict report, also that of torch 0.3 and 0.4; nothing for any other event."""
    if not any(word in event.text for word in ("state_dict", "size mismatch for", _OLD_MISMATCH)):
        return
    text = _whole(event, transcript)
    if '\\"' in text:
        text = text.replace('\\"', '"')
    missing, cut_missing = _section(text, _HEADINGS[0])
    unexpected, cut_unexpected = _section(text, _HEADINGS[1])
    old = not missing and not unexpected and _old_style(text, missing, unexpected)
    mismatches = mismatched(text)
    if not missing and not unexpected and not mismatches:
        return
    cut = cut_missing or cut_unexpected

    model = _PATTERNS["model"].search(text)
    yield "model", model[1] if model else None
    yield "missing_count", len(missing)
    yield "mismatch_count", len(mismatches)
    yield "missing", tuple(missing[:KEEP]) or None
    yield "unexpected", tuple(unexpected[:KEEP]) or None
    yield "lacks", _told(missing)
    yield "has", _told(unexpected)
    if mismatches:
        yield from _mismatch_facts(mismatches)
    wrapped = model is not None and model.group(1) in _PARALLEL
    prefix = _old_prefix(missing, unexpected) if old else _prefix(missing, unexpected, wrapped)
    left = set(missing) | set(unexpected)
    if prefix is None:
        yield "prefix", None
        yield "prefix_only", False
        yield "prefix_share", 0.0
    else:
        before, after, explained = prefix
        left = _left_over(missing, unexpected, before, after)
        share = explained / len(missing) if missing else 1.0
        yield "prefix", after or before
        yield "prefix_on", "checkpoint" if after else "model"
        yield "prefix_only", _agrees(missing, unexpected, explained, left, cut) or bool(old)
        yield "prefix_share", round(share, 3)
    wrapped_in = _container(unexpected)
    yield "wrapped_in", wrapped_in
    if prefix is None and wrapped_in is None and not old:
        from torchdoctor.extract import state_dict_parts

        mine, theirs = ([_bare(name).split(".") for name in names] for names in (missing, unexpected))
        yield from state_dict_parts.compared(mine, theirs, cut_missing, cut_unexpected)
    yield "other_architecture", bool(mismatches) and bool(left)


def _told(names: Sequence[str]) -> str | None:
    rest = len(names) - TOLD
    listed = ", ".join(names[:TOLD] if rest > 1 else names)
    return (f"{listed} and {rest} more" if rest > 1 else listed) or None


def mismatched(text: str) -> list[Shapes]:
    """The parameters whose shapes differ, as load_state_dict lists them."""
    old = _PATTERNS["old-mismatch"].findall(text)
    named = [*_PATTERNS["mismatch"].findall(text), *((name, two, one) for name, one, two in old)]
    return [(name, _sizes(one), _sizes(two)) for name, one, two in named]


def _whole(event: Event, transcript: Transcript) -> str:
    """The report, also where a logger's prefix made an event of each of its lines."""
    if not any(word in event.text for word in (*_HEADINGS, "Error(s) in loading state_dict")):
        return event.text
    have = [word for word in _HEADINGS if word in event.text]
    if len(have) == len(_HEADINGS):
        return event.text
    parts = [event.text]
    for other in _beside(event, transcript.events[event.id + 1 : event.id + 1 + NEIGHBOURS]):
        if not any(word in other.text and word not in have for word in (*_HEADINGS, "size mismatch for")):
            break
        parts.append(other.text)
    for other in _beside(event, reversed(transcript.events[max(0, event.id - NEIGHBOURS) : event.id])):
        if not any(word in other.text and word not in have for word in (*_HEADINGS, "Error(s) in loading")):
            break
        parts.insert(0, other.text)
    return "\n".join(parts)


def _beside(event: Event, others: Iterable[Event]) -> Iterator[Event]:
    return (other for other in others if (other.rank, other.stream) == (event.rank, event.stream))


def _section(text: str, heading: str) -> tuple[list[str], bool]:
    """The quoted names after a heading, and whether the list breaks off before its full stop."""
    start = text.find(heading)
    if start < 0:
        return [], False
    start += len(heading)
    stops = [
        place
        for word in ("Unexpected key(s)", "Missing key(s)", "size mismatch for", "While copying the param")
        if (place := text.find(word, start)) >= 0
    ]
    part = text[start : min(stops, default=len(text))]
    names: list[str] = []
    end = 0
    for found in _PATTERNS["key"].finditer(part):
        # a narrow box breaks a long name in two
        names.append("".join(found.group(1).split()))
        end = found.end()
    rest = part[end:].strip()
    return list(dict.fromkeys(names)), not rest.startswith(".") or rest.startswith("..")


def _old_style(text: str, missing: list[str], unexpected: list[str]) -> bool:
    """Fill the lists from the KeyErrors of torch 0.3; True when there was one."""
    found = _PATTERNS["old-unexpected"].search(text)
    if found is not None:
        unexpected.append(found.group(1))
        return True
    found = _PATTERNS["old-missing"].search(text)
    if found is not None:
        missing.extend(_PATTERNS["old-key"].findall(found.group(1)))
    return bool(missing)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(number(part) or 0 for part in text.split(",") if part.strip())


_COMPUTED = 3  # rows of one length that show that one number made them


def _mismatch_facts(mismatches: Sequence[Shapes]) -> Iterator[Found]:
    first_only = all(one[1:] == two[1:] and len(one) == len(two) > 0 for _, one, two in mismatches)
    yield "mismatch_first_dim", first_only
    words = all(any(word in name for word in _EMBEDDINGS) for name, _, _ in mismatches)
    yield "mismatch_embedding", words and first_only
    # as a constructor computes them from one of its arguments: the steps of a schedule
    rows = {(one, two) for _, one, two in mismatches if len(one) == len(two) == 1}
    learned = any(name.endswith(("weight", "bias")) for name, _, _ in mismatches)
    yield "mismatch_computed", len(mismatches) >= _COMPUTED and len(rows) == 1 and not learned
    yield (
        "adapter_rank_same",
        all(
            ("lora_A" in name and one[:1] == two[:1]) or ("lora_B" in name and one[-1:] == two[-1:])
            for name, one, two in mismatches
        ),
    )


def _bare(name: str) -> str:
    """The name without the words that wrappers put anywhere into it."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _prefix(missing: Sequence[str], unexpected: Sequence[str], wrapped: bool) -> tuple[str, str, int] | None:
    """(what stands before the model's names, before the checkpoint's, names explained), or None.

    One of the two is "" unless both are words of wrappers. Tries the prefixes that the first names suggest.
    """
    if unexpected and not missing:
        return None if wrapped else _on_all(unexpected)
    if not missing or not unexpected:
        return None
    there = set(unexpected)
    candidates: dict[tuple[str, str], None] = {}
    for mine in (*missing[:3], missing[-1]):
        for theirs in unexpected:
            if theirs.endswith("." + mine):
                candidates["", theirs[: -len(mine)]] = None
            elif mine.endswith("." + theirs):
                candidates[mine[: -len(theirs)], ""] = None
            else:
                swapped = _swapped(mine, theirs)
                if swapped is not None:
                    candidates[swapped] = None
    best: tuple[str, str, int] | None = None
    for before, after in list(candidates)[:TRIED]:
        explained = sum(
            1 for name in missing if name.startswith(before) and after + name[len(before) :] in there
        )
        if explained and (best is None or explained > best[2]):
            best = (before, after, explained)
    inner = _inside(missing, unexpected)
    if inner is not None and (best is None or inner[2] > best[2]):
        best = inner
    return best


def _on_all(unexpected: Sequence[str]) -> tuple[str, str, int] | None:
    """A wrapper's word before every name of the only list that is left of a message."""
    words = {name.partition(".")[0] for name in unexpected}
    word = words.pop()
    return ("", word + ".", 0) if not words and word in _WRAPPERS and len(unexpected) > 1 else None


def _swapped(mine: str, theirs: str) -> tuple[str, str] | None:
    """Both names begin with a wrapper's word and go on alike."""
    one, _, rest = mine.partition(".")
    other, _, end = theirs.partition(".")
    if rest and rest == end and one in _HOLDERS and other in _HOLDERS and one != other:
        return one + ".", other + "."
    return None


def _inside(missing: Sequence[str], unexpected: Sequence[str]) -> tuple[str, str, int] | None:
    """A wrapper's word in the middle of the names: backbone.module.conv, model._orig_mod.fc."""
    bare = {_bare(name) for name in unexpected}
    explained = sum(1 for name in missing if _bare(name) in bare)
    if not explained:
        return None
    for word in _WRAPPERS:
        theirs = any(word in name.split(".") for name in unexpected)
        mine = any(word in name.split(".") for name in missing)
        if theirs and not mine:
            return "", word + ".", explained
        if mine and not theirs:
            return word + ".", "", explained
    return None


def _old_prefix(missing: Sequence[str], unexpected: Sequence[str]) -> tuple[str, str, int] | None:
    """torch 0.3 stops at the first name, so a wrapper's word before it is all there is to see."""
    for names, on_checkpoint in ((unexpected, True), (missing, False)):
        words = {name.partition(".")[0] for name in names}
        if len(words) == 1 and (word := next(iter(words))) in _WRAPPERS:
            return ("", word + ".", 1) if on_checkpoint else (word + ".", "", len(names))
    return None


def _left_over(missing: Sequence[str], unexpected: Sequence[str], before: str, after: str) -> set[str]:
    """Names that the prefix does not explain. Counters of BatchNorm are never reported as missing."""
    mine = {_bare(name[len(before) :] if name.startswith(before) else name) for name in missing}
    theirs = {_bare(name[len(after) :] if name.startswith(after) else name) for name in unexpected}
    return {name for name in mine ^ theirs if not name.endswith("num_batches_tracked")}


def _agrees(
    missing: Sequence[str], unexpected: Sequence[str], explained: int, left: set[str], cut: bool
) -> bool:
    if not left:
        return True
    # a list that was cut can only be compared as far as it goes
    shorter = min(len(missing), len(unexpected))
    return cut and explained >= 2 and explained >= 0.8 * shorter


def _container(unexpected: Sequence[str]) -> str | None:
    """The entry with the weights, where the unexpected names are those of a training checkpoint."""
    if not unexpected or any("." in name for name in unexpected):
        return None
    return next((name for name in _CONTAINERS if name in unexpected), None)
