"""Facts out of the memory reports of torch's device allocators (CUDA, HIP, XPU, NPU, MPS).

The report has had these forms (torch's c10/cuda/CUDACachingAllocator.cpp and its relatives):

- 1.0 to 2.0: ``Tried to allocate X (GPU n; T total capacity; A already allocated; F free; U cached)``,
  from 1.4 on ``R reserved in total by PyTorch``; torch_npu still prints it, with ``C current active``.
- 2.1 and later: ``GPU n has a total capacity of T of which F is free. Process P has M memory in use.
  Including non-PyTorch memory, this process has M memory in use. Of the allocated memory A is allocated by
  PyTorch, and U is reserved by PyTorch but unallocated.`` 2.1 wrote "capacty", 2.2 and 2.3 left out the n.
- the cudaMallocAsync backend: ``Currently allocated : A``, ``Requested : X``, ``Device limit : T``,
  ``Free (according to CUDA): F`` on lines of their own.
- MPS: ``(MPS allocated: A, other allocations: O, max allowed: T). Tried to allocate X on private pool``.

NVML counts processes outside a PID namespace: in a container the process itself is listed as
``Process N`` with a number that the container does not know, and "this process" is not printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor.extract import Found, once_a_text, oom_history
from torchdoctor.model import Event, Fact, Frame, Reason, Transcript
from torchdoctor.number import amount, count
from torchdoctor.patterns import Patterns

FACTS: dict[str, str] = {
    "oom.want_bytes": "int: size of the allocation that failed",
    "oom.total_bytes": "int: memory of the device; on MPS the limit of the process",
    "oom.free_bytes": "int: memory that the driver still had to give",
    "oom.allocated_bytes": "int: memory in tensors of this process",
    "oom.unallocated_bytes": "int: memory that this process's allocator holds in free pieces",
    "oom.others_bytes": "int: memory that neither is free nor belongs to this process",
    "oom.holder_pid": "int: the listed process that holds most of the card, this one aside",
    "oom.holder_bytes": "int: what that process holds",
    "oom.gpu": "int: index of the device, as the process counts",
    "oom.free_share": "float: least share of a card that was free when vLLM began, rounded down",
    "oom.limited": "bool: a memory fraction set for the process was the limit, not the card",
    "oom.fragmented": "bool: the free pieces of the allocator, 5 % or more of what it holds, add up to the "
    "request, or with what is free on the card to a quarter more",
    "oom.short": "bool: less was free on the card than was asked for; unknown where the report shows more",
    "oom.spilled": "bool: torch holds more than the card has; Windows lends it memory of the system",
    "oom.others_hold": "bool: a good part of the card belongs to other processes",
    "oom.absurd": "bool: the request is a thousand times the card or beyond any address space",
    "oom.exceeds_card": "bool: the request alone is larger than the card",
    "oom.request_dominates": "bool: the request alone is a third of the card or more",
    "oom.grew": "bool: memory figures printed since the batch grew last went on rising after the first ones",
    "oom.before_training": "bool: the weights of what is to be trained were being moved to the card",
    "oom.epochs_before": "int: epochs printed before the failure, since the batch grew",
    "oom.evaluation_with_grad": "bool: under a function named like validate, none in it trains, and no frame "
    "shows no_grad",
    "oom.predicts_in": "text: function named for predicting that calls the model, within one that trains",
    "oom.gradients_off": "bool: a quoted line shows no_grad or inference_mode; unknown otherwise",
    "oom.collects_outputs": "bool: a loop without gradients appends what a model returns",
    "oom.loading_checkpoint": "bool: torch.load was restoring a tensor to its old device",
}

GIB = 1024**3
# what pieces and free memory have to exceed a request by, where the pieces alone are less than it
HEADROOM = 1.25
# A CUDA context with the usual libraries' workspaces, which the old report does not count as this process's.
CONTEXT_BYTES = int(1.25 * GIB)
OTHERS_SHARE = 0.12
ROUNDED_BYTES = int(0.015 * GIB)  # what three numbers are off that were told to 0.01 GiB
FRAGMENTED_SHARE = 0.05
ABSURD_FACTOR = 1000
EXBIBYTE = 1024**6
WRAPPERS = 6
ENGINES = ("run_engine_core", "worker_main")  # of vLLM: a process of its own, which holds nothing yet
# Frames that show that gradients are off: the decorators, and trainers that evaluate under no_grad.
GRAD_OFF = (
    "torch/utils/_contextlib.py:decorate_context",
    "torch/autograd/grad_mode.py:decorate",
    "transformers/trainer.py:evaluation_loop",
    "transformers/trainer.py:prediction_step",
    "lightning/pytorch/loops/",
    "pytorch_lightning/loops/",
    "pytorch_lightning/evaluation_loop",
    "pytorch_lightning/trainer/evaluation_loop",
)
COLLECTED = 4  # times the request

_SIZE = r"(\d{1,20}(?:\.\d{1,9})?) ?(bytes|[KMGTPE]i?B|B)\b"
_POWERS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}

_SOURCES = {
    "want": r"(?:Tri|\.[a-z]{0,3}|^[a-z]{0,3})ed to allocate " + _SIZE,
    "old": r"\((?:GPU|NPU|XPU|DCU|device|Device) ?(?P<gpu>\d+)?; " + _SIZE + r" total capacity",
    "old-allocated": _SIZE + r" already allocated",
    "old-free": _SIZE + r" free[;)]",
    "old-reserved": _SIZE + r" reserved in total by PyTorch",
    "old-cached": _SIZE + r" cached",
    "allowed": _SIZE + r" allowed[;,)]",
    "new": r"(?:GPU|NPU|XPU|Tile|device) ?(?P<gpu>\d+)? has a total capaci?ty of " + _SIZE,
    "new-free": r"of which " + _SIZE + r" is free",
    "new-process": r"Process ([0-9]{1,10}) has " + _SIZE + r" memory in use",
    "new-self": r"this process has " + _SIZE + r" memory in use",
    "new-allocated": r"Of the allocated memory " + _SIZE + r" is allocated by PyTorch",
    "new-unallocated": _SIZE + r" is reserved by PyTorch but unallocated",
    "async": r"Allocation on device ?(?P<gpu>\d+)?",
    "async-want": r"Requested ?: ?" + _SIZE,
    "async-total": r"Device limit ?: ?" + _SIZE,
    "async-free": r"Free \(according to CUDA\) ?: ?" + _SIZE,
    "async-allocated": r"Currently allocated ?: ?" + _SIZE,
    "mps": r"MPS allocated: " + _SIZE,
    "mps-other": r"other allocations: " + _SIZE,
    "mps-max": r"max allowed: " + _SIZE,
    "mps-buffer": r"Invalid buffer size: " + _SIZE,
    "startup": r"\((\d{1,7}(?:\.\d{1,9})?)/(\d{1,7}(?:\.\d{1,9})?) GiB\) on startup is less than desired",
    "evaluation": r"(?:^|_)(?:valid(?:ate|ation)?|val|eval(?:uate|uation)?|test)(?:_|$|\d)",
    "training": r"(?:^|_)(?:train(?:ing)?|finetune|fit|backward)(?:_|$|\d)",
    "predicting": r"(?:^|_)(?:generate|predict|infer(?:ence)?|score|scoring)(?:_|$|\d)",
    # "outputs.append(model(x))"
    "collects": r"\.append\(\s{0,8}[\w.\[\]]{1,80}\(",
}
_PATTERNS = Patterns(_SOURCES)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one out-of-memory report; nothing when the event is none.

    Sizes are in bytes. A report that lacks a number gives ABSENT for it; claims that need it are not made.
    """
    text = " ".join(event.text.split())
    if "on startup is less than desired" in text:
        yield "free_share", (share := _free_share(transcript))
        if share is not None and any(frame.function in ENGINES for frame in event.frames):
            yield "others_hold", share < 1 - OTHERS_SHARE
        return
    if not _is_report(text):
        return
    numbers = _Numbers(text)
    for name in ("want_bytes", "total_bytes", "free_bytes", "allocated_bytes", "unallocated_bytes", "gpu"):
        yield name, getattr(numbers, name)
    yield "holder_pid", (holder := numbers.holder())[0]
    yield "holder_bytes", holder[1]
    yield "limited", numbers.limited
    yield numbers.short(event.place())
    yield from numbers.claims()
    yield from oom_history.facts(event, transcript)
    frames = _frames(event, transcript)
    yield from _from_frames(frames)
    yield "collects_outputs", numbers.many() and _collects(frames)


