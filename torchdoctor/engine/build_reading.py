"""What a build or an installation that failed says by itself: what it lacks, and whose that is.

The compiler's own words are read by ``extract.build``; here stand CMake's and pip's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.extract import of_event
from torchdoctor.extract.download import indexes
from torchdoctor.extract.headers import header_family
from torchdoctor.extract.interpreter import interpreter_among
from torchdoctor.extract.python_error import of_setup_script
from torchdoctor.intake.frames import package_of
from torchdoctor.model import Event, EventKind, Reading, ReadingKind
from torchdoctor.patterns import pattern

if TYPE_CHECKING:
    from torchdoctor.model import Transcript

# whose a header is, in words; what has none of these is called by its own name
_BRINGS = {
    "x86": "compilers for x86 processors alone", "arm": "compilers for Arm processors alone",
    "python": "Python's development files", "cudnn": "cuDNN", "nccl": "NCCL",
    "cuda-toolkit": "the CUDA toolkit", "rocm": "ROCm", "mpi": "an MPI library", "openmp": "OpenMP",
    "c": "the C library", "c++": "the C++ standard library",
}  # fmt: skip
# what CMake says under "CMake Error": the problem, and a name in it
_CMAKE = (
    ("missing-package", r'package configuration file provided by "(?P<name>[\w.+-]+)"'),
    ("missing-package", r"Could(?: NOT|n't| not) find (?P<name>[\w.+-]+)"),
    ("missing-tool", r"No (?P<name>CMAKE_\w+_COMPILER) could be found"),
    ("missing-tool", r"(?P<name>CMAKE_(?:\w+_COMPILER|MAKE_PROGRAM)) (?:is )?not set"),
    ("missing-tool", r"The (?P<name>C(?:XX)?) compiler identification is unknown"),
    ("cmake-too-new", r"Compatibility with CMake < (?P<name>[\d.]+) has been removed"),
    ("cmake-too-old", r"CMake (?P<name>[\d.]+) or higher is required"),
    ("compiler-too-old", r'requires the language dialect "?(?P<name>\w+)"?'),
)
_AT = r"^\s*CMake Error (?:at|in) (?P<place>[^\s(]+?):?(?: \(|$|:$|\s)"
# pip and uv, of packages that they do not install
_INSTALL = (
    ("none-offered", r"the requirement (?P<name>[^\s(]+)[^\n]{0,200}\(from versions: none\)"),
    ("managed", r"error: externally-managed-environment"),
    ("permission", r"Could not install packages due to an? \w+: \[(?:Errno 13|WinError 5)\]"),
    ("space", r"Could not install packages due to an? \w+: \[Errno 28\]"),
    ("no-version", r"Could not find a version that satisfies the requirement (?P<name>[^\s(]+)"),
    ("no-version", r"No matching distribution found for (?P<name>[^\s(]+)"),
    ("conflict", r"ERROR: Cannot install (?P<name>.{1,200}?) because these package versions"),
    ("conflict", r"No solution found when resolving dependencies|ResolutionImpossible"),
    ("build", r"(?:Failed building (?:editable |wheel )?(?:for )?|(?:Failed to build|Could not build wheels "
     r"for) )`?(?P<name>[A-Za-z][\w.-]*)"),
    ("metadata", r"(?:egg_info|Getting requirements to build \w+|[Mm]etadata \S+) did not run successfully"),
    ("build", r"error: subprocess-exited-with-error|metadata-generation-failed|did not run successfully"),
    ("other-python", r"require a different python version: (?P<name>[^;\n]{1,80})"),
    ("other", r"ERROR: Could not install packages due to an? "),
)  # fmt: skip
_NEAR = 60  # events
# the lines below pip's "The conflict is caused by:"
_WANTED = (
    r"^\s*(?:The user requested (?:\(constraint\) )?(?P<asked>\S[^\n]{0,100}?)"
    r"|(?P<package>[A-Za-z][\w.-]*)(?:\[\S+\])? (?P<release>\d\S*) depends on (?P<needs>\S[^\n]{0,100}?))\s*$"
)
# as set -x, a prompt or a Dockerfile's step shows it
_PIP = r"(?m)(?:^|[\s/&;])pip[\d.]{0,4} install (?P<asked>[^\n|;&<>]{1,400})"
_OF_TORCH = "https://download.pytorch.org/"
# what pip, setuptools and setuptools-rust say of a program that they start
_CALLED = (
    r"Cannot find command '(?P<name>[\w.-]+)'|can't find (?P<rust>Rust) compiler"
    r"|No such file or directory: '(?P<started>[\w.-]+)' while executing command"
)
# what CMake's variables hold
_TOOLS = {
    "CMAKE_MAKE_PROGRAM": "make or ninja", "CMAKE_C_COMPILER": "a C compiler", "C": "a C compiler",
    "CMAKE_CXX_COMPILER": "a C++ compiler", "CXX": "a C++ compiler", "CMAKE_CUDA_COMPILER": "nvcc",
}  # fmt: skip
_NO_RULE = r"No rule to make target ['`\"](?P<name>[^'`\"\n]{1,300})['`\"]"
# of conda and mamba, which end with a class and no stack
_OF_CONDA = {
    "PackagesNotFoundError": "no-version", "ResolvePackageNotFound": "no-version",
    "UnsatisfiableError": "conflict", "LibMambaUnsatisfiableError": "conflict",
}  # fmt: skip
# that a compiler failed, after its own words
_UNSAID = (
    r"collect2: error: ld returned|error: command u?'[^\n]{1,300}' failed with exit |compilation terminated"
    r"|g?make(?:\[\d+\])?: \*\*\* \[|ninja: build stopped|FAILED: \S"
    r"|error: `cargo [^\n]{1,2000} failed with code "
)
# what pip prints above and below the words of the build itself
ANNOUNCED = (
    r"^\W*(?:error: subprocess-exited-with-error|ERROR: Failed building |ERROR: Could not build wheels "
    r"|Failed to build |ERROR: Failed to build |error: metadata-generation-failed|The build backend returned"
    r"|error: failed-wheel-build-for-install"
    rf"|Call to `[^`\n]+` failed \(exit |[^\n]{{1,120}} did not run successfully|{_UNSAID})"
)
# headers of the system and of its compilers
_SYSTEM = r"^/usr/(?:include|lib)|/SDKs/|[\\/](?:Windows Kits|VC)[\\/]"
_PROBLEMS = {"compiler-missing": "missing-tool", "nvcc-missing": "missing-tool"}
_TOOL = (
    r"(?:^|[\s/])(?P<name>[\w.+-]+): (?:command )?not found|unable to execute '(?P<tool>[^']+)'"
    r"|command '(?P<command>[^']+)' failed|^'(?P<windows>[^']+)' is not recognized"
)


def built(event: Event, transcript: Transcript) -> Reading | None:
    """The reading of a line of a compiler, linker, CMake, pip or uv; None for any other."""
    text = event.text[:4_000]
    if event.kind not in (EventKind.BUILD, EventKind.LOG) or event.quoted:
        return None
    if text.lstrip().startswith("CMake Error"):
        return _configured(text, transcript, event)
    if (compiled := _compiled(event, transcript)) is not None:
        return compiled
    if (called := pattern(_CALLED).search(text)) is not None:
        name = called["name"] or called["started"] or "rustc"
        return Reading(ReadingKind.BUILD_FAILED, problem="missing-tool", name=name)
    if (lacked := pattern(_NO_RULE).search(text)) is not None:
        return Reading(ReadingKind.BUILD_FAILED, problem="missing-file", name=lacked["name"])
    if pattern(rf"^\W*(?:{_UNSAID})").match(text) is not None:
        asked = _asked(event, transcript)
        return Reading(ReadingKind.BUILD_FAILED, _package(event, transcript), problem="unsaid", name=asked)
    if (conflict := _conflict(event, transcript)) is not None:
        return conflict
    for problem, form in _INSTALL:
        if (found := pattern(form).search(text)) is not None:
            name = found.groupdict().get("name") or _package(event, transcript)
            asked = _asked(event, transcript) if problem in ("build", "metadata") else None
            index = _torch_index(event, transcript) if problem == "none-offered" else None
            problem = "other-index" if index else problem
            if problem == "none-offered" and (offline := _without_index(event, transcript)) is not None:
                problem, asked = ("no-index-build" if _for_build(event, transcript) else "no-index"), offline
            return Reading(ReadingKind.INSTALL_FAILED, asked, problem=problem, name=name, place=index)
    return None


def _conflict(event: Event, transcript: Transcript) -> Reading | None:
    """The first two requirements that pip says exclude each other, and where the second was asked for."""
    if pattern(r"ERROR: Cannot install \S|ResolutionImpossible").search(event.text[:400]) is None:
        return None
    near = transcript.events[max(0, event.id - _NEAR) : event.id + _NEAR]
    _, _, told = "\n".join(one.text for one in near).partition("The conflict is caused by:")
    lines = [
        found for line in told.split("\n")[:_NEAR] if (found := pattern(_WANTED).match(line)) is not None
    ]
    lines.sort(key=lambda one: one["package"] is not None)  # what was asked for first
    first = lines[0] if lines else None
    others = (one for one in lines[1:] if first and one["package"] not in (None, first["package"]))
    other = next(others, None)
    if first is None or other is None:
        return None
    pinned = rf"{re.escape(other['package'])}[=<>~!]\S* \(from -r (\S+) \(line (\d+)\)\)"
    lists = (re.search(pinned, one.text[:400]) for one in transcript.events)
    place = next((f"{found[1]}, line {found[2]}" for found in lists if found is not None), None)
    asked = first["asked"] or f"{first['package']} {first['release']}, which needs {first['needs']}"
    return Reading(
        ReadingKind.INSTALL_FAILED,
        other["package"],
        wants=other["needs"],
        got=asked,
        problem="conflict",
        name=f"{other['package']} {other['release']}",
        place=place,
    )


def _torch_index(event: Event, transcript: Transcript) -> str | None:
    """The index of torch's wheels, where pip says above that it asks this one alone."""
    index = indexes(event, transcript)
    return index if index.startswith(_OF_TORCH) else None


