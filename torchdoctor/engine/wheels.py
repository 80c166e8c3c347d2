"""For which Pythons a release of torch has wheels, by the table, and whether a command asks for another.

A Python is early for a release that has wheels of torch alone for it, on Linux, and no torchvision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torchdoctor.engine.conditions import as_text
from torchdoctor.model import Fact
from torchdoctor.patterns import pattern
from torchdoctor.probes.compatibility import parse, table

_ASKED = r"(?<![\w./-])torch(?P<word>==|~=|<=|<)(?P<release>\d+(?:\.\d+)*)"
_RELEASE = r"\d+\.\d+(?:\.[\d*]+)?(?:\+\w+)?"
_OTHER_PYTHON = r"--python[= ]\d|\bpython=\d|\bpython\d\.\d+ -m "  # of an environment that it makes, or has
_COMPANIONS = ("torchvision", "torchaudio")


def fact(name: str, ask: Callable[[str], Fact]) -> Fact:
    """``install.pythons``, ``install.python`` and ``install.fits``, of the release that was asked for."""
    release = as_text(ask("match.want")) or as_text(ask("match.release"))
    found = pythons(release) if pattern(_RELEASE).fullmatch(release) else ()
    python = _python(ask)
    if not found or (name == "install.fits" and not python):
        return Fact.absent(name, "table")
    told = {"install.fits": "yes" if python in found else "no", "install.python": found[-2]}
    return Fact.known(name, told.get(name, f"{found[0]} to {found[-1]}"), "table")


def pythons(release: str) -> tuple[str, ...]:
    """The Pythons, oldest first, for which torch of this minor version and its companions have wheels."""
    minor = parse(release)[:2]
    return next((_of_row(row) for row in table("torch") if parse(row["torch"])[:2] == minor), ())


def newest(command: str, seen: Mapping[str, frozenset[str]], ask: Callable[[str], Fact]) -> str | None:
    """The newest torch that a command which bounds it can install; "" where it bounds none, None for none."""
    asked = pattern(_ASKED).search(command) if "torch" in command else None
    if asked is None:
        return ""
    release, python = parse(asked["release"]), _python(ask)
    if pattern(_OTHER_PYTHON).search(command):
        python = ""
    alone = "linux" in seen.get("system", ()) and not any(name in command for name in _COMPANIONS)
    for row in table("torch"):
        if _within(parse(row["torch"]), asked["word"], release) and (
            not python or python in _of_row(row) or (alone and python in row["early"].split(","))
        ):
            return row["torch"]
    if asked["word"] in ("==", "~=") and not any(
        _within(parse(row["torch"]), "==", release) for row in table("torch")
    ):
        return ""  # no row tells
    return None


def _within(torch: tuple[int, ...], word: str, bound: tuple[int, ...]) -> bool:
    if word in ("==", "~="):
        return torch[:2] == bound[:2]
    return torch[:2] < bound[:2] or (torch < bound if word == "<" else torch[:2] == bound[:2])


def _of_row(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row["python"].split(","))


def _python(ask: Callable[[str], Fact]) -> str:
    """The minor version of the reader's Python; "" where it is not known."""
    return ".".join(as_text(ask("python.version")).split(".")[:2])
