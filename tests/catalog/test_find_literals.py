"""The script that says which program holds a literal."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "find_literals.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("find_literals", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = '''
def f(n, kind):
    """A docstring
    of two lines."""
    raise ValueError("the pool is " "exhausted after all, " f"{n} slots of kind {kind!r} are taken by others")
    raise ValueError("a share of %d percent of all memory of the machine" % n)
'''


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "frob-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("frob/pool.py", SOURCE)
        archive.writestr(
            "frob/native.so", b"\x7fELF\x00\x01an error of the native part: %s\x00_ZN4frob4poolEv\x00\x02"
        )
        archive.writestr("frob/cached.pyc", b"only in the byte code of it")
        archive.writestr("frob/kernel.h", '"two pieces of one "\n   "literal of C"')
    return path


@pytest.mark.parametrize(
    ("literal", "where"),
    [
        ("A docstring of two lines.", "frob/pool.py"),
        ("the pool is exhausted after all, ", "frob/pool.py"),
        (" are taken by others", "frob/pool.py"),
        ("a share of 12 percent of all memory of the machine", "frob/pool.py (values filled in)"),
        ("an error of the native part: ", "frob/native.so"),
        ("one literal of C", "frob/kernel.h"),
        ("an error of the native part: are taken by others", "frob/native.so (in two pieces)"),
        ("the pool is exhausted by nobody we have ever heard of", None),
        ("_ZN4frob4poolEv", None),
        ("only in the byte code of it", None),
        ("nowhere at all to be found", None),
    ],
)
def test_search_of_a_wheel(script: ModuleType, wheel: Path, literal: str, where: str | None) -> None:
    ((program, files),) = script.members(str(wheel))
    assert program == "frob 1.2"
    assert script.search(files, {literal}) == ({literal: where} if where else {})


def test_an_installed_distribution(script: ModuleType, tmp_path: Path) -> None:
    info = tmp_path / "frob-1.2.dist-info"
    info.mkdir()
    (tmp_path / "frob.py").write_text(SOURCE, encoding="utf-8")
    (info / "RECORD").write_text(
        "frob.py,sha256=x,1\ngone.py,,\nfrob-1.2.dist-info/RECORD,,\n", encoding="utf-8"
    )
    ((program, files),) = script.members(str(info))
    assert program == "frob 1.2"
    assert script.search(files, {"the pool is exhausted"}) == {"the pool is exhausted": "frob.py"}