def _without_index(event: Event, transcript: Transcript) -> str | None:
    """What pip was asked for behind ``--no-index``, where the command stands above; None without it."""
    above = (one.text for one in reversed(transcript.events) if one.id <= event.id and "pip" in one.text)
    command = next(filter(None, (pattern(_PIP).search(text[:2_000]) for text in above)), None)
    return command["asked"].strip() if command is not None and "--no-index" in command["asked"] else None


def _for_build(event: Event, transcript: Transcript) -> bool:
    """Did pip want it for the environment of its own in which it builds?"""
    return any(
        "pip subprocess to install build dependencies" in one.text
        for one in transcript.events[max(0, event.id - 8) : event.id + 8]
    )


def is_of_installer(event: Event) -> bool:
    """Does pip or uv say in its own name that it installs something not, which no code beside it did?"""
    return event.kind in (EventKind.BUILD, EventKind.LOG) and any(
        problem not in ("build", "metadata") and pattern(form).search(event.text[:400])
        for problem, form in _INSTALL
    )


def of_setup(event: Event, transcript: Transcript) -> Reading | None:
    """The reading of an exception that a package's setup.py raised while pip or uv asked it."""
    if not of_setup_script(event):
        return None
    package = _package(event, transcript)
    lacks = pattern(r"^No module named '?(?P<name>[\w.]+)'?").match(event.text[:400])
    if lacks is not None and (event.type or "").endswith(("ModuleNotFoundError", "ImportError")):
        asked = _asked(event, transcript)
        isolated = any(
            part in frame.file for frame in event.frames for part in ("pip-build-env-", "builds-v0")
        )
        problem = "setup-module" if isolated else "setup-module-here"
        python = None if isolated else interpreter_among([frame.file for frame in event.frames])
        return Reading(
            ReadingKind.INSTALL_FAILED, asked, problem=problem, name=lacks["name"], place=python or None
        )
    return Reading(ReadingKind.INSTALL_FAILED, problem="setup", name=package)


