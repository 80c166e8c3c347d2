"""What is to be said of a file that was read: what it needs, where it puts things, what is wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchdoctor.checkpoint import danger, refusals, wrappers
from torchdoctor.checkpoint.contents import Contents, Finding
from torchdoctor.checkpoint.target import Target
from torchdoctor.checkpoint.tensors import Tensor
from torchdoctor.model import Fix, Severity, Standing, counted

_SHOWN: Final = 8
# STRING, BINSTRING and SHORT_BINSTRING: Python 3 never writes them
_BYTE_STRINGS: Final = frozenset(b"STU")
# modules whose classes come with torch and what it asks for
_TORCHES: Final = frozenset(
    [
        "torch",
        "numpy",
        "collections",
        "builtins",
        "__builtin__",
        "copyreg",
        "copy_reg",
        "_codecs",
        "argparse",
        "functools",
        "datetime",
        "decimal",
        "fractions",
        "enum",
        "dataclasses",
        "typing",
        "types",
        "pathlib",
        "uuid",
        "array",
        "operator",
        "re",
        "random",
        "itertools",
        "time",
    ]
)


def judge(contents: Contents, target: Target) -> None:
    """Add all findings about a file that was read."""
    contents.findings.extend(_dangers(contents))
    contents.findings.extend(refusals.findings(contents, target))
    contents.findings.extend(_old_texts(contents))
    contents.findings.extend(_views(contents))
    contents.findings.extend(_not_finite(contents))
    contents.findings.extend(_classes(contents, target))
    contents.findings.extend(_devices(contents))
    contents.findings.extend(_prefixes(contents))
    contents.findings.extend(_tied(contents))
    contents.findings.extend(_adapters(contents))


def _dangers(contents: Contents) -> Iterator[Finding]:
    found = danger.dangerous(contents.imports)
    if found:
        says = [
            f"{one.path} is {'called' if one.called else 'imported'} by the pickle (before byte "
            f"{one.at:,}): it {words}"
            for one, words in found[:20]
        ]
        yield Finding(
            "checkpoint-dangerous-import", tuple(says), file=contents.path,
            fixes=(Fix("Do not load it, not even to look at it: what it names would run at once, with "
                       "your rights. Delete it, and "
                       "tell whoever you have it from."),
                   Fix("Use a safetensors file of the same model: it holds numbers only.")),
        )  # fmt: skip
    reaching = [one for one in contents.imports if one.path in ("builtins.getattr", "__builtin__.getattr")]
    if reaching and not found:
        yield Finding(
            "checkpoint-dangerous-import",
            (f"{reaching[0].path} is called by the pickle: it reaches any attribute of what it imports, "
             "as pickled methods do and attacks too",),
            Severity.WARNING, standing=Standing.POSSIBLE, file=contents.path,
            fixes=(Fix("Load it only if you know who wrote it."),),
        )  # fmt: skip


def _old_texts(contents: Contents) -> Iterator[Finding]:
    if contents.byte_strings:
        yield Finding(
            "checkpoint-python2-pickle",
            (f"it holds {counted(contents.byte_strings, 'byte string')} of Python 2 that are no UTF-8 or "
             "ASCII text",),
            file=contents.path,
            fixes=(Fix("Load it with torch.load(path, encoding='latin1', weights_only=False) once, if you "
                       "trust it, and save it again.",
                       None, "runs-code"),),
        )  # fmt: skip
    elif contents.codes & _BYTE_STRINGS:
        yield Finding(
            "checkpoint-python2-pickle", ("it was written by Python 2; its texts are plain ASCII, which "
                                          "every torch reads",),
            Severity.INFO, file=contents.path,
        )  # fmt: skip


def _views(contents: Contents) -> Iterator[Finding]:
    """Views that reach beyond their storage, and storages that are saved whole for a small view."""
    used: dict[str, int] = {}
    seen: set[tuple[str, int, tuple[int, ...]]] = set()
    for name, tensor in _all(contents):
        if tensor.storage is None or tensor.kind in ("sparse", "meta", "wrapped"):
            continue
        if contents.format != "safetensors" and tensor.last() > tensor.storage.count:
            yield Finding(
                "checkpoint-corrupt", (f"{name} of shape {list(tensor.shape)} reaches beyond its storage of "
                f"{counted(tensor.storage.count, 'element')}",), file=contents.path,
            )  # fmt: skip
            return
        key = (tensor.storage.key, tensor.offset, tensor.shape)
        if key not in seen:
            seen.add(key)
            used[tensor.storage.key] = used.get(tensor.storage.key, 0) + tensor.nbytes
    wasted = [
        (contents.storages[key].nbytes - size, key) for key, size in used.items()
        if key in contents.storages and contents.storages[key].nbytes > 2 * size + (1 << 16)
    ]  # fmt: skip
    if wasted:
        wasted.sort(reverse=True)
        names = [
            name
            for name, tensor in _all(contents)
            if tensor.storage is not None and tensor.storage.key == wasted[0][1]
        ]
        yield Finding(
            "checkpoint-view-storage",
            (f"{counted(len(wasted), 'storage')} with {counted(sum(size for size, _ in wasted), 'byte')} "
             "that no tensor of the file uses; "
             f"the largest under {', '.join(names[:3])}",),
            Severity.INFO, file=contents.path,
            fixes=(Fix("Save copies instead of views of larger tensors: {k: v.clone() for k, v in "
                       "state.items()}."),),
        )  # fmt: skip


def _not_finite(contents: Contents) -> Iterator[Finding]:
    """NaN is never meant; infinity may be (a mask, a running minimum), and is told more softly."""
    broken: list[str] = []
    nan = infinite = 0
    told: set[str] = set()
    for name, tensor in _all(contents):
        if tensor.storage is None:
            continue
        key = tensor.storage.key
        seen = contents.values.get(key)
        if seen is None or seen.first < 0 or key in told:
            continue
        told.add(key)
        nan += seen.nan
        infinite += seen.infinite
        kinds = [f"{seen.nan:,} NaN"] * bool(seen.nan) + [f"{seen.infinite:,} infinite"] * bool(seen.infinite)
        broken.append(
            f"{name}: {', '.join(kinds)} of {tensor.storage.count:,}, the first at element {seen.first:,}"
        )
    # storages that no state dict shows: of an optimizer
    hidden = [seen for key, seen in contents.values.items() if key not in told and seen.first >= 0]
    if hidden:
        nan += sum(seen.nan for seen in hidden)
        infinite += sum(seen.infinite for seen in hidden)
        broken.append(
            f"{counted(len(hidden), 'further storage')} (optimizer state or nested values) hold some, too"
        )
    if broken:
        yield Finding(
            "checkpoint-not-finite", tuple(broken[:20]),
            Severity.FATAL if nan else Severity.WARNING, file=contents.path,
            fixes=(Fix("Go back to the last checkpoint without: training from this one cannot recover. "
                       "Then look for the step at which the "
                       "loss became NaN."),),
        )  # fmt: skip


def _classes(contents: Contents, target: Target) -> Iterator[Finding]:
    """Classes that neither torch nor Python brings: the code that defines them has to be there."""
    if contents.format.startswith("TorchScript"):
        return  # its classes are in it
    own = [
        one
        for one in contents.imports
        if one.module.partition(".")[0] not in _TORCHES and not danger.meaning(one.module, one.name)
    ]
    absent = [one for one in own if not target.has_module(one.module)]
    whole = f"it is a whole pickled model, {contents.owner}" if contents.owner else ""
    mains = [one.path for one in own if one.module == "__main__"]
    listed = ", ".join(dict.fromkeys(one.path for one in own[:_SHOWN]))
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    if not own and not contents.owner:
        return
    says = [whole or f"it needs {listed}{more}"]
    if whole and own:
        says.append(f"it needs {listed}{more}")
    if mains:
        says.append(
            f"{mains[0]} was defined in the script that saved it: it must be defined in the one that "
            "loads it, too"
        )
    if absent:
        tops = sorted({one.module.partition(".")[0] for one in absent})
        says.insert(0, f"not found on the path of {target.python}: {', '.join(tops[:_SHOWN])}")
    yield Finding(
        "checkpoint-class-missing", tuple(says), Severity.WARNING if absent else Severity.INFO,
        standing=Standing.POSSIBLE if absent else Standing.CONFIRMED, file=contents.path,
        fixes=(Fix("Load it where that code is (the same package in the same version, or the repository's "
                   "folder on PYTHONPATH), and "
                   "save model.state_dict() from there: that needs no class."),),
    )  # fmt: skip


def _devices(contents: Contents) -> Iterator[Finding]:
    """Storages come back to the device they were saved on, unless torch.load is told otherwise."""
    sizes: dict[str, int] = {}
    for storage in contents.storages.values():
        if storage.device not in ("cpu", "", "meta"):
            sizes[storage.device] = sizes.get(storage.device, 0) + storage.nbytes
    if sizes:
        told = ", ".join(
            f"{counted(size, 'byte')} on {device}" for device, size in sorted(sizes.items())[:_SHOWN]
        )
        yield Finding(
            "checkpoint-saved-device", ("its storages say where they were saved: "
                                        f"{told}",), Severity.INFO, file=contents.path,
            fixes=(Fix("Load it to the CPU first: torch.load(path, map_location='cpu'). Without it every "
                       "process of a job takes "
                       f"memory of {sorted(sizes)[0]}, and a machine without that device fails."),),
        )  # fmt: skip


def _prefixes(contents: Contents) -> Iterator[Finding]:
    for state in contents.states:
        found = wrappers.of(state.tensors)
        if not state.path:
            found.pop("model.", None)  # the model's own name, where no trainer's keys stand around it
        if len(state.tensors) < 2 or not found or state.owner:
            continue
        words = "; ".join(f"{word!r} from {who}" for word, who in found.items())
        where = f" under {'.'.join(state.path)!r}" if state.path else ""
        prefix = (
            "".join(found) if next(iter(found)) in wrappers.OUTER or len(found) == 1 else next(iter(found))
        )
        example = next(iter(state.tensors))
        yield Finding(
            "checkpoint-module-prefix", (f"its names{where} carry a wrapper's words: "
                                         f"{words}", f"as in {example[:160]}"),
            Severity.INFO, file=contents.path,
            fixes=(Fix("To load it into the model without the wrapper: "
                       f"{strip_snippet('sd', found, prefix)}"),),
        )  # fmt: skip


def strip_snippet(name: str, words: dict[str, str], prefix: str) -> str:
    """The line of Python that takes wrappers' words out of the names of a state dict."""
    if (any(word in wrappers.INNER for word in words) and len(words) > 1) or (
        list(words)[:1] and next(iter(words)) in wrappers.INNER
    ):
        change = "k" + "".join(f".replace({word!r}, '')" for word in words)
    else:
        change = f"k.removeprefix({prefix!r})"
    return f"{name} = {{{change}: v for k, v in {name}.items()}}"


