"""Facts of a build: the first error of a compiler, linker or shell in the whole text, and whose build it was.

A failed build prints dozens of errors; all but the first tend to follow from it, and the exception that torch
raises afterwards says only that something failed. So every fact here is about the text, the same for all its
events. Texts checked against gcc 4.8 to 13, clang 6 to 17, nvcc 9 to 13, MSVC 2017 to 2022, GNU ld and lld.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchdoctor.extract import Found, build_package, build_setting, once_a_text, torch_extensions
from torchdoctor.extract.cxx_standard import lacks_name_of_std, standard_asked_for, std_header
from torchdoctor.extract.headers import header_family, into_cuda, unlisted
from torchdoctor.model import Event, EventKind, Fact, FactValue, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "build.first_error": "str: message of the first error, without file and line",
    "build.first_error_kind": "str: kind of the first error; missing-header, cxx-standard, "
    "compiler-too-new, compiler-too-old, arch-unsupported, compiler-missing, nvcc-missing, out-of-memory,"
    " missing-library, undefined-reference or code",
    "build.first_error_file": "str: source file the first error stands in; absent for errors without one",
    "build.header": "str: the header that was not found",
    "build.unlisted": "bool: the failing command has no -I to a folder of the missing header's library",
    "build.header_family": "str: whose it is: x86, arm, python, cudnn, nccl, cuda-toolkit, rocm, torch, mpi, "
    "openmp, c or c++ (the standard libraries), or the library of that folder",
    "build.toolkit": "str: version of the one CUDA toolkit whose folder the text names, as 11.8",
    "build.math_libs": "str: where the one HPC SDK of NVIDIA's in the text keeps cuBLAS and the like",
    "build.ninja_answers": "bool: a shell in the text finds ninja, by ninja --version or which ninja",
    "build.probe": "bool: the first error answers a question (is the library there?), and the run went on",
    "build.cuda_header": "str: the CUDA toolkit's header through which the sources came to the first error",
    "build.includer": "str: the file that includes build.cuda_header",
    "build.own_includer": "str: the nearest file of the project itself that led to an error in a header",
    "build.library": "str: the library that the linker did not find, without -l, lib and ending",
    "build.consumer": "str: whose build it is: triton (its launcher), inductor (generated code), extension "
    "(a package's C++ against torch's headers) or other",
    "build.cxx_standard": "int: the C++ standard the compiler was told to use, as 17",
    "build.macos_target": "str: the release of macOS that the build is for, by its folders: 10.7",
    "build.conda_nvcc": "bool: the nvcc that ran is that of a conda environment",
    "build.missing_member": "str: the member that at::Tensor does not have, in any language of the compiler",
    "build.std_header": "str: the standard header, as cstdint, of a name that the sources do not declare",
    "build.extension": "str: name of the extension module that was built",
    "build.package": "str: the package that pip or uv was building",
    "build.requirement": "str: what pip was asked for, of that package, as a word of a command: its name "
    "with the bounds, or an address; else build.package",
    "build.ready_wheel": "str: address of the ready wheel that setup.py looks for before it compiles",
    "build.extension_folder": "str: folder below ~/.cache/torch_extensions that an extension is built in",
    "build.ninja_folder": "str: where the build.ninja of the one extension is that load() did not build",
    "build.unpacked": "str: what pip fetched to build (a name, a repository); absent for the reader's folder",
    "build.isolated": "bool: torch itself lies in the environment that pip or uv made for the build alone",
    "build.own_file": "str: build.first_error_file, unless it is a header of an installed package",
    "build.installed_header": "str: the header of an installed package in which the first error stands",
}


class _Error(NamedTuple):
    """The first error of a build, as found."""

    text: str
    file: str
    compiler: str
    source: str
    event: int


# gcc and clang translate these two words; they leave the file, the line and the colon as they are
_ERROR = (
    r"(?:fatal error|error|致命错误|错误|erreur fatale|erreur|schwerwiegender Fehler|Fehler|"
    r"errore irreversibile|errore|error fatal|фатальная ошибка|ошибка|致命的エラー|エラー|치명적 오류|오류)"
)
_PATTERNS: tuple[tuple[str, str], ...] = (
    # MSVC, also what nvcc prints on Windows: file(27): fatal error C1189: …
    ("msvc", r"^\s*(?P<file>[^\s(][^(\n]{0,300}?)\(\d+(?:,\d+)?\)\s?: (?:fatal )?error "
     r"(?P<text>(?:C|LNK|STL)\d+: .+)"),
    ("linker", r"^\s*(?:LINK|(?P<file>[^\s:]+\.(?:obj|lib|exp))) : (?:fatal )?error (?P<text>LNK\d+: .+)"),
    # MSVC about a file as a whole: file.cpp : fatal error C1060: …
    ("msvc", r"^\s*(?P<file>[^\s(:]{1,300}|[A-Za-z]:[^\s(:]{1,300}) ?: fatal error (?P<text>C\d+: .+)"),
    # cudafe++: file.cu(12): error: …, from CUDA 11.6 on with a number: error #20011-D: …
    ("nvcc", r"^\s*(?P<file>[^\s(][^(\n]{0,300}?)\(\d+\): (?:catastrophic )?error(?: #[\w-]+)?\s?: "
     r"(?P<text>.+)"),
    ("nvcc", r"^\s*(?P<file>)nvcc (?:fatal|error)\s*: (?P<text>.+)"),
    ("ptxas", r"^\s*(?P<file>)ptxas (?:fatal|error|[^\s,]+, line \d+; error)\s*: (?P<text>.+)"),
    ("linker", r"^\s*(?P<file>)(?:\S*/)?(?:ld|ld\.lld|ld\.gold|lld)(?:\.exe)? ?: (?:error: )?"
     r"(?P<text>(?:cannot find|impossible de trouver|no se puede encontrar|невозможно найти|"
     r"unable to find library|library not found for|skipping incompatible|"
     r"library '[^']+' not found|找不到|ne peut trouver|kann .{1,80} nicht finden).*)"),
    ("linker", r"^\s*(?P<file>[^\s:]*):?.*?(?P<text>undefined reference to .+|Undefined symbols for arch.+)"),
    # the driver of gcc or clang itself: no file of ours, so no line number
    ("gcc", r"^\s*(?P<file>)(?:\S*/)?(?:g\+\+|gcc|c\+\+|cc1plus|cc1|cc|\w+[\w.-]*-g(?:cc|\+\+)|icpx?)"
     r"(?:-[\d.]+)?: (?P<text>(?:" + _ERROR + r" ?[:：]|internal compiler error:|out of memory|"
     r"Internal error:).+)"),
    # gcc's libiberty, without a name before it
    ("gcc", r"^\s*(?P<file>)(?:\S*/cc1plus: )?(?P<text>virtual memory exhausted: .+)"),
    ("clang", r"^\s*(?P<file>)fatal error: (?P<text>'[^'\n]+' file not found|\S+: No such file or dir.*)"),
    ("clang", r"^\s*(?P<file>)(?:\S*/)?clang(?:\+\+)?(?:-[\d.]+)?: (?P<text>error: .+)"),
    ("gcc", r"^\s*(?P<file>(?:[A-Za-z]:)?[^\s:][^:\n]{0,300}?):\d+(?::\d+)?: ?" + _ERROR
     + r" ?[:：] ?(?P<text>.+)"),
    ("shell", r"^\s*(?P<file>)(?:\S*/)?(?:ba|da|z)?sh: (?:line )?(?:\d+: )?"
     r"(?P<text>\S+: (?:command )?not found|\S+: No such file or directory|\S+: Permission denied)"),
    ("shell", r"^\s*(?P<file>)(?:error: )?"
     r"(?P<text>unable to execute '[^']+': .+|command '[^']+' failed: .+)"),
    ("shell", r"^\s*(?P<file>)(?P<text>'(?:cl|nvcc|link)(?:\.exe)?' is not recognized as .+)"),
)  # fmt: skip

# One of these stands in every line that the patterns above can match.
_TRIGGERS = (
    "error", "fatal", "错误", "erreur", "Fehler", "ошибка", "エラー", "오류", "not found", "cannot find",
    "unable to", "undefined reference", "out of memory", "failed: ", "not recognized", "No such file",
    "找不到", "Internal", "Undefined symbols", "skipping incompatible", "Permission denied",
    "ne peut trouver", "impossible de trouver", "nicht finden", "no se puede encontrar", "невозможно найти",
    "virtual memory",
)  # fmt: skip
MAX_LINES = 5_000  # a log that says "error" in more lines than this is not looked at to its end

# What follows from an error before it, or comes from pip and ninja: never the first error.
_ECHOES = r"ld returned|linker command failed|subprocess-exited|too many errors|error limit|from macro"

_KINDS: tuple[tuple[str, str], ...] = (
    ("out-of-memory", r"^Killed$|Killed signal|Killed \(program|died due to signal 9|out of memory|"
     r"virtual memory exhausted|C1060|C1002|cannot allocate memory|signal terminated program|"
     r"(?:已杀死|已殺死|Getötet|Tué|Processus arrêté|Убито|Terminado \(killed\)|強制終了)"
     r".{0,60}cc1plus|"
     r"cc1plus.{0,60}(?:已杀死|Getötet|Tué|Processus arrêté|Убито|強制終了)"),
    ("compiler-too-new", r"unsupported GNU version|unsupported Microsoft Visual Studio version|"
     r"unsupported clang version|parameter packs not expanded with|\"_Float(?:32|64|128)x?\" is undefined|"
     r"__builtin_ia32_\w+\" is undefined|__builtin_dynamic_object_size\" is undefined|STL1002"),
    ("compiler-too-old", r"too old version of (?:GCC|Clang)|unrecognized command[- ]line option "
     r"['‘`\"]?-std=|invalid value 'c\+\+\w\w' in '-std=|compiler and library support for the ISO C\+\+|"
     r"Value 'c\+\+\w\w' is not defined for option 'std'|无法识别的命令行选项.{1,3}-std=|"
     r"option de la ligne de commande .{0,30}-std="),
    ("cxx-standard", r"C\+\+\d\d or later compatible compiler|You need C\+\+\d\d to compile|"
     r"requires? (?:at least )?C\+\+\d\d"),
    ("arch-unsupported", r"Unsupported gpu architecture|is not defined for option 'gpu-"),
    ("nvcc-missing", r"nvcc(?:\.exe)?'?:? (?:command )?(?:not found|No such file|is not recognized)|"
     r"nvcc[^ ]*' failed: No such"),
    ("compiler-missing", r"^(?:\S*/)?(?:c\+\+|g\+\+|gcc|cc|clang(?:\+\+)?|cl(?:\.exe)?|\w+-linux-gnu-\S+)"
     r"(?:-[\d.]+)?: (?:command )?(?:not found|No such file)|unable to execute '|"
     r"^'cl(?:\.exe)?'|failed: No such file|"
     r"(?:cannot execute|trying to exec) ['‘`]cc1plus|failed: None"),
    ("missing-library", r"(?:cannot find|library not found for|ne peut trouver|impossible de trouver|找不到|"
     r"kann|no se puede encontrar|невозможно найти) -l ?:?"
     r"(?P<library>[\w.+-]+)|unable to find library -l(?P<library2>[\w.+-]+)|"
     r"library '(?P<library6>[^']+)' not found|"
     r"LNK1181: [^'“‘\"]*['“‘\"](?P<library3>[^'”’\"]+?)(?:\.lib)?['”’\"]|"
     r"LNK1104: [^'“‘\"]*['“‘\"](?P<library4>[^'”’\"]+?)(?:\.lib)['”’\"]|"
     r"LNK1(?:181|104): .{0,80}?(?<![\w.-])(?P<library7>[A-Za-z]\w{0,60})\.lib\b|"
     r"searching for -l(?P<library5>[\w.+-]+)"),
    ("missing-header", r"(?P<header>[\w./+-]+\.(?:h|hpp|cuh|hh|inl)|<?[\w./]+>?)['’\"»]? ?(?:file not found|"
     r"[:：] ?(?:No such file|没有那个文件|沒有此一檔案|Aucun fichier|Datei oder Verzeichnis nicht|No existe|"
     r"Нет такого|そのような|그런 파일))|cannot open source file \"(?P<header2>[^\"]+)\"|"
     r"Cannot open include file: '(?P<header3>[^']+)'|"
     r"无法打开(?:包括|源)文件[:：] ?[“\"'](?P<header4>[^”\"']+)"),
    ("undefined-reference", r"undefined reference to|Undefined symbols for|LNK2001|LNK2019"),
)  # fmt: skip

# setuptools' own last word; the path may be Windows', with its backslashes doubled
_COMMAND_FAILED = (
    r"command u?'(?:[^'\n]{0,300}[\\/])?"
    r"(nvcc|cl|link|gcc|g\+\+|c\+\+|clang(?:\+\+)?|[\w-]{1,30}-g(?:cc|\+\+))"
    r"(?:-[\d.]{1,6})?(?:\.exe)?' failed with exit "
)

# pip's, of one package or several
_NOT_BUILT = (
    r"(?:Failed building (?:editable |wheel )(?:for )?|Could not build wheels for |Failed to build "
    r"|pyproject\.toml based projects \()([\w.-]{1,80}(?:,? [\w.-]{1,80}){0,20})"
)

# gcc quotes the class and the member, whatever the words between them are
_MEMBER = (
    r"at::Tensor(?:Base)?[^\w:]{0,4}(?:has no member named|hat kein Element namens|"
    r"n['’]a pas de membre nommé|"
    r"没有名为|沒有名為|не содержит элемента с именем|no tiene (?:un|ningún) miembro llamado|"
    r"non ha (?:un|alcun) membro (?:chiamato|di nome))\s?['‘\"«»“„]\s?(\w{1,60})"
)
# make's and CMake's word for a file that was to be compiled
_NO_OBJECT = r"^(?:make(?:\[\d+\])?: \*\*\* |CMake Error at )[^\n]{0,300}\.(?:o|obj)\b"
_MACOS = r"\bmacosx-(\d\d(?:\.\d{1,2})?)-|-mmacosx-version-min=(\d\d(?:\.\d{1,2})?)"

_TRITON_MARKS = ("cuda_utils.c", "__triton_launcher", "hip_utils.c", "/triton/", "\\triton\\")
_TRITON_FILE = r"[\\/]tmp[a-z0-9_]{8}[\\/]main\.c$"  # in a folder of Python's tempfile
_TRITON_FRAMES = ("triton/runtime/build.py", "triton/common/build.py", "triton/backends/", "triton/compiler/")
_INDUCTOR_MARKS = ("torchinductor", "CppCompileError", "_inductor", ".main.cpp", "inductor/cpp_prefix")
_EXTENSION_MARKS = (
    "TORCH_EXTENSION_NAME", "torch/include", "torch\\include", "torch_extensions", "cpp_extension",
    "torch/lib", "torch\\lib", "op_builder", "Error compiling objects for", "Error building extension",
    "torch/csrc", "torch/extension.h", "ATen/", "nvcc' failed", "nvcc.exe' failed", "/.cache/flashinfer/",
)  # fmt: skip
# "train.py:12: error: …" of a logger or another language's compiler is none of ours
_OTHER_SOURCES = (
    ".py", ".yaml", ".yml", ".json", ".toml", ".sh", ".log", ".rs", ".go", ".ts", ".js", ".java", ".tex",
)  # fmt: skip


def _lines(transcript: Transcript) -> Iterator[tuple[Event, str]]:
    """Lines in which a build can speak, with their events; at most MAX_LINES."""
    count = 0
    kinds = (EventKind.BUILD, EventKind.LOG, EventKind.CRASH, EventKind.EXCEPTION)
    for event in transcript.events:
        if event.quoted or event.kind not in kinds or not any(word in event.text for word in _TRIGGERS):
            continue
        for line in event.text.split("\n"):
            if len(line) < 2_000 and any(word in line for word in _TRIGGERS):
                count += 1
                if count > MAX_LINES:
                    return
                yield event, line


def _error_in(event: Event, line: str) -> _Error | None:
    if pattern(_ECHOES).search(line):
        return None
    if " | " in line[:60]:  # "worker-1  | gcc: error: …": the prefix of docker compose and its kin
        line = line.partition(" | ")[2]
    for compiler, source in _PATTERNS:
        found = pattern(source).search(line)
        if found is None:
            continue
        text = found.group("text").strip()
        file = (found.group("file") or "").strip()
        return _Error(text, file, compiler, event.place(), event.id)
    return None


def _killed(transcript: Transcript) -> _Error | None:
    """A bare "Killed" under ninja's FAILED line, or above make's of an object: a compiler that was ended."""
    for event in transcript.events:
        if event.kind is EventKind.CRASH and event.text.split()[-1:] == ["Killed"] and not event.quoted:
            before = transcript.events[max(0, event.id - 3) : event.id]
            if any(other.kind is EventKind.BUILD and "FAILED: " in other.text for other in before):
                return _Error("Killed", "", "shell", event.place(), event.id)
            after = transcript.events[event.id + 1 : event.id + 4]
            if any(pattern(_NO_OBJECT).search(other.text[:2_000]) for other in after):
                return _Error("Killed", "", "shell", event.place(), event.id)
    return None


def _first(transcript: Transcript) -> _Error | None:
    """The first error; a shell's "not found" counts only when a build is in the text."""
    shell = _killed(transcript)
    for event, line in _lines(transcript):
        found = _error_in(event, line)
        if found is None or (event.kind is EventKind.EXCEPTION and found.compiler == "shell"):
            continue
        if found.file.endswith(_OTHER_SOURCES):
            continue
        if found.compiler != "shell":
            return shell if shell is not None and shell.event < found.event else found
        if shell is None and _kind(found.text)[0] in ("nvcc-missing", "compiler-missing"):
            shell = found
    return shell


