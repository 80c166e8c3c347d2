"""Facts out of the dynamic loader's messages: a library that is not there, a symbol or version it lacks.

The loader says which file it was loading, what it looked for and where. These three decide between a
missing package, a library of another CUDA that was found first, an old driver, an old C++ runtime and an
extension built for another torch; the sentence around them is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from torchdoctor.extract import Found, once_a_text, torch_extensions
from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import pattern

FACTS: dict[str, str] = {
    "dlopen.kind": "str: why the library did not load; missing-library, undefined-symbol, "
    "missing-version, bad-file, wrong-architecture, static-tls or dll-load-failed",
    "dlopen.library": "str: the library that is missing, or that lacks the version; no directory",
    "dlopen.library_path": "str: the same with its directory, when the message gives one",
    "dlopen.library_place": "str: system (under /lib or /usr/lib) or environment, by its directory",
    "dlopen.library_family": "str: whose library it is; cuda-driver, nvml, cuda-toolkit, cudnn, nccl, "
    "torch, torch-rocm, torchvision, torchaudio, mkl, openmp, python, cxx-runtime, libc or other",
    "dlopen.library_major": "int: first number after .so or in the DLL's name (libcudart.so.12 gives 12)",
    "dlopen.torch_part": "bool: the missing library is part of torch (libc10_hip.so); an extension wants it",
    "dlopen.symbol": "str: the symbol that is not defined, as linked (mangled)",
    "dlopen.symbol_strings": "str: the C++ ABI of the strings in that symbol, old or new (cxx11)",
    "dlopen.linked_here": "bool: the file that was being loaded was linked further up in the same text",
    "dlopen.symbol_cuda": "str: the CUDA release in the name of a symbol: __nvJitLinkCreate_12_8 is of 12.8",
    "dlopen.symbol_family": "str: whose symbol it is; torch-abi, nvjitlink, cublas, cuda-toolkit, cudnn, "
    "nccl, cuda-driver, nvml, rocm, mkl, openmp, python, cxx-runtime, device-code (its kernels) or other",
    "dlopen.version": "str: the symbol version that is wanted (GLIBCXX_3.4.29, libcublasLt.so.11)",
    "dlopen.version_family": "str: whose version it is; glibcxx, glibc, cxxabi or other",
    "dlopen.loader_file": "str: the file that was being loaded, as printed",
    "dlopen.win_error": "int: Windows error: 126 not found, 127 no such procedure, 1114 start routine "
    "failed, as printed or told by the words in the system's language",
    "dlopen.loads_alone": "bool: a command that was typed elsewhere imported torch alone, and got its answer",
    "dlopen.unlinked": "bool: a Python extension, none of torch's, lacks a function of CUDA's libraries "
    "without a version: it was not linked with the library at all",
    "dlopen.system_cuda": "bool: a torch that takes its CUDA libraries from the system, as NVIDIA's wheels "
    "for Jetson and builds from source do; absent where nothing shows it",
    "dlopen.loader_package": "str: the Python package that file belongs to (torch, mmcv, flash_attn_2_cuda)",
    "dlopen.loader_project": "str: what pip installs for that package, where an index has it: flash-attn",
    "dlopen.loader_name": "str: what that package is called: torchmcubes for torchmcubes_module",
    "dlopen.loader_source": "str: what pip installs it from, where that is a repository: git+https://…",
    "dlopen.loader_is_python": "bool: a package for Python: among those that pip installed, named as its "
    "extensions are, or in a folder of sources; false for a part of another program",
    "dlopen.in_checkout": "bool: that file lies in a folder of sources, and not among what pip installed",
}

# One of these stands in every message of the kind; all else is skipped without a regular expression.
_TRIGGERS = (
    ".so", ".dll", ".dylib", ".pyd", "undefined symbol", "ymbol not found", "DLL load failed",
    "load symbol", "GLIBC", "CXXABI", "[WinError ",
)  # fmt: skip

_ALONE = r"\bpython[\w.]{0,10} (?:-\w )?-c [\"']import torch\b"
_ANSWER = r"\d+\.\d+\.\d+\S{0,40}$|(?:True|False)$"
_FILE = r"(?P<file>[^\s'\"`(){},;]{1,300})"

# What is left for regular expressions, each with a literal that it cannot do without. Names of files stand
# before their marker and are taken from there by hand, since no pattern finds them in linear time.
_PATTERNS: dict[str, tuple[str, str]] = {
    # ld.so prints "relocation error: FILE: symbol …", dlopen the same without the first two words
    "relocation": (
        "not defined in file",
        r": symbol (?P<symbol>[^\s,]{1,300}),? version "
        r"(?P<version>\S{1,100}) not defined in file (?P<file>\S{1,300}) with link time reference",
    ),
    # glibc: dl-lookup.c, also printed by "symbol lookup error: FILE:" before main
    "undefined": (
        "undefined symbol",
        r"undefined symbol:? (?P<symbol>[^\s,'\")]{1,400})(?:, version (?P<version>[^\s,'\")]{1,100}))?",
    ),
    # dyld; newer macOS puts the symbol in parentheses and a sentence after it
    "mac-symbol": (
        "ymbol not found",
        r"[Ss]ymbol not found(?: in flat namespace)?:? [('‘]{0,2}(?P<symbol>[^\s)'’]{1,400})",
    ),
    "mac-loader": ("dlopen(", r"dlopen\((?P<loader>[^,()]{1,300}),"),
    "mac-expected": ("Expected in", r"Expected in:\s{1,10}(?:<[^>]{0,80}> )?(?P<file>\S{1,300})"),
    "mac-missing": ("Library not loaded", r"Library not loaded: (?P<file>\S{1,300})"),
    "cudnn-symbol": ("load symbol", r"(?:Cannot|Could not) load symbol (?P<symbol>\w{1,100})"),
    # the quotes and the words around the version are translated in some locales (dl-version.c)
    "version": ("_", r"(?P<version>(?:GLIBCXX|GLIBC|CXXABI|GOMP|OMP)_\d[\d.]{0,14})\s?['’«»”\"]"),
    # any library's own: NVIDIA names the version after the library, others after the project
    "version-of-file": ("' not found (", r"version `(?P<version>[A-Za-z][\w.]{1,80})'(?= not found \()"),
    "cudnn-load": ("Could not load library", rf"Could not load library {_FILE}"),
    "cudnn-any": ("Unable to load any of", r"Unable to load any of \{(?P<file>[^,}\s]{1,200})"),
    "cudnn-locate": ("Could not locate", r"Could not locate (?P<file>[\w-]{1,80}\.(?:dll|so[\w.]{0,20}))"),
    # CTranslate2, which opens CUDA's libraries itself
    "opened": ("cannot be loaded", r"Library (?P<file>\S{1,200}) is not found or cannot be loaded"),
    "not-in-path": ("not found in the system path", r"(?P<file>lib\w{1,60}\.so)\S{0,20} not found in"),
    "win-torch": ("Error loading", r"Error loading [\"'](?P<file>[^\"']{1,300})[\"'] or one of its"),
    "win-import": (
        "DLL load failed",
        r"DLL load failed(?: while importing (?P<loader>\w{1,100}))?(?::|\s*$)",
    ),
    "win-module": ("Could not find module", r"Could not find module ['\"](?P<file>[^'\"]{1,300})['\"] \(or"),
}

# Tried in this order: the first that fits says what kind of message it is.
_ORDER: tuple[tuple[str, str], ...] = (
    ("relocation", "undefined-symbol"),
    ("undefined", "undefined-symbol"),
    ("mac-symbol", "undefined-symbol"),
    ("cudnn-symbol", "undefined-symbol"),
    (": cannot allocate memory in static TLS block", "static-tls"),
    ("incompatible architecture", "wrong-architecture"),
    (": file too short", "bad-file"),
    (": invalid ELF header", "bad-file"),
    (": wrong ELF class", "bad-file"),
    (": cannot enable executable stack", "bad-file"),
    ("version", "missing-version"),
    ("version-of-file", "missing-version"),
    ("cudnn-load", "missing-library"),
    ("cudnn-any", "missing-library"),
    ("cudnn-locate", "missing-library"),
    (": cannot open shared object file", "missing-library"),
    ("opened", "missing-library"),
    ("not-in-path", "missing-library"),
    ("mac-missing", "missing-library"),
    ("win-torch", "dll-load-failed"),
    ("win-import", "dll-load-failed"),
    ("win-module", "dll-load-failed"),
)

# What ends a file's name when it is read backwards from its marker.
_BREAKS = " \t\n'\"`(){},;"
_SUFFIXES = (".so", ".pyd", ".dll", ".dylib")
# CUDA's libraries that torch itself links: the first are inside of each wheel of 1.13, the others in packages
_SYSTEMS_IN_ANY = ("libcufft", "libcurand", "libcusolver", "libcusparse.", "libnvToolsExt", "libcupti")
_SYSTEMS = ("libcublas", "libcudart", "libcudnn", "libnvrtc")
# English sentences after a library's name that are not about a missing file.
_OTHER_SENTENCES = ("undefined", "version", "symbol", "in function", "warning")

# What Windows' own sentences hold, by language, for texts without the number.
_WINDOWS_WORDS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (127, ("specified procedure", "指定的程序", "procédure spécifiée", "angegebene Prozedur",
           "proceso especificado", "procedimiento especificado", "指定されたプロシージャ",
           "указанная процедура", "지정된 프로시저", "procedimento especificado", "procedura specificata",
           "określonej procedury")),
    (1114, ("initialization routine failed", "初始化例程", "routine d’initialisation", "初始化常式",
            "routine d'initialisation", "Initialisierungsroutine", "rutina de inicialización",
            "初期化ルーチン", "программе инициализации", "초기화 루틴", "rotina de inicialização",
            "routine di inizializzazione")),
    (126, ("specified module", "指定的模块", "指定的模組", "module spécifié", "angegebene Modul",
           "módulo especificado", "指定されたモジュール", "указанный модуль", "지정된 모듈",
           "modulo specificato", "określonego modułu", "one of its dependencies")),
)  # fmt: skip


def _version_family(version: str) -> str:
    for start, family in (("GLIBCXX_", "glibcxx"), ("GLIBC_", "glibc"), ("CXXABI_", "cxxabi")):
        if version.startswith(start):
            return family
    return "other"


def _windows_error(text: str) -> int | None:
    """Number of the Windows error: printed, or told by the sentence in the system's language."""
    printed = re.search(r"WinError (\d+)", text)
    if printed is not None:
        return int(printed.group(1))
    for number, words in _WINDOWS_WORDS:
        if any(word in text for word in words):
            return number
    return None


