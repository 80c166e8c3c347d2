"""The package that a command is about, where the log names it: by its library, its frames, or pip's words.

Rules write PACKAGE for a compiled package that only the log or the reader knows, and ``pip install … .`` for
building from a folder. What no index has under a name stays PACKAGE: another project may be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from torchdoctor.engine.conditions import as_text
from torchdoctor.extract import torch_extensions
from torchdoctor.model import Fact

_NAMED_BY = ("dlopen.loader_package", "kernel.package", "event.raised_in", "build.package", "match.package")
_BLANK = r"(?<![\w$.-])PACKAGE(?![\w=])"
_FOLDER = r"(\bpip install (?:-(?!e )\S+ )*)\.(?=\s|$)"
# the folder of the reader's that pip builds
_LOCAL = r"(?m)^\s*Processing (?:\./)?((?!/)(?:[\w+-][\w.+-]*/){0,9}[\w+-][\w.+-]*?)/?(?: \(.*\))?\s*$"
# … by its whole path, as pip tells it of another folder than the one it runs in, too
_ABSOLUTE = r"(?m)^\s*Processing (/\S+?)/?(?: \(.*\))?\s*$"
_PASSING = ("/tmp/", "/private/", "/var/")
_ARCHIVE = (".whl", ".gz", ".zip", ".bz2", ".tar")
_SETUP = r"(?<= )(?<!python )(?<!python3 )(?=(?:setup\.py|CMakeLists\.txt)(?:[\s;]|$))|(?<=rm -rf )(?=build )"
_CLONE = (
    r"git clone (?:--\w+ (?:\d+ |v?[\d.]+ )?)*https?://\S+/(?P<name>[\w.-]+?)(?:\.git)? && cd (?P=name) && "
)
# what lies in the folder of a clone; sources of a wheel's kernels are named by the machine that compiled them
_IN_CLONE = r"(?P<folder>(?:/|~/)(?:[\w.+-]+/){0,20}NAME)/(?:NAME/|build/|setup\.py\b)"
_NO_CLONE = ("-packages", ".egg", "/pip-", "/.cache/", "/__w/", "/runner/")
# torch.utils.cpp_extension.load and load_inline; what shows that CMake was started by an installer
_WHILE_RUNNING = ("cpp_extension.py:_jit_compile", "cpp_extension.py:load")
_EXTENSIONS = "torch_extensions/"  # where it builds
_SET = r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*) )+(?=pip install )"
_BY_PIP = ("setup.py", "pip ", "site-packages/setuptools", "running build", "pyproject")
# sources are asked for: no wheel of the release will do
_FROM_SOURCE = ("--no-binary", "TORCH_CUDA_ARCH_LIST=", "FORCE_CUDA=")
# one module of two packages: mmcv with operators is mmcv-full in 1.x
_MMCV = (
    '$(python -c \'import mmcv; v = mmcv.__version__; print(("mmcv-full==" if v < "2" else "mmcv==") + v)\')'
)


def of_log(ask: Callable[[str], Fact]) -> str:
    """What pip calls the package of the message; "" where nothing names one that an index has."""
    names = (torch_extensions.on_index(as_text(ask(name))) for name in _NAMED_BY)
    return next(filter(None, names), "dgl" if of_dgl(ask) else "")


def of_dgl(ask: Callable[[str], Fact]) -> bool:
    """Does the message name a library by its path in the folder of DGL?"""
    return "dgl" in re.split(r"[\\/]", as_text(ask("match.library")))


def named(command: str, ask: Callable[[str], Fact]) -> str:
    """The command with the package of the log, its clone, and what pip was asked for in place of a folder."""
    if "git clone " in command:
        command = _in_clone(command, ask)
    if "setup.py" in command or " ." in command:
        command = _in_folder(command, ask)
    if " ." in command and re.search(_FOLDER, command):
        asked = _fetched(ask)
        if asked:
            return re.sub(_FOLDER, rf"\1--no-cache-dir {asked}", command)
        return _again(command, ask)
    command = _as_asked(command, ask)
    if "pip show PACKAGE" in command and ask("dlopen.loader_is_python").value is False:
        command = command.partition("; pip show PACKAGE")[0]  # of a part of another program pip knows nothing
    if "pip show PACKAGE" in command and (installed := as_text(ask("dlopen.loader_package"))):
        told = torch_extensions.of_module(installed) or installed
        told = "mmcv mmcv-full" if told == "mmcv" else told
        command = command.replace("pip show PACKAGE", f"pip show {told}")
    package = of_log(ask) if "PACKAGE" in command and re.search(_BLANK, command) else ""
    if package:
        module = package.replace("-", "_")
        command = re.sub(r"\bimport PACKAGE\b", f"import {module}", command)
        command = re.sub(r"\bPACKAGE\.__file__", f"{module}.__file__", command)
        if package == "mmcv" and "pip install " in command:
            command = command.replace("--no-binary PACKAGE", "--no-binary mmcv,mmcv-full")
            package = _MMCV
        command = re.sub(_BLANK, lambda _: package, command)
    return _compiled(command)


def _as_asked(command: str, ask: Callable[[str], Fact]) -> str:
    """The command with the release of the package, and for the environment, that the reader asked for."""
    if "uv pip install " in command and re.search(
        r"\buv pip install (?:-\S+ )*--system ", as_text(ask("log.text"))
    ):
        command = command.replace("uv pip install ", "uv pip install --system ")
    head, _, last = command.rpartition(" ")
    if not head.endswith(" --no-build-isolation"):
        return command
    word = as_text(ask("build.requirement"))
    return f"{head} {word}" if "=" in word and torch_extensions.normal(last) in word.lower() else command


def _in_clone(command: str, ask: Callable[[str], Fact]) -> str:
    """The command in the clone of the reader's that the log shows, in place of a second one."""
    clone = re.search(_CLONE, command)
    if clone is None:
        return command
    form = _IN_CLONE.replace("NAME", re.escape(clone["name"]))
    for found in re.finditer(form, as_text(ask("log.text"))):
        if not any(part in found["folder"] for part in _NO_CLONE):
            return command.replace(clone[0], f"cd {found['folder']} && ")
    return command


