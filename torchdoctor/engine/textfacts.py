"""Facts of an event and of the whole text that need no parsing of a message: frames, order, ending."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchdoctor.extract import once_a_text
from torchdoctor.extract.progress import epoch_shown, moves, trains
from torchdoctor.intake.frames import BUILT_ON_TORCH
from torchdoctor.model import Event, EventKind, Fact, FactValue, Frame, RelationKind, Transcript
from torchdoctor.patterns import Patterns, search

NEIGHBOURS = 200
_FEW = 4  # events
# a number, and no name
_NAN = r"(?<![\w.'\"/(-])(?:nan|NaN)(?![\w.'\"/(-])|\btensor\(\[{0,3}nan\b"
# torch's functions that make a tensor of no other one
_MAKES = (
    r"\btorch\.(?:ones|zeros|empty|full|eye|arange|linspace|logspace|rand|randn|randint|randperm|tensor"
    r"|as_tensor|from_numpy|FloatTensor|LongTensor|Tensor)\("
)
_PLACES = ("device", ".to(", ".cuda(", ".type_as(")
_LACKING = ("cannot import name", " has no attribute ", " is not a package")


FACTS = {
    "event.text": "text: the message, without frames",
    "event.type": "text: last part of the exception's class name",
    "event.kind": "text: kind of the event",
    "event.rank": "int: rank that printed it",
    "event.host": "text: machine that printed it",
    "event.frames": "text: path:function of all frames, those of wrapped and chained exceptions included",
    "event.functions": "list: names of the functions in the frames",
    "event.code": "text: source lines quoted in the frames",
    "event.last_code": "text: source line of the frame that raised",
    "event.makes_tensor": "bool: that line makes a tensor and says nowhere on which device",
    "event.raised_in": "text: package whose code raised, or called what raised in the standard library",
    "event.torch_called_by": "text: package that called torch: the one the user called, or the class's own",
    "event.loader": "text: package that moved a model in the course of loading it, as the user had asked",
    "event.shadowing": "text: the user's own file that was taken where a module of that name was meant",
    "event.namesake": "text: the user's own file, named as a well-known module, that lacks what was asked",
    "event.clone": "text: the program of others that runs from its folder, and whose file raised",
    "event.plugin": "text: the plug-in of another program whose file raised",
    "event.torch_tied": "bool: a frame or the text belongs to torch",
    "event.in_optimizer_step": "bool: raised by the update of an optimizer outside torch, not by a closure",
    "event.archived": "bool: code inside a TorchScript archive was running",
    "event.user_frame": "bool: the user's own code is in the frames",
    "event.own_place": "text: file name and line of the innermost frame that is the user's own",
    "event.raised_at": "text: file name and line of a package's own frame that raised, torch apart",
    "event.inner": "text: class and message of the exception that it wraps, as that of a worker",
    "event.before": "text: up to 200 earlier events",
    "event.after": "text: up to 200 later events",
    "event.nan_before": "bool: a number that was printed before it is NaN",
    "event.after_progress": "bool: training steps were printed before it",
    "log.text": "text: everything that was read as an event",
    "log.torch_seen": "bool: something in the text belongs to torch",
    "log.ending": "text: good, bad, unknown",
    "log.platform": "text: linux, windows, macos, wsl; unknown when nothing tells",
    "log.frames": "text: path:function of all frames of the text",
    "log.code": "text: source lines quoted in all frames of the text",
}


_PATTERNS = Patterns(
    {
        "torch": (
            r"\btorch(?:\.|_|vision|audio|elastic|run\b|[/\\]|-\w|[ =:]{1,2}v?\d)|\bpytorch version|"
            r"Error (?:building|compiling objects for) extension|NumCudaDevices\(\)|"
            r"\bc10d?\b|\bc10::|\bat::|\baten\b|PyTorch|\b[Pp]ytorch(?:\b(?![\\/.-])|(?=\d))|ProcessGroup|"
            r"\bNCCL\b|DataLoader|autograd|\bCUDA (?:error|out of memory)|cuda runtime error|"
            r"THC|\bTHP[A-Z]|\bTH\w{2,20}Allocator|"
            # setuptools runs nvcc for torch's extensions only
            r"error: command u?'[^'\n]{0,200}nvcc(?:\.exe)?' failed|flashinfer|/vllm/|/sglang/|"
            r"torch2trt|\bpytorch/(?:third_party|build|aten|torch|caffe2)/|\bpyg[-_]lib\b|\bgroundingdino\b|"
            r"\bexllama(?:v\d)?(?:_ext)?\b|\bfused_ssim\b|\bdiff_gaussian_rasterization\b|"
            r"\bflash[-_]attn|\bcausal[-_]conv1d|\bmamba[-_]ssm|\bxformers\b|"
            r"TORCH_|DS_BUILD_|CUDA_LAUNCH_BLOCKING|libtorch|inductor|"
            r"\btorch(?:sparse|scatter|cluster|geometric|rl|ao|tune|titan|metrics)\b|"
            r"\bimport [\w, ]{0,60}\btorch\b|"
            # what transformers, diffusers, InstructorEmbedding and latent-diffusion print while they load
            r"\bLoading (?:checkpoint shards|pipeline components)|\bload INSTRUCTOR_Transformer\b|"
            r"\bDiffusionWrapper has\b"
        ),
        # one that was made for torch, or the sources of a program that runs on nothing else
        "environment": (
            r"[\\/]envs?[\\/](?:py)?torch[\w.-]{0,40}[\\/]|[\\/](?:nnunet(?:v2)?|batchgenerators)[\\/]"
        ),
        "windows": r"\b[A-Za-z]:\\|\bWinError\b|\.dll\b|\bcl\.exe\b|'charmap' codec can't",
        "macos": r"/Users/|\bdarwin\b|\bMPS\b(?! (?:client|server|control))|\.dylib\b|macOS",
        "wsl": r"\bWSL2?\b|Windows Subsystem for Linux|microsoft-standard|/mnt/c/|/usr/lib/wsl",
        "linux": r"(?i)/(?:home|usr|opt|root|proc|dev|data|workspace|mnt)/|\.so\b|\bubuntu\b|\blinux\b",
    }
)


def related(event: Event, transcript: Transcript) -> Iterator[Event]:
    """The event and every event it wraps, chains or groups, each once."""
    waiting = [event.id]
    seen: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number in seen or not 0 <= number < len(transcript.events):
            continue
        seen.add(number)
        yield transcript.events[number]
        waiting.extend(relation.event for relation in transcript.events[number].relations)


def _frame_text(frames: Iterable[Frame]) -> str:
    return " | ".join(f"{frame.file}:{frame.function}".replace("\\", "/") for frame in frames)


def frames_of(event: Event, transcript: Transcript) -> list[Frame]:
    """Frames of the event and of those behind it; of a message without any, the stack given apart."""
    frames = [frame for member in related(event, transcript) for frame in member.frames]
    if frames or event.kind not in (EventKind.EXCEPTION, EventKind.LOG) or event.quoted:
        return frames
    message, stack = _message_and_stack(transcript)
    return list(stack) if message in (event.id, -1) else []


def who_raised(frames: Sequence[Frame]) -> Frame | None:
    """The frame that raised, or that called what raised in the standard library."""
    if not frames:
        return None
    return next((frame for frame in reversed(frames) if frame.package != "python"), frames[-1])


@once_a_text
def _message_and_stack(transcript: Transcript) -> tuple[int | None, tuple[Frame, ...]]:
    """A report may give message and frames in blocks of their own: (id of the message, frames).

    The id is -1 where no line has the form of an exception, so that any may be the message, and None unless
    the text holds one stack without a message and no more than one message without a stack.
    """
    stacks: list[Event] = []
    bare: list[Event] = []
    for event in transcript.events:
        if event.kind is not EventKind.EXCEPTION or event.quoted:
            continue
        if event.type is None and event.frames and not event.text.strip():
            stacks.append(event)
        elif event.type is not None:
            bare.append(event)
        if len(stacks) > 1 or len(bare) > 1:
            return None, ()
    if len(stacks) != 1 or any(event.frames or event.relations for event in bare):
        return None, ()
    return (bare[0].id if bare else -1), stacks[0].frames


def torch_tied(event: Event, transcript: Transcript) -> bool:
    """Does a frame or the text of the event, or of one behind it, belong to torch?"""
    for member in related(event, transcript):
        if any(frame.package in ("torch", "torchvision", "torchaudio") for frame in member.frames):
            return True
        if _PATTERNS["torch"].search(member.text) or (member.type or "").startswith("torch"):
            return True
    return any(frame.package == "torch" for frame in frames_of(event, transcript))


def _texts(events: Iterable[Event]) -> str:
    return "\n".join(
        f"{event.type}: {event.text}" if event.type else event.text for event in events if not event.quoted
    )


def _torch_called_by(frames: Sequence[Frame], text: str) -> str | None:
    """The package that the user called, where its code, and not the user's, called torch.

    It is the one that called torch where the message names something of that one's own: deepspeed, which
    transformers calls, reads a file with a class of deepspeed's.
    """
    callers = [frame.package for frame in frames if frame.package != "python"]
    while callers and callers[-1] == "torch":
        callers.pop()
    if not callers or not callers[-1]:
        return None
    if f" {callers[-1]}." in text:
        return callers[-1]
    own = [at for at, package in enumerate(callers) if not package]
    return callers[own[-1] + 1 if own else 0]


def _in_optimizer_step(frames: list[Frame]) -> bool:
    """Did the step of an optimizer outside torch raise it? What a closure runs stands in other files."""
    hooked = [
        at
        for at, frame in enumerate(frames)
        if frame.function in ("wrapper", "profile_hook_step")
        and frame.file.replace("\\", "/").endswith("torch/optim/optimizer.py")
    ]
    below = frames[hooked[-1] + 1 :] if hooked else []
    while below and below[0].function == "decorate_context":
        below = below[1:]
    if not below or below[0].function != "step" or below[0].package == "torch":
        return False
    own = below[0]
    return all(
        (frame.file == own.file or (own.package and frame.package == own.package))
        and "closure" not in frame.function
        and frame.function[:1] != "<"
        for frame in below
    )


def event_value(name: str, event: Event, transcript: Transcript) -> FactValue:
    """The value of an ``event.`` fact; None for a name that is none."""
    key = name[len("event.") :]
    if key == "text":
        return event.text
    if key == "type":
        return (event.type or "").rpartition(".")[2]
    if key == "kind":
        return event.kind.value
    if key == "rank":
        return event.rank
    if key == "host":
        return event.host
    if key == "torch_tied":
        return torch_tied(event, transcript)
    if key == "before":
        return _texts(transcript.events[max(0, event.id - NEIGHBOURS) : event.id])
    if key == "after":
        return _texts(transcript.events[event.id + 1 : event.id + 1 + NEIGHBOURS])
    if key == "after_progress":
        earlier = transcript.events[max(0, event.id - NEIGHBOURS) : event.id]
        told = [item.text for item in earlier if item.kind is EventKind.LOG]
        return sum(map(trains, told)) >= 2 or any(epoch_shown(line) >= 2 for line in told)
    if key == "nan_before":
        earlier = transcript.events[max(0, event.id - NEIGHBOURS) : event.id]
        printed = (item.text for item in earlier if item.kind is EventKind.LOG)
        return any(search(_NAN, text, "nan", "NaN") is not None for text in printed)
    frames = frames_of(event, transcript)
    if key == "frames":
        return _frame_text(frames)
    if key == "functions":
        return tuple(dict.fromkeys(frame.function for frame in frames))
    if key == "code":
        return " | ".join(frame.code for frame in frames if frame.code)
    if key in ("last_code", "makes_tensor"):
        return _of_code(key, event.frames or frames)
    if key == "raised_in":
        raiser = who_raised(event.frames or frames)
        return raiser.package or None if raiser is not None else None
    if key == "torch_called_by":
        return _torch_called_by(event.frames or frames, event.text)
    if key in ("shadowing", "namesake", "clone", "plugin", "loader"):
        return _whose_file(key, event, frames, transcript)
    if key == "in_optimizer_step":
        return _in_optimizer_step(list(event.frames) or frames)
    if key == "archived":
        return "code/__torch__/" in event.text or any("code/__torch__/" in frame.file for frame in frames)
    if key == "user_frame":
        return any(not frame.package for frame in frames)
    if key == "own_place":
        return _own_place(event, frames, transcript)
    if key == "raised_at":
        raiser = who_raised(event.frames or frames)
        foreign = raiser is not None and raiser.package not in ("", "torch", "python")
        return raiser.place() if raiser is not None and foreign else None
    if key == "inner":
        inner = wrapped(event, transcript)
        return _short(inner) if inner is not None else None
    return None


def _of_code(key: str, frames: Sequence[Frame]) -> FactValue:
    code = frames[-1].code if frames else ""
    return _makes_tensor(code) if key == "makes_tensor" else code or None


def _makes_tensor(code: str) -> bool:
    """Is a tensor made here without a device, which is then the CPU's?"""
    return search(_MAKES, code, "torch.") is not None and not any(word in code for word in _PLACES)