def _clean(path: str) -> str:
    return path.strip("'\"`‘’«»(){},;").rstrip(".:")


def _file_before(text: str, end: int) -> str:
    """The file name that ends at ``end``; "" when what stands there is none."""
    start = end
    while start > max(0, end - 300) and text[start - 1] not in _BREAKS:
        start -= 1
    name = text[start:end]
    return name if any(suffix in name for suffix in _SUFFIXES) else ""


def _search(text: str) -> tuple[str, dict[str, str]] | None:
    """Kind of the message and its parts: file, loader, symbol, version."""
    for name, kind in _ORDER:
        if name not in _PATTERNS:
            end = text.find(name)
            if end < 0:
                continue
            if kind == "wrong-architecture":
                return kind, _groups("mac-loader", text)
            file = _file_before(text, end)
            if file:
                return kind, {"file": file}
            continue
        if _PATTERNS[name][0] not in text:
            continue
        found = pattern(_PATTERNS[name][1]).search(text)
        if found is None:
            continue
        parts = {key: value for key, value in found.groupdict().items() if value}
        if name == "undefined":
            parts["loader"] = _file_before(text, max(0, found.start() - len(": ")))
        elif name == "relocation":
            parts["loader"] = _file_before(text, found.start())
        elif name == "mac-symbol":
            parts.update(_groups("mac-loader", text))
            parts.update(_groups("mac-expected", text))
        elif name == "mac-missing":
            parts.update(_groups("mac-loader", text))
        elif kind == "missing-version":
            parts.update(_around_version(text, found.start(), found.end()))
            if "file" not in parts and "loader" not in parts:
                continue
        return kind, parts
    file = _local_missing(text)
    return ("missing-library", {"file": file}) if file else None


