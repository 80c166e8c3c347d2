"""What a failure that no rule knows says by itself: who refused what, what is missing, who ended it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from torchdoctor.engine.build_reading import built, of_conda, of_setup
from torchdoctor.engine.textfacts import log_value, who_raised
from torchdoctor.extract import of_event
from torchdoctor.extract.python_error import of_python, program_of
from torchdoctor.model import Event, EventKind, Reading, ReadingKind, RelationKind
from torchdoctor.native_asserts import native
from torchdoctor.patterns import pattern
from torchdoctor.records import replace

if TYPE_CHECKING:
    from torchdoctor.model import FactValue, Frame, Transcript

_CRASHES = frozenset(("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"))
_LIBRARY = r"(?:^|[\s/(\[])(?P<library>[\w.+-]{1,80}\.(?:so(?:\.\d+)*|dll|dylib|pyd))\b"
_ENDED_BY = (
    (r"\bslurmstepd\b|\bsrun\b|\bscancel\b|\bslurmd\b", "Slurm"),
    (r"\bkubelet\b|\bOOMKilled\b|\b[Ee]victed\b", "Kubernetes"),
    (r"\b(?:Out of memory|oom-kill|Memory cgroup)\b", "the kernel"),
)
_SENT = r"\bSIG(?:KILL|TERM|HUP)\b|\bCANCELLED\b|\b[Ee]victed\b|\b[Pp]reempted\b|\bOOMKilled\b"
# what it wants and what it got, in the two orders in which messages say it
_WANTS = (
    r"(?:expect(?:ed|s|ing)?|(?:should|must)(?! not\b)(?: be| have)?|requires?|needs?|wants?|supports? only)"
)
_GOT = r"(?:got|found|received|given)"
_BUT = rf"(?:[,;]? but (?:it )?(?:{_GOT}|ha[sd]|have|was|were|is|are)|[,;]? {_GOT}|, not|,? instead of)"
_IN_ORDER = rf"(?i)\b{_WANTS}:? (?P<wants>[^\n]{{1,160}}?){_BUT}\b:? (?P<got>[^\n]{{1,160}})"
_EMPTY = r"\bout of (?:bounds|range)\b[^\n]{0,80}\b(?:size|length) ?=? ?0\b(?!\.\d)"
_REVERSED = rf"(?i)\b{_GOT}:? (?P<got>[^\n]{{1,160}}?)[,;]? (?:but )?\b{_WANTS}:? (?P<wants>[^\n]{{1,160}})"
_FORMS = (_REVERSED, _IN_ORDER, r"\bmust (?:be|have) (?P<wants>[^\n]{1,160})")
_FORWARDS = (  # … or raises once more what a function within raised, whose frames it took away
    r"\b(?:func|fn|f|function|method|wrapped|callable)\(\*\w+, \*\*\w+\)|^raise \w+\.with_traceback\("
)
# a function that names itself at the head of its message: "conv2d(): ", "linalg.solve: "
_SPEAKS = r"^(?P<function>(?:torch|linalg|fft|sparse)\.[\w.]+(?=\(\)|:)|\w+(?=\(\)))(?:\(\):?|:) "
_CHECK = r"^\s*torch\._check\((?P<wants>[^\n]{1,200})\)\s*$"
_IMPORTS = r"(?:import|from) \w"
_CALL = r"(?<![\w.])([A-Za-z_][\w.]*)\("
_OPERATOR = r"\s(?:[-+*/%@|&^<>]|\*\*|//|[<>=!]=|in)\s|[\w\])](?:\*\*|[@+*/]=?)[\w(\[]"
_NICKNAMES = {"torch": ("torch", "F", "nn"), "numpy": ("np",)}
_NO_MODULE = r"No module named '?(?P<name>[\w.]+)'?"
_NO_MAIN = rf"\S{{0,80}}python[\d.]*(?:\.exe)?: {_NO_MODULE}"  # of python -m
# transformers, trl and diffusers import a module when one of its names is first asked for
_LAZY = (
    r"^Failed to import (?P<owner>\w{1,80})\.[\w.]{1,200} because of the following error"
    rf"[^:\n]{{0,80}}:\s{{1,4}}{_NO_MODULE}"
)
_NO_NAME = r"cannot import name '?(?P<name>\w+)'? from '?(?P<module>[\w.]+)'?"
# the libraries whose number is that of their CUDA; cuFFT, cuSPARSE and others count for themselves
_NUMBERED = r"lib(?:cublas(?:Lt)?|cudart|nvrtc)\.so\.(\d{1,2})(?!\d)"
_OPENS = r"\bload(?:ing)? (?:library )?(?:\S{0,200}/)?(?P<file>[\w.+-]{1,80}\.so)(?: with error)?: "
_NO_PROGRAM = (
    r"sh(?:\[\d+\])?: (?:line )?(?:\d+: )?(?P<shell>[\w./+-]{1,80}): (?:command )?not found\s*$"
    r"|execve\(\): (?P<slurm>[\w./+-]{1,80}): No such file"
)
# what module systems print of a module that they do not have
_NO_MODULEFILE = (
    r"Lmod has detected the following error: The following module\(s\) are unknown:"
    r"\s{0,9}\"(?P<lmod>[^\"\n]{1,80})\""
    r"|Unable to locate a modulefile for '(?P<modules>[^'\n]{1,80})'"
)
# what a native library or a tool prints in its own name, with its own source file where it tells it
_REPORTS = (
    ("NCCL", r"(?:(?:^|[\] ])(?P<place>[\w./-]+\.(?:cc|cpp|cu|h):\d+) )?\bNCCL (?:WARN|ERROR) "),
    ("ptxas", r"^\s*ptxas (?:(?P<place>[^\s,]+, line \d+); )?(?:error|fatal)\b"),
    ("rocBLAS", r"^\s*rocBLAS (?:error|warning): "),
)
_NAMES = 4  # that one sentence lists
_ROWS = r"/torch/utils/data/_utils/fetch\.py$|/datasets/(?:arrow_dataset|iterable_dataset)\.py$"
_UNIT_EXITED = r"\bstatus=[1-9]\d{0,2}/"  # systemd, of a unit
_RAISED_BY_C = ("RuntimeError", "IndexError", "ValueError", "TypeError", "NotImplementedError")


def read(event: Event, transcript: Transcript) -> Reading | None:
    """The reading of one event; None where it says no more than its text."""
    if event.kind is EventKind.EXCEPTION and (event.type or "").rpartition(".")[2] != "SignalException":
        return (
            of_conda(event)
            or of_setup(event, transcript)
            or _missing(event, transcript)
            or _checked(event)
            or _worked_on_none(event)
            or _refused(event, transcript)
            or inside(event)
            or _imported(event)
        )
    facts = {fact.name: fact.value for fact in of_event("exit", event, transcript)}
    signal = facts.get("exit.signal")
    if signal in _CRASHES or "terminate called" in event.text:
        return replace(_crashed(event, transcript), name=signal if isinstance(signal, str) else None)
    if signal is not None or pattern(_SENT).search(event.text[:2_000]):
        owner = next((name for words, name in _ENDED_BY if pattern(words).search(event.text)), None)
        name = signal if isinstance(signal, str) else None
        return Reading(ReadingKind.ENDED_OUTSIDE, owner, name=name)
    made = (
        _reported(event)
        or built(event, transcript)
        or _missing(event, transcript)
        or _not_started(event)
        or _not_loaded(event, transcript)
    )
    if made is None and (facts.get("exit.code") or pattern(_UNIT_EXITED).search(event.text[:400])):
        return Reading(ReadingKind.EXITED)
    return made


def raised(kind: str, text: str, stack: Event) -> Reading | None:
    """The reading of an exception whose frames stand apart from its class and message."""
    event = replace(stack, type=kind, text=text)
    return _named(event) or inside(event)


# the weights that were read, asked for one by its name, and not the parameters of the model
_OF_CHECKPOINT = r"(?:state_dict|checkpoint|ckpt|weights)\w{0,20}\["


def inside(event: Event) -> Reading | None:
    """Where a package raised it, with no code but packages' in the stack: a server's worker, a build.

    Or a clone of others' program, whose files are in no package.
    """
    frame = who_raised(event.frames)
    if frame is None:
        return None
    owner = frame.package
    if not owner:
        from torchdoctor.engine import checkout

        owner = checkout.plugin(event.frames) or checkout.clone(event.frames) or ""
    elif any(not one.package for one in event.frames):
        return None
    if not owner:
        return None
    name = frame.function if frame.function[:1] != "<" else None
    asked = event.type == "KeyError" and pattern(_OF_CHECKPOINT).search(frame.code) is not None
    problem = "checkpoint" if asked else None
    return Reading(ReadingKind.RAISED_INSIDE, owner, name, problem=problem, place=frame.place())


def _imported(event: Event) -> Reading | None:
    """The package that failed while it was imported by another one, which the user's own line imports.

    What an import runs stands below its line; the last one that is reached so is the one that failed.
    """
    frames = [frame for frame in event.frames if frame.package != "python"]
    own = max((number for number, one in enumerate(frames) if not one.package), default=-1)
    below = frames[own + 1 :]
    if own < 0 or not below or not pattern(_IMPORTS).match(frames[own].code.strip()):
        return None
    last = below[0]
    for above, frame in pairwise(below):
        if pattern(_IMPORTS).match(above.code.strip()):
            last = frame
        elif frame.package != above.package:  # a call, and of another package
            break
    if last.package in ("", below[0].package):
        return None
    raiser = who_raised(event.frames) or last
    return Reading(ReadingKind.RAISED_INSIDE, last.package, problem="import", place=raiser.place())


def _reported(event: Event) -> Reading | None:
    """The library or tool in whose name a line is printed."""
    for owner, form in _REPORTS:
        if (found := pattern(form).search(event.text[:400])) is not None:
            return Reading(ReadingKind.LIBRARY_REPORTED, owner, place=found.groupdict().get("place"))
    return None


def _not_started(event: Event) -> Reading | None:
    """The program that a shell or Slurm did not find, or the module that Python was to run."""
    if (module := pattern(_NO_MAIN).match(event.text[:400])) is not None:
        return Reading(ReadingKind.MODULE_MISSING, name=module["name"])
    found = pattern(_NO_PROGRAM).search(event.text[:400])
    return Reading(ReadingKind.PROGRAM_MISSING, name=found["shell"] or found["slurm"]) if found else None


def _not_loaded(event: Event, transcript: Transcript) -> Reading | None:
    """The module that a cluster's module system does not have; Lmod names it in the line below."""
    below = transcript.events[event.id + 1 : event.id + 2]
    text = "\n".join(one.text[:400] for one in (event, *below))
    if (found := pattern(_NO_MODULEFILE).match(text.removeprefix("ERROR: "))) is None:
        return None
    owner = "Lmod" if found["lmod"] else "Environment Modules"
    name = found["lmod"] or found["modules"]
    return Reading(ReadingKind.PROGRAM_MISSING, owner, name=name, problem="module")