def of_conda(event: Event) -> Reading | None:
    """The reading of the class with which conda ends that does not find what to install."""
    problem = _OF_CONDA.get((event.type or "").rpartition(".")[2])
    if problem is None:
        return None
    named = pattern(r"(?m)^\s*- (?P<name>[\w.-]+)").search(event.text[:2_000])
    return Reading(
        ReadingKind.INSTALL_FAILED,
        "conda",
        problem=problem,
        name=named["name"] if named is not None else None,
    )


def _configured(text: str, transcript: Transcript, event: Event) -> Reading:
    at = pattern(_AT).search(text)
    place = at["place"] if at is not None else None
    joined = " ".join(text.split())
    owner = _package(event, transcript)
    for problem, form in _CMAKE:
        if (found := pattern(form).search(joined)) is not None:
            name = _TOOLS.get(found["name"], found["name"])
            return Reading(ReadingKind.BUILD_FAILED, owner, problem=problem, name=name, place=place)
    return Reading(ReadingKind.BUILD_FAILED, owner, problem="cmake", place=place)


def _compiled(event: Event, transcript: Transcript) -> Reading | None:
    """Where the event holds the first error of the build in the text."""
    facts = {fact.name[6:]: str(fact.value or "") for fact in of_event("build", event, transcript)}
    said = facts.get("first_error")
    if not said or said not in event.text:
        return None
    kind, file = facts.get("first_error_kind", ""), facts.get("first_error_file", "")
    name = facts.get("header") or facts.get("library") or None
    wants = None
    if kind == "missing-header" and name is not None:
        family = header_family(name)
        wants = _BRINGS.get(family, family) if family is not None else None
    elif kind in _PROBLEMS:
        tool = pattern(_TOOL).search(said)
        name = next((value for value in tool.groups() if value), None) if tool is not None else None
    else:
        name = name or _asked(event, transcript)
    system = pattern(_SYSTEM).search(file) is not None
    return Reading(
        ReadingKind.BUILD_FAILED,
        _whose(file) or (facts.get("package") if not system else None) or None,
        wants=wants,
        problem=_PROBLEMS.get(kind, kind),
        name=name,
        place=_place(event.text, file),
    )


def _whose(file: str) -> str | None:
    """The package whose sources hold a file, by its path."""
    package = package_of(file) if file else ""
    return package if package not in ("", "python") else None


def _place(text: str, file: str) -> str | None:
    """``shm.cpp:10``, with the line that the compiler names behind the file."""
    if not file:
        return None
    name = re.split(r"[\\/]", file)[-1]
    behind = text[text.find(file) + len(file) :][:20] if file in text else ""
    line = pattern(r"^[:(](\d{1,7})").match(behind)
    return f"{name}:{line[1]}" if line is not None else name


def _package(event: Event, transcript: Transcript) -> str | None:
    return _told("package", event, transcript)


def _asked(event: Event, transcript: Transcript) -> str | None:
    """What pip was asked for, of that package, with the version."""
    return _told("requirement", event, transcript)


def _told(name: str, event: Event, transcript: Transcript) -> str | None:
    known = (fact for fact in of_event("build", event, transcript) if fact.name == f"build.{name}")
    return next((str(fact.value) for fact in known if fact.value), None)
