"""The scripts that say which program holds a literal, and print those that are looked for."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from planted_modules import loaded

from torchdoctor.workbench import literals
from torchdoctor.workbench.literals import BY_HAND, PLACE, PRINTED, read_recorded

Member = tuple[str, Callable[[], bytes]]
SCRIPT = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "find_literals.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded(SCRIPT)


def found_in(script: ModuleType, source: str, literal: str) -> list[tuple[str, dict[str, str]]]:
    return [
        (program, script.search(script.Texts(files), {literal})) for program, files in script.members(source)
    ]


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
        ("is exhausted after all, 12 slots", "frob/pool.py (values filled in)"),
        ("'spare' are taken by others", "frob/pool.py (values filled in)"),
        ("is exhausted afterwards, 12 slots", None),
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
    assert found_in(script, str(wheel), literal) == [("frob 1.2", {literal: where} if where else {})]


def test_an_installed_distribution(script: ModuleType, tmp_path: Path) -> None:
    info = tmp_path / "frob-1.2.dist-info"
    info.mkdir()
    (tmp_path / "frob.py").write_text(SOURCE, encoding="utf-8")
    (info / "RECORD").write_text(
        "frob.py,sha256=x,1\ngone.py,,\nfrob-1.2.dist-info/RECORD,,\n", encoding="utf-8"
    )
    literal = "the pool is exhausted"
    assert found_in(script, str(info), literal) == [("frob 1.2", {literal: "frob.py"})]


def test_a_source_distribution(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "frob-more-1.2.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        add(archive, "frob-more-1.2/src/frob.c", b'fail("the pool is "\n     "exhausted");')
    literal = "the pool is exhausted"
    assert found_in(script, str(path), literal) == [("frob-more 1.2", {literal: "src/frob.c"})]


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    item = tarfile.TarInfo(name)
    item.size = len(data)
    archive.addfile(item, io.BytesIO(data))


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="packs with dpkg-deb")
def test_a_debian_package_with_an_archive_of_sources_in_it(script: ModuleType, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: frob\nVersion: 1:1.2\nArchitecture: all\nMaintainer: nobody\nDescription: x\n"
    )
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "frob").write_bytes(b"\x7fELF\x00the pool is exhausted\x00")
    with tarfile.open(tree / "usr" / "frob.tar.xz", "w:xz") as archive:
        add(archive, "frob/pool.c", b'fail("no pool of that name");')
    path = tmp_path / "frob_1%3a1.2_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, path], check=True, capture_output=True)
    literal = "the pool is exhausted"
    assert found_in(script, str(path), literal) == [("frob 1:1.2", {literal: "usr/bin/frob"})]
    literal = "no pool of that name"
    assert found_in(script, str(path), literal) == [("frob 1:1.2", {literal: "frob/pool.c"})]


def test_a_list_of_sources(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("# first\npypi:frob==1.2@38\n\ndebian:frob  # the shell part\n", "utf-8")
    sources = ["a.whl", f"@{tmp_path / 'list'}"]
    assert list(script.listed(sources)) == ["a.whl", "pypi:frob==1.2@38", "debian:frob"]


def test_what_is_written_by_hand_is_looked_for_on_demand(
    script: ModuleType, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    literals = {"the pool is exhausted": ("a",), "one literal of C": ("b",), "gone with": ("c",)}
    monkeypatch.setattr(script, "every_literal", lambda _: literals)
    monkeypatch.setattr(script.catalog, "load", lambda: None)
    monkeypatch.setattr(script.catalog, "rules_directory", lambda: str(tmp_path))
    index = tmp_path / PLACE
    index.write_text("the pool is exhausted\thistoric: long ago\nno template's\thistoric: x\n", "utf-8")

    def run(*arguments: str) -> tuple[int, dict[str, str]]:
        monkeypatch.setattr("sys.argv", ["find_literals", *arguments])
        return script.main(), read_recorded(str(tmp_path))

    expected = {"the pool is exhausted": "historic: long ago", "one literal of C": "frob 1.2: frob/kernel.h"}
    assert run(str(wheel)) == (1, expected)  # one is found nowhere
    expected["the pool is exhausted"] = "frob 1.2: frob/pool.py"
    assert run("--by-hand", str(wheel)) == (1, expected)
    assert run("--fresh") == (1, {})


def test_the_list_of_sources_has_every_program_of_the_index(script: ModuleType) -> None:
    recorded = read_recorded(str(SCRIPT.parent.parent / "rules"))
    found = [where for where in recorded.values() if not where.startswith((*BY_HAND, PRINTED))]
    named = {program for where in found for program in re.findall(r"(?:^|\()(\S+) (\d\S*): ", where)}
    assert len(named) > 50
    listed = set(script.listed([f"@{SCRIPT.parent / 'literal_sources.txt'}"]))
    versions = {item.partition(":")[2].partition("@")[0].replace("-", "_") for item in listed}
    names = {item.partition(":")[2] for item in listed if item.startswith("debian:")}
    missing = [
        (name, version)
        for name, version in named
        if f"{name.replace('-', '_')}=={version}" not in versions and name not in {*names, *listed}
    ]
    assert missing == [("torch", "2.13.0+cpu")]  # which no index has


class TestJoints:
    """Pieces in several texts, of several programs."""

    @pytest.fixture
    def heads(self) -> list[Member]:
        return [
            (
                "lib/frob.so",
                lambda: b"\x00Frob error: \x00 when calling %s\x00frob runtime error (%d) : %s\x00",
            )
        ]

    @pytest.fixture
    def tails(self) -> list[Member]:
        return [
            (
                "lib/grate.so",
                lambda: b"\x00GRATE_STATUS_FULL\x00the grate is full\x00see the grate is open\x00",
            )
        ]

    def joined(self, script: ModuleType, literal: str, *programs: list[Member]) -> str | None:
        joints = script.Joints([literal])
        for number, files in enumerate(programs, 1):
            joints.read(f"program {number}", script.Texts(files))
        found: dict[str, str] = joints.found()
        return found.get(literal)

    @pytest.mark.parametrize(
        ("literal", "where"),
        [
            (
                "Frob error: the grate is full",
                "Frob error (program 1: lib/frob.so) + the grate is full (program 2: lib/grate.so)",
            ),
            (
                "Frob error: GRATE_STATUS_FULL when calling ",
                "Frob error (program 1: lib/frob.so) + GRATE_STATUS_FULL (program 2: lib/grate.so)"
                " + when calling (program 1: lib/frob.so)",
            ),
            (
                "frob runtime error (77) : the grate is full",
                "frob runtime error (program 1: lib/frob.so) + the grate is full (program 2: lib/grate.so)",
            ),
            # the tail stands inside a text, does not begin one
            ("Frob error: the grate is open", None),
            # the head does not end a text
            ("a pool of frobs: the grate is full", None),
            ("Frob error: the grate is lost", None),
            ("Frob: the grate is full", None),
        ],
    )
    def test_pieces(
        self, script: ModuleType, heads: list[Member], tails: list[Member], literal: str, where: str | None
    ) -> None:
        assert self.joined(script, literal, heads, tails) == where

    def test_each_piece_is_looked_for(
        self, script: ModuleType, heads: list[Member], tails: list[Member]
    ) -> None:
        literal = "Frob error: the grate is full"
        assert self.joined(script, literal, heads) is None
        assert self.joined(script, literal, tails) is None
        assert self.joined(script, literal, tails, heads) is not None

    def test_the_fewest_pieces_out_of_one_file(self, script: ModuleType) -> None:
        files = [
            ("a.py", lambda: b"Frob error: "),
            ("b.so", lambda: b"\x00Frob error: \x00is full of frobs\x00Frob error:\x00the grate\x00"),
            ("c.so", lambda: b"\x00Frob error:\x00the grate is full of frobs\x00"),
        ]
        assert self.joined(script, "Frob error: the grate is full of frobs", files) == (
            "Frob error (program 1: c.so) + the grate is full of frobs (program 1: c.so)"
        )


# The script that makes programs print what no file of theirs holds whole


ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def print_literals_script() -> ModuleType:
    pytest.importorskip("torch")
    path = ROOT / "benchmarks" / "print_literals.py"
    return loaded(path)


def test_what_is_raised_and_warned_of_without_the_source_of_frames(print_literals_script: ModuleType) -> None:
    call = 'import warnings\nwarnings.warn("one  thing")\nraise ValueError("another")  # a comment'
    assert print_literals_script.printed(call) == "ValueError: another one thing"
    assert print_literals_script.printed("1 + 1") == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the system's own words are Linux's")
def test_what_is_recorded_as_printed_is_printed(print_literals_script: ModuleType) -> None:
    recorded = literals.read_recorded(str(ROOT / "rules"))
    claimed = {literal for literal, where in recorded.items() if where.startswith(literals.PRINTED)}
    assert claimed
    texts = [
        print_literals_script.printed(call) for call in print_literals_script.CALLS.strip().split("\n\n")
    ]
    assert [item for item in claimed if not any(" ".join(item.split()) in text for text in texts)] == []
