"""Two sets of names and shapes: what one lacks, what it has too much, and the one cause that explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from torchdoctor.checkpoint import shapes, wrappers
from torchdoctor.model import Record
from torchdoctor.records import record

Shapes = Mapping[str, tuple[int, ...]]
MAX_PREFIX: Final = 200


@record(frozen=True, slots=True)
class Change(Record):
    """What is done to every name of the file before it is compared: words taken out, or one put before."""

    removed: tuple[str, ...] = ()
    prefix: str = ""  # taken off the beginning
    added: str = ""  # put before

    def of(self, name: str) -> str:
        if self.removed:
            name = wrappers.without(name, self.removed)
        if self.prefix:
            name = name.removeprefix(self.prefix)
        return self.added + name

    @property
    def nothing(self) -> bool:
        return not (self.removed or self.prefix or self.added)

    def snippet(self, name: str = "sd") -> str:
        """The line of Python that does the same to a state dict."""
        key = "k"
        if self.removed:
            inner = [word for word in self.removed if word in wrappers.INNER]
            outer = [word for word in self.removed if word not in wrappers.INNER]
            key += "".join(f".removeprefix({word!r})" for word in outer) + "".join(
                f".replace({word!r}, '')" for word in inner
            )
        if self.prefix:
            key += f".removeprefix({self.prefix!r})"
        if self.added:
            key = f"{self.added!r} + {key}"
        return f"{name} = {{{key}: v for k, v in {name}.items()}}"


@record(frozen=True, slots=True)
class Mismatch(Record):
    """A name with the shape that the file has, and the one that the model wants."""

    name: str
    file: tuple[int, ...]
    model: tuple[int, ...]


@record(frozen=True, slots=True)
class Comparison(Record):
    """``missing``: names of the model that the file lacks. ``unexpected``: names that only the file has.

    All are told after ``change``. ``cause`` says in words what explains the different shapes, and ``kind``
    is its name: transposed, vocabulary, classes, lora-rank, positions, width, or "".
    """

    change: Change
    same: int
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: tuple[Mismatch, ...]
    kind: str = ""
    cause: str = ""
    names_cause: str = ""  # what explains missing and unexpected names

    @property
    def fits(self) -> bool:
        return self.change.nothing and not (self.missing or self.unexpected or self.mismatched)


def compare(file: Shapes, model: Shapes) -> Comparison:
    """The file against the model, under the change of names that makes most of them meet."""
    best = max(_changes(file, model), key=lambda change: _score(change, file, model))
    renamed = {best.of(name): shape for name, shape in file.items()}
    if not set(renamed) & set(model):
        best, renamed = Change(), dict(file)
    both = [name for name in model if name in renamed]
    mismatched = tuple(
        Mismatch(name, renamed[name], model[name]) for name in both if renamed[name] != model[name]
    )
    missing = tuple(name for name in model if name not in renamed)
    unexpected = tuple(name for name in renamed if name not in model)
    kind, cause = shapes.explain([(one.name, one.file, one.model) for one in mismatched], len(both))
    return Comparison(
        best, len(both) - len(mismatched), missing, unexpected, mismatched, kind, cause,
        shapes.explain_names(missing, unexpected, {**model}, renamed),
    )  # fmt: skip


def _score(change: Change, file: Shapes, model: Shapes) -> tuple[int, int, int]:
    """Names that meet, among them those of one shape; the smaller change wins a tie."""
    met = fitting = 0
    for name, shape in file.items():
        wanted = model.get(change.of(name))
        if wanted is not None:
            met += 1
            fitting += wanted == shape
    return met, fitting, -(len(change.removed) + bool(change.prefix) + bool(change.added))


def _changes(file: Shapes, model: Shapes) -> Sequence[Change]:
    """No change, the wrappers' words, and prefixes that one side has before a name of the other."""
    found = [Change()]
    words = tuple(wrappers.of(file))
    inner = tuple(word for word in wrappers.INNER if any(f".{word}" in f".{name}" for name in file))
    for removed in {words, inner, tuple(dict.fromkeys((*words, *inner)))} - {()}:
        found.append(Change(removed))
    off, on = _prefixes(file, model), _prefixes(model, file)
    found += [Change(prefix=one) for one in off]
    found += [Change(added=one) for one in on]
    bare = {wrappers.without(name, (*words, *inner)): shape for name, shape in file.items()}
    if words or inner:
        found += [
            Change(tuple(dict.fromkeys((*words, *inner))), prefix=one) for one in _prefixes(bare, model)
        ]
        found += [Change(tuple(dict.fromkeys((*words, *inner))), added=one) for one in _prefixes(model, bare)]
    # 'model.' on one side and 'net.' on the other: one taken off, one put before
    for one in _first_words(file):
        short = {name.removeprefix(one): shape for name, shape in file.items()}
        found += [Change(prefix=one, added=other) for other in _prefixes(model, short)]
    return found


def _prefixes(longer: Shapes, shorter: Shapes, most: int = 4) -> list[str]:
    """Heads, up to a dot, of names of one side whose rest is a name of the other; the commonest first."""
    votes: Counter[str] = Counter()
    for name in longer:
        at = name.find(".")
        while 0 <= at < MAX_PREFIX:
            if name[at + 1 :] in shorter:
                votes[name[: at + 1]] += 1
            at = name.find(".", at + 1)
    return [prefix for prefix, _ in votes.most_common(most)]


def _first_words(names: Shapes, most: int = 2) -> list[str]:
    votes = Counter(name[: name.index(".") + 1] for name in names if "." in name)
    return [word for word, count in votes.most_common(most) if count > len(names) / 2]