def _in_folder(command: str, ask: Callable[[str], Fact]) -> str:
    """The command for the one folder below the reader's own that pip was building."""
    text = as_text(ask("log.text"))
    found: set[str] = set()
    if "Processing " in text:
        found = {name for name in re.findall(_LOCAL, text) if not name.endswith(_ARCHIVE)}
        whole = {path for path in re.findall(_ABSOLUTE, text) if not path.endswith(_ARCHIVE)}
        found = found or {path for path in whole if not path.startswith(_PASSING)}
    if len(found) != 1 or _fetched(ask):
        return command
    folder = "".join(found)
    given = folder if folder.startswith("/") else f"./{folder}"
    return re.sub(_FOLDER, lambda one: f"{one[1]}{given}", re.sub(_SETUP, lambda _: f"{folder}/", command))


def _fetched(ask: Callable[[str], Fact]) -> str:
    """What pip fetched and did not build, with the version it was asked for; "" for the reader's folder."""
    asked, word = as_text(ask("build.unpacked")), as_text(ask("build.requirement"))
    name = re.match(r"[\w.-]*", word.strip('"'))
    same = name is not None and torch_extensions.normal(name[0]) == torch_extensions.normal(asked)
    return word if same else asked


def _again(command: str, ask: Callable[[str], Fact]) -> str:
    """The command with the reader's kind of build: a program that compiles while it runs, or CMake."""
    text = as_text(ask("log.text"))
    if any(call in as_text(ask("event.frames")) for call in _WHILE_RUNNING) or _EXTENSIONS in text:
        first, _, last = command.rpartition(" && ")
        settings = re.match(_SET, last) if first else None
        if settings is not None:  # the program has its own launcher, which is not this command's
            return f"{first} && export {settings[0].strip()}"
        return re.sub(_FOLDER, "python train.py", command)
    if "CMakeLists.txt:" in text and not any(word in text for word in _BY_PIP):
        return re.sub(_FOLDER, "cmake -S . -B build-new", command)
    return command


def _compiled(command: str) -> str:
    """The command with the setting by which the package at its end is built here, where it asks for that."""
    if not any(word in command for word in _FROM_SOURCE):
        return command
    forced = torch_extensions.forced_build(torch_extensions.on_index(command.rpartition(" ")[2]) or "")
    return command.replace("pip install", f"{forced} pip install", 1) if forced else command