def _is_report(text: str) -> bool:
    return (
        "out of memory" in text
        or "would exceed allowed memory" in text
        or "Free (according to CUDA)" in text
        or "Invalid buffer size" in text
        or ("Allocation on device" in text and "memory" in text)
        or ("Tried to allocate" in text and "total capac" in text)
        or "Including non-PyTorch memory, this process has" in text
    )


@once_a_text
def _free_share(transcript: Transcript) -> float | None:
    """How much of the fullest card may be asked for; each worker of a server tells of its own."""
    shares = []
    for event in transcript.events:
        found = _PATTERNS["startup"].search(event.text) if "on startup" in event.text else None
        if found is not None and (total := amount(found[2])):
            shares.append((amount(found[1]) or 0.0) / total)
    return int(min(shares) * 100) / 100 if shares else None


def size(number: str, unit: str) -> int:
    """Bytes of a printed size; units are binary whatever they are called."""
    return int((amount(number) or 0.0) * 1024 ** _POWERS[unit[0].lower()])


def in_units(number: int) -> str:
    """A size as torch prints it."""
    for unit, factor in (("GiB", GIB), ("MiB", 1024**2), ("KiB", 1024)):
        if number >= factor:
            return f"{number / factor:.2f} {unit}"
    return "1 byte" if number == 1 else f"{number} bytes"