def _kind(text: str) -> tuple[str, str]:
    """The kind of an error, and the header or library that it names, "" when it names none."""
    for kind, source in _KINDS:
        if (found := pattern(source).search(text)) is not None:
            return kind, next((value for value in found.groups() if value), "").strip("<>")
    return "code", ""


def _consumer(error: _Error, transcript: Transcript) -> str:
    near = f"{error.file}\n{transcript.events[error.event].text}"
    if any(mark in near for mark in _TRITON_MARKS) or pattern(_TRITON_FILE).search(error.file):
        return "triton"
    if any(mark in near for mark in _INDUCTOR_MARKS):
        return "inductor"
    if any(mark in near for mark in _EXTENSION_MARKS):
        return "extension"
    # Triton and Inductor run the compiler for one file and raise at once; an extension's log is longer
    around = transcript.events[max(0, error.event - 3) : error.event + 4]
    frames = " ".join(frame.file.replace("\\", "/") for other in around for frame in other.frames)
    raised = next((other for other in transcript.events[error.event + 1 :] if other.type), None)
    told = raised.text if raised and "CalledProcess" in str(raised.type) else ""
    if any(mark in frames for mark in _TRITON_FRAMES) or any(mark in told for mark in _TRITON_MARKS):
        return "triton"
    named = any(mark in other.text for other in transcript.events for mark in _EXTENSION_MARKS)
    return "extension" if named or _not_built(transcript) else "other"