def _groups(name: str, text: str) -> dict[str, str]:
    found = pattern(_PATTERNS[name][1]).search(text) if _PATTERNS[name][0] in text else None
    return {key: value for key, value in found.groupdict().items() if value} if found else {}


def _around_version(text: str, start: int, end: int) -> dict[str, str]:
    """The library before ": version …" and the file in the parentheses after it."""
    parts: dict[str, str] = {}
    colon = text.rfind(": ", max(0, start - 40), start)
    library = _file_before(text, colon) if colon >= 0 else ""
    if library:
        parts["file"] = library
    opened = text.find("(", end, end + 60)
    if opened >= 0:
        words = text[opened + 1 : opened + 400].partition(")")[0].split()
        named = [word for word in words if "/" in word or "\\" in word or ".so" in word] or words[-1:]
        if named:
            parts["loader"] = named[0]
    return parts


def _local_missing(text: str) -> str:
    """The library of a "cannot open shared object file" in another language; "" for all other texts.

    The message begins with the library's name, and "cannot open …: No such file" has two clauses in
    every language of glibc.
    """
    for opening in ("ImportError('", "OSError('", ""):
        start = text.find(opening)
        if start < 0:
            continue
        file, colon, rest = text[start + len(opening) : start + len(opening) + 700].partition(": ")
        name = file.rpartition("/")[2]
        if not colon or not name.startswith("lib") or ".so" not in name or set(file) & set(_BREAKS):
            continue
        first = rest.partition("\n")[0]
        if ": " in first and not first.startswith(_OTHER_SENTENCES):
            return file
    return ""


