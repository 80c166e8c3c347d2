"""The interpreter that ran, out of the path of a file in its library."""

from __future__ import annotations

import re

# environments that pip and uv make for one build, and remove
_MADE_TO_BUILD = ("pip-build-env-", "builds-v0")


def interpreter_of(path: str) -> str:
    """The interpreter that a file of its library belongs to; "" where the path does not tell."""
    parts = re.split(r"[\\/]+", path)
    lower = [part.lower() for part in parts]
    if "site-packages" not in lower or any(part.startswith(_MADE_TO_BUILD) for part in lower):
        return ""
    at = lower.index("site-packages")
    if at >= 2 and lower[at - 1] == "lib" and ":" in parts[0]:  # Windows
        prefix = "\\".join(parts[: at - 1])
        made = lower[at - 2] in ("venv", ".venv", "env", ".env")
        return f"{prefix}\\Scripts\\python.exe" if made else f"{prefix}\\python.exe"
    if at >= 3 and lower[at - 2] in ("lib", "lib64") and lower[at - 1].startswith("python") and not parts[0]:
        prefix = "/".join(parts[: at - 2])
        return (
            f"{prefix}/bin/python" if parts[at - 3] != ".local" else ""
        )  # packages of a user, for any Python
    return ""
