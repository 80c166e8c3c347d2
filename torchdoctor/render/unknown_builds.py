"""What a failed build or installation says by itself, and the next step where no rule knows why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdoctor.model import Reading

_FIRST_ERROR = (
    "Read the output of the build from this error on and correct it first; errors in other places may have "
    "causes of their own."
)


def of_build(item: Reading) -> str:
    """What a build says that failed."""
    code = f", code of {item.owner}" if item.owner else ""
    if item.problem == "missing-header":
        included = f", which {item.place} includes{code}" if item.place else ""
        comes = f"; it comes with {item.wants}" if item.wants else ""
        return f"The compiler does not find the header {item.name}{included}{comes}."
    sentence = {
        "missing-library": f"The linker does not find the library {item.name}.",
        "missing-tool": f"The build calls {item.name}, which is not there.",
        "missing-package": f"CMake does not find {item.name}, which the build needs.",
        "cmake-too-new": f"This CMake no longer reads projects that were written for one before {item.name}.",
        "cmake-too-old": f"The project needs CMake {item.name} or later.",
        "undefined-reference": "The linker finds no definition of a function that the code uses.",
        "out-of-memory": "The compiler ran out of memory.",
        "missing-file": f"make needs the file {item.name}, which is not there.",
        "unsaid": "A compiler or linker failed; what it said is not in this text.",
        "cmake": f"CMake stopped in {item.place or 'its configuration'}{code}.",
    }.get(item.problem or "")
    if sentence is not None:
        return sentence
    if item.problem == "compiler-too-old" and item.name:
        return f"CMake knows no flag for {item.name} of this compiler: the compiler, or CMake, is too old."
    return f"The compiler stopped at {item.place}{code}." if item.place else "The build stopped there."


def of_installation(item: Reading) -> str:
    """What an installation says that failed."""
    name = item.name or "a package"
    if item.problem == "conflict" and item.wants:
        return f"{name} needs {item.wants}, and that excludes {item.got}."
    return {
        "no-version": f"There is no release of {name} for this Python and system, or none of that version.",
        "none-offered": f"The index offers no release of {name} at all, or is not reached.",
        "no-index": f"pip was told to ask no index, and the folders it may look into have no {name}.",
        "no-index-build": f"pip builds in an environment of its own, and may ask no index for {name}.",
        "other-index": f"The only index that was asked, {item.place}, has no {name}.",
        "managed": "This Python belongs to the system, which keeps pip out of it.",
        "permission": "pip may not write to the folder of this Python's packages.",
        "space": "The disk is full.",
        "setup-module": f"The build wants the module {name}, which its own build environment does not have.",
        "setup-module-here": f"The build wants the module {name}, which the environment it runs in lacks.",
        "setup": f"The setup script of {name} raised it, while pip or uv asked how to build it.",
        "other-python": f"Releases are passed over because they need another Python: {name}.",
        "conflict": "The packages that were asked for need versions that exclude each other.",
        "metadata": f"The setup script of {name} failed; what it said is not in this text.",
        "build": f"Building {name} failed; what the build itself said is not in this text.",
    }.get(item.problem or "", "pip could not install what was asked for.")


def build_step(item: Reading) -> str:
    """For a build that failed of something that no rule knows."""
    name = item.name
    if item.problem == "missing-header" and item.wants and item.wants.endswith(" alone"):
        return (
            f"Build without this file where the build has an option for it, or take a release of "
            f"{item.owner or 'the package'} that has code for this processor: no package can bring {name}."
        )
    if item.problem == "missing-header" and item.wants == "the C++ standard library":
        return (
            "Look where the compiler searches, `c++ -E -x c++ -v /dev/null`, and install the C++ compiler of "
            "this system, or name another in CXX."
        )
    step = {
        "missing-header": (
            f"Install the development files that bring {name} (`apt-file search {name}` finds the package on "
            "Debian and Ubuntu), or fetch the project's submodules."
        ),
        "missing-library": (
            f"Find it, `find / -name 'lib{name}.*' 2>/dev/null`, and name its folder in LIBRARY_PATH; if "
            "it is nowhere, install its development package."
        ),
        "missing-tool": f"Install {name}, or put its folder on the PATH of the shell that builds.",
        "missing-package": (
            f"Install the development files of {name}, or name their folder in CMAKE_PREFIX_PATH."
        ),
        "cmake-too-new": (
            f"Tell CMake to go on, `export CMAKE_POLICY_VERSION_MINIMUM={name}`, or build with CMake 3."
        ),
        "cmake-too-old": "Install a newer CMake into this environment: `pip install -U cmake`.",
        "compiler-too-old": (
            "Look at `cmake --version` and `c++ --version`, and name a newer compiler in CC and CXX."
        ),
        "missing-file": (
            "Look where that file is, and name its folder to the build (CUDA_HOME, CMAKE_PREFIX_PATH); a "
            "build folder of another machine is best removed first."
        ),
        "unsaid": f"Build it again with one job and keep the whole output{_built_again(name)}.",
        "out-of-memory": "Build with one job at a time: `MAX_JOBS=1`.",
        "cmake": (
            "Read CMake's output above and below this line; what its tests of the compiler said stands in "
            "CMakeFiles/CMakeError.log or CMakeConfigureLog.yaml of the build folder."
        ),
    }.get(item.problem or "")  # fmt: skip
    if step is not None:
        return step
    return f"{_FIRST_ERROR} One job keeps the output in order{_built_again(name)}." if name else _FIRST_ERROR


def _built_again(asked: str | None) -> str:
    """The command that builds what pip was asked for, as a part of a sentence; "" where nothing names it."""
    return f": `MAX_JOBS=1 pip install -v --no-cache-dir {asked}`" if asked else ""


def installation_step(item: Reading) -> str:
    """For an installation that failed so."""
    name = re.split(r"[<>=!~\[; ]", item.name or "", maxsplit=1)[0]
    if item.problem in ("managed", "permission"):
        return "Install into an environment of your own: `python3 -m venv .venv && . .venv/bin/activate`."
    pip = f"{item.place} -m pip" if item.place else "pip"
    step = {
        "none-offered": f"Check the name, and that the index is reached: `pip index versions {name}`.",
        "no-index": (
            f"Put its wheel into a folder, `pip download {name} -d wheels` where there is a network, and add "
            "`--find-links wheels`; or leave --no-index out."
        ),
        "no-index-build": (
            f"Build with what is installed, {name} included: `pip install --no-build-isolation {item.owner}`."
        ),
        "other-index": (
            f"Install {name} from PyPI: `pip install {name}` without --index-url, or name torch's index as "
            "--extra-index-url beside PyPI. That of torch's wheels has what torch needs, and little else."
        ),
        "space": "Make room, `df -h` shows where: pip's own cache goes with `pip cache purge`.",
        "setup": (
            "Take another release of it, whose setup script runs with this Python and setuptools: an old one "
            "wants older ones, a new one may bring a wheel."
        ),
        "setup-module": (
            f"Install {name} first and build without isolation: `pip install {name} && pip install "
            f"--no-build-isolation {item.owner or '.'}`."
        ),
        "setup-module-here": (
            f"Install {name} into the environment that builds, and start the build again: `{pip} install "
            f"{name} && {pip} install --no-build-isolation {item.owner or '.'}`. Without isolation pip "
            "brings no tools itself."
        ),
    }.get(item.problem or "")
    if step is not None:
        return step
    if item.owner == "conda" and item.problem == "no-version":
        return f"Ask the channels which builds there are: `conda search -c conda-forge {name or 'PACKAGE'}`."
    if item.problem == "no-version":
        return f"Ask which releases there are for this interpreter: `pip index versions {name}`."
    if item.problem == "other-python":
        return (
            "Take an interpreter that these releases accept, in an environment of its own, or ask for older "
            "ones; `python --version` shows the present one."
        )
    if item.problem == "conflict" and item.wants:
        where = f" ({item.place})" if item.place else ""
        return (
            f"Ask for another release of {item.owner}, or leave its version out{where}: pip then looks for "
            f"one that goes with {item.got}."
        )
    if item.problem == "conflict":
        return "Leave out the version of one of the packages that are named, so that another can be chosen."
    if item.problem == "build":
        asked = item.owner or name or "PACKAGE"
        return f"Read all that the build says, from its first error on: `pip install -v {asked}`."
    if item.problem == "metadata":
        return _setup_step(item.owner or name)
    return ""


def _setup_step(asked: str) -> str:
    """For a setup script that failed before anything was built, where the text lacks what it said."""
    shown = f"`pip install -v {asked or 'PACKAGE'}` shows what its setup script says"
    if "==" not in asked:
        return f"Read what it says, from its first error on: {shown}."
    return (
        "Install the tools of its time first, if it is an old release, `pip install 'setuptools<66' "
        f"'wheel<0.40' 'pip<24.1'`, then it with `--no-build-isolation {asked}`; or take its successor. "
        f"{shown}."
    )