def _linked_here(loader: str, event: Event, transcript: Transcript) -> bool:
    """Does a command of the linker above the event write the file?"""
    name = loader.replace("\\", "/").rpartition("/")[2]
    above = (one.text for one in transcript.events[: event.id] if name in one.text)
    written = rf"-shared\b.{{0,9000}}? -o \S{{0,300}}?(?<![\w.-]){re.escape(name)}(?!\S)"
    return any(re.search(written, text, re.DOTALL) is not None for text in above)


def extract(event: Event, transcript: Transcript) -> Iterator[Found]:
    """Facts of one message of the dynamic loader; nothing when the event is not one."""
    text = event.text
    if not any(trigger in text for trigger in _TRIGGERS):
        return
    hit = _search(text) or _unnamed(event)
    if hit is None:
        return
    from torchdoctor.extract.linked_names import (
        library_family,
        major_version,
        string_abi,
        symbol_cuda,
        symbol_family,
        unlinked,
    )

    kind, groups = hit
    yield "kind", kind
    library = _clean(groups.get("file") or "")
    version = groups.get("version") or ""
    if not library and kind == "undefined-symbol" and ".so" in version:
        library = version  # "version libcublasLt.so.11": the symbol's version is named after its library
    loader = _clean(groups.get("loader") or "")
    if kind in ("bad-file", "static-tls", "dll-load-failed") and not loader:
        loader = library
    if not loader and kind == "missing-library":
        loader = _loaded_by(event)
    yield from _named("library", library)
    if library:
        base = library.replace("\\", "/").rsplit("/", 1)[-1]
        if base != library:
            yield "library_path", library
            system = library.startswith(("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"))
            yield "library_place", "system" if system else "environment"
        yield "library_family", library_family(base)
        major = major_version(base)
        if major is not None:
            yield "library_major", major
        if kind == "missing-library":
            yield "torch_part", base.startswith(("libtorch", "libc10", "torch_", "c10"))
            yield "system_cuda", _wants_systems(event, base) or None
    symbol = groups.get("symbol") or ""
    yield from _named("symbol", symbol)
    if symbol:
        yield from (("symbol_family", symbol_family(symbol)), ("symbol_cuda", symbol_cuda(symbol)))
        yield "symbol_strings", string_abi(symbol)
    yield from _named("version", version)
    if version:
        yield "version_family", _version_family(version)
    if kind == "dll-load-failed":
        number = _windows_error(text)
        if number is not None:
            yield "win_error", number
        yield "loads_alone", _loads_alone(transcript)
    yield from _named("loader_file", loader)
    yield from _whose(loader)
    yield "linked_here", bool(loader) and _linked_here(loader, event, transcript)
    if symbol and loader:
        yield "unlinked", not version and unlinked(symbol, loader)