def _not_built(transcript: Transcript) -> str | None:
    """Where pip says that it could not build a package that is compiled against torch."""
    for event in transcript.events:
        if event.quoted or "uild" not in event.text:
            continue
        names = " ".join(pattern(_NOT_BUILT).findall(event.text[:2_000]))
        if any(torch_extensions.is_package(name) for name in names.replace(",", " ").split()):
            return event.place()
    return None


def _macos_target(transcript: Transcript) -> str:
    """As distutils names its folders, or as the compiler is told."""
    told = (event.text for event in transcript.events if "macosx" in event.text and not event.quoted)
    found = next(filter(None, map(pattern(_MACOS).search, told)), None)
    return (found[1] or found[2]) if found is not None else ""


def _last_word(transcript: Transcript) -> tuple[str, str] | None:
    """Where setuptools says that a compiler failed, in a text that lacks the compiler's own errors.

    Also whose build it was: that of an extension where nvcc ran. None when nothing says so.
    """
    for event in transcript.events:
        if event.quoted:
            continue
        found = pattern(_COMMAND_FAILED).search(event.text)
        if found is None:
            continue
        return event.place(), "extension" if found[1] == "nvcc" and event.kind is EventKind.BUILD else "other"
    return None


@once_a_text
def _toolkit(transcript: Transcript) -> tuple[Fact, ...]:
    """The toolkit of a text in which no compiler reports an error."""
    version = build_setting.toolkit(transcript)
    return (Fact.known("build.toolkit", version, "text"),) if version else ()