def _whose_file(key: str, event: Event, frames: list[Frame], transcript: Transcript) -> str | None:
    """The user's file that another module stands behind, or the program or package of others at work."""
    if key in ("shadowing", "namesake"):
        imported = any(not frame.package and frame.function == "<module>" for frame in frames[1:])
        if not imported and not any(words in event.text[:1_000] for words in _LACKING):
            return None  # as of most failures, for which the module need not be there
        from torchdoctor.engine import shadow

        return (shadow.certain if key == "shadowing" else shadow.asked)(event, frames)
    from torchdoctor.engine import checkout, moved

    stack = event.frames or frames
    if key == "loader":
        return moved.loader(stack)
    if key == "clone":
        return checkout.clone(stack)
    return checkout.plugin(stack, _texts(transcript.events[max(0, event.id - 3) : event.id + 4]))


def _own_place(event: Event, frames: list[Frame], transcript: Transcript) -> str | None:
    handed_on = _handed_on(event, transcript)  # of another process, whose lines alone count
    stack = frames if handed_on is None else frames_of(handed_on, transcript)
    own = next((frame for frame in reversed(stack) if not frame.package), None)
    return own.place() if own is not None else None


def wrapped(event: Event, transcript: Transcript) -> Event | None:
    """The exception that an exception hands on of another process, or rather what brought that about."""
    found = _handed_on(event, transcript)
    for _ in range(_FEW):
        if found is None:
            return None
        behind = _behind(found, transcript, RelationKind.WRAPS, RelationKind.CAUSE)
        if behind is None or _says_better(found, behind):
            break
        found = behind
    return found if found is not None and found.type else None


