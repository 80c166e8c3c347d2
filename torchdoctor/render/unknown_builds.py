"""The next step where no rule knows why a build or an installation failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdoctor.model import Reading

_FIRST_ERROR = (
    "Read the output of the build from this error on and correct it first; errors in other places may have "
    "causes of their own."
)


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