def _tied(contents: Contents) -> Iterator[Finding]:
    """Names that share one stretch of numbers: changing one changes the other; safetensors refuses them."""
    for state in contents.states:
        groups: dict[tuple[int, int, tuple[int, ...]], list[str]] = {}
        for name, tensor in state.tensors.items():
            if tensor.storage is not None and tensor.count and tensor.kind in ("tensor", "parameter"):
                groups.setdefault((id(tensor.storage), tensor.offset, tensor.shape), []).append(name)
        tied = [names for names in groups.values() if len(names) > 1]
        if tied:
            says = [
                " = ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
                for names in tied[:_SHOWN]
            ]
            yield Finding("checkpoint-tied-weights", tuple(says), Severity.INFO, file=contents.path)


def _adapters(contents: Contents) -> Iterator[Finding]:
    for state in contents.states:
        lora, rest = wrappers.adapters(state.tensors)
        if lora and not rest:
            ranks = sorted({
                min(tensor.shape) for name, tensor in state.tensors.items()
                if ".weight" in name and "lora_" in name and len(tensor.shape) == 2
            })  # fmt: skip
            told = f", of rank {', '.join(map(str, ranks[:_SHOWN]))}" if ranks else ""
            yield Finding(
                "checkpoint-adapter-only", (f"all its {counted(lora, 'tensor')} are LoRA adapters{told}: "
                                            "the base "
                                            "model is not in it",),
                Severity.INFO, file=contents.path,
                fixes=(Fix("Load the base model first, then this: peft.PeftModel.from_pretrained(base, "
                           "folder)."),),
            )  # fmt: skip


def _all(contents: Contents) -> Iterator[tuple[str, Tensor]]:
    for state in contents.states:
        for name, tensor in state.tensors.items():
            yield ".".join((*state.path, name)), tensor
