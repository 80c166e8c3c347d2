"""The interpreter that ran, out of the path of a file in its library."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchdoctor.model import Event, EventKind, Transcript
from torchdoctor.patterns import search

# environments that pip, uv and conda-build make for one build, and remove
_MADE_TO_BUILD = ("pip-build-env-", "builds-v0", "_h_env_placehold")
# where Isaac Sim keeps its extensions, below its own folder or below kit
_EXTENSIONS = ("exts", "extscache", "extscore", "extsphysics")

# names that people give a virtual environment; the folders of an installed Python, conda, a portable program
_MADE = ("venv", ".venv", "env", ".env")
_INSTALLED = (
    r"python[\d._-]*(?:32|64)?|python_embed\w*|py\d*|\w*(?:conda|forge|mamba|winpython)\w*"
    r"|runtime|windowsapps"
)

# where pip of Red Hat's systems puts what root installs; a Python that was built there has lib alone
_BY_SUDO = r"^/usr/local/lib64/(python3\.\d+)/site-packages/"


def interpreter_among(paths: Sequence[str]) -> str:
    """The interpreter that the first path to tell belongs to; "" where none does.

    On Windows a folder of another name may be either: only an installed Python has the standard library.
    """
    if of_system := next(filter(None, (search(_BY_SUDO, path, "/usr/local/lib64/") for path in paths)), None):
        return f"/usr/bin/{of_system[1]}"
    if found := next(filter(None, map(interpreter_of, paths)), ""):
        return found
    own = [one for path in paths if (one := re.match(r"([A-Za-z]:\\.{1,200}\\)Lib\\(?!site-packages)", path))]
    installed = (one[1] for one in own if any(path.startswith(f"{one[0]}site-packages\\") for path in paths))
    return next((f"{prefix}python.exe" for prefix in installed), "")


def parent_of(event: Event, transcript: Transcript) -> str:
    """The interpreter of the program that failed after a script, none of whose frames is in a package.

    "" where the script's own frames tell of one, or nothing behind it does.
    """
    script = event.frames[0] if event.frames else None
    if (
        script is None
        or script.function != "<module>"
        or any("-packages" in one.file for one in event.frames)
    ):
        return ""
    behind = (one for one in transcript.events[event.id + 1 :] if one.kind is EventKind.EXCEPTION)
    others = (one for one in behind if one.frames and not one.relations and one.frames[0].file != script.file)
    files = [frame.file for one in others for frame in one.frames]
    at_home = next(filter(None, (interpreter_of(file[1:]) for file in files if file[:2] == "~/")), "")
    return interpreter_among(files) or (f"~{at_home}" if at_home else "")


def interpreter_of(path: str) -> str:
    """The interpreter that a file of its library belongs to; "" where the path does not tell."""
    parts = re.split(r"[\\/]+", path)
    lower = [part.lower() for part in parts]
    if (started_by := _of_isaac(parts, lower)) is not None:
        return started_by
    if lower[1:3] == ["nix", "store"] and not re.fullmatch(r"\w+-python3-[\d.]+(?:-env)?", lower[3]):
        return ""  # a package's own folder, which holds no interpreter
    if "site-packages" not in lower or any(part.startswith(_MADE_TO_BUILD) for part in lower):
        return ""
    at = lower.index("site-packages")
    if at >= 2 and lower[at - 1] == "lib" and ":" in parts[0]:  # Windows
        prefix = "\\".join(parts[: at - 1])
        made = lower[at - 2] in _MADE and "installer_files" not in lower
        known = (
            lower[at - 3].endswith("envs")
            or re.fullmatch(_INSTALLED, lower[at - 2])
            or "installer_files" in lower
        )
        return f"{prefix}\\Scripts\\python.exe" if made else f"{prefix}\\python.exe" if known else ""
    if at >= 3 and lower[at - 2] in ("lib", "lib64") and lower[at - 1].startswith("python") and not parts[0]:
        prefix = "/".join(parts[: at - 2])
        if parts[at - 3] == ".local":  # packages of a user, for any Python
            return ""
        # a program's own, as Blender's, Homebrew's, python.org's: its folder may hold no other name
        numbered = parts[at - 3] in ("python", "homebrew") or parts[at - 4] == "Versions"
        return f"{prefix}/bin/{parts[at - 1] if numbered else 'python'}"
    return ""


def _of_isaac(parts: list[str], lower: list[str]) -> str | None:
    """What starts the Python of Isaac Sim, whose packages lie in its extensions; None elsewhere."""
    bundled = any(part == "pip_prebundle" or part.startswith("omni.pip.") for part in lower)
    ends = [at for at, part in enumerate(lower) if bundled and part in _EXTENSIONS]
    if not ends and "/kit/python/lib/" in "/".join(lower) and "site-packages" in lower:
        ends = [lower.index("kit")]
    if not ends or "site-packages" in lower[: ends[0]] or (parts[0] and ":" not in parts[0]):
        return None
    root = parts[: ends[0] - 1] if lower[ends[0] - 1] == "kit" else parts[: ends[0]]
    return "\\".join((*root, "python.bat")) if ":" in parts[0] else "/".join((*root, "python.sh"))