def _missing(event: Event, transcript: Transcript) -> Reading | None:
    """A module, a name or a shared library that was not found, by the words of Python and the loader."""
    loader = {fact.name[7:]: fact.value for fact in of_event("dlopen", event, transcript)}
    library = loader.get("library")
    if loader.get("kind") == "dll-load-failed":
        named = loader.get("loader_package") or library
        owner = str(named) if named else None
        return (
            Reading(ReadingKind.LIBRARY_MISSING, owner, problem="dll", name=str(library or ""))
            if owner
            else None
        )
    if loader.get("kind") == "missing-library" and isinstance(library, str):
        path = loader.get("library_path")
        place = path if isinstance(path, str) else None
        made = Reading(ReadingKind.LIBRARY_MISSING, _needs_library(event, loader), name=library, place=place)
        if loader.get("library_family") != "cuda-toolkit":
            return made
        cuda = pattern(_NUMBERED).match(library)
        return replace(made, wants=f"CUDA {cuda[1]}" if cuda is not None else None, problem="cuda")
    return _named(event) if event.kind is EventKind.EXCEPTION else None


def _needs_library(event: Event, loader: dict[str, FactValue]) -> str | None:
    """The package that raised, or that was imported; without a stack the one that the loader names."""
    code = event.frames[-1].code if event.frames else ""
    imported = pattern(r"^(?:import|from) (\w+)").match(code)
    package = loader.get("loader_package") if not event.frames else None
    if not event.frames and not package:
        opened = pattern(_OPENS).search(event.text[:1_000])
        package = opened["file"] if opened is not None else None
    return _raiser(event) or (imported[1] if imported is not None else str(package) if package else None)


