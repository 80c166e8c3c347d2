"""What is said of a failure that no rule knows: what it says by itself, and the next step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdoctor.model import PROCESS_ENDED, ReadingKind
from torchdoctor.render.unknown_builds import build_step, installation_step, of_build, of_installation
from torchdoctor.render.unknown_calls import alternatives, of_call, of_import
from torchdoctor.render.unknown_data import look_at, of_data
from torchdoctor.render.unknown_systems import by_hand, by_variable, installed_by, step_on, when_ended

if TYPE_CHECKING:
    from torchdoctor.model import Reading, Suspect

# the head above rules that are no diagnosis
RESEMBLES = "Resembles these, but this message is not known for them"

_CUT_OFF = (
    "Explain the log as a whole: this one is cut off before the last line of the traceback, with the class "
    "and the message of the exception."
)
_READ_ON = (
    "Read what the same program printed around this line: its reason often stands there. If it does not, "
    "start it once more with its log level at debug."
)
_REPORTERS = {"ptxas": "ptxas, the assembler of CUDA,"}
_REPORT_STEPS = {
    "NCCL": (
        "Start all ranks with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH`: the lines before this one "
        "name the link, the file or the call; the first such line of all ranks counts."
    ),
    "ptxas": (
        "Compare `ptxas --version` with the CUDA of the compiler that wrote the code, and with the card: an "
        "older ptxas knows neither. Triton brings one of its own, TRITON_PTXAS_PATH names another."
    ),
    "rocBLAS": "Run once with `ROCBLAS_LAYER=4`, which prints each call: the last one is the one it reports.",
}
# the name of a weight with the number of its layer, as a KeyError shows it
_WEIGHT = r"['\"]?((?:[A-Za-z_]\w*\.)+\d+\.(?:\w+\.)*\w+)['\"]?"
_VARIABLE = r"\benvironment variable|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}\b"
_NOT_THERE = (
    r"(?i)\bnot (?:(?:yet|currently) )?implemented\b|\b(?:not (?:yet|currently)|currently not) supported\b"
)
# a path that a shell, a tool or Python itself could not open
_NOT_OPENED = (
    r"(?:'(?P<quoted>[^'\n]{1,200})'|: (?P<bare>[\w.~/+-]{1,200})): (?:\[Errno \d+\] )?"
    r"(?:No such file or directory|Permission denied)$"
)
# a number by which native code says what failed: synStatus=9, error code 507018
_STATUS = r"(?:\b|_|(?<=[a-z])(?=[A-Z]))(?i:status|error code|errcode|retcode)\s?[:=]?\s?-?\d{1,9}\b"
# what a function raises on values that it does not take
_OF_ARGUMENTS = ("ValueError", "AssertionError")


def reading(item: Reading | None) -> str:
    """What the failure says by itself, as a sentence; "" where it says no more than its message."""
    if item is None:
        return ""
    of = f" of {item.owner}" if item.owner else ""
    if item.kind is ReadingKind.ENDED_OUTSIDE:
        by = f", by {item.owner}" if item.owner else ""
        how = f", with {item.name}" if item.name else ""
        return f"The process was ended from outside{by}{how}; this text does not say why."
    if item.kind is ReadingKind.NATIVE_CRASH:
        called = f", called by {item.function}" if item.function else ""
        return f"The process crashed in native code{of}{called}."
    if item.kind is ReadingKind.LIBRARY_REPORTED:
        return f"{_REPORTERS.get(item.owner or '', item.owner)} reported it" + (
            f", in {item.place}." if item.place else "."
        )
    if item.kind is ReadingKind.LIBRARY_REFUSED and item.problem == "none":
        return f"Code{of} worked on None, where it expected a value."
    if item.kind is ReadingKind.LIBRARY_REFUSED:
        refused = f"{item.owner} refused the call" + (f" of {item.function}" if item.function else "")
        told = [f"it wants: {item.wants}"] if item.wants else []
        told += [f"it got: {item.got}"] if item.got else []
        return f"{refused}; {'; '.join(told)}." if told else f"{refused}."
    if item.kind is ReadingKind.BUILD_FAILED:
        return of_build(item)
    if item.kind is ReadingKind.INSTALL_FAILED:
        return of_installation(item)
    return _of_what_is_missing(item)


def _of_what_is_missing(item: Reading) -> str:
    if item.kind is ReadingKind.MODULE_MISSING:
        if item.owner is None and "." in (item.name or ""):
            top = (item.name or "").partition(".")[0]
            return f"The interpreter that ran finds no {item.name}: its {top} is missing, or too old for it."
        by = f"{item.owner} imports {item.name}, which" if item.owner else f"The module {item.name}"
        return f"{by} is not installed in the interpreter that ran."
    if item.kind is ReadingKind.NAME_MISSING:
        return f"The {item.owner} that is installed has no {item.name}."
    if item.kind is ReadingKind.LIBRARY_MISSING and item.problem == "dll":
        return f"Windows found {item.owner}, and not a DLL that it needs."
    if item.kind is ReadingKind.LIBRARY_MISSING:
        by = f", which {item.owner} needs" if item.owner else ""
        return f"The loader does not find the shared library {item.name}{by}."
    if item.kind is ReadingKind.PROGRAM_MISSING and item.problem == "module":
        return f"{item.owner} has no module {item.name} on this machine."
    if item.kind is ReadingKind.PROGRAM_MISSING:
        by = f"{item.owner} starts {item.name}, which" if item.owner else f"The program {item.name}"
        return f"{by} is not on the PATH of the process."
    if item.kind is ReadingKind.EXITED:
        return "A process ended by itself with an error; its own output says why."
    if item.kind is ReadingKind.RAISED_INSIDE:
        return f"It was raised in {item.function or item.place} of {item.owner}" + (
            f" ({item.place})." if item.function else "."
        )
    return "No program printed this here: the text quotes it."


def next_step(item: Suspect) -> str:
    """The one thing that tells more about a failure that no rule knows."""
    live = re.match(r"process (\d+) ", item.message) if item.evidence.line is None else None
    if live is not None:
        return f"Look again while it stands, `torchdoctor hang {live[1]}`: it may only wait, or sleep."
    own = re.fullmatch(rf"{PROCESS_ENDED}(\d+)", item.message)
    if own is not None and int(own[1]) < 126:
        return f"Look where the program, or a script that it runs, exits with {own[1]}."
    if item.reading is not None:
        step = step_on(item.system, item.reading) or _by_reading(item.reading)
        if step:
            return step
    if item.asks is not None:
        return by_variable(item.asks, item.system) or _by_its_words(item.asks, item.reading)
    if not item.type:
        if re.search(_NOT_THERE, item.message):
            return (
                "Update the program that printed it to its newest release, or choose another model or option "
                "than the one it names: it says that this is not there."
            )
        if (path := re.search(_NOT_OPENED, item.message)) is not None:
            return look_at(path["quoted"] or path["bare"], item.system)
        return _READ_ON if item.message else _CUT_OFF
    return of_data(item) or of_import(item) or by_hand(item.system) or _of_exception(item)


def _by_its_words(asks: str, read: Reading | None) -> str:
    """What the message itself asks for, in its words; and what else there is for a call of packages."""
    if "pip install" in asks:
        return f'Install what the message asks for, in the interpreter that ran this: "{asks}".'
    refused = read is not None and read.kind is ReadingKind.LIBRARY_REFUSED
    function = (read.function or "") if refused and read is not None else ""
    where = f", where {function} is called" if function else ""
    if function.endswith(".step"):  # which only finds what was set before
        where = ", where the value was set: before step(), by your code, a scheduler or a wrapper"
    if re.search(_VARIABLE, asks):
        where = ", before the program starts"  # which reads it then
    elif read is not None and read.kind is ReadingKind.RAISED_INSIDE:
        where = f", where {read.owner} gets its options"
    return f'Do what the message itself asks for{where}: "{asks}".'


def _by_reading(item: Reading) -> str:
    if item.kind is ReadingKind.BUILD_FAILED:
        return build_step(item)
    if item.kind is ReadingKind.INSTALL_FAILED:
        return installation_step(item)
    if item.kind is ReadingKind.MODULE_MISSING:
        top = (item.name or "").partition(".")[0]
        if item.problem == "lazy":
            return (
                f"Update {item.owner}, `pip install --upgrade {item.owner}`, unless you use {top} yourself: "
                f"this release takes it for installed. Else install the package that brings {top}."
            )
        return (
            f"Install the package that brings {top} into the interpreter that ran the program; "
            f"`python -c 'import {top}'` shows there whether it can be imported."
        )
    if item.kind is ReadingKind.NAME_MISSING:
        top = (item.owner or "").partition(".")[0]
        return (
            f"Look which release of {top} is there, `pip show {top}`, and install one that has {item.name}."
        )
    if item.kind is ReadingKind.LIBRARY_MISSING and item.problem == "dll":
        return (
            "Install the Visual C++ Redistributable, which most need, and list what the file itself needs: "
            "`dumpbin /dependents` in a prompt of Visual Studio."
        )
    if item.kind is ReadingKind.LIBRARY_MISSING:
        return _cuda_step(item) if item.problem == "cuda" else _library_step(item.name or "")
    if item.kind is ReadingKind.PROGRAM_MISSING and item.problem == "module":
        stem = (item.name or "").partition("/")[0]
        listing = "module spider" if item.owner == "Lmod" else "module avail"
        return (
            f"Load one that is there: `{listing} {stem}` lists them, and their names differ from cluster to "
            "cluster. Where an environment of conda or pip brings it already, leave the line out."
        )
    if item.kind is ReadingKind.PROGRAM_MISSING:
        return (
            f"Install {item.name} where the program runs (its image, its environment)"
            f"{installed_by(item.name or '', 'linux')}, or put it on PATH; "
            f"`which {item.name}` has to find it there."
        )
    return {
        ReadingKind.NATIVE_CRASH: _crash_step(item),
        ReadingKind.ENDED_OUTSIDE: when_ended(item),
        ReadingKind.LIBRARY_REPORTED: _REPORT_STEPS.get(item.owner or "", ""),
        ReadingKind.EXITED: "Read the output of that process itself: this line says only that it ended.",
        ReadingKind.QUOTED: "Explain the log of the program itself, from its start to the end of the error.",
    }.get(item.kind, "")


def _crash_step(item: Reading) -> str:
    if item.name == "SIGILL":
        return (
            "Look which instructions this processor has, `lscpu | grep -i flags`: the program was made for "
            "one that has more (AVX, AVX-512)."
        )
    if item.name == "SIGBUS":
        return (
            "Look how much room is left, `df -h /dev/shm /tmp`: a Bus error is mostly a mapped file that "
            "cannot grow or cannot be read."
        )
    return "Run it once more with PYTHONFAULTHANDLER=1: a crash then shows its Python lines."


def _library_step(name: str) -> str:
    if name.lower().endswith(".dll"):
        return f"Look whether it is on PATH, `where {name}`, and install the package that brings it."
    stem = re.sub(r"(\.so|\.dylib).*", r"\1", name)
    return (
        f"Look whether it is there under another number or in a folder that is not searched: "
        f"`find / -name '{stem}*' 2>/dev/null`. If it is nowhere, install the package that brings it "
        f"(`apt-file search {name}`)."
    )


def _cuda_step(item: Reading) -> str:
    """What to do about a library of CUDA's: a program of another framework is made for one release of it."""
    no_link = "A link under the missing name does not help."
    if "onnxruntime" in (item.owner or "") and item.wants == "CUDA 11":
        return (
            "Update onnxruntime-gpu, `pip install --upgrade onnxruntime-gpu`, if CUDA 12 is here: this "
            f"release is made for CUDA 11, those from 1.19 on for CUDA 12. {no_link}"
        )
    stem = re.sub(r"\.so.*", ".so", item.name or "")
    made = (
        f", not for {item.wants}; or install {item.wants} beside it, if there is no such build"
        if item.wants
        else ""
    )
    return (
        f"Install {item.owner or 'the program'} in its build for the CUDA that is here{made}. "
        f"`find / -name '{stem}*' 2>/dev/null` shows which that is. {no_link}"
    )