@once_a_text
def _loads_alone(transcript: Transcript) -> bool:
    """Was torch imported by a command of its own, whose next line is a version or a truth value?"""
    return any(
        pattern(_ALONE).search(typed.text) is not None and pattern(_ANSWER).match(told.text) is not None
        for typed, told in pairwise(transcript.events)
        if "import torch" in typed.text and told.kind is EventKind.LOG
    )


def _whose(loader: str) -> Iterator[Found]:
    from torchdoctor.extract.linked_names import in_checkout, is_of_python, loader_package

    if loader:
        package, own = loader_package(loader), in_checkout(loader)
        yield from (("loader_package", package), ("in_checkout", own))
        yield "loader_project", "" if own else torch_extensions.on_index(package)
        yield from (
            ("loader_name", torch_extensions.of_module(package) or package),
            ("loader_source", None if own else torch_extensions.repository(package) or None),
            ("loader_is_python", own or is_of_python(loader)),
        )


def _named(name: str, value: str) -> Iterator[Found]:
    if not value:
        yield name, None
    elif name == "library":
        yield "library", value.replace("\\", "/").rsplit("/", 1)[-1]
    else:
        yield name, value


def _wants_systems(event: Event, library: str) -> bool:
    """Is it torch's own first load that fails, without the search in packages that torch 1.13 and later add?

    Wheels up to 1.12 carry CUDA inside; those of 1.13 raise again for what is not cuBLAS, and take these four
    from packages; those of 2.0 and later report any of CUDA's libraries as not found on sys.path.
    """
    functions = {frame.function for frame in event.frames if frame.package == "torch"}
    if "_load_global_deps" not in functions or "_preload_cuda_deps" in functions:
        return False
    if library.startswith(_SYSTEMS_IN_ANY):
        return True
    again = any(frame.code.startswith("raise err") for frame in event.frames)
    return not again and library.startswith(_SYSTEMS)


def _unnamed(event: Event) -> tuple[str, dict[str, str]] | None:
    """Windows names no file when a library lacks a procedure: the package that loads it tells."""
    if "[WinError 127]" not in event.text or not any("ctypes" in frame.file for frame in event.frames):
        return None
    return "dll-load-failed", {"loader": _loaded_by(event)}


def _loaded_by(event: Event) -> str:
    """The Python file whose import failed: the loader does not say which library wanted the missing one."""
    for frame in reversed(event.frames):
        path = frame.file.replace("\\", "/")
        if "importlib" not in path and "ctypes" not in path and not path.endswith("torch/_ops.py"):
            return frame.file
    return ""