def _named(event: Event) -> Reading | None:
    if (program := program_of(event)) is not None:
        return Reading(ReadingKind.PROGRAM_MISSING, _raiser(event), name=program)
    if (found := pattern(_LAZY).search(event.text[:1_000])) is not None:
        return Reading(ReadingKind.MODULE_MISSING, found["owner"], name=found["name"], problem="lazy")
    if not (event.type or "").endswith(("ModuleNotFoundError", "ImportError")):
        return None
    if (found := pattern(_NO_MODULE).search(event.text[:1_000])) is not None:
        return Reading(ReadingKind.MODULE_MISSING, _raiser(event), name=found["name"])
    if (found := pattern(_NO_NAME).search(event.text[:1_000])) is not None:
        return Reading(ReadingKind.NAME_MISSING, found["module"], name=found["name"])
    return None


def _raiser(event: Event) -> str | None:
    frame = who_raised(event.frames)
    return frame.package or None if frame is not None and frame.package != "python" else None


def _crashed(event: Event, transcript: Transcript) -> Reading:
    """The library that the lines around the end name, else the package in whose call the stack stood."""
    near = transcript.events[max(0, event.id - 3) : event.id + 4]
    for one in (event, *near):
        found = pattern(_LIBRARY).search(one.text[:4_000])
        if found is not None:
            return Reading(ReadingKind.NATIVE_CRASH, found["library"])
    for one in (event, *near):
        owner, function = _called(one.frames, innermost_last=one.kind is not EventKind.CRASH)
        if owner:
            return Reading(ReadingKind.NATIVE_CRASH, owner, function)
    return Reading(ReadingKind.NATIVE_CRASH)


