"""The next step of a failure that no rule knows where the system tells it: who ends processes there, how
something is installed, what an image's build can do."""

from __future__ import annotations

import re

from torchdoctor.model import Reading, ReadingKind

_CLUSTERS = {
    "Slurm": "Ask Slurm why, with the number of the job: `sacct -j JOB -o JobID,State,ExitCode,MaxRSS`.",
    "Kubernetes": "Ask Kubernetes why: `kubectl describe pod` names the reason under Last State.",
}
_ASK_KERNEL = (
    "Ask the kernel whether memory ran out: `sudo dmesg -T | grep -iE 'out of memory|killed process'`."
)
# signals that a kernel short of memory does not send
_ASKED_TO: dict[str | None, str] = {
    "SIGTERM": (
        "Look who asked it to end: a `kill` or `timeout` of yours, another user, a limit of the machine, or "
        "its restart (`last -x shutdown reboot | head -3`). The kernel sends SIGKILL when memory runs out."
    ),
    "SIGHUP": (
        "Start it so that it outlives the terminal: in tmux or screen, or with `nohup` and `&`. SIGHUP comes "
        "when the connection or the window is closed."
    ),
}
# where Homebrew keeps what it has installed: the folder is called after the formula
_HOMEBREW = r"/(?:usr/local|opt/homebrew)/opt/(?P<formula>[\w.@+-]+)/"

# a program -> (its package for apt and Homebrew, for winget), where that is called so everywhere
_PACKAGES = {
    "ffmpeg": ("ffmpeg", "Gyan.FFmpeg"),
    "ffprobe": ("ffmpeg", "Gyan.FFmpeg"),
    "git": ("git", "Git.Git"),
    "sox": ("sox", "ChrisBagwell.SoX"),
}
# "please set KNOBS_FORCE_TURN=1": a value that can be typed as it stands, and no "=0/1" or "=/path/to/knobs"
_ASSIGNED = r"(?<![\w$-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=(['\"`]?)(\w[\w.+-]*)\2(?=[.,;:!)'\"`]*(?:\s|$))"


def by_variable(asks: str, system: str | None) -> str:
    """The system's command that sets the one variable a message asks for; "" where it asks for others."""
    found = set(re.findall(_ASSIGNED, asks))
    if len(found) != 1 or asks.count("=") != 1:
        return ""
    ((name, _, value),) = found
    value = value.rstrip(".")
    if system == "dockerfile":
        return f"Set what the message asks for in the Dockerfile, above that step: `ENV {name}={value}`."
    typed = f"$env:{name} = '{value}'" if system == "windows" else f"export {name}={value}"
    return (
        f"Set what the message asks for, `{typed}`, in the shell in which the program starts; of a container "
        f"with `-e {name}={value}` behind docker run."
    )


def installed_by(name: str, system: str) -> str:
    """The command of the system that installs a program, as a part of a sentence; "" for another program."""
    if name not in _PACKAGES:
        return ""
    package, winget = _PACKAGES[name]
    told = {"macos": f"brew install {package}", "windows": f"winget install {winget}"}
    return f", `{told.get(system, f'apt-get install {package}')}`"


def step_on(system: str | None, item: Reading) -> str:
    """The step on this system; "" where it is the one that all have."""
    if system == "dockerfile":
        return _image_step(item)
    if system == "macos" or (item.name or "").endswith(".dylib"):
        return _mac_step(item)
    return _windows_step(item) if system == "windows" else ""


def when_ended(item: Reading) -> str:
    """Whom to ask why a process was ended from outside, by who ended it and with which signal."""
    return _CLUSTERS.get(item.owner or "") or _ASKED_TO.get(item.name, _ASK_KERNEL)


def by_hand(system: str | None) -> str:
    """How a failure is looked at where no debugger can be started; "" where one can."""
    if system != "dockerfile":
        return ""
    return (
        "Build up to the line before, and run the command of this one by hand in that image: "
        "`docker run -it IMAGE bash`."
    )