def _of_weight(item: Suspect, owner: str) -> str:
    """Which of two does not fit, the weights or the class of a model; "" where it is about neither."""
    read = item.reading
    weight = re.fullmatch(_WEIGHT, item.message.strip()[:300])
    if weight is None or read is None:
        return ""
    if read.problem == "checkpoint":
        return (
            f"Take a model that {read.owner} supports (`architectures` in its config.json), or update "
            f"{read.owner}: its code reads {weight[1]}, which this checkpoint does not hold."
        )
    if "load" not in (read.function or ""):
        return ""
    return (
        "Compare `architectures` in the config.json of the model that was loading with its weights: the "
        f"class named there has no {weight[1]}. Name the one made for them, or update {owner}, which may "
        "lack it."
    )


def _of_package(item: Suspect, owner: str) -> str:
    """What a reader can change where a package's own code raised it."""
    read = item.reading
    if item.setting is not None and (item.type or "").endswith("ZeroDivisionError"):
        return (
            f"Look what makes {item.setting} 0 in {owner}: fewer samples than one batch holds, an empty "
            "list, or an option that is 0. The lines above often print how many there were."
        )
    if read is not None and read.problem == "data":
        by = f", which {read.place} hands on" if read.place else ""
        return (
            f"Look at the rows of the data set{by}: print their values and types, and drop or correct those "
            f"that are empty or that {read.owner} does not take."
        )
    if step := _of_weight(item, owner):
        return step
    if not item.message and (item.type or "").endswith("NotImplementedError"):
        name = read.function if read is not None and read.function else owner
        return (
            f"Choose, in the settings, what {name} has a branch for: it raises this for every other value. "
            f"Its source shows them{f' ({read.place})' if read is not None and read.place else ''}."
        )
    if item.setting is not None:
        if " " in item.setting:
            return f"Change or leave out {item.setting} where {owner} is started: the message is about it."
        where = "is started" if item.setting.startswith("--") else "is called or configured"
        if item.choices:
            return (
                f"Set {item.setting} to {alternatives(item.choices)} where {owner} {where}: it takes no "
                "other value here."
            )
        return f"Set or change {item.setting} where {owner} {where}: the message is about it."
    refused = read is not None and read.kind is ReadingKind.LIBRARY_REFUSED
    if refused or (item.type or "").rpartition(".")[2] in _OF_ARGUMENTS:
        return (
            f"Compare what the message names with what you give {owner}: its options and settings, the "
            f"model, the data. If all of that is as its documentation wants it, update {owner}, or search "
            "its tracker for the line below."
        )
    if item.frame is not None and "-packages" not in item.frame.file:
        return (
            f"Compare your options and data with an example of {owner} that works, or update its "
            "folder: its code raised this. Its tracker may have the line below."
        )
    raised = item.frame is not None and item.frame.code.lstrip().startswith(("raise", "assert"))
    if not raised and (status := re.search(rf"\w*{_STATUS}", item.message[:400])) is not None:
        return (
            f"Look up {status[0]} in the documentation of {owner}, and whether the device is there, free and "
            "of a driver that fits: native code under it refused, and no newer release frees a device."
        )
    return (
        f"Update {owner} to its newest release: code of packages raised this, none of yours. If that does "
        "not help, search its tracker for the line below."
    )