def _says_better(outer: Event, inner: Event) -> bool:
    """Did a package put its own words in place of what one of its lines raised, as of a key that it lacks?"""
    if not outer.frames or not inner.frames or not inner.type:
        return False
    said, met = outer.frames[-1], inner.frames[-1]
    return said.package not in ("", "torch") and (said.file, said.function) == (met.file, met.function)


def _handed_on(event: Event, transcript: Transcript) -> Event | None:
    return _behind(event, transcript, RelationKind.WRAPS) if event.kind is EventKind.EXCEPTION else None


def _behind(event: Event, transcript: Transcript, *kinds: RelationKind) -> Event | None:
    at = next((one.event for one in event.relations if one.kind in kinds), -1)
    return transcript.events[at] if 0 <= at < len(transcript.events) else None


def _short(event: Event) -> str:
    """The exception in one line: its class without the module, its message's first line.

    A bare one is told by the line that raised it, and its file.
    """
    kind = (event.type or "").rpartition(".")[2]
    said = event.text.strip().partition("\n")[0]
    if not said and event.frames and (code := event.frames[-1].code.strip()):
        said = f"{code} ({event.frames[-1].place()})"
    return f"{kind}: {said}" if said else kind


def log_value(name: str, transcript: Transcript) -> FactValue:
    """The value of a ``log.`` fact; None for a name that is none."""
    key = name[len("log.") :]
    if key == "ending":
        return transcript.ending.value
    if key == "text":
        return _texts(transcript.events)
    if key == "frames":
        return _frame_text(frame for event in transcript.events for frame in event.frames)
    if key == "code":
        lines = (frame.code for event in transcript.events for frame in event.frames if frame.code)
        return " | ".join(lines) or None
    if key == "torch_seen":
        packages = {frame.package for event in transcript.events for frame in event.frames}
        if packages & BUILT_ON_TORCH:
            return True
        paths = "\n".join(frame.file for event in transcript.events for frame in event.frames)
        if _PATTERNS["environment"].search(paths):
            return True
        # what was written counts too: a typed command names what it ran, and so did the runs before
        codes = (frame.code for event in transcript.events for frame in event.frames)
        if _PATTERNS["torch"].search("\n".join((*(event.text for event in transcript.events), *codes))):
            return True
        return any(log_value(name, run) for run in transcript.earlier)
    if key == "platform":
        text = _texts(transcript.events) + _frame_text(f for event in transcript.events for f in event.frames)
        paths = " ".join(frame.file for event in transcript.events for frame in event.frames)
        for platform in ("wsl", "windows", "macos", "linux"):
            if _PATTERNS[platform].search(text) or _PATTERNS[platform].search(paths):
                return platform
        return "unknown"
    return None


def says_nothing_of_its_program(transcript: Transcript) -> bool:
    """Is the text one message alone, so that nothing tells which program printed it?

    A bar and a launcher's line do not; a shell or a parent that tells of a process names that process.
    """
    others = (EventKind.LAUNCHER, EventKind.SCHEDULER)
    events = [one for one in transcript.events[:_FEW] if one.kind not in others and not moves(one.text)]
    return len(transcript.events) <= _FEW and (
        len(events) == 1
        and not events[0].frames
        and events[0].kind in (EventKind.EXCEPTION, EventKind.BUILD, EventKind.LOG)
        and not (events[0].type or "").endswith("CalledProcessError")
    )


def known(name: str, value: FactValue, event: Event | None = None) -> Fact:
    """A fact read out of the text, with the place it stands at."""
    source = event.place() if event else "text"
    return Fact.known(name, value, source) if value is not None else Fact.absent(name, source)