@once_a_text
def _isolated(transcript: Transcript) -> tuple[Fact, ...]:
    place = build_setting.isolated(transcript)
    return (Fact.known("build.isolated", True, place),) if place else ()


def _untold(place: str, transcript: Transcript) -> tuple[Fact, ...]:
    """Of a build whose first error is not in the text: nothing is known of that."""
    names = ("first_error", "first_error_kind", "first_error_file", "installed_header")
    asked = build_setting.unpacked(transcript)
    known = Fact.known("build.unpacked", asked, place) if asked else Fact.absent("build.unpacked", place)
    return known, *(Fact.absent(f"build.{name}", place) for name in names)


@once_a_text
def _facts(transcript: Transcript) -> tuple[Fact, ...]:
    error = _first(transcript)
    if error is None:
        if (place := _not_built(transcript)) is not None:
            return *_untold(place, transcript), Fact.known("build.consumer", "extension", place)
        if (last := _last_word(transcript)) is not None:
            return *_untold(last[0], transcript), Fact.known("build.consumer", last[1], last[0])
        return _untold("text", transcript) if build_setting.words_lost(transcript) else ()
    kind, named = _kind(error.text)
    standard = standard_asked_for(transcript, error.event)
    if kind == "code" and standard is not None and lacks_name_of_std(error.text, standard):
        kind = "cxx-standard"
    found: list[Fact] = []

    def put(name: str, value: FactValue) -> None:
        if value in ("", None):
            found.append(Fact.absent(f"build.{name}", error.source))
        else:
            found.append(Fact.known(f"build.{name}", value, error.source))

    put("first_error", error.text)
    put("first_error_kind", kind)
    put("first_error_file", error.file)
    put("header", named if kind == "missing-header" else "")
    put("header_family", header_family(named) if kind == "missing-header" else "")
    put("library", named if kind == "missing-library" else "")
    put("consumer", _consumer(error, transcript))
    put("missing_member", next(iter(pattern(_MEMBER).findall(error.text)), ""))
    put("std_header", std_header(error.text, standard) if kind == "code" else "")
    put("extension", build_setting.extension(transcript))
    put("toolkit", build_setting.toolkit(transcript))
    put("conda_nvcc", build_setting.conda_nvcc(transcript) or "")
    put("math_libs", build_setting.math_libs(transcript))
    put("probe", build_setting.is_question(error.event, transcript))
    put("macos_target", _macos_target(transcript))
    put("unpacked", build_setting.unpacked(transcript))
    foreign = build_setting.is_installed(error.file)
    put("own_file", "" if foreign else error.file)
    put("installed_header", error.file if foreign else "")
    put("own_includer", build_setting.own_includer(error.event, transcript) if foreign else "")
    above = [event.text for event in transcript.events[: error.event]]
    put("unlisted", unlisted(named, error.file, above) or None if kind == "missing-header" else None)
    includer, header = into_cuda(above)
    put("cuda_header", header)
    put("includer", includer)
    if standard is not None:
        put("cxx_standard", standard)
    return tuple(found)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of the build in the text; the package alone when nothing reports an error of a compiler in it.

    They are the same for every event of a text, and rules ask for them event by event.
    """
    yield from build_package.facts(transcript)
    if build_setting.ninja_answers(transcript):
        yield "ninja_answers", True
    found = _facts(transcript)
    yield from found
    yield from _isolated(transcript)
    if not any(fact.name == "build.toolkit" for fact in found):
        yield from _toolkit(transcript)