def _image_step(item: Reading) -> str:
    """The lines for the Dockerfile of an image whose build fails; "" where they are what all do."""
    name, kind, problem = item.name or "", item.kind, item.problem
    installs = "`RUN apt-get update && apt-get install -y PACKAGE`"
    if kind is ReadingKind.LIBRARY_MISSING and problem != "cuda":
        return (
            f"Install what brings {name} before that step, {installs}: `apt-file search {name}` names the "
            "package on Debian and Ubuntu."
        )
    if kind is ReadingKind.MODULE_MISSING:
        top = name.partition(".")[0]
        return (
            f"Install the package that brings {top} in a RUN line before that step, into the same Python: "
            "what a later line, or the host, installs is not there."
        )
    if kind is ReadingKind.PROGRAM_MISSING or problem == "missing-tool":
        return f"Install {name} before that step, {installs}; its package may have another name."
    if problem in ("missing-header", "missing-library") and not item.wants:
        return f"Install the development files that bring {name} before that step, {installs}."
    if kind is ReadingKind.BUILD_FAILED and problem == "cmake-too-new":
        return f"Let CMake go on, with `ENV CMAKE_POLICY_VERSION_MINIMUM={name}` before that step."
    if kind is ReadingKind.INSTALL_FAILED and problem == "setup-module-here":
        pip = f"{item.place} -m pip" if item.place else "pip"
        return (
            f"Install {name} in a line before that step, `RUN {pip} install {name}`, and leave the "
            "step as it is: without isolation pip brings no tools itself."
        )
    if kind is ReadingKind.INSTALL_FAILED and problem == "managed":
        return "Start from an image whose Python is not the system's, `FROM python:3.12`, or make a venv."
    return ""


def _mac_step(item: Reading) -> str:
    """The step on macOS, where it is another than on Linux; else ""."""
    name = item.name or ""
    if item.kind is ReadingKind.PROGRAM_MISSING and (brewed := installed_by(name, "macos")):
        return f"Install {name}{brewed}; `which {name}` has to find it in the same terminal."
    if item.kind is ReadingKind.LIBRARY_MISSING and not name.lower().endswith(".dll"):
        formula = re.match(_HOMEBREW, item.place or "")
        if formula is not None:
            return (
                f"Install it with Homebrew, `brew install {formula['formula']}`: the file is looked for at "
                f"{item.place}."
            )
        return (
            f"Look whether {name} is there, `mdfind -name {name}`, and in which folders it is looked for, "
            "`otool -L` and `otool -l` of the file that needs it; install again the package that brings it."
        )
    if item.kind is ReadingKind.NATIVE_CRASH and item.name in ("SIGILL", "SIGBUS"):
        return (
            "Read the report of the crash, `ls -t ~/Library/Logs/DiagnosticReports | head -3`: it names the "
            "library and the function. `uname -m` and `file` show whether both are made for this processor."
        )
    if item.kind is ReadingKind.ENDED_OUTSIDE and item.owner not in _CLUSTERS and item.name != "SIGTERM":
        return "Watch its memory in Activity Monitor while it runs: macOS ends what takes more than there is."
    if item.kind is ReadingKind.BUILD_FAILED and item.problem == "missing-header" and not item.wants:
        return (
            f"Install what brings {name} with Homebrew and name its folder in CPATH, or Apple's own headers, "
            "`xcode-select --install`, or fetch the project's submodules."
        )
    if item.kind is ReadingKind.BUILD_FAILED and item.problem == "missing-library":
        return f"Find it, `mdfind -name lib{name}.dylib`, and name its folder in LIBRARY_PATH."
    return ""


def _windows_step(item: Reading) -> str:
    """The step on Windows, where it is another than on Linux; else ""."""
    name = item.name or ""
    if item.kind is ReadingKind.PROGRAM_MISSING:
        return (
            f"Install {name}{installed_by(name, 'windows')}, or put its folder on PATH, and open a new "
            f"terminal: `where.exe {name}` has to find it there."
        )
    if item.kind is ReadingKind.ENDED_OUTSIDE and item.owner not in _CLUSTERS:
        return "Watch its memory in the Task Manager, under Details, Commit size, while it runs."
    if item.kind is ReadingKind.BUILD_FAILED and item.problem == "missing-header" and not item.wants:
        return (
            f"Install what brings {name} and name its folder in INCLUDE, or fetch the project's submodules."
        )
    if item.kind is ReadingKind.BUILD_FAILED and item.problem == "missing-library":
        return f"Find {name}.lib, `where.exe /r C:\\ {name}.lib`, and name its folder in LIB."
    if item.kind is ReadingKind.INSTALL_FAILED and item.problem in ("managed", "permission"):
        return (
            "Install into an environment of your own: `py -m venv .venv`, then "
            "`.venv\\Scripts\\python -m pip install …` with the same arguments."
        )
    return ""