class _Numbers:
    """What one report says, with the numbers that follow from it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.limited = False
        self.gpu: int | None = None
        self.own_pid: int | None = None
        self.want_bytes = self._size("want", "async-want", "mps-buffer")
        self.total_bytes = self._size("old", "new", "async-total", "mps-max")
        self.free_bytes = self._size("old-free", "new-free", "async-free")
        self.allocated_bytes = self._size("old-allocated", "new-allocated", "async-allocated", "mps")
        self.unallocated_bytes = self._size("new-unallocated")
        self.reserved_bytes = self._size("old-reserved")
        self._complete()
        self.process_bytes = self._own_process()

    def many(self) -> bool:
        """Is much more in tensors than was asked for?"""
        want, held = self.want_bytes, self.allocated_bytes
        return want is not None and held is not None and held >= COLLECTED * want

    def _size(self, *names: str) -> int | None:
        for name in names:
            found = _PATTERNS[name].search(self._text)
            if found is not None:
                number, unit = found.groups()[-2:]
                if "gpu" in found.groupdict() and found.group("gpu"):
                    self.gpu = count(found.group("gpu"))
                return size(number, unit)
        return None

    def _complete(self) -> None:
        if self.gpu is None and (found := _PATTERNS["async"].search(self._text)) and found.group("gpu"):
            self.gpu = count(found.group("gpu"))
        if self.allocated_bytes is not None:
            cached = self._size("old-cached")
            if cached is not None:
                # 1.0 to 1.3 print what is cached beside the tensors; later prints count the tensors in
                beside = cached < self.allocated_bytes
                self.reserved_bytes = cached + (self.allocated_bytes if beside else 0)
            if self.reserved_bytes is not None:
                self.unallocated_bytes = max(0, self.reserved_bytes - self.allocated_bytes)
            elif self.unallocated_bytes is not None:
                self.reserved_bytes = self.allocated_bytes + self.unallocated_bytes
        allowed = self._size("allowed")
        if allowed is not None and self.total_bytes is not None and allowed < self.total_bytes:
            self.limited = True
        if "more than 1EB" in self._text and self.want_bytes is None:
            self.want_bytes = EXBIBYTE

    def _own_process(self) -> int | None:
        """This process's memory as the driver counts it: printed, or found among the listed processes."""
        limit = 2 * self.total_bytes if self.total_bytes is not None else EXBIBYTE
        own = self._size("new-self")
        if own is not None:
            # Windows and WSL cannot tell and print 17179869184.00 GiB; where NVML lists no process of this
            # container, 0 bytes are printed beside what the allocator holds
            return own if (self.allocated_bytes or 0) <= own <= limit else None
        if self.reserved_bytes is None:
            return None
        for pid, listed in self._listed():
            if listed <= limit and 0 <= listed - self.reserved_bytes <= max(CONTEXT_BYTES, listed // 20):
                self.own_pid = pid
                return listed
        return None

    def _listed(self) -> list[tuple[int | None, int]]:
        """The processes that the report lists, with what each holds."""
        return [(count(pid), size(*held)) for pid, *held in _PATTERNS["new-process"].findall(self._text)]

    def holder(self) -> tuple[int | None, int | None]:
        """The other process that holds most, with what it holds; nobody where this one may be among them."""
        if self.process_bytes is None:
            return None, None
        others = [(held, pid) for pid, held in self._listed() if pid != self.own_pid]
        held, pid = max(others, default=(None, None))
        return pid, held

    def short(self, source: str) -> Fact:
        """Whether memory was short: the figures are read after the refusal, others may have freed some."""
        want, free = self.want_bytes, self.free_bytes
        if self.limited or want is None or free is None or free < want:
            return Fact.known("oom.short", True, source)
        words = f"{in_units(free)} were free and {in_units(want)} asked for: what was short cannot be told"
        return Fact.unknown("oom.short", Reason.NOT_ASKED, source, words)

    def claims(self) -> Iterator[tuple[str, int | bool, str]]:
        """Claims that the numbers decide, with the numbers in words; left out where a number is missing."""
        want, total = self.want_bytes, self.total_bytes
        if want is not None and (total is not None or want >= EXBIBYTE):
            absurd = want >= EXBIBYTE or (total is not None and want >= ABSURD_FACTOR * total)
            yield "absurd", absurd, f"{in_units(want)} asked for"
        if want is not None and total is not None:
            share = f"{in_units(want)} of {in_units(total)}"
            yield "exceeds_card", want > total, share
            yield "request_dominates", 3 * want >= total, share
        if total is not None and self.allocated_bytes is not None:
            tensors = f"{in_units(self.allocated_bytes)} of {in_units(total)} in tensors"
            yield "spilled", self.allocated_bytes > total, tensors
        if want is not None and self.unallocated_bytes is not None:
            # a few per cent of slack is normal, however small the request
            slack = FRAGMENTED_SHARE * (self.reserved_bytes or 0)
            words = f"{in_units(self.unallocated_bytes)} in free pieces, {in_units(want)} asked for"
            free = 0 if self.limited else self.free_bytes or 0
            fits = self.unallocated_bytes >= want or self.unallocated_bytes + free >= HEADROOM * want
            yield "fragmented", fits and self.unallocated_bytes >= slack, words
        if _of_mps(self._text) or total is None or self.free_bytes is None:
            return
        held = self.process_bytes
        if held is None:
            own = self.reserved_bytes if self.reserved_bytes is not None else self.allocated_bytes
            if own is None:
                return
            held = own + CONTEXT_BYTES
        others = max(0, total - self.free_bytes - held)
        words = f"{in_units(others)} of {in_units(total)} belong to others"
        if others < ROUNDED_BYTES:
            others, words = 0, f"next to nothing of {in_units(total)} belongs to others"
        yield "others_bytes", others, words
        yield "others_hold", others >= OTHERS_SHARE * total, words


def _of_mps(text: str) -> bool:
    others = ("HIP", "NPU", "XPU")
    named = any(f"{name} out of memory" in text or f"{name} backend out" in text for name in others)
    return not named and ("MPS" in text or "Invalid buffer size" in text)


def _frames(event: Event, transcript: Transcript) -> list[Frame]:
    """Frames of what wraps the event (a DataParallel replica, a launcher's box), and then its own."""
    found: list[Frame] = []
    for outer in transcript.events[max(0, event.id - WRAPPERS) : event.id + WRAPPERS]:
        if any(relation.event == event.id for relation in outer.relations):
            found.extend(outer.frames)
    return [*found, *event.frames]


def _from_frames(frames: list[Frame]) -> Iterator[Found]:
    places = _places(frames)
    loading = any("torch/serialization.py:" in place for place in places)
    yield "loading_checkpoint", loading
    evaluates = _evaluates(frames)
    grad_off = any(mark in place for place in places for mark in GRAD_OFF)
    yield "evaluation_with_grad", evaluates and not grad_off
    yield "predicts_in", _predicts_in(frames)
    if not evaluates and _moves_what_trains(frames):
        yield "before_training", True
    if grad_off or any("no_grad" in frame.code or "inference_mode" in frame.code for frame in frames):
        yield "gradients_off", True


def _evaluates(frames: list[Frame]) -> bool:
    """Is the innermost function whose name tells it one that evaluates? A ``train_test`` tells nothing."""
    for frame in reversed(frames):
        trains = _PATTERNS["training"].search(frame.function) is not None
        own = frame.package not in ("torch", "python")
        evaluates = own and _PATTERNS["evaluation"].search(frame.function) is not None
        if trains is not evaluates:
            return evaluates
    return False


def _moves_what_trains(frames: list[Frame]) -> bool:
    """Is a module moved that is to be trained, by names of functions and files, or an optimizer beside it?"""
    if not any(place.endswith("torch/nn/modules/module.py:_apply") for place in _places(frames)):
        return False
    own = [frame for frame in frames if not frame.package]
    files = [frame.file.replace("\\", "/").rpartition("/")[2].removesuffix(".py") for frame in own]
    names = [*files, *(frame.function for frame in own)]
    trains = any(_PATTERNS["training"].search(name) for name in names)
    return trains or any("ptimizer" in frame.code for frame in own)


def _places(frames: list[Frame]) -> list[str]:
    return [f"{frame.file}:{frame.function}".replace("\\", "/") for frame in frames]


def _predicts_in(frames: list[Frame]) -> str | None:
    """The user's own function that calls the model, where its name says that nothing is trained in it."""
    files = [frame.file.replace("\\", "/") for frame in frames]
    called = next((n for n, file in enumerate(files) if file.endswith("torch/nn/modules/module.py")), 0)
    if called == 0:
        return None
    caller = frames[called - 1]
    if caller.package or _PATTERNS["training"].search(caller.function):
        return None
    around = any(_PATTERNS["training"].search(frame.function) for frame in frames[: called - 1])
    return caller.function if around and _PATTERNS["predicting"].search(caller.function) else None


def _collects(frames: list[Frame]) -> bool:
    """Does the user's own loop, under no_grad, append the output of the module that it calls?"""
    places = [f"{frame.file}:{frame.function}".replace("\\", "/") for frame in frames]
    if not any(mark in place for place in places for mark in GRAD_OFF):
        return False
    called = next((n for n, place in enumerate(places) if "torch/nn/modules/module.py:" in place), 0)
    caller = frames[called - 1]
    return called > 0 and not caller.package and bool(_PATTERNS["collects"].search(caller.code))
