"""When a log may be judged by the facts of this machine, and by those of which environment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from torchdoctor import intake
from torchdoctor.catalog import load
from torchdoctor.engine import FactBook, provenance, untrusted
from torchdoctor.engine.factbook import TextFacts
from torchdoctor.engine.incident import Local, explain
from torchdoctor.engine.provenance import MAX_FILES, printed_here, site_of
from torchdoctor.engine.untrusted import lines_of_user, may_be_asked
from torchdoctor.model import Fact, Reason, State
from torchdoctor.probes.opening import open_for_log
from torchdoctor.probes.source import ProbeSource

SCRIPT = (
    'import os\n\n\ndef step(batch):\n    raise SystemError("no good at all")\n\n\nstep(list(range(8)))\n'
)

FRAMES = ((8, "<module>", "step(list(range(8)))"), (5, "step", 'raise SystemError("no good at all")'))


def log(path: object, frames: Sequence[tuple[int, str, str]] = FRAMES) -> str:
    lines = ["Traceback (most recent call last):"]
    for number, function, code in frames:
        lines += [f'  File "{path}", line {number}, in {function}', f"    {code}"]
    return "\n".join([*lines, "SystemError: no good at all"]) + "\n"


def here(text: str) -> bool:
    return printed_here(intake.read_text(text))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_two_lines_of_the_users_own_code_show_it(script: Path) -> None:
    assert here(log(script))


def test_one_line_does_not(script: Path) -> None:
    assert not here(log(script, FRAMES[:1]))
    # nor the same line twice
    assert not here(log(script, (FRAMES[0], FRAMES[0])))


def test_another_version_of_the_file_does_not(script: Path) -> None:
    script.write_text(SCRIPT.replace("import os\n", ""), encoding="utf-8")
    assert not here(log(script))


def test_lines_that_differ_outweigh_those_that_agree(script: Path) -> None:
    others = tuple((number, "step", f"line_of_another_program({number})") for number in (1, 2))
    assert not here(log(script, (*FRAMES, *others)))


def test_a_missing_or_relative_file_does_not(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not here(log(script.with_name("other.py")))
    monkeypatch.chdir(script.parent)
    assert not here(log("train.py"))


def test_files_of_python_and_of_packages_do_not() -> None:
    """They stand on every machine, so a log of any machine can quote them."""
    for path in (Path(json.__file__), Path(pytest.__file__)):
        text = path.read_text(encoding="utf-8").splitlines()
        frames = [(n, "f", code.strip()) for n, code in enumerate(text, 1) if len(code.strip()) > 30][:5]
        assert not here(log(path, frames))


def test_a_file_of_another_user_does_not(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not here(log(script))


def test_a_link_in_any_part_of_the_path_is_not_followed(script: Path, tmp_path: Path) -> None:
    (tmp_path / "linked.py").symlink_to(script)
    (tmp_path / "folder").symlink_to(tmp_path)
    assert not here(log(tmp_path / "linked.py"))
    assert not here(log(tmp_path / "folder" / "train.py"))


def test_no_more_files_are_opened_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(untrusted, "lines_of_user", lambda path: opened.append(path))
    here("\n".join(log(tmp_path / f"{number}.py") for number in range(3 * MAX_FILES)))
    assert len(opened) == MAX_FILES
    assert provenance.ENOUGH > 1


@pytest.mark.parametrize(
    "path",
    [
        "", "train.py", "./train.py", "~/train.py", "//server/share/train.py", r"\\server\share\train.py",
        r"\\.\pipe\x", "C:/train.py", "/", "/home/", "/home//train.py", "/home/../etc/passwd", "/home/./a.py",
        "/proc/self/environ", "/dev/zero", "/dev/fd/0", "/sys/kernel/x", "/net/host/share/a.py",
        "/misc/a/b.py", "/home/u/a\0.py", "/home/u/a\x1b]0;x\x07.py", "/home/u/\u202eyp.a", "/" + "a" * 5000,
    ],
)  # fmt: skip
def test_paths_that_are_refused_by_their_text(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("the system was asked")

    for name in ("open", "stat", "lstat"):
        monkeypatch.setattr(os, name, asked)
    assert not may_be_asked(path)
    assert lines_of_user(path) is None


def test_what_an_automounter_holds_is_not_asked_for(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of_user(str(script)) is not None
    monkeypatch.setattr(untrusted, "_mounts", lambda: (("/", "ext4"), (str(script.parent), "autofs")))
    assert lines_of_user(str(script)) is None
    # once it is mounted it is a disk as any other
    mounted = (("/", "ext4"), (str(script.parent), "autofs"), (str(script.parent), "nfs4"))
    monkeypatch.setattr(untrusted, "_mounts", lambda: mounted)
    assert lines_of_user(str(script)) is not None


def test_what_is_no_regular_file_or_too_large_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.py").write_bytes(b"\n" * (untrusted.MAX_BYTES + 1))
    for name in ("pipe.py", "large.py", ""):
        assert lines_of_user(str(tmp_path / name).rstrip("/")) is None


# Which environment's facts are used for a log: that which its frames name, of which only files are read
class Bare:
    """A machine of which only one fact is known: its interpreter has no torch."""

    def names(self) -> tuple[str, ...]:
        return ("torch.version", "torch.cuda", "gpu.count")

    def fetch(self, name: str) -> Fact:
        return Fact.absent(name, "sys.path")


def environment_log(site: str, script: str = "/w/train.py") -> str:
    return (
        f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>\n    step(range(100))\n'
        f'  File "{script}", line 2, in step\n    return torch.frobnicate(batch)\n'
        f'  File "{site}/torch/functional.py", line 9, in frobnicate\n    raise ValueError("frob")\n'
        "ValueError: frob\n"
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment that is not the active one; what lies in it as an interpreter must not be run."""
    site = tmp_path / "env" / "lib" / "python3.9" / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "version.py").write_text("__version__ = '1.13.1'\ncuda = '11.7'\n")
    (site / "torch-1.13.1.dist-info").mkdir()
    (site / "torch-1.13.1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 1.13.1\n")
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    python.chmod(0o755)
    return site