def _checked(event: Event) -> Reading | None:
    """What the line asks that calls torch._check without words of its own; those of torch say nothing."""
    if not event.text.startswith("Expected cond to be True, but got False"):
        return None
    lines = ((pattern(_CHECK).search(frame.code), frame.package) for frame in reversed(event.frames))
    asked, owner = next((one for one in lines if one[0] is not None), (None, ""))
    return Reading(ReadingKind.LIBRARY_REFUSED, owner, wants=asked["wants"]) if asked and owner else None


def _worked_on_none(event: Event) -> Reading | None:
    """Where Python raised it over None in a package, which code outside of that package called."""
    if "'NoneType' object" not in event.text[:400] or not of_python(event):
        return None
    owner, function = _called(event.frames, from_outside=True)
    own = next((frame for frame in reversed(event.frames) if not frame.package), None)
    if not owner or owner == "torch" or own is None:
        return None
    from torchdoctor.extract.line_parts import handed

    names = ", ".join(handed(own.code)[:_NAMES])
    return Reading(ReadingKind.LIBRARY_REFUSED, owner, function, problem="none", name=names or None)


def _refused(event: Event, transcript: Transcript) -> Reading | None:
    if event.type is None or of_python(event):
        return None
    owner, function = _called(event.frames, from_outside=True)
    kind = event.type.rpartition(".")[2]
    if not owner and kind in _RAISED_BY_C:
        code = event.frames[-1].code.lstrip() if event.frames else ""
        function = _on_line(code, "torch") or _method_on(code)
        seen = (function or "").startswith("torch.") or log_value("log.torch_seen", transcript)
        owner = "torch" if seen and not code.startswith(("raise", "assert")) else ""
    if not owner:
        return None
    text = event.text[:4_000]
    if function is None and (head := pattern(_SPEAKS).search(text)) is not None:
        function = head["function"]
    told = next((found for form in _FORMS if (found := pattern(form).search(text)) is not None), None)
    asserts = native(text)
    said = {"wants": asserts[0]} if asserts is not None else {}
    said = said or {
        name: _cut(value) for name, value in (told.groupdict() if told is not None else {}).items()
    }
    if function is None and not said:
        return None
    if not said and any(item.kind is not RelationKind.WRAPS for item in event.relations):
        return None  # passed on, as a connection's end
    runtime = pattern(r"(CUDA|HIP) error: ").match(text) if owner == "torch" else None
    owner = runtime[1] if runtime is not None else owner  # torch only hands on what that said
    if pattern(_EMPTY).search(text):
        return Reading(ReadingKind.LIBRARY_REFUSED, owner, function, problem="empty")
    made = Reading(ReadingKind.LIBRARY_REFUSED, owner, function, said.get("wants"), said.get("got"))
    return replace(made, problem="data", place=_handed_by(event.frames, owner)) if _of_rows(event) else made