def _of_exception(item: Suspect) -> str:
    frame = item.frame
    if frame is None:
        return (
            "Read what was printed around this line. If that does not say which call raised it, let the "
            "program print the traceback: logging.exception(), or do not catch it."
        )
    read = item.reading
    owner = frame.package or (read.owner if read and read.kind is ReadingKind.RAISED_INSIDE else "")
    imported = re.match(r"(?:import|from) (\w+)", frame.code)
    if imported is not None and read is not None and read.problem == "import":
        return (
            f"Install {owner} again, in the release that {imported[1]} asks for: it fails while it is "
            f"imported itself, and {imported[1]} only imports it. `pip check` shows packages that do not go "
            "together."
        )
    if owner:
        return _of_package(item, owner)
    if imported is not None and imported[1] != "__future__":
        return (
            f"Update {imported[1]} with pip, and what it imports: it fails while it is imported, before "
            "code of your own runs. `pip check` shows packages that do not go together."
        )
    at = frame.place()
    on_rank = f", on rank {item.rank}" if item.rank is not None else ""
    if read is not None and read.kind is ReadingKind.LIBRARY_REFUSED:
        return of_call(item, read, at)
    if frame.in_cell():
        return "Run %debug in the next cell: it stops where the exception was raised, with its variables."
    if frame.file == "<stdin>":
        return (
            "Enter `import pdb; pdb.pm()` at the prompt of Python: it stops where the exception was raised, "
            "with the variables. A program that was piped in goes into a file first."
        )
    if frame.file == "<string>":
        return "Put the program into a file and start that: Python then shows the lines that it calls."
    if item.rank is not None or item.caught:  # where a debugger of the command does not stop
        return f"Print the variables that {at} uses, just before it{on_rank}."
    return (
        "Start the same command with `python -m pdb -c continue` in place of python: it stops where that is "
        f"raised, with the variables, at {at} or in what that calls: then `up` leads back."
    )