@pytest.mark.parametrize("programs", [False, True])
def test_of_the_environment_that_the_log_names_files_are_read(
    programs: bool, site: Path, tmp_path: Path
) -> None:
    source = open_for_log(None, programs, str(site))
    try:
        told = {
            name: source.fetch(name) for name in ("torch.version", "torch.cuda", "torch.metadata_version")
        }
        version = source.fetch("python.version")
        imported = source.fetch("torch.cuda_available")
    finally:
        source.close()
    assert {name: fact.value for name, fact in told.items()} == {
        "torch.version": "1.13.1", "torch.cuda": "11.7", "torch.metadata_version": "1.13.1",
    }  # fmt: skip
    assert (version.state, imported.state) == (State.UNKNOWN, State.UNKNOWN)
    assert not (tmp_path / "was-run").exists()


def test_the_engine_hands_over_the_folder(site: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def step(batch):\n    return torch.frobnicate(batch)\nstep(range(100))\n")
    (tmp_path / "run.log").write_text(environment_log(str(site), str(script)))
    asked: list[tuple[bool, str]] = []

    def opened(programs: bool, folder: str) -> ProbeSource:
        asked.append((programs, folder))
        return open_for_log(None, programs, folder)

    explain([str(tmp_path / "run.log")], FactBook(), load(), local=Local(opened))
    assert asked == [(False, str(site))]


@pytest.mark.parametrize("place", ["env/lib/site-packages", "/proc/1/root/lib/site-packages", "/opt/x"])
def test_places_that_name_no_environment(place: str) -> None:
    assert site_of(intake.read_text(environment_log(place))) == ""


def test_a_log_with_frames_of_torch_never_says_that_torch_is_absent() -> None:
    book = FactBook(Bare())
    facts = TextFacts(intake.read_text(environment_log("/opt/env/lib/python3.9/site-packages")), book)
    told = facts.fact("torch.version")
    assert (told.state, told.reason) == (State.UNKNOWN, Reason.NOT_ASKED)
    assert facts.fact("gpu.count").state is State.ABSENT
    assert TextFacts(intake.read_text("step 1\n"), book).fact("torch.version").state is State.ABSENT