def _of_rows(event: Event) -> bool:
    """Was a row of a data set worked on, by packages alone?"""
    files = [frame.file.replace("\\", "/") for frame in event.frames]
    return all(frame.package for frame in event.frames) and any(pattern(_ROWS).search(file) for file in files)


def _handed_by(frames: tuple[Frame, ...], owner: str) -> str | None:
    """The file and line that called the package that refused."""
    last = max((number for number, one in enumerate(frames) if one.package == owner), default=0)
    callers = [one for one in frames[:last] if one.package not in (owner, "python")]
    return callers[-1].place() if callers and callers[-1].line is not None else None


def _called(
    frames: tuple[Frame, ...], innermost_last: bool = True, from_outside: bool = False
) -> tuple[str, str | None]:
    """The package of the innermost frame, and its function that was called from outside of it.

    A class is called by its name, which the line of the call has and no frame of the package. With
    ``from_outside`` nobody's, where only frames of the package and of Python are there: then nothing shows
    a call that was refused, as in a server's worker, or in what its own command started.
    """
    ordered = frames if innermost_last else tuple(reversed(frames))
    owner = next((one.package for one in reversed(ordered) if one.package != "python"), "")
    if not owner:
        return "", None
    inside: list[Frame] = []
    outside = ""
    for frame in reversed(ordered):
        if frame.package not in (owner, "python") and frame.file != "<string>":  # a dataclass's own __init__
            outside = frame.code
            break
        inside.insert(0, frame)
    if from_outside and (len(inside) == len(ordered) or ordered[0].package == owner):
        return "", None
    own = [frame for frame in inside if frame.package == owner]
    if inside[0].function == "__init__" and (made := _on_line(outside, owner, made=True)) is not None:
        return owner, made
    names = (_public_name(frame, owner) for frame in own)
    function, written = next((name for name in names if name is not None), None), _on_line(outside, owner)
    if function is None or (written or "").endswith(f".{function.rpartition('.')[2]}"):
        function = written  # the package's own name for it, whatever module defines it
    return owner, function or next((one.function for one in own if _is_public(one)), None)


def _on_line(code: str, owner: str, made: bool = False) -> str | None:
    """The function of a package that a line calls, or the class it makes; None where it calls several."""
    names = set(pattern(_CALL).findall(code))
    roots = _NICKNAMES.get(owner, (owner,))
    of = {
        name for name in names if name.split(".")[0] in roots or (made and name.split(".")[-1][:1].isupper())
    }
    return of.pop() if len(of) == 1 else None


def _method_on(code: str) -> str | None:
    """The one method that a line calls; of what is the user's own, ``self.net(x)``, none is torch's."""
    names = {name for name in pattern(_CALL).findall(code) if "." in name and not name.startswith("self.")}
    return names.pop() if len(names) == 1 and not pattern(_OPERATOR).search(code) else None


def _public_name(frame: Frame, owner: str) -> str | None:
    """``torch.nn.functional.linear``; None for what is private or only passes its arguments on."""
    path = re.split(r"(?:site|dist)-packages/", frame.file.replace("\\", "/"))[-1]
    at = path.find(f"{owner}/")
    parts = path[at if at >= 0 else 0 :].removesuffix(".py").removesuffix("/__init__").split("/")
    if not _is_public(frame) or any(part[:1] in ("_", "") for part in parts):
        return None
    return ".".join((*parts, frame.function))


def _is_public(frame: Frame) -> bool:
    """A function with a name of its own, and no wrapper that only passes its arguments on."""
    return frame.function[:1] not in ("_", "<", "") and not pattern(_FORWARDS).search(frame.code)


def _cut(text: str) -> str:
    """The part up to the end of its sentence."""
    return pattern(r"[.;](?:\s|$)|\n").split(text, 1)[0].strip(" ,:!")
